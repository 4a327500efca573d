package prove

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"provegym/gym"
)

func TestFreeze_fillsIn(t *testing.T) {
	p := frozen(t)
	if err := p.Verify(); err != nil {
		t.Fatal(err)
	}
	c := p.Conditions[0]
	if c.Kind != BinaryOne || c.Cluster != ClusterTask || c.K != 1 || c.Family != Confirmatory || c.Psi0 != .2 || c.MDE == nil {
		t.Errorf("condition %+v", c)
	}
	if p.Alpha != .05 || p.Lost != (Lost{2, .05}) || p.Overall.DMin != .2 || p.Overall.Delta != .1 || p.Overall.MDE == nil {
		t.Errorf("plan %s", p.JSON())
	}
	if got, want := p.Budget.Sealed, 2*(120+120+200+40+60); got != want {
		t.Errorf("sealed episodes: %d, want %d", got, want)
	}
	if got := strings.Join(p.Monitor.Conditions, " "); got != strings.Join([]string{four, eight, other, easy}, " ") {
		t.Errorf("monitored: %s; the family that sealed looks alone may see must not be among them", got)
	}
	if got := strings.Join(p.Exclude, " "); got != strings.Join([]string{four, eight, other, unseen}, " ") {
		t.Errorf("excluded from training: %s", got)
	}
	// Planning table of the notes: n = 200, psi0 .2, one of eight: .151.
	mde := detectable(200, .2, .05/8)
	if mde == nil || *mde < .1505 || *mde > .1515 {
		t.Errorf("MDE of 200 tasks, one of eight: %v", mde)
	}
}

func TestFreeze_hash(t *testing.T) {
	p := frozen(t)
	if again := frozen(t); again.Hash != p.Hash {
		t.Error("the same draft has two hashes")
	}
	q := p
	q.Made = &Made{At: "2031-01-02T03:04:05Z", Host: "h"}
	if q.hash() != p.Hash {
		t.Error("time and host are in the hash")
	}
	back, err := ParsePlan(q.JSON())
	if err != nil || back.Verify() != nil || back.Hash != p.Hash {
		t.Errorf("read back: %v, %v", err, back.Verify())
	}
	// Another program's spelling of the same JSON is the same plan.
	var any map[string]any
	if err := json.Unmarshal(p.JSON(), &any); err != nil {
		t.Fatal(err)
	}
	sorted, _ := json.MarshalIndent(any, "", "\t")
	if back, err = ParsePlan(sorted); err != nil || back.Verify() != nil {
		t.Errorf("respelled: %v, %v", err, back.Verify())
	}
	for name, change := range map[string]func(*Plan){
		"alpha":         func(p *Plan) { p.Alpha = .1 },
		"dmin":          func(p *Plan) { p.Conditions[0].DMin = .3 },
		"family":        func(p *Plan) { p.Conditions[0].Family = Exploratory },
		"rule":          func(p *Plan) { p.Looks[0].Checkpoint = "best" },
		"seeds":         func(p *Plan) { p.Looks[0].Seeds = "0" },
		"exclude":       func(p *Plan) { p.Exclude = nil },
		"monitor tasks": func(p *Plan) { p.Monitor.Tasks++ },
	} {
		q, _ := ParsePlan(p.JSON())
		change(&q)
		if err := q.Verify(); !errors.Is(err, gym.ErrBadInput) || !strings.Contains(err.Error(), "changed after freezing") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Slots(q, testKey, "final"); err == nil {
			t.Errorf("%s: a changed plan gives slots", name)
		}
	}
	if strings.Contains(string(p.JSON()), string(canonical(Seed(testKey, "sealed", "sealed-1", four, 0)))) {
		t.Error("a sealed seed stands in the plan")
	}
}

func TestFreeze_refuses(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*Plan)
		want   string
	}{
		"G below 20":      {func(d *Plan) { d.Conditions[3].G = 19 }, "G = 19, fewer than 20"},
		"weights above 1": {func(d *Plan) { d.Looks = append(d.Looks, Look{ID: "more", Weight: .2, Checkpoint: "last"}) }, "add to 1.2"},
		"a shared block": {func(d *Plan) {
			d.Looks = []Look{{ID: "a", Checkpoint: "last", Block: "x"}, {ID: "b", Checkpoint: "last", Block: "x"}}
		}, "belongs to another look"},
		"a look without a rule":  {func(d *Plan) { d.Looks[0].Checkpoint = "" }, "rule that names the checkpoint"},
		"a look called monitor":  {func(d *Plan) { d.Looks[0].ID = "monitor" }, "reserved"},
		"no look":                {func(d *Plan) { d.Looks = nil }, "at least one sealed look"},
		"a condition twice":      {func(d *Plan) { d.Conditions[1].ID = "provepack@2/known?noise=0&fanout=4" }, "stands there twice"},
		"another kind":           {func(d *Plan) { d.Conditions[0].Kind = "bounded" }, `kind "bounded" is not supported`},
		"several samples":        {func(d *Plan) { d.Conditions[0].K = 4 }, "one sample (k = 1)"},
		"territories":            {func(d *Plan) { d.Conditions[0].Cluster = "territory" }, `not k = 1 of "territory"`},
		"an unknown tier":        {func(d *Plan) { d.Conditions[0].Tier = "hard" }, "tier is"},
		"trained on":             {func(d *Plan) { d.Conditions[0].ID = "provepack@2/known?fanout=2" }, "lets training see it"},
		"confirmatory same-cell": {func(d *Plan) { d.Conditions[4].Family = Confirmatory }, "is descriptive"},
		"held out same-cells":    {func(d *Plan) { d.Conditions[2].Family, d.Conditions[2].Tier = Exploratory, SameCells }, "but the split holds it out"},
		"a family half held out": {func(d *Plan) { d.Conditions[0].Tier = HeldOutFamily }, "at its base setting"},
		"nothing sealed only":    {func(d *Plan) { d.Conditions = d.Conditions[:3] }, "sealed looks alone may see"},
		"a family for monitors":  {func(d *Plan) { d.Conditions[3].ID = "provepack@2/half" }, "sealed looks alone may see"},
		"nothing confirmatory":   {func(d *Plan) { d.Conditions = d.Conditions[4:] }, "no condition is confirmatory"},
		"monitoring the unseen":  {func(d *Plan) { d.Monitor.Conditions = []string{unseen} }, "no condition of the plan that mode eval may see"},
		"dmin of 1":              {func(d *Plan) { d.Conditions[0].DMin = 1 }, "dmin is 1"},
		"no base":                {func(d *Plan) { d.Base = Base{} }, "base needs"},
		"another pack build":     {func(d *Plan) { d.PackHash = "old" }, "another build"},
		"another version":        {func(d *Plan) { d.Pack = "provepack@1" }, "the library has provepack@2"},
		"another split":          {func(d *Plan) { d.SplitHash = "old" }, "the plan is for split old"},
		"an unknown pack":        {func(d *Plan) { d.Pack = "provepak" }, `did you mean "provepack"`},
		"an unknown dial":        {func(d *Plan) { d.Conditions[0].ID = "provepack@2/known?fanuot=4" }, `did you mean "fanout"`},
		"a loss limit of half":   {func(d *Plan) { d.Lost.MaxShare = .5 }, "at most .05"},
		"frozen already":         {func(d *Plan) { d.Hash = "x" }, "frozen already"},
	} {
		d := draft()
		row.change(&d)
		if _, err := Freeze(d, testKey, testSplit{}); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v\nwant a text with %q", name, err, row.want)
		} else if !errors.Is(err, gym.ErrBadInput) && !errors.Is(err, gym.ErrUnknown) {
			t.Errorf("%s: %v is neither ErrBadInput nor ErrUnknown", name, err)
		}
	}
	d := draft()
	d.Conditions[3].G, d.Conditions[0].K, d.Base = 3, 2, Base{}
	_, err := Freeze(d, testKey, nil)
	for _, want := range []string{"G = 3", "k = 2", "base needs", "needs the split"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("all problems at once: %v lacks %q", err, want)
		}
	}
	if _, err := ParsePlan([]byte(`{"alfa": 0.05}`)); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("an unknown member is accepted: %v", err)
	}
}

func TestTable(t *testing.T) {
	d := draft()
	d.Looks = []Look{{ID: "mid", Weight: .2, Checkpoint: "half"}, {ID: "final", Weight: .8, Checkpoint: "last"}}
	table, err := Table(d)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 2*6 {
		t.Fatalf("%d rows", len(table.Rows))
	}
	mid, final := table.Rows[0], table.Rows[6]
	if math.Abs(mid.Level-.0025) > 1e-12 || math.Abs(final.Level-.01) > 1e-12 || *mid.MDE <= *final.MDE || *mid.Needs <= *final.Needs {
		t.Errorf("mid %+v, final %+v", mid, final)
	}
	if p := frozen(t, func(d2 *Plan) { d2.Looks = d.Looks }); *p.Conditions[0].MDE != *final.MDE || *p.Overall.MDE != *table.Rows[11].MDE {
		t.Error("the plan's MDE is not that of the table's last look")
	}
	// What is said to be needed detects dmin, and a twentieth less does not by much.
	for _, r := range table.Rows {
		if got := detectable(*r.Needs, r.Psi0, r.Level); got == nil || *got > r.DMin+1e-6 {
			t.Errorf("%s at %s: %d tasks detect %v, not %v", r.Condition, r.Look, *r.Needs, got, r.DMin)
		}
		if got := detectable(*r.Needs*85/100, r.Psi0, r.Level); got != nil && *got <= r.DMin {
			t.Errorf("%s at %s: %d tasks are more than needed", r.Condition, r.Look, *r.Needs)
		}
	}
	if row := table.Rows[3]; row.Enough || row.Condition != unseen {
		t.Errorf("40 tasks are enough? %+v", row)
	}
	text := strings.Join(table.Warnings, "\n")
	for _, want := range []string{unseen + ": 40 tasks", "INCONCLUSIVE(power)"} {
		if !strings.Contains(text, want) {
			t.Errorf("warnings %q lack %q", text, want)
		}
	}
	d.Looks[0].Weight, d.Looks[1].Weight = 0, 0
	if table, err = Table(d); err != nil || table.Rows[0].Level < .05*.6/4 || table.Rows[6].Level > .05*.16/4 {
		t.Errorf("open-ended weights: %v, %+v", err, table.Rows[0])
	}
}

func TestSlots(t *testing.T) {
	p := frozen(t, func(d *Plan) {
		d.Looks = []Look{{ID: "mid", Weight: .2, Checkpoint: "half"}, {ID: "final", Weight: .8, Checkpoint: "last"}}
	})
	seeds := map[uint64]string{}
	for _, look := range []string{"mid", "final", MonitorLook} {
		slots, err := Slots(p, testKey, look)
		if err != nil {
			t.Fatal(err)
		}
		want := 120 + 120 + 200 + 40 + 60
		if look == MonitorLook {
			want = 4 * 30
		}
		if len(slots) != want {
			t.Errorf("%s: %d slots, want %d", look, len(slots), want)
		}
		for _, s := range slots {
			if was := seeds[s.Seed]; was != "" {
				t.Fatalf("%s: seed %d of %s met before in %s", look, s.Seed, s.Task, was)
			}
			seeds[s.Seed] = look + " " + s.Task
			if task, err := gym.ParseTask(s.Task); err != nil || task.Seed != s.Seed || task.Condition.ID() != s.Condition {
				t.Fatalf("%+v: %v", s, err)
			}
		}
		if _, err := Slots(p, gym.NewKey(8, "run"), look); !errors.Is(err, gym.ErrBadInput) || !strings.Contains(err.Error(), "does not open") {
			t.Errorf("%s: another key: %v", look, err)
		}
	}
	if _, err := Slots(p, testKey, "finale"); !errors.Is(err, gym.ErrUnknown) {
		t.Errorf("an undeclared look: %v", err)
	}
	if _, err := Slots(draft(), testKey, "final"); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("a draft: %v", err)
	}
}

func TestAmend(t *testing.T) {
	old := frozen(t, func(d *Plan) {
		d.Looks = []Look{{ID: "mid", Weight: .2, Checkpoint: "half"}, {ID: "final", Weight: .8, Checkpoint: "last"}}
	})
	edit := func(f func(*Plan)) Plan { p, _ := ParsePlan(old.JSON()); f(&p); return p }

	before, err := Amend(old, edit(func(p *Plan) { p.Conditions[0].DMin = .15 }), testKey, testSplit{}, "a smaller change matters", "")
	if err != nil {
		t.Fatal(err)
	}
	a := before.Amendments[0]
	if len(before.Amendments) != 1 || a.Previous != old.Hash || strings.Join(a.Touches, " ") != four+" overall" || before.Hash == old.Hash || before.Verify() != nil {
		t.Errorf("before a look: %+v", before.Amendments)
	}
	if before.Conditions[0].Family != Confirmatory {
		t.Error("an amendment before any look demotes")
	}

	after, err := Amend(old, edit(func(p *Plan) { p.Conditions[0].DMin = .15 }), testKey, testSplit{}, "a smaller change matters", "mid")
	if err != nil {
		t.Fatal(err)
	}
	if c := after.Conditions[0]; c.Family != Exploratory || !c.Demoted || after.Conditions[1].Family != Confirmatory {
		t.Errorf("after a look: %+v", after.Conditions)
	}
	if after.FamilySize() != 4 {
		t.Errorf("the family shrank to %d: looking made the other tests easier", after.FamilySize())
	}
	ev := played(t, after, "final", worked)
	r := evaluated(t, after, "final", ev)
	if row := rowOf(t, r, four); row.Verdict != nil || row.Q == nil {
		t.Errorf("a demoted condition has the verdict %v", row.Verdict)
	}
	if r.Overall.Verdict != nil || r.Family != 4 || rowOf(t, r, eight).Label() != "REGRESSED" {
		t.Errorf("overall %v, family %d, %s", r.Overall.Verdict, r.Family, rowOf(t, r, eight).Label())
	}

	// A draft from scratch that says the same touches nothing; the pooled row's own terms touch it alone.
	d := draft()
	d.Looks = []Look{{ID: "mid", Weight: .2, Checkpoint: "half"}, {ID: "final", Weight: .8, Checkpoint: "last"}}
	if same, err := Amend(old, d, testKey, testSplit{}, "names nothing new", "mid"); err != nil || len(same.Amendments[0].Touches) != 0 || same.Overall.Demoted {
		t.Errorf("a change of nothing: %v, %+v", err, same.Amendments)
	}
	d.Overall.DMin = .01
	pooled, err := Amend(old, d, testKey, testSplit{}, "the mean matters more", "mid")
	if err != nil || strings.Join(pooled.Amendments[0].Touches, " ") != "overall" || !pooled.Overall.Demoted || pooled.Conditions[0].Demoted {
		t.Errorf("the pooled row: %v, %+v", err, pooled.Amendments)
	}

	more := pooled
	more.Code = "abc"
	if more, err = Amend(pooled, more, testKey, testSplit{}, "names its code", ""); err != nil || !more.Overall.Demoted || len(more.Amendments[1].Touches) != 0 {
		t.Errorf("a later amendment gives the pooled row its verdict back: %v", err)
	}
	added := edit(func(p *Plan) {
		p.Conditions = append(p.Conditions, Condition{ID: "provepack@2/other?fanout=4", Tier: HeldOutDials})
		p.Monitor.Conditions = nil
	})
	if added, err = Amend(old, added, testKey, testSplit{}, "one more", ""); err != nil ||
		strings.Join(added.Amendments[0].Touches, " ") != "provepack@2/other?fanout=4 overall" {
		t.Errorf("a condition more: %v, %+v", err, added.Amendments)
	}

	everything, err := Amend(old, edit(func(p *Plan) { p.Alpha = .1 }), testKey, testSplit{}, "braver", "mid")
	if err != nil || len(everything.Amendments[0].Touches) != 6 {
		t.Fatalf("alpha after a look: %v, %+v", err, everything.Amendments)
	}
	again := everything
	again.Code = "abc"
	if again, err = Amend(everything, again, testKey, testSplit{}, "names its code", ""); err != nil || again.FamilySize() != 4 || len(again.Amendments) != 2 {
		t.Errorf("a second amendment: %v, %d", err, again.FamilySize())
	}
	for name, row := range map[string]struct {
		next   Plan
		reason string
		look   string
		want   string
	}{
		"no reason":       {edit(func(*Plan) {}), " ", "", "needs its reason"},
		"history":         {edit(func(p *Plan) { p.Amendments = []Amendment{{Reason: "x"}} }), "r", "", "never edited"},
		"taken out":       {edit(func(p *Plan) { p.Conditions, p.Monitor = p.Conditions[1:], nil }), "r", "mid", "cannot be taken out"},
		"undeclared look": {edit(func(*Plan) {}), "r", "mod", "not declared"},
		"bad terms":       {edit(func(p *Plan) { p.Conditions[0].G = 5 }), "r", "", "G = 5"},
	} {
		if _, err := Amend(old, row.next, testKey, testSplit{}, row.reason, row.look); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A result of the plan before the amendment still belongs in the report.
	mid := evaluated(t, old, "mid", played(t, old, "mid", worked))
	if _, err := NewReport(Input{Plan: after, Looks: []Result{mid, r}}); err != nil {
		t.Error(err)
	}
	if _, err := NewReport(Input{Plan: old, Looks: []Result{r}}); err == nil {
		t.Error("a result of another plan is accepted")
	}
}

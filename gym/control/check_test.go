package control_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"provegym/gym"
	"provegym/gym/control"
	"provegym/packs/echo"
)

// altered returns a copy of the echo pack whose tasks change has altered.
func altered(change func(task gym.Task, b *gym.Built)) *gym.Pack {
	p := *echo.Pack
	p.Build = func(task gym.Task) (*gym.Built, error) {
		b, err := echo.Pack.Build(task)
		if err == nil && change != nil {
			change(task, b)
		}
		return b, err
	}
	return &p
}

func run(t *testing.T, p *gym.Pack, o control.Options, slice time.Duration) control.Report {
	t.Helper()
	c, err := control.NewCheck(p, o)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if r := c.Step(slice); r.Done {
			return r
		}
	}
}

func TestCheck_soundPack(t *testing.T) {
	o := control.Options{Seeds: 40, DialSeeds: 6}
	r := run(t, altered(nil), o, time.Minute)
	if r.Failed != 0 || r.Episodes != r.Total || len(r.Failures) != 0 || r.Left != 0 {
		t.Errorf("%d of %d episodes, %d failed: %+v", r.Episodes, r.Total, r.Failed, r.Failures)
	}
	seen := map[[3]string]bool{}
	for _, row := range r.Rows {
		key := [3]string{row.Control, row.View, row.Condition}
		if seen[key] {
			t.Errorf("%v is reported twice", key)
		}
		seen[key] = true
		want := 40
		if strings.Contains(row.Condition, "?") {
			want = 6
		}
		if row.Kind == "negative_control" && row.Bound == 0 {
			want /= 2 // by turns with the other view
		}
		if row.Variants > 0 && !strings.HasPrefix(row.Control, "nc16_") && row.Episodes+row.Void != want {
			t.Errorf("%s in %s, %s: %d and %d void, want %d", row.Control, row.View, row.Condition, row.Episodes, row.Void, want)
		}
		if want >= 20 && !strings.HasPrefix(row.Control, "nc16_") && row.Covered < min(row.Variants, want/2) {
			t.Errorf("%s in %s, %s: %d of %d variants", row.Control, row.View, row.Condition, row.Covered, row.Variants)
		}
		// 40 episodes cannot show a bound of half a percent: that must not pass for OK.
		if row.OK != (row.Bound == 0) {
			t.Errorf("row %+v", row)
		}
	}
	// The result must not depend on how the work was cut.
	cut := run(t, altered(nil), o, time.Millisecond)
	if !reflect.DeepEqual(cut.Rows, r.Rows) || cut.Total != r.Total {
		t.Error("in slices of a millisecond the rows are others")
	}
}

// Each fault is found by the control that is there for it, in a failure that says how to see it again.
func TestCheck_findsFaults(t *testing.T) {
	always := func(*gym.Evidence) bool { return true }
	for name, c := range map[string]struct {
		control string
		pack    *gym.Pack
	}{
		"collateral unchecked": {"nc7_plus_write", altered(func(_ gym.Task, b *gym.Built) { b.Check.Collateral.Holds = always })},
		"spam":                 {"nc5_spam", altered(func(_ gym.Task, b *gym.Built) { b.Check.Collateral.Holds = always })},
		"path unchecked":       {"nc6_minus_step", altered(func(_ gym.Task, b *gym.Built) { b.Check.Path, b.Check.Commit.Holds = nil, always })},
		"any finish passes": {"nc0_finish_at_once", altered(func(_ gym.Task, b *gym.Built) {
			b.Check = gym.Check{Goals: []gym.Predicate{{Name: "finished", Holds: func(e *gym.Evidence) bool { return e.Finish != nil }}},
				Collateral: gym.Predicate{Holds: always}, Commit: gym.Predicate{Holds: always}}
		})},
		"repair passes": {"nc16_rewritten", altered(func(_ gym.Task, b *gym.Built) {
			b.Check.Collateral.Holds = func(e *gym.Evidence) bool { // whatever was written, as long as it was to one note
				w := e.Log.Writes()
				return !slices.ContainsFunc(w, func(a gym.Access) bool { return a.Entity != w[0].Entity })
			}
		})},
		"refusing passes": {"nc4_refuse", altered(func(_ gym.Task, b *gym.Built) {
			b.Check = gym.Check{Goals: []gym.Predicate{{Name: "refused", Holds: func(e *gym.Evidence) bool { return e.Finish != nil && e.Finish.Arg(0)[0].Bits == 1 }}},
				Collateral: gym.Predicate{Holds: always}, Commit: gym.Predicate{Holds: always}}
		})},
		"oracle fails now and then": {"oracle", altered(func(task gym.Task, b *gym.Built) {
			if task.Seed%8 == 0 {
				b.Check.Commit.Holds = func(*gym.Evidence) bool { return false }
			}
		})},
		"order of branches matters": {"pc2_permuted", altered(func(_ gym.Task, b *gym.Built) {
			// The plan's second call reads the source, so this holds for the plan as written.
			b.Check.Path[0].Holds = func(e *gym.Evidence) bool {
				return e.Log.Len() > 1 && slices.ContainsFunc(e.Log.At(1).Reads, func(a gym.Access) bool { return a.Field == 1 })
			}
		})},
		"build fails": {"pc1_oracle", altered(func(gym.Task, *gym.Built) { panic("no task today") })},
		"seeds alike": {"nc10_sibling", func() *gym.Pack {
			p := altered(nil)
			build := p.Build
			p.Build = func(task gym.Task) (*gym.Built, error) { task.Seed = 4; return build(task) }
			return p
		}()},
		"check errors": {"oracle", altered(func(_ gym.Task, b *gym.Built) {
			b.Check.Reward = func(*gym.Evidence, gym.Components) float64 { return 2 }
		})},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, c.pack, control.Options{Seeds: 60, DialSeeds: -1}, time.Minute)
			i := slices.IndexFunc(r.Failures, func(f control.Failure) bool { return f.Control == c.control })
			if r.OK || r.Failed == 0 || i < 0 {
				t.Fatalf("%s has found nothing; %d failures", c.control, r.Failed)
			}
			f := r.Failures[i]
			if want := fmt.Sprintf("provegym run --agent %s --variant %d --view %s '%s'", f.Control, f.Variant, f.View, f.Task); f.Rerun != want {
				t.Errorf("rerun is %s, want %s", f.Rerun, want)
			}
		})
	}
}

// Random play of a task that nearly anything solves breaks its bound, and only that.
func TestCheck_boundOfRandomPlay(t *testing.T) {
	p := altered(func(_ gym.Task, b *gym.Built) {
		b.Check.Path = nil
		b.Check.Commit.Holds = func(e *gym.Evidence) bool { return e.Finish != nil }
	})
	r := run(t, p, control.Options{Families: []string{"guarded"}, Seeds: 400, DialSeeds: -1}, time.Minute)
	for _, row := range r.Rows {
		if row.Control == "nc2_random_valid" && (row.OK || row.Passes == 0 || row.Upper < row.Bound || row.Lower > float64(row.Passes)/float64(row.Episodes)) {
			t.Errorf("row %+v", row)
		}
	}
}

func TestNewCheck_errors(t *testing.T) {
	if _, err := control.NewCheck(echo.Pack, control.Options{Families: []string{"copi"}}); !errors.Is(err, gym.ErrUnknown) || !strings.Contains(err.Error(), `"copy"`) {
		t.Errorf("an unknown family: %v", err)
	}
	p := altered(nil)
	p.Agents = nil
	if _, err := control.NewCheck(p, control.Options{}); !errors.Is(err, gym.ErrPack) {
		t.Errorf("no oracle: %v", err)
	}
}

func TestAgents_thePacksOwnComesFirst(t *testing.T) {
	p := altered(nil)
	p.Agents = append(slices.Clone(p.Agents), gym.Agent{Name: "nc5_spam", Doc: "own"})
	if a, err := control.Agent(p, "nc5_spam"); err != nil || a.Doc != "own" {
		t.Errorf("got %+v, %v", a, err)
	}
	names := map[string]int{}
	for _, a := range control.Agents(p) {
		names[a.Name]++
	}
	for name, n := range names {
		if n != 1 {
			t.Errorf("%s is there %d times", name, n)
		}
	}
	if _, err := control.Agent(p, "nc5_spem"); !errors.Is(err, gym.ErrUnknown) || !strings.Contains(err.Error(), `"nc5_spam"`) {
		t.Errorf("an unknown agent: %v", err)
	}
}

func start(t *testing.T, seed uint64, v gym.View) *gym.Episode {
	t.Helper()
	c, err := echo.Pack.Condition("copy")
	if err != nil {
		t.Fatal(err)
	}
	ep, err := gym.NewEpisode(gym.Task{Condition: c, Seed: seed}, gym.Options{View: v})
	if err != nil {
		t.Fatal(err)
	}
	return ep
}

func TestPlay_silenceAndTheUnsayableCostCalls(t *testing.T) {
	silent := gym.ActorFunc(func(*gym.Episode, *gym.Call) bool { return false })
	unseen := gym.ActorFunc(func(ep *gym.Episode, call *gym.Call) bool {
		*call = echo.Pack.NewCall("read_note", map[string][]gym.Value{"note": {{Bits: 5}}})
		return true
	})
	for v := range gym.View(2) {
		for name, actor := range map[string]gym.Actor{"silence": silent, "an unseen id": unseen} {
			ep := start(t, 1, v)
			if err := control.Play(ep, actor); err != nil || ep.Outcome() != gym.Truncated || ep.Limit() != gym.LimitCalls || ep.Calls() != ep.Limits().Calls {
				t.Errorf("%s in the %s view: %v, %s after %d calls", name, v, err, ep.Outcome(), ep.Calls())
			}
		}
	}
	if err := control.Play(start(t, 1, gym.Text), unseen); err != nil {
		t.Error(err)
	}
}

// The permutations reach every order that the plan allows and no other: two chains of two can be merged in six ways.
func TestPermuted_reachesEveryOrder(t *testing.T) {
	a, err := control.Agent(echo.Pack, "pc2_permuted")
	if err != nil {
		t.Fatal(err)
	}
	orders := map[string]bool{}
	for i := range uint64(200) {
		ep := start(t, 1, gym.Text)
		actor, err := control.New(ep, a, 0, gym.NewKey(i, "order"))
		if err == nil {
			err = control.Play(ep, actor)
		}
		if err != nil || !ep.Success() {
			t.Fatalf("key %d: %v, %+v", i, err, ep.Components())
		}
		spelled := ""
		log := ep.Evidence().Log
		for k := range 4 {
			call := log.At(k).Call
			spelled += string(echo.Pack.AppendCall(nil, &call))
		}
		orders[spelled] = true
	}
	if len(orders) != 6 {
		t.Errorf("%d orders, want 6", len(orders))
	}
}

func TestRerunAction_printsTheAction(t *testing.T) {
	c, _ := echo.Pack.Condition("copy")
	task := gym.Task{Condition: c, Seed: 1}
	for _, action := range []string{"", "{", `{"tool":"x","args":{"a":"it's 100% \\ \u0000"}}`, "\x00\xff\n\té", "   ", "\\101"} {
		command, _, _ := strings.Cut(control.RerunAction(task, []byte(action)), " | provegym play --action - ")
		got, err := exec.Command("sh", "-c", command).Output()
		if err != nil || string(got) != action {
			t.Errorf("%s printed %q, want %q (%v)", command, got, action, err)
		}
	}
}

// A report has lists, not nulls, before the first episode and after one without a failure.
func TestCheck_reportsLists(t *testing.T) {
	c, err := control.NewCheck(echo.Pack, control.Options{Seeds: 1, DialSeeds: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, budget := range []time.Duration{0, time.Minute} {
		if r := c.Step(budget); r.Rows == nil || r.Failures == nil {
			t.Errorf("after %v: rows %v, failures %v", budget, r.Rows, r.Failures)
		}
	}
}

// What cannot be listed in memory or would be played twice is refused before it is planned.
func TestNewCheck_refuses(t *testing.T) {
	for _, o := range []control.Options{{Seeds: 1 << 40}, {DialSeeds: 1 << 40}, {Seeds: 1, Families: []string{"copy", "copy"}}} {
		if _, err := control.NewCheck(echo.Pack, o); !errors.Is(err, gym.ErrBadInput) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// A baseline is played at every level of every dial on the same tasks: the one that look-alikes break passes less often with more of
// them, and a dial that made its work easier is found.
func TestCheck_levels(t *testing.T) {
	o := control.Options{Seeds: -1, DialSeeds: -1, LevelTasks: 120}
	r := run(t, altered(nil), o, 50*time.Millisecond)
	passes := map[string][]int{}
	for _, row := range r.Dials {
		passes[row.Dial] = append(passes[row.Dial], row.Passes)
		if row.Tasks != 120 || row.Agent != "first_hit" || !row.OK || row.More > row.Fewer {
			t.Errorf("row %+v", row)
		}
	}
	if p := passes["look_alikes"]; len(p) != 4 || p[0] < 100 || p[3] > p[0]/2 || len(passes["slack"]) == 0 {
		t.Errorf("passes %v", passes)
	}
	if r.Episodes != r.Total || !r.OK || r.Rates.LevelTasks != 120 || r.Rates.FalsePass.Episodes != 0 || r.Rates.FalsePass.Upper != 1 {
		t.Errorf("%d of %d episodes: %+v", r.Episodes, r.Total, r.Rates)
	}
	p := altered(nil)
	p.Dials = slices.Clone(p.Dials)
	p.Dials[0].Levels = slices.Clone(p.Dials[0].Levels)
	slices.Reverse(p.Dials[0].Levels)
	if r := run(t, p, o, time.Minute); r.OK || !slices.ContainsFunc(r.Dials, func(row control.DialRow) bool { return row.Dial == "look_alikes" && !row.OK }) {
		t.Errorf("turned around, the dial passes: %+v", r.Dials)
	}
}

// The oracle must pass the twin too, and its passes must not be hollow; nor must a baseline's.
func TestCheck_references(t *testing.T) {
	o := control.Options{Seeds: 160, DialSeeds: -1, LevelTasks: -1}
	hollow := gym.Audit{Name: "all", Flag: func(*gym.Evidence) (bool, string) { return true, "whatever" }}
	for name, c := range map[string]struct {
		change func(p *gym.Pack)
		wrong  []string
	}{
		"sound": {func(p *gym.Pack) { p.Twin = altered(nil) }, nil},
		"unlike twin": {func(p *gym.Pack) {
			p.Twin = altered(func(_ gym.Task, b *gym.Built) { b.Check.Commit.Holds = func(*gym.Evidence) bool { return false } })
		}, []string{"oracle"}},
		"hollow passes": {func(p *gym.Pack) { p.Audits = []gym.Audit{hollow} }, []string{"oracle", "first_hit"}},
	} {
		p := altered(nil)
		c.change(p)
		r := run(t, p, o, time.Minute)
		var wrong []string
		for _, row := range r.References {
			if row.Episodes != 20 || p.Twin == nil != (row.Pairs == 0) || row.PairPasses > row.Passes {
				t.Errorf("%s: %+v", name, row)
			}
			if !row.OK {
				wrong = append(wrong, row.Agent)
			}
		}
		if !slices.Equal(wrong, c.wrong) || slices.Contains(wrong, "oracle") != (r.Failed > 0) || len(r.References) != 2 {
			t.Errorf("%s: %v are not as they must be, want %v; %d failed", name, wrong, c.wrong, r.Failed)
		}
	}
}

// What is kept with a pack comes back, and is refused where it is of another pack or version.
func TestRates(t *testing.T) {
	p := altered(nil)
	r := run(t, p, control.Options{Seeds: 32, DialSeeds: 2, LevelTasks: 4}, time.Minute)
	kept, err := json.Marshal(r.Rates)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := control.StoredRates(p); got != nil || err != nil {
		t.Errorf("of a pack that keeps none: %+v, %v", got, err)
	}
	p.Rates = string(kept)
	got, err := control.StoredRates(p)
	if err != nil || !reflect.DeepEqual(got, r.Rates) {
		t.Errorf("%v: %+v, want %+v", err, got, r.Rates)
	}
	passed, total := got.FalsePass, 0
	for _, c := range got.Controls {
		if c.Kind == "negative_control" && c.Bound == 0 {
			total += c.Episodes
		}
	}
	if passed.Wrong != 0 || passed.Episodes != total || total == 0 || got.FalseFail.Wrong != 0 || got.FalseFail.Episodes == 0 {
		t.Errorf("%+v", got)
	}
	for _, other := range []string{"{", strings.Replace(p.Rates, `"version":1`, `"version":9`, 1), strings.Replace(p.Rates, `"echo"`, `"tooluse"`, 1)} {
		p.Rates = other
		if _, err := control.StoredRates(p); !errors.Is(err, gym.ErrPack) {
			t.Errorf("%.30s…: %v", other, err)
		}
	}
	// A pass too many is counted.
	p = altered(func(_ gym.Task, b *gym.Built) { b.Check.Collateral.Holds = func(*gym.Evidence) bool { return true } })
	if r := run(t, p, control.Options{Seeds: 32, DialSeeds: -1, LevelTasks: -1}, time.Minute); r.Rates.FalsePass.Wrong == 0 {
		t.Errorf("with collateral unchecked: %+v", r.Rates.FalsePass)
	}
}

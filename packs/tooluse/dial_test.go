package tooluse

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"provegym/gym"
	"provegym/gym/control"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/world"
)

// rows spells the records of a world as agents can come to know them, references by id: rows shift as blocks grow, ids do not.
func rows(w *world.World) map[string]bool {
	out := map[string]bool{}
	ref := func(row int) uint64 {
		if row < 0 {
			return 0
		}
		return w.At(row).ID
	}
	for i := range w.Records.Len() {
		rec := *w.At(i)
		f := rec.F
		switch rec.Role {
		case world.Holder:
			f[world.Sponsor] = 0
		case world.Subject:
			f[world.At], f[world.Follows], f[world.Hold], f[world.Event], f[world.Down], f[world.NextHold] = 0, 0, 0, 0, 0, 0
		case world.Part:
			f[world.PartVersion] = 0
		case world.Message:
			f[world.NewPlace] = 0
		}
		out[fmt.Sprintf("role %d id %x of %x: %v", rec.Role, rec.ID, ref(rec.Owner()), f)] = true
	}
	return out
}

// TestDialsAreIndependent: turning a dial up keeps every record that was there, and where the dial does not alter the case, what is
// asked.
func TestDialsAreIndependent(t *testing.T) {
	for _, family := range Pack.FamilyNames() {
		base, _ := Pack.Condition(family)
		for i, dial := range Pack.Dials {
			if dial.Name == "indirection" || dial.Name == "depth" {
				continue // what is described is another record: see TestDescriptionKeepsTheCase
			}
			for seed := range uint64(*seeds) {
				var before *gym.Built
				for level := range dial.Levels {
					c := base
					c.Levels[i] = uint8(level)
					now, err := Pack.Build(gym.Task{Condition: c, Seed: seed})
					if err != nil {
						t.Fatal(err)
					}
					if before != nil {
						compare(t, fmt.Sprintf("%s seed %d", c.ID(), seed), &dial, before, now)
					}
					before = now
				}
			}
		}
	}
}

func compare(t *testing.T, where string, dial *gym.Dial, before, now *gym.Built) {
	t.Helper()
	had, has := rows(before.World.(*world.World)), rows(now.World.(*world.World))
	for r := range had {
		if !has[r] {
			t.Errorf("%s: turning %s up lost %s", where, dial.Name, r)
		}
	}
	if grows := slices.Contains([]string{"fanout", "near_duplicates", "amendments"}, dial.Name); !grows && len(has) != len(had) {
		t.Errorf("%s: turning %s changed the number of records from %d to %d", where, dial.Name, len(had), len(has))
	}
	if before.Tools&^now.Tools != 0 || dial.Name != "extra_tools" && before.Tools != now.Tools {
		t.Errorf("%s: turning %s up took tools away or gave some", where, dial.Name)
	}
	if s, u := before.Spec.(*check.Spec), now.Spec.(*check.Spec); !dial.Alters && dial.Name != "fault_rate" && dial.Name != "fault_class" &&
		(s.Act != u.Act || s.Code != u.Code || s.Reason != u.Reason || s.Queue != u.Queue) {
		t.Errorf("%s: turning %s changed the case: %+v, %+v", where, dial.Name, s, u)
	}
}

// TestDescriptionKeepsTheCase: how the subject is described changes neither which one it is nor what is asked.
func TestDescriptionKeepsTheCase(t *testing.T) {
	for _, family := range Pack.FamilyNames() {
		for _, dial := range []string{"indirection", "depth"} {
			for seed := range uint64(*seeds) {
				var first *gym.Built
				c, _ := Pack.Condition(family)
				for level := range Pack.Dials[slices.Index(Pack.DialNames(), dial)].Levels {
					c, _ = c.With(dial, level)
					b, err := Pack.Build(gym.Task{Condition: c, Seed: seed})
					if err != nil {
						t.Fatal(err)
					}
					if first == nil {
						first = b
					}
					s, u := first.Spec.(*check.Spec), b.Spec.(*check.Spec)
					v, w := first.World.(*world.World), b.World.(*world.World)
					if s.Act != u.Act || s.Code != u.Code || len(s.Targets) != len(u.Targets) || v.ID(s.Targets[0]) != w.ID(u.Targets[0]) {
						t.Errorf("%s seed %d: %+v, then %+v", c.ID(), seed, s, u)
					}
				}
			}
		}
	}
}

// TestRemovable: each record that is there as a decoy or as noise can be taken out, and the oracle makes the same calls and is paid.
func TestRemovable(t *testing.T) {
	kinds := map[world.Origin]int{}
	for _, family := range Pack.FamilyNames() {
		c, _ := Pack.Preset(family, "L2")
		c, _ = c.Set("page_size", "50") // so that no list turns a page earlier
		c, _ = c.Set("fault_rate", "0") // a wrong near-match must be somebody
		for seed := range uint64(*seeds) {
			task := gym.Task{Condition: c, Seed: seed}
			whole := calls(t, task, nil)
			b, err := Pack.Build(task)
			if err != nil {
				t.Fatal(err)
			}
			w := b.World.(*world.World)
			for row := range w.Records.Len() {
				rec := w.At(row)
				kinds[rec.Origin]++
				if rec.Origin == world.Needed || (row+int(seed))%3 != 0 {
					continue
				}
				if got := calls(t, task, []int{row}); !slices.Equal(got, whole) {
					t.Errorf("%s: without record %d (role %d, origin %d) the oracle makes other calls:\n%v\n%v", task.ID(), row, rec.Role, rec.Origin, whole, got)
				}
			}
			var all []int
			for row := range w.Records.Len() {
				if w.At(row).Origin != world.Needed {
					all = append(all, row)
				}
			}
			if got := calls(t, task, all); !slices.Equal(got, whole) {
				t.Errorf("%s: without all that is not needed the oracle makes other calls:\n%v\n%v", task.ID(), whole, got)
			}
		}
	}
	t.Logf("noise %d, decoys %d, needed %d", kinds[world.Noise], kinds[world.Decoy], kinds[world.Needed])
	if kinds[world.Noise] == 0 || kinds[world.Decoy] == 0 || kinds[world.Needed] == 0 {
		t.Error("a kind of record does not occur")
	}
}

// calls plays the oracle in a world without some records and returns its calls; it fails the test if the oracle is not paid.
func calls(t *testing.T, task gym.Task, without []int) (out []string) {
	t.Helper()
	p := *Pack
	p.Build = func(task gym.Task) (*gym.Built, error) {
		b, err := build(task)
		if err == nil {
			for _, row := range without {
				b.World.(*world.World).Records.At(row).Gone = true
			}
		}
		return b, err
	}
	task.Pack = &p
	ep, err := gym.NewEpisode(task, gym.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := control.Play(ep, &oracle{plan: ep.Evidence().Built.Plan}); err != nil {
		t.Fatal(err)
	}
	if !ep.Success() {
		t.Errorf("%s without %v: %s, %+v", task.ID(), without, ep.Outcome(), ep.Components())
	}
	log := ep.Evidence().Log
	for i := range log.Len() {
		c := log.At(i).Call
		out = append(out, string(Pack.AppendCall(nil, &c)))
	}
	return out
}

// passes plays a baseline on n tasks of a condition's families and says which pass. Levels of a dial get the same tasks.
func passes(t *testing.T, agent string, n int, condition func(family string) gym.Condition) []bool {
	t.Helper()
	out := make([]bool, n)
	for i := range out {
		ep := start(t, condition(Pack.Families[i%len(Pack.Families)].Name), uint64(i), gym.Text)
		run(t, ep, agent, 0)
		out[i] = ep.Success()
	}
	return out
}

// rises reports whether b passes more often than a on the same tasks, significantly so: the one-sided sign test of the pairs that
// differ, by its normal approximation, at 1 %.
func rises(a, b []bool) (more, less int, significant bool) {
	for i := range a {
		more += applies(b[i] && !a[i])
		less += applies(a[i] && !b[i])
	}
	return more, less, more > less && float64(more-less) > 2.326*math.Sqrt(float64(more+less))
}

// TestDialsAreHarder: no dial makes a baseline's work easier as it is turned up, on the same tasks. `provegym check-pack` does the same on
// 1,300 tasks a level, of which 500 are alike at each two.
func TestDialsAreHarder(t *testing.T) {
	check, err := control.NewCheck(Pack, control.Options{Seeds: -1, DialSeeds: -1, LevelTasks: max(180, 30**seeds)})
	if err != nil {
		t.Fatal(err)
	}
	r := check.Step(1 << 62)
	turned := map[string]bool{}
	for _, row := range r.Dials {
		turned[row.Dial] = true
		if !row.OK {
			t.Errorf("%s turned to %s: %s passes in %d tasks that it failed in before, and fails in %d that it passed in", row.Dial, row.Level,
				row.Agent, row.More, row.Fewer)
		}
	}
	if r.Failed > 0 || len(turned) != len(Pack.Dials) {
		t.Errorf("%d of %d dials were turned, %d episodes failed: %+v", len(turned), len(Pack.Dials), r.Failed, r.Failures)
	}
}

// TestBaselinesInOrder: at L2 and above random play is paid less often than the priority heuristic, that less often than expected
// value, that less often than the blind oracle, and that not more often than the oracle, on the same tasks.
func TestBaselinesInOrder(t *testing.T) {
	n := max(1008, 30**seeds)
	for _, preset := range []string{"L2", "L3", "L4"} {
		var before []bool
		var names string
		for i, agent := range []string{"nc2_random_valid", "priority_heuristic", "expected_value", "blind_oracle", "oracle"} {
			now := passes(t, agent, n, func(family string) gym.Condition { c, _ := Pack.Preset(family, preset); return c })
			count := 0
			for _, p := range now {
				count += applies(p)
			}
			names += fmt.Sprintf(" %s %.3f", agent, float64(count)/float64(n))
			if before != nil {
				more, less, significant := rises(before, now)
				if i < 4 && !significant || i == 4 && less > more {
					t.Errorf("%s: %s passes in %d tasks more and %d fewer than the one before it", preset, agent, more, less)
				}
			}
			before = now
		}
		t.Logf("%s, %d tasks:%s", preset, n, names)
	}
}

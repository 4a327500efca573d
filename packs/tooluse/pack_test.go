package tooluse

import (
	"flag"
	"os"
	"testing"

	"provegym/gym"
	"provegym/gym/control"
	"provegym/gym/packtest"
)

var seeds = flag.Int("seeds", 3, "tasks per condition")

// each calls f for every family at every preset and at both ends of every dial.
func each(t *testing.T, f func(t *testing.T, c gym.Condition)) {
	t.Helper()
	for _, family := range Pack.FamilyNames() {
		base, err := Pack.Condition(family)
		if err != nil {
			t.Fatal(err)
		}
		conditions := append(control.DialEnds(base), base)
		for _, name := range Pack.PresetNames() {
			c, err := Pack.Preset(family, name)
			if err != nil {
				t.Fatal(err)
			}
			conditions = append(conditions, c)
		}
		for _, c := range conditions {
			f(t, c)
		}
	}
}

func start(t testing.TB, c gym.Condition, seed uint64, v gym.View) *gym.Episode {
	t.Helper()
	ep, err := gym.NewEpisode(gym.Task{Condition: c, Seed: seed}, gym.Options{View: v})
	if err != nil {
		t.Fatal(err)
	}
	return ep
}

func run(t testing.TB, ep *gym.Episode, agent string, variant int) {
	t.Helper()
	a, err := control.Agent(Pack, agent)
	if err != nil {
		t.Fatal(err)
	}
	actor, err := control.New(ep, a, variant, control.Key(ep.Task(), agent))
	if err != nil {
		t.Fatal(err)
	}
	if err := control.Play(ep, actor); err != nil {
		t.Fatalf("%s: %v", control.Rerun(ep.Task(), agent, variant, ep.View()), err)
	}
}

func TestOracle(t *testing.T) {
	each(t, func(t *testing.T, c gym.Condition) {
		for seed := range uint64(*seeds) {
			for _, v := range []gym.View{gym.Text, gym.Structured} {
				for _, agent := range []string{"oracle", "pc1_oracle", "pc2_permuted"} {
					ep := start(t, c, seed, v)
					if run(t, ep, agent, 0); !ep.Success() {
						t.Errorf("%s after %d of %d calls, %+v\nrerun: %s", ep.Outcome(), ep.Calls(), ep.Limits().Calls, ep.Components(),
							control.Rerun(ep.Task(), agent, 0, v))
					}
					if a := ep.Audits(); len(a) > 0 {
						t.Errorf("%s: audit flags the %s: %v", ep.Task().ID(), agent, a)
					}
				}
			}
		}
	})
}

func TestControls(t *testing.T) {
	for _, family := range Pack.FamilyNames() {
		check, err := control.NewCheck(Pack, control.Options{Families: []string{family}, Seeds: 2 * *seeds, DialSeeds: max(1, *seeds/4), LevelTasks: -1})
		if err != nil {
			t.Fatal(err)
		}
		r := check.Step(1 << 62)
		for _, f := range r.Failures {
			t.Errorf("%s variant %d %s: %s\nrerun: %s", f.Control, f.Variant, f.View, f.Text, f.Rerun)
		}
	}
}

// TestPack runs the conformance suite on two seeds a family: there are three dozen families.
func TestPack(t *testing.T) {
	o := packtest.Options{Seeds: 2, Process: []string{os.Args[0], "-test.run=^TestPack$"}}
	for _, problem := range packtest.Examine(Pack, o) {
		t.Error(problem)
	}
}

func TestNothingLeaks(t *testing.T) {
	for _, problem := range packtest.Watch(Pack, packtest.Options{}, 2000) {
		t.Error(problem)
	}
}

func TestGolden(t *testing.T) { packtest.Golden(t, Pack) }

package terminal

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"provegym/gym"
	"provegym/gym/control"
	"provegym/gym/packtest"
)

var seeds = flag.Int("seeds", 1, "tasks per condition")

func TestMain(m *testing.M) {
	flag.Parse()
	if _, err := open(); err != nil { // before anything counts descriptors
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func start(t testing.TB, c gym.Condition, seed uint64) *gym.Episode {
	t.Helper()
	ep, err := gym.NewEpisode(gym.Task{Condition: c, Seed: seed}, gym.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ep
}

func plays(t testing.TB, ep *gym.Episode, agent string, variant int) {
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
			for seed := range uint64(*seeds) {
				for _, agent := range []string{"oracle", "pc4_other_route"} {
					ep := start(t, c, seed)
					if plays(t, ep, agent, 0); !ep.Success() {
						t.Errorf("%s after %d of %d calls, %+v %s\n%s\nrerun: %s", ep.Outcome(), ep.Calls(), ep.Limits().Calls, ep.Components(), ep.Why(),
							strayed(ep.Evidence(), ep.Evidence().Built.Spec.(*spec)), control.Rerun(ep.Task(), agent, 0, ep.View()))
						e := ep.Evidence()
						for i := range e.Log.Len() {
							c := e.Log.At(i)
							t.Logf("%s\n%.600s", ep.Pack().AppendCall(nil, &c.Call), c.Result)
						}
					}
					if a := ep.Audits(); len(a) > 0 {
						t.Errorf("%s: audit flags the %s: %v", ep.Task().ID(), agent, a)
					}
				}
			}
		}
	}
}

func TestControls(t *testing.T) {
	check, err := control.NewCheck(Pack, control.Options{Seeds: 2 * *seeds, DialSeeds: -1, LevelTasks: -1}) // dials are left to check-pack
	if err != nil {
		t.Fatal(err)
	}
	r := check.Step(1 << 62)
	for _, f := range r.Failures {
		t.Errorf("%s variant %d: %s\nrerun: %s", f.Control, f.Variant, f.Text, f.Rerun)
	}
}

// TestPack runs the conformance suite. Nothing on it prints what differs from time to time, so that even replays must agree.
func TestPack(t *testing.T) {
	o := packtest.Options{Seeds: 1, Process: []string{os.Args[0], "-test.run=^TestPack$"}}
	for _, problem := range packtest.Examine(Pack, o) {
		t.Error(problem)
	}
}

func TestNothingLeaks(t *testing.T) {
	for _, problem := range packtest.Watch(Pack, packtest.Options{}, 60**seeds) {
		t.Error(problem)
	}
}

func TestGolden(t *testing.T) { packtest.Golden(t, Pack) }

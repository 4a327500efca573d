package tooluse

import (
	"slices"
	"testing"

	"provegym/gym"
	"provegym/gym/control"
)

// TestTwins: the oracle is right on the twin too, and so is one who knows no row; each world's calls fail on the other, and the words
// are the same.
func TestTwins(t *testing.T) {
	each(t, func(t *testing.T, c gym.Condition) {
		for seed := range uint64(*seeds) {
			task := gym.Task{Condition: c, Seed: seed}
			a, err := Pack.Build(task)
			if err != nil {
				t.Fatal(err)
			}
			b, err := Twin.Build(twinOf(task))
			if err != nil {
				t.Fatal(err)
			}
			if a.Instruction != b.Instruction || a.Goal != b.Goal {
				t.Errorf("%s: the twin is told apart by its words:\n%s\n%s", task.ID(), a.Instruction, b.Instruction)
			}
			calls, err := twinCalls(task)
			if err != nil {
				t.Errorf("%s: %v", task.ID(), err)
				continue
			}
			ep, err := gym.NewEpisode(twinOf(task), gym.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if run(t, ep, "blind_oracle", 0); !ep.Success() {
				t.Errorf("%s: the blind oracle fails on the twin: %s after %d of %d calls, %+v", task.ID(), ep.Outcome(), ep.Calls(), ep.Limits().Calls,
					ep.Components())
			}
			ep = start(t, c, seed, gym.Text)
			for i := 0; i < len(calls) && ep.Outcome() == gym.Running; i++ {
				if err := ep.StepCall(&calls[i]); err != nil {
					t.Fatal(err)
				}
			}
			if ep.Success() {
				t.Errorf("%s: the twin's calls pass here", task.ID())
			}
			ep = start(t, c, seed, gym.Text)
			run(t, ep, "oracle", 0)
			if flags := ep.Audits(); len(flags) > 0 {
				t.Errorf("%s: audits flag the oracle: %v", task.ID(), flags)
			}
		}
	})
}

// TestPairs: a check plays pairs; the oracle passes all, and an agent that looks at nothing but the words passes none.
func TestPairs(t *testing.T) {
	p := *Pack
	p.Agents = append(slices.Clone(p.Agents), gym.Agent{Name: "rote", Kind: gym.Baseline, Doc: "Makes the calls that are right in the world that it has been told of.",
		New: func(e *gym.Evidence, _ int, _ gym.Key) gym.Actor {
			task := e.Task
			task.Pack = Pack
			ep, err := gym.NewEpisode(task, gym.Options{}) // whatever the world: those of the task, not of its twin
			if err != nil {
				panic(err)
			}
			return &rote{ep, &oracle{plan: ep.Evidence().Built.Plan}}
		}})
	check, err := control.NewCheck(&p, control.Options{Families: []string{"resolve-act", "branch", "ops-moving"}, Seeds: 32 * *seeds, DialSeeds: -1, LevelTasks: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range check.Step(1 << 62).References {
		t.Logf("%+v", r)
		switch {
		case r.Episodes != 6**seeds || r.Pairs != r.Episodes || r.PairPasses > r.Passes:
			t.Errorf("%s: %d episodes and %d pairs", r.Agent, r.Episodes, r.Pairs)
		case (r.Agent == "oracle" || r.Agent == "blind_oracle") && r.PairPasses != r.Pairs:
			t.Errorf("%s passes %d of %d pairs", r.Agent, r.PairPasses, r.Pairs)
		case r.Agent == "rote" && (r.Passes == 0 || r.PairPasses > 0):
			t.Errorf("by rote %d episodes pass, and %d pairs", r.Passes, r.PairPasses)
		}
	}
}

// rote plays an episode of its own and copies its calls.
type rote struct {
	ep    *gym.Episode
	guide gym.Actor
}

func (a *rote) Act(_ *gym.Episode, c *gym.Call) bool {
	if a.ep.Outcome() != gym.Running || !a.guide.Act(a.ep, c) {
		return false
	}
	if err := a.ep.StepCall(c); err != nil {
		panic(err)
	}
	return true
}

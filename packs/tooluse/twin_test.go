package tooluse

import (
	"testing"

	"provegym/gym"
)

// TestTwins: the oracle is right on the twin too, each world's calls fail on the other, and the words are the same.
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
			ep := start(t, c, seed, gym.Text)
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

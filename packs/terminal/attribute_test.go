package terminal

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"provegym/gym"
	"provegym/gym/control"
)

// mistake plants one failure in the oracle's calls; it returns them and the number of the decisive one, below 0 where the task does not
// lend itself.
type mistake struct {
	kind, name string
	plant      func(e *gym.Evidence, s *spec, plan []gym.Call) (calls []gym.Call, at int)
}

func before(plan []gym.Call, at int, more ...gym.Call) ([]gym.Call, int) {
	return slices.Insert(plan, at, more...), at
}

// answering puts another finish in place of the plan's.
func answering(f func(s *spec, plan []gym.Call) (outcome, code uint64, cite []uint64)) func(*gym.Evidence, *spec, []gym.Call) ([]gym.Call, int) {
	return func(_ *gym.Evidence, s *spec, plan []gym.Call) ([]gym.Call, int) {
		last := len(plan) - 1
		plan[last] = answerOf(f(s, plan))
		return plan, last
	}
}

// burnt spends calls after the first of the plan, until one more is one too many.
func burnt(call func(i int) gym.Call) func(*gym.Evidence, *spec, []gym.Call) ([]gym.Call, int) {
	return func(e *gym.Evidence, s *spec, plan []gym.Call) ([]gym.Call, int) {
		refs := 0 // read on the way, though nobody asks for them to be cited
		if len(plan)-1 > len(s.cite) && s.script == "" {
			refs = len(plan) - 1 - len(s.cite)
		}
		spare := limits(e.Task.Condition).Calls - len(plan) + refs
		var more []gym.Call
		for i := range spare + 1 {
			more = append(more, call(i))
		}
		calls, _ := before(plan, 0, more...)
		return calls, spare
	}
}

// stops says that a task is to be left alone.
func stops(s *spec) bool { return len(s.want) == 0 }

var mistakes = func() []mistake {
	list := []mistake{
		{EarlyStop, "no work", func(_ *gym.Evidence, s *spec, plan []gym.Call) ([]gym.Call, int) {
			if stops(s) {
				return nil, -1
			}
			plan = slices.Delete(plan, len(plan)-2, len(plan)-1)
			return plan, len(plan) - 1
		}},
		{UnderAction, "one left", func(e *gym.Evidence, s *spec, _ []gym.Call) ([]gym.Call, int) {
			i := slices.IndexFunc(s.wrong, func(w wrong) bool { return w.name == "all but one" })
			if i < 0 {
				return nil, -1
			}
			list := mistaken(e, i)
			return list, len(list) - 1
		}},
		{WrongContent, "a line too many", func(_ *gym.Evidence, s *spec, plan []gym.Call) ([]gym.Call, int) {
			i := slices.IndexFunc(s.want, func(w want) bool { return w.ino != nil })
			if i < 0 {
				return nil, -1
			}
			plan, at := before(plan, len(plan)-1, runs("echo more >>"+quote(s.want[i].name)))
			return plan, at + 1
		}},
		{UngroundedArg, "a ref made up", answering(func(s *spec, _ []gym.Call) (uint64, uint64, []uint64) {
			return s.outcome, s.code, append([]uint64{s.cite[0] ^ 1}, s.cite[1:]...)
		})},
		{SkippedPrecondition, "a ref unseen", func(_ *gym.Evidence, s *spec, plan []gym.Call) ([]gym.Call, int) {
			if stops(s) {
				return plan[len(plan)-1:], 0
			}
			return plan[len(plan)-2:], 1
		}},
		{WrongArg, "another code", answering(func(s *spec, _ []gym.Call) (uint64, uint64, []uint64) {
			return s.outcome, (s.code + 1) % uint64(len(codes)), s.cite
		})},
		{WrongArg, "no ref", answering(func(s *spec, _ []gym.Call) (uint64, uint64, []uint64) { return s.outcome, s.code, nil })},
		{MissedRefusal, "said to be done", func(_ *gym.Evidence, s *spec, plan []gym.Call) ([]gym.Call, int) {
			if !stops(s) {
				return nil, -1
			}
			plan[len(plan)-1] = answerOf(done, codeDeployed, s.cite)
			return plan, len(plan) - 1
		}},
		{MissedRefusal, "done", func(e *gym.Evidence, s *spec, plan []gym.Call) ([]gym.Call, int) {
			if !stops(s) {
				return nil, -1
			}
			return before(plan, len(plan)-1, runs("echo >>"+quote(bystander(e, e.Task.Key()))))
		}},
		{WrongRefusal, "blocked", func(_ *gym.Evidence, s *spec, plan []gym.Call) ([]gym.Call, int) {
			if stops(s) {
				return nil, -1
			}
			plan[len(plan)-1] = answerOf(blocked, s.code, s.cite)
			return plan, len(plan) - 1
		}},
		{BudgetOut, "looks about", burnt(func(i int) gym.Call { return callOf(toolList, text(typePath, fmt.Sprint("/tmp/", i))) })},
		{Loop, "looks again", burnt(func(int) gym.Call { return callOf(toolList, text(typePath, "/tmp")) })},
	}
	for i := range extras {
		list = append(list, mistake{CollateralWrite, fmt.Sprint("extra ", i), func(e *gym.Evidence, s *spec, plan []gym.Call) ([]gym.Call, int) {
			if stops(s) {
				return nil, -1
			}
			return before(plan, len(plan)-1-i%2, extras[i](e, e.Task.Key()))
		}})
	}
	for i, harm := range harms {
		list = append(list, mistake{CollateralWrite, fmt.Sprint("harm ", i), func(e *gym.Evidence, s *spec, plan []gym.Call) ([]gym.Call, int) {
			if stops(s) {
				return nil, -1
			}
			of := strings.NewReplacer("F", quote(bystander(e, e.Task.Key())))
			return before(plan, len(plan)-2+i%2, runs(of.Replace(harm[0])), runs(of.Replace(harm[1])))
		}})
	}
	return list
}()

// A mistake planted in the oracle's work is told as what it is, at the call where it stands.
func TestAttribute_plantedMistakes(t *testing.T) {
	told := map[string]int{}
	for _, family := range Pack.FamilyNames() {
		c, err := Pack.Preset(family, "L1")
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(2 * *seeds) {
			for _, m := range mistakes {
				ep := start(t, c, seed)
				e := ep.Evidence()
				list, at := m.plant(e, e.Built.Spec.(*spec), planned(e))
				if at < 0 {
					continue
				}
				if err := control.Play(ep, calls(list...)); err != nil {
					t.Fatal(err)
				}
				if ep.Outcome() == gym.Running { // it fell silent
					t.Fatalf("%s, %s: still running", ep.Task().ID(), m.name)
				}
				x, err := ep.Explain()
				if err != nil || ep.Success() || x.Decisive == nil {
					t.Fatalf("%s, %s: success %t, %+v, %v", ep.Task().ID(), m.name, ep.Success(), x, err)
				}
				if got := x.Decisive; got.Call != at || got.Kind != m.kind || got.Why == "" {
					t.Errorf("%s, %s at call %d: told as %+v\nrerun: go test ./packs/terminal -run TestAttribute_plantedMistakes -seeds %d", ep.Task().ID(), m.name, at, *got, *seeds)
				}
				told[m.kind]++
			}
		}
	}
	t.Logf("%v", told)
	if len(told) != 11 {
		t.Errorf("%d kinds were planted: %v", len(told), told)
	}
}

// Whatever fails has a decisive call, and what succeeds has none.
func TestAttribute_everyControl(t *testing.T) {
	for _, family := range Pack.FamilyNames() {
		c, err := Pack.Preset(family, "L1")
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range control.Agents(Pack) {
			if a.Name == "nc19_hostile" { // takes its time, and TestHostile has it
				continue
			}
			ep := start(t, c, uint64(*seeds))
			plays(t, ep, a.Name, 0)
			if o := ep.Outcome(); o != gym.Scored && o != gym.Truncated {
				continue // silent, or void
			}
			x, err := ep.Explain()
			if err != nil {
				t.Fatal(err)
			}
			if ep.Success() != (x.Decisive == nil) || x.Decisive != nil && (x.Decisive.Call < 0 || x.Decisive.Call >= ep.Calls() || x.Decisive.Why == "") {
				t.Errorf("%s, %s: success %t, %+v after %d calls", ep.Task().ID(), a.Name, ep.Success(), x.Decisive, ep.Calls())
			}
		}
	}
}

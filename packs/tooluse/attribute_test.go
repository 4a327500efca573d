package tooluse

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"provegym/gym"
	"provegym/gym/control"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/world"
)

// mistake plants one failure of a kind in the oracle's work. plant returns the steps, nil where the task does not lend itself; it
// marks the one that is the mistake.
type mistake struct {
	kind     string
	families []string
	dials    map[string]string
	plant    func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep
}

// replaced puts a step in place of the plan's first of a name.
func replaced(e *gym.Evidence, name string, p gym.PlanStep) []gym.PlanStep {
	out := slices.Clone(e.Built.Plan)
	at := index(out, name)
	if at < 0 {
		return nil
	}
	out[at] = p
	return out
}

func changeOf(s check.Spec, act check.Act, row int) gym.PlanStep {
	make, _ := change(&s, act, row, nil)
	return one(make)
}

func finishSaying(e *gym.Evidence, f func(s *check.Spec)) gym.PlanStep {
	s := *specOf(e)
	f(&s)
	return one(finishCall(&s))
}

// burn spends calls until the rest of the plan does not fit any more; the call that is one too many is the mistake.
func burn(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep, calls func(i int) gym.Call) []gym.PlanStep {
	plan := e.Built.Plan
	spare := e.Pack.Limits(e.Task.Condition).Calls - len(plan)
	out := slices.Clone(plan[:2])
	for i := range spare + 1 {
		p := one(func(*gym.Evidence) gym.Call { return calls(i) })
		if i == spare {
			p = mark(p)
		}
		out = append(out, p)
	}
	return append(out, plan[2:]...)
}

var mistakes = []mistake{
	{WrongTool, []string{"resolve-act", "workspace-resolve-act"}, nil, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		s := *specOf(e)
		act := check.Drop
		if s.Act == check.Drop {
			act = check.Swap
		}
		return replaced(e, "write", mark(changeOf(s, act, s.Targets[0])))
	}},
	{WrongArg, []string{"resolve-act", "amended"}, nil, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		s := *specOf(e)
		if s.Act != check.Drop {
			return nil
		}
		for s.Reason = (s.Reason + 1) % world.NumReasons; s.Reason == s.Said.Reason || s.Reason == specOf(e).Reason; {
			s.Reason = (s.Reason + 1) % world.NumReasons
		}
		return replaced(e, "write", mark(changeOf(s, s.Act, s.Targets[0])))
	}},
	{WrongEntity, []string{"resolve-act", "workspace-join"}, nil, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		s := *specOf(e)
		s.Version = -1
		out := slices.Clone(e.Built.Plan)
		at := index(out, "write")
		wrong := append(reach(e, s.Near.Own), one(get(world.GetSubject, s.Near.Own)), mark(changeOf(s, s.Act, s.Near.Own)))
		return slices.Insert(out, at, wrong...)
	}},
	{UngroundedArg, []string{"resolve-act"}, nil, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		s := specOf(e)
		return replaced(e, "finish", mark(one(func(*gym.Evidence) gym.Call {
			c := call(toolFinish, world.Value(world.TOutcome, s.Outcome), world.Value(world.TCode, s.Code))
			c.Push(check.ArgEvidence, gym.Value{Type: world.TRev, Bits: e.Task.Seed & (1<<40 - 1)})
			return c
		})))
	}},
	{StaleRead, []string{"resolve-act", "ops-precondition"}, nil, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		s := specOf(e)
		old := first(e).Rev(s.Targets[0])
		return replaced(e, "finish", mark(one(func(*gym.Evidence) gym.Call {
			c := call(toolFinish, world.Value(world.TOutcome, s.Outcome), world.Value(world.TCode, s.Code))
			c.Push(check.ArgEvidence, old)
			return c
		})))
	}},
	{SkippedPrecondition, []string{"resolve-act", "branch", "ops-for-each"}, nil, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		out := slices.Clone(e.Built.Plan)
		at := index(out, "get_notice")
		out = slices.Delete(out, at, at+1)
		w := index(out, "write")
		out[w] = mark(out[w])
		return out
	}},
	{SkippedVerification, []string{"resolve-act", "branch", "workspace-for-each"}, nil, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		out := slices.DeleteFunc(slices.Clone(e.Built.Plan), func(p gym.PlanStep) bool { return p.Kind == gym.ConfirmStep })
		out = byMagic(out)
		out[len(out)-1] = mark(out[len(out)-1])
		return out
	}},
	{WrongOrder, []string{"resolve-act", "for-each"}, map[string]string{"constraints": "3"}, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		out := slices.Clone(e.Built.Plan)
		from, to := index(out, "announce"), index(out, "write")
		p := mark(out[from])
		out = slices.Delete(out, from, from+1)
		return slices.Insert(out, to, p)
	}},
	{ConstraintForgotten, []string{"amended", "ops-amended"}, nil, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		s := *specOf(e)
		s.Reason, s.Place = s.Said.Reason, s.Said.Place
		return replaced(e, "write", mark(changeOf(s, s.Act, s.Targets[0])))
	}},
	{CollateralWrite, []string{"resolve-act", "allocate", "refusal"}, nil, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		out := toggled(e)
		out[len(out)-3] = mark(out[len(out)-3])
		return out
	}},
	{OverAction, []string{"resolve-act", "for-each"}, nil, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		s := *specOf(e)
		s.Version = -1
		return insert(e, append(reach(e, s.Near.Own), one(get(world.GetSubject, s.Near.Own)), mark(changeOf(s, s.Act, s.Near.Own)))...)
	}},
	{UnderAction, []string{"for-each", "ops-for-each"}, nil, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		out := slices.Clone(e.Built.Plan)
		for i := len(out) - 1; i >= 0; i-- {
			if out[i].Name == "write" {
				out = slices.Delete(out, i, i+1)
				break
			}
		}
		for i := range out {
			if out[i].Kind == gym.ConfirmStep {
				out[i].Done = nil
			}
		}
		out[len(out)-1] = mark(out[len(out)-1])
		return out
	}},
	{EarlyStop, []string{"resolve-act", "join", "workspace-precondition"}, nil, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		out := slices.Clone(e.Built.Plan[:index(e.Built.Plan, "write", "set_setting")])
		return append(out, mark(e.Built.Plan[len(e.Built.Plan)-1]))
	}},
	{BudgetOut, []string{"resolve-act", "allocate"}, nil, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		return burn(e, mark, func(i int) gym.Call { return call(toolNotice, count(1+i%maxGap)) })
	}},
	{Loop, []string{"resolve-act", "for-each"}, nil, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		return burn(e, mark, func(int) gym.Call { return call(toolNow) })
	}},
	{FaultMishandled, []string{"ops-resolve-act", "compensate", "allocate"}, map[string]string{"fault_rate": "0.4", "constraints": "3"},
		func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
			out := slices.Clone(e.Built.Plan)
			for i, f := range planFaults(e) {
				if f == world.TimeoutAfter && slices.Contains([]string{"get_permit", "reserve", "announce"}, out[i].Name) {
					make := out[i].Make
					out[i].Done = nil
					again := one(func(e *gym.Evidence) gym.Call {
						blind := *e
						blind.Log = nil
						return make(&blind)
					})
					out[i].Make = again.Make
					return slices.Insert(out, i+1, mark(again))
				}
			}
			return nil
		}},
	{MisreadResult, []string{"branch", "workspace-branch"}, nil, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		s := *specOf(e)
		act := check.Drop
		if s.Act == check.Drop {
			act = check.Swap
		}
		return replaced(e, "write", mark(changeOf(s, act, s.Targets[0])))
	}},
	{FalseClaim, []string{"resolve-act", "join"}, map[string]string{"fault_rate": "0.4"}, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		at := index(e.Built.Plan, "write")
		if at < 0 || planFaults(e)[at] != world.SilentNoOp || specOf(e).Outcome != world.Done {
			return nil
		}
		out := slices.DeleteFunc(slices.Clone(e.Built.Plan), func(p gym.PlanStep) bool { return p.Kind == gym.ConfirmStep })
		out[at].Done = nil
		out[len(out)-1] = mark(out[len(out)-1])
		return out
	}},
	{WrongRefusal, []string{"resolve-act", "branch", "for-each"}, nil, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		out := slices.Clone(e.Built.Plan[:index(e.Built.Plan, "write")])
		return append(out, mark(finishSaying(e, func(s *check.Spec) { s.Outcome = world.Refused })))
	}},
	{MissedRefusal, []string{"refusal", "ops-moving"}, nil, func(e *gym.Evidence, mark func(gym.PlanStep) gym.PlanStep) []gym.PlanStep {
		s := *specOf(e)
		if s.Act != check.Refuse {
			return nil
		}
		s.Part = first(e).Of(world.Part, s.Targets[0])[0]
		out := insert(e, one(get(world.GetSubject, s.Targets[0])), mark(changeOf(s, check.Drop, s.Targets[0])))
		return out
	}},
}

// planted plays the mistake and returns the number of its call, -1 if the task does not lend itself.
func (m *mistake) planted(t *testing.T, ep *gym.Episode) int {
	at := -1
	mark := func(p gym.PlanStep) gym.PlanStep {
		make := p.Make
		p.Make = func(e *gym.Evidence) gym.Call {
			if at < 0 && e.Log != nil {
				at = e.Log.Len()
			}
			return make(e)
		}
		p.Done = nil
		return p
	}
	steps := m.plant(ep.Evidence(), mark)
	if steps == nil {
		return -1
	}
	if err := control.Play(ep, &tour{steps: steps}); err != nil {
		t.Fatal(err)
	}
	return at
}

// confusion counts what the planted kinds were taken for.
func confusion(t *testing.T, n int) map[string]map[string]int {
	table := map[string]map[string]int{}
	for i := range mistakes {
		m := &mistakes[i]
		table[m.kind] = map[string]int{}
		for k, seed := 0, uint64(0); k < n; seed++ {
			if seed > uint64(60*n) {
				t.Fatalf("%s: only %d of %d tasks lend themselves to it", m.kind, k, n)
			}
			c, err := Pack.Preset(m.families[int(seed)%len(m.families)], "L1")
			for dial, value := range m.dials {
				if err == nil {
					c, err = c.Set(dial, value)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			ep := start(t, c, seed, gym.Text)
			at := m.planted(t, ep)
			if at < 0 || ep.Success() {
				continue
			}
			k++
			a, err := Attribute(ep.Task(), ep.Evidence().Log)
			if err != nil {
				t.Fatal(err)
			}
			if a.Call != at {
				t.Errorf("%s in %s: the mistake is call %d, the decisive one is said to be %d (%s: %s)", m.kind, ep.Task().ID(), at, a.Call, a.Kind, a.Why)
			}
			table[m.kind][a.Kind]++
		}
	}
	return table
}

func TestAttribution(t *testing.T) {
	n := 10 * *seeds
	for kind, row := range confusion(t, n) {
		var words []string
		for as, k := range row {
			words = append(words, fmt.Sprintf("%s %d", as, k))
		}
		sort.Strings(words)
		t.Logf("%s: %s", kind, strings.Join(words, ", "))
		if 100*row[kind] < 95*n {
			t.Errorf("%s is told in %d of %d", kind, row[kind], n)
		}
	}
}

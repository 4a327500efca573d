package control

import "provegym/gym"

// follower makes the calls of a plan in some order. before, if not nil, may put a call of its own in front of the next one.
type follower struct {
	plan   []gym.PlanStep
	order  []int
	next   int
	before func(ep *gym.Episode, call *gym.Call) bool
}

func follow(plan []gym.PlanStep) *follower {
	f := &follower{plan: plan}
	for i := range plan {
		f.order = append(f.order, i)
	}
	return f
}

func (f *follower) Act(ep *gym.Episode, call *gym.Call) bool {
	if f.before != nil && f.before(ep, call) {
		return true
	}
	if f.next == len(f.order) {
		return false
	}
	*call = f.plan[f.order[f.next]].Make(ep.Evidence())
	f.next++
	return true
}

// spare returns the calls that the budget leaves beside the rest of the plan.
func (f *follower) spare(ep *gym.Episode) int {
	return ep.Limits().Calls - ep.Calls() - (len(f.order) - f.next)
}

// atFinish reports whether only the finish is left.
func (f *follower) atFinish() bool {
	return f.next < len(f.order) && f.plan[f.order[f.next]].Kind == gym.FinishStep
}

// permute returns a random order of the plan that keeps every After edge.
func permute(plan []gym.PlanStep, s *gym.Stream) []int {
	done := make([]bool, len(plan))
	var order []int
	for len(order) < len(plan) {
		var ready []int
		for i := range plan {
			free := !done[i]
			for _, j := range plan[i].After {
				free = free && done[j]
			}
			if free {
				ready = append(ready, i)
			}
		}
		if len(ready) == 0 {
			panic("control: the plan's After edges go in a circle")
		}
		i := gym.Pick(s, ready)
		done[i] = true
		order = append(order, i)
	}
	return order
}

var positives = []gym.Agent{
	{
		Name: "pc1_oracle", Kind: gym.PositiveControl,
		Doc: "Follows the plan.",
		New: func(e *gym.Evidence, _ int, _ gym.Key) gym.Actor { return follow(e.Built.Plan) },
	},
	{
		Name: "pc2_permuted", Kind: gym.PositiveControl,
		Doc: "Follows the plan in another order that its After edges allow.",
		New: func(e *gym.Evidence, _ int, key gym.Key) gym.Actor {
			s := key.Stream()
			return &follower{plan: e.Built.Plan, order: permute(e.Built.Plan, &s)}
		},
	},
	{
		Name: "pc3_extra_reads", Kind: gym.PositiveControl,
		Doc: "Follows the plan and makes up to two harmless reads on the way, as the budget allows.",
		New: func(e *gym.Evidence, _ int, key gym.Key) gym.Actor {
			f, s, seen := follow(e.Built.Plan), key.Stream(), &visible{}
			// Two: more could push a value that is still needed off the structured view's table, which is no fault of the pack.
			left := 2
			f.before = func(ep *gym.Episode, call *gym.Call) bool {
				if left == 0 || f.next == 0 || f.spare(ep) < 1 || s.IntN(2) == 0 {
					return false
				}
				seen.update(ep)
				tools := seen.legalTools(ep, func(t *gym.Tool) bool { return !t.Writes && !t.Finish })
				if len(tools) == 0 {
					return false
				}
				left--
				*call = seen.fill(ep, gym.Pick(&s, tools), &s)
				return true
			}
			return f
		},
	},
}

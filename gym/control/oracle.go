package control

import "provegym/gym"

// follower makes the calls of a plan in some order. before, if not nil, may put a call of its own in front of the next one.
type follower struct {
	plan   []gym.PlanStep
	order  []int
	next   int
	tries  int   // calls made for order[next-1]
	times  []int // calls to make for each step of the plan; nil for as many as it takes
	before func(ep *gym.Episode, call *gym.Call) bool
}

// maxTries is how often a follower makes one step.
const maxTries = 8

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
	e := ep.Evidence()
	if f.pending(e) {
		f.tries++
		*call = f.plan[f.order[f.next-1]].Make(e)
		return true
	}
	if f.next == len(f.order) {
		return false
	}
	*call = f.plan[f.order[f.next]].Make(e)
	f.next++
	f.tries = 1
	return true
}

// pending reports that the step made last needs another call.
func (f *follower) pending(e *gym.Evidence) bool {
	if f.next == 0 || f.tries >= maxTries {
		return false
	}
	if f.times != nil {
		return f.tries < f.times[f.order[f.next-1]]
	}
	last := &f.plan[f.order[f.next-1]]
	return last.Done != nil && !last.Done(e)
}

// spare returns the calls that the budget leaves beside the rest of the plan.
func (f *follower) spare(ep *gym.Episode) int {
	return ep.Limits().Calls - ep.Calls() - (len(f.order) - f.next)
}

// atFinish reports whether only the finish is left.
func (f *follower) atFinish(ep *gym.Episode) bool {
	return f.next < len(f.order) && f.plan[f.order[f.next]].Kind == gym.FinishStep && !f.pending(ep.Evidence())
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
			calls, _ := rehearse(e.Task)
			left := min(2, e.Pack.Limits(e.Task.Condition).Calls-len(calls))
			f.before = func(ep *gym.Episode, call *gym.Call) bool {
				if left < 1 || f.next == 0 || s.IntN(2) == 0 {
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

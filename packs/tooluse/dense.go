package tooluse

import (
	"provegym/gym"
	"provegym/packs/tooluse/check"
)

// potential is the share of the plan's needed steps that are settled: done, or passed by what comes after them. Harm that cannot be
// undone makes it 0 for good. It is for shaping alone; no reward and no check reads it.
func potential(plan []gym.PlanStep, s *check.Spec, e *gym.Evidence) float64 {
	if s.Stray(e) >= 0 {
		return 0
	}
	for i := range s.Bans {
		if s.Bans[i].Broken(e) >= 0 {
			return 0
		}
	}
	a := &oracle{plan: plan}
	a.next(e)
	needed, settled := 0, 0
	for i := range plan {
		if plan[i].Needed {
			needed++
			settled += applies(a.settled[i] || plan[i].Done != nil && plan[i].Done(e))
		}
	}
	return float64(settled) / float64(needed)
}

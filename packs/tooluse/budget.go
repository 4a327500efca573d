package tooluse

import (
	"fmt"
	"math"
	"slices"
	"time"

	"provegym/gym"
	"provegym/packs/tooluse/world"
)

// limits returns the budgets of a condition: calls are slack times the longest plan that any seed of it can have. They are
// computed from the dials, so that a budget says nothing of the seed.
func limits(c gym.Condition) gym.Limits {
	s := settingOf(&c)
	k, err := kindOf(c.Family)
	if err != nil {
		panic(err) // the condition names a family of the pack
	}
	return gym.Limits{
		Calls: int(math.Ceil(s.slack * float64(longest(k, &s)))),
		Wall:  2 * time.Second,
		Bytes: 1 << 20,
	}
}

// longest bounds the calls of a family's plan, those that the weather makes void included.
func longest(k kind, s *setting) int {
	n := steps(k, s)
	return n + recovery*faultCap(n, s) + eventSteps(k, s)
}

// recovery is how many calls one fault costs: the one that came to nothing, and a look or a wait before it is made again.
const recovery = 2

// faultCap bounds the faults that the plan meets. A world that has more of them on its way is drawn again, see weather.
func faultCap(steps int, s *setting) int {
	if s.faults == 0 {
		return 0
	}
	return 1 + int(math.Ceil(1.5*s.faults*float64(steps)))
}

// eventSteps bounds what events cost: a conflict and another look for each subject to be changed.
func eventSteps(k kind, s *setting) int {
	switch {
	case k.moving:
		return 2
	case s.events == 0 || k.book:
		return 0
	case k.set:
		return 2 * s.fanout
	}
	return 2
}

// ownerSteps bounds the steps that find the owner.
func ownerSteps(k kind, s *setting) int {
	n := 0
	if !k.single() {
		n = s.hops
	}
	if s.indirection >= byRelation {
		n++
	}
	if s.indirection == byID {
		return n
	}
	return n + s.pages(1+s.decoyHolders)
}

// subjectSteps bounds the steps that find the one target and read it.
func subjectSteps(k kind, s *setting) int {
	others := s.fanout
	if k.book {
		others = 2
	}
	n := 1
	if k.single() {
		n += s.hops
	}
	switch {
	case s.indirection == byID && k.single():
		return n
	case s.indirection == byConversion:
		return n + ownerSteps(k, s) + 1 + s.pages(1+s.otherItem())
	}
	return n + ownerSteps(k, s) + s.pages(1+others+s.decoySubjects+s.hops)
}

// besides bounds the steps that rules, gaps and branches ask for.
func besides(k kind, s *setting) int {
	n := s.gap + 2*s.branches
	if s.constraints >= ruleNotice {
		n++
	}
	if s.constraints >= rulePermit || k.domain.NeedsPermit && !k.book {
		n++
	}
	if s.constraints >= ruleAnnounce {
		n++
	}
	if s.constraints >= ruleWait {
		n++
	}
	if k.join {
		n += 2
	}
	if k.lock { // a change that is refused, all settings to find the one that blocks, off and on
		n += 1 + world.NumSwitches + 2
	}
	if k.policy {
		n++
	}
	return n
}

// steps bounds the steps of a family's plan.
func steps(k kind, s *setting) int {
	n := besides(k, s) + 1 // finish
	switch {
	case k.set:
		listed := s.fanout + s.decoySubjects + apart
		if s.indirection == byConversion {
			n++
			listed = s.fanout + s.otherItem()
		}
		return n + 1 + ownerSteps(k, s) + s.pages(listed) + 2*s.fanout + min(s.fanout, s.pages(listed)) // 1 for the places
	case k.book:
		options := s.fanout + 2 + (s.decoySubjects+s.decoyHolders+7)/8
		return n + subjectSteps(k, s) + s.pages(options) + options + s.fanout
	case k.chain:
		return n + subjectSteps(k, s) + 1 + 1 + 3 + 3
	case k.policy, k.join:
		return n + subjectSteps(k, s) + 2
	}
	return n + subjectSteps(k, s) + 3
}

// weather settles what goes wrong: it draws again until the plan meets no more faults than the budget has calls for.
func (d *draft) weather(plan []gym.PlanStep) error {
	x := &d.w.Weather
	x.FaultRate, x.Class = d.set.faults, int32(d.set.class)
	if x.FaultRate == 0 {
		return nil
	}
	most := faultCap(steps(d.kind, &d.set), &d.set)
	e := &gym.Evidence{Pack: d.task.Pack, Task: d.task, First: d.w, Last: d.w}
	for x.Salt = 0; x.Salt < 64; x.Salt++ {
		if n := d.faults(plan, e); n <= most {
			d.looks(plan, e)
			return nil
		}
	}
	return fmt.Errorf("%w: tooluse: no weather lets the plan of %s through with %d faults", gym.ErrPack, d.task.ID(), most)
}

// looks finds the readings that a look after a lost answer makes up for: leaving them out need not fail.
func (d *draft) looks(plan []gym.PlanStep, e *gym.Evidence) {
	for i := range plan {
		if f, _ := d.faultOn(&plan[i], e); f != world.TimeoutBefore && f != world.TimeoutAfter {
			continue
		}
		var same []string
		switch plan[i].Name {
		case "write", "move", "move_back", "hand_over":
			same = []string{"get_subject", "get_subject_again"}
		case "get_permit", "announce":
			same = []string{"get_owner", "get_related_holder"}
		case "reserve":
			same = []string{"get_option"}
		}
		for k := range plan {
			if slices.Contains(same, plan[k].Name) {
				plan[k].Needed = false
			}
		}
	}
}

// faults counts the faults that a plan would meet.
func (d *draft) faults(plan []gym.PlanStep, e *gym.Evidence) (n int) {
	for i := range plan {
		if kind, ok := d.faultOn(&plan[i], e); ok && kind != world.NoFault {
			n++
		}
	}
	return n
}

package tooluse

import (
	"math"
	"time"

	"provegym/gym"
)

// limits returns the budgets of a condition: calls are slack times the longest plan that any seed of it can have. They are
// computed from the dials, so that a budget says nothing of the seed.
func limits(c gym.Condition) gym.Limits {
	s := settingOf(&c)
	return gym.Limits{
		Calls: int(math.Ceil(c.Float("slack") * float64(longest(c.Family, &s)))),
		Wall:  2 * time.Second,
		Bytes: 1 << 20,
	}
}

// longest bounds the length of a family's plan.
func longest(family string, s *setting) int {
	switch family {
	case "resolve-act":
		return resolveActSteps(s)
	case "branch", "refusal":
		return complaintSteps(s)
	case "for-each":
		return forEachSteps(s)
	}
	panic("tooluse: no family " + family)
}

// customerSteps bounds the steps that find the owner.
func customerSteps(s *setting) int {
	if s.indirection == byID {
		return 0
	}
	n := s.pages(1 + s.decoyCustomers)
	if s.indirection >= byRelation {
		n++
	}
	return n
}

// resolveSteps bounds the steps that find the one target order.
func resolveSteps(s *setting) int {
	switch s.indirection {
	case byID:
		return 0
	case byConversion:
		return customerSteps(s) + 1 + s.pages(1+s.otherItem())
	}
	return customerSteps(s) + s.pages(1+s.fanout+s.decoyOrders)
}

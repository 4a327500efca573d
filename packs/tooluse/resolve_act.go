package tooluse

import (
	"provegym/gym"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/desk"
)

// buildResolveAct makes T1: find the one order that the instruction describes, read it, change it at the version read, read
// it back, finish.
func buildResolveAct(d *draft) *gym.Built {
	d.single()
	s := d.spec
	s.Act = gym.Pick(&d.core, []check.Act{check.Cancel, check.Readdress, check.Exchange})
	s.Reason = uint8(d.core.IntN(desk.NumReasons))
	s.Code = uint8(d.core.IntN(desk.NumCodes))

	p := planner{d: d}
	customer, order := p.resolveOrder()
	get := p.add("get_order", gym.ReadStep, true, order, getOrderCall(d.w, s.Orders[0]))
	before := []int{get}
	if s.Act == check.Readdress {
		after := customer
		if len(after) == 0 {
			after = before // the order shows whose it is
		}
		before = append(before, p.add("get_owner", gym.ReadStep, true, after, getCustomerCall(p.d.w, owner)))
	}
	return d.built("resolve-act/"+actNames[s.Act], p.act(before))
}

// resolveActSteps bounds the length of the plan.
func resolveActSteps(s *setting) int { return resolveSteps(s) + 5 }

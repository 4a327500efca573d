package tooluse

import (
	"provegym/gym"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/desk"
)

// buildBranch makes T3: a complaint about an order. The policy on its topic says, for the order's status, which of three
// writes is right and which code to close with; the two that stand for other statuses are as possible and wrong.
func buildBranch(d *draft) *gym.Built {
	d.complaint(func(remedy uint8) bool { return remedy != desk.RemedyRefuse })
	p := planner{d: d}
	decide := p.readCase()
	return d.built("branch/"+actNames[d.spec.Act], p.act(decide))
}

// complaintSteps bounds the length of the plan of a complaint. A refusal needs fewer steps, but its budget must not say so: what
// the policy prescribes is for the agent to read.
func complaintSteps(s *setting) int { return resolveSteps(s) + 5 }

// complaint fills the world of a task that the policy decides; is says which remedies the family is about.
func (d *draft) complaint(is func(remedy uint8) bool) {
	d.single()
	s := d.spec
	s.Reason = uint8(d.core.IntN(desk.NumReasons))
	s.Queue = uint8(d.core.IntN(desk.NumQueues))
	d.cast.topic = uint8(d.core.IntN(desk.NumTopics))
	s.Policy = int(d.cast.topic)
	d.policed(is)
	policy := d.w.Policies.At(s.Policy)
	status := d.w.Orders.At(int(s.Orders[0])).Status
	s.Code = policy.Code[status]
	s.Act = [...]check.Act{desk.RemedyCancel: check.Cancel, desk.RemedyExchange: check.Exchange,
		desk.RemedyEscalate: check.Escalate, desk.RemedyRefuse: check.Refuse}[policy.Remedy[status]]
}

// policed turns the policy's table, not the world's orders, until the target's status has a remedy of the family.
func (d *draft) policed(is func(remedy uint8) bool) {
	policy := d.w.Policies.At(d.spec.Policy)
	status := d.cast.model.Status
	with := d.core.IntN(desk.NumActive - 1)
	if is(policy.Remedy[status]) {
		return
	}
	// Swap with another status: the first, from a drawn one on, whose remedy is of the family.
	for k := range desk.NumActive {
		if other := (int(status) + 1 + with + k) % desk.NumActive; is(policy.Remedy[other]) {
			policy.Remedy[status], policy.Remedy[other] = policy.Remedy[other], policy.Remedy[status]
			return
		}
	}
}

// readCase plans to find and read the order and, in either order, the policy.
func (p *planner) readCase() []int {
	_, order := p.resolveOrder()
	// A list shows the status too, and a ticket needs no rev: then a list will do.
	needed := p.d.spec.Act != check.Escalate || p.d.set.indirection == byID
	get := p.add("get_order", gym.ReadStep, needed, order, getOrderCall(p.d.w, p.d.spec.Orders[0]))
	topic := desk.Word(desk.TTopic, p.d.cast.topic)
	policy := p.add("get_policy", gym.ReadStep, true, nil, func(*gym.Evidence) gym.Call { return call(toolGetPolicy, topic) })
	return []int{get, policy}
}

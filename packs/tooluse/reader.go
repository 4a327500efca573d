package tooluse

import (
	"encoding/json"

	"provegym/gym"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/desk"
)

// reader does what the instruction says by what results show and nothing else, in either view: the ceiling without privilege.
// It shows that every case can be solved within its budget by an agent that does not know the rows.
//
// Its work is written as one procedure. Each Act runs it again from the start over the results so far, until it asks for one
// more call.
type reader struct {
	ep      *gym.Episode
	results []shown // parsed results of the log
	next    int     // of the results, in this run of the procedure
	call    gym.Call
	pins    map[string]gym.Value
	goal    [gym.GoalLen]float32
}

// shown is the union of the results that matter.
type shown struct {
	HasMore   bool `json:"has_more"`
	Customers []struct{ ID, Tier, City string }
	Customer  struct {
		Sponsor   string
		Addresses []struct{ ID, Street string }
	}
	Orders []orderShown
	Order  orderShown
	Policy map[string]string
	Day    string
}

type orderShown struct {
	ID, Status, Item, Site, Customer, Rev string
	Lines                                 []struct{ ID, Item, Variant string }
}

func (r *reader) Act(ep *gym.Episode, c *gym.Call) bool {
	if r.ep == nil {
		r.ep, r.pins = ep, map[string]gym.Value{}
		goal, pins := ep.Goal()
		r.goal = goal
		for _, p := range pins {
			r.pins[p.Role] = p.Value
		}
	}
	for log := ep.Evidence().Log; len(r.results) < log.Len(); {
		var result struct{ OK shown }
		if err := json.Unmarshal(log.At(len(r.results)).Result, &result); err != nil {
			panic(err) // results are JSON, or the core is broken
		}
		r.results = append(r.results, result.OK)
	}
	r.next = 0
	asked := r.work()
	*c = r.call
	return asked
}

// ask returns the result of the next call. false means that it has not been made: the procedure must return true.
func (r *reader) ask(c gym.Call) (shown, bool) {
	if r.next == len(r.results) {
		r.call = c
		return shown{}, false
	}
	r.next++
	return r.results[r.next-1], true
}

// value finds the value that a result spelled.
func (r *reader) value(spelled string) gym.Value {
	for log, i := r.ep.Evidence().Log, 0; i < log.Len(); i++ {
		for _, v := range log.At(i).Shown {
			if Pack.Spell(v) == spelled {
				return v
			}
		}
	}
	for _, v := range r.pins {
		if Pack.Spell(v) == spelled {
			return v
		}
	}
	return gym.Value{}
}

// says reports whether a field is what the instruction says of it, if it says anything.
func (r *reader) says(role, field string) bool {
	v, ok := r.pins[role]
	return !ok || Pack.Spell(v) == field
}

func (r *reader) matches(o *orderShown) bool {
	return r.says("item", o.Item) && r.says("site", o.Site) && r.says("status", o.Status)
}

// stated is the index of a word that the goal states.
func (r *reader) stated(at int) int { return max(0, int(r.goal[at])-1) }

// work reports whether it has a call to make.
func (r *reader) work() bool {
	id, given := r.pins["order"]
	owner, ok := gym.Value{}, true
	day := none
	if !given {
		if owner, ok = r.customer(); !ok {
			return true
		}
		if x, ok := r.pins["moment"]; ok {
			got, ok := r.ask(call(toolConvert, x, desk.Word(desk.TUnit, desk.UTCDay)))
			if !ok {
				return true
			}
			day = desk.Text(desk.TDay, got.Day)
		}
	}
	if r.goal[goalScope] == 2 {
		return r.every(owner, day)
	}
	for page := 1; !given; page++ {
		list, ok := r.ask(call(toolListOrders, owner, none, day, count(page)))
		if !ok {
			return true
		}
		for i := range list.Orders {
			if !given && r.matches(&list.Orders[i]) {
				id, given = r.value(list.Orders[i].ID), true
			}
		}
		if !given && !list.HasMore {
			return false
		}
	}
	return r.one(id)
}

// customer returns whose orders they are.
func (r *reader) customer() (gym.Value, bool) {
	if v, ok := r.pins["customer"]; ok {
		return v, true
	}
	for page := 1; ; page++ {
		got, ok := r.ask(call(toolFindCustomer, none, none, r.pins["name"], r.pins["zip"], count(page)))
		if !ok {
			return gym.Value{}, false
		}
		for _, c := range got.Customers {
			if !r.says("tier", c.Tier) || !r.says("city", c.City) {
				continue
			}
			who := r.value(c.ID)
			if r.goal[goalSource] == 3 {
				got, ok := r.ask(call(toolGetCustomer, who))
				return r.value(got.Customer.Sponsor), ok
			}
			return who, true
		}
	}
}

// address returns the address that orders are to go to, if they are.
func (r *reader) address(owner gym.Value) (gym.Value, bool) {
	if r.goal[goalWant] != wantReaddress {
		return gym.Value{}, true
	}
	got, ok := r.ask(call(toolGetCustomer, owner))
	for _, a := range got.Customer.Addresses {
		if r.says("street", a.Street) {
			return r.value(a.ID), ok
		}
	}
	return gym.Value{}, ok
}

// change returns the call that does an act to an order as it was read.
func (r *reader) change(act check.Act, o *orderShown, address gym.Value, code int) gym.Call {
	id, rev := r.value(o.ID), r.value(o.Rev)
	switch act {
	case check.Cancel:
		return call(toolCancel, id, desk.Word(desk.TReason, r.stated(goalReason)), rev)
	case check.Readdress:
		return call(toolReaddress, id, address, rev)
	case check.Escalate:
		return call(toolTicket, desk.Word(desk.TQueue, r.stated(goalQueue)), id, desk.Word(desk.TCode, code))
	}
	for _, l := range o.Lines {
		if r.says("item", l.Item) {
			return call(toolExchange, id, r.value(l.ID), r.value(l.Variant), rev)
		}
	}
	return call(toolNow)
}

func finishWith(outcome, code int, evidence ...gym.Value) gym.Call {
	c := call(toolFinish, desk.Word(desk.TOutcome, outcome), desk.Word(desk.TCode, code))
	c.Push(check.ArgEvidence, evidence...)
	return c
}

var acts = map[int]check.Act{wantCancel: check.Cancel, wantReaddress: check.Readdress, wantExchange: check.Exchange}

var remedies = map[string]check.Act{"cancel": check.Cancel, "exchange": check.Exchange, "escalate": check.Escalate, "refuse": check.Refuse}

func (r *reader) one(id gym.Value) bool {
	got, ok := r.ask(call(toolGetOrder, id))
	if !ok {
		return true
	}
	order := got.Order
	act, code := acts[int(r.goal[goalWant])], r.stated(goalCode)
	if r.goal[goalWant] == wantPolicy {
		policy, ok := r.ask(call(toolGetPolicy, desk.Word(desk.TTopic, r.stated(goalTopic))))
		if !ok {
			return true
		}
		act = remedies[policy.Policy[order.Status]]
		for i, w := range desk.Types[desk.TCode].Enum {
			if w == policy.Policy[order.Status+"_code"] {
				code = i
			}
		}
	}
	outcome := desk.Refused
	if act != check.Refuse {
		outcome = desk.Done
		address, ok := r.address(r.value(order.Customer))
		if !ok {
			return true
		}
		if _, ok := r.ask(r.change(act, &order, address, code)); !ok {
			return true
		}
		if got, ok = r.ask(call(toolGetOrder, id)); !ok {
			return true
		}
	}
	r.ask(finishWith(outcome, code, r.value(got.Order.Rev)))
	return true
}

func (r *reader) every(owner, day gym.Value) bool {
	address, ok := r.address(owner)
	if !ok {
		return true
	}
	act := acts[int(r.goal[goalWant])]
	var changed []gym.Value
	var again []int // pages with something to read again
	for page, more := 1, true; more; page++ {
		list, ok := r.ask(call(toolListOrders, owner, none, day, count(page)))
		if !ok {
			return true
		}
		more = list.HasMore
		before := len(changed)
		for i := range list.Orders {
			if !r.matches(&list.Orders[i]) {
				continue
			}
			id := r.value(list.Orders[i].ID)
			got, ok := r.ask(call(toolGetOrder, id))
			if !ok {
				return true
			}
			if _, ok := r.ask(r.change(act, &got.Order, address, 0)); !ok {
				return true
			}
			changed = append(changed, id)
		}
		if len(changed) > before {
			again = append(again, page)
		}
	}
	for _, page := range again {
		if _, ok := r.ask(call(toolListOrders, owner, none, day, count(page))); !ok {
			return true
		}
	}
	r.ask(finishWith(desk.Done, r.stated(goalCode), changed...))
	return true
}

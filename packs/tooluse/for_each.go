package tooluse

import (
	"slices"

	"provegym/gym"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/desk"
)

// apart is how many of the owner's orders match the description in nothing.
const apart = 2

// buildForEach makes T4: list a customer's orders page by page, do one thing to each order that matches, nothing to the
// others, read them back, finish with the set.
func buildForEach(d *draft) *gym.Built {
	s := d.spec
	s.Set = true
	d.model()
	for i := range apart {
		d.order(&d.core, desk.Base, i, owner, d.other(&d.core))
	}
	fan := d.key.Sub("fanout").Stream()
	for i := range d.set.fanout {
		s.Orders = append(s.Orders, d.order(&fan, desk.Fanout, i, owner, d.cast.model))
	}
	d.decoys()
	d.nearest()
	s.Act = gym.Pick(&d.core, []check.Act{check.Cancel, check.Readdress})
	s.Reason = uint8(d.core.IntN(desk.NumReasons))
	s.Code = uint8(d.core.IntN(desk.NumCodes))

	p := planner{d: d}
	customer := p.resolveCustomer()
	before := customer
	if s.Act == check.Readdress {
		before = []int{p.add("get_owner", gym.ReadStep, true, customer, getCustomerCall(p.d.w, owner))}
	}
	day, before := p.convertDay(before)
	sorted := slices.Clone(s.Orders)
	slices.SortFunc(sorted, func(a, b uint32) int { return p.page(a, day) - p.page(b, day) })
	pages := d.listed(day)
	at, next := before, 0
	var writes, confirms []int
	for page := range pages {
		first := next
		for next < len(sorted) && p.page(sorted[next], day) == page {
			next++
		}
		list := p.add("list_orders", gym.ReadStep, next > first, at, p.listPage(day, page+1))
		at = []int{list}
		for _, row := range sorted[first:next] {
			get := p.add("get_order", gym.ReadStep, true, at, getOrderCall(d.w, row))
			writes = append(writes, p.add("write", gym.WriteStep, true, []int{get}, write(s, d.w, row)))
			at = []int{list, writes[len(writes)-1]} // one order at a time keeps what is in hand on the table
		}
	}
	for page := range pages {
		if slices.ContainsFunc(sorted, func(row uint32) bool { return p.page(row, day) == page }) {
			confirms = append(confirms, p.add("confirm", gym.ConfirmStep, true, writes, p.listPage(day, page+1)))
		}
	}
	p.add("finish", gym.FinishStep, true, confirms, finishCall(s))
	return d.built("for-each/"+actNames[s.Act], p.steps)
}

// listed returns how many pages the owner's list has.
func (d *draft) listed(day gym.Value) int {
	n := 0
	for i := range d.w.Orders.Len() {
		if o := d.w.Orders.At(i); o.Customer == owner && (day == none || o.Day == d.cast.model.Day) {
			n++
		}
	}
	return d.set.pages(n)
}

// forEachSteps bounds the length of the plan.
func forEachSteps(s *setting) int {
	n := 1 + 2*s.fanout + 1 // the addresses; a read and a write for each; finish
	listed := s.fanout + s.decoyOrders + apart
	if s.indirection == byConversion {
		n++
		listed = s.fanout + s.otherItem()
	}
	return n + customerSteps(s) + s.pages(listed) + min(s.fanout, s.pages(listed))
}

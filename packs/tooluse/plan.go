package tooluse

import (
	"slices"
	"time"

	"provegym/gym"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/desk"
)

// planner builds the oracle's plan step by step.
type planner struct {
	d     *draft
	steps []gym.PlanStep
}

// add appends a step and returns its number.
func (p *planner) add(name string, kind gym.StepKind, needed bool, after []int, make func(e *gym.Evidence) gym.Call) int {
	p.steps = append(p.steps, gym.PlanStep{Name: name, Kind: kind, Needed: needed, After: after, Make: make})
	return len(p.steps) - 1
}

// known returns v if the episode has shown it, else the latest value of its type that it has shown: what an agent that
// skipped the read would have to take. With nothing to take it returns a value that the world never issued. Evidence without
// a log is that of a control that knows everything.
func known(e *gym.Evidence, v gym.Value) gym.Value {
	if e.Log == nil {
		return v
	}
	best := gym.Value{Type: v.Type}
	for _, p := range e.Built.Pins {
		if p.Value == v {
			return v
		}
		if p.Value.Type == v.Type {
			best = p.Value
		}
	}
	for i := range e.Log.Len() {
		for _, s := range e.Log.At(i).Shown {
			if s == v {
				return v
			}
			if s.Type == v.Type {
				best = s
			}
		}
	}
	return best
}

// call builds a call from one value a parameter; none leaves the parameter out.
func call(tool int, args ...gym.Value) gym.Call {
	var c gym.Call
	c.Reset(tool)
	for i, v := range args {
		if v == none {
			c.Push(i)
		} else {
			c.Push(i, v)
		}
	}
	return c
}

// none leaves an optional argument out.
var none = gym.Value{Type: 255}

func count(n int) gym.Value { return gym.Value{Type: desk.TCount, Bits: uint64(n)} }

func lastWorld(e *gym.Evidence) *desk.World { return e.Last.(*desk.World) }

// Indices of the tools that plans call.
var (
	toolFindCustomer, toolGetCustomer, toolListOrders, toolGetOrder int
	toolGetPolicy, toolCancel, toolReaddress, toolExchange          int
	toolTicket, toolConvert, toolFinish                             int
	toolReserve, toolRelease, toolNow                               int
)

func init() {
	for name, at := range map[string]*int{
		"find_customer": &toolFindCustomer, "get_customer": &toolGetCustomer, "list_orders": &toolListOrders,
		"get_order": &toolGetOrder, "get_policy": &toolGetPolicy, "cancel_order": &toolCancel,
		"change_address": &toolReaddress, "exchange_line": &toolExchange, "open_ticket": &toolTicket,
		"convert": &toolConvert, "finish": &toolFinish, "reserve": &toolReserve, "release": &toolRelease, "now": &toolNow,
	} {
		*at = slices.IndexFunc(deskTools, func(t gym.Tool) bool { return t.Name == name })
	}
}

func spellMoment(day, hour, minute, offset int) string {
	at := desk.Epoch.AddDate(0, 0, day).Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
	return at.In(time.FixedZone("", offset*3600)).Format(momentLayout)
}

// rank returns how many of n ids are smaller than id: the position of a row in a list.
func rank(n int, id uint64, at func(i int) (id uint64, listed bool)) int {
	before := 0
	for i := range n {
		if other, listed := at(i); listed && other < id {
			before++
		}
	}
	return before
}

// resolveCustomer plans how the owner of the orders is found, and returns the steps that later ones come after.
func (p *planner) resolveCustomer() []int {
	d := p.d
	if d.set.indirection == byID {
		return nil
	}
	w := d.w
	c := w.Customers.At(int(d.spec.Known))
	at := p.scan("find_customer", searchPage(w, d.spec.Known, d.set.pageSize), nil, func(page int) func(e *gym.Evidence) gym.Call {
		return findPage(c, page)
	})
	if d.set.indirection >= byRelation {
		at = p.add("get_described_customer", gym.ReadStep, true, []int{at}, getCustomerCall(p.d.w, d.spec.Known))
	}
	return []int{at}
}

// findPage returns a search for people of a customer's name and zip.
func findPage(c *desk.Customer, page int) func(e *gym.Evidence) gym.Call {
	name, zip := desk.Text(desk.TName, c.Name()), desk.Text(desk.TZip, c.ZipText())
	return func(*gym.Evidence) gym.Call { return call(toolFindCustomer, none, none, name, zip, count(page)) }
}

// scan plans to read pages 1 to last+1 of a list, of which only the final one is needed.
func (p *planner) scan(name string, last int, after []int, page func(page int) func(e *gym.Evidence) gym.Call) int {
	at := -1
	for i := range last + 1 {
		at = p.add(name, gym.ReadStep, i == last, after, page(i+1))
		after = []int{at}
	}
	return at
}

func getCustomerCall(w *desk.World, row uint32) func(e *gym.Evidence) gym.Call {
	v := w.CustomerID(int(row))
	return func(e *gym.Evidence) gym.Call { return call(toolGetCustomer, known(e, v)) }
}

func getOrderCall(w *desk.World, row uint32) func(e *gym.Evidence) gym.Call {
	v := w.OrderID(int(row))
	return func(e *gym.Evidence) gym.Call { return call(toolGetOrder, known(e, v)) }
}

// convertDay plans the conversion of the stated moment, if there is one, and returns the day to list by.
func (p *planner) convertDay(after []int) (gym.Value, []int) {
	d := p.d
	if d.set.indirection != byConversion {
		return none, after
	}
	x := desk.Text(desk.TMeasure, d.cast.moment)
	// It comes after the search, so that the table of slots still has the day when it is used.
	at := p.add("convert", gym.ReadStep, true, after, func(*gym.Evidence) gym.Call {
		return call(toolConvert, x, desk.Word(desk.TUnit, desk.UTCDay))
	})
	return desk.Text(desk.TDay, desk.DayText(int(d.cast.model.Day))), []int{at}
}

func (p *planner) listPage(day gym.Value, page int) func(e *gym.Evidence) gym.Call {
	return listPage(p.d.w, owner, none, day, page)
}

// listPage returns a call that lists a customer's orders, of a status or a day if they are not none.
func listPage(w *desk.World, customer int, status, day gym.Value, page int) func(e *gym.Evidence) gym.Call {
	who := w.CustomerID(customer)
	return func(e *gym.Evidence) gym.Call {
		d := day
		if d != none {
			d = known(e, d)
		}
		return call(toolListOrders, known(e, who), status, d, count(page))
	}
}

// page returns the page of the owner's list on which an order stands; a day cuts the list.
func (p *planner) page(row uint32, day gym.Value) int {
	return pageOf(p.d.w, row, day != none, p.d.set.pageSize)
}

// pageOf returns the page, from 0, on which an order stands in the list of its customer's orders, or of those of its day.
func pageOf(w *desk.World, row uint32, byDay bool, size int) int {
	t := w.Orders.At(int(row))
	return rank(w.Orders.Len(), t.ID, func(i int) (uint64, bool) {
		o := w.Orders.At(i)
		return o.ID, o.Customer == t.Customer && (!byDay || o.Day == t.Day)
	}) / size
}

// searchPage returns the page, from 0, on which a customer stands in the search for their name and zip.
func searchPage(w *desk.World, row uint32, size int) int {
	c := w.Customers.At(int(row))
	return rank(w.Customers.Len(), c.ID, func(i int) (uint64, bool) {
		o := w.Customers.At(i)
		return o.ID, o.First == c.First && o.Last == c.Last && o.Zip == c.Zip
	}) / size
}

// resolveOrder plans how the one target order is found, and returns the steps that later ones come after.
func (p *planner) resolveOrder() (customer, order []int) {
	if p.d.set.indirection == byID {
		return nil, nil
	}
	customer = p.resolveCustomer()
	day, after := p.convertDay(customer)
	at := p.scan("list_orders", p.page(p.d.spec.Orders[0], day), after, func(page int) func(e *gym.Evidence) gym.Call {
		return p.listPage(day, page)
	})
	return customer, []int{at}
}

// write returns the call that does the task's act to an order.
func write(s *check.Spec, w *desk.World, row uint32) func(e *gym.Evidence) gym.Call {
	order, address, line := w.OrderID(int(row)), int(s.Address), int(s.Line)
	return func(e *gym.Evidence) gym.Call {
		order := known(e, order)
		rev := known(e, lastWorld(e).OrderRev(int(row)))
		switch s.Act {
		case check.Cancel:
			return call(toolCancel, order, desk.Word(desk.TReason, s.Reason), rev)
		case check.Readdress:
			return call(toolReaddress, order, known(e, w.AddressID(address)), rev)
		case check.Exchange:
			return call(toolExchange, order, known(e, w.LineID(line)), known(e, w.VariantID(int(w.Lines.At(line).Variant))), rev)
		}
		return call(toolTicket, desk.Word(desk.TQueue, s.Queue), order, desk.Word(desk.TCode, s.Code))
	}
}

// finishCall returns the right finish.
func finishCall(s *check.Spec) func(e *gym.Evidence) gym.Call {
	return func(e *gym.Evidence) gym.Call {
		c := call(toolFinish, desk.Word(desk.TOutcome, s.Outcome()), desk.Word(desk.TCode, s.Code))
		var cited []gym.Value
		for _, v := range s.Evidence(lastWorld(e)) {
			if v = known(e, v); !slices.Contains(cited, v) {
				cited = append(cited, v)
			}
		}
		c.Push(check.ArgEvidence, cited...)
		return c
	}
}

// act plans the write to one order, the read that confirms it, and the finish.
func (p *planner) act(before []int) []gym.PlanStep {
	row := p.d.spec.Orders[0]
	w := p.add("write", gym.WriteStep, true, before, write(p.d.spec, p.d.w, row))
	c := p.add("confirm", gym.ConfirmStep, true, []int{w}, getOrderCall(p.d.w, row))
	p.add("finish", gym.FinishStep, true, []int{c}, finishCall(p.d.spec))
	return p.steps
}

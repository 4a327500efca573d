package tooluse

import (
	"slices"

	"provegym/gym"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/desk"
)

// setting is a condition's dials as numbers.
type setting struct {
	fanout, decoyOrders, decoyCustomers, pageSize, extraTools, indirection int
}

func settingOf(c *gym.Condition) setting {
	near := c.Int("near_duplicates")
	// Most near-duplicates are of the customer: a list of orders must leave room on the table of 64 slots for what is read
	// of each order.
	orders := (near + 4) / 8
	return setting{
		fanout:         c.Int("fanout"),
		decoyOrders:    orders,
		decoyCustomers: near - orders,
		pageSize:       c.Int("page_size"),
		extraTools:     c.Int("extra_tools"),
		indirection:    c.Int("indirection"),
	}
}

// pages returns how many pages n rows take.
func (s *setting) pages(n int) int { return max(1, (n+s.pageSize-1)/s.pageSize) }

// otherItem is how many decoy orders differ from the target in the item; the others differ in a site, a status or a day.
func (s *setting) otherItem() int { return (s.decoyOrders + 1) / 2 }

// Levels of the indirection dial: how the instruction says which order it is about.
const (
	byID         = iota
	byAttribute  // of customer and order
	byRelation   // the customer is the one who referred a described one
	byConversion // and the order's day must be converted from a moment elsewhere
)

// Rows that every world begins with.
const (
	owner       = 0 // of the target orders
	referred    = 1 // by the owner
	bystanders  = 4 // customers after these two
	perCustomer = 3 // addresses
)

// draft is a task under construction: the world so far and the streams that it is drawn from. Each dial draws from its own
// stream, so that turning one leaves what the others drew as it was.
type draft struct {
	task gym.Task
	set  setting
	key  gym.Key
	w    *desk.World
	core gym.Stream // what belongs to no dial
	spec *check.Spec
	cast cast
}

// cast is what the instruction may say of the target orders.
type cast struct {
	model  desk.Order // what a target order looks like
	second bool       // orders may have a second line
	moment string     // byConversion: when it was placed, in local time
	topic  uint8
}

func newDraft(task gym.Task) *draft {
	d := &draft{task: task, set: settingOf(&task.Condition), key: task.Key()}
	ids := d.key.Sub("ids").Stream()
	d.w = desk.New(desk.NewKeys(&ids))
	d.core = d.key.Sub("world").Stream()
	d.spec = &check.Spec{Policy: -1, Known: owner}
	if d.set.indirection >= byRelation {
		d.spec.Known = referred
	}
	d.catalogue()
	first := d.core.IntN(desk.NumFirst)
	for i := range 2 + bystanders {
		d.customer(&d.core, desk.Base, i, desk.Customer{
			// Nobody but a near-duplicate shares a name with the customer described.
			First:   uint8((first + 5*i) % desk.NumFirst),
			Last:    uint8(d.core.IntN(desk.NumLast)),
			Zip:     uint32(10000 + d.core.IntN(90000)),
			Tier:    uint8(d.core.IntN(desk.NumTiers)),
			City:    uint8(d.core.IntN(desk.NumCities)),
			Sponsor: uint32(2 + d.core.IntN(bystanders)),
		})
	}
	d.w.Customers.At(referred).Sponsor = owner
	return d
}

// catalogue makes a product of every item, with its variants, and a policy for every topic.
func (d *draft) catalogue() {
	s := d.key.Sub("catalogue").Stream()
	for i := range desk.NumItems {
		p := d.w.Products.Append(desk.Product{ID: d.w.Keys.ID(desk.KindProduct, desk.Base, i), Item: uint8(i), Price: uint16(10 + s.IntN(190))})
		for size := range desk.NumSizes {
			v := desk.Variant{ID: d.w.Keys.ID(desk.KindVariant, desk.Base, i*desk.NumSizes+size), Product: uint32(p), Size: uint8(size)}
			for site := range v.Stock {
				v.Stock[site] = int16(5 + s.IntN(40))
			}
			d.w.Variants.Append(v)
		}
	}
	for i := range desk.NumTopics {
		p := desk.Policy{ID: d.w.Keys.ID(desk.KindPolicy, desk.Base, i), Topic: uint8(i),
			Remedy: [desk.NumActive]uint8{desk.RemedyCancel, desk.RemedyExchange, desk.RemedyEscalate, desk.RemedyRefuse}}
		s.Shuffle(desk.NumActive, func(i, j int) { p.Remedy[i], p.Remedy[j] = p.Remedy[j], p.Remedy[i] })
		for k := range p.Code {
			p.Code[k] = uint8(s.IntN(desk.NumCodes))
		}
		d.w.Policies.Append(p)
	}
}

// customer adds a customer with addresses in different streets.
func (d *draft) customer(s *gym.Stream, b desk.Block, i int, c desk.Customer) uint32 {
	c.ID = d.w.Keys.ID(desk.KindCustomer, b, i)
	c.Digits = uint32(s.IntN(9_000_000))
	c.Domain = uint8(s.IntN(desk.NumDomains))
	row := d.w.Customers.Append(c)
	street := s.IntN(desk.NumStreets)
	for k := range perCustomer {
		d.w.Addresses.Append(desk.Address{ID: d.w.Keys.ID(desk.KindAddress, b, i*perCustomer+k), Customer: uint32(row),
			House: uint16(1 + s.IntN(199)), Street: uint8((street + 5*k) % desk.NumStreets)})
	}
	return uint32(row)
}

// order adds an order to a customer, to go to one of their addresses, with a line for its item and perhaps one for another.
func (d *draft) order(s *gym.Stream, b desk.Block, i int, customer uint32, o desk.Order) uint32 {
	o.ID = d.w.Keys.ID(desk.KindOrder, b, i)
	o.Customer = customer
	o.Address = customer*perCustomer + uint32(s.IntN(perCustomer-1)) // the last address is free for a move
	o.Total = uint16(20 + s.IntN(900))
	row := uint32(d.w.Orders.Append(o))
	size, second, item := s.IntN(desk.NumSizes), s.IntN(2), 1+s.IntN(desk.NumItems-1)
	d.line(b, 2*i, row, o.Item, size, 0)
	if d.cast.second && second == 1 {
		d.line(b, 2*i+1, row, uint8((int(o.Item)+item)%desk.NumItems), size, 1)
	}
	return row
}

func (d *draft) line(b desk.Block, i int, order uint32, item uint8, size int, position uint8) {
	d.w.Lines.Append(desk.Line{ID: d.w.Keys.ID(desk.KindLine, b, i), Order: order, Item: item, Qty: 1, Position: position,
		Variant: uint32(int(item)*desk.NumSizes + size)})
}

// model draws what a target order looks like, and the moment that stands for its day.
func (d *draft) model() {
	m := &d.cast.model
	m.Item = uint8(d.core.IntN(desk.NumItems))
	m.Site = uint8(d.core.IntN(desk.NumSites))
	m.Status = uint8(d.core.IntN(desk.NumActive))
	m.Day = uint16(30 + d.core.IntN(300))
	s := d.key.Sub("indirection").Stream()
	ahead, hours, hour, minute := s.IntN(2) == 0, 3+s.IntN(9), s.IntN(64), s.IntN(60)
	if d.set.indirection == byConversion {
		d.cast.moment = moment(int(m.Day), ahead, hours, hour, minute)
	}
}

// naiveDay is the day that the moment shows before it is converted: never the right one.
func naiveDay(moment string) uint16 { return uint16(dayNumber(moment[:len("2006-01-02")])) }

// decoys adds the near-duplicates: customers who share all but one of the stated attributes with the one described, each
// with an order like the target; and orders of the owner that share all but one with the target.
func (d *draft) decoys() {
	key := d.key.Sub("near_duplicates")
	people := key.Sub("customers").Stream()
	like := *d.w.Customers.At(int(d.spec.Known))
	for i := range d.set.decoyCustomers {
		c := like
		city, tier := 1+people.IntN(desk.NumCities-1), 1+people.IntN(desk.NumTiers-1)
		if i%2 == 0 {
			c.City = uint8((int(c.City) + city) % desk.NumCities)
		} else {
			c.Tier = uint8((int(c.Tier) + tier) % desk.NumTiers)
		}
		c.Sponsor = uint32(2 + people.IntN(bystanders))
		d.order(&people, desk.NearDuplicates, 2*i, d.customer(&people, desk.NearDuplicates, i, c), d.cast.model)
	}
	goods := key.Sub("orders").Stream()
	for i := range d.set.decoyOrders {
		o := d.cast.model
		item, shift := 1+goods.IntN(desk.NumItems-1), 1+goods.IntN(desk.NumSites-1)
		switch {
		case i%2 == 0:
			o.Item = uint8((int(o.Item) + item) % desk.NumItems)
		case d.set.indirection == byConversion:
			o.Day = naiveDay(d.cast.moment)
		case d.spec.Set:
			o.Status = uint8((int(o.Status) + shift) % desk.NumActive)
		default:
			o.Site = uint8((int(o.Site) + shift) % desk.NumSites)
		}
		d.order(&goods, desk.NearDuplicates, 2*i+1, owner, o)
	}
}

// other returns an order that shares neither item, site, status nor day with the model.
func (d *draft) other(s *gym.Stream) desk.Order {
	m := d.cast.model
	m.Item = uint8((int(m.Item) + 1 + s.IntN(desk.NumItems-1)) % desk.NumItems)
	m.Site = uint8((int(m.Site) + 1 + s.IntN(desk.NumSites-1)) % desk.NumSites)
	m.Status = uint8((int(m.Status) + 1 + s.IntN(desk.NumActive-1)) % desk.NumActive)
	m.Day += uint16(5 + 2*s.IntN(2))
	return m
}

// single fills the world of a task about one order: the target, other orders of the owner, near-duplicates.
func (d *draft) single() {
	d.cast.second = true
	d.model()
	d.spec.Orders = []uint32{d.order(&d.core, desk.Base, 0, owner, d.cast.model)}
	s := d.key.Sub("fanout").Stream()
	for i := range d.set.fanout {
		d.order(&s, desk.Fanout, i, owner, d.other(&s))
	}
	d.decoys()
	d.nearest()
}

// nearest finds what a careless agent would take instead, and settles which line and address the act is for.
func (d *draft) nearest() {
	s := d.spec
	s.Address = perCustomer - 1
	s.Line = uint32(firstLine(d.w, int(s.Orders[0])))
	s.Decoys = check.Decoys{Own: -1, Foreign: -1}
	if d.w.Orders.At(int(s.Orders[0])).Address == 0 {
		s.Decoys.Address = 1
	}
	for i := range d.w.Orders.Len() {
		best := &s.Decoys.Own
		if d.w.Orders.At(i).Customer != owner {
			best = &s.Decoys.Foreign
		}
		if !slices.Contains(s.Orders, uint32(i)) && (*best < 0 || d.closeness(i) > d.closeness(*best)) {
			*best = i
		}
	}
}

// closeness counts what an order shares with the model.
func (d *draft) closeness(row int) (n int) {
	a, b := d.w.Orders.At(row), &d.cast.model
	for _, same := range [...]bool{a.Item == b.Item, a.Site == b.Site, a.Status == b.Status, a.Day == b.Day} {
		if same {
			n++
		}
	}
	return n
}

// firstLine returns the row of the line that an order begins with.
func firstLine(w *desk.World, order int) int {
	for i := range w.Lines.Len() {
		if w.Lines.At(i).Order == uint32(order) {
			return i
		}
	}
	panic("tooluse: an order without lines")
}

// moment spells an instant of the UTC day in a place whose clocks show another date at that instant.
func moment(day int, ahead bool, hours, hour, minute int) string {
	at := hour % hours // UTC hours after midnight, for clocks that are behind
	offset := -hours
	if ahead {
		at, offset = 24-hours+hour%hours, hours
	}
	return spellMoment(day, at, minute, offset)
}

// tools returns the desk's tools and as many distractors as the dial says; more of them only add to fewer.
func (d *draft) tools() gym.ToolSet {
	set := gym.ToolSet(1)<<len(deskTools) - 1
	s := d.key.Sub("extra_tools").Stream()
	var order [maxExtraTools]int
	for i := range order {
		order[i] = i
	}
	s.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, i := range order[:d.set.extraTools] {
		set = set.With(len(deskTools) + i)
	}
	return set
}

// built puts the parts together.
func (d *draft) built(template string, plan []gym.PlanStep) *gym.Built {
	b := &gym.Built{
		World:       d.w,
		Instruction: d.instruction(),
		Tools:       d.tools(),
		Check:       d.spec.Check(),
		Plan:        plan,
		Spec:        d.spec,
		Template:    template,
		Mechanisms:  []string{mechanisms[d.set.indirection], template},
	}
	d.describe(b)
	g := gym.NewDigester("graph")
	g.Text(template)
	g.Text(mechanisms[d.set.indirection])
	b.Graph = g.Sum().String()
	return b
}

var mechanisms = [...]string{byID: "by_id", byAttribute: "by_attribute", byRelation: "by_relation", byConversion: "by_conversion"}

package desk

import (
	"strconv"
	"strings"
	"time"

	"provegym/gym"
)

// Kinds of entities, for gym.Entity. 0 is none.
const (
	KindCustomer uint8 = iota + 1
	KindAddress
	KindOrder
	KindLine
	KindProduct
	KindVariant
	KindPolicy
	KindGrant
	KindHold
	KindTicket
	kindQuote // no row: the id carries it
)

// Fields of entities, as reads and writes of the call log name them.
const (
	FieldIdentity  uint8 = iota + 1 // customer: name, zip and the like
	FieldSponsor                    // customer
	FieldStreet                     // address
	FieldStatus                     // order
	FieldAddress                    // order
	FieldLines                      // order: changes of its lines are counted here
	FieldTickets                    // order
	FieldNote                       // order, customer: marks that no task asks for
	FieldReason                     // order: why it was cancelled
	FieldItem                       // order, line, product
	FieldVariant                    // line
	FieldExchanged                  // line
	FieldRefunded                   // line
	FieldStock                      // variant
	FieldRules                      // policy
	FieldMade                       // grant, hold, ticket: what it was made about
	FieldQueue                      // ticket
	FieldCode                       // ticket
	FieldOpen                       // hold
)

// Customer is a person with an account. Sponsor is the row of the customer who referred them.
type Customer struct {
	ID                              uint64
	Sponsor, Digits, Zip            uint32
	First, Last, Domain, Tier, City uint8
	Note                            uint8
}

// Address is a place that a customer's orders may go to.
type Address struct {
	ID       uint64
	Customer uint32
	House    uint16
	Street   uint8
}

// Order is one purchase. Customer and Address are rows, Day counts from Epoch, Total is in whole dollars.
type Order struct {
	ID                      uint64
	Customer, Address       uint32
	Day, Total              uint16
	Status, Item, Site      uint8
	Was, Reason             uint8 // once cancelled: the status it had, 1 + reason
	Changes, Tickets, Notes uint8
}

// Line is one position of an order.
type Line struct {
	ID                            uint64
	Order, Variant                uint32
	Item, Qty                     uint8
	Exchanged, Refunded, Position uint8
}

// Product is something that the shop sells, Variant a size of it with its stock by site.
type Product struct {
	ID    uint64
	Price uint16
	Item  uint8
}

// Variant is one size of a product.
type Variant struct {
	ID      uint64
	Product uint32
	Stock   [NumSites]int16
	Size    uint8
}

// Policy says, for each status that an order can have, what is to be done and the code to close with.
type Policy struct {
	ID     uint64
	Topic  uint8
	Remedy [NumActive]uint8
	Code   [NumActive]uint8
}

// Grant is a proof of identity, Hold a reservation of stock, Ticket a note to a queue.
type Grant struct {
	ID       uint64
	Customer uint32
}

// Hold is a reservation of stock.
type Hold struct {
	ID      uint64
	Variant uint32
	Site, N uint8
	Open    bool
}

// Ticket is a case handed to a queue.
type Ticket struct {
	ID          uint64
	Subject     uint32
	Kind        uint8
	Queue, Code uint8
}

// World is the state of the desk.
type World struct {
	Keys      Keys
	Customers gym.Table[Customer]
	Addresses gym.Table[Address]
	Orders    gym.Table[Order]
	Lines     gym.Table[Line]
	Products  gym.Table[Product]
	Variants  gym.Table[Variant]
	Policies  gym.Table[Policy]
	Grants    gym.Table[Grant]
	Holds     gym.Table[Hold]
	Tickets   gym.Table[Ticket]
}

// New returns a world with no rows and room for a common number of them.
func New(k Keys) *World {
	return &World{
		Keys:      k,
		Customers: gym.NewTable(make([]Customer, 0, 16)),
		Addresses: gym.NewTable(make([]Address, 0, 48)),
		Orders:    gym.NewTable(make([]Order, 0, 32)),
		Lines:     gym.NewTable(make([]Line, 0, 48)),
		Products:  gym.NewTable(make([]Product, 0, NumItems)),
		Variants:  gym.NewTable(make([]Variant, 0, NumItems*NumSizes)),
		Policies:  gym.NewTable(make([]Policy, 0, NumTopics)),
		Grants:    gym.NewTable[Grant](nil),
		Holds:     gym.NewTable[Hold](nil),
		Tickets:   gym.NewTable[Ticket](nil),
	}
}

// Clone returns an independent copy.
func (w *World) Clone() gym.World {
	return &World{w.Keys, w.Customers.Clone(), w.Addresses.Clone(), w.Orders.Clone(), w.Lines.Clone(), w.Products.Clone(),
		w.Variants.Clone(), w.Policies.Clone(), w.Grants.Clone(), w.Holds.Clone(), w.Tickets.Clone()}
}

// CopyFrom makes w equal to src, which is a *World.
func (w *World) CopyFrom(src gym.World) {
	s := src.(*World)
	w.Keys = s.Keys
	w.Customers.CopyFrom(&s.Customers)
	w.Addresses.CopyFrom(&s.Addresses)
	w.Orders.CopyFrom(&s.Orders)
	w.Lines.CopyFrom(&s.Lines)
	w.Products.CopyFrom(&s.Products)
	w.Variants.CopyFrom(&s.Variants)
	w.Policies.CopyFrom(&s.Policies)
	w.Grants.CopyFrom(&s.Grants)
	w.Holds.CopyFrom(&s.Holds)
	w.Tickets.CopyFrom(&s.Tickets)
}

// AppendDigest adds the whole state.
func (w *World) AppendDigest(d *gym.Digester) {
	w.Keys.appendDigest(d)
	w.Customers.AppendDigest(d)
	w.Addresses.AppendDigest(d)
	w.Orders.AppendDigest(d)
	w.Lines.AppendDigest(d)
	w.Products.AppendDigest(d)
	w.Variants.AppendDigest(d)
	w.Policies.AppendDigest(d)
	w.Grants.AppendDigest(d)
	w.Holds.AppendDigest(d)
	w.Tickets.AppendDigest(d)
}

// Row finds the row whose id a value carries, or -1.
func Row[R any](t *gym.Table[R], v gym.Value, id func(*R) uint64) int {
	for i := range t.Len() {
		if id(t.At(i)) == v.Bits {
			return i
		}
	}
	return -1
}

// Ids of rows, for Row.
func (r *Customer) id() uint64 { return r.ID }
func (r *Address) id() uint64  { return r.ID }
func (r *Order) id() uint64    { return r.ID }
func (r *Line) id() uint64     { return r.ID }
func (r *Product) id() uint64  { return r.ID }
func (r *Variant) id() uint64  { return r.ID }
func (r *Grant) id() uint64    { return r.ID }
func (r *Hold) id() uint64     { return r.ID }
func (r *Ticket) id() uint64   { return r.ID }

// FindCustomer returns the row of a customer, or -1; the others likewise.
func (w *World) FindCustomer(v gym.Value) int { return Row(&w.Customers, v, (*Customer).id) }
func (w *World) FindAddress(v gym.Value) int  { return Row(&w.Addresses, v, (*Address).id) }
func (w *World) FindOrder(v gym.Value) int    { return Row(&w.Orders, v, (*Order).id) }
func (w *World) FindLine(v gym.Value) int     { return Row(&w.Lines, v, (*Line).id) }
func (w *World) FindProduct(v gym.Value) int  { return Row(&w.Products, v, (*Product).id) }
func (w *World) FindVariant(v gym.Value) int  { return Row(&w.Variants, v, (*Variant).id) }
func (w *World) FindGrant(v gym.Value) int    { return Row(&w.Grants, v, (*Grant).id) }
func (w *World) FindHold(v gym.Value) int     { return Row(&w.Holds, v, (*Hold).id) }
func (w *World) FindTicket(v gym.Value) int   { return Row(&w.Tickets, v, (*Ticket).id) }

// CustomerID returns the id of a row as a value; the others likewise.
func (w *World) CustomerID(row int) gym.Value {
	return gym.Value{Type: TCustomer, Bits: w.Customers.At(row).ID}
}
func (w *World) AddressID(row int) gym.Value {
	return gym.Value{Type: TAddress, Bits: w.Addresses.At(row).ID}
}
func (w *World) OrderID(row int) gym.Value { return gym.Value{Type: TOrder, Bits: w.Orders.At(row).ID} }
func (w *World) LineID(row int) gym.Value  { return gym.Value{Type: TLine, Bits: w.Lines.At(row).ID} }
func (w *World) ProductID(row int) gym.Value {
	return gym.Value{Type: TProduct, Bits: w.Products.At(row).ID}
}
func (w *World) VariantID(row int) gym.Value {
	return gym.Value{Type: TVariant, Bits: w.Variants.At(row).ID}
}

// OrderRev returns the rev of an order at its current version; it covers the order's lines.
func (w *World) OrderRev(row int) gym.Value { return w.OrderRevAt(row, w.Orders.Ver(row)) }

// OrderRevAt returns the rev of an order at a version.
func (w *World) OrderRevAt(row int, ver uint32) gym.Value {
	return gym.Value{Type: TRev, Bits: w.Keys.revBits(KindOrder, w.Orders.At(row).ID, ver)}
}

// PolicyRev returns the rev of a policy.
func (w *World) PolicyRev(row int) gym.Value {
	return gym.Value{Type: TRev, Bits: w.Keys.revBits(KindPolicy, w.Policies.At(row).ID, w.Policies.Ver(row))}
}

// Quote packs a refund quote into its id: the lines of an order, by position, at a version, until a tick.
func (w *World) Quote(order int, lines uint8, until int64) gym.Value {
	n := uint64(kindQuote)<<36 | uint64(order)<<24 | uint64(lines&15)<<20 | uint64(w.Orders.Ver(order)&0xff)<<12 | uint64(until)&0xfff
	return gym.Value{Type: TQuote, Bits: w.Keys.seal(n)}
}

// OpenQuote reads a quote's id back. ok is false if the world never issued it or its order has changed since.
func (w *World) OpenQuote(v gym.Value) (order int, lines uint8, until int64, ok bool) {
	n := w.Keys.open(v.Bits)
	order, lines, until = int(n>>24&0xfff), uint8(n>>20&15), int64(n&0xfff)
	ok = n>>36 == uint64(kindQuote) && order < w.Orders.Len() && n>>12&0xff == uint64(w.Orders.Ver(order)&0xff)
	return order, lines, until, ok
}

// Name returns the customer's name as shown.
func (c *Customer) Name() string { return firstNames[c.First] + " " + lastNames[c.Last] }

// Email returns the customer's mail address.
func (c *Customer) Email() string {
	return strings.ToLower(firstNames[c.First]+"."+lastNames[c.Last]) + strconv.Itoa(int(c.Digits)) + "@" + domains[c.Domain]
}

// Phone returns the customer's number.
func (c *Customer) Phone() string { return "+1555" + strconv.Itoa(1_000_000+int(c.Digits)) }

// ZipText returns the customer's zip code.
func (c *Customer) ZipText() string { return strconv.Itoa(int(c.Zip)) }

// StreetText returns the house and street.
func (a *Address) StreetText() string { return strconv.Itoa(int(a.House)) + " " + streets[a.Street] }

// Epoch is day 0 of the desk's calendar.
var Epoch = time.Date(2031, time.January, 1, 0, 0, 0, 0, time.UTC)

// DayText spells a day of the calendar.
func DayText(day int) string {
	return string(Epoch.AddDate(0, 0, day).AppendFormat(nil, time.DateOnly))
}

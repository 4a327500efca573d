package tooluse

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"provegym/gym"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/desk"
)

func param(name string, t gym.TypeID, doc string) gym.Param {
	return gym.Param{Name: name, Types: []gym.TypeID{t}, Doc: doc}
}

func optional(p gym.Param) gym.Param { p.Optional = true; return p }

func number(name string, least, most int64, doc string) gym.Param {
	return gym.Param{Name: name, Types: []gym.TypeID{desk.TCount}, Doc: doc, Min: least, Max: most}
}

var pageParam = optional(number("page", 1, 20, "page of the list, 1 if left out"))

const revDoc = "the order's rev as it stands; any change of the order gives it a new one"

// deskTools are the tools of the desk. finish is among them, distractors are not.
var deskTools = []gym.Tool{
	{Name: "find_customer", Doc: "Find customers by email, by phone, or by name with zip.", Run: findCustomer, Params: []gym.Param{
		optional(param("email", desk.TEmail, "mail address")), optional(param("phone", desk.TPhone, "phone number")),
		optional(param("name", desk.TName, "first and last name")), optional(param("zip", desk.TZip, "zip code")), pageParam}},
	{Name: "get_customer", Doc: "Show a customer with the addresses on file and who referred them.", Run: getCustomer,
		Params: []gym.Param{param("customer", desk.TCustomer, "the customer")}},
	{Name: "list_orders", Doc: "List a customer's orders.", Run: listOrders, Params: []gym.Param{
		param("customer", desk.TCustomer, "the customer"), optional(param("status", desk.TStatus, "only orders of this status")),
		optional(param("day", desk.TDay, "only orders placed on this UTC day")), pageParam}},
	{Name: "get_order", Doc: "Show an order with its lines and its rev.", Run: getOrder,
		Params: []gym.Param{param("order", desk.TOrder, "the order")}},
	{Name: "get_product", Doc: "Show a product and its variants.", Run: getProduct,
		Params: []gym.Param{param("product", desk.TProduct, "the product")}},
	{Name: "check_stock", Doc: "Show how many of a variant a site has.", Run: checkStock, Params: []gym.Param{
		param("variant", desk.TVariant, "the variant"), param("site", desk.TSite, "the site")}},
	{Name: "get_policy", Doc: "Show the policy on a topic: for each status of the order the remedy, and the code to close with.",
		Run: getPolicy, Params: []gym.Param{param("topic", desk.TTopic, "the topic")}},
	{Name: "quote_refund", Doc: "Quote the refund of lines of an order. The quote lapses after 32 ticks or when the order changes.",
		Run: quoteRefund, Params: []gym.Param{param("order", desk.TOrder, "the order"),
			{Name: "lines", Types: []gym.TypeID{desk.TLine}, List: true, Doc: "lines of that order"}}},
	{Name: "verify_identity", Doc: "Verify a customer by one factor: email, phone or zip.", Writes: true, Run: verifyIdentity,
		Params: []gym.Param{param("customer", desk.TCustomer, "the customer"), optional(param("email", desk.TEmail, "mail address given")),
			optional(param("phone", desk.TPhone, "phone number given")), optional(param("zip", desk.TZip, "zip code given"))}},
	{Name: "cancel_order", Doc: "Cancel an order.", Writes: true, Run: cancelOrder, Params: []gym.Param{
		param("order", desk.TOrder, "the order"), param("reason", desk.TReason, "why"), param("if_rev", desk.TRev, revDoc)}},
	{Name: "change_address", Doc: "Send an order to another address of its customer.", Writes: true, Run: changeAddress,
		Params: []gym.Param{param("order", desk.TOrder, "the order"), param("address", desk.TAddress, "an address on file"),
			param("if_rev", desk.TRev, revDoc)}},
	{Name: "exchange_line", Doc: "Exchange a line of an order for a variant of the same product.", Writes: true, Run: exchangeLine,
		Params: []gym.Param{param("order", desk.TOrder, "the order"), param("line", desk.TLine, "a line of it"),
			param("variant", desk.TVariant, "what to send instead"), param("if_rev", desk.TRev, revDoc)}},
	{Name: "issue_refund", Doc: "Pay out a refund quote to a customer who was verified.", Writes: true, Run: issueRefund,
		Params: []gym.Param{param("quote", desk.TQuote, "the quote"), param("grant", desk.TGrant, "the verification")}},
	{Name: "reserve", Doc: "Hold stock of a variant at a site.", Writes: true, Run: reserve, Params: []gym.Param{
		param("variant", desk.TVariant, "the variant"), param("site", desk.TSite, "the site"), number("n", 1, 5, "how many")}},
	{Name: "release", Doc: "Release a hold.", Writes: true, Run: release, Params: []gym.Param{param("hold", desk.THold, "the hold")}},
	{Name: "open_ticket", Doc: "Hand a case to a queue.", Writes: true, Run: openTicket, Params: []gym.Param{
		param("queue", desk.TQueue, "the queue"),
		{Name: "subject", Types: []gym.TypeID{desk.TOrder, desk.TCustomer}, Doc: "the order or customer it is about"},
		param("code", desk.TCode, "the code of the case")}},
	{Name: "now", Doc: "Show the desk's clock, in ticks.", Run: func(t *gym.Turn) error { t.Int("now", t.Clock()); return nil }},
	{Name: "convert", Doc: "Convert a stated moment to its UTC day, or a weight or length to another unit.", Run: convert,
		Params: []gym.Param{param("x", desk.TMeasure, "such as 2031-05-04T03:10+09:00, 12 kg or 30 in"),
			param("to", desk.TUnit, "what to convert to")}},
	{Name: "wait", Doc: "Let time pass.", Run: wait, Params: []gym.Param{number("ticks", 1, 10, "how long")}},
	{Name: "finish", Doc: "End the work on the case. Only what is committed here counts.", Finish: true, Run: finish,
		Params: []gym.Param{
			check.ArgOutcome: param("outcome", desk.TOutcome, "how it ended"),
			check.ArgCode:    param("code", desk.TCode, "the code to close with"),
			check.ArgEvidence: {Name: "evidence", Optional: true, List: true, Doc: "what the case asks to be cited",
				Types: []gym.TypeID{desk.TRev, desk.TOrder, desk.TTicket, desk.TQuote, desk.TGrant, desk.THold}}}},
}

// notFound is the one answer to an id that was never issued and to one that does not belong here.
func notFound(what string) error {
	return &gym.ToolError{Code: "not_found", Text: "there is no such " + what}
}

func world(t *gym.Turn) *desk.World { return t.World.(*desk.World) }

func entity(kind uint8, row int) gym.Entity { return gym.Entity{Kind: kind, Row: uint32(row)} }

// found is the row of a required argument, or not_found.
func found(t *gym.Turn, i int, find func(gym.Value) int, what string) (int, error) {
	v, _ := t.One(i)
	if row := find(v); row >= 0 {
		return row, nil
	}
	return -1, notFound(what)
}

// showPage shows one page of rows in the order of their ids, which says nothing of when they were made.
func showPage(t *gym.Turn, name string, rows []uint32, id func(row int) gym.Value, page int, show func(row int)) {
	slices.SortFunc(rows, func(a, b uint32) int { return cmp.Compare(id(int(a)).Bits, id(int(b)).Bits) })
	cond := t.Condition()
	size := cond.Int("page_size")
	from, to := min((page-1)*size, len(rows)), min(page*size, len(rows))
	t.Int("total", int64(len(rows)))
	t.Int("page", int64(page))
	t.Bool("has_more", to < len(rows))
	t.List(name)
	for _, r := range rows[from:to] {
		t.Record("", id(int(r)))
		show(int(r))
		t.End()
	}
	t.EndList()
}

func findCustomer(t *gym.Turn) error {
	w := world(t)
	email, byEmail := t.One(0)
	phone, byPhone := t.One(1)
	name, byName := t.One(2)
	zip, byZip := t.One(3)
	if !byEmail && !byPhone && !(byName && byZip) {
		return gym.Refuse("bad_query", "give an email, a phone, or a name with a zip")
	}
	var buf [128]uint32
	rows := buf[:0]
	for i := range w.Customers.Len() {
		c := w.Customers.At(i)
		if (!byZip || c.ZipText() == zip.Text) && (!byName || c.Name() == name.Text) &&
			(!byPhone || c.Phone() == phone.Text) && (!byEmail || c.Email() == email.Text) {
			rows = append(rows, uint32(i))
		}
	}
	showPage(t, "customers", rows, w.CustomerID, int(t.IntOr(4, 1)), func(row int) {
		c := w.Customers.At(row)
		t.Show("tier", desk.Word(desk.TTier, c.Tier))
		t.Show("city", desk.Word(desk.TCity, c.City))
		t.Read(entity(desk.KindCustomer, row), desk.FieldIdentity, w.Customers.Ver(row))
	})
	return nil
}

func getCustomer(t *gym.Turn) error {
	w := world(t)
	row, err := found(t, 0, w.FindCustomer, "customer")
	if err != nil {
		return err
	}
	c := w.Customers.At(row)
	t.Record("customer", w.CustomerID(row))
	t.Show("name", desk.Text(desk.TName, c.Name()))
	t.Show("zip", desk.Text(desk.TZip, c.ZipText()))
	t.Show("email", desk.Text(desk.TEmail, c.Email()))
	t.Show("phone", desk.Text(desk.TPhone, c.Phone()))
	t.Show("tier", desk.Word(desk.TTier, c.Tier))
	t.Show("city", desk.Word(desk.TCity, c.City))
	t.Show("sponsor", w.CustomerID(int(c.Sponsor)))
	e := entity(desk.KindCustomer, row)
	t.Read(e, desk.FieldIdentity, w.Customers.Ver(row))
	t.Read(e, desk.FieldSponsor, w.Customers.Ver(row))
	t.List("addresses")
	for i := range w.Addresses.Len() {
		if a := w.Addresses.At(i); a.Customer == uint32(row) {
			t.Record("", w.AddressID(i))
			t.Show("street", desk.Text(desk.TStreet, a.StreetText()))
			t.Read(entity(desk.KindAddress, i), desk.FieldStreet, w.Addresses.Ver(i))
			t.End()
		}
	}
	t.EndList()
	t.End()
	return nil
}

// dayNumber returns the day of a spelled one, or -1.
func dayNumber(s string) int {
	d, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return -1
	}
	return int(d.Sub(desk.Epoch) / (24 * time.Hour))
}

func listOrders(t *gym.Turn) error {
	w := world(t)
	owner, err := found(t, 0, w.FindCustomer, "customer")
	if err != nil {
		return err
	}
	status, byStatus := t.One(1)
	dayText, byDay := t.One(2)
	day := -1
	if byDay {
		if day = dayNumber(dayText.Text); day < 0 {
			return gym.Refuse("bad_query", "a day is spelled like 2031-05-04")
		}
	}
	var buf [128]uint32
	rows := buf[:0]
	for i := range w.Orders.Len() {
		o := w.Orders.At(i)
		if o.Customer == uint32(owner) && (!byStatus || uint64(o.Status) == status.Bits) && (!byDay || int(o.Day) == day) {
			rows = append(rows, uint32(i))
		}
	}
	showPage(t, "orders", rows, w.OrderID, int(t.IntOr(3, 1)), func(row int) { showOrder(t, w, row) })
	return nil
}

// rowOf shows what lists, writes and get_order all show of an order.
func rowOf(t *gym.Turn, w *desk.World, row int) {
	o := w.Orders.At(row)
	t.Show("status", desk.Word(desk.TStatus, o.Status))
	t.Show("item", desk.Word(desk.TItem, o.Item))
	t.Show("site", desk.Word(desk.TSite, o.Site))
	t.Show("street", desk.Text(desk.TStreet, w.Addresses.At(int(o.Address)).StreetText()))
}

// showOrder shows a row as reading it does, and logs that it was read.
func showOrder(t *gym.Turn, w *desk.World, row int) {
	rowOf(t, w, row)
	e, ver := entity(desk.KindOrder, row), w.Orders.Ver(row)
	t.Read(e, desk.FieldStatus, ver)
	t.Read(e, desk.FieldItem, ver)
	t.Read(e, desk.FieldAddress, ver)
}

// echo shows what a write made of an order. It is no reading: a confirmation must come from one.
func echo(t *gym.Turn, w *desk.World, row int) {
	t.Record("order", w.OrderID(row))
	rowOf(t, w, row)
	showWas(t, w.Orders.At(row))
	t.End()
}

// showWas shows which status a cancelled order had.
func showWas(t *gym.Turn, o *desk.Order) {
	if o.Status == desk.Cancelled {
		t.Show("was", desk.Word(desk.TStatus, o.Was))
	}
}

func getOrder(t *gym.Turn) error {
	w := world(t)
	row, err := found(t, 0, w.FindOrder, "order")
	if err != nil {
		return err
	}
	o, e, ver := w.Orders.At(row), entity(desk.KindOrder, row), w.Orders.Ver(row)
	t.Record("order", w.OrderID(row))
	showOrder(t, w, row)
	showWas(t, o)
	t.Show("customer", w.CustomerID(int(o.Customer)))
	t.Show("day", desk.Text(desk.TDay, desk.DayText(int(o.Day))))
	t.Int("total", int64(o.Total))
	t.Int("tickets", int64(o.Tickets))
	t.Read(e, desk.FieldTickets, ver)
	t.Read(e, desk.FieldLines, ver)
	t.List("lines")
	lines := 0
	for i := range w.Lines.Len() {
		l := w.Lines.At(i)
		if l.Order != uint32(row) {
			continue
		}
		lines++
		v := w.Variants.At(int(l.Variant))
		t.Record("", w.LineID(i))
		t.Show("item", desk.Word(desk.TItem, l.Item))
		t.Show("product", w.ProductID(int(v.Product)))
		t.Show("variant", w.VariantID(int(l.Variant)))
		t.Int("qty", int64(l.Qty))
		t.Int("exchanged", int64(l.Exchanged))
		t.Int("refunded", int64(l.Refunded))
		t.End()
	}
	t.EndList()
	t.Int("line_count", int64(lines))
	t.Show("rev", w.OrderRev(row))
	t.End()
	return nil
}

func getProduct(t *gym.Turn) error {
	w := world(t)
	row, err := found(t, 0, w.FindProduct, "product")
	if err != nil {
		return err
	}
	p := w.Products.At(row)
	t.Record("product", w.ProductID(row))
	t.Show("item", desk.Word(desk.TItem, p.Item))
	t.Int("price", int64(p.Price))
	t.Read(entity(desk.KindProduct, row), desk.FieldItem, w.Products.Ver(row))
	t.List("variants")
	for i := range w.Variants.Len() {
		if v := w.Variants.At(i); v.Product == uint32(row) {
			t.Record("", w.VariantID(i))
			t.Show("size", desk.Word(desk.TSize, v.Size))
			t.End()
		}
	}
	t.EndList()
	t.End()
	return nil
}

func checkStock(t *gym.Turn) error {
	w := world(t)
	row, err := found(t, 0, w.FindVariant, "variant")
	if err != nil {
		return err
	}
	t.Int("qty", int64(w.Variants.At(row).Stock[t.IntOr(1, 0)]))
	t.Int("as_of", t.Clock())
	t.Read(entity(desk.KindVariant, row), desk.FieldStock, w.Variants.Ver(row))
	return nil
}

func getPolicy(t *gym.Turn) error {
	w := world(t)
	row := int(t.IntOr(0, 0)) // one policy a topic, in order
	p := w.Policies.At(row)
	t.Record("policy", gym.Value{Type: desk.TPolicy, Bits: p.ID})
	t.Show("topic", desk.Word(desk.TTopic, p.Topic))
	attrs := desk.Types[desk.TPolicy].Attrs
	for s := range desk.NumActive {
		t.Show(attrs[s], desk.Word(desk.TRemedy, p.Remedy[s]))
		t.Show(attrs[desk.NumActive+s], desk.Word(desk.TCode, p.Code[s]))
	}
	t.Show("rev", w.PolicyRev(row))
	t.Read(entity(desk.KindPolicy, row), desk.FieldRules, w.Policies.Ver(row))
	t.End()
	return nil
}

const quoteTicks = 32

func quoteRefund(t *gym.Turn) error {
	w := world(t)
	row, err := found(t, 0, w.FindOrder, "order")
	if err != nil {
		return err
	}
	lines, amount := uint8(0), 0
	for _, v := range t.Call.Arg(1) {
		i := w.FindLine(v)
		if i < 0 || w.Lines.At(i).Order != uint32(row) {
			return notFound("line of that order")
		}
		l := w.Lines.At(i)
		if lines>>l.Position&1 == 0 && l.Refunded == 0 {
			lines |= 1 << l.Position
			amount += int(w.Products.At(int(w.Variants.At(int(l.Variant)).Product)).Price) * int(l.Qty)
		}
	}
	method := 0
	if w.Orders.At(row).Status == desk.Delivered {
		method = 1
	}
	until := t.Clock() + quoteTicks
	t.Record("quote", w.Quote(row, lines, until))
	t.Int("amount", int64(amount))
	t.Show("method", desk.Word(desk.TMethod, method))
	t.Int("expires", until)
	t.Read(entity(desk.KindOrder, row), desk.FieldLines, w.Orders.Ver(row))
	t.End()
	return nil
}

func verifyIdentity(t *gym.Turn) error {
	w := world(t)
	row, err := found(t, 0, w.FindCustomer, "customer")
	if err != nil {
		return err
	}
	c := w.Customers.At(row)
	factors, right := 0, true
	for i, is := range [...]string{c.Email(), c.Phone(), c.ZipText()} {
		if v, given := t.One(1 + i); given {
			factors++
			right = right && v.Text == is
		}
	}
	switch {
	case factors != 1:
		return gym.Refuse("bad_query", "give one of email, phone and zip")
	case !right:
		return gym.Refuse("denied", "that is not on file")
	}
	i := w.Grants.Len()
	w.Grants.Append(desk.Grant{ID: w.Keys.ID(desk.KindGrant, desk.Runtime, i), Customer: uint32(row)})
	t.Write(entity(desk.KindGrant, i), desk.FieldMade, 1, 0, int64(row))
	t.Record("grant", gym.Value{Type: desk.TGrant, Bits: w.Grants.At(i).ID})
	t.End()
	return nil
}

// writable is the order of a write that needs the current rev.
func writable(t *gym.Turn, revArg int) (int, error) {
	w := world(t)
	row, err := found(t, 0, w.FindOrder, "order")
	if err != nil {
		return row, err
	}
	rev, _ := t.One(revArg)
	switch {
	case rev != w.OrderRev(row):
		return row, gym.Refuse("stale", "if_rev is not the order's current rev")
	case w.Orders.At(row).Status == desk.Cancelled:
		return row, gym.Refuse("closed", "the order is cancelled")
	}
	return row, nil
}

// editOrder changes one field of an order and logs it.
func editOrder(t *gym.Turn, row int, field uint8, change func(o *desk.Order) (old, new int64)) {
	w := world(t)
	old, new := change(w.Orders.Edit(row))
	t.Write(entity(desk.KindOrder, row), field, w.Orders.Ver(row), old, new)
}

func cancelOrder(t *gym.Turn) error {
	row, err := writable(t, 2)
	if err != nil {
		return err
	}
	w := world(t)
	reason := 1 + uint8(t.IntOr(1, 0))
	editOrder(t, row, desk.FieldStatus, func(o *desk.Order) (old, new int64) {
		old, o.Was, o.Status, o.Reason = int64(o.Status), o.Status, desk.Cancelled, reason
		return old, desk.Cancelled
	})
	t.Write(entity(desk.KindOrder, row), desk.FieldReason, w.Orders.Ver(row), 0, int64(reason))
	echo(t, w, row)
	return nil
}

func changeAddress(t *gym.Turn) error {
	row, err := writable(t, 2)
	if err != nil {
		return err
	}
	w := world(t)
	a, err := found(t, 1, w.FindAddress, "address")
	if err != nil || w.Addresses.At(a).Customer != w.Orders.At(row).Customer {
		return notFound("address of that customer")
	}
	editOrder(t, row, desk.FieldAddress, func(o *desk.Order) (old, new int64) {
		old, o.Address = int64(o.Address), uint32(a)
		return old, int64(a)
	})
	echo(t, w, row)
	return nil
}

func exchangeLine(t *gym.Turn) error {
	row, err := writable(t, 3)
	if err != nil {
		return err
	}
	w := world(t)
	i, err := found(t, 1, w.FindLine, "line")
	if err != nil || w.Lines.At(i).Order != uint32(row) {
		return notFound("line of that order")
	}
	v, err := found(t, 2, w.FindVariant, "variant")
	if err != nil || w.Variants.At(v).Product != w.Variants.At(int(w.Lines.At(i).Variant)).Product {
		return notFound("variant of that product")
	}
	l := w.Lines.Edit(i)
	e, ver := entity(desk.KindLine, i), w.Lines.Ver(i)
	t.Write(e, desk.FieldVariant, ver, int64(l.Variant), int64(v))
	t.Write(e, desk.FieldExchanged, ver, int64(l.Exchanged), int64(l.Exchanged)+1)
	l.Variant = uint32(v)
	l.Exchanged++
	editOrder(t, row, desk.FieldLines, func(o *desk.Order) (old, new int64) {
		o.Changes++
		return int64(o.Changes) - 1, int64(o.Changes)
	})
	echo(t, w, row)
	return nil
}

func issueRefund(t *gym.Turn) error {
	w := world(t)
	q, _ := t.One(0)
	row, lines, until, ok := w.OpenQuote(q)
	if !ok {
		return notFound("valid quote")
	}
	g, err := found(t, 1, w.FindGrant, "verification")
	if err != nil || w.Grants.At(g).Customer != w.Orders.At(row).Customer {
		return notFound("verification of that customer")
	}
	if t.Clock() > until {
		return gym.Refuse("expired", "the quote has lapsed")
	}
	if lines == 0 {
		return gym.Refuse("closed", "the quote is over nothing")
	}
	for i := range w.Lines.Len() {
		if l := w.Lines.At(i); l.Order == uint32(row) && lines>>l.Position&1 == 1 {
			w.Lines.Edit(i).Refunded = 1
			t.Write(entity(desk.KindLine, i), desk.FieldRefunded, w.Lines.Ver(i), 0, 1)
		}
	}
	editOrder(t, row, desk.FieldLines, func(o *desk.Order) (old, new int64) {
		o.Changes++
		return int64(o.Changes) - 1, int64(o.Changes)
	})
	echo(t, w, row)
	return nil
}

func reserve(t *gym.Turn) error {
	w := world(t)
	row, err := found(t, 0, w.FindVariant, "variant")
	if err != nil {
		return err
	}
	site, n := t.IntOr(1, 0), t.IntOr(2, 1)
	have := int64(w.Variants.At(row).Stock[site])
	if have < n {
		return gym.Refuse("no_stock", "the site has fewer")
	}
	w.Variants.Edit(row).Stock[site] -= int16(n)
	t.Write(entity(desk.KindVariant, row), desk.FieldStock, w.Variants.Ver(row), have, have-n)
	i := w.Holds.Len()
	w.Holds.Append(desk.Hold{ID: w.Keys.ID(desk.KindHold, desk.Runtime, i), Variant: uint32(row), Site: uint8(site), N: uint8(n), Open: true})
	t.Write(entity(desk.KindHold, i), desk.FieldMade, 1, 0, int64(row))
	t.Record("hold", gym.Value{Type: desk.THold, Bits: w.Holds.At(i).ID})
	t.Int("qty", n)
	t.End()
	return nil
}

func release(t *gym.Turn) error {
	w := world(t)
	i, err := found(t, 0, w.FindHold, "hold")
	if err != nil {
		return err
	}
	if !w.Holds.At(i).Open {
		return gym.Refuse("closed", "the hold was released before")
	}
	h := w.Holds.Edit(i)
	h.Open = false
	t.Write(entity(desk.KindHold, i), desk.FieldOpen, w.Holds.Ver(i), 1, 0)
	v := w.Variants.Edit(int(h.Variant))
	t.Write(entity(desk.KindVariant, int(h.Variant)), desk.FieldStock, w.Variants.Ver(int(h.Variant)),
		int64(v.Stock[h.Site]), int64(v.Stock[h.Site])+int64(h.N))
	v.Stock[h.Site] += int16(h.N)
	t.Record("hold", gym.Value{Type: desk.THold, Bits: h.ID})
	t.End()
	return nil
}

func openTicket(t *gym.Turn) error {
	w := world(t)
	queue, code := t.IntOr(0, 0), t.IntOr(2, 0)
	subject, _ := t.One(1)
	kind, row := desk.KindOrder, -1
	if subject.Type == desk.TCustomer {
		kind = desk.KindCustomer
		row = w.FindCustomer(subject)
	} else {
		row = w.FindOrder(subject)
	}
	if row < 0 {
		return notFound("subject")
	}
	i := w.Tickets.Len()
	w.Tickets.Append(desk.Ticket{ID: w.Keys.ID(desk.KindTicket, desk.Runtime, i), Subject: uint32(row), Kind: kind,
		Queue: uint8(queue), Code: uint8(code)})
	e := entity(desk.KindTicket, i)
	t.Write(e, desk.FieldMade, 1, 0, int64(row))
	t.Write(e, desk.FieldQueue, 1, 0, queue)
	t.Write(e, desk.FieldCode, 1, 0, code)
	if kind == desk.KindOrder {
		editOrder(t, row, desk.FieldTickets, func(o *desk.Order) (old, new int64) {
			o.Tickets++
			return int64(o.Tickets) - 1, int64(o.Tickets)
		})
	}
	t.Record("ticket", gym.Value{Type: desk.TTicket, Bits: w.Tickets.At(i).ID})
	t.Show("queue", desk.Word(desk.TQueue, int(queue)))
	t.Show("code", desk.Word(desk.TCode, int(code)))
	t.End()
	return nil
}

// momentLayout spells a moment with its offset from UTC.
const momentLayout = "2006-01-02T15:04Z07:00"

func convert(t *gym.Turn) error {
	x, _ := t.One(0)
	to := t.IntOr(1, 0)
	if to == desk.UTCDay {
		at, err := time.Parse(momentLayout, x.Text)
		if err != nil {
			return gym.Refuse("bad_query", "a moment is spelled like 2031-05-04T03:10+09:00")
		}
		t.Show("day", desk.Text(desk.TDay, at.UTC().Format(time.DateOnly)))
		return nil
	}
	amount, unit, _ := strings.Cut(x.Text, " ")
	v, err := strconv.ParseFloat(amount, 64)
	factor := 0.0
	switch {
	case unit == "lb" && to == desk.Kilograms:
		factor = 0.45359237
	case unit == "kg" && to == desk.Pounds:
		factor = 1 / 0.45359237
	case unit == "in" && to == desk.Centimetres:
		factor = 2.54
	case unit == "cm" && to == desk.Inches:
		factor = 1 / 2.54
	}
	if err != nil || factor == 0 {
		return gym.Refuse("bad_query", "that does not convert to the unit")
	}
	t.Show("measure", desk.Text(desk.TMeasure, strconv.FormatFloat(v*factor, 'f', 2, 64)+" "+desk.Types[desk.TUnit].Enum[to]))
	return nil
}

func wait(t *gym.Turn) error {
	t.Wait(t.IntOr(0, 1))
	t.Int("now", t.Clock())
	return nil
}

func finish(t *gym.Turn) error {
	t.Say("case", "closed")
	return nil
}

package tooluse

import (
	"provegym/gym"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/desk"
)

var actNames = [...]string{check.Cancel: "cancel", check.Readdress: "readdress", check.Exchange: "exchange",
	check.Escalate: "escalate", check.Refuse: "refuse"}

// What an instruction asks for, as Goal numbers it. A complaint's act is the policy's to name.
const (
	wantCancel = iota + 1
	wantReaddress
	wantExchange
	wantPolicy
)

// Places of the instruction's parameters in Built.Goal. Words are 1 + their index, 0 for not stated.
const (
	goalWant   = iota // wantCancel …
	goalScope         // 1 one order, 2 every order that matches
	goalSource        // 1 an id is given, 2 a customer is described, 3 the one who referred the customer described
	goalMoment        // 1 if a moment stands for the day
	goalReason
	goalQueue
	goalCode
	goalTopic
	goalItem
	goalSite
	goalStatus
	goalTier
	goalCity
)

// frames are the ways to say the same. %o is the order or orders, %a the action as a verb phrase, %c how to close.
var frames = map[string][]string{
	"single": {
		"Please %a: %o. %c",
		"A request has come in about %o. What to do: %a. %c",
		"Please look up %o and see to this: %a. %c",
		"Case for the desk. Subject: %o. Request: %a. %c",
	},
	"every": {
		"Please %a, for each of %o, and touch no other order. %c",
		"This goes for %o, all of them and no others: %a. %c",
		"Work through %o. For every one: %a. Leave every other order as it is. %c",
		"Case for the desk. Subject: %o, the whole set. Request: %a. %c",
	},
	"complaint": {
		"There is a complaint about %o. %a. %c",
		"Handle a complaint about %o as the policy has it. %a. %c",
		"A customer is unhappy with %o. %a. %c",
		"Case for the desk. Subject: complaint about %o. %a. %c",
	},
}

func word(t gym.TypeID, i uint8) string { return desk.Types[t].Enum[i] }

// instruction writes the task in one of the frames of its kind, all from the spec.
func (d *draft) instruction() string {
	kind := "single"
	switch {
	case d.spec.Set:
		kind = "every"
	case d.spec.Policy >= 0:
		kind = "complaint"
	}
	s := d.key.Sub("frames").Stream()
	frame := gym.Pick(&s, frames[kind])
	b := make([]byte, 0, 640)
	for i := 0; i < len(frame); i++ {
		if frame[i] != '%' {
			b = append(b, frame[i])
			continue
		}
		i++
		switch frame[i] {
		case 'o':
			b = d.sayOrders(b)
		case 'a':
			b = d.sayAction(b)
		case 'c':
			b = d.sayClose(b)
		}
	}
	return string(b)
}

func (d *draft) sayOrders(b []byte) []byte {
	m := &d.cast.model
	item := word(desk.TItem, m.Item)
	byIDs := d.set.indirection == byID
	switch {
	case d.spec.Set:
		b = append(b, "the "...)
		if d.cast.moment == "" {
			b = append(append(b, word(desk.TStatus, m.Status)...), ' ')
		}
		b = append(append(b, "orders for a "...), item...)
	case byIDs:
		b = append(append(b, "the order "...), d.pack().Spell(d.w.OrderID(int(d.spec.Orders[0])))...)
		return append(append(b, " for a "...), item...)
	default:
		b = append(append(b, "the order for a "...), item...)
	}
	if d.cast.moment != "" {
		b = append(append(b, ", placed on the UTC day of "...), d.cast.moment...)
	} else if !d.spec.Set {
		b = append(append(append(b, " shipped from the "...), word(desk.TSite, m.Site)...), " site"...)
	}
	b = append(b, ", of "...)
	if byIDs {
		return append(append(b, "customer "...), d.pack().Spell(d.w.CustomerID(owner))...)
	}
	c := d.w.Customers.At(int(d.spec.Known))
	if d.set.indirection >= byRelation {
		b = append(b, "the customer who referred "...)
	}
	b = append(append(append(b, c.Name()...), ", zip "...), c.ZipText()...)
	b = append(append(append(b, ", a "...), word(desk.TTier, c.Tier)...), " customer in "...)
	return append(b, word(desk.TCity, c.City)...)
}

func (d *draft) pack() *gym.Pack { return d.task.Pack }

func (d *draft) sayAction(b []byte) []byte {
	s := d.spec
	if s.Policy >= 0 {
		b = append(append(b, "Do what the "...), word(desk.TTopic, d.cast.topic)...)
		b = append(b, " policy prescribes for the order's status and nothing else: cancel (reason "...)
		b = append(append(b, word(desk.TReason, s.Reason)...), "), exchange the "...)
		b = append(append(b, word(desk.TItem, d.cast.model.Item)...), " line for the same variant, escalate (ticket in the "...)
		b = append(append(b, word(desk.TQueue, s.Queue)...), " queue with the policy's code), or refuse"...)
		return b
	}
	switch s.Act {
	case check.Cancel:
		return append(append(b, "cancel with reason "...), word(desk.TReason, s.Reason)...)
	case check.Readdress:
		return append(append(b, "send to the address on file at "...), d.w.Addresses.At(int(s.Address)).StreetText()...)
	}
	return append(append(append(b, "exchange the "...), word(desk.TItem, d.cast.model.Item)...), " line for the same variant"...)
}

func (d *draft) sayClose(b []byte) []byte {
	s := d.spec
	switch {
	case s.Policy >= 0:
		return append(b, "After a change read the order again. Finish with outcome done, or refused if the policy refuses, with the code that the "+
			"policy gives for the status the order had, and cite the order's rev as it then stands."...)
	case s.Set:
		b = append(b, "Read the orders again when all is done. Finish with outcome done and code "...)
		return append(append(b, word(desk.TCode, s.Code)...), ", and cite the orders that you changed."...)
	}
	b = append(b, "Read the order again after the change. Finish with outcome done and code "...)
	return append(append(b, word(desk.TCode, s.Code)...), ", and cite the order's rev after the change."...)
}

// describe gives the instruction's parameters as pins and numbers: what the text says and no more.
func (d *draft) describe(b *gym.Built) {
	s, m, g := d.spec, &d.cast.model, &b.Goal
	pins := make([]gym.Pin, 0, 8)
	pin := func(role string, v gym.Value) { pins = append(pins, gym.Pin{Role: role, Value: v}) }
	switch {
	case s.Policy >= 0:
		g[goalWant], g[goalReason], g[goalQueue], g[goalTopic] = wantPolicy, float32(1+s.Reason), float32(1+s.Queue), float32(1+d.cast.topic)
	case s.Act == check.Cancel:
		g[goalWant], g[goalReason] = wantCancel, float32(1+s.Reason)
	case s.Act == check.Readdress:
		g[goalWant] = wantReaddress
		pin("street", desk.Text(desk.TStreet, d.w.Addresses.At(int(s.Address)).StreetText()))
	default:
		g[goalWant] = wantExchange
	}
	if s.Policy < 0 {
		g[goalCode] = float32(1 + s.Code)
	}
	g[goalScope] = 1
	if s.Set {
		g[goalScope] = 2
	}
	g[goalItem] = float32(1 + m.Item)
	pin("item", desk.Word(desk.TItem, m.Item))
	switch {
	case d.cast.moment != "":
		g[goalMoment] = 1
		pin("moment", desk.Text(desk.TMeasure, d.cast.moment))
	case s.Set:
		g[goalStatus] = float32(1 + m.Status)
		pin("status", desk.Word(desk.TStatus, m.Status))
	case d.set.indirection != byID:
		g[goalSite] = float32(1 + m.Site)
		pin("site", desk.Word(desk.TSite, m.Site))
	}
	switch {
	case d.set.indirection != byID:
		c := d.w.Customers.At(int(s.Known))
		g[goalSource] = 2
		if d.set.indirection >= byRelation {
			g[goalSource] = 3
		}
		g[goalTier], g[goalCity] = float32(1+c.Tier), float32(1+c.City)
		pin("name", desk.Text(desk.TName, c.Name()))
		pin("zip", desk.Text(desk.TZip, c.ZipText()))
		pin("tier", desk.Word(desk.TTier, c.Tier))
		pin("city", desk.Word(desk.TCity, c.City))
	case s.Set:
		g[goalSource] = 1
		pin("customer", d.w.CustomerID(owner))
	default:
		g[goalSource] = 1
		pin("order", d.w.OrderID(int(s.Orders[0])))
	}
	b.Pins = pins
}

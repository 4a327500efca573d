// Package check is what the reward of an orders-desk episode is made of: predicates over the first world, the last world and
// the call log. It imports no audit, and the agent never sees it.
package check

import (
	"provegym/gym"
	"provegym/packs/tooluse/desk"
)

// Act is what a task wants done to each of its orders.
type Act uint8

const (
	Cancel    Act = iota + 1
	Readdress     // send it to Spec.Address
	Exchange      // the line Spec.Line, for the same variant
	Escalate      // a ticket about it in Spec.Queue
	Refuse        // nothing, and to say so
)

// Spec is what one task is made from: instruction, gold, check, allowed writes, plan and controls all come from it.
type Spec struct {
	Act     Act
	Orders  []uint32 // rows of the orders that the act is for
	Line    uint32
	Address uint32
	Reason  uint8
	Queue   uint8
	Code    uint8 // to close with
	Policy  int   // row of the policy that decides, -1 if the instruction decides
	Set     bool  // the finish cites the orders themselves, not the rev of the only one

	Known  uint32 // row of the customer whom the instruction describes
	Decoys Decoys
}

// Decoys are what a careless agent would act on instead, for controls.
type Decoys struct {
	Own     int // row of the nearest other order of the owner, -1 if there is none
	Foreign int // row of the nearest order of anybody else, -1 if there is none
	Address int // row of an address of the owner that the first order neither has nor shall get
}

// Parameters of the finish tool, by index.
const (
	ArgOutcome = iota
	ArgCode
	ArgEvidence
)

// Outcome returns the outcome that a right finish names.
func (s *Spec) Outcome() uint8 {
	if s.Act == Refuse {
		return desk.Refused
	}
	return desk.Done
}

// Field returns the field of an order that the act changes.
func (s *Spec) Field() uint8 {
	switch s.Act {
	case Readdress:
		return desk.FieldAddress
	case Exchange:
		return desk.FieldLines
	case Escalate:
		return desk.FieldTickets
	}
	return desk.FieldStatus
}

// Evidence returns what a right finish cites in world w.
func (s *Spec) Evidence(w *desk.World) []gym.Value {
	if !s.Set {
		return []gym.Value{w.OrderRev(int(s.Orders[0]))}
	}
	out := make([]gym.Value, len(s.Orders))
	for i, o := range s.Orders {
		out[i] = w.OrderID(int(o))
	}
	return out
}

// Check returns the checks of the task.
func (s *Spec) Check() gym.Check {
	c := gym.Check{
		Goals:      []gym.Predicate{{Name: "acted", Holds: s.acted}},
		Path:       []gym.Predicate{{Name: "read_current_before_write", Holds: s.readCurrent}},
		Collateral: gym.Predicate{Name: "only_allowed_writes", Holds: s.onlyAllowed},
		Commit:     gym.Predicate{Name: "finish", Holds: s.committed},
	}
	if s.Act == Refuse {
		c.Goals = []gym.Predicate{{Name: "refused", Holds: refused}, {Name: "untouched", Holds: s.untouched}}
		c.Path = []gym.Predicate{{Name: "read_case", Holds: s.readCase}}
	} else {
		c.Path = append(c.Path, gym.Predicate{Name: "confirmed", Holds: s.confirmed})
	}
	if s.Act == Readdress {
		c.Path = append(c.Path, gym.Predicate{Name: "read_street_before_write", Holds: s.readStreet})
	}
	if s.Policy >= 0 {
		c.Path = append(c.Path, gym.Predicate{Name: "read_policy_before_decision", Holds: s.readPolicy})
	}
	return c
}

func last(e *gym.Evidence) *desk.World { return e.Last.(*desk.World) }

func (s *Spec) acted(e *gym.Evidence) bool {
	w := last(e)
	for _, o := range s.Orders {
		r := w.Orders.At(int(o))
		ok := false
		switch s.Act {
		case Cancel:
			ok = r.Status == desk.Cancelled && r.Reason == 1+s.Reason
		case Readdress:
			ok = r.Address == s.Address && r.Status != desk.Cancelled
		case Exchange:
			was := e.First.(*desk.World).Lines.At(int(s.Line))
			now := w.Lines.At(int(s.Line))
			ok = now.Exchanged == was.Exchanged+1 && now.Variant == was.Variant && r.Status != desk.Cancelled
		case Escalate:
			ok = r.Tickets == 1 && r.Status != desk.Cancelled && s.ticketed(w, o)
		}
		if !ok {
			return false
		}
	}
	return true
}

func (s *Spec) ticketed(w *desk.World, order uint32) bool {
	for i := range w.Tickets.Len() {
		t := w.Tickets.At(i)
		if t.Kind == desk.KindOrder && t.Subject == order && t.Queue == s.Queue && t.Code == s.Code {
			return true
		}
	}
	return false
}

// refused is the positive act that a refusal needs: it cannot hold before the finish.
func refused(e *gym.Evidence) bool {
	return e.Finish != nil && e.Finish.Arg(ArgOutcome)[0].Bits == desk.Refused
}

func (s *Spec) untouched(e *gym.Evidence) bool {
	return last(e).Orders.Ver(int(s.Orders[0])) == e.First.(*desk.World).Orders.Ver(int(s.Orders[0]))
}

func orderEntity(row uint32) gym.Entity { return gym.Entity{Kind: desk.KindOrder, Row: row} }

// readCurrent: whoever wrote an order of the task had seen its status at the version that they wrote against.
func (s *Spec) readCurrent(e *gym.Evidence) bool {
	for i := range e.Log.Len() {
		for _, a := range e.Log.At(i).Writes {
			if a.Entity.Kind == desk.KindOrder && !e.Log.Saw(a.Entity, desk.FieldStatus, a.Ver-1, i) {
				return false
			}
		}
	}
	return true
}

// confirmed: the change was read back, in each order, before the finish.
func (s *Spec) confirmed(e *gym.Evidence) bool {
	w := last(e)
	for _, o := range s.Orders {
		if !e.Log.Saw(orderEntity(o), s.Field(), w.Orders.Ver(int(o)), e.Log.Len()) {
			return false
		}
	}
	return true
}

// decision is the number of the call that decides: the first write, or the finish.
func decision(l *gym.Log) int {
	for i := range l.Len() {
		if len(l.At(i).Writes) > 0 {
			return i
		}
	}
	return l.Len() - 1
}

func (s *Spec) readCase(e *gym.Evidence) bool {
	o := s.Orders[0]
	return e.Log.Saw(orderEntity(o), desk.FieldStatus, last(e).Orders.Ver(int(o)), decision(e.Log))
}

func (s *Spec) readPolicy(e *gym.Evidence) bool {
	p := gym.Entity{Kind: desk.KindPolicy, Row: uint32(s.Policy)}
	return e.Log.Saw(p, desk.FieldRules, last(e).Policies.Ver(s.Policy), decision(e.Log))
}

func (s *Spec) readStreet(e *gym.Evidence) bool {
	a := gym.Entity{Kind: desk.KindAddress, Row: s.Address}
	return e.Log.Saw(a, desk.FieldStreet, last(e).Addresses.Ver(int(s.Address)), decision(e.Log))
}

// onlyAllowed: every write of the log is one that the act consists of, and none was made twice. A wrong write that was
// repaired is still in the log.
func (s *Spec) onlyAllowed(e *gym.Evidence) bool {
	writes := e.Log.Writes()
	for i, a := range writes {
		if !s.allows(e, a) {
			return false
		}
		for _, b := range writes[:i] {
			if a.Entity == b.Entity && a.Field == b.Field {
				return false
			}
		}
	}
	return true
}

func (s *Spec) allows(e *gym.Evidence, a gym.Access) bool {
	switch a.Entity.Kind {
	case desk.KindOrder:
		target := false
		for _, o := range s.Orders {
			target = target || o == a.Entity.Row
		}
		if !target {
			return false
		}
		switch {
		case s.Act == Cancel && a.Field == desk.FieldStatus:
			return a.New == desk.Cancelled
		case s.Act == Cancel && a.Field == desk.FieldReason:
			return a.New == 1+int64(s.Reason)
		case s.Act == Readdress && a.Field == desk.FieldAddress:
			return a.New == int64(s.Address)
		case s.Act == Exchange && a.Field == desk.FieldLines, s.Act == Escalate && a.Field == desk.FieldTickets:
			return true
		}
	case desk.KindLine:
		switch {
		case s.Act != Exchange || a.Entity.Row != s.Line:
			return false
		case a.Field == desk.FieldVariant:
			return a.New == a.Old
		}
		return a.Field == desk.FieldExchanged
	case desk.KindTicket:
		switch {
		case s.Act != Escalate:
			return false
		case a.Field == desk.FieldMade:
			return a.New == int64(s.Orders[0]) && last(e).Tickets.At(int(a.Entity.Row)).Kind == desk.KindOrder
		case a.Field == desk.FieldQueue:
			return a.New == int64(s.Queue)
		}
		return a.Field == desk.FieldCode && a.New == int64(s.Code)
	}
	return false
}

func (s *Spec) committed(e *gym.Evidence) bool {
	f := e.Finish
	if f == nil || f.Arg(ArgOutcome)[0].Bits != uint64(s.Outcome()) || f.Arg(ArgCode)[0].Bits != uint64(s.Code) {
		return false
	}
	want, got := s.Evidence(last(e)), f.Arg(ArgEvidence)
	if len(got) != len(want) {
		return false
	}
	for _, v := range want {
		found := false
		for _, g := range got {
			found = found || g == v
		}
		if !found {
			return false
		}
	}
	return true
}

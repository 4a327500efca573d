package world

import (
	"math"

	"provegym/gym"
)

// Weather is what goes wrong or happens unasked, and how often. What happens at a call is a function of the world's keys and of
// that call's node (tool and arguments), never of how many calls were made: an agent's extra calls shift nothing.
type Weather struct {
	FaultRate float64 // share of nodes that fail at their first attempt, where all classes are in
	Class     int32   // 0 explicit transient faults, 1 implicit ones too, 2 permanent ones too
	Salt      uint64
}

func (x *Weather) appendDigest(d *gym.Digester) {
	d.Int(int64(math.Float64bits(x.FaultRate)))
	d.Int(int64(x.Class))
	d.Int(int64(x.Salt))
}

// Values of a subject's Event: another desk changes it at the first change that would go through.
const (
	NoEvent = iota
	EventDue
	EventOver
)

// Values of a subject's Down: what fails for good.
const (
	NothingDown = iota
	ChangesDown
	HandOverDown
)

// Kind is one kind of fault.
type Fault uint8

const (
	NoFault       Fault = iota
	TimeoutBefore       // no answer, no effect
	TimeoutAfter        // no answer, but the effect
	TooMany             // refused until BusyTicks have passed
	PartialPage         // rows and has_more lost, total kept
	Truncated           // required fields missing
	StaleRead           // an older as_of and rev
	SilentNoOp          // looks done, changes nothing
	NearMatch           // somebody else is found: the key field differs from the query
	Drift               // the form changes for good, and says so by its number
	ForGood             // the change is impossible, with an incident as proof
	NumFaults
)

// FaultNames spells the kinds, for reports.
var FaultNames = [NumFaults]string{"none", "timeout_before_effect", "timeout_after_effect", "too_many_requests", "partial_page",
	"truncated_record", "stale_read", "silent_no_op", "near_match", "schema_drift", "failed_for_good"}

// BusyTicks is how long a tool stays busy.
const BusyTicks = 3

// class is the least class of weather that has a kind.
var class = [NumFaults]int32{PartialPage: 1, Truncated: 1, StaleRead: 1, SilentNoOp: 1, NearMatch: 1, Drift: 2, ForGood: 2}

// can says which faults an op may have. ForGood is no matter of chance at the call: see Subject.Down.
var can = [NumOps][]Fault{
	FindHolder:   {TimeoutBefore, TooMany, PartialPage, NearMatch},
	GetHolder:    {TimeoutBefore, TooMany, Truncated},
	ListSubjects: {TimeoutBefore, TooMany, PartialPage},
	GetSubject:   {TimeoutBefore, TooMany, Truncated, StaleRead, Drift},
	FindGood:     {TimeoutBefore, TooMany, PartialPage},
	GetGood:      {TimeoutBefore, TooMany, Truncated},
	GetPolicy:    {TimeoutBefore, TooMany},
	ListOptions:  {TimeoutBefore, TooMany, PartialPage},
	GetOption:    {TimeoutBefore, TooMany},
	Allow:        {TimeoutBefore, TimeoutAfter, TooMany},
	Drop:         {TimeoutBefore, TimeoutAfter, TooMany, SilentNoOp},
	Move:         {TimeoutBefore, TimeoutAfter, TooMany, SilentNoOp},
	Swap:         {TimeoutBefore, TimeoutAfter, TooMany, SilentNoOp},
	Reserve:      {TimeoutBefore, TimeoutAfter, TooMany},
	Release:      {TimeoutBefore, TooMany},
	HandOver:     {TimeoutBefore, TimeoutAfter, TooMany},
}

// Node names a call: its tool and arguments.
type Node struct {
	Op   int
	Hash uint64
}

// FaultAt returns the fault of the first attempt at a node.
func (w *World) FaultAt(n Node) Fault {
	x := &w.Weather
	if x.FaultRate == 0 || w.Keys.Luck(n.Hash^x.Salt<<56) >= x.FaultRate {
		return NoFault
	}
	// The kind does not depend on the class: a higher one only lets more of them be.
	kinds := can[n.Op]
	if len(kinds) == 0 {
		return NoFault
	}
	f := kinds[int(w.Keys.Luck(n.Hash^x.Salt<<56^1<<50)*float64(len(kinds)))]
	if class[f] > x.Class || f == Drift && w.Schema == 2 {
		return NoFault
	}
	return f
}

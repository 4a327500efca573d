// Package world is the state that a case lives in: records of some fifteen roles, what tools add to them, and what has
// happened unasked. Three domains (orders desk, workspace, ops desk) give the roles their names, words and tools; the records
// are the same. It knows no task.
//
// Read on in: schema.go (what a domain is), orders.go, workspace.go, ops.go (three of them), ids.go.
package world

import (
	"strconv"
	"time"

	"provegym/gym"
)

// Role is what a record is in a case. An Entity's Kind is its role.
type Role uint8

const (
	Holder   Role = iota + 1 // a customer, a person, a service
	Place                    // of a holder: an address, a slot, a host
	Subject                  // of a holder; what work is about: an order, an event, a deployment
	Part                     // of a subject: a line, an attachment, a component
	Good                     // what parts are made of: a product, a document, a package
	Version                  // of a good: a variant, a revision, a build
	Policy                   // says by a subject's status what to do
	Option                   // what can be booked: a depot, a room, a pool
	Ticket                   // made: a case handed to a queue
	Booking                  // made: a share of an option
	Permit                   // made: leave to work on a holder's subjects
	Incident                 // made: proof that a change is impossible
	Message                  // about a subject: an amendment of the case
	Setting                  // a switch that may block changes
	Notice                   // on the board
	NumRoles
)

// Fields of records: indices of Record.F. What reads and writes of the call log name is 1 + index, see Log.
const (
	First, Last, Zip, Tier, City, Sponsor, Digits, Mail = 0, 1, 2, 3, 4, 5, 6, 7 // of a holder; Sponsor is a reference
	HolderNote                                          = 8

	House, Street = 0, 1 // of a place

	Status, Was, Reason, Item, Site, Day, At, Total = 0, 1, 2, 3, 4, 5, 6, 7 // of a subject; At refers to a place
	Changes, Tickets, Hold, Follows, Note           = 8, 9, 10, 11, 12       // Hold is 1 + code, Follows a reference
	Event, Down, NextHold                           = 13, 14, 15             // never shown, see weather.go

	PartItem, PartVersion, Swaps = 0, 1, 2 // of a part; PartVersion refers to a version

	GoodItem, Price = 0, 1 // of a good
	Size            = 0    // of a version

	Topic, Remedy, Code = 0, 1, 5 // of a policy: a remedy and a code for each of NumActive statuses

	Area, Cost, Capacity, Lead, Used = 0, 1, 2, 3, 4 // of an option

	TicketQueue, TicketCode  = 0, 1 // of a ticket
	Amount, Open             = 0, 1 // of a booking
	IncidentCode, Impossible = 0, 1 // of an incident; what was asked for: 1 + the word or row

	NewReason, NewQueue, NewCode, NewPlace, NewSize, NoSearch = 0, 1, 2, 3, 4, 5 // of a message: 1 + word or row, 0 for nothing

	Key, On, Blocks = 0, 1, 2 // of a setting
	Number          = 0       // of a notice

	Made   = 30 // field of the log only: the record came to be, New is 1 + row of what it is about
	Listed = 31 // field of the log only: a list showed the record

	width = 16
)

// Log returns the number by which the call log names a field.
func Log(field int) uint8 { return uint8(1 + field) }

// Statuses of a subject, as indices of the status words. The first NumActive are those of one that can still change, and those
// that a policy has a rule for.
const (
	NumActive = 4
	Dropped   = 4
)

// Remedies that a policy may prescribe, as indices of the remedy words.
const (
	RemedyDrop = iota
	RemedySwap
	RemedyEscalate
	RemedyRefuse
)

// Outcomes of a finish, as indices of the outcome type.
const (
	Done = iota
	Blocked
	Refused
)

// Units that convert goes to, as indices of the unit type.
const (
	UTCDay = iota
	Kilograms
	Pounds
	Centimetres
	Inches
)

// Faults that a result may name, as indices of the fault type.
const (
	Timeout = iota
	Busy
	Conflict
	FailedForGood
)

// Origin says why a record is in the world. It is never shown.
type Origin uint8

const (
	Noise  Origin = iota // there because a world has more in it
	Decoy                // resembles what is needed
	Needed               // the plan reads or writes it
)

// Record is one record of any role.
type Record struct {
	ID     uint64
	Up     uint32 // 1 + row of what it belongs to, 0 for nothing
	Role   Role
	Origin Origin
	Gone   bool // taken out: no tool finds it
	F      [width]int32
}

// Cue remembers that something has come up unasked: node is the call that it came up at.
type Cue struct {
	Node  uint64
	Since int64
}

// World is the state of a case.
type World struct {
	Keys    Keys
	Domain  *Domain
	Schema  int32 // 1, or 2 once the form of records has changed
	Weather Weather
	Records gym.Table[Record]
	Cues    gym.Table[Cue]
}

// New returns a world of a domain with no records and room for a common number of them.
func New(d *Domain, k Keys) *World {
	return &World{Keys: k, Domain: d, Schema: 1, Weather: Weather{}, Records: gym.NewTable(make([]Record, 0, 160)), Cues: gym.NewTable[Cue](nil)}
}

// Clone returns an independent copy.
func (w *World) Clone() gym.World {
	return &World{w.Keys, w.Domain, w.Schema, w.Weather, w.Records.Clone(), w.Cues.Clone()}
}

// CopyFrom makes w equal to src, which is a *World.
func (w *World) CopyFrom(src gym.World) {
	s := src.(*World)
	w.Keys, w.Domain, w.Schema, w.Weather = s.Keys, s.Domain, s.Schema, s.Weather
	w.Records.CopyFrom(&s.Records)
	w.Cues.CopyFrom(&s.Cues)
}

// AppendDigest adds the whole state.
func (w *World) AppendDigest(d *gym.Digester) {
	w.Keys.appendDigest(d)
	d.Text(w.Domain.Name)
	d.Int(int64(w.Schema))
	w.Weather.appendDigest(d)
	w.Records.AppendDigest(d)
	w.Cues.AppendDigest(d)
}

// At returns a record for reading; the pointer is valid until the next record is made.
func (w *World) At(row int) *Record { return w.Records.At(row) }

// Add appends a record and returns its row.
func (w *World) Add(r Record) int { return w.Records.Append(r) }

// Each calls f for the rows of a role, in order, until it returns false.
func (w *World) Each(r Role, f func(row int, rec *Record) bool) {
	for i := range w.Records.Len() {
		if rec := w.Records.At(i); rec.Role == r && !rec.Gone && !f(i, rec) {
			return
		}
	}
}

// Of returns the rows of a role that belong to a row.
func (w *World) Of(r Role, up int) (rows []int) {
	w.Each(r, func(row int, rec *Record) bool {
		if rec.Up == uint32(up+1) {
			rows = append(rows, row)
		}
		return true
	})
	return rows
}

// Find returns the row of the record that a value names, or -1.
func (w *World) Find(v gym.Value) int {
	for i := range w.Records.Len() {
		if rec := w.Records.At(i); rec.ID == v.Bits && !rec.Gone {
			return i
		}
	}
	return -1
}

// Lookup returns the row of the first record of a role whose field 0 is x, or -1: policies, settings and notices have no id to
// find them by.
func (w *World) Lookup(r Role, x int32) int {
	found := -1
	w.Each(r, func(row int, rec *Record) bool {
		if rec.F[0] == x {
			found = row
		}
		return found < 0
	})
	return found
}

// Entity names a record for the call log.
func (w *World) Entity(row int) gym.Entity {
	return gym.Entity{Kind: uint8(w.At(row).Role), Row: uint32(row)}
}

// ID returns the id of a record as a value.
func (w *World) ID(row int) gym.Value {
	rec := w.At(row)
	return gym.Value{Type: w.Domain.TypeOf(rec.Role), Bits: rec.ID}
}

// Rev returns the rev of a record at its current version; a subject's covers its parts.
func (w *World) Rev(row int) gym.Value { return w.RevAt(row, w.Records.Ver(row)) }

// RevAt returns the rev of a record at a version.
func (w *World) RevAt(row int, ver uint32) gym.Value {
	rec := w.At(row)
	return gym.Value{Type: TRev, Bits: w.Keys.revBits(rec.Role, rec.ID, ver)}
}

// Ref returns the row that a reference field names, or -1.
func (rec *Record) Ref(field int) int { return int(rec.F[field]) - 1 }

// Owner returns the row that the record belongs to, or -1.
func (rec *Record) Owner() int { return int(rec.Up) - 1 }

// Cued returns when a cue came up first, and whether it has.
func (w *World) Cued(node uint64) (since int64, ok bool) {
	for i := range w.Cues.Len() {
		if c := w.Cues.At(i); c.Node == node {
			return c.Since, true
		}
	}
	return 0, false
}

// Name returns a holder's name as shown.
func (w *World) Name(rec *Record) string {
	return w.Domain.First[rec.F[First]] + w.Domain.Join + w.Domain.Last[rec.F[Last]]
}

// ZipText returns a holder's key.
func (rec *Record) ZipText() string { return strconv.Itoa(int(rec.F[Zip])) }

// StreetText returns what a place is called.
func (w *World) StreetText(row int) string {
	rec := w.At(row)
	return w.Domain.Place(int(rec.F[House]), w.Domain.Streets[rec.F[Street]])
}

// Epoch is day 0 of the calendar.
var Epoch = time.Date(2031, time.January, 1, 0, 0, 0, 0, time.UTC)

// DayText spells a day of the calendar.
func DayText(day int) string {
	return string(Epoch.AddDate(0, 0, day).AppendFormat(nil, time.DateOnly))
}

package world

import (
	"strconv"
	"strings"

	"provegym/gym"
)

// Types that all domains share.
const (
	TRev gym.TypeID = iota
	TTicket
	TBooking
	TPermit
	TIncident
	TMessage
	TSetting
	TNotice
	TName
	TZip
	TEmail
	TPhone
	TStreet
	TDay
	TMeasure
	TCode
	TOutcome
	TUnit
	TFault
	TSwitch
	TCount
	numShared
)

// Types of one domain, as offsets for Domain.T.
const (
	THolder = iota
	TPlace
	TSubject
	TPart
	TGood
	TVersion
	TPolicy
	TOption
	TTier
	TCity
	TItem
	TSite
	TStatus
	TSize
	TTopic
	TRemedy
	TReason
	TQueue
	numOwn
)

// Sizes of the word lists that generators draw from; every domain has the same.
const (
	NumItems    = 16
	NumSites    = 4
	NumCities   = 8
	NumTiers    = 4
	NumTopics   = 4
	NumCodes    = 12
	NumReasons  = 4
	NumQueues   = 4
	NumSizes    = 2
	NumSwitches = 4
	NumFirst    = 32
	NumLast     = 32
	NumMails    = 4
	NumStreets  = 16
)

// Ops of a domain, in the order of its tools.
const (
	FindHolder = iota
	GetHolder
	ListSubjects
	GetSubject
	FindGood
	GetGood
	GetPolicy
	ListOptions
	GetOption
	Allow // makes a permit
	Drop
	Move
	Swap
	Reserve
	Release
	HandOver
	NumOps
)

// Op names a tool of a domain and says what it does.
type Op struct{ Name, Doc string }

// Form says how a field's number becomes what is shown.
type Form uint8

const (
	Word     Form = iota // of an enumerated type
	Coded                // 1 + word; not shown if 0
	Plain                // a whole number
	Yes                  // true, or not shown
	Refers               // 1 + row: its id, not shown if 0
	DayOf                // a day of the calendar
	PlaceOf              // 1 + row of a place: its text
	NameOf               // the holder's name; likewise the next three
	ZipOf                //
	EmailOf              //
	PhoneOf              //
	StreetOf             // the text of a place
)

// Field is one field of a role, as results show it.
type Field struct {
	Name  string
	At    int
	Form  Form
	Type  gym.TypeID
	Short bool // in lists and echoes too
}

// Kind is what a domain makes of a role.
type Kind struct {
	Name, Plural string
	Fields       []Field
	Children     []Role // shown with it
	HasRev       bool
}

// Domain gives the roles of a world their names, words and tools.
type Domain struct {
	Name           string
	Index          int
	First, Last    []string // of holders
	Join           string   // between them
	Mails, Streets []string
	Place          func(n int, name string) string
	Ops            [NumOps]Op
	Kinds          [NumRoles]Kind
	Types          [numOwn]gym.Type
	Says           Phrases
	NeedsPermit    bool   // changes of a subject name the permit that they are made under
	Change         string // the parameter that names it
	names          fieldNames
}

// Phrases are what instructions are made of. Each is a noun or a verb phrase; "%" stands for the word that it is about.
type Phrases struct {
	Subject, Subjects string // "order", "orders"
	Holder            string // "customer"
	About             string // "the %s for a %s": subject, item
	Lies              string // "shipped from the % site"
	Placed            string // "placed on the UTC day of"
	Key               string // "zip"
	Tier              string // "a % customer in"
	Sponsor           string // "the customer who referred"
	Follows           string // "the order that it replaces"
	Drop, Move, Swap  string // verb phrases
	SwapSame          string // "for the same variant"
	SwapTo            string // "for the % variant"
	Escalate          string
	Trouble           string    // "a complaint about"
	Option, Options   string    // "depot", "depots"
	Limits            [3]string // an option's capacity, lead and area, as in "room for %"
	Permit            string    // "verify the customer"
}

// T returns the pack's type for a domain's own.
func (d *Domain) T(own int) gym.TypeID { return numShared + gym.TypeID(d.Index*numOwn+own) }

// TypeOf returns the type of the ids of a role.
func (d *Domain) TypeOf(r Role) gym.TypeID {
	switch r {
	case Ticket:
		return TTicket
	case Booking:
		return TBooking
	case Permit:
		return TPermit
	case Incident:
		return TIncident
	case Message:
		return TMessage
	case Setting:
		return TSetting
	case Notice:
		return TNotice
	}
	return d.T(int(r) - 1)
}

// Words returns the words of one of the domain's enumerated types.
func (d *Domain) Words(own int) []string { return d.Types[own].Enum }

// Domains are all there are, by index.
var Domains = []*Domain{&orders, &workspace, &ops}

// Types describes all types: the shared ones, then each domain's own.
var Types = func() []gym.Type {
	shared := [numShared]gym.Type{
		TRev:      {Name: "rev", Prefix: "r-"},
		TTicket:   {Name: "ticket", Prefix: "t-", Attrs: []string{"queue", "code"}},
		TBooking:  {Name: "booking", Prefix: "h-", Attrs: []string{"n"}},
		TPermit:   {Name: "permit", Prefix: "g-"},
		TIncident: {Name: "incident", Prefix: "i-", Attrs: []string{"code"}},
		TMessage:  {Name: "message", Prefix: "m-", Attrs: []string{"reason", "queue", "code", "place", "version", "no_search"}},
		TSetting:  {Name: "setting", Prefix: "s-"},
		TNotice:   {Name: "notice", Prefix: "n-"},
		TName:     {Name: "name", Form: gym.FormText},
		TZip:      {Name: "key", Form: gym.FormText},
		TEmail:    {Name: "email", Form: gym.FormText},
		TPhone:    {Name: "phone", Form: gym.FormText},
		TStreet:   {Name: "place", Form: gym.FormText},
		TDay:      {Name: "day", Form: gym.FormText},
		TMeasure:  {Name: "measure", Form: gym.FormText},
		TCode: {Name: "code", Form: gym.FormEnum, Enum: []string{"amber", "basalt", "cedar", "delta", "ember", "fern", "granite",
			"hazel", "indigo", "jasper", "kelp", "linden"}},
		TOutcome: {Name: "outcome", Form: gym.FormEnum, Enum: []string{"done", "blocked", "refused"}},
		TUnit:    {Name: "unit", Form: gym.FormEnum, Enum: []string{"utc_day", "kg", "lb", "cm", "in"}},
		TFault:   {Name: "fault", Form: gym.FormEnum, Enum: []string{"timeout", "busy", "conflict", "failed_for_good"}},
		TSwitch:  {Name: "switch", Form: gym.FormEnum, Enum: []string{"freeze", "quiet", "review", "sync"}},
		TCount:   {Name: "count", Form: gym.FormInt},
	}
	out := shared[:]
	for i, d := range Domains {
		d.Index = i
		out = append(out, d.Types[:]...)
	}
	for _, d := range Domains {
		d.fill(d.names)
	}
	return out
}()

// Value returns the word of an enumerated type.
func Value[I ~int | ~uint8 | ~int32](t gym.TypeID, index I) gym.Value {
	return gym.Value{Type: t, Bits: uint64(index)}
}

// Text returns the value of a text type.
func Text(t gym.TypeID, s string) gym.Value { return gym.Value{Type: t, Text: s} }

// own makes the types of a domain: opaque ones from name and prefix, enumerated ones from their words.
func own(ids [8]string, prefixes string, fields map[int][]string, words map[int]string) (out [numOwn]gym.Type) {
	for i, name := range ids {
		out[i] = gym.Type{Name: name, Prefix: prefixes[2*i : 2*i+2], Attrs: fields[i]}
	}
	names := []string{"tier", "city", "item", "site", "status", "size", "topic", "remedy", "reason", "queue"}
	for i := TTier; i < numOwn; i++ {
		out[i] = gym.Type{Name: names[i-TTier], Form: gym.FormEnum, Enum: strings.Fields(words[i])}
	}
	return out
}

// fieldNames are what a domain calls the fields that are not words of its own types.
type fieldNames struct {
	tier, city, key, sponsor         string // of a holder
	item, site, status, place, total string // of a subject
	follows                          string
	size                             string
	cost, capacity, lead, area       string
}

// fill makes the kinds of what all domains have alike, under the domain's names.
func (d *Domain) fill(n fieldNames) {
	t := d.T
	k := &d.Kinds
	k[Holder].Fields = []Field{
		{"name", First, NameOf, TName, true}, {n.tier, Tier, Word, t(TTier), true}, {n.city, City, Word, t(TCity), true},
		{n.key, Zip, ZipOf, TZip, false}, {"email", Digits, EmailOf, TEmail, false}, {"phone", Digits, PhoneOf, TPhone, false},
		{n.sponsor, Sponsor, Refers, 0, false}}
	k[Holder].Children = []Role{Place, Permit, Ticket}
	k[Place].Fields = []Field{{n.place, Street, StreetOf, TStreet, true}}
	k[Subject].Fields = []Field{
		{n.status, Status, Word, t(TStatus), true}, {n.item, Item, Word, t(TItem), true}, {n.site, Site, Word, t(TSite), true},
		{n.place, At, PlaceOf, TStreet, true}, {"changes", Changes, Plain, 0, true}, {"hold", Hold, Coded, TCode, true},
		{d.Kinds[Holder].Name, -1, Refers, 0, false}, {"day", Day, DayOf, TDay, false}, {n.total, Total, Plain, 0, false},
		{n.follows, Follows, Refers, 0, false}, {"tickets", Tickets, Plain, 0, false}, {"was", Was, Coded, t(TStatus), true}}
	k[Subject].Children = []Role{Part, Message, Ticket}
	k[Part].Fields = []Field{{n.item, PartItem, Word, t(TItem), true}, {k[Version].Name, PartVersion, Refers, 0, true},
		{"changed", Swaps, Plain, 0, true}}
	k[Good].Fields = []Field{{n.item, GoodItem, Word, t(TItem), true}, {"price", Price, Plain, 0, false}}
	k[Good].Children = []Role{Version}
	k[Version].Fields = []Field{{n.size, Size, Word, t(TSize), true}}
	k[Policy].Fields = []Field{{"topic", Topic, Word, t(TTopic), true}}
	for s, word := range d.Words(TStatus)[:NumActive] {
		k[Policy].Fields = append(k[Policy].Fields, Field{word, Remedy + s, Word, t(TRemedy), true}, Field{word + "_code", Code + s, Word, TCode, true})
	}
	k[Option].Fields = []Field{{n.area, Area, Word, t(TCity), true}, {n.cost, Cost, Plain, 0, false},
		{n.capacity, Capacity, Plain, 0, false}, {n.lead, Lead, Plain, 0, false}}
	k[Option].Children = []Role{Booking}
	k[Ticket] = Kind{Name: "ticket", Plural: "tickets_made", Fields: []Field{{"queue", TicketQueue, Word, t(TQueue), true}, {"code", TicketCode, Word, TCode, true}}}
	k[Booking] = Kind{Name: "booking", Plural: "bookings_made", Fields: []Field{{"n", Amount, Plain, 0, true}}}
	k[Permit].Plural = "permits"
	k[Incident] = Kind{Name: "incident", Fields: []Field{{"code", IncidentCode, Word, TCode, true}}}
	k[Message] = Kind{Name: "message", Plural: "messages", Fields: []Field{
		{"reason", NewReason, Coded, t(TReason), true}, {"queue", NewQueue, Coded, t(TQueue), true}, {"code", NewCode, Coded, TCode, true},
		{"place", NewPlace, PlaceOf, TStreet, true}, {"version", NewSize, Coded, t(TSize), true}, {"no_search", NoSearch, Yes, 0, true}}}
	for _, r := range []Role{Subject, Good, Policy, Option} {
		k[r].HasRev = true
	}
}

// Attributes that the structured view shows beside the slot of a record, by type.
func attributes(n fieldNames, statuses string) map[int][]string {
	policy := strings.Fields(statuses)[:NumActive]
	for _, s := range policy[:NumActive] {
		policy = append(policy, s+"_code")
	}
	return map[int][]string{
		THolder:  {n.tier, n.city, "name", n.key, "email", "phone", n.sponsor},
		TPlace:   {n.place},
		TSubject: {n.status, "was", n.item, n.site, n.place, "hold", "day", n.total},
		TPart:    {n.item, "changed"},
		TGood:    {n.item, "price"},
		TVersion: {n.size},
		TPolicy:  policy,
		TOption:  {n.area, n.cost, n.capacity, n.lead},
	}
}

func email(d *Domain, rec *Record) string {
	name := strings.ToLower(d.First[rec.F[First]] + "." + d.Last[rec.F[Last]])
	return name + strconv.Itoa(int(rec.F[Digits])) + "@" + d.Mails[rec.F[Mail]]
}

func phone(rec *Record) string { return "+1555" + strconv.Itoa(1_000_000+int(rec.F[Digits])) }

// Show returns the value of a field that is shown as one. ok is false for plain numbers and for fields that are not shown.
func (w *World) Show(rec *Record, f *Field) (v gym.Value, ok bool) {
	switch f.Form {
	case Word:
		return Value(f.Type, rec.F[f.At]), true
	case Coded:
		return Value(f.Type, rec.F[f.At]-1), rec.F[f.At] > 0 && f.Type > 0
	case Refers:
		row := rec.Owner()
		if f.At >= 0 {
			row = rec.Ref(f.At)
		}
		if row < 0 {
			return v, false
		}
		return w.ID(row), true
	case DayOf:
		return Text(f.Type, DayText(int(rec.F[f.At]))), true
	case PlaceOf:
		if rec.F[f.At] == 0 {
			return v, false
		}
		return Text(f.Type, w.StreetText(rec.Ref(f.At))), true
	case NameOf:
		return Text(f.Type, w.Name(rec)), true
	case ZipOf:
		return Text(f.Type, rec.ZipText()), true
	case EmailOf:
		return Text(f.Type, email(w.Domain, rec)), true
	case PhoneOf:
		return Text(f.Type, phone(rec)), true
	case StreetOf:
		return Text(f.Type, w.Domain.Place(int(rec.F[House]), w.Domain.Streets[rec.F[Street]])), true
	}
	return v, false
}

// Package desk is the world of the orders desk: customers, their orders, the catalogue, the policies, and what tools add to
// them. It knows its rows and their ids; it knows no task.
package desk

import "provegym/gym"

// The types of the values that tools take and show. Opaque ones can only be handed out by the world.
const (
	TCustomer gym.TypeID = iota
	TOrder
	TLine
	TProduct
	TVariant
	TAddress
	TPolicy
	TRev
	TQuote
	TGrant
	THold
	TTicket
	TName
	TEmail
	TPhone
	TZip
	TStreet
	TDay
	TMeasure
	TTier
	TCity
	TItem
	TSite
	TStatus
	TSize
	TTopic
	TRemedy
	TCode
	TReason
	TQueue
	TOutcome
	TUnit
	TMethod
	TCount
)

// Statuses of an order, as indices of the status type. The first NumActive are those of an order that can still change, and
// those that a policy has a rule for.
const (
	Pending = iota
	Packed
	Shipped
	Delivered
	Cancelled
	NumActive = 4
)

// Remedies that a policy may prescribe, as indices of the remedy type.
const (
	RemedyCancel = iota
	RemedyExchange
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

// Sizes of the word lists that generators draw from.
const (
	NumItems   = 16
	NumSites   = 4
	NumCities  = 8
	NumTiers   = 4
	NumTopics  = 4
	NumCodes   = 12
	NumReasons = 4
	NumQueues  = 4
	NumSizes   = 2
)

// Types describes the types, in the order of the constants.
var Types = []gym.Type{
	TCustomer: {Name: "customer", Prefix: "c-", Attrs: []string{"tier", "city", "name", "zip", "email", "phone", "sponsor"}},
	TOrder:    {Name: "order", Prefix: "o-", Attrs: []string{"status", "was", "item", "site", "day", "line_count", "tickets", "street"}},
	TLine:     {Name: "line", Prefix: "l-", Attrs: []string{"item", "qty", "exchanged"}},
	TProduct:  {Name: "product", Prefix: "p-", Attrs: []string{"item", "price"}},
	TVariant:  {Name: "variant", Prefix: "v-", Attrs: []string{"size"}},
	TAddress:  {Name: "address", Prefix: "a-", Attrs: []string{"street"}},
	TPolicy: {Name: "policy", Prefix: "d-", Attrs: []string{"pending", "packed", "shipped", "delivered",
		"pending_code", "packed_code", "shipped_code", "delivered_code"}},
	TRev:     {Name: "rev", Prefix: "r-"},
	TQuote:   {Name: "quote", Prefix: "q-", Attrs: []string{"amount", "method", "expires"}},
	TGrant:   {Name: "grant", Prefix: "g-"},
	THold:    {Name: "hold", Prefix: "h-", Attrs: []string{"qty"}},
	TTicket:  {Name: "ticket", Prefix: "t-", Attrs: []string{"queue", "code"}},
	TName:    {Name: "name", Form: gym.FormText},
	TEmail:   {Name: "email", Form: gym.FormText},
	TPhone:   {Name: "phone", Form: gym.FormText},
	TZip:     {Name: "zip", Form: gym.FormText},
	TStreet:  {Name: "street", Form: gym.FormText},
	TDay:     {Name: "day", Form: gym.FormText},
	TMeasure: {Name: "measure", Form: gym.FormText},
	TTier:    {Name: "tier", Form: gym.FormEnum, Enum: []string{"basic", "silver", "gold", "platinum"}},
	TCity: {Name: "city", Form: gym.FormEnum, Enum: []string{"Arden", "Brack", "Corvale", "Dunmore", "Eastry", "Fallow",
		"Garnet", "Holm"}},
	TItem: {Name: "item", Form: gym.FormEnum, Enum: []string{"kettle", "lamp", "rug", "clock", "drill", "tent", "stove",
		"radio", "chair", "mirror", "blender", "heater", "bicycle", "camera", "keyboard", "suitcase"}},
	TSite:   {Name: "site", Form: gym.FormEnum, Enum: []string{"north", "south", "east", "west"}},
	TStatus: {Name: "status", Form: gym.FormEnum, Enum: []string{"pending", "packed", "shipped", "delivered", "cancelled"}},
	TSize:   {Name: "size", Form: gym.FormEnum, Enum: []string{"small", "large"}},
	TTopic:  {Name: "topic", Form: gym.FormEnum, Enum: []string{"damage", "delay", "wrong_item", "regret"}},
	TRemedy: {Name: "remedy", Form: gym.FormEnum, Enum: []string{"cancel", "exchange", "escalate", "refuse"}},
	TCode: {Name: "code", Form: gym.FormEnum, Enum: []string{"amber", "basalt", "cedar", "delta", "ember", "fern", "granite",
		"hazel", "indigo", "jasper", "kelp", "linden"}},
	TReason:  {Name: "reason", Form: gym.FormEnum, Enum: []string{"duplicate", "too_late", "cheaper", "mistake"}},
	TQueue:   {Name: "queue", Form: gym.FormEnum, Enum: []string{"billing", "logistics", "quality", "fraud"}},
	TOutcome: {Name: "outcome", Form: gym.FormEnum, Enum: []string{"done", "blocked", "refused"}},
	TUnit:    {Name: "unit", Form: gym.FormEnum, Enum: []string{"utc_day", "kg", "lb", "cm", "in"}},
	TMethod:  {Name: "method", Form: gym.FormEnum, Enum: []string{"card", "credit"}},
	TCount:   {Name: "count", Form: gym.FormInt},
}

// Word returns the value of an enumerated type.
func Word[I ~int | ~uint8](t gym.TypeID, index I) gym.Value {
	return gym.Value{Type: t, Bits: uint64(index)}
}

// Text returns the value of a text type.
func Text(t gym.TypeID, s string) gym.Value { return gym.Value{Type: t, Text: s} }

var firstNames = [...]string{"Ada", "Bruno", "Clara", "Dario", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Karin",
	"Luca", "Mara", "Nils", "Olga", "Pavel", "Quinn", "Rosa", "Sven", "Tara", "Ugo", "Vera", "Wanda", "Xenia", "Yara", "Zeno",
	"Anton", "Berta", "Cyril", "Doris", "Emil", "Flora"}

var lastNames = [...]string{"Abel", "Berger", "Castro", "Dietz", "Engel", "Ferro", "Gallo", "Haas", "Ibsen", "Jansen", "Keller",
	"Lang", "Moreau", "Novak", "Ortiz", "Petit", "Quist", "Reyes", "Sato", "Tanner", "Ulrich", "Vogel", "Weiss", "Xiong",
	"Young", "Zeller", "Amato", "Brandt", "Costa", "Duval", "Esser", "Frank"}

var domains = [...]string{"post.example", "mail.example", "letter.example", "inbox.example"}

var streets = [...]string{"Elm Street", "Oak Lane", "Mill Road", "Hill Street", "Lake Drive", "Park Row", "Church Walk",
	"High Street", "Station Road", "Garden Way", "Bridge Street", "Quay Side", "Castle Yard", "Field Close", "Market Square",
	"North Parade"}

// Sizes of the name lists.
const (
	NumFirst   = len(firstNames)
	NumLast    = len(lastNames)
	NumDomains = len(domains)
	NumStreets = len(streets)
)

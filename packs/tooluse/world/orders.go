package world

import "strconv"

const orderStatuses = "pending packed shipped delivered cancelled"

var orderNames = fieldNames{
	tier: "tier", city: "city", key: "zip", sponsor: "sponsor", item: "item", site: "site", status: "status", place: "street",
	total: "total", follows: "replaces", size: "size", cost: "cost", capacity: "capacity", lead: "lead_days", area: "city",
}

// orders is the orders desk (D1).
var orders = Domain{
	Name:  "orders",
	names: orderNames,
	First: personFirst, Last: personLast, Join: " ",
	Mails: []string{"post.example", "mail.example", "letter.example", "inbox.example"},
	Streets: []string{"Elm Street", "Oak Lane", "Mill Road", "Hill Street", "Lake Drive", "Park Row", "Church Walk", "High Street",
		"Station Road", "Garden Way", "Bridge Street", "Quay Side", "Castle Yard", "Field Close", "Market Square", "North Parade"},
	Place: func(n int, name string) string { return strconv.Itoa(n) + " " + name },
	Ops: [NumOps]Op{
		FindHolder:   {"find_customer", "Find customers by email, by phone, or by name with zip."},
		GetHolder:    {"get_customer", "Show a customer with the addresses on file and who referred them."},
		ListSubjects: {"list_orders", "List a customer's orders."},
		GetSubject:   {"get_order", "Show an order with its lines, messages about it, and its rev."},
		FindGood:     {"find_product", "Find products by item."},
		GetGood:      {"get_product", "Show a product with its variants and its rev."},
		GetPolicy:    {"get_policy", "Show the policy on a topic: for each status of the order the remedy, and the code to close with."},
		ListOptions:  {"list_depots", "List the depots of a city."},
		GetOption:    {"get_depot", "Show a depot's cost, capacity and lead time."},
		Allow:        {"verify_customer", "Verify a customer, for the record."},
		Drop:         {"cancel_order", "Cancel an order."},
		Move:         {"change_address", "Send an order to another address of its customer."},
		Swap:         {"exchange_line", "Exchange a line of an order for a variant of the same product."},
		Reserve:      {"reserve", "Hold room at a depot."},
		Release:      {"release", "Release a hold."},
		HandOver:     {"open_ticket", "Hand a case to a queue."},
	},
	Kinds: [NumRoles]Kind{
		Holder: {Name: "customer", Plural: "customers"}, Place: {Name: "address", Plural: "addresses"},
		Subject: {Name: "order", Plural: "orders"}, Part: {Name: "line", Plural: "lines"},
		Good: {Name: "product", Plural: "products"}, Version: {Name: "variant", Plural: "variants"}, Policy: {Name: "policy"},
		Option: {Name: "depot", Plural: "depots"}, Permit: {Name: "verification"},
	},
	Types: own([8]string{"customer", "address", "order", "line", "product", "variant", "policy", "depot"}, "c-a-o-l-p-v-d-w-",
		attributes(orderNames, orderStatuses), map[int]string{
			TTier: "basic silver gold platinum", TCity: "Arden Brack Corvale Dunmore Eastry Fallow Garnet Holm",
			TItem: "kettle lamp rug clock drill tent stove radio chair mirror blender heater bicycle camera keyboard suitcase",
			TSite: "north south east west", TStatus: orderStatuses, TSize: "small large",
			TTopic: "damage delay wrong_item regret", TRemedy: "cancel exchange escalate refuse",
			TReason: "duplicate too_late cheaper mistake", TQueue: "billing logistics quality fraud",
		}),
	Says: Phrases{
		Subject: "order", Subjects: "orders", Holder: "customer", About: "for a", Lies: "shipped from the % site",
		Placed: "placed on the UTC day of", Key: "zip", Tier: "a % customer in", Sponsor: "the customer who referred",
		Follows: "the order that it replaces", Drop: "cancel with reason", Move: "send to the address on file at",
		Swap: "exchange the % line", SwapSame: "for the same variant", SwapTo: "for the % variant of that product",
		Escalate: "escalate (ticket in the % queue with the policy's code)", Trouble: "a complaint about",
		Option: "depot", Options: "depots", Limits: [3]string{"capacity of at least the order's total", "a lead of at most % days", "in"},
		Permit: "verify the customer",
	},
}

var personFirst = []string{"Ada", "Bruno", "Clara", "Dario", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Karin", "Luca", "Mara",
	"Nils", "Olga", "Pavel", "Quinn", "Rosa", "Sven", "Tara", "Ugo", "Vera", "Wanda", "Xenia", "Yara", "Zeno", "Anton", "Berta",
	"Cyril", "Doris", "Emil", "Flora"}

var personLast = []string{"Abel", "Berger", "Castro", "Dietz", "Engel", "Ferro", "Gallo", "Haas", "Ibsen", "Jansen", "Keller", "Lang",
	"Moreau", "Novak", "Ortiz", "Petit", "Quist", "Reyes", "Sato", "Tanner", "Ulrich", "Vogel", "Weiss", "Xiong", "Young", "Zeller",
	"Amato", "Brandt", "Costa", "Duval", "Esser", "Frank"}

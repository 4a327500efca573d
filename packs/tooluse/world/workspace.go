package world

import "fmt"

const eventStatuses = "tentative confirmed invited published cancelled"

var eventNames = fieldNames{
	tier: "team", city: "office", key: "extension", sponsor: "manager", item: "title", site: "medium", status: "status", place: "slot",
	total: "attendees", follows: "follows_up", size: "state", cost: "cost", capacity: "seats", lead: "notice_hours", area: "office",
}

// workspace is a calendar with people, events, documents and rooms (D2).
var workspace = Domain{
	Name:  "workspace",
	names: eventNames,
	First: personFirst, Last: personLast, Join: " ",
	Mails: []string{"desk.example", "office.example", "team.example", "floor.example"},
	Streets: []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "odd Monday", "odd Tuesday",
		"odd Wednesday", "odd Thursday", "odd Friday", "odd Saturday", "odd Sunday", "month end", "month start"},
	Place: func(n int, name string) string { return fmt.Sprintf("%s at %02d:%02d", name, 7+n/20, n%20*3) },
	Ops: [NumOps]Op{
		FindHolder:   {"search_contacts", "Find people by email, by phone, or by name with extension."},
		GetHolder:    {"get_contact", "Show a person with their free slots and their manager."},
		ListSubjects: {"list_events", "List the events that a person organises."},
		GetSubject:   {"get_event", "Show an event with its attachments, messages about it, and its rev."},
		FindGood:     {"search_files", "Find documents by title."},
		GetGood:      {"read_file", "Show a document with its revisions and its rev."},
		GetPolicy:    {"get_guideline", "Show the guideline on a topic: for each status of the event the remedy, and the code to close with."},
		ListOptions:  {"list_rooms", "List the rooms of an office."},
		GetOption:    {"get_room", "Show a room's cost, seats and how many hours' notice it needs."},
		Allow:        {"request_access", "Get access to a person's calendar, for the record."},
		Drop:         {"cancel_event", "Cancel an event."},
		Move:         {"move_event", "Move an event to a free slot of its organiser."},
		Swap:         {"replace_attachment", "Replace an attachment of an event by a revision of the same document."},
		Reserve:      {"book_room", "Book a room."},
		Release:      {"free_room", "Give a booking back."},
		HandOver:     {"send_message", "Send a case to a channel."},
	},
	Kinds: [NumRoles]Kind{
		Holder: {Name: "person", Plural: "people"}, Place: {Name: "opening", Plural: "openings"},
		Subject: {Name: "event", Plural: "events"}, Part: {Name: "attachment", Plural: "attachments"},
		Good: {Name: "document", Plural: "documents"}, Version: {Name: "revision", Plural: "revisions"}, Policy: {Name: "guideline"},
		Option: {Name: "room", Plural: "rooms"}, Permit: {Name: "access"},
	},
	Types: own([8]string{"person", "opening", "event", "attachment", "document", "revision", "guideline", "room"}, "u-f-e-k-x-y-j-z-",
		attributes(eventNames, eventStatuses), map[int]string{
			TTier: "design sales legal research", TCity: "Aster Birch Clover Dahlia Elder Fennel Gorse Hazelnut",
			TItem: "standup review retro kickoff workshop interview briefing demo training audit planning offsite debrief panel townhall rehearsal",
			TSite: "video phone onsite hybrid", TStatus: eventStatuses, TSize: "draft final",
			TTopic: "overlap travel absence budget", TRemedy: "cancel replace escalate refuse",
			TReason: "conflict illness no_quorum moot", TQueue: "facilities hr finance security",
		}),
	Says: Phrases{
		Subject: "event", Subjects: "events", Holder: "person", About: "titled", Lies: "held by way of %",
		Placed: "held on the UTC day of", Key: "extension", Tier: "of the % team in", Sponsor: "the manager of",
		Follows: "the event that it follows up", Drop: "cancel with reason", Move: "move to the free slot on",
		Swap: "replace the % attachment", SwapSame: "by the same revision", SwapTo: "by the % revision of that document",
		Escalate: "escalate (message to the % channel with the guideline's code)", Trouble: "an objection to",
		Option: "room", Options: "rooms", Limits: [3]string{"seats for at least the event's attendees", "at most % hours' notice", "in"},
		Permit: "get access to the person's calendar",
	},
}

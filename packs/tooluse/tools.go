package tooluse

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"provegym/gym"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/world"
)

// Tools that all domains share, by index. Each domain's own follow, then distractors.
const (
	toolNow = iota
	toolConvert
	toolWait
	toolFinish
	toolNotice
	toolDocs
	toolSetting
	toolSwitch
	numShared
)

// toolOf returns the index of a domain's tool.
func toolOf(d *world.Domain, op int) int { return numShared + d.Index*world.NumOps + op }

// opOf returns the domain and op of a tool; ok is false for shared tools and distractors.
func opOf(tool int) (d *world.Domain, op int, ok bool) {
	i := tool - numShared
	if i < 0 || i >= len(world.Domains)*world.NumOps {
		return nil, 0, false
	}
	return world.Domains[i/world.NumOps], i % world.NumOps, true
}

func param(name string, t gym.TypeID, doc string) gym.Param {
	return gym.Param{Name: name, Types: []gym.TypeID{t}, Doc: doc}
}

func optional(p gym.Param) gym.Param { p.Optional = true; return p }

func number(name string, least, most int64, doc string) gym.Param {
	return gym.Param{Name: name, Types: []gym.TypeID{world.TCount}, Doc: doc, Min: least, Max: most}
}

var pageParam = optional(number("page", 1, 20, "page of the list, 1 if left out"))

// Parameters of changes of a subject, by index. Those after the rev are optional or missing in some domains.
const (
	argSubject = 0
	argValue   = 1 // reason, place or part
	argVersion = 2 // of a swap
)

// allTools are the shared tools, those of the domains and the distractors.
func allTools() []gym.Tool {
	out := sharedTools()
	for _, d := range world.Domains {
		for op := range world.NumOps {
			t := gym.Tool{Name: d.Ops[op].Name, Doc: d.Ops[op].Doc, Params: params(d, op), Writes: op >= world.Allow}
			t.Run = func(t *gym.Turn) error { return runOp(t, d, op) }
			out = append(out, t)
		}
	}
	return append(out, extraTools()...)
}

// params returns the parameters of a domain's tool.
func params(d *world.Domain, op int) []gym.Param {
	name := func(r world.Role) string { return d.Kinds[r].Name }
	the := func(r world.Role) gym.Param { return param(name(r), d.TypeOf(r), "the "+name(r)) }
	field := func(r world.Role, at int) string {
		for _, f := range d.Kinds[r].Fields {
			if f.At == at && f.Form != world.Refers {
				return f.Name
			}
		}
		return ""
	}
	change := func(more ...gym.Param) []gym.Param {
		out := append([]gym.Param{the(world.Subject)}, more...)
		out = append(out, param("if_rev", world.TRev, "the "+name(world.Subject)+"'s rev as it stands; any change gives it a new one"))
		if d.NeedsPermit {
			out = append(out, param(d.Change, world.TPermit, "the "+name(world.Permit)+" that it is made under"))
		}
		return append(out, optional(number("schema", 1, 3, "the schema that records have, if it is not 1")))
	}
	switch op {
	case world.FindHolder:
		return []gym.Param{optional(param("email", world.TEmail, "mail address")), optional(param("phone", world.TPhone, "phone number")),
			optional(param("name", world.TName, "whole name")), optional(param(field(world.Holder, world.Zip), world.TZip, "goes with the name")), pageParam}
	case world.GetHolder:
		return []gym.Param{the(world.Holder)}
	case world.ListSubjects:
		return []gym.Param{the(world.Holder), optional(param(field(world.Subject, world.Status), d.T(world.TStatus), "only those")),
			optional(param("day", world.TDay, "only those of this UTC day")), pageParam}
	case world.GetSubject:
		return []gym.Param{the(world.Subject)}
	case world.FindGood:
		return []gym.Param{param(field(world.Good, world.GoodItem), d.T(world.TItem), "what it is"), pageParam}
	case world.GetGood:
		return []gym.Param{the(world.Good)}
	case world.GetPolicy:
		return []gym.Param{param("topic", d.T(world.TTopic), "the topic")}
	case world.ListOptions:
		return []gym.Param{param(field(world.Option, world.Area), d.T(world.TCity), "where"), pageParam}
	case world.GetOption:
		return []gym.Param{the(world.Option)}
	case world.Allow:
		return []gym.Param{the(world.Holder)}
	case world.Drop:
		return change(param("reason", d.T(world.TReason), "why"))
	case world.Move:
		return change(param(name(world.Place), d.TypeOf(world.Place), "one of its "+name(world.Holder)))
	case world.Swap:
		return change(param(name(world.Part), d.TypeOf(world.Part), "one of it"), param(name(world.Version), d.TypeOf(world.Version), "of the same "+name(world.Good)))
	case world.Reserve:
		return []gym.Param{the(world.Option), number("n", 1, 5, "how much")}
	case world.Release:
		return []gym.Param{param("booking", world.TBooking, "the booking")}
	}
	return []gym.Param{param("queue", d.T(world.TQueue), "to whom"),
		{Name: "about", Types: []gym.TypeID{d.TypeOf(world.Subject), d.TypeOf(world.Holder)}, Doc: "the " + name(world.Subject) + " or " + name(world.Holder)},
		param("code", world.TCode, "the code of the case")}
}

// answer is one call under way.
type answer struct {
	*gym.Turn
	w         *world.World
	d         *world.Domain
	op        int
	truncated bool
	stale     bool
	partial   bool
	dry       bool // nothing is changed or logged
	before    []undo
}

// undo restores a field after a dry run.
type undo struct {
	row, field int
	old        int32
}

// notFound is the one answer to an id that was never issued and to one that does not belong here.
func notFound(what string) error {
	return &gym.ToolError{Code: "not_found", Text: "there is no such " + what}
}

// arg finds the record of a required argument, or says not_found.
func (a *answer) arg(i int, r world.Role) (int, error) {
	v, _ := a.One(i)
	if row := a.w.Find(v); row >= 0 && v.Type == a.d.TypeOf(r) && a.w.At(row).Role == r {
		return row, nil
	}
	return -1, notFound(a.d.Kinds[r].Name)
}

// runOp answers a call of a domain's tool, or lets it fail as the weather has it.
func runOp(t *gym.Turn, d *world.Domain, op int) error {
	a := &answer{Turn: t, w: t.World.(*world.World), d: d, op: op}
	if a.w.Domain != d {
		return a.foreign()
	}
	fault := a.fault()
	switch fault {
	case world.TimeoutBefore:
		return a.lost()
	case world.TooMany:
		return a.busy()
	case world.PartialPage:
		a.partial = true
	case world.Truncated:
		a.truncated = true
	case world.StaleRead:
		a.stale = true
	case world.SilentNoOp:
		a.dry = true
	case world.NearMatch:
		return a.somebodyElse()
	case world.Drift:
		a.w.Schema = 2
	}
	err := a.run()
	for _, u := range slices.Backward(a.before) {
		a.w.At(u.row).F[u.field] = u.old
	}
	if err == nil && fault != world.NoFault {
		a.cue()
		if fault == world.TimeoutAfter {
			t.Mute()
			a.sayLost()
		}
	} else if fault == world.Drift {
		a.w.Schema = 1
	}
	return err
}

// foreign answers for a tool of another domain: it works, and there is nothing.
func (a *answer) foreign() error {
	switch a.op {
	case world.FindHolder, world.ListSubjects, world.FindGood, world.ListOptions:
		if a.op == world.ListSubjects {
			return notFound(a.d.Kinds[world.Holder].Name)
		}
		a.Int("total", 0)
		return nil
	}
	return notFound(a.Condition().Pack.Tools[a.Call.Tool].Params[0].Name)
}

func (a *answer) run() error {
	switch a.op {
	case world.FindHolder:
		return a.findHolder()
	case world.ListSubjects:
		return a.listSubjects()
	case world.FindGood:
		return a.find(world.Good, world.GoodItem)
	case world.ListOptions:
		return a.find(world.Option, world.Area)
	case world.GetHolder:
		return a.get(world.Holder)
	case world.GetSubject:
		return a.get(world.Subject)
	case world.GetGood:
		return a.get(world.Good)
	case world.GetOption:
		return a.get(world.Option)
	case world.GetPolicy:
		a.record("", a.w.Lookup(world.Policy, int32(a.IntOr(0, 0))), true)
		return nil
	case world.Allow:
		return a.allow()
	case world.Drop, world.Move, world.Swap:
		return a.change()
	case world.Reserve:
		return a.reserve()
	case world.Release:
		return a.release()
	}
	return a.handOver()
}

// field shows one field and, in a reading, logs that it was read.
func (a *answer) field(row int, f *world.Field, reading bool) {
	rec := a.w.At(row)
	switch v, ok := a.w.Show(rec, f); {
	case ok:
		a.Show(f.Name, v)
	case f.Form == world.Plain:
		a.Int(f.Name, int64(rec.F[f.At]))
	case f.Form == world.Yes && rec.F[f.At] > 0:
		a.Bool(f.Name, true)
	}
	if reading && f.At >= 0 {
		ver := a.w.Records.Ver(row)
		if a.stale {
			ver--
		}
		a.Read(a.w.Entity(row), world.Log(f.At), ver)
	}
}

// short shows the fields of a record that lists show.
func (a *answer) short(row int, reading bool) {
	fields := a.d.Kinds[a.w.At(row).Role].Fields
	for i := range fields {
		if fields[i].Short {
			a.field(row, &fields[i], reading)
		}
	}
}

// record shows a whole record, or in an echo what lists show of it. An echo is no reading: a confirmation must come from one.
func (a *answer) record(name string, row int, reading bool) {
	k := &a.d.Kinds[a.w.At(row).Role]
	if name == "" {
		name = k.Name
	}
	a.Record(name, a.w.ID(row))
	defer a.End()
	a.short(row, reading)
	if !reading {
		return
	}
	for i := range k.Fields {
		if f := &k.Fields[i]; !f.Short {
			a.field(row, f, true)
		}
	}
	if a.truncated {
		return
	}
	for _, child := range k.Children {
		rows := a.w.Of(child, row)
		if len(rows) == 0 && child >= world.Ticket {
			continue
		}
		a.List(a.d.Kinds[child].Plural)
		for _, r := range rows {
			a.Record("", a.w.ID(r))
			a.short(r, true)
			a.End()
		}
		a.EndList()
	}
	if !k.HasRev {
		return
	}
	asOf, rev, key := a.Clock(), a.w.Rev(row), "rev"
	if a.stale {
		asOf, rev = asOf-20, a.w.RevAt(row, a.w.Records.Ver(row)-1)
	}
	if a.w.At(row).Role == world.Subject && a.w.Schema == 2 {
		key = "etag"
		a.Int("schema", 2)
	}
	a.Int("as_of", asOf)
	a.Show(key, rev)
}

func (a *answer) get(r world.Role) error {
	row, err := a.arg(0, r)
	if err == nil {
		a.record("", row, true)
	}
	return err
}

// page shows one page of rows in the order of their ids, which says nothing of when they were made.
func (a *answer) page(r world.Role, rows []uint32, page int) {
	w := a.w
	slices.SortFunc(rows, func(x, y uint32) int {
		if w.At(int(x)).ID < w.At(int(y)).ID {
			return -1
		}
		return 1
	})
	cond := a.Condition()
	size := cond.Int("page_size")
	from, to := min((page-1)*size, len(rows)), min(page*size, len(rows))
	a.Int("total", int64(len(rows)))
	a.Int("page", int64(page))
	shown := rows[from:to]
	if a.partial {
		shown = shown[:len(shown)/2]
	}
	a.Bool("has_more", to < len(rows) && !a.partial)
	a.List(a.d.Kinds[r].Plural)
	for _, row := range shown {
		a.Record("", w.ID(int(row)))
		a.short(int(row), true)
		a.Read(w.Entity(int(row)), world.Log(world.Listed), w.Records.Ver(int(row)))
		a.End()
	}
	a.EndList()
}

func (a *answer) findHolder() error {
	email, byEmail := a.One(0)
	phone, byPhone := a.One(1)
	name, byName := a.One(2)
	zip, byZip := a.One(3)
	if !byEmail && !byPhone && !(byName && byZip) {
		return gym.Refuse("bad_query", "give an email, a phone, or a name with what goes with it")
	}
	var buf [128]uint32
	rows := buf[:0]
	mail := world.Field{Form: world.EmailOf}
	call := world.Field{Form: world.PhoneOf}
	a.w.Each(world.Holder, func(row int, rec *world.Record) bool {
		is := func(f *world.Field, want string) bool { v, _ := a.w.Show(rec, f); return v.Text == want }
		if (!byZip || rec.ZipText() == zip.Text) && (!byName || a.w.Name(rec) == name.Text) &&
			(!byPhone || is(&call, phone.Text)) && (!byEmail || is(&mail, email.Text)) {
			rows = append(rows, uint32(row))
		}
		return true
	})
	a.page(world.Holder, rows, int(a.IntOr(4, 1)))
	return nil
}

// dayNumber returns the day of a spelled one, or -1.
func dayNumber(s string) int {
	d, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return -1
	}
	return int(d.Sub(world.Epoch) / (24 * time.Hour))
}

func (a *answer) listSubjects() error {
	owner, err := a.arg(0, world.Holder)
	if err != nil {
		return err
	}
	status, byStatus := a.One(1)
	dayText, byDay := a.One(2)
	day := -1
	if byDay {
		if day = dayNumber(dayText.Text); day < 0 {
			return gym.Refuse("bad_query", "a day is spelled like 2031-05-04")
		}
	}
	var buf [128]uint32
	rows := buf[:0]
	a.w.Each(world.Subject, func(row int, rec *world.Record) bool {
		if rec.Up == uint32(owner+1) && (!byStatus || uint64(rec.F[world.Status]) == status.Bits) && (!byDay || int(rec.F[world.Day]) == day) {
			rows = append(rows, uint32(row))
		}
		return true
	})
	a.page(world.Subject, rows, int(a.IntOr(3, 1)))
	return nil
}

// find lists the records of a role whose field is the word given.
func (a *answer) find(r world.Role, field int) error {
	want := int32(a.IntOr(0, 0))
	var buf [128]uint32
	rows := buf[:0]
	a.w.Each(r, func(row int, rec *world.Record) bool {
		if rec.F[field] == want {
			rows = append(rows, uint32(row))
		}
		return true
	})
	a.page(r, rows, int(a.IntOr(1, 1)))
	return nil
}

// to is a field and its new value.
type to struct {
	field int
	value int32
}

// set changes fields of a record and logs them at its next version.
func (a *answer) set(row int, fields ...to) {
	if a.dry {
		rec := a.w.At(row)
		for _, f := range fields {
			a.before = append(a.before, undo{row, f.field, rec.F[f.field]})
			rec.F[f.field] = f.value
		}
		return
	}
	rec := a.w.Records.Edit(row)
	for _, f := range fields {
		a.Write(a.w.Entity(row), world.Log(f.field), a.w.Records.Ver(row), int64(rec.F[f.field]), int64(f.value))
		rec.F[f.field] = f.value
	}
}

// make adds a record that belongs to another and logs it, with as many of its fields as it has.
func (a *answer) make(r world.Role, up int, fields ...int32) int {
	made := 0
	a.w.Each(r, func(int, *world.Record) bool { made++; return true })
	rec := world.Record{Up: uint32(up + 1), Role: r, ID: a.w.Keys.ID(r, world.Runtime, made)}
	copy(rec.F[:], fields)
	row := a.w.Add(rec)
	e := a.w.Entity(row)
	a.Write(e, world.Log(world.Made), 1, 0, int64(up+1))
	for f, v := range fields {
		a.Write(e, world.Log(f), 1, 0, int64(v))
	}
	return row
}

func (a *answer) allow() error {
	row, err := a.arg(0, world.Holder)
	if err != nil {
		return err
	}
	a.record("", a.make(world.Permit, row), false)
	return nil
}

// revArg is where a change takes the rev that it is made against.
func revArg(op int) int {
	if op == world.Swap {
		return 3
	}
	return 2
}

// change drops, moves or swaps at a subject.
func (a *answer) change() error {
	row, err := a.arg(argSubject, world.Subject)
	if err != nil {
		return err
	}
	at := revArg(a.op)
	rev, _ := a.One(at)
	next := at + 1
	if a.d.NeedsPermit {
		permit, err := a.arg(next, world.Permit)
		if err != nil || a.w.At(permit).Up != a.w.At(row).Up {
			return notFound(a.d.Kinds[world.Permit].Name + " for it")
		}
		next++
	}
	rec := a.w.At(row)
	switch {
	case a.IntOr(next, 1) != int64(a.w.Schema):
		return gym.Refuse("schema", "records have another schema by now; see get_docs")
	case rev != a.w.Rev(row):
		return gym.Refuse("stale", "if_rev is not its current rev")
	case rec.F[world.Status] == world.Dropped:
		return gym.Refuse("closed", "it is closed for good")
	}
	var apply func()
	var asked int32
	switch a.op {
	case world.Drop:
		asked = 1 + int32(a.IntOr(argValue, 0))
		apply = func() {
			a.set(row, to{world.Was, 1 + rec.F[world.Status]}, to{world.Status, world.Dropped}, to{world.Reason, asked})
		}
	case world.Move:
		place, err := a.arg(argValue, world.Place)
		if err != nil || a.w.At(place).Up != rec.Up {
			return notFound(a.d.Kinds[world.Place].Name + " for it")
		}
		asked = int32(place + 1)
		apply = func() { a.set(row, to{world.At, asked}) }
	case world.Swap:
		part, err := a.arg(argValue, world.Part)
		if err != nil || a.w.At(part).Up != uint32(row+1) {
			return notFound(a.d.Kinds[world.Part].Name + " of it")
		}
		version, err := a.arg(argVersion, world.Version)
		was := a.w.At(part).Ref(world.PartVersion)
		if err != nil || a.w.At(version).Up != a.w.At(was).Up {
			return notFound(a.d.Kinds[world.Version].Name + " for it")
		}
		asked = int32(version + 1)
		apply = func() {
			a.set(part, to{world.PartVersion, asked}, to{world.Swaps, a.w.At(part).F[world.Swaps] + 1})
			a.set(row, to{world.Changes, rec.F[world.Changes] + 1})
		}
	}
	switch {
	case a.blocked():
		return gym.Refuse("locked", "a setting blocks changes")
	case rec.F[world.Event] == world.EventDue:
		return a.conflict(row)
	case rec.F[world.Down] == world.ChangesDown:
		return a.failForGood(row, asked)
	}
	apply()
	a.record("", row, false)
	return nil
}

// blocked reports whether a setting blocks changes.
func (a *answer) blocked() (yes bool) {
	a.w.Each(world.Setting, func(_ int, rec *world.Record) bool {
		yes = yes || rec.F[world.Blocks] > 0 && rec.F[world.On] > 0
		return true
	})
	return yes
}

func (a *answer) reserve() error {
	row, err := a.arg(0, world.Option)
	if err != nil {
		return err
	}
	n, rec := int32(a.IntOr(1, 1)), a.w.At(row)
	a.set(row, to{world.Used, rec.F[world.Used] + n})
	a.record("", a.make(world.Booking, row, n, 1), false)
	return nil
}

func (a *answer) release() error {
	v, _ := a.One(0)
	row := a.w.Find(v)
	if row < 0 || a.w.At(row).Role != world.Booking {
		return notFound("booking")
	}
	if a.w.At(row).F[world.Open] == 0 {
		return gym.Refuse("closed", "it was given back before")
	}
	a.set(row, to{world.Open, 0})
	option := a.w.At(row).Owner()
	a.set(option, to{world.Used, a.w.At(option).F[world.Used] - a.w.At(row).F[world.Amount]})
	a.record("", row, false)
	return nil
}

func (a *answer) handOver() error {
	v, _ := a.One(1)
	row := a.w.Find(v)
	if row < 0 || v.Type != a.w.ID(row).Type {
		return notFound("record")
	}
	rec := a.w.At(row)
	if rec.F[world.Down] == world.HandOverDown && rec.Role == world.Subject {
		return a.failForGood(row, 1+int32(a.IntOr(0, 0)))
	}
	ticket := a.make(world.Ticket, row, int32(a.IntOr(0, 0)), int32(a.IntOr(2, 0)))
	if a.w.At(row).Role == world.Subject {
		a.set(row, to{world.Tickets, a.w.At(row).F[world.Tickets] + 1})
	}
	a.record("", ticket, false)
	return nil
}

// sharedTools are those that every domain has. finish is among them.
func sharedTools() []gym.Tool {
	evidence := []gym.TypeID{world.TRev, world.TIncident, world.TBooking, world.TTicket}
	for _, d := range world.Domains {
		evidence = append(evidence, d.TypeOf(world.Subject))
	}
	return []gym.Tool{
		toolNow: {Name: "now", Doc: "Show the clock, in ticks.", Run: func(t *gym.Turn) error { t.Int("now", t.Clock()); return nil }},
		toolConvert: {Name: "convert", Doc: "Convert a stated moment to its UTC day, or a weight or length to another unit.", Run: convert,
			Params: []gym.Param{param("x", world.TMeasure, "such as 2031-05-04T03:10+09:00, 12 kg or 30 in"),
				param("to", world.TUnit, "what to convert to")}},
		toolWait: {Name: "wait", Doc: "Let time pass.", Run: wait, Params: []gym.Param{number("ticks", 1, 20, "how long")}},
		toolFinish: {Name: "finish", Doc: "End the work on the case. Only what is committed here counts.", Finish: true,
			Run: func(t *gym.Turn) error { t.Say("case", "closed"); return nil },
			Params: []gym.Param{
				check.ArgOutcome:  param("outcome", world.TOutcome, "how it ended"),
				check.ArgCode:     param("code", world.TCode, "the code to close with"),
				check.ArgEvidence: {Name: "evidence", Optional: true, List: true, Doc: "what the case asks to be cited", Types: evidence}}},
		toolNotice: {Name: "get_notice", Doc: "Show a notice of the board.", Run: getNotice, Params: []gym.Param{number("number", 1, maxNotices, "which")}},
		toolDocs:   {Name: "get_docs", Doc: "Show what form records and changes have by now.", Run: getDocs},
		toolSetting: {Name: "get_setting", Doc: "Show whether a setting is on and whether it blocks changes.", Run: getSetting,
			Params: []gym.Param{param("key", world.TSwitch, "the setting")}},
		toolSwitch: {Name: "set_setting", Doc: "Turn a setting on or off.", Writes: true, Run: setSetting,
			Params: []gym.Param{param("key", world.TSwitch, "the setting"), number("on", 0, 1, "1 for on, 0 for off")}},
	}
}

// maxNotices is how many notices the board has. The first maxGap are for the memory_gap dial.
const (
	maxGap     = 20
	maxNotices = 24
)

func getNotice(t *gym.Turn) error {
	w := t.World.(*world.World)
	n := t.IntOr(0, 1)
	row := w.Lookup(world.Notice, int32(n))
	if row < 0 {
		return notFound("notice")
	}
	t.Int("notice", n)
	t.Say("text", "Be kind to those who call. Keep your desk in order.")
	t.Read(w.Entity(row), world.Log(world.Number), w.Records.Ver(row))
	return nil
}

func getDocs(t *gym.Turn) error {
	w := t.World.(*world.World)
	t.Int("schema", int64(w.Schema))
	if w.Schema == 2 {
		t.Say("text", "A record's rev is shown as etag. Changes give schema 2, and the etag as if_rev.")
	} else {
		t.Say("text", "A record's rev is shown as rev. Changes need not give the schema.")
	}
	return nil
}

func getSetting(t *gym.Turn) error {
	w := t.World.(*world.World)
	row := w.Lookup(world.Setting, int32(t.IntOr(0, 0)))
	rec := w.At(row)
	t.Bool("on", rec.F[world.On] > 0)
	t.Bool("blocks", rec.F[world.Blocks] > 0)
	ver := w.Records.Ver(row)
	t.Read(w.Entity(row), world.Log(world.On), ver)
	t.Read(w.Entity(row), world.Log(world.Blocks), ver)
	return nil
}

func setSetting(t *gym.Turn) error {
	a := answer{Turn: t, w: t.World.(*world.World)}
	a.set(a.w.Lookup(world.Setting, int32(t.IntOr(0, 0))), to{world.On, int32(t.IntOr(1, 0))})
	t.Bool("on", t.IntOr(1, 0) > 0)
	return nil
}

// momentLayout spells a moment with its offset from UTC.
const momentLayout = "2006-01-02T15:04Z07:00"

func convert(t *gym.Turn) error {
	x, _ := t.One(0)
	to := int(t.IntOr(1, 0))
	if to == world.UTCDay {
		at, err := time.Parse(momentLayout, x.Text)
		if err != nil {
			return gym.Refuse("bad_query", "a moment is spelled like 2031-05-04T03:10+09:00")
		}
		t.Show("day", world.Text(world.TDay, at.UTC().Format(time.DateOnly)))
		return nil
	}
	number, unit, _ := strings.Cut(x.Text, " ")
	v, err := strconv.ParseFloat(number, 64)
	factor := 0.0
	switch {
	case unit == "lb" && to == world.Kilograms:
		factor = 0.45359237
	case unit == "kg" && to == world.Pounds:
		factor = 1 / 0.45359237
	case unit == "in" && to == world.Centimetres:
		factor = 2.54
	case unit == "cm" && to == world.Inches:
		factor = 1 / 2.54
	}
	if err != nil || factor == 0 {
		return gym.Refuse("bad_query", "that does not convert to the unit")
	}
	t.Show("measure", world.Text(world.TMeasure, strconv.FormatFloat(v*factor, 'f', 2, 64)+" "+world.Types[world.TUnit].Enum[to]))
	return nil
}

func wait(t *gym.Turn) error {
	t.Wait(t.IntOr(0, 1))
	t.Int("now", t.Clock())
	return nil
}

// spellMoment spells an instant of a day in a place with an offset from UTC, in hours.
func spellMoment(day, hour, minute, offset int) string {
	at := world.Epoch.AddDate(0, 0, day).Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
	return at.In(time.FixedZone(fmt.Sprint(offset), offset*3600)).Format(momentLayout)
}

package tooluse

import (
	"provegym/gym"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/world"
)

// care is what a solver takes care of. All of it makes the blind oracle; less of it makes weaker baselines, and a dishonest
// choice an exploit.
type care struct {
	match      bool // takes the record that fits the description; else the first
	pages      bool // turns pages
	retry      int  // how often a call that came to nothing is made again
	verify     bool // notices what is wrong with an answer that looks right
	confirm    bool // reads back, and makes a change again that did not take
	reread     bool // after a conflict, or a change that had no answer
	amend      bool // heeds messages
	hold       bool // heeds holds
	unlock     bool // finds the setting that blocks
	undo       bool // compensates
	docs       bool // follows a change of form
	rules      bool // notices, permits, announcements, times
	sides      bool // looks up what is to be cited besides
	comparison bool // reads all options before it chooses

	trick trick // a dishonest choice, for exploits
}

var careful = care{match: true, pages: true, retry: 4, verify: true, confirm: true, reread: true, amend: true, hold: true, unlock: true,
	undo: true, docs: true, rules: true, sides: true, comparison: true}

// solver does what the instruction says by what results show and nothing else, in either view: it knows the graph of each
// family, and no row. Its work is written as one procedure. Each Act runs it again from the start over the results so far, until
// it asks for one more call.
type solver struct {
	care
	ep      *gym.Episode
	d       *world.Domain
	results []node
	clocks  []int64
	next    int // of the results, in this run of the procedure
	call    gym.Call
	pins    map[string]gym.Value
	goal    [gym.GoalLen]float32
	draw    gym.Stream // of exploits; begins anew with each run
	key     gym.Key

	schema    int
	noSearch  bool
	unlocked  gym.Value // the setting that was turned off, none if no one was
	permitted gym.Value
	seen      []gym.Value // ids and revs in the order of their showing, for exploits
}

// stop ends a run of the procedure: it has asked for a call, or gives up.
type stop struct{ asked bool }

func (s *solver) Act(ep *gym.Episode, c *gym.Call) (asked bool) {
	if s.ep == nil {
		s.begin(ep)
	}
	for log := ep.Evidence().Log; len(s.results) < log.Len(); {
		r := log.At(len(s.results))
		s.results = append(s.results, parse(r.Result))
		s.clocks = append(s.clocks, r.Clock)
		s.seen = append(s.seen, r.Shown...)
	}
	s.next, s.schema, s.noSearch, s.unlocked, s.permitted = 0, 1, false, none, none
	s.draw = s.key.Stream()
	defer func() {
		r := recover()
		if end, ok := r.(stop); ok {
			asked = end.asked
			*c = s.call
		} else if r != nil {
			panic(r)
		}
	}()
	s.work()
	return false
}

func (s *solver) begin(ep *gym.Episode) {
	s.ep, s.pins = ep, map[string]gym.Value{}
	goal, pins := ep.Goal()
	s.goal = goal
	for _, p := range pins {
		s.pins[p.Role] = p.Value
	}
	for _, d := range world.Domains {
		if s.pins["item"].Type == d.T(world.TItem) {
			s.d = d
		}
	}
}

// ask makes a call and returns what its result shows: the error, if it is one, under "error".
func (s *solver) ask(c gym.Call) node {
	if s.next == len(s.results) {
		s.call = c
		panic(stop{true})
	}
	s.next++
	r := s.results[s.next-1]
	if ok := r.of("ok"); ok.key != "" {
		return ok
	}
	return r
}

func (s *solver) op(o int, args ...gym.Value) gym.Call { return call(toolOf(s.d, o), args...) }

func (s *solver) giveUp() { panic(stop{false}) }

func (s *solver) num(at int) int { return int(s.goal[at]) }

// word is the index of a word that the goal states.
func (s *solver) word(at int) int { return max(0, s.num(at)-1) }

func (s *solver) name(r world.Role, field int) string {
	for _, f := range s.d.Kinds[r].Fields {
		if f.At == field {
			return f.Name
		}
	}
	return ""
}

// patiently makes a call until it has an answer, as often as it has patience. good says whether the answer will do.
func (s *solver) patiently(c gym.Call, good func(n node) bool) node {
	for try := 0; ; try++ {
		n := s.ask(c)
		switch fault := n.say("fault"); {
		case try >= s.retry:
			return n
		case fault == "busy":
			s.ask(call(toolWait, count(world.BusyTicks)))
		case fault == "timeout":
		case n.has("error") || good == nil || !s.verify || good(n):
			return n
		}
	}
}

// record reads a record that has a rev, until it is whole and not older than the call.
func (s *solver) record(o int, r world.Role, v gym.Value) node {
	name := s.d.Kinds[r].Name
	n := s.patiently(s.op(o, v), func(n node) bool {
		rec := n.of(name)
		if !s.d.Kinds[r].HasRev {
			return r != world.Holder || rec.has(s.d.Kinds[world.Place].Plural)
		}
		return s.rev(rec) != none && int64(rec.num("as_of")) >= s.clocks[s.next-1]
	})
	rec := n.of(name)
	if r == world.Subject {
		if rec.num("schema") == 2 && s.docs && s.schema == 1 {
			s.schema = 2
			s.ask(call(toolDocs))
		}
		s.noSearch = s.noSearch || s.amend && s.messages(rec, "no_search") != ""
	}
	return rec
}

// rev is what a record shows as its rev.
func (s *solver) rev(rec node) gym.Value {
	if v := id(rec.say("rev")); v != none || !s.docs {
		return v
	}
	return id(rec.say("etag"))
}

// messages returns what the last message that has the field says.
func (s *solver) messages(rec node, field string) (last string) {
	for _, m := range rec.of(s.d.Kinds[world.Message].Plural).kids {
		if m.has(field) {
			last = m.say(field)
		}
	}
	return last
}

// list shows all rows of a list, page by page.
func (s *solver) list(r world.Role, page func(n int) gym.Call, each func(row node) bool) {
	for n, before := 1, 0; ; n++ {
		got := s.patiently(page(n), func(got node) bool {
			rows := got.of(s.d.Kinds[r].Plural).kids
			return got.say("has_more") == "true" || before+len(rows) == got.num("total") && s.genuine(r, rows)
		})
		before += len(got.of(s.d.Kinds[r].Plural).kids)
		for _, row := range got.of(s.d.Kinds[r].Plural).kids {
			if !each(row) {
				return
			}
		}
		if got.say("has_more") != "true" || !s.pages {
			return
		}
	}
}

// genuine reports that holders found have the name that was asked for.
func (s *solver) genuine(r world.Role, rows []node) bool {
	return r != world.Holder || len(rows) == 0 || rows[0].say("name") == s.pins["name"].Text
}

// says reports whether a field is what the instruction says of it, if it says anything.
func (s *solver) says(role, field string) bool {
	v, ok := s.pins[role]
	return !ok || !s.match || Pack.Spell(v) == field
}

func (s *solver) fits(row node) bool {
	return s.says("item", row.say(s.name(world.Subject, world.Item))) && s.says("site", row.say(s.name(world.Subject, world.Site))) &&
		s.says("status", row.say(s.name(world.Subject, world.Status)))
}

// work does the whole case.
func (s *solver) work() {
	if s.trick != nil && s.trick(s) {
		return
	}
	switch s.num(goalWant) {
	case wantBook:
		s.book()
	case wantChain:
		s.chain()
	default:
		if s.num(goalScope) == 2 {
			s.every()
		} else {
			s.one()
		}
	}
}

// owner finds whose subjects it is about.
func (s *solver) owner() gym.Value {
	who, given := s.pins["holder"]
	relations := -s.num(goalSource) - 1
	if !given {
		relations = s.num(goalSource) - 2
		who = none
		s.list(world.Holder, func(n int) gym.Call {
			return s.op(world.FindHolder, none, none, s.pins["name"], s.pins["key"], count(n))
		}, func(row node) bool {
			if s.says("tier", row.say(s.name(world.Holder, world.Tier))) && s.says("city", row.say(s.name(world.Holder, world.City))) {
				who = id(row.say("id"))
			}
			return who == none
		})
	}
	for range relations {
		if who == none {
			break
		}
		who = id(s.record(world.GetHolder, world.Holder, who).say(s.name(world.Holder, world.Sponsor)))
	}
	if who == none {
		s.giveUp()
	}
	return who
}

// day returns the day to list by, none if none is stated.
func (s *solver) day() gym.Value {
	x, ok := s.pins["moment"]
	if !ok {
		return none
	}
	return world.Text(world.TDay, s.ask(call(toolConvert, x, world.Value(world.TUnit, world.UTCDay))).say("day"))
}

func (s *solver) subjects(owner, day gym.Value) func(n int) gym.Call {
	return func(n int) gym.Call { return s.op(world.ListSubjects, owner, none, day, count(n)) }
}

// subject finds the one subject that is meant, and its owner if that is known by then.
func (s *solver) subject() (v, owner gym.Value) {
	v, given := s.pins["subject"]
	owner = none
	if !given {
		owner = s.owner()
		v = none
		s.list(world.Subject, s.subjects(owner, s.day()), func(row node) bool {
			if s.fits(row) {
				v = id(row.say("id"))
			}
			return v == none
		})
	}
	for range s.num(goalHops) {
		if v == none {
			break
		}
		v = id(s.record(world.GetSubject, world.Subject, v).say(s.name(world.Subject, world.Follows)))
	}
	if v == none {
		s.giveUp()
	}
	return v, owner
}

// before does what has to be done between reading the subject and changing anything.
func (s *solver) before() {
	if !s.rules {
		return
	}
	for i := range s.num(goalGap) {
		s.ask(call(toolNotice, count(1+i)))
	}
	if n := s.num(goalNotice); n > 0 {
		s.ask(call(toolNotice, count(n)))
	}
}

// permit gets leave, if a rule or the domain asks for it.
func (s *solver) permit(owner gym.Value) {
	if s.num(goalRules) < rulePermit && !(s.d.NeedsPermit && s.num(goalWant) != wantBook) || !s.rules && !s.d.NeedsPermit {
		return
	}
	s.permitted = s.makes(s.op(world.Allow, owner), world.Permit, func() node { return s.record(world.GetHolder, world.Holder, owner) })
}

// makes makes a record and returns its id. After a call without an answer it looks whether the record was made.
func (s *solver) makes(c gym.Call, r world.Role, look func() node) gym.Value {
	k := &s.d.Kinds[r]
	for range s.retry + 1 {
		n := s.ask(c)
		if v := id(n.of(k.Name).say("id")); v != none {
			return v
		}
		switch n.say("fault") {
		case "busy":
			s.ask(call(toolWait, count(world.BusyTicks)))
		case "timeout":
			if s.reread {
				if made := look().of(k.Plural).kids; len(made) > 0 {
					return id(made[0].say("id"))
				}
			}
		default:
			return none
		}
	}
	return none
}

// until lets time pass to the tick before which nothing may be changed.
func (s *solver) until() {
	n := int64(s.num(goalNotYet))
	if !s.rules || n == 0 {
		return
	}
	for now := s.clocks[s.next-1] + 1; now < n; {
		ticks := min(20, n-now)
		now = int64(s.ask(call(toolWait, count(int(ticks)))).num("now")) + 1
	}
}

// job is what is to be done to a subject.
type job struct {
	act                 check.Act
	reason, queue, code int
	place, version      gym.Value
	placeText           string
}

// result is how a change ended.
type result struct {
	rec      node // the subject as it is then
	outcome  int  // done, refused by a hold, or blocked
	code     int
	incident gym.Value
}

// change does a job to a subject as it was read, and reads it back if asked to.
func (s *solver) change(j *job, v gym.Value, rec node, confirm bool) (r result) {
	for try := 0; try <= s.retry; try++ {
		if code := s.held(rec); code >= 0 {
			return result{rec, world.Refused, code, none}
		}
		n := s.ask(s.changeCall(j, v, rec))
		code, fault := n.of("error").say("code"), n.say("fault")
		switch {
		case fault == "busy":
			s.ask(call(toolWait, count(world.BusyTicks)))
			continue
		case fault == "failed_for_good":
			in := n.of("incident")
			return result{rec, world.Blocked, wordOf(world.Types[world.TCode].Enum, in.say("code")), id(in.say("id"))}
		case code == "locked" && s.unlock && s.unlocked == none:
			s.unlockSetting()
			continue
		case code == "schema" && s.docs:
			s.ask(call(toolDocs))
			s.schema = 2
			continue
		case (fault == "conflict" || code == "stale") && !s.reread:
			return result{rec, world.Done, 0, none}
		}
		if !confirm && fault == "" && code == "" {
			return result{n.of(s.d.Kinds[world.Subject].Name), world.Done, 0, none}
		}
		was := rec
		rec = s.record(world.GetSubject, world.Subject, v)
		if s.took(j, was, rec) || !s.verify && fault == "" {
			break
		}
	}
	return result{rec, world.Done, 0, none}
}

// held returns the code of a hold that forbids the change, or -1.
func (s *solver) held(rec node) int {
	if !s.hold || s.num(goalFlags)&flagHold == 0 || !rec.has("hold") {
		return -1
	}
	return wordOf(world.Types[world.TCode].Enum, rec.say("hold"))
}

// took reports whether the record shows the change.
func (s *solver) took(j *job, was, rec node) bool {
	switch j.act {
	case check.Drop:
		return rec.say(s.name(world.Subject, world.Status)) == s.d.Words(world.TStatus)[world.Dropped]
	case check.Move:
		return rec.say(s.name(world.Subject, world.At)) == j.placeText
	case check.Swap:
		return rec.num("changes") > was.num("changes")
	}
	return rec.num("tickets") > was.num("tickets")
}

func (s *solver) changeCall(j *job, v gym.Value, rec node) gym.Call {
	if j.act == check.Escalate {
		return s.op(world.HandOver, world.Value(s.d.T(world.TQueue), j.queue), v, world.Value(world.TCode, j.code))
	}
	args, o := []gym.Value{v}, world.Drop
	switch j.act {
	case check.Drop:
		args = append(args, world.Value(s.d.T(world.TReason), j.reason))
	case check.Move:
		o = world.Move
		args = append(args, j.place)
	case check.Swap:
		o = world.Swap
		item := s.pins["item"]
		if part, ok := s.pins["part"]; ok {
			item = part
		}
		for _, p := range rec.of(s.d.Kinds[world.Part].Plural).kids {
			if p.say(s.name(world.Part, world.PartItem)) == Pack.Spell(item) {
				version := id(p.say(s.d.Kinds[world.Version].Name))
				if s.num(goalSize) > 0 {
					version = j.version
				}
				args = append(args, id(p.say("id")), version)
				break
			}
		}
		if len(args) == 1 {
			s.giveUp()
		}
	}
	args = append(args, s.rev(rec))
	if s.d.NeedsPermit {
		args = append(args, s.permitted)
	}
	if s.schema > 1 {
		args = append(args, count(s.schema))
	}
	for _, a := range args {
		if a == none {
			s.giveUp()
		}
	}
	return s.op(o, args...)
}

// unlockSetting finds the setting that blocks and turns it off.
func (s *solver) unlockSetting() {
	for i := range world.NumSwitches {
		key := world.Value(world.TSwitch, i)
		if s.ask(call(toolSetting, key)).say("blocks") == "true" {
			s.ask(call(toolSwitch, key, count(0)))
			s.unlocked = key
			return
		}
	}
}

// places returns the id of the owner's place of a name.
func (s *solver) place(owner gym.Value, text string) gym.Value {
	holder := s.record(world.GetHolder, world.Holder, owner)
	return s.placeIn(holder, text)
}

func (s *solver) placeIn(holder node, text string) gym.Value {
	for _, p := range holder.of(s.d.Kinds[world.Place].Plural).kids {
		if p.say(s.name(world.Place, world.Street)) == text {
			return id(p.say("id"))
		}
	}
	return none
}

// version finds the version of the size stated.
func (s *solver) version() gym.Value {
	item := s.pins["item"]
	if part, ok := s.pins["part"]; ok {
		item = part
	}
	good := s.good(item)
	for _, v := range s.record(world.GetGood, world.Good, good).of(s.d.Kinds[world.Version].Plural).kids {
		if v.say(s.name(world.Version, world.Size)) == s.d.Words(world.TSize)[s.word(goalSize)] {
			return id(v.say("id"))
		}
	}
	return none
}

func (s *solver) good(item gym.Value) (v gym.Value) {
	v = none
	s.list(world.Good, func(n int) gym.Call { return s.op(world.FindGood, item, count(n)) }, func(row node) bool {
		v = id(row.say("id"))
		return false
	})
	if v == none {
		s.giveUp()
	}
	return v
}

// job draws up what the instruction wants.
func (s *solver) job() job {
	acts := map[int]check.Act{wantDrop: check.Drop, wantMove: check.Move, wantSwap: check.Swap}
	j := job{act: acts[s.num(goalWant)], reason: s.word(goalReason), queue: s.word(goalQueue), code: s.word(goalCode), place: none, version: none}
	j.placeText = s.pins["place"].Text
	return j
}

// heed changes a job as messages about a subject have it.
func (s *solver) heed(j *job, rec node) {
	if !s.amend {
		return
	}
	if w := wordOf(s.d.Words(world.TReason), s.messages(rec, "reason")); w >= 0 {
		j.reason = w
	}
	if w := wordOf(s.d.Words(world.TQueue), s.messages(rec, "queue")); w >= 0 {
		j.queue = w
	}
	if w := wordOf(world.Types[world.TCode].Enum, s.messages(rec, "code")); w >= 0 {
		j.code = w
	}
	if text := s.messages(rec, "place"); text != "" {
		j.placeText = text
	}
}

// decide lets the policy say what to do.
func (s *solver) decide(j *job, rec node) {
	p := s.patiently(s.op(world.GetPolicy, world.Value(s.d.T(world.TTopic), s.word(goalTopic))), nil).of(s.d.Kinds[world.Policy].Name)
	status := rec.say(s.name(world.Subject, world.Status))
	j.code = max(0, wordOf(world.Types[world.TCode].Enum, p.say(status+"_code")))
	switch wordOf(s.d.Words(world.TRemedy), p.say(status)) {
	case world.RemedyDrop:
		j.act = check.Drop
	case world.RemedySwap:
		j.act = check.Swap
	case world.RemedyEscalate:
		j.act = check.Escalate
	default:
		j.act = check.Refuse
	}
}

func (s *solver) one() {
	v, owner := s.subject()
	j := s.job()
	holder := node{}
	if owner != none {
		s.permit(owner)
		if j.act == check.Move {
			holder = s.record(world.GetHolder, world.Holder, owner)
		}
	}
	rec := s.record(world.GetSubject, world.Subject, v)
	if owner == none {
		owner = id(rec.say(s.d.Kinds[world.Holder].Name))
		s.permit(owner)
		if j.act == check.Move {
			holder = s.record(world.GetHolder, world.Holder, owner)
		}
	}
	s.before()
	s.heed(&j, rec)
	if s.num(goalWant) == wantPolicy {
		s.decide(&j, rec)
	}
	if s.num(goalSize) > 0 {
		j.version = s.version()
	}
	if j.act == check.Move {
		j.place = s.placeIn(holder, j.placeText)
	}
	r := result{rec, world.Done, j.code, none}
	if j.act == check.Refuse {
		r.outcome = world.Refused
	} else if s.held(rec) < 0 {
		s.until()
	}
	if j.act != check.Refuse {
		if r = s.change(&j, v, rec, s.confirm); r.outcome == world.Done {
			r.code = j.code
		}
	}
	cited := s.rev(r.rec)
	if r.outcome == world.Blocked {
		cited = r.incident
	}
	s.close(owner, r.outcome, r.code, cited)
}

// close restores, announces, looks up what is to be cited besides, and finishes.
func (s *solver) close(owner gym.Value, outcome, code int, cited ...gym.Value) {
	if s.unlocked != none {
		s.ask(call(toolSwitch, s.unlocked, count(1)))
	}
	if n := s.num(goalAnnounce) - 1; n >= 0 && outcome == world.Done && s.rules {
		queue, word := world.Value(s.d.T(world.TQueue), n/world.NumCodes), world.Value(world.TCode, n%world.NumCodes)
		s.makes(s.op(world.HandOver, queue, owner, word), world.Ticket, func() node { return s.record(world.GetHolder, world.Holder, owner) })
	}
	if s.sides {
		var items []int
		for n := s.num(goalSides); n > 0; n /= 17 {
			items = append(items, n%17-1)
		}
		for _, item := range items {
			good := s.good(world.Value(s.d.T(world.TItem), item))
			cited = append(cited, s.rev(s.record(world.GetGood, world.Good, good)))
		}
	}
	s.ask(s.finish(outcome, code, cited...))
	s.giveUp()
}

func (s *solver) finish(outcome, code int, cited ...gym.Value) gym.Call {
	c := call(toolFinish, world.Value(world.TOutcome, outcome), world.Value(world.TCode, max(0, code)))
	var given []gym.Value
	for _, v := range cited {
		if v != none && !hasValue(given, v) && len(given) < gym.MaxList {
			given = append(given, v)
		}
	}
	c.Push(check.ArgEvidence, given...)
	return c
}

func hasValue(vals []gym.Value, v gym.Value) bool {
	for _, x := range vals {
		if x == v {
			return true
		}
	}
	return false
}

func (s *solver) every() {
	owner := s.owner()
	j := s.job()
	s.permit(owner)
	holder := node{}
	if j.act == check.Move {
		holder = s.record(world.GetHolder, world.Holder, owner)
	}
	day := s.day()
	var cited []gym.Value
	first := true
	s.list(world.Subject, s.subjects(owner, day), func(row node) bool {
		if !s.fits(row) {
			return true
		}
		v := id(row.say("id"))
		rec := s.record(world.GetSubject, world.Subject, v)
		s.heed(&j, rec)
		if first {
			first = false
			s.before()
			if s.num(goalSize) > 0 {
				j.version = s.version()
			}
			s.until()
		}
		if j.act == check.Move {
			j.place = s.placeIn(holder, j.placeText)
		}
		r := s.change(&j, v, rec, false)
		cited = append(cited, v)
		return r.outcome == world.Done
	})
	if len(cited) == 0 {
		s.giveUp()
	}
	if s.confirm {
		// All are read back in the list; what did not take is made again.
		var again []gym.Value
		s.list(world.Subject, s.subjects(owner, day), func(row node) bool {
			if v := id(row.say("id")); hasValue(cited, v) && !s.tookInList(&j, row) && s.verify {
				again = append(again, v)
			}
			return true
		})
		for _, v := range again {
			s.change(&j, v, s.record(world.GetSubject, world.Subject, v), s.confirm)
		}
	}
	s.close(owner, world.Done, j.code, cited...)
}

func (s *solver) tookInList(j *job, row node) bool {
	return s.took(j, node{}, row)
}

func (s *solver) book() {
	v, owner := s.subject()
	rec := s.record(world.GetSubject, world.Subject, v)
	if owner == none {
		owner = id(rec.say(s.d.Kinds[world.Holder].Name))
	}
	s.permit(owner)
	s.before()
	total := rec.num(s.name(world.Subject, world.Total))
	var found []choice
	s.options(func(o gym.Value) bool {
		if !s.comparison {
			found = append(found, choice{o, 0})
			return len(found) < s.num(goalSize)
		}
		n := s.record(world.GetOption, world.Option, o)
		if n.num(s.name(world.Option, world.Capacity)) >= total && n.num(s.name(world.Option, world.Lead)) <= s.num(goalLimit) {
			found = append(found, choice{o, n.num(s.name(world.Option, world.Cost))})
		}
		return true
	})
	s.until()
	var booked []gym.Value
	for range min(s.num(goalSize), len(found)) {
		best := 0
		for i := range found {
			if found[i].cost < found[best].cost {
				best = i
			}
		}
		booked = append(booked, s.reserve(found[best].option))
		found = append(found[:best:best], found[best+1:]...)
	}
	s.close(owner, world.Done, s.word(goalCode), booked...)
}

// choice is an option and what it costs.
type choice struct {
	option gym.Value
	cost   int
}

// options shows the options of the area.
func (s *solver) options(each func(o gym.Value) bool) {
	var all []gym.Value
	area := world.Value(s.d.T(world.TCity), s.word(goalArea))
	s.list(world.Option, func(n int) gym.Call { return s.op(world.ListOptions, area, count(n)) }, func(row node) bool {
		all = append(all, id(row.say("id")))
		return true
	})
	for _, o := range all {
		if !each(o) {
			return
		}
	}
}

func (s *solver) reserve(o gym.Value) gym.Value {
	return s.makes(s.op(world.Reserve, o, count(bookedAmount)), world.Booking, func() node { return s.record(world.GetOption, world.Option, o) })
}

func (s *solver) chain() {
	v, owner := s.subject()
	option := none
	rec := s.record(world.GetSubject, world.Subject, v)
	if owner == none {
		owner = id(rec.say(s.d.Kinds[world.Holder].Name))
	}
	s.permit(owner)
	holder := s.record(world.GetHolder, world.Holder, owner)
	s.before()
	s.options(func(o gym.Value) bool { option = o; return false })
	if option == none {
		s.giveUp()
	}
	s.until()
	booking := s.reserve(option)
	j := job{act: check.Move, placeText: s.pins["place"].Text}
	j.place = s.placeIn(holder, j.placeText)
	was := rec.say(s.name(world.Subject, world.At))
	moved := s.change(&j, v, rec, true)
	hand := job{act: check.Escalate, queue: s.word(goalQueue), code: s.word(goalLimit)}
	r := s.change(&hand, v, moved.rec, s.confirm)
	if r.outcome != world.Blocked {
		s.close(owner, world.Done, s.word(goalCode), s.rev(r.rec))
	}
	if s.undo {
		j.placeText, j.place = was, s.placeIn(holder, was)
		s.change(&j, v, s.record(world.GetSubject, world.Subject, v), s.confirm)
		s.patiently(s.op(world.Release, booking), nil)
	}
	s.close(owner, world.Blocked, r.code, r.incident)
}

// trick is what an exploit does in place of the honest procedure; it reports false to go on with that.
type trick func(s *solver) bool

package tooluse

import (
	"slices"

	"provegym/gym"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/world"
)

// planner builds the oracle's plan step by step. A step knows when it is done, so that whoever follows the plan makes it again
// when the weather was against it.
type planner struct {
	d     *draft
	steps []gym.PlanStep
	owner []int // steps that the owner is known after; nil if the subject's id is given

	unlocked bool // the setting that blocks was turned off
}

type (
	// step makes one call, given the evidence so far.
	step = func(e *gym.Evidence) gym.Call
	done = func(e *gym.Evidence) bool
)

// add appends a step and returns its number.
func (p *planner) add(name string, kind gym.StepKind, needed bool, after []int, make step, done done) int {
	p.steps = append(p.steps, gym.PlanStep{Name: name, Kind: kind, Needed: needed, After: after, Make: make, Done: done})
	return len(p.steps) - 1
}

// has reports whether the instruction or a result has shown v.
func has(e *gym.Evidence, v gym.Value) bool {
	if e.Log == nil {
		return true
	}
	for i := range e.Built.Pins {
		if e.Built.Pins[i].Value == v {
			return true
		}
	}
	for i := e.Log.Len() - 1; i >= 0; i-- {
		if slices.Contains(e.Log.At(i).Shown, v) {
			return true
		}
	}
	return false
}

// known returns v if the episode has shown it, else the latest value of its type that it has shown: what an agent that
// skipped the read would have to take. With nothing to take it returns a value that the world never issued. Evidence without
// a log is that of a control that knows everything.
func known(e *gym.Evidence, v gym.Value) gym.Value {
	if has(e, v) {
		return v
	}
	for i := e.Log.Len() - 1; i >= 0; i-- {
		shown := e.Log.At(i).Shown
		for k := len(shown) - 1; k >= 0; k-- {
			if shown[k].Type == v.Type {
				return shown[k]
			}
		}
	}
	best := gym.Value{Type: v.Type}
	for _, p := range e.Built.Pins {
		if p.Value.Type == v.Type {
			best = p.Value
		}
	}
	return best
}

// call builds a call from one value a parameter; none leaves the parameter out.
func call(tool int, args ...gym.Value) gym.Call {
	var c gym.Call
	c.Reset(tool)
	for i, v := range args {
		if v == none {
			c.Push(i)
		} else {
			c.Push(i, v)
		}
	}
	return c
}

// none leaves an optional argument out.
var none = gym.Value{Type: 255}

func count(n int) gym.Value { return gym.Value{Type: world.TCount, Bits: uint64(n)} }

func lastWorld(e *gym.Evidence) *world.World { return e.Last.(*world.World) }

// op builds a call of a tool of the world's domain.
func op(w *world.World, op int, args ...gym.Value) gym.Call {
	return call(toolOf(w.Domain, op), args...)
}

// patient waits where the last call said that the tool was busy, and else makes the call.
func patient(make step) step {
	return func(e *gym.Evidence) gym.Call {
		if lastFault(e.Log) == world.Busy {
			return call(toolWait, count(world.BusyTicks))
		}
		return make(e)
	}
}

// get returns the step that reads a record.
func get(o, row int) step {
	return patient(func(e *gym.Evidence) gym.Call {
		w := lastWorld(e)
		return op(w, o, known(e, w.ID(row)))
	})
}

// shows is done when the record's id is known.
func shows(row int) done {
	return func(e *gym.Evidence) bool { return has(e, lastWorld(e).ID(row)) }
}

// read is done when the field was seen as it is now and, of a record with a rev, that too.
func read(row, field int, rev bool) done {
	return func(e *gym.Evidence) bool {
		w := lastWorld(e)
		return e.Log.Saw(w.Entity(row), world.Log(field), w.Records.Ver(row), e.Log.Len()) && (!rev || has(e, w.Rev(row)))
	}
}

func always(*gym.Evidence) bool { return true }

// both is done when both are.
func both(a, b done) done { return func(e *gym.Evidence) bool { return a(e) && b(e) } }

// wrote is done when the effect has taken place, whatever has become of it.
func wrote(x check.Effect) done {
	return func(e *gym.Evidence) bool {
		w, writes := lastWorld(e), e.Log.Writes()
		for i := range writes {
			if x.Is(w, &writes[i]) {
				return true
			}
		}
		return false
	}
}

// rank returns how many rows of a list have a smaller id: the position of a row in it.
func rank(w *world.World, r world.Role, row int, listed func(rec *world.Record) bool) int {
	id, before := w.At(row).ID, 0
	w.Each(r, func(_ int, rec *world.Record) bool {
		if rec.ID < id && listed(rec) {
			before++
		}
		return true
	})
	return before
}

// pageOf returns the page, from 0, on which a subject stands in the list of its holder's, or of those of its day.
func pageOf(w *world.World, row int, byDay bool, size int) int {
	t := w.At(row)
	return rank(w, world.Subject, row, func(rec *world.Record) bool {
		return rec.Up == t.Up && (!byDay || rec.F[world.Day] == t.F[world.Day])
	}) / size
}

// searchPage returns the page, from 0, on which a holder stands in the search for their name and key.
func searchPage(w *world.World, row, size int) int {
	t := w.At(row)
	return rank(w, world.Holder, row, func(rec *world.Record) bool { return sameName(rec, t) }) / size
}

func sameName(a, b *world.Record) bool {
	return a.F[world.First] == b.F[world.First] && a.F[world.Last] == b.F[world.Last] && a.F[world.Zip] == b.F[world.Zip]
}

// findPage returns a search for holders of the name and key of one.
func findPage(w *world.World, row, page int) step {
	rec := w.At(row)
	name, zip := world.Text(world.TName, w.Name(rec)), world.Text(world.TZip, rec.ZipText())
	return patient(func(*gym.Evidence) gym.Call { return op(w, world.FindHolder, none, none, name, zip, count(page)) })
}

// listPage returns a call that lists a holder's subjects, of a status or a day if they are not none.
func listPage(w *world.World, holder int, status, day gym.Value, page int) step {
	return patient(func(e *gym.Evidence) gym.Call {
		d := day
		if d != none {
			d = known(e, d)
		}
		return op(w, world.ListSubjects, known(e, w.ID(holder)), status, d, count(page))
	})
}

// wordPage returns a search by one word.
func wordPage(w *world.World, o int, word gym.Value, page int) step {
	return patient(func(*gym.Evidence) gym.Call { return op(w, o, word, count(page)) })
}

// scan plans to read pages 1 to last+1 of a list, of which only the final one is needed.
func (p *planner) scan(name string, last int, after []int, page func(page int) step, found done) int {
	at, turned := -1, after
	for i := range last + 1 {
		is := always // who knows where it stands goes there
		if i == last {
			is = found
		}
		at = p.add(name, gym.ReadStep, i == last, turned, page(i+1), is)
		turned = append([]int{at}, after...)
	}
	return at
}

// resolveOwner plans how the owner is found, and returns the steps that later ones come after.
func (p *planner) resolveOwner() []int {
	d, w := p.d, p.d.w
	var after []int
	if d.set.indirection != byID {
		at := p.scan("find_holder", searchPage(w, d.spec.Known, d.set.pageSize), nil, func(page int) step { return findPage(w, d.spec.Known, page) },
			shows(d.spec.Known))
		after = []int{at}
	}
	for i, row := range d.cast.people[:len(d.cast.people)-1] {
		if d.single() && d.set.indirection == byID {
			break // not asked for: the subject's id is given
		}
		at := p.add("get_related_holder", gym.ReadStep, true, after, get(world.GetHolder, row), shows(d.cast.people[i+1]))
		after = []int{at}
	}
	p.owner = after
	return after
}

// convertDay plans the conversion of the stated moment, if there is one, and returns the day to list by.
func (p *planner) convertDay(after []int) (gym.Value, []int) {
	d := p.d
	if d.set.indirection != byConversion {
		return none, after
	}
	x, day := world.Text(world.TMeasure, d.cast.moment), world.Text(world.TDay, world.DayText(int(d.cast.shown.day)))
	// It comes after the search, so that the table of slots still has the day when it is used.
	at := p.add("convert", gym.ReadStep, true, after, func(*gym.Evidence) gym.Call {
		return call(toolConvert, x, world.Value(world.TUnit, world.UTCDay))
	}, func(e *gym.Evidence) bool { return has(e, day) })
	return day, []int{at}
}

// resolveSubject plans how the one target is found, and returns the steps that reading it comes after.
func (p *planner) resolveSubject() []int {
	d, w := p.d, p.d.w
	described := d.cast.trail[0]
	var after []int
	if d.set.indirection != byID || !d.single() {
		after = p.resolveOwner()
	}
	if d.set.indirection != byID {
		day, before := p.convertDay(after)
		at := p.scan("list_subjects", pageOf(w, described, day != none, d.set.pageSize), before, func(page int) step {
			return listPage(w, d.spec.Owner, none, day, page)
		}, shows(described))
		after = []int{at}
	} else if !d.single() {
		at := p.scan("list_subjects", pageOf(w, described, false, d.set.pageSize), after, func(page int) step {
			return listPage(w, d.spec.Owner, none, none, page)
		}, shows(described))
		after = []int{at}
	}
	for i, row := range d.cast.trail[:len(d.cast.trail)-1] {
		at := p.add("get_earlier_subject", gym.ReadStep, true, after, get(world.GetSubject, row), both(shows(d.cast.trail[i+1]), read(row, world.Follows, false)))
		after = []int{at}
	}
	return after
}

// made returns the row of the record of a role that a tool made for another, or -1.
func made(w *world.World, r world.Role, up int) int {
	if rows := w.Of(r, up); len(rows) > 0 {
		return rows[0]
	}
	return -1
}

// makes returns a step that makes a record: after a call without an answer it looks first whether it was made.
func makes(r world.Role, up int, do, look step) (step, done) {
	return patient(func(e *gym.Evidence) gym.Call {
			w := lastWorld(e)
			if row := made(w, r, up); lastFault(e.Log) == world.Timeout || row >= 0 && !has(e, w.ID(row)) {
				return look(e)
			}
			return do(e)
		}), func(e *gym.Evidence) bool {
			w := lastWorld(e)
			row := made(w, r, up)
			return row >= 0 && has(e, w.ID(row))
		}
}

func knownMade(e *gym.Evidence, r world.Role, up int) gym.Value {
	w := lastWorld(e)
	if row := made(w, r, up); row >= 0 {
		return known(e, w.ID(row))
	}
	return known(e, gym.Value{Type: w.Domain.TypeOf(r)})
}

// permit plans to get leave, if it is asked for.
func (p *planner) permit(after []int) []int {
	d, owner := p.d, p.d.spec.Owner
	if !d.needsPermit() {
		return nil
	}
	make, is := makes(world.Permit, owner, get(world.Allow, owner), get(world.GetHolder, owner))
	return []int{p.add("get_permit", gym.WriteStep, true, after, make, is)}
}

// changeCall returns the call that does the act to a subject.
func changeCall(s *check.Spec, act check.Act, row int) step {
	return func(e *gym.Evidence) gym.Call {
		w := lastWorld(e)
		subject, rev := known(e, w.ID(row)), known(e, w.Rev(row))
		if act == check.Escalate {
			return op(w, world.HandOver, world.Value(w.Domain.T(world.TQueue), s.Queue), subject, world.Value(world.TCode, s.Code))
		}
		args := []gym.Value{subject}
		o := world.Drop
		switch act {
		case check.Drop:
			args = append(args, world.Value(w.Domain.T(world.TReason), s.Reason))
		case check.Move:
			o = world.Move
			args = append(args, known(e, w.ID(s.Place)))
		case check.Swap:
			o = world.Swap
			part := w.Of(world.Part, row)[0]
			version := s.Version
			if version < 0 {
				version = w.At(part).Ref(world.PartVersion)
			}
			args = append(args, known(e, w.ID(part)), known(e, w.ID(version)))
		}
		args = append(args, rev)
		if w.Domain.NeedsPermit {
			args = append(args, knownMade(e, world.Permit, w.At(row).Owner()))
		}
		if w.Schema > 1 {
			args = append(args, count(int(w.Schema)))
		}
		return op(w, o, args...)
	}
}

// change returns the step that does an act to a subject until it is done: after a conflict or a call without an answer the
// subject is read again.
func change(s *check.Spec, act check.Act, row int, is done) (step, done) {
	do := changeCall(s, act, row)
	look := get(world.GetSubject, row)
	return patient(func(e *gym.Evidence) gym.Call {
		if f := lastFault(e.Log); f == world.Conflict || f == world.Timeout || lostGrip(e, row) {
			return look(e)
		}
		return do(e)
	}), is
}

// lostGrip reports that the last change of a subject came to nothing or got no answer, and that the rev it has since is not known.
func lostGrip(e *gym.Evidence, row int) bool {
	if e.Log == nil {
		return false
	}
	w := lastWorld(e)
	for i := e.Log.Len() - 1; i >= 0; i-- {
		c := e.Log.At(i)
		if _, o, ok := opOf(c.Call.Tool); ok && (o == world.Drop || o == world.Move || o == world.Swap) && c.Err == "" && c.Call.Arg(argSubject)[0] == w.ID(row) {
			f := faultOf(c.Result)
			return (f == world.Conflict || f == world.Timeout) && !has(e, w.Rev(row))
		}
	}
	return false
}

// met is done when all goals about a subject and its parts hold.
func (p *planner) met(row int) done {
	s := p.d.spec
	var goals []check.Goal
	for _, g := range s.Goals {
		up := g.Up
		if g.Row >= 0 {
			if up = p.d.w.At(g.Row).Up; g.Role == world.Subject {
				up = uint32(g.Row + 1)
			}
		}
		if up == uint32(row+1) {
			goals = append(goals, g)
		}
	}
	return func(e *gym.Evidence) bool {
		for i := range goals {
			if !goals[i].Holds(e) {
				return false
			}
		}
		return true
	}
}

// finishCall returns the right finish.
func finishCall(s *check.Spec) step {
	return func(e *gym.Evidence) gym.Call {
		c := call(toolFinish, world.Value(world.TOutcome, s.Outcome), world.Value(world.TCode, s.Code))
		var cited []gym.Value
		for _, v := range s.Evidence(e) {
			if v = known(e, v); !slices.Contains(cited, v) {
				cited = append(cited, v)
			}
		}
		c.Push(check.ArgEvidence, cited[:min(len(cited), gym.MaxList)]...)
		return c
	}
}

// before plans what has to be read or had before the first change, beside the subject itself, and returns the steps that the
// change comes after.
func (p *planner) before(target int) (out []int) {
	d, w := p.d, p.d.w
	after := []int{target}
	for i := range d.set.gap {
		after = []int{p.notice(1+i, d.gapNotice(i), after)}
	}
	if d.set.gap > 0 {
		out = append(out, after...)
	}
	if d.set.constraints >= ruleNotice {
		out = append(out, p.notice(d.cast.notice, w.Lookup(world.Notice, int32(d.cast.notice)), nil))
	}
	if d.spec.Policy >= 0 {
		topic := world.Value(d.domain.T(world.TTopic), d.cast.topic)
		out = append(out, p.add("get_policy", gym.ReadStep, true, nil, patient(func(*gym.Evidence) gym.Call { return op(w, world.GetPolicy, topic) }),
			read(d.spec.Policy, world.Remedy, false)))
	}
	if d.join && p.attempts(d.spec.Targets[0]) {
		good := d.cast.goods[d.cast.model.item]
		at := p.add("find_good", gym.ReadStep, true, []int{target}, wordPage(w, world.FindGood, world.Value(d.domain.T(world.TItem), d.cast.model.item), 1), shows(good))
		out = append(out, p.add("get_good", gym.ReadStep, true, []int{at}, get(world.GetGood, good), shows(d.spec.Version)))
	}
	return out
}

// attempts reports whether the plan tries to change a subject: where a refusal is due it does so only to be told why.
func (p *planner) attempts(row int) bool {
	return p.d.spec.Act != check.Refuse || p.d.moving && p.d.w.At(row).F[world.Hold] == 0
}

// notice plans to read one.
func (p *planner) notice(number, row int, after []int) int {
	return p.add("get_notice", gym.ReadStep, true, after, func(*gym.Evidence) gym.Call { return call(toolNotice, count(number)) },
		func(e *gym.Evidence) bool {
			from := 0
			if len(after) > 0 { // it is to be read after the first subject
				from = e.Log.Len()
				for _, t := range p.d.spec.Targets {
					if at := check.Seen(e.Log, lastWorld(e).Entity(t), world.Day, 0, 0, from); at >= 0 {
						from = at + 1
					}
				}
			}
			return check.Seen(e.Log, lastWorld(e).Entity(row), world.Number, 0, from, e.Log.Len()) >= 0
		})
}

// waits plans to let time pass until changes are allowed.
func (p *planner) waits(after []int) []int {
	until := p.d.spec.NotYet
	if until == 0 {
		return nil
	}
	return []int{p.add("wait_until", gym.ReadStep, false, after, func(e *gym.Evidence) gym.Call {
		return call(toolWait, count(int(min(20, max(1, until-clock(e)-1)))))
	}, func(e *gym.Evidence) bool { return clock(e)+1 >= until })}
}

// clock returns the time after the last call.
func clock(e *gym.Evidence) int64 {
	if e.Log == nil || e.Log.Len() == 0 {
		return 0
	}
	c := e.Log.At(e.Log.Len() - 1)
	if c.Call.Tool == toolWait && c.Err == "" && len(c.Call.Arg(0)) == 1 {
		return c.Clock + c.Call.Arg(0)[0].Int()
	}
	return c.Clock
}

// switchSetting plans to turn the setting that blocks off or on.
func (p *planner) switchSetting(on int, after []int) int {
	row := p.d.spec.Lock
	key := world.Value(world.TSwitch, p.d.w.At(row).F[world.Key])
	return p.add("set_setting", gym.WriteStep, true, after, func(*gym.Evidence) gym.Call { return call(toolSwitch, key, count(on)) },
		wrote(check.Effect{Role: world.Setting, Row: row, Field: world.On, New: int64(on)}))
}

// closing plans what comes after the last change: the announcement, the branches to cite, the finish.
func (p *planner) closing(after []int) {
	d, w, s := p.d, p.d.w, p.d.spec
	if p.unlocked {
		after = append(after, p.switchSetting(1, after))
	}
	if d.announces() {
		queue, code := world.Value(d.domain.T(world.TQueue), d.cast.queue), world.Value(world.TCode, d.cast.code)
		do := func(e *gym.Evidence) gym.Call {
			w := lastWorld(e)
			return op(w, world.HandOver, queue, known(e, w.ID(s.Owner)), code)
		}
		make, is := makes(world.Ticket, s.Owner, do, get(world.GetHolder, s.Owner))
		after = append(after, p.add("announce", gym.WriteStep, true, after, make, is))
	}
	for _, row := range d.cast.branches {
		word := world.Value(d.domain.T(world.TItem), w.At(row).F[world.GoodItem])
		// Last, so that the table of slots has room for what is needed before.
		at := p.add("find_side", gym.ReadStep, true, after, wordPage(w, world.FindGood, word, 1), shows(row))
		after = append(after, p.add("get_side", gym.ReadStep, true, []int{at}, get(world.GetGood, row), read(row, world.GoodItem, true)))
	}
	p.add("finish", gym.FinishStep, true, after, finishCall(s), nil)
}

// plan plans the whole case.
func (p *planner) plan() {
	d := p.d
	switch {
	case d.family.set:
		p.planSet()
	case d.book:
		p.planBook()
	case d.chain:
		p.planChain()
	default:
		p.planOne()
	}
}

// readOwner plans to read the owner's places, if the act is a move.
func (p *planner) readOwner(after []int) []int {
	d := p.d
	if d.cast.want != wantMove && d.cast.want != wantChain {
		return nil
	}
	return []int{p.add("get_owner", gym.ReadStep, d.spec.Outcome == world.Done || d.chain || d.cast.downClause && d.spec.Outcome == world.Blocked || d.moving && p.attempts(d.spec.Targets[0]),
		after, get(world.GetHolder, d.spec.Owner), read(d.spec.Place, world.Street, false))}
}

func (p *planner) planOne() {
	d, s := p.d, p.d.spec
	row := s.Targets[0]
	after := p.resolveSubject()
	var early []int
	if p.owner != nil {
		early = append(p.readOwner(after), p.permit(after)...)
	}
	// A list shows the status too, and a ticket needs no rev: then a list will do.
	needed := s.Act != check.Escalate || d.set.indirection == byID && len(d.cast.trail) == 1 || d.set.gap > 0 || s.Confirm < 0
	target := p.add("get_subject", gym.ReadStep, needed, after, get(world.GetSubject, row), read(row, world.Day, true))
	if d.policy && s.Act == check.Escalate {
		p.steps[target].Needed = needed && d.amendedEscalate() || d.set.indirection == byID && len(d.cast.trail) == 1 || d.set.gap > 0
	}
	if len(d.cast.messages) > 0 {
		// Whoever has read the message must not search any more, and whoever writes must have read it.
		p.steps[target].After = append(slices.Clone(after), early...)
	}
	if p.owner == nil {
		early = append(p.readOwner([]int{target}), p.permit([]int{target})...)
	}
	before := append(append(p.before(target), early...), target)
	if !p.attempts(row) {
		p.closing(before)
		return
	}
	if s.Lock >= 0 {
		at := p.add("get_setting", gym.ReadStep, true, nil, func(*gym.Evidence) gym.Call {
			return call(toolSetting, world.Value(world.TSwitch, d.w.At(s.Lock).F[world.Key]))
		}, func(e *gym.Evidence) bool {
			return check.Seen(e.Log, lastWorld(e).Entity(s.Lock), world.Blocks, 0, 0, e.Log.Len()) >= 0
		})
		before = append(before, p.switchSetting(0, append([]int{at}, before...)))
		p.unlocked = true
	}
	before = append(before, p.waits(before)...)
	act := s.Act
	if act == check.Refuse {
		act = [...]check.Act{wantDrop: check.Drop, wantMove: check.Move, wantSwap: check.Swap}[d.cast.want]
	}
	is := p.met(row)
	switch {
	case s.Act == check.Refuse: // the attempt is what the other desk comes in between of
		is = func(e *gym.Evidence) bool { return lastWorld(e).At(row).F[world.Event] == world.EventOver }
	case s.Outcome == world.Blocked:
		is = func(e *gym.Evidence) bool {
			w := lastWorld(e)
			at := made(w, world.Incident, row)
			return at >= 0 && has(e, w.ID(at))
		}
	}
	make, is := change(s, act, row, is)
	wrote := p.add("write", gym.WriteStep, true, before, make, is)
	if s.Outcome == world.Blocked {
		p.closing([]int{wrote})
		return
	}
	after = []int{p.add("confirm", gym.ConfirmStep, true, []int{wrote}, get(world.GetSubject, row), both(is, read(row, world.Day, true)))}
	p.closing(after)
}

// amendedEscalate reports that what a ticket says depends on a message about the subject.
func (d *draft) amendedEscalate() bool { return len(d.cast.messages) > 0 }

func (p *planner) planSet() {
	d, s, w := p.d, p.d.spec, p.d.w
	owner := p.resolveOwner()
	before := append(slices.Clone(owner), append(p.readOwner(owner), p.permit(owner)...)...)
	day, before := p.convertDay(before)
	page := func(row int) int { return pageOf(w, row, day != none, d.set.pageSize) }
	sorted := slices.Clone(s.Targets)
	slices.SortStableFunc(sorted, func(a, b int) int { return page(a) - page(b) })
	on := func(n int) []int {
		return slices.DeleteFunc(slices.Clone(sorted), func(row int) bool { return page(row) != n })
	}
	pages := d.listed(day)
	at := before
	var writes, ready []int
	for n := range pages {
		rows := on(n)
		list := p.add("list_subjects", gym.ReadStep, len(rows) > 0, at, listPage(w, s.Owner, none, day, n+1), func(e *gym.Evidence) bool {
			return !slices.ContainsFunc(rows, func(row int) bool { return !has(e, lastWorld(e).ID(row)) })
		})
		at = append([]int{list}, before...)
		for _, row := range rows {
			got := p.add("get_subject", gym.ReadStep, true, at, get(world.GetSubject, row), read(row, world.Day, true))
			if len(writes) == 0 {
				ready = p.before(got)
				ready = append(ready, p.waits(append([]int{got}, ready...))...)
			}
			make, is := change(s, s.Act, row, p.met(row))
			writes = append(writes, p.add("write", gym.WriteStep, d.w.At(row).F[world.At] != int32(s.Place+1) || s.Act != check.Move,
				append([]int{got}, ready...), make, is))
			at = append([]int{list, writes[len(writes)-1]}, before...) // one subject at a time keeps what is in hand on the table
		}
	}
	var confirms []int
	for n := range pages {
		rows := on(n)
		if len(rows) == 0 {
			continue
		}
		confirms = append(confirms, p.add("confirm", gym.ConfirmStep, true, writes, listPage(w, s.Owner, none, day, n+1), func(e *gym.Evidence) bool {
			return !slices.ContainsFunc(rows, func(row int) bool { return !p.met(row)(e) || !read(row, s.Confirm, false)(e) })
		}))
	}
	p.closing(confirms)
}

// listed returns how many pages the owner's list has.
func (d *draft) listed(day gym.Value) int {
	n := 0
	for _, row := range d.w.Of(world.Subject, d.spec.Owner) {
		if day == none || d.w.At(row).F[world.Day] == d.cast.shown.day {
			n++
		}
	}
	return d.set.pages(n)
}

// planOptions plans to list the options of the area.
func (p *planner) planOptions(after []int) []int {
	d, w := p.d, p.d.w
	word := world.Value(d.domain.T(world.TCity), d.cast.area)
	page := func(row int) int {
		return rank(w, world.Option, row, func(rec *world.Record) bool { return rec.F[world.Area] == d.cast.area }) / d.set.pageSize
	}
	for n := range d.set.pages(len(d.cast.options)) {
		after = []int{p.add("list_options", gym.ReadStep, true, after, wordPage(w, world.ListOptions, word, n+1), func(e *gym.Evidence) bool {
			return !slices.ContainsFunc(d.cast.options, func(row int) bool { return page(row) == n && !has(e, lastWorld(e).ID(row)) })
		})}
	}
	return after
}

// reserve plans to book an option.
func (p *planner) reserve(row int, after []int) int {
	do := func(e *gym.Evidence) gym.Call {
		w := lastWorld(e)
		return op(w, world.Reserve, known(e, w.ID(row)), count(bookedAmount))
	}
	make, is := makes(world.Booking, row, do, get(world.GetOption, row))
	return p.add("reserve", gym.WriteStep, true, after, make, is)
}

func (p *planner) planBook() {
	d, s, w := p.d, p.d.spec, p.d.w
	after := p.resolveSubject()
	target := p.add("get_subject", gym.ReadStep, true, after, get(world.GetSubject, s.Targets[0]), read(s.Targets[0], world.Total, true))
	before := append(append(p.before(target), p.permit([]int{target})...), target)
	list := p.planOptions([]int{target})
	for _, row := range d.cast.options {
		before = append(before, p.add("get_option", gym.ReadStep, true, list, get(world.GetOption, row),
			func(e *gym.Evidence) bool {
				return check.Seen(e.Log, lastWorld(e).Entity(row), world.Cost, 0, 0, e.Log.Len()) >= 0
			}))
	}
	before = append(before, p.waits(before)...)
	sorted := slices.Clone(s.Choice.Feasible)
	slices.SortFunc(sorted, func(a, b int) int { return int(w.At(a).F[world.Cost] - w.At(b).F[world.Cost]) })
	var booked []int
	for _, row := range sorted[:s.Choice.Need] {
		booked = append(booked, p.reserve(row, before))
	}
	p.closing(booked)
}

func (p *planner) planChain() {
	d, s := p.d, p.d.spec
	row, option := s.Targets[0], d.cast.options[0]
	resolved := p.resolveSubject()
	owner := append(p.readOwner(resolved), p.permit(resolved)...)
	list := p.planOptions(resolved)
	target := p.add("get_subject", gym.ReadStep, true, resolved, get(world.GetSubject, row), read(row, world.Day, true))
	before := append(append(append(p.before(target), owner...), list...), target)
	before = append(before, p.waits(before)...)
	booked := p.reserve(option, before)
	move := func(to int, is done, after []int, name string) int {
		spec := *s
		spec.Place = to
		make, is := change(&spec, check.Move, row, is)
		return p.add(name, gym.WriteStep, true, after, make, is)
	}
	at := func(to int) done {
		return wrote(check.Effect{Role: world.Subject, Row: row, Field: world.At, New: int64(to + 1)})
	}
	moved := move(s.Place, at(s.Place), []int{booked, target}, "move")
	queue, code := world.Value(d.domain.T(world.TQueue), s.Queue), world.Value(world.TCode, d.chainCode())
	do := func(e *gym.Evidence) gym.Call {
		w := lastWorld(e)
		return op(w, world.HandOver, queue, known(e, w.ID(row)), code)
	}
	result, look := world.Ticket, get(world.GetSubject, row)
	if s.Outcome == world.Blocked {
		result, look = world.Incident, do // asked again, it shows the same incident
	}
	make, is := makes(result, row, do, look)
	handed := p.add("hand_over", gym.WriteStep, true, []int{moved}, make, is)
	if s.Outcome != world.Blocked {
		p.closing([]int{p.add("confirm", gym.ConfirmStep, true, []int{handed}, get(world.GetSubject, row), both(is, read(row, world.Day, true)))})
		return
	}
	was := d.w.At(row).Ref(world.At)
	again := p.add("get_subject_again", gym.ReadStep, true, []int{handed}, get(world.GetSubject, row), both(is, read(row, world.Day, true)))
	// Nothing reads it back, so an answer that was lost is made up for by a look.
	back := move(was, both(at(was), func(e *gym.Evidence) bool { return lastFault(e.Log) != world.Timeout }), []int{again}, "move_back")
	release := patient(func(e *gym.Evidence) gym.Call {
		return op(lastWorld(e), world.Release, knownMade(e, world.Booking, option))
	})
	p.closing([]int{p.add("release", gym.WriteStep, true, []int{back}, release, func(e *gym.Evidence) bool {
		w := lastWorld(e)
		at := made(w, world.Booking, option)
		return at >= 0 && w.At(at).F[world.Open] == 0
	})})
}

package tooluse

import (
	"slices"

	"provegym/gym"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/world"
)

// What an instruction asks for, as Goal numbers it. A complaint's act is the policy's to name.
const (
	wantDrop = iota + 1
	wantMove
	wantSwap
	wantPolicy
	wantBook
	wantChain
)

var actNames = [...]string{check.Drop: "drop", check.Move: "move", check.Swap: "swap", check.Escalate: "escalate",
	check.Refuse: "refuse", check.Book: "book", check.Chain: "chain"}

// act draws what is to be done, and the words that it is done with.
func (d *draft) act() {
	s := d.spec
	acts := []check.Act{check.Drop, check.Move, check.Swap}
	switch {
	case d.join:
		acts = []check.Act{check.Swap}
	case d.family.set, d.amended:
		acts = acts[:2]
	case d.book:
		acts = []check.Act{check.Book}
	case d.chain:
		acts = []check.Act{check.Chain}
	}
	s.Act = gym.Pick(&d.core, acts)
	s.Reason = uint8(d.core.IntN(world.NumReasons))
	s.Code = uint8(d.core.IntN(world.NumCodes))
	s.Queue = uint8(d.core.IntN(world.NumQueues))
	d.cast.topic = int32(d.core.IntN(world.NumTopics))
	d.cast.area = int32(d.core.IntN(world.NumCities))
	d.cast.lead = int32(5 + d.core.IntN(20))
	d.cast.want = [...]int{check.Drop: wantDrop, check.Move: wantMove, check.Swap: wantSwap, check.Book: wantBook, check.Chain: wantChain}[s.Act]
	s.Version = d.w.At(s.Part).Ref(world.PartVersion)
	if d.join {
		s.Version = d.cast.versions[d.cast.model.item][d.cast.size]
	}
	if d.policy {
		d.complaint()
	}
	d.said = said{reason: s.Reason, queue: s.Queue, code: s.Code, place: s.Place}
	if d.book || d.chain {
		d.offers()
	}
	d.side()
}

// complaint lets the policy on the topic decide by the target's status. It turns the policy's table, not the world's subjects,
// until that has a remedy of the family.
func (d *draft) complaint() {
	s := d.spec
	d.cast.want = wantPolicy
	s.Policy = d.w.Lookup(world.Policy, d.cast.topic)
	f := &d.w.Records.At(s.Policy).F
	status := int(d.cast.model.status)
	with := d.core.IntN(world.NumActive - 1)
	is := func(remedy int32) bool { return (remedy == world.RemedyRefuse) == d.refused }
	// Swap with another status: the first, from a drawn one on, whose remedy is of the family.
	for k := 0; !is(f[world.Remedy+status]) && k < world.NumActive; k++ {
		if o := (status + 1 + with + k) % world.NumActive; is(f[world.Remedy+o]) {
			f[world.Remedy+status], f[world.Remedy+o] = f[world.Remedy+o], f[world.Remedy+status]
		}
	}
	if d.twin { // the policy says something else of this status
		o := (status + 1 + with) % world.NumActive
		f[world.Remedy+status], f[world.Remedy+o] = f[world.Remedy+o], f[world.Remedy+status]
	}
	s.Code = uint8(f[world.Code+status])
	s.Act = [...]check.Act{world.RemedyDrop: check.Drop, world.RemedySwap: check.Swap, world.RemedyEscalate: check.Escalate,
		world.RemedyRefuse: check.Refuse}[f[world.Remedy+status]]
	if s.Act == check.Refuse {
		s.Outcome = world.Refused
	}
}

// offers makes the options: enough that keep the limits, and cheaper ones that miss one of them.
func (d *draft) offers() {
	s, need := d.spec, 1
	if d.book {
		need = d.set.fanout
	}
	total := d.w.At(s.Targets[0]).F[world.Total]
	key := d.key.Sub("options")
	stream, elsewhere := key.Stream(), key.Sub("elsewhere").Stream()
	near := d.key.Sub("near_duplicates").Sub("options").Stream()
	choice := &check.Choice{Need: need}
	cost := int32(100)
	option := func(st *gym.Stream, b world.Block, i int, area int32, trap int) int {
		dearer, capacity, lead := 3+int32(st.IntN(9)), total+int32(st.IntN(200)), 1+int32(st.IntN(int(d.cast.lead)))
		low, late, cheap := 1+int32(st.IntN(15)), 1+int32(st.IntN(9)), int32(st.IntN(60))
		f := [...]int32{area, 20 + cheap, capacity, lead}
		switch {
		case trap == 1:
			f[world.Capacity] = max(1, total-low)
		case trap == 2:
			f[world.Lead] = d.cast.lead + late
		case area == d.cast.area:
			// Costs rise from option to option: no two of them cost the same.
			cost += dearer
			f[world.Cost] = cost
		}
		return d.add(world.Option, b, i, -1, f[:]...)
	}
	if d.chain {
		d.cast.options = []int{option(&stream, world.Base, 0, d.cast.area, 0)}
	} else {
		for i := range need + 1 {
			choice.Feasible = append(choice.Feasible, option(&stream, world.Fanout, i, d.cast.area, 0))
		}
		d.cast.options = slices.Clone(choice.Feasible)
		for i := range 1 + (d.set.decoySubjects+d.set.decoyHolders+7)/8 {
			d.cast.options = append(d.cast.options, option(&near, world.NearDuplicates, i, d.cast.area, 1+i%2))
		}
	}
	for i := range 3 {
		option(&elsewhere, world.Base, 1+i, (d.cast.area+1+int32(i))%world.NumCities, 0)
	}
	if d.chain {
		return
	}
	if d.twin { // the cheapest one within the limits is within them no more
		f := &d.w.Records.At(choice.Feasible[0]).F
		f[world.Capacity] = max(1, total-3)
		choice.Feasible = choice.Feasible[1:]
	}
	sorted := slices.Clone(choice.Feasible)
	slices.SortFunc(sorted, func(a, b int) int { return int(d.w.At(a).F[world.Cost] - d.w.At(b).F[world.Cost]) })
	for _, row := range sorted[:min(need, len(sorted))] {
		choice.Best += d.w.At(row).F[world.Cost]
	}
	s.Choice = choice
}

// side draws the branches that are looked up to be cited: goods of other items.
func (d *draft) side() {
	s := d.key.Sub("width").Stream()
	from := 1 + s.IntN(world.NumItems-1)
	for i := range d.set.branches {
		item := (int(d.cast.model.item) + from + 3*i) % world.NumItems
		if item == int(d.cast.model.item) {
			item = (item + 1) % world.NumItems
		}
		for slices.Contains(d.cast.branches, d.cast.goods[item]) {
			item = (item + 1) % world.NumItems
		}
		d.cast.branches = append(d.cast.branches, d.cast.goods[item])
	}
}

// trouble draws what stands in the way: a setting that blocks, a hold, what other desks do, changes that fail, messages.
func (d *draft) trouble() {
	s, target := d.spec, d.spec.Targets[0]
	draw := func(name string) gym.Stream { return d.key.Sub(name).Stream() }
	lock := draw("lock")
	key, other := int32(lock.IntN(world.NumSwitches)), 1+lock.IntN(world.NumSwitches-1)
	if d.twin && d.lock {
		key = (key + int32(other)) % world.NumSwitches
	}
	if d.lock {
		s.Lock = d.w.Lookup(world.Setting, key)
		f := &d.w.Records.At(s.Lock).F
		f[world.On], f[world.Blocks] = 1, 1
	}
	refusals := draw("refusal_share")
	share, code := refusals.Float64(), int32(refusals.IntN(world.NumCodes))
	held := func() { s.Outcome, s.Act, s.Code = world.Refused, check.Refuse, uint8(code) }
	if d.single() && !d.policy && d.set.refusals > 0 {
		d.cast.holdClause = true
		if share < d.set.refusals {
			d.w.Records.At(target).F[world.Hold] = 1 + code
			held()
		}
	}
	events := draw("events")
	flip, code2 := events.IntN(2) == 0, int32(events.IntN(world.NumCodes))
	if d.moving {
		d.cast.holdClause = true
		if d.twin && !d.lock {
			flip = !flip
		}
		if s.Act != check.Refuse {
			f := &d.w.Records.At(target).F
			if f[world.Event] = world.EventDue; flip {
				f[world.NextHold] = 1 + code2
				code = code2
				held()
				s.Goals = append(s.Goals, check.Goal{Role: world.Subject, Row: target, Field: world.Hold, Want: 1 + code2})
			}
		}
	}
	d.w.Each(world.Subject, func(row int, rec *world.Record) bool {
		if rec.F[world.Event] == world.NoEvent && d.w.Keys.Luck(rec.ID^0xe7e47) < d.set.events/3 {
			rec.F[world.Event] = world.EventDue
		}
		return true
	})
	d.failures()
	d.amend()
}

// failures draws the changes that are impossible: in a chain the last one on half the seeds, elsewhere as the weather has it.
func (d *draft) failures() {
	s, target := d.spec, d.spec.Targets[0]
	blocked := func() {
		s.Outcome, s.Code = world.Blocked, uint8(incidentCode(d.w, target))
	}
	if d.chain {
		luck := d.key.Sub("chain").Stream()
		if fails := luck.IntN(2) == 0; fails != d.twin {
			d.w.Records.At(target).F[world.Down] = world.HandOverDown
			blocked()
		}
		return
	}
	if !d.single() || d.policy || d.lock || d.moving || d.set.faults == 0 || d.set.class < 2 {
		return
	}
	d.cast.downClause = true
	d.w.Each(world.Subject, func(row int, rec *world.Record) bool {
		if d.w.Keys.Luck(rec.ID^0xd0) < d.set.faults/4 {
			rec.F[world.Down] = world.ChangesDown
			if row == target && s.Act != check.Refuse {
				blocked()
			}
		}
		return true
	})
}

// asked is what the change that the case wants asks for, as an incident keeps it.
func (d *draft) asked() int32 {
	s := d.spec
	switch s.Act {
	case check.Drop:
		return 1 + int32(s.Reason)
	case check.Move:
		return 1 + int32(s.Place)
	case check.Swap:
		return 1 + int32(s.Version)
	default: // a chain ends with handing over
		return 1 + int32(s.Queue)
	}
}

// amend attaches messages to the targets. Each changes a word of the case; the last one holds.
func (d *draft) amend() {
	n := d.set.amendments
	if d.amended {
		n = max(1, n)
	}
	if n == 0 || d.book || d.chain {
		return
	}
	s := d.spec
	s.Said = check.Said{Reason: s.Reason, Queue: s.Queue, Code: s.Code, Place: s.Place}
	stream := d.key.Sub("amendments").Stream()
	noSearch := stream.IntN(2) == 0 && d.amended && d.set.indirection != byID
	codes := [2]int{1 + stream.IntN(world.NumCodes-1), 1 + stream.IntN(world.NumCodes-1)}
	reasons := [2]int{1 + stream.IntN(world.NumReasons-1), 1 + stream.IntN(world.NumReasons-1)}
	var fields [2][6]int32
	for i := range n {
		f := &fields[i]
		switch {
		case d.policy: // whichever the remedy, both words change
			d.say(f, world.NewReason, &s.Reason, reasons[i], world.NumReasons)
			d.say(f, world.NewQueue, &s.Queue, reasons[i], world.NumQueues)
		case i == 0 && d.cast.want == wantDrop:
			d.say(f, world.NewReason, &s.Reason, reasons[i], world.NumReasons)
		case i == 0 && d.cast.want == wantMove:
			f[world.NewPlace] = int32(1 + s.Near.Place)
			s.Near.Place, s.Place = s.Place, s.Near.Place
		default:
			if s.Outcome == world.Done {
				d.say(f, world.NewCode, &s.Code, codes[i], world.NumCodes)
			} else { // the code that the case would have had
				f[world.NewCode] = int32(1 + codes[i])
			}
		}
	}
	if noSearch {
		fields[0][world.NoSearch] = 1
	}
	s.Said.Amended = s.Said.Reason != s.Reason || s.Said.Place != s.Place || s.Said.Code != s.Code
	for k, row := range s.Targets {
		for i := range n {
			m := d.add(world.Message, world.Base, 2*k+i, row, fields[i][:]...)
			d.cast.messages = append(d.cast.messages, m)
		}
	}
	if noSearch {
		s.Bans = append(s.Bans, check.Ban{Role: world.Holder, Field: world.Listed, Follow: d.w.ID(d.cast.messages[0]), Told: true})
	}
}

// say lets a message change a word to one about `by` further: neither what it is, nor what the instruction says it is.
func (d *draft) say(f *[6]int32, field int, word *uint8, by, n int) {
	stated := map[int]uint8{world.NewReason: d.said.reason, world.NewQueue: d.said.queue, world.NewCode: d.said.code}[field]
	next := uint8((int(*word) + by) % n)
	for next == *word || next == stated {
		next = uint8((int(next) + 1) % n)
	}
	*word = next
	f[field] = int32(1 + next)
}

// require writes down what the case asks for: goals, allowed effects, facts, order, evidence.
func (d *draft) require() {
	s := d.spec
	c := d.key.Sub("constraints").Stream()
	d.cast.notice, d.cast.queue, d.cast.code = maxGap+1+c.IntN(maxNotices-maxGap), int32(c.IntN(world.NumQueues)), int32(c.IntN(world.NumCodes))
	d.said.early = int64(10 + c.IntN(6))
	changed := s.Outcome == world.Done && s.Act != check.Refuse
	for _, row := range s.Targets {
		if changed || d.chain {
			d.effects(row)
		}
	}
	if s.Choice != nil {
		for _, row := range s.Choice.Feasible {
			d.booking(row, 1)
		}
	}
	switch {
	case s.Choice != nil:
		s.Facts = append(s.Facts, check.Fact{Row: s.Targets[0], Field: world.Total})
		for _, row := range d.cast.options {
			s.Facts = append(s.Facts, check.Fact{Row: row, Field: world.Cost})
		}
	case s.Act == check.Refuse:
		s.Facts = append(s.Facts, check.Fact{Row: s.Targets[0], Field: world.Status})
		s.Cites = []check.Cite{{Row: s.Targets[0], Rev: true}}
	case s.Outcome == world.Blocked:
		s.Cites = []check.Cite{{Row: s.Targets[0], Role: world.Incident, Of: d.asked()}}
	case s.Set:
		for _, row := range s.Targets {
			s.Cites = append(s.Cites, check.Cite{Row: row})
		}
	default:
		s.Cites = []check.Cite{{Row: s.Targets[0], Rev: true}}
	}
	for _, row := range d.cast.branches {
		s.Cites = append(s.Cites, check.Cite{Row: row, Rev: true})
	}
	for _, row := range d.cast.trail[:len(d.cast.trail)-1] {
		s.Facts = append(s.Facts, check.Fact{Row: row, Field: world.Follows}) // lists show where it leads, not that it leads there
	}
	if s.Policy >= 0 {
		s.Facts = append(s.Facts, check.Fact{Row: s.Policy, Field: world.Remedy})
	}
	if d.set.constraints >= ruleNotice {
		s.Facts = append(s.Facts, check.Fact{Row: d.w.Lookup(world.Notice, int32(d.cast.notice)), Field: world.Number})
	}
	for i := range d.set.gap {
		s.Facts = append(s.Facts, check.Fact{Row: d.gapNotice(i), Field: world.Number, When: check.Between})
	}
	if s.Act == check.Move && changed {
		s.Facts = append(s.Facts, check.Fact{Row: s.Place, Field: world.Street})
	}
	if d.needsPermit() {
		goal := check.Goal{Row: -1, Role: world.Permit, Up: uint32(s.Owner + 1), Count: 1}
		permit := check.Effect{Role: world.Permit, Row: -1, Up: goal.Up, Field: world.Made, New: check.Any}
		s.Goals = append(s.Goals, goal)
		// A change that names the permit cannot come before it.
		if first, ok := d.firstChange(); ok && !(d.domain.NeedsPermit && first.Role != world.Ticket && first.Role != world.Option) {
			s.Orders = append(s.Orders, [2]check.Effect{permit, first})
		}
		s.Allowed = append(s.Allowed, check.Allow{Effect: permit, Max: 1})
	}
	if s.Lock >= 0 {
		d.restored(changed)
	}
	if d.announces() {
		d.announced()
	}
	if d.set.constraints >= ruleWait && changed {
		s.NotYet = d.said.early
	}
	if d.set.constraints >= rulePrivacy {
		s.Bans = append(s.Bans, check.Ban{Role: world.Subject, Field: world.Status, But: uint32(s.Owner + 1)})
	}
}

// needsPermit reports that a permit is asked for: by a rule, or because the domain's changes name one.
func (d *draft) needsPermit() bool {
	return d.set.constraints >= rulePermit || d.domain.NeedsPermit && !d.book
}

// gapNotice returns the row of the i-th notice that has to be read between.
func (d *draft) gapNotice(i int) int { return d.w.Lookup(world.Notice, int32(1+i)) }

// effects are those of the act on one target.
func (d *draft) effects(row int) {
	s := d.spec
	goal := func(r world.Role, row, field int, want int32) {
		s.Goals = append(s.Goals, check.Goal{Role: r, Row: row, Field: field, Want: want})
	}
	allow := func(r world.Role, row, field int, v int64) {
		s.Allowed = append(s.Allowed, check.Allow{Effect: check.Effect{Role: r, Row: row, Field: field, New: v}, Max: 1})
	}
	f := &d.w.At(row).F
	switch s.Act {
	case check.Drop:
		goal(world.Subject, row, world.Status, world.Dropped)
		goal(world.Subject, row, world.Reason, 1+int32(s.Reason))
		allow(world.Subject, row, world.Was, 1+int64(f[world.Status]))
		allow(world.Subject, row, world.Status, world.Dropped)
		allow(world.Subject, row, world.Reason, 1+int64(s.Reason))
		s.Confirm = world.Status
	case check.Move:
		goal(world.Subject, row, world.At, int32(s.Place+1))
		allow(world.Subject, row, world.At, int64(s.Place+1))
		s.Confirm = world.At
	case check.Swap:
		part := d.w.Of(world.Part, row)[0]
		swaps := d.w.At(part).F[world.Swaps] + 1
		version := s.Version
		if !d.join {
			version = d.w.At(part).Ref(world.PartVersion)
		}
		goal(world.Part, part, world.Swaps, swaps)
		goal(world.Part, part, world.PartVersion, int32(version+1))
		allow(world.Part, part, world.PartVersion, int64(version+1))
		allow(world.Part, part, world.Swaps, int64(swaps))
		allow(world.Subject, row, world.Changes, check.Any)
		s.Confirm = world.Changes
	case check.Escalate:
		s.Confirm = world.Tickets
		d.ticket(row, int32(s.Queue), int32(s.Code))
		allow(world.Subject, row, world.Tickets, check.Any)
	case check.Chain:
		d.chained(row)
	}
}

// ticket asks for one about a record.
func (d *draft) ticket(row int, queue, code int32) {
	s, up := d.spec, uint32(row+1)
	s.Goals = append(s.Goals, check.Goal{Row: -1, Role: world.Ticket, Up: up, Count: 1, Fields: []int32{queue, code}})
	d.made(world.Ticket, up, to{world.Made, -1}, to{world.TicketQueue, queue}, to{world.TicketCode, code})
}

// booking allows one of an option, and with more than one use giving it back.
func (d *draft) booking(row, uses int) {
	s, up := d.spec, uint32(row+1)
	s.Allowed = append(s.Allowed, check.Allow{Effect: check.Effect{Role: world.Option, Row: row, Field: world.Used, New: check.Any}, Max: uses})
	d.made(world.Booking, up, to{world.Made, -1}, to{world.Amount, bookedAmount}, to{world.Open, 1})
}

// made allows a record to be made once, with these fields; a value below 0 stands for any.
func (d *draft) made(r world.Role, up uint32, fields ...to) {
	for _, f := range fields {
		x := check.Effect{Role: r, Row: -1, Up: up, Field: f.field, New: int64(f.value)}
		if f.value < 0 {
			x.New = check.Any
		}
		d.spec.Allowed = append(d.spec.Allowed, check.Allow{Effect: x, Max: 1})
	}
}

// bookedAmount is how much of an option is booked.
const bookedAmount = 1

// chained: book, then move, then hand over; or, where that is impossible, move back and give back.
func (d *draft) chained(row int) {
	s := d.spec
	option := d.cast.options[0]
	was := d.w.At(row).F[world.At]
	booked := check.Effect{Role: world.Booking, Row: -1, Up: uint32(option + 1), Field: world.Made, New: check.Any}
	given := check.Effect{Role: world.Booking, Row: -1, Up: uint32(option + 1), Field: world.Open, New: 0}
	moved := check.Effect{Role: world.Subject, Row: row, Field: world.At, New: int64(s.Place + 1)}
	back := check.Effect{Role: world.Subject, Row: row, Field: world.At, New: int64(was)}
	s.Allowed = append(s.Allowed, check.Allow{Effect: moved, Max: 1})
	s.Orders = append(s.Orders, [2]check.Effect{booked, moved})
	if s.Outcome == world.Blocked {
		d.booking(option, 2)
		s.Allowed = append(s.Allowed, check.Allow{Effect: back, Max: 1}, check.Allow{Effect: given, Max: 1})
		s.Orders = append(s.Orders, [2]check.Effect{moved, back}, [2]check.Effect{back, given})
		s.Goals = append(s.Goals, check.Goal{Role: world.Subject, Row: row, Field: world.At, Want: was},
			check.Goal{Row: -1, Role: world.Booking, Up: uint32(option + 1), Count: 1, Fields: []int32{bookedAmount, 0}})
		return
	}
	d.booking(option, 1)
	d.ticket(row, int32(s.Queue), d.chainCode())
	s.Allowed = append(s.Allowed, check.Allow{Effect: check.Effect{Role: world.Subject, Row: row, Field: world.Tickets, New: check.Any}, Max: 1})
	handed := check.Effect{Role: world.Ticket, Row: -1, Up: uint32(row + 1), Field: world.Made, New: check.Any}
	s.Orders = append(s.Orders, [2]check.Effect{moved, handed})
	s.Goals = append(s.Goals, check.Goal{Role: world.Subject, Row: row, Field: world.At, Want: int32(s.Place + 1)},
		check.Goal{Row: -1, Role: world.Booking, Up: uint32(option + 1), Count: 1, Fields: []int32{bookedAmount, 1}})
	s.Confirm = world.Tickets
}

// chainCode is the code that a chain's ticket has; the case closes with it too.
func (d *draft) chainCode() int32 {
	s := d.key.Sub("chain").Sub("code").Stream()
	return int32(s.IntN(world.NumCodes))
}

// firstChange returns an effect that a permit has to come before.
func (d *draft) firstChange() (check.Effect, bool) {
	for i := range d.spec.Allowed {
		if x := d.spec.Allowed[i].Effect; x.Role != world.Permit && x.Role != world.Setting {
			return x, true
		}
	}
	return check.Effect{}, false
}

// restored: the setting that blocks is turned off, after it was read, and on again.
func (d *draft) restored(changed bool) {
	s := d.spec
	effect := func(v int64) check.Effect {
		return check.Effect{Role: world.Setting, Row: s.Lock, Field: world.On, New: v}
	}
	s.Allowed = append(s.Allowed, check.Allow{Effect: effect(0), Max: 1}, check.Allow{Effect: effect(1), Max: 1})
	s.Facts = append(s.Facts, check.Fact{Row: s.Lock, Field: world.Blocks, When: check.BeforeSwitch})
	if changed || d.moving {
		s.Goals = append(s.Goals, check.Goal{Role: world.Setting, Row: s.Lock, Field: world.On, Want: 1})
	}
}

// announces reports that there is a change to announce.
func (d *draft) announces() bool {
	return d.set.constraints >= ruleAnnounce && d.spec.Outcome == world.Done && d.spec.Act != check.Refuse
}

// announced: a ticket about the holder, after the last change.
func (d *draft) announced() {
	s := d.spec
	var changes []check.Effect
	for _, row := range s.Targets {
		for i := range s.Allowed {
			if x := s.Allowed[i].Effect; x.Role == world.Subject && x.Row == row && x.Field != world.Was && x.Field != world.Reason &&
				!(x.Field == world.At && int64(d.w.At(row).F[world.At]) == x.New) {
				changes = append(changes, x)
			}
		}
	}
	d.ticket(s.Owner, d.cast.queue, d.cast.code)
	made := check.Effect{Role: world.Ticket, Row: -1, Up: uint32(s.Owner + 1), Field: world.Made, New: check.Any}
	for _, x := range changes {
		s.Orders = append(s.Orders, [2]check.Effect{x, made})
	}
}

package tooluse

import (
	"fmt"

	"provegym/gym"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/world"
)

// setting is a condition's dials as numbers.
type setting struct {
	fanout, decoySubjects, decoyHolders, pageSize, extraTools, indirection int
	hops, branches, opacity, constraints, class, gap, amendments           int
	slack, faults, events, refusals                                        float64
}

func settingOf(c *gym.Condition) setting {
	near := c.Int("near_duplicates")
	// Most near-duplicates are of the holder: a list of subjects must leave room on the table of 64 slots for what is read of
	// each.
	subjects := (near + 4) / 8
	return setting{
		fanout: c.Int("fanout"), decoySubjects: subjects, decoyHolders: near - subjects, pageSize: c.Int("page_size"),
		extraTools: c.Int("extra_tools"), indirection: c.Int("indirection"), hops: c.Int("depth") - 4, branches: c.Int("width") - 1,
		opacity: c.Int("opacity"), constraints: c.Int("constraints"), class: c.Int("fault_class"), gap: c.Int("memory_gap"),
		amendments: c.Int("amendments"), slack: c.Float("slack"), faults: c.Float("fault_rate"), events: c.Float("events"),
		refusals: c.Float("refusal_share"),
	}
}

// pages returns how many pages n rows take.
func (s *setting) pages(n int) int { return max(1, (n+s.pageSize-1)/s.pageSize) }

// otherItem is how many decoy subjects differ from the one described in the item; the others differ in a site, a status or a day.
func (s *setting) otherItem() int { return (s.decoySubjects + 1) / 2 }

// Levels of the indirection dial: how the instruction says which subject it is about.
const (
	byID         = iota
	byAttribute  // of holder and subject
	byRelation   // the holder is the one who is related to a described one
	byConversion // and the subject's day must be converted from a moment elsewhere
)

// Standing rules, by the level of the constraints dial at which each begins.
const (
	ruleNotice   = 1 + iota // read a notice before the first change
	rulePermit              // get a permit before the first change
	ruleAnnounce            // open a ticket about the holder after the last change
	ruleWait                // change nothing before a tick
	rulePrivacy             // look at no other holder's subjects
)

const (
	bystanders = 4 // holders that every world begins with, beside the owner and one who is related
	perHolder  = 3 // places
	apart      = 2 // subjects of the owner that match the description of a set in nothing
)

// draft is a task under construction: the world so far and the streams that it is drawn from. Each dial draws from its own
// stream, so that turning one leaves what the others drew as it was.
type draft struct {
	task gym.Task
	kind
	set  setting
	key  gym.Key
	w    *world.World
	core gym.Stream // what belongs to no dial
	spec *check.Spec
	cast cast
	said said
	twin bool // the decisive hidden fact is flipped, see twin.go
}

// cast is who and what is in the case, and what the instruction may say of it.
type cast struct {
	model, shown record // what a target and what the subject described look like
	second       bool   // subjects may have a second part
	moment       string // byConversion: the shown day, in local time
	topic        int32  // of the policy
	people       []int  // from the holder described to the owner
	trail        []int  // from the subject described to the target
	strangers    []int  // bystanders
	goods        [world.NumItems]int
	versions     [world.NumItems][world.NumSizes]int
	branches     []int // goods to cite
	size         int32 // of the version stated
	want         int   // as Goal numbers it
	notice       int   // the number of the one to read
	queue, code  int32 // of the announcement
	holdClause   bool  // the instruction says what a hold means
	downClause   bool  // the instruction says what to do when a change is impossible
	area         int32 // of options
	lead         int32 // their limit
	options      []int
	messages     []int
	decoys       [2]int // rows from and to
}

// said is what the instruction says; messages and what is found on the way may have it otherwise.
type said struct {
	reason, queue, code uint8
	place               int
	early               int64
}

// record is what is drawn of a subject.
type record struct{ item, site, status, day int32 }

// build makes the task's world, instruction, check and plan.
func build(task gym.Task) (*gym.Built, error) { return buildTwin(task, false) }

func buildTwin(task gym.Task, twin bool) (*gym.Built, error) {
	k, err := kindOf(task.Family)
	if err != nil {
		return nil, err
	}
	d := newDraft(task, k)
	d.twin = twin
	d.model()
	d.subjects()
	d.act()
	d.trouble()
	d.require()
	if twin {
		d.flip()
	}
	p := planner{d: d}
	p.plan()
	if err := d.weather(p.steps); err != nil {
		return nil, err
	}
	d.origins(d.cast.decoys[0], d.cast.decoys[1])
	return d.built(p.steps), nil
}

func newDraft(task gym.Task, k kind) *draft {
	d := &draft{task: task, kind: k, set: settingOf(&task.Condition), key: task.Key()}
	ids := d.key.Sub("ids").Stream()
	d.w = world.New(k.domain, world.NewKeys(&ids))
	d.core = d.key.Sub("world").Stream()
	d.spec = &check.Spec{Policy: -1, Lock: -1, Confirm: -1, Near: check.Near{Own: -1, Foreign: -1, Place: -1}}
	d.catalogue()
	d.people()
	return d
}

func (d *draft) add(r world.Role, b world.Block, i, up int, fields ...int32) int {
	rec := world.Record{ID: d.w.Keys.ID(r, b, i), Up: uint32(up + 1), Role: r}
	copy(rec.F[:], fields)
	return d.w.Add(rec)
}

// catalogue makes a good of every item with its versions, a policy for every topic, the settings and the notices.
func (d *draft) catalogue() {
	s := d.key.Sub("catalogue").Stream()
	for i := range world.NumItems {
		d.cast.goods[i] = d.add(world.Good, world.Base, i, -1, int32(i), int32(10+s.IntN(190)))
		for size := range world.NumSizes {
			d.cast.versions[i][size] = d.add(world.Version, world.Base, i*world.NumSizes+size, d.cast.goods[i], int32(size))
		}
	}
	for i := range world.NumTopics {
		remedy := [world.NumActive]int32{world.RemedyDrop, world.RemedySwap, world.RemedyEscalate, world.RemedyRefuse}
		s.Shuffle(world.NumActive, func(i, j int) { remedy[i], remedy[j] = remedy[j], remedy[i] })
		row := d.add(world.Policy, world.Base, i, -1, int32(i))
		rec := d.w.Records.At(row)
		copy(rec.F[world.Remedy:], remedy[:])
		for k := range world.NumActive {
			rec.F[world.Code+k] = int32(s.IntN(world.NumCodes))
		}
	}
	for i := range world.NumSwitches {
		d.add(world.Setting, world.Base, i, -1, int32(i), int32(s.IntN(2)))
	}
	for i := range maxNotices {
		d.add(world.Notice, world.Base, i, -1, int32(i+1))
	}
}

// people makes the owner, one who is related, bystanders, and as many between the described one and the owner as a set's depth
// has hops.
func (d *draft) people() {
	first := d.core.IntN(world.NumFirst)
	var rows []int
	for i := range 2 + bystanders {
		// Nobody but a near-duplicate shares a name with the holder described.
		rows = append(rows, d.holder(&d.core, world.Base, i, holderFields(&d.core, (first+5*i)%world.NumFirst)))
	}
	for i, row := range rows {
		d.w.Records.At(row).F[world.Sponsor] = int32(1 + rows[2+(i+1)%bystanders])
	}
	owner, related := rows[0], rows[1]
	d.w.Records.At(related).F[world.Sponsor] = int32(1 + owner)
	d.cast.strangers = rows[2:]
	d.cast.people = []int{owner}
	if d.set.indirection >= byRelation {
		d.cast.people = []int{related, owner}
	}
	if !d.single() {
		s := d.key.Sub("depth").Stream()
		for i := range d.set.hops {
			row := d.holder(&s, world.Depth, i, holderFields(&s, (first+5*(2+bystanders+i))%world.NumFirst))
			d.w.Records.At(row).F[world.Sponsor] = int32(1 + d.cast.people[0])
			d.cast.people = append([]int{row}, d.cast.people...)
		}
	}
	d.spec.Owner, d.spec.Known = owner, d.cast.people[0]
}

func holderFields(s *gym.Stream, first int) [world.Sponsor]int32 {
	return [world.Sponsor]int32{world.First: int32(first), world.Last: int32(s.IntN(world.NumLast)), world.Zip: int32(10000 + s.IntN(90000)),
		world.Tier: int32(s.IntN(world.NumTiers)), world.City: int32(s.IntN(world.NumCities))}
}

// holder adds a holder with places of different names.
func (d *draft) holder(s *gym.Stream, b world.Block, i int, fields [world.Sponsor]int32) int {
	row := d.add(world.Holder, b, i, -1, fields[:]...)
	rec := d.w.Records.At(row)
	rec.F[world.Digits], rec.F[world.Mail] = int32(s.IntN(9_000_000)), int32(s.IntN(world.NumMails))
	street := s.IntN(world.NumStreets)
	for k := range perHolder {
		d.add(world.Place, b, i*perHolder+k, row, int32(1+s.IntN(199)), int32((street+5*k)%world.NumStreets))
	}
	return row
}

// place returns the row of a holder's k-th place: they follow the holder.
func place(holder, k int) int { return holder + 1 + k }

// subject adds a subject to a holder, at one of their places, with a part of its item and perhaps one of another.
func (d *draft) subject(s *gym.Stream, b world.Block, i, holder int, r record) int {
	at := place(holder, s.IntN(perHolder-1)) // the last place is free for a move
	row := d.add(world.Subject, b, i, holder)
	rec := d.w.Records.At(row)
	rec.F[world.Status], rec.F[world.Item], rec.F[world.Site], rec.F[world.Day] = r.status, r.item, r.site, r.day
	rec.F[world.At], rec.F[world.Total] = int32(at+1), int32(20+s.IntN(900))
	size, second, item := s.IntN(world.NumSizes), s.IntN(2), 1+s.IntN(world.NumItems-1)
	d.part(b, 2*i, row, r.item, size)
	if d.cast.second && second == 1 {
		d.part(b, 2*i+1, row, (r.item+int32(item))%world.NumItems, size)
	}
	return row
}

func (d *draft) part(b world.Block, i, subject int, item int32, size int) {
	if d.join && item == d.cast.model.item {
		size = int(1 - d.cast.size) // the version that is wanted stands nowhere but in the list of versions
	}
	d.add(world.Part, b, i, subject, item, int32(1+d.cast.versions[item][size]))
}

// model draws what a target looks like, what the subject described looks like if another one, and the moment that stands for
// the latter's day.
func (d *draft) model() {
	m := &d.cast.model
	m.item = int32(d.core.IntN(world.NumItems))
	m.site = int32(d.core.IntN(world.NumSites))
	m.status = int32(d.core.IntN(world.NumActive))
	m.day = int32(30 + d.core.IntN(300))
	d.cast.size = int32(d.core.IntN(world.NumSizes))
	d.cast.shown = *m
	if d.single() && d.set.hops > 0 {
		s := d.key.Sub("depth").Stream()
		d.cast.shown = record{(m.item + 1 + int32(s.IntN(world.NumItems-1))) % world.NumItems, (m.site + 1 + int32(s.IntN(world.NumSites-1))) % world.NumSites,
			int32(s.IntN(world.NumActive)), m.day + 40}
	}
	s := d.key.Sub("indirection").Stream()
	ahead, hours, hour, minute := s.IntN(2) == 0, 3+s.IntN(9), s.IntN(64), s.IntN(60)
	if d.set.indirection == byConversion {
		d.cast.moment = moment(int(d.cast.shown.day), ahead, hours, hour, minute)
	}
}

// moment spells an instant of the UTC day in a place whose clocks show another date at that instant.
func moment(day int, ahead bool, hours, hour, minute int) string {
	at := hour % hours // UTC hours after midnight, for clocks that are behind
	offset := -hours
	if ahead {
		at, offset = 24-hours+hour%hours, hours
	}
	return spellMoment(day, at, minute, offset)
}

// naiveDay is the day that the moment shows before it is converted: never the right one.
func naiveDay(moment string) int32 { return int32(dayNumber(moment[:len("2006-01-02")])) }

// other returns a subject that shares neither item, site, status nor day with the model, and not the item of the one described.
func (d *draft) other(s *gym.Stream) record {
	m, shown := d.cast.model, d.cast.shown
	o := record{(m.item + 1 + int32(s.IntN(world.NumItems-1))) % world.NumItems, (m.site + 1 + int32(s.IntN(world.NumSites-1))) % world.NumSites,
		(m.status + 1 + int32(s.IntN(world.NumActive-1))) % world.NumActive, m.day + 5 + 2*int32(s.IntN(2))}
	for o.item == shown.item || o.item == m.item {
		o.item = (o.item + 1) % world.NumItems
	}
	return o
}

// subjects fills the world: the targets, other subjects of the owner, those that lead to the target, near-duplicates.
func (d *draft) subjects() {
	s, owner := d.spec, d.spec.Owner
	fan := d.key.Sub("fanout").Stream()
	s.Set = d.family.set
	if s.Set {
		for i := range apart {
			d.subject(&d.core, world.Base, i, owner, d.other(&d.core))
		}
		for i := range d.set.fanout {
			s.Targets = append(s.Targets, d.subject(&fan, world.Fanout, i, owner, d.cast.model))
		}
		d.cast.trail = s.Targets[:1]
	} else {
		d.cast.second = true
		s.Targets = []int{d.subject(&d.core, world.Base, 0, owner, d.cast.model)}
		others := d.set.fanout
		if d.book {
			others = 2 // the dial turns what is to be booked
		}
		for i := range others {
			d.subject(&fan, world.Fanout, i, owner, d.other(&fan))
		}
		d.cast.trail = s.Targets
		if d.single() {
			d.hops()
		}
	}
	d.cast.decoys[0] = d.w.Records.Len()
	d.decoys()
	d.cast.decoys[1] = d.w.Records.Len()
	d.links()
	d.nearest()
}

// hops puts subjects before the target, each of which refers to the next; the first is the one described.
func (d *draft) hops() {
	s := d.key.Sub("depth").Stream()
	for i := range d.set.hops {
		r := d.other(&s)
		if i == d.set.hops-1 {
			r = d.cast.shown
		}
		row := d.subject(&s, world.Depth, i, d.spec.Owner, r)
		d.w.Records.At(row).F[world.Follows] = int32(1 + d.cast.trail[0])
		d.cast.trail = append([]int{row}, d.cast.trail...)
	}
}

// decoys adds the near-duplicates: holders who share all but one of the stated attributes with the one described, each with a
// subject like the one described; and subjects of the owner that share all but one with it.
func (d *draft) decoys() {
	key := d.key.Sub("near_duplicates")
	people := key.Sub("holders").Stream()
	like := *d.w.At(d.spec.Known)
	for i := range d.set.decoyHolders {
		f := [world.Sponsor]int32(like.F[:world.Sponsor])
		city, tier := 1+people.IntN(world.NumCities-1), 1+people.IntN(world.NumTiers-1)
		if i%2 == 0 {
			f[world.City] = (f[world.City] + int32(city)) % world.NumCities
		} else {
			f[world.Tier] = (f[world.Tier] + int32(tier)) % world.NumTiers
		}
		row := d.holder(&people, world.NearDuplicates, i, f)
		d.w.Records.At(row).F[world.Sponsor] = int32(1 + gym.Pick(&people, d.cast.strangers))
		d.subject(&people, world.NearDuplicates, 2*i, row, d.cast.shown)
	}
	goods := key.Sub("subjects").Stream()
	for i := range d.set.decoySubjects {
		o := d.cast.shown
		item, shift := 1+goods.IntN(world.NumItems-1), 1+goods.IntN(world.NumSites-1)
		switch {
		case i%2 == 0:
			o.item = (o.item + int32(item)) % world.NumItems
		case d.set.indirection == byConversion:
			o.day = naiveDay(d.cast.moment)
		case d.spec.Set:
			o.status = (o.status + int32(shift)) % world.NumActive
		default:
			o.site = (o.site + int32(shift)) % world.NumSites
		}
		d.subject(&goods, world.NearDuplicates, 2*i+1, d.spec.Owner, o)
	}
}

// links lets near-duplicates lead on to some subject too.
func (d *draft) links() {
	if len(d.cast.trail) < 2 {
		return
	}
	d.w.Each(world.Subject, func(row int, rec *world.Record) bool {
		if rec.F[world.Follows] == 0 && row != d.spec.Targets[0] && rec.Up != uint32(d.spec.Owner+1) {
			rec.F[world.Follows] = int32(1 + row) // it refers to itself: a dead end
		}
		return true
	})
}

// nearest finds what a careless agent would take instead, and settles which part and place the act is for.
func (d *draft) nearest() {
	s := d.spec
	target := d.w.At(s.Targets[0])
	s.Place = place(s.Owner, perHolder-1)
	s.Part = d.w.Of(world.Part, s.Targets[0])[0]
	if s.Near.Place = place(s.Owner, 0); target.Ref(world.At) == s.Near.Place {
		s.Near.Place = place(s.Owner, 1)
	}
	for _, row := range s.Targets[1:] { // a message may send them there: none is there already
		if rec := d.w.Records.At(row); rec.Ref(world.At) == s.Near.Place {
			rec.F[world.At] = target.F[world.At]
		}
	}
	d.w.Each(world.Subject, func(row int, rec *world.Record) bool {
		best := &s.Near.Own
		if rec.Owner() != s.Owner {
			best = &s.Near.Foreign
		}
		if !contains(s.Targets, row) && (*best < 0 || d.closeness(row) > d.closeness(*best)) {
			*best = row
		}
		return true
	})
}

func contains(rows []int, row int) bool {
	for _, r := range rows {
		if r == row {
			return true
		}
	}
	return false
}

// closeness counts what a subject shares with the model.
func (d *draft) closeness(row int) (n int) {
	f, m := &d.w.At(row).F, &d.cast.model
	for _, same := range [...]bool{f[world.Item] == m.item, f[world.Site] == m.site, f[world.Status] == m.status, f[world.Day] == m.day} {
		if same {
			n++
		}
	}
	return n
}

// tools returns the tools of the domain and as many distractors as the dial says; more of them only add to fewer.
func (d *draft) tools() gym.ToolSet {
	own := gym.ToolSet(1)<<numShared - 1
	for op := range world.NumOps {
		own = own.With(toolOf(d.domain, op))
	}
	var others [maxExtraTools]int
	n := 0
	for i := range Pack.Tools {
		if !own.Has(i) {
			others[n] = i
			n++
		}
	}
	s := d.key.Sub("extra_tools").Stream()
	s.Shuffle(n, func(i, j int) { others[i], others[j] = others[j], others[i] })
	for _, i := range others[:d.set.extraTools] {
		own = own.With(i)
	}
	return own
}

// origins marks why each record is there: what the plan or the check touches is needed, what resembles it is a decoy, the rest
// is noise. Ids of near-duplicates come from a block of their own, but a record does not say from which.
func (d *draft) origins(decoysFrom, decoysTo int) {
	w, s := d.w, d.spec
	for i := decoysFrom; i < decoysTo; i++ {
		w.Records.At(i).Origin = world.Decoy
	}
	need := func(rows ...int) {
		for _, row := range rows {
			if row >= 0 {
				w.Records.At(row).Origin = world.Needed
			}
		}
	}
	for _, row := range d.cast.options {
		w.Records.At(row).Origin = world.Decoy
	}
	if s.Choice != nil {
		need(s.Choice.Feasible...)
	} else {
		need(d.cast.options...)
	}
	need(d.cast.people...)
	need(d.cast.trail...)
	need(d.cast.messages...)
	need(d.cast.branches...)
	need(s.Policy, s.Lock, s.Place)
	for _, row := range s.Targets {
		need(row, w.At(row).Ref(world.At))
		for _, part := range w.Of(world.Part, row)[:1] {
			version := w.At(part).Ref(world.PartVersion)
			need(part, version, w.At(version).Owner())
		}
	}
	if d.join {
		need(s.Version, w.At(s.Version).Owner())
	}
	for i := range s.Facts {
		need(s.Facts[i].Row)
	}
}

// built puts the parts together.
func (d *draft) built(plan []gym.PlanStep) *gym.Built {
	template := d.task.Family + "/" + actNames[d.spec.Act]
	if k := prefix(d.domain); k != "" {
		template = d.domain.Name + "/" + d.family.name + "/" + actNames[d.spec.Act]
	}
	b := &gym.Built{
		World:       d.w,
		Instruction: d.instruction(),
		Tools:       d.tools(),
		Face:        d.face(),
		Check:       d.spec.Check(),
		Plan:        plan,
		Spec:        d.spec,
		Explain:     d.spec.Explain,
		Template:    template,
		Mechanisms:  d.mechanisms(),
	}
	b.Potential = func(e *gym.Evidence) float64 { return potential(b.Plan, d.spec, e) }
	d.describe(b)
	g := gym.NewDigester("graph")
	for _, m := range append([]string{template}, b.Mechanisms...) {
		g.Text(m)
	}
	b.Graph = g.Sum().String()
	return b
}

var byNames = [...]string{byID: "by_id", byAttribute: "by_attribute", byRelation: "by_relation", byConversion: "by_conversion"}

// mechanisms names what the case is made of, for splits.
func (d *draft) mechanisms() []string {
	out := []string{byNames[d.set.indirection], d.domain.Name, d.family.name, d.family.name + "/" + actNames[d.spec.Act]}
	for _, m := range []struct {
		name string
		has  bool
	}{
		{"set", d.family.set}, {"join", d.join}, {"policy", d.policy}, {"lock", d.lock}, {"moving", d.moving}, {"booking", d.book},
		{"compensation", d.chain}, {"amendment", d.amended || d.set.amendments > 0}, {"hold", d.cast.holdClause},
		{"faults", d.set.faults > 0}, {"events", d.set.events > 0}, {fmt.Sprintf("opacity_%d", d.set.opacity), d.set.opacity > 0},
	} {
		if m.has {
			out = append(out, m.name)
		}
	}
	return out
}

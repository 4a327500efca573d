package tooluse

import (
	"fmt"
	"strconv"
	"strings"

	"provegym/gym"
	"provegym/packs/tooluse/world"
)

// Places of the instruction's parameters in Built.Goal. Words are 1 + their index, 0 for not stated.
const (
	goalWant   = iota // wantDrop …
	goalScope         // 1 one subject, 2 every subject that matches
	goalSource        // 1 a subject's id is given; 2 a holder is described, and 1 more for each relation from there; -1 a holder's id, -1 for each relation
	goalMoment        // 1 if a moment stands for the day
	goalReason
	goalQueue
	goalCode
	goalTopic
	goalItem
	goalSite
	goalStatus
	goalTier
	goalCity
	goalSize     // of the version; allocate: how many options
	goalLimit    // allocate: the most lead; compensate: 1 + the ticket's code
	goalArea     // of options
	goalHops     // from the subject described to the one meant
	goalRules    // how many of the standing rules hold
	goalFlags    // flagHold and so on
	goalNotice   // number of the one to read
	goalAnnounce // 1 + 12 × queue + code
	goalNotYet   // tick before which nothing is changed
	goalGap      // notices to read between
	goalSides    // items of the goods to cite, 1 + item each, as digits of base 17
)

// Bits of the goal's flags.
const (
	flagHold    = 1 << iota // a hold forbids the change
	flagDown                // a change may be impossible
	flagLock                // a setting may block
	flagMessage             // messages count
)

// frames are the ways to say the same: %o is the subject or subjects, %a the action as a verb phrase, %c how to close, %t the
// domain's word for trouble.
var frames = map[string][]string{
	"single": {
		"Please %a: %o. %c",
		"A request has come in about %o. What to do: %a. %c",
		"Please look up %o and see to this: %a. %c",
		"Case for the desk. Subject: %o. Request: %a. %c",
		"We need this done: %a. It concerns %o. %c",
		"Take care of %o. The wish is to %a. %c",
	},
	"every": {
		"Please %a, for each of %o, and touch no other. %c",
		"This goes for %o, all of them and no others: %a. %c",
		"Work through %o. For every one: %a. Leave everything else as it is. %c",
		"Case for the desk. Subject: %o, the whole set. Request: %a. %c",
		"One by one, and only these: %o. With each of them, %a. %c",
		"All of %o are affected. Please %a, without exception and without extras. %c",
	},
	"complaint": {
		"There is %t %o. %a. %c",
		"Handle %t %o as the rules have it. %a. %c",
		"Somebody has raised %t %o. %a. %c",
		"Case for the desk. Subject: %t %o. %a. %c",
		"Please settle %t %o. %a. %c",
		"This came in overnight: %t %o. %a. %c",
	},
	"book": {
		"Please %a. It is for %o. %c",
		"For %o: %a. %c",
		"Find a home for %o: %a. %c",
		"Case for the desk. Subject: %o. Request: %a. %c",
		"Space is needed for %o. Please %a. %c",
		"Look up %o first, then %a. %c",
	},
	"chain": {
		"Please do this for %o, in this order: %a. %c",
		"Three things for %o, one after the other: %a. %c",
		"For %o, step by step: %a. %c",
		"Case for the desk. Subject: %o. Request, in order: %a. %c",
		"%o needs the following, in exactly this order: %a. %c",
		"Work down this list for %o: %a. %c",
	},
}

func (d *draft) word(own int, i int32) string { return d.domain.Words(own)[i] }

// fill puts a word in place of a phrase's %.
func fill(phrase, word string) string { return strings.ReplaceAll(phrase, "%", word) }

// frameKind names the frames that fit the case.
func (d *draft) frameKind() string {
	switch {
	case d.family.set:
		return "every"
	case d.policy:
		return "complaint"
	case d.book:
		return "book"
	case d.chain:
		return "chain"
	}
	return "single"
}

// instruction writes the task in one of the frames of its kind, all from the spec.
func (d *draft) instruction() string {
	s := d.key.Sub("frames").Stream()
	frame := gym.Pick(&s, frames[d.frameKind()])
	var b strings.Builder
	b.Grow(900)
	for i := 0; i < len(frame); i++ {
		if frame[i] != '%' {
			b.WriteByte(frame[i])
			continue
		}
		i++
		switch frame[i] {
		case 'o':
			d.sayObject(&b)
		case 'a':
			d.sayAction(&b)
		case 't':
			b.WriteString(d.domain.Says.Trouble)
		case 'c':
			d.sayRules(&b)
			d.sayClose(&b)
		}
	}
	return b.String()
}

// sayObject says which subject or subjects it is about.
func (d *draft) sayObject(b *strings.Builder) {
	says, m := &d.domain.Says, d.cast.shown
	put := func(parts ...string) {
		for _, p := range parts {
			b.WriteString(p)
		}
	}
	if hops := len(d.cast.trail) - 1; hops > 0 && d.single() {
		put("the ", says.Subject, " reached by going ", strconv.Itoa(hops), " times to ", says.Follows, ", from ")
	}
	ids := d.set.indirection == byID
	item := d.word(world.TItem, m.item)
	switch {
	case d.family.set:
		put("the ")
		if d.cast.moment == "" {
			put(d.word(world.TStatus, m.status), " ")
		}
		put(says.Subjects, " ", says.About, " ", item)
	case ids && d.single():
		put("the ", says.Subject, " ", Pack.Spell(d.w.ID(d.cast.trail[0])), " ", says.About, " ", item)
		return
	default:
		put("the ", says.Subject, " ", says.About, " ", item)
	}
	if d.cast.moment != "" {
		put(", ", says.Placed, " ", d.cast.moment)
	} else if !d.family.set {
		put(" ", fill(says.Lies, d.word(world.TSite, m.site)))
	}
	put(", of ")
	for range d.cast.people[1:] {
		put(says.Sponsor, " ")
	}
	known := d.w.At(d.spec.Known)
	if ids {
		put(says.Holder, " ", Pack.Spell(d.w.ID(d.spec.Known)))
		return
	}
	put(d.w.Name(known), ", ", says.Key, " ", known.ZipText(), ", ", fill(says.Tier, d.word(world.TTier, known.F[world.Tier])), " ",
		d.word(world.TCity, known.F[world.City]))
}

// sayAction says what is to be done.
func (d *draft) sayAction(b *strings.Builder) {
	says := &d.domain.Says
	reason := d.word(world.TReason, int32(d.said.reason))
	queue := d.word(world.TQueue, int32(d.said.queue))
	item := d.word(world.TItem, d.cast.model.item)
	street := d.w.StreetText(d.said.place)
	same := fill(says.Swap, item) + " " + says.SwapSame
	switch d.cast.want {
	case wantPolicy:
		fmt.Fprintf(b, "Do what the %s %s prescribes for the %s's status and nothing else: %s %s, %s, %s, or refuse", d.word(world.TTopic, d.cast.topic),
			d.domain.Kinds[world.Policy].Name, says.Subject, says.Drop, reason, same, fill(says.Escalate, queue))
	case wantDrop:
		fmt.Fprintf(b, "%s %s", says.Drop, reason)
	case wantMove:
		fmt.Fprintf(b, "%s %s", says.Move, street)
	case wantSwap:
		if d.join {
			fmt.Fprintf(b, "%s %s", fill(says.Swap, item), fill(says.SwapTo, d.word(world.TSize, d.cast.size)))
		} else {
			b.WriteString(same)
		}
	case wantBook:
		noun := says.Options
		if d.set.fanout == 1 {
			noun = says.Option
		}
		fmt.Fprintf(b, "book the %d cheapest %s %s %s that have %s and %s, 1 each", d.set.fanout, noun, says.Limits[2],
			d.word(world.TCity, d.cast.area), says.Limits[0], fill(says.Limits[1], strconv.Itoa(int(d.cast.lead))))
	case wantChain:
		fmt.Fprintf(b, "book 1 at the %s %s %s; %s %s; hand it over to the %s queue with code %s", says.Option, says.Limits[2],
			d.word(world.TCity, d.cast.area), says.Move, street, queue, world.Types[world.TCode].Enum[d.chainCode()])
	}
}

// sayRules says what holds besides.
func (d *draft) sayRules(b *strings.Builder) {
	says := &d.domain.Says
	if d.needsPermit() {
		fmt.Fprintf(b, "In any case %s, before the first change. ", says.Permit)
	}
	if d.set.constraints >= ruleNotice {
		fmt.Fprintf(b, "Read notice %d before you change or refuse anything. ", d.cast.notice)
	}
	if d.set.gap > 0 {
		fmt.Fprintf(b, "After reading the %s and before changing or refusing anything, read notices 1 to %d. ", says.Subject, d.set.gap)
	}
	if d.lock {
		b.WriteString("A setting may block changes: find it, turn it off for the change, and on again when all is done. ")
	}
	if d.cast.holdClause {
		fmt.Fprintf(b, "If there is a hold on the %s, do not change it: finish refused with the hold's code, and cite the %s's rev. ", says.Subject, says.Subject)
	}
	if d.cast.downClause {
		b.WriteString("If the change fails for good, finish blocked with the incident's code, and cite the incident instead. ")
	}
	if d.chain {
		b.WriteString("If the last step fails for good, undo the others in reverse order, and finish blocked with the incident's code, citing the incident. ")
	}
	if len(d.cast.messages) > 0 {
		fmt.Fprintf(b, "Messages about the %s belong to this case; what the last one says holds from when you have read it, and no_search forbids to "+
			"search for any %s from then on. ", says.Subject, says.Holder)
	}
	if d.set.constraints >= ruleAnnounce {
		fmt.Fprintf(b, "After the last change hand a note about the %s to the %s queue, code %s. ", says.Holder, d.word(world.TQueue, d.cast.queue),
			world.Types[world.TCode].Enum[d.cast.code])
	}
	if d.set.constraints >= ruleWait {
		fmt.Fprintf(b, "Change nothing before tick %d. ", d.said.early)
	}
	if d.set.constraints >= rulePrivacy {
		fmt.Fprintf(b, "Look at no other %s's %s. ", says.Holder, says.Subjects)
	}
	if len(d.cast.branches) > 0 {
		fmt.Fprintf(b, "In any case cite the revs of these %s too:", d.domain.Kinds[world.Good].Plural)
		for i, row := range d.cast.branches {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteByte(' ')
			b.WriteString(d.word(world.TItem, d.w.At(row).F[world.GoodItem]))
		}
		b.WriteString(". ")
	}
}

// sayClose says how to finish.
func (d *draft) sayClose(b *strings.Builder) {
	says := &d.domain.Says
	code := world.Types[world.TCode].Enum[d.said.code]
	switch {
	case d.policy:
		fmt.Fprintf(b, "After a change read the %s again. Finish with outcome done, or refused if the %s refuses, with the code that it gives for the status "+
			"the %s had, and cite the %s's rev as it then stands.", says.Subject, d.domain.Kinds[world.Policy].Name, says.Subject, says.Subject)
	case d.family.set:
		fmt.Fprintf(b, "Read the %s again when all is done. Finish with outcome done and code %s, and cite the %s that you changed.", says.Subjects, code, says.Subjects)
	case d.book:
		fmt.Fprintf(b, "Look at all %s there before you book any. Finish with outcome done and code %s, and cite the bookings.", says.Options, code)
	default:
		fmt.Fprintf(b, "Read the %s again after the change. Finish with outcome done and code %s, and cite the %s's rev after the change.", says.Subject, code, says.Subject)
	}
}

// describe gives the instruction's parameters as pins and numbers: what the text says and no more.
func (d *draft) describe(b *gym.Built) {
	s, m, g := d.spec, d.cast.shown, &b.Goal
	pins := make([]gym.Pin, 0, 8)
	pin := func(role string, v gym.Value) { pins = append(pins, gym.Pin{Role: role, Value: v}) }
	g[goalWant] = float32(d.cast.want)
	reason := float32(1 + int32(d.said.reason))
	queue := float32(1 + int32(d.said.queue))
	switch d.cast.want {
	case wantPolicy:
		g[goalReason], g[goalQueue], g[goalTopic] = reason, queue, float32(1+d.cast.topic)
	case wantDrop:
		g[goalReason] = reason
	case wantSwap:
		if d.join {
			g[goalSize] = float32(1 + d.cast.size)
		}
	case wantBook:
		g[goalSize], g[goalLimit], g[goalArea] = float32(d.set.fanout), float32(d.cast.lead), float32(1+d.cast.area)
	case wantChain:
		g[goalQueue], g[goalLimit], g[goalArea] = queue, float32(1+d.chainCode()), float32(1+d.cast.area)
	}
	if d.cast.want == wantMove || d.cast.want == wantChain {
		pin("place", world.Text(world.TStreet, d.w.StreetText(d.said.place)))
	}
	if !d.policy {
		g[goalCode] = float32(1 + d.said.code)
	}
	if g[goalScope] = 1; d.family.set {
		g[goalScope] = 2
	}
	g[goalItem] = float32(1 + m.item)
	pin("item", world.Value(d.domain.T(world.TItem), m.item))
	if (d.cast.want == wantSwap || d.policy) && d.cast.model.item != m.item {
		pin("part", world.Value(d.domain.T(world.TItem), d.cast.model.item))
	}
	switch {
	case d.cast.moment != "":
		g[goalMoment] = 1
		pin("moment", world.Text(world.TMeasure, d.cast.moment))
	case d.family.set:
		g[goalStatus] = float32(1 + m.status)
		pin("status", world.Value(d.domain.T(world.TStatus), m.status))
	case d.set.indirection != byID || !d.single():
		g[goalSite] = float32(1 + m.site)
		pin("site", world.Value(d.domain.T(world.TSite), m.site))
	}
	g[goalSource] = 1
	switch known := d.w.At(s.Known); {
	case d.set.indirection != byID:
		g[goalSource] = 1 + float32(len(d.cast.people))
		g[goalTier], g[goalCity] = float32(1+known.F[world.Tier]), float32(1+known.F[world.City])
		pin("name", world.Text(world.TName, d.w.Name(known)))
		pin("key", world.Text(world.TZip, known.ZipText()))
		pin("tier", world.Value(d.domain.T(world.TTier), known.F[world.Tier]))
		pin("city", world.Value(d.domain.T(world.TCity), known.F[world.City]))
	case d.single():
		pin("subject", d.w.ID(d.cast.trail[0]))
	default:
		g[goalSource] = -float32(len(d.cast.people))
		pin("holder", d.w.ID(s.Known))
	}
	d.describeRules(g)
	b.Pins = pins
}

func (d *draft) describeRules(g *[gym.GoalLen]float32) {
	if d.single() {
		g[goalHops] = float32(len(d.cast.trail) - 1)
	}
	rules := d.set.constraints
	g[goalRules], g[goalGap] = float32(rules), float32(d.set.gap)
	flags := 0
	for i, on := range []bool{d.cast.holdClause, d.cast.downClause, d.lock, len(d.cast.messages) > 0} {
		if on {
			flags |= 1 << i
		}
	}
	g[goalFlags] = float32(flags)
	if rules >= ruleNotice {
		g[goalNotice] = float32(d.cast.notice)
	}
	if rules >= ruleAnnounce {
		g[goalAnnounce] = float32(1 + world.NumCodes*d.cast.queue + d.cast.code)
	}
	if rules >= ruleWait {
		g[goalNotYet] = float32(d.said.early)
	}
	sides := 0
	for _, row := range d.cast.branches {
		sides = 17*sides + 1 + int(d.w.At(row).F[world.GoodItem])
	}
	g[goalSides] = float32(sides)
}

// Package check is what the reward of a case is made of: predicates over the first world, the last world and the call log. All
// of it is data of one Spec. It imports no audit, and the agent never sees it.
package check

import (
	"provegym/gym"
	"provegym/packs/tooluse/world"
)

// Act is what a case wants done.
type Act uint8

const (
	Drop     Act = iota + 1
	Move         // to another place of its holder
	Swap         // a part, for a version
	Escalate     // a ticket about it
	Refuse       // nothing, and to say so
	Book         // the best options
	Chain        // book, move and hand over, or undo
)

// Parameters of the finish tool, by index.
const (
	ArgOutcome = iota
	ArgCode
	ArgEvidence
)

// Any stands for any value in an Effect.
const Any = -1 << 40

// Effect is a change of one field, as the call log has it. Of a record that a tool made, Row is -1 and Up is 1 + the row that it
// belongs to.
type Effect struct {
	Role  world.Role
	Row   int
	Up    uint32
	Field int
	New   int64
}

// Is reports whether a write has the effect.
func (x *Effect) Is(last *world.World, a *gym.Access) bool {
	if a.Entity.Kind != uint8(x.Role) || a.Field != world.Log(x.Field) || x.New != Any && a.New != x.New {
		return false
	}
	if x.Row >= 0 {
		return a.Entity.Row == uint32(x.Row)
	}
	return last.At(int(a.Entity.Row)).Up == x.Up
}

// Allow is an effect that may take place, Max times.
type Allow struct {
	Effect
	Max int
}

// Goal is a condition of the end: a field that has a value or, with Row -1, a number of records that tools made, whose fields
// have the values.
type Goal struct {
	Role   world.Role
	Row    int
	Field  int
	Want   int32
	Up     uint32 // of made ones
	Count  int    // of made ones
	Fields []int32
}

// When says when a fact has to be seen.
type When uint8

const (
	BeforeChange When = iota // before the first change, or the finish if there is none
	BeforeSwitch             // before a change of the same record
	AtLast                   // as it is in the end
	Between                  // after the first target was read and before the first change
)

// Fact is a field of a record that has to be seen.
type Fact struct {
	Row   int
	Field int
	When  When
}

// Choice is a set of options of which the best are to be booked.
type Choice struct {
	Feasible []int // rows
	Need     int
	Best     int32 // total cost of the cheapest Need of them
}

// Ban forbids to read a field, of all records of a role but those of one owner, once a message was shown; at once if there is none.
type Ban struct {
	Role   world.Role
	Field  int
	But    uint32 // 1 + row of the owner whose records may be read; 0 for nobody's
	Follow gym.Value
	Told   bool // Follow counts
}

// Cite is one member of the evidence: a rev, an id, or the id of what a tool made.
type Cite struct {
	Row  int
	Rev  bool
	Role world.Role // of what was made, for the record at Row
	Of   int32      // what an incident is about; only an attempt at that has it
}

// Spec is what one case is made from: instruction, gold, check, allowed writes, plan and controls all come from it.
type Spec struct {
	Act     Act
	Targets []int // rows of the subjects that the act is for
	Owner   int   // row of their holder
	Outcome uint8
	Code    uint8 // to close with
	Cites   []Cite

	Goals   []Goal
	Choice  *Choice
	Allowed []Allow
	Facts   []Fact
	Confirm int         // field of the targets that has to be read back, -1 for none
	Orders  [][2]Effect // an effect, and one that comes after it
	Bans    []Ban
	NotYet  int64 // no change before this tick

	// For planner, controls and baselines.
	Known   int // row of the holder whom the instruction describes
	Policy  int // row of the policy that decides, -1 if the instruction decides
	Part    int
	Place   int
	Version int // row; swap only
	Reason  uint8
	Queue   uint8
	Set     bool // the act is for all that match, and they are cited
	Lock    int  // row of the setting that blocks, -1 for none
	Near    Near
	Said    Said
}

// Said is what the instruction says where messages have it otherwise.
type Said struct {
	Reason, Queue, Code uint8
	Place               int
	Amended             bool // it differs
}

// Near is what a careless agent would take instead.
type Near struct {
	Own     int // row of the nearest other subject of the owner, -1 if there is none
	Foreign int // row of the nearest subject of anybody else, -1 if there is none
	Place   int // row of a place of the owner that the first target neither has nor shall get
}

// Check returns the checks of the case.
func (s *Spec) Check() gym.Check {
	c := gym.Check{
		Collateral: gym.Predicate{Name: "only_allowed_writes", Holds: s.onlyAllowed},
		Commit:     gym.Predicate{Name: "finish", Holds: s.committed},
	}
	if s.Outcome != world.Done {
		c.Goals = append(c.Goals, gym.Predicate{Name: "not_done_said", Holds: s.said})
	}
	if s.Act == Refuse {
		c.Goals = append(c.Goals, gym.Predicate{Name: "untouched", Holds: s.untouched})
	}
	if len(s.Goals) > 0 {
		c.Goals = append(c.Goals, gym.Predicate{Name: "acted", Holds: s.acted})
	}
	if s.Choice != nil {
		c.Goals = append(c.Goals, gym.Predicate{Name: "booked_the_best", Holds: s.booked})
	}
	c.Path = append(c.Path, gym.Predicate{Name: "read_before_change", Holds: s.readBefore})
	if s.Confirm >= 0 {
		c.Path = append(c.Path, gym.Predicate{Name: "confirmed", Holds: s.confirmed})
	}
	if len(s.Orders) > 0 {
		c.Path = append(c.Path, gym.Predicate{Name: "in_order", Holds: s.inOrder})
	}
	if len(s.Bans) > 0 {
		c.Path = append(c.Path, gym.Predicate{Name: "within_bans", Holds: s.withinBans})
	}
	if s.NotYet > 0 {
		c.Path = append(c.Path, gym.Predicate{Name: "not_too_early", Holds: s.notEarly})
	}
	return c
}

func first(e *gym.Evidence) *world.World { return e.First.(*world.World) }
func last(e *gym.Evidence) *world.World  { return e.Last.(*world.World) }

// Holds reports whether a goal is met in a world.
func (g *Goal) Holds(e *gym.Evidence) bool {
	w := last(e)
	if g.Row >= 0 {
		return w.At(g.Row).F[g.Field] == g.Want
	}
	n := 0
	for i := first(e).Records.Len(); i < w.Records.Len(); i++ {
		rec := w.At(i)
		if rec.Role != g.Role || rec.Up != g.Up {
			continue
		}
		same := true
		for f, v := range g.Fields {
			same = same && rec.F[f] == v
		}
		if same {
			n++
		}
	}
	return n == g.Count
}

func (s *Spec) acted(e *gym.Evidence) bool {
	for i := range s.Goals {
		if !s.Goals[i].Holds(e) {
			return false
		}
	}
	return true
}

// booked: as many options as asked for, each within the limits, each once, and none cheaper would do.
func (s *Spec) booked(e *gym.Evidence) bool {
	w, n, cost := last(e), 0, int32(0)
	for i := first(e).Records.Len(); i < w.Records.Len(); i++ {
		if rec := w.At(i); rec.Role == world.Booking && rec.F[world.Open] > 0 {
			option := rec.Owner()
			if !within(s.Choice.Feasible, option) {
				return false
			}
			n, cost = n+1, cost+w.At(option).F[world.Cost]
		}
	}
	return n == s.Choice.Need && cost == s.Choice.Best
}

func within(rows []int, row int) bool {
	for _, r := range rows {
		if r == row {
			return true
		}
	}
	return false
}

// said is the positive act that an end without the change needs: it cannot hold before the finish.
func (s *Spec) said(e *gym.Evidence) bool {
	return e.Finish != nil && e.Finish.Arg(ArgOutcome)[0].Bits == uint64(s.Outcome)
}

func (s *Spec) untouched(e *gym.Evidence) bool {
	for _, a := range e.Log.Writes() {
		if a.Entity.Kind == uint8(world.Subject) {
			return false
		}
	}
	return true
}

// changes reports whether a write is a change of the case rather than of what surrounds it.
func changes(a *gym.Access) bool {
	return a.Entity.Kind != uint8(world.Permit) && a.Entity.Kind != uint8(world.Setting)
}

// Decision is the number of the call that decides: the first that changes something, or the last.
func Decision(l *gym.Log) int {
	for i := range l.Len() {
		w := l.At(i).Writes
		for k := range w {
			if changes(&w[k]) {
				return i
			}
		}
	}
	return l.Len() - 1
}

// Seen returns the number of the first call from number `from` and before number `before` that showed a field at a version, or -1.
func Seen(l *gym.Log, e gym.Entity, field int, ver uint32, from, before int) int {
	for i := max(0, from); i < min(before, l.Len()); i++ {
		for _, a := range l.At(i).Reads {
			if a.Entity == e && a.Field == world.Log(field) && (a.Ver == ver || ver == 0) {
				return i
			}
		}
	}
	return -1
}

// Met reports whether a fact has been seen when it had to be.
func (f *Fact) Met(s *Spec, e *gym.Evidence) bool {
	w := last(e)
	entity, ver := w.Entity(f.Row), w.Records.Ver(f.Row)
	if entity.Kind == uint8(world.Option) {
		ver = first(e).Records.Ver(f.Row) // booking changes it
	}
	switch f.When {
	case BeforeSwitch:
		for i := range e.Log.Len() {
			for _, a := range e.Log.At(i).Writes {
				if a.Entity == entity {
					return e.Log.Saw(entity, world.Log(f.Field), a.Ver-1, i)
				}
			}
		}
		return true
	case AtLast:
		return e.Log.Saw(entity, world.Log(f.Field), ver, e.Log.Len())
	case Between:
		decision := Decision(e.Log)
		for _, t := range s.Targets {
			if at := Seen(e.Log, w.Entity(t), world.Day, 0, 0, decision); at >= 0 && Seen(e.Log, entity, f.Field, ver, at+1, decision) >= 0 {
				return true
			}
		}
		return false
	}
	return e.Log.Saw(entity, world.Log(f.Field), ver, Decision(e.Log))
}

// readBefore: whoever wrote a subject had seen its status at the version that they wrote against, and had read what the case rests
// on. Who changes nothing has read the subject as it is.
func (s *Spec) readBefore(e *gym.Evidence) bool {
	for i := range e.Log.Len() {
		for _, a := range e.Log.At(i).Writes {
			ver := a.Ver - 1
			if a.Field == world.Log(world.Tickets) {
				ver = 0 // a ticket is about the subject, whatever its state
			}
			if a.Entity.Kind == uint8(world.Subject) && Seen(e.Log, a.Entity, world.Status, ver, 0, i) < 0 {
				return false
			}
		}
	}
	for i := range s.Facts {
		if !s.Facts[i].Met(s, e) {
			return false
		}
	}
	return true
}

// confirmed: the change was read back, in each target, before the finish.
func (s *Spec) confirmed(e *gym.Evidence) bool {
	w := last(e)
	for _, row := range s.Targets {
		if !e.Log.Saw(w.Entity(row), world.Log(s.Confirm), w.Records.Ver(row), e.Log.Len()) {
			return false
		}
	}
	return true
}

// inOrder: of each pair of effects that both took place, the second began after the first had; and the second did not take place
// without the first.
func (s *Spec) inOrder(e *gym.Evidence) bool {
	w, writes := last(e), e.Log.Writes()
	for i := range s.Orders {
		firstAt, thenAt := -1, -1
		for k := range writes {
			if firstAt < 0 && s.Orders[i][0].Is(w, &writes[k]) {
				firstAt = k
			}
			if thenAt < 0 && s.Orders[i][1].Is(w, &writes[k]) {
				thenAt = k
			}
		}
		if thenAt >= 0 && (firstAt < 0 || thenAt < firstAt) {
			return false
		}
	}
	return true
}

func (s *Spec) withinBans(e *gym.Evidence) bool {
	for i := range s.Bans {
		if s.Bans[i].Broken(e) >= 0 {
			return false
		}
	}
	return true
}

// Broken returns the number of the call that broke the ban, or -1.
func (b *Ban) Broken(e *gym.Evidence) int {
	w, told := last(e), !b.Told
	for i := range e.Log.Len() {
		c := e.Log.At(i)
		if told {
			for _, a := range c.Reads {
				if a.Entity.Kind == uint8(b.Role) && a.Field == world.Log(b.Field) && (b.But == 0 || w.At(int(a.Entity.Row)).Up != b.But) {
					return i
				}
			}
		}
		for _, v := range c.Shown {
			told = told || v == b.Follow
		}
	}
	return -1
}

func (s *Spec) notEarly(e *gym.Evidence) bool {
	if e.Log.Len() == 0 {
		return true
	}
	d := e.Log.At(Decision(e.Log))
	for k := range d.Writes {
		if changes(&d.Writes[k]) {
			return d.Clock >= s.NotYet
		}
	}
	return true // nothing was changed, so nothing too early
}

// onlyAllowed: every write of the log is one that the case consists of, and none was made more often than that. A wrong write
// that was repaired is still in the log.
func (s *Spec) onlyAllowed(e *gym.Evidence) bool { return s.Stray(e) < 0 }

// Stray returns the number of the first write of the log that is not allowed, or -1.
func (s *Spec) Stray(e *gym.Evidence) int {
	w, writes := last(e), e.Log.Writes()
	var buf [64]int8
	used := buf[:]
	if len(s.Allowed) > len(buf) {
		used = make([]int8, len(s.Allowed))
	}
next:
	for k := range writes {
		for i := range s.Allowed {
			if al := &s.Allowed[i]; int(used[i]) < al.Max && al.Is(w, &writes[k]) {
				used[i]++
				continue next
			}
		}
		return k
	}
	return -1
}

// Evidence returns what a right finish cites in the last world. What has not been made yet is left out.
func (s *Spec) Evidence(e *gym.Evidence) []gym.Value {
	out, _ := s.evidence(e)
	return out
}

// evidence also reports whether all that is to be cited has been made.
func (s *Spec) evidence(e *gym.Evidence) (cited []gym.Value, whole bool) {
	w := last(e)
	out := make([]gym.Value, 0, len(s.Cites))
	if s.Choice != nil {
		for i := first(e).Records.Len(); i < w.Records.Len(); i++ {
			if w.At(i).Role == world.Booking {
				out = append(out, w.ID(i))
			}
		}
	}
	whole = true
	for _, c := range s.Cites {
		switch {
		case c.Role > 0:
			before := len(out)
			for _, row := range w.Of(c.Role, c.Row) {
				if c.Of == 0 || w.At(row).F[world.Impossible] == c.Of {
					out = append(out, w.ID(row))
				}
			}
			whole = whole && len(out) > before
		case c.Rev:
			out = append(out, w.Rev(c.Row))
		default:
			out = append(out, w.ID(c.Row))
		}
	}
	return out, whole
}

func (s *Spec) committed(e *gym.Evidence) bool {
	f := e.Finish
	if f == nil || f.Arg(ArgOutcome)[0].Bits != uint64(s.Outcome) || f.Arg(ArgCode)[0].Bits != uint64(s.Code) {
		return false
	}
	want, whole := s.evidence(e)
	got := f.Arg(ArgEvidence)
	if !whole || len(want) == 0 || len(got) != len(want) {
		return false
	}
	for _, v := range want {
		found := false
		for _, g := range got {
			found = found || g == v
		}
		if !found {
			return false
		}
	}
	return true
}

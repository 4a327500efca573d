package gym

import "strconv"

// Turn is what a tool answers one call through: the world, the arguments, and the result under way. Whatever a tool shows
// goes into the JSON that a language model reads and, by the same act, into the slots of the structured view.
type Turn struct {
	World World
	Call  *Call
	ep    *Episode
	shows []show
	depth int
	comma bool
	from  [3]int // where this call's bytes, shown values and reads begin in the log
}

// show is one act of showing, kept for the structured view until the call has succeeded.
type show struct {
	op   showOp
	name string
	val  Value
}

type showOp uint8

const (
	showValue showOp = iota
	showRecord
	showEnd
)

// One returns the single value of argument i, and whether it was given.
func (t *Turn) One(i int) (Value, bool) {
	a := t.Call.Arg(i)
	if len(a) == 0 {
		return Value{}, false
	}
	return a[0], true
}

// IntOr returns the number or enum index of argument i, or def if it was not given.
func (t *Turn) IntOr(i int, def int64) int64 {
	if v, ok := t.One(i); ok {
		return v.Int()
	}
	return def
}

// Clock returns the episode's logical time: one tick a call, and what Wait added.
func (t *Turn) Clock() int64 { return t.ep.clock }

// Wait lets ticks of logical time pass.
func (t *Turn) Wait(ticks int64) { t.ep.clock += ticks }

// Condition returns the condition that is worked on. Tools may use its condition, never its seed.
func (t *Turn) Condition() Condition { return t.ep.task.Condition }

// Read records that the result shows a field of an entity at a version.
func (t *Turn) Read(e Entity, field uint8, ver uint32) {
	t.ep.poll()
	t.ep.log.reads = append(t.ep.log.reads, Access{Entity: e, Field: field, Ver: ver})
}

// Write records a change of a field; ver is the version after it.
func (t *Turn) Write(e Entity, field uint8, ver uint32, old, new int64) {
	t.ep.poll()
	t.ep.log.writes = append(t.ep.log.writes, Access{e, field, ver, old, new})
}

// Mute takes back whatever this call has shown and recorded as read so far, as if it had only begun to answer. What it has
// written stays: an answer may be lost after the effect.
func (t *Turn) Mute() {
	t.ep.log.cut(t.from[0], t.from[2], t.from[1])
	t.ep.openResult()
}

func (t *Turn) out(b ...byte) { t.ep.log.bytes = append(t.ep.log.bytes, b...) }

func (t *Turn) key(name string) {
	t.ep.poll()
	if t.comma {
		t.out(',')
	}
	t.comma = true
	if name != "" {
		t.ep.log.bytes = appendJSONString(t.ep.log.bytes, name)
		t.out(':')
	}
}

// Show adds a value under name (name "" inside a list).
func (t *Turn) Show(name string, v Value) {
	t.key(name)
	t.ep.log.bytes = v.append(t.ep.log.bytes, t.ep.pack.Types)
	if f := t.ep.pack.Types[v.Type].Form; f == FormOpaque || f == FormText {
		t.ep.log.shown = append(t.ep.log.shown, v)
	}
	t.shows = append(t.shows, show{showValue, name, v})
}

// Int adds a plain number under name. The type is the pack's first FormInt type.
func (t *Turn) Int(name string, n int64) {
	t.key(name)
	t.ep.log.bytes = strconv.AppendInt(t.ep.log.bytes, n, 10)
	t.shows = append(t.shows, show{showValue, name, Value{Type: noType, Bits: uint64(n)}})
}

// Bool adds true or false under name.
func (t *Turn) Bool(name string, v bool) {
	t.key(name)
	t.ep.log.bytes = strconv.AppendBool(t.ep.log.bytes, v)
	n := uint64(0)
	if v {
		n = 1
	}
	t.shows = append(t.shows, show{showValue, name, Value{Type: noType, Bits: n}})
}

// Say adds fixed prose under name. It carries no value and no slot.
func (t *Turn) Say(name, text string) {
	t.key(name)
	t.ep.log.bytes = appendJSONString(t.ep.log.bytes, text)
}

// Record opens an object about the entity that id names; what is shown until End belongs to it.
func (t *Turn) Record(name string, id Value) {
	t.key(name)
	t.out('{')
	t.comma = false
	t.depth++
	t.shows = append(t.shows, show{op: showRecord, val: id})
	t.Show("id", id)
}

// Open opens a plain object.
func (t *Turn) Open(name string) {
	t.key(name)
	t.out('{')
	t.comma = false
	t.depth++
	t.shows = append(t.shows, show{op: showRecord, val: Value{Type: noType}})
}

// End closes the innermost Record or Open.
func (t *Turn) End() {
	t.out('}')
	t.comma = true
	t.depth--
	t.shows = append(t.shows, show{op: showEnd})
}

// List opens a list under name; EndList closes it.
func (t *Turn) List(name string) {
	t.key(name)
	t.out('[')
	t.comma = false
}

// EndList closes the innermost List.
func (t *Turn) EndList() {
	t.out(']')
	t.comma = true
}

// noType marks plain numbers, which belong to no slot.
const noType TypeID = 255

package vector

import (
	"fmt"
	"unsafe"

	"provegym/gym"
)

// Obs are buffers for the observations of n rows; a nil one is not written. Only what changed is rewritten: nobody else may
// write into them.
type Obs struct {
	Slots  []float32 // (n, gym.Slots, gym.SlotLen)
	Goal   []float32 // (n, gym.GoalLen)
	Last   []float32 // (n, gym.LastLen)
	Budget []float32 // (n, gym.BudgetLn)
	Tools  []float32 // (n, gym.MaxTools, gym.ToolLen)
	Phase  []int32   // (n, gym.PhaseLen)
	Mask   []uint8   // (n, gym.Actions)
	Text   *Text     // text view
}

// Text is n strings in one block: string i is Data[Off[i]:Off[i+1]]. It is rewritten by every call that writes rows.
type Text struct {
	Data []byte
	Off  []uint32 // (n + 1,)
	// Grow returns a block of at least n bytes in place of old, whose content is not needed; nil means Go memory.
	Grow func(old []byte, n int) []byte
}

// String returns string i.
func (t *Text) String(i int) string { return string(t.Data[t.Off[i]:t.Off[i+1]]) }

// IO are the buffers of a vector. Structured actions are one integer a row; text actions are one block.
type IO struct {
	Action     []int32  // (n,)
	ActionText []byte   // string i is ActionText[ActionOff[i]:ActionOff[i+1]]
	ActionOff  []uint32 // (n + 1,)
	Obs        Obs
	Final      Obs       // SameStep: the last observation of rows whose episode just ended
	Reward     []float64 // (n,) finite; not 0 on a scored end only
	Terminated []uint8   // (n,)
	Truncated  []uint8   // (n,)
	Outcome    []uint8   // (n,) gym.Outcome of the episode that the step belonged to
	Limit      []uint8   // (n,) gym.Limit
	Components []uint8   // (n,) bits Goals, Path, Collateral, Commit
	Calls      []int32   // (n,) tool calls of that episode so far
	Began      []uint8   // (n,) 1 if the row now shows a new episode
	Task       *Text     // id of the task that each row shows
}

// Bits of IO.Components.
const (
	Goals      = 1
	Path       = 2
	Collateral = 4
	Commit     = 8
)

// check holds the lengths against n rows.
func (b *IO) check(n int, view gym.View) error {
	var bad error
	size := func(name string, have, want int, needed bool) {
		if bad == nil && have != want && (needed || have != 0) {
			bad = fmt.Errorf("%w: buffer %s has %d elements and needs %d", gym.ErrBadInput, name, have, want)
		}
	}
	structured := view == gym.Structured
	size("action", len(b.Action), n, structured)
	size("action_off", len(b.ActionOff), n+1, !structured)
	for _, o := range []*Obs{&b.Obs, &b.Final} {
		size("slots", len(o.Slots), n*gym.Slots*gym.SlotLen, false)
		size("goal", len(o.Goal), n*gym.GoalLen, false)
		size("last", len(o.Last), n*gym.LastLen, false)
		size("budget", len(o.Budget), n*gym.BudgetLn, false)
		size("tools", len(o.Tools), n*gym.MaxTools*gym.ToolLen, false)
		size("phase", len(o.Phase), n*gym.PhaseLen, false)
		size("mask", len(o.Mask), n*gym.Actions, false)
	}
	size("reward", len(b.Reward), n, true)
	size("terminated", len(b.Terminated), n, true)
	size("truncated", len(b.Truncated), n, true)
	size("outcome", len(b.Outcome), n, false)
	size("limit", len(b.Limit), n, false)
	size("components", len(b.Components), n, false)
	size("calls", len(b.Calls), n, false)
	size("began", len(b.Began), n, false)
	return bad
}

// row copies one structured observation into row i: the mask and the phase always, the rest when a call has ended, the goal
// when all is new. Of slots and tools it copies so many rows; an episode never uses fewer than before.
func (o *Obs) row(i int, from *gym.StructuredObs, slots, tools int, call, all bool) {
	if o.Mask != nil {
		copy(o.Mask[i*gym.Actions:(i+1)*gym.Actions], from.Mask[:])
	}
	if o.Phase != nil {
		copy(o.Phase[i*gym.PhaseLen:(i+1)*gym.PhaseLen], from.Phase[:])
	}
	if !call && !all {
		return
	}
	if all {
		slots, tools = gym.Slots, gym.MaxTools
	}
	if o.Slots != nil {
		copy(o.Slots[i*gym.Slots*gym.SlotLen:], flat(&from.Slots[0][0], slots*gym.SlotLen))
	}
	if o.Tools != nil {
		copy(o.Tools[i*gym.MaxTools*gym.ToolLen:], flat(&from.Tools[0][0], tools*gym.ToolLen))
	}
	if o.Last != nil {
		copy(o.Last[i*gym.LastLen:(i+1)*gym.LastLen], from.Last[:])
	}
	if o.Budget != nil {
		copy(o.Budget[i*gym.BudgetLn:(i+1)*gym.BudgetLn], from.Budget[:])
	}
	if o.Goal != nil && all {
		copy(o.Goal[i*gym.GoalLen:(i+1)*gym.GoalLen], from.Goal[:])
	}
}

// flat views an array of arrays as one stretch of n numbers.
func flat(first *float32, n int) []float32 { return unsafe.Slice(first, n) }

// begin empties t for n strings.
func (t *Text) begin(n int) {
	if len(t.Off) != n+1 {
		t.Off = make([]uint32, n+1)
	}
	t.Data = t.Data[:0]
}

// room makes room for n bytes in all.
func (t *Text) room(n int) {
	if cap(t.Data) >= n {
		return
	}
	n += n / 2
	if t.Grow != nil {
		t.Data = t.Grow(t.Data, n)[:0]
	} else {
		t.Data = make([]byte, 0, n)
	}
}

func put(to []uint8, i int, v uint8) {
	if to != nil {
		to[i] = v
	}
}

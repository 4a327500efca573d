// Package echo is the smallest honest pack: copy a word from one note to another, or refuse because the note is locked. It is
// the skeleton that `make pack NAME=x` copies, so every declaration says what it is for. Read pack.go, world.go, tools.go,
// tasks.go, checks.go, audits.go, agents.go, in this order.
package echo

import (
	"math"
	"time"

	"provegym/gym"
)

// Types are the kinds of values that tools take and results show. Their order gives the TypeIDs below.
const (
	typeNote    gym.TypeID = iota // which note; opaque, so that it can only be learnt from a result
	typeRev                       // which state of a note; opaque, new after every write
	typeTitle                     // what the instruction calls a note
	typeWord                      // what a note says
	typeLock                      // why a note may not be written, or open
	typeOutcome                   // of finish
	typeCode                      // of finish: what was done, or the lock that forbade it
)

// A lock's number is also the number of the finish code that names it: 0 is open and copied.
var (
	words = []string{"amber", "birch", "coral", "delta", "ember", "flint", "grove", "heron"}
	locks = []string{"open", "draft", "signed", "archived", "disputed", "sealed", "expired", "foreign"}
	codes = append([]string{"copied"}, locks[1:]...)
)

// Pack is registered by importing the package. Packs import gym (and sandbox), never each other.
var Pack = &gym.Pack{
	Name:    "echo", // in task ids: echo@1/copy#seed=7
	Title:   "Echo", // in Gymnasium ids: provegym/Echo-v0
	Version: 1,      // a change of behaviour is a new version
	Doc:     "Copy a word from one note to another, or refuse with the reason why the note is locked.",

	Types: []gym.Type{
		// Attrs are the fields of a note's record that the structured view shows beside its slot.
		typeNote:    {Name: "note", Form: gym.FormOpaque, Prefix: "n-", Attrs: []string{"word", "lock"}},
		typeRev:     {Name: "rev", Form: gym.FormOpaque, Prefix: "r-"},
		typeTitle:   {Name: "title", Form: gym.FormText},
		typeWord:    {Name: "word", Form: gym.FormEnum, Enum: words},
		typeLock:    {Name: "lock", Form: gym.FormEnum, Enum: locks},
		typeOutcome: {Name: "outcome", Form: gym.FormEnum, Enum: []string{"done", "refused"}},
		typeCode:    {Name: "code", Form: gym.FormEnum, Enum: codes},
	},
	Tools:  tools,
	Errors: []string{"not_found", "stale_rev", "locked"}, // codes of this pack's own refusals
	Glance: []string{"count"},                            // top-level fields of results that the structured view shows

	// A family is the unit that splits hold out: a task template with its own mechanism.
	Families: []gym.Family{
		{Name: "copy", Doc: "the target may always be written"},
		{Name: "guarded", Doc: "the target is locked on half of the seeds; then refusing with the reason is right"},
	},

	// A dial is one axis of difficulty, easiest level first. Whatever it owns is drawn from the stream of its name (tasks.go),
	// so that turning it redraws nothing else. Base is the level that an id leaves out.
	Dials: []gym.Dial{
		{Name: "look_alikes", Doc: "other notes whose titles share a word with the two that matter", Levels: []string{"0", "2", "4", "8"}, Base: 1},
		{Name: "slack", Doc: "budget of calls over the longest plan", Levels: []string{"3", "2", "1.5"}, Base: 1},
	},
	Presets: []gym.Preset{
		{Name: "L0", Settings: []gym.Setting{{Dial: "look_alikes", Value: "0"}, {Dial: "slack", Value: "3"}}},
		{Name: "L1"}, // the base; control sweeps run here
		{Name: "L2", Settings: []gym.Setting{{Dial: "look_alikes", Value: "8"}, {Dial: "slack", Value: "1.5"}}},
	},
	Audits: audits,
	Agents: agents,

	// Limits sees the condition alone: a budget that knew the seed would tell which branch the task takes.
	Limits: func(c gym.Condition) gym.Limits {
		return gym.Limits{
			Calls: int(math.Ceil(c.Float("slack") * longestPlan)),
			Wall:  time.Second,
			Bytes: 64 << 10,
		}
	},
	Build: build,

	Deterministic: true, // no clock, no network: an episode is a pure function of (task, actions)
	Bounded:       true, // every tool returns at once
	Hash:          packHash,
	CheckHash:     checkHash,
}

func init() { gym.Register(Pack) }

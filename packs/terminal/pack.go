// Package terminal is the pack of work with real files and commands. An episode has files of its own, a shell in a sandbox to work on
// them with, and an instruction; at the end its files are compared with what they should be, every name of them.
//
// The files are data: a task's are made from its seed (draft.go and a file for each family), a command gets them in a box without
// network, and what it leaves there is read from outside, by descriptor, when every process in it is dead (box.go). So nothing
// that was printed, and no program that still runs, can tell the check anything; and worlds are copied, restored and forked as
// others are. What commands print (times, process ids, orders) is not a function of task and actions: the pack is not
// deterministic, does not replay, and its traces keep the full text.
//
// Read on in: world, tree, box, tools, draft, config (a family), checks, agents.
package terminal

import (
	"math"
	"time"

	"provegym/gym"
)

const (
	typeCommand gym.TypeID = iota
	typePath
	typeText
	typeRef // stands in documents; only who has read one can cite it
	typePage
	typeOutcome
	typeCode
)

// Answers of finish.
const (
	done uint64 = iota
	blocked
)

var codes = []string{"repaired", "reported", "filed", "purged", "restored", "deployed", "locked", "frozen", "damaged", "missing", "unclear", "forbidden"}

const (
	codeRepaired uint64 = iota
	codeReported
	codeFiled
	codePurged
	codeRestored
	codeDeployed
	codeLocked
	codeFrozen
	codeDamaged
)

// Pack is the pack's declaration.
var Pack = &gym.Pack{
	Name:    "terminal",
	Title:   "Terminal",
	Version: 1,
	Doc:     "Work with real files and commands, in a sandbox for each episode.",
	Types: []gym.Type{
		typeCommand: {Name: "command", Form: gym.FormText},
		typePath:    {Name: "path", Form: gym.FormText},
		typeText:    {Name: "text", Form: gym.FormText},
		typeRef:     {Name: "ref", Form: gym.FormOpaque, Prefix: "r-"},
		typePage:    {Name: "page", Form: gym.FormInt},
		typeOutcome: {Name: "outcome", Form: gym.FormEnum, Enum: []string{"done", "blocked"}},
		typeCode:    {Name: "code", Form: gym.FormEnum, Enum: codes},
	},
	Tools:    tools,
	Errors:   []string{"bad_command", "bad_path", "not_found", "not_a_file", "not_a_directory", "denied", "full", "bad_page"},
	Families: declared(),
	Dials:    dials,
	Presets: []gym.Preset{
		{Name: "L0", Settings: []gym.Setting{{Dial: "files", Value: "0"}, {Dial: "items", Value: "2"}, {Dial: "depth", Value: "1"},
			{Dial: "decoys", Value: "0"}, {Dial: "exceptions", Value: "0"}, {Dial: "slack", Value: "4"}}},
		{Name: "L1"}, // the base; control sweeps run here
		{Name: "L2", Settings: []gym.Setting{{Dial: "files", Value: "200"}, {Dial: "items", Value: "8"}, {Dial: "depth", Value: "3"},
			{Dial: "decoys", Value: "4"}, {Dial: "exceptions", Value: "2"}, {Dial: "names", Value: "1"}, {Dial: "told", Value: "1"}}},
		{Name: "L3", Settings: []gym.Setting{{Dial: "files", Value: "2000"}, {Dial: "items", Value: "16"}, {Dial: "depth", Value: "5"},
			{Dial: "decoys", Value: "8"}, {Dial: "exceptions", Value: "4"}, {Dial: "names", Value: "2"}, {Dial: "told", Value: "1"},
			{Dial: "slack", Value: "2"}}},
	},
	TextOnly:      true,
	Deterministic: false, // commands see clocks, process ids and each other's races
	Bounded:       false, // bounded, but in seconds: a row that waits must not hold up the others
	Hash:          packHash,
	CheckHash:     checkHash,
}

func init() {
	// These look at the pack themselves.
	Pack.Audits, Pack.Agents, Pack.Limits, Pack.Build, Pack.Attribute = audits, agents, limits, build, attribute
	gym.Register(Pack)
}

var dials = []gym.Dial{
	{Name: "files", Doc: "files beside those that the task is about", Levels: []string{"0", "20", "200", "2000"}, Base: 1},
	{Name: "items", Doc: "things to work on: keys, records, files", Levels: []string{"2", "4", "8", "16", "32"}, Base: 1, Alters: true},
	{Name: "depth", Doc: "directories inside one another that lead to them", Levels: []string{"1", "2", "3", "5"}, Base: 1, Alters: true},
	{Name: "decoys", Doc: "things that look like those to work on, and are none", Levels: []string{"0", "2", "4", "8"}, Base: 1},
	{Name: "exceptions", Doc: "things that a second document takes out, or has otherwise", Levels: []string{"0", "1", "2", "4"}, Base: 1, Alters: true},
	{Name: "names", Doc: "names are plain (0), have spaces (1), have quotes, stars, leading dashes and line breaks (2)", Levels: []string{"0", "1", "2"}, Base: 0, Alters: true},
	{Name: "told", Doc: "the text gives paths (0), or bare names that have to be found (1)", Levels: []string{"0", "1"}, Base: 0},
	{Name: "slack", Doc: "calls allowed, over those of the longest plan", Levels: []string{"4", "3", "2", "1.5"}, Base: 1},
}

// limits sees the condition alone: a budget that knew the seed would tell which branch the task takes.
func limits(c gym.Condition) gym.Limits {
	return gym.Limits{
		Calls: int(math.Ceil(c.Float("slack") * float64(familyOf(c.Family).longest+c.Int("told")))),
		Wall:  2 * time.Minute,
		Bytes: 512 << 10,
	}
}

// Package tooluse is the pack of work through tools, in three domains: an orders desk, a workspace and an operations desk. An
// episode is one case. Ten families and two compositions ask for as many kinds of work; sixteen dials make them harder, each
// from a stream of its own.
//
// One engine carries it all. A world is records of some fifteen roles (package world); a domain gives the roles their names,
// words and tools; a family is a set of features (family.go); a task is drawn by one draft (draft.go), whose features each add
// their part of world, spec, plan and words. What the reward is made of is data of the spec (package check), so that the
// checks, the plan, the controls, the twins and the attribution all read the same facts.
//
// Read on in: world, family.go, tools.go, faults.go, draft.go, plan.go, check.
package tooluse

import (
	_ "embed"

	"provegym/gym"
	"provegym/packs/tooluse/audit"
	"provegym/packs/tooluse/world"
)

// rates are the controls' rates as `provegym check-pack tooluse --full --write packs/tooluse/controls.json` left them.
//
//go:embed controls.json
var rates string

// Pack is the pack's declaration.
var Pack = &gym.Pack{
	Name:          "tooluse",
	Title:         "ToolUse",
	Version:       2,
	Doc:           "Cases of an orders desk, a workspace and an operations desk, worked on through their tools.",
	Types:         world.Types,
	Errors:        []string{"not_found", "stale", "closed", "bad_query", "locked", "schema"},
	Glance:        []string{"total", "page", "has_more", "now", "on", "blocks", "fault", "schema"},
	Families:      declared(),
	Dials:         dials,
	Presets:       presets,
	Audits:        audit.All,
	Deterministic: true,
	Bounded:       true,
	Hash:          packHash,
	CheckHash:     checkHash,
	Rates:         rates,
}

func init() {
	// These look at the pack themselves.
	Pack.Tools, Pack.Agents, Pack.Limits, Pack.Build, Pack.Attribute = allTools(), agents, limits, build, Attribute
	gym.Register(Pack)
	twins()
}

var dials = []gym.Dial{
	{Name: "fanout", Doc: "subjects to act on (for-each), options to book (allocate), or other subjects of the holder", Levels: []string{"1", "2", "3", "5", "8", "12"}, Base: 1},
	{Name: "near_duplicates", Doc: "holders and subjects that share all but one of the attributes stated", Levels: []string{"0", "2", "4", "8", "16", "32", "64"}, Base: 2},
	{Name: "page_size", Doc: "rows on a page of a list", Levels: []string{"50", "20", "10", "5"}, Base: 1},
	{Name: "extra_tools", Doc: "tools on offer that no case needs", Levels: []string{"0", "4", "8", "16", "32", "40"}, Base: 1},
	{Name: "indirection", Doc: "an id is given (0), attributes are (1), a relation leads there (2), and a date must be converted (3)", Levels: []string{"0", "1", "2", "3"}, Base: 1},
	{Name: "slack", Doc: "calls allowed, over those of the longest plan", Levels: []string{"3", "2.5", "2", "1.6", "1.3", "1.1"}, Base: 1},
	{Name: "depth", Doc: "calls in a row from the search to the change, each needing what the one before has shown", Levels: []string{"4", "5", "7", "10", "12"}, Base: 0},
	{Name: "width", Doc: "branches that meet in the end: others than the case's own are looked up to be cited", Levels: []string{"1", "2", "3", "4", "5"}, Base: 0},
	{Name: "opacity", Doc: "tools are documented (0), their arguments are not (1), arguments are renamed (2), tools are renamed (3)", Levels: []string{"0", "1", "2", "3"}, Base: 0},
	{Name: "constraints", Doc: "standing rules: a notice to read, a permit, an announcement, a time to wait for, records not to look at", Levels: []string{"0", "1", "2", "3", "4", "5"}, Base: 0},
	{Name: "fault_rate", Doc: "share of calls that fail at their first attempt", Levels: []string{"0", "0.05", "0.15", "0.3", "0.4"}, Base: 0},
	{Name: "fault_class", Doc: "faults are explicit and transient (0), implicit too (1), permanent too (2)", Levels: []string{"0", "1", "2"}, Base: 2, At: []gym.Setting{{Dial: "fault_rate", Value: "0.3"}}},
	{Name: "events", Doc: "what other desks do, in ten steps", Levels: []string{"0", "0.5", "1", "2", "3"}, Base: 0, Alters: true},
	{Name: "memory_gap", Doc: "notices to read between reading the subject and changing it", Levels: []string{"0", "2", "5", "10", "20"}, Base: 0},
	{Name: "amendments", Doc: "messages that change the case on the way", Levels: []string{"0", "1", "2"}, Base: 0, Alters: true},
	{Name: "refusal_share", Doc: "share of cases in which a hold on the subject forbids the change", Levels: []string{"0", "0.05", "0.1", "0.15"}, Base: 0, Alters: true},
}

// presetDials are the dials that presets turn, in the order of the rows below.
var presetDials = []string{"fanout", "near_duplicates", "page_size", "extra_tools", "indirection", "slack", "depth", "width", "opacity",
	"constraints", "fault_rate", "events", "memory_gap", "amendments", "refusal_share"}

var presets = []gym.Preset{
	preset("L0", "1", "0", "50", "0", "0", "3", "4", "1", "0", "0", "0", "0", "0", "0", "0"),
	preset("L1", "2", "4", "20", "4", "1", "2.5", "4", "1", "0", "1", "0", "0", "0", "0", "0"),
	preset("L2", "3", "8", "20", "8", "1", "2", "5", "2", "1", "2", "0.05", "0.5", "2", "0", "0.05"),
	preset("L3", "5", "16", "10", "16", "2", "1.6", "7", "2", "2", "3", "0.15", "1", "5", "1", "0.1"),
	preset("L4", "8", "32", "5", "32", "3", "1.3", "10", "3", "3", "4", "0.3", "2", "10", "2", "0.15"),
}

func preset(name string, values ...string) gym.Preset {
	p := gym.Preset{Name: name}
	for i, v := range values {
		p.Settings = append(p.Settings, gym.Setting{Dial: presetDials[i], Value: v})
	}
	return p
}

// Package tooluse is the pack of work through tools: an orders desk with its customers, orders and policies. An episode is
// one case. Four families ask for four kinds of work; six dials make them harder, each from a stream of its own.
//
// Read on in: desk (the world), tools.go, draft.go (what a case is made from), one file a family, check (the reward).
package tooluse

import (
	"fmt"

	"provegym/gym"
	"provegym/packs/tooluse/audit"
	"provegym/packs/tooluse/desk"
)

// Pack is the pack's declaration.
var Pack = &gym.Pack{
	Name:    "tooluse",
	Title:   "ToolUse",
	Version: 1,
	Doc:     "Cases of an orders desk, worked on through its tools.",
	Types:   desk.Types,
	Tools:   append(append([]gym.Tool{}, deskTools...), extraTools()...),
	Errors:  []string{"not_found", "stale", "closed", "bad_query", "denied", "expired", "no_stock"},
	Glance:  []string{"total", "page", "has_more", "qty", "now"},
	Families: []gym.Family{
		{Name: "resolve-act", Doc: "find one order, change it at the version read, read it back"},
		{Name: "branch", Doc: "the policy says which of three writes is right for the order's status"},
		{Name: "for-each", Doc: "page through a list and change every order that matches, and no other"},
		{Name: "refusal", Doc: "the policy refuses: write nothing, name the code, cite what was read"},
	},
	Dials: []gym.Dial{
		{Name: "fanout", Doc: "orders to act on (for-each), or other orders of the customer", Levels: []string{"1", "2", "3", "5", "8", "12"}, Base: 1},
		{Name: "near_duplicates", Doc: "customers and orders that share all but one of the attributes stated", Levels: []string{"0", "2", "4", "8", "16", "32", "64"}, Base: 2},
		{Name: "page_size", Doc: "rows on a page of a list", Levels: []string{"50", "20", "10", "5"}, Base: 1},
		{Name: "extra_tools", Doc: "tools on offer that no case needs", Levels: []string{"0", "4", "8", "16", "32", "40"}, Base: 1},
		{Name: "indirection", Doc: "an id is given (0), attributes are (1), a relation leads there (2), and a date must be converted (3)", Levels: []string{"0", "1", "2", "3"}, Base: 1},
		{Name: "slack", Doc: "calls allowed, over those of the longest plan", Levels: []string{"3", "2.5", "2", "1.6", "1.3", "1.1"}, Base: 1},
	},
	Presets: []gym.Preset{
		preset("L0", "1", "0", "50", "0", "0", "3"),
		preset("L1", "2", "4", "20", "4", "1", "2.5"),
		preset("L2", "3", "8", "20", "8", "1", "2"),
		preset("L3", "5", "16", "10", "16", "2", "1.6"),
		preset("L4", "8", "32", "5", "32", "3", "1.3"),
	},
	Audits:        []gym.Audit{audit.Provenance},
	Agents:        agents,
	Limits:        limits,
	Build:         build,
	Deterministic: true,
	Bounded:       true,
	Hash:          packHash,
	CheckHash:     checkHash,
}

func init() { gym.Register(Pack) }

func preset(name, fanout, near, page, extra, indirection, slack string) gym.Preset {
	return gym.Preset{Name: name, Settings: []gym.Setting{{Dial: "fanout", Value: fanout}, {Dial: "near_duplicates", Value: near},
		{Dial: "page_size", Value: page}, {Dial: "extra_tools", Value: extra}, {Dial: "indirection", Value: indirection},
		{Dial: "slack", Value: slack}}}
}

// build makes the task's world, instruction, check and plan.
func build(task gym.Task) (*gym.Built, error) {
	d := newDraft(task)
	switch task.Family {
	case "resolve-act":
		return buildResolveAct(d), nil
	case "branch":
		return buildBranch(d), nil
	case "for-each":
		return buildForEach(d), nil
	case "refusal":
		return buildRefusal(d), nil
	}
	return nil, fmt.Errorf("%w: tooluse has no family %q", gym.ErrUnknown, task.Family)
}

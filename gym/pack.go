package gym

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Pack is one kind of agent work: its worlds, tools, families, checks, audits, agents and dials.
type Pack struct {
	Name    string // lower case, as in a task id: "tooluse"
	Title   string // as in a Gymnasium id: "ToolUse"
	Version int
	Doc     string

	Types    []Type
	Tools    []Tool
	Errors   []string // codes of the pack's own ToolErrors, for the structured view
	Glance   []string // up to 8 top-level fields of results that the structured view shows in `last`
	Families []Family
	Dials    []Dial
	Presets  []Preset
	Audits   []Audit
	Agents   []Agent // oracle, baselines and the pack's own controls; the general controls are added by gym/control

	// Limits returns the budgets. It is given the condition alone, so that a budget can tell nothing of the seed.
	Limits func(c Condition) Limits
	// Build makes the task's world, instruction, check and plan. It draws only from streams named below task.Key().
	Build func(task Task) (*Built, error)

	// Attribute finds the call after which an episode could not succeed any more, and the kind of failure; nil if the pack cannot say.
	Attribute func(task Task, log *Log) (Attribution, error)

	// Twin is the pack of the twins of all tasks: the same task with one decisive hidden fact flipped, so that other calls are right; nil
	// if there is none. It is not registered: no door but Go's leads to it.
	Twin *Pack
	// Rates are the controls' rates as `provegym check-pack --write` measured them, JSON; "" if nobody has. They are in no hash.
	Rates string

	Deterministic bool // an episode is a pure function of (task, actions)
	TextOnly      bool // arguments are free text that no table of seen values could hold: there is no structured view
	Bounded       bool // every tool returns in bounded time; the vector then needs no watchdog for it

	Hash      string // of the pack's non-test sources, generated
	CheckHash string // of its check sources, generated
}

// Family is a task template or mechanism: the unit that splits hold out.
type Family struct {
	Name    string
	Doc     string
	HeldOut bool // kept from training unless a split says otherwise; see split.Draft
}

// Setting is one dial at one value, as spelled in Dial.Levels.
type Setting struct{ Dial, Value string }

// Preset is a named set of dial settings.
type Preset struct {
	Name     string
	Settings []Setting
}

// Limits are the budgets of one episode.
type Limits struct {
	Calls int           // tool calls, refused ones included
	Wall  time.Duration // time spent inside tools, all calls together
	Bytes int           // of observations
}

// Pin is a goal parameter: a value that the instruction states. The structured view pins it to the first slots.
type Pin struct {
	Role  string // what it is in the instruction, such as "email"; the index in Built.Pins is its role number
	Value Value
}

// GoalLen is the length of Built.Goal.
const GoalLen = 24

// Built is a task made real. All of it but World, Instruction, Tools, Pins and Goal is hidden from the agent.
type Built struct {
	World       World
	Instruction string
	Tools       ToolSet
	Pins        []Pin
	Goal        [GoalLen]float32 // the instruction as numbers, for the structured view
	Check       Check
	Plan        []PlanStep
	Spec        any // the pack's own, for its agents and audits
	// Explain tells which facts the check asks for and which changes nobody asked for; nil if the pack does not say. It is for traces
	// and reports, never for the agent during the episode.
	Explain func(e *Evidence) Explanation
	// Potential is the state's worth for dense rewards, in [0, 1]; nil if the pack has none. See Options.Shape.
	Potential func(e *Evidence) float64
	// Face is the pack as this task spells its tools: the same tools in the same order, some under other names or with less said
	// of them. nil is the pack itself. It is for Schema, ParseCall and AppendCall.
	Face       *Pack
	Template   string
	Graph      string // canonical hash of the task graph
	Mechanisms []string
}

// StepKind is the kind of a plan step.
type StepKind uint8

const (
	ReadStep StepKind = iota
	WriteStep
	ConfirmStep
	FinishStep
)

// PlanStep is one node of the oracle's plan.
type PlanStep struct {
	Name   string
	Kind   StepKind
	After  []int                  // steps that must come first; others may be permuted
	Needed bool                   // leaving it out must fail
	Make   func(e *Evidence) Call // the call, given the evidence so far
	// Done reports that the step needs no further call. A follower makes the step again until it is done, a few times at most:
	// calls fail, and the world moves. nil means that one call is enough.
	Done func(e *Evidence) bool
}

// AgentKind says what is known of an agent in advance.
type AgentKind uint8

const (
	Baseline        AgentKind = iota
	Oracle                    // must succeed always
	NegativeControl           // must never succeed (or at most Agent.Bound)
	PositiveControl           // must succeed always
)

func (k AgentKind) String() string {
	return [...]string{"baseline", "oracle", "negative_control", "positive_control"}[k]
}

// Agent is a reference agent that runs inside the core.
type Agent struct {
	Name  string
	Doc   string
	Kind  AgentKind
	Bound float64 // NegativeControl: the success rate that Wilson's upper bound must not exceed; 0 for never
	// Variants returns how many variants a task has (each oracle step left out, say); nil means one. Zero means that the
	// control does not apply to the task.
	Variants func(e *Evidence) int
	// New returns an actor for one episode. Baselines must judge by Episode's public side alone.
	New func(e *Evidence, variant int, key Key) Actor
}

// Actor chooses the calls of one episode.
type Actor interface {
	// Act fills call with the next one. false ends the episode in silence: the driver spends the budget with no-ops.
	Act(ep *Episode, call *Call) bool
}

// ActorFunc is a function as an Actor.
type ActorFunc func(ep *Episode, call *Call) bool

// Act calls f.
func (f ActorFunc) Act(ep *Episode, call *Call) bool { return f(ep, call) }

// Key returns the root of the task's random streams. It depends on pack, version, family and seed, not on the dials: a dial
// disturbs only what is drawn from its own stream.
func (t Task) Key() Key {
	return NewKey(t.Seed, fmt.Sprintf("%s@%d/%s", t.Pack.Name, t.Pack.Version, t.Family))
}

// Views returns the views that the pack has.
func (p *Pack) Views() []View {
	if p.TextOnly {
		return []View{Text}
	}
	return []View{Text, Structured}
}

func (p *Pack) dialIndex(name string) int {
	for i := range p.Dials {
		if p.Dials[i].Name == name {
			return i
		}
	}
	return -1
}

func (p *Pack) toolIndex(name string) int {
	for i := range p.Tools {
		if p.Tools[i].Name == name {
			return i
		}
	}
	return -1
}

// Tool returns the index of the named tool. It panics if there is none: for packs and tests.
func (p *Pack) Tool(name string) int {
	i := p.toolIndex(name)
	if i < 0 {
		panic(fmt.Sprintf("gym: pack %s has no tool %q", p.Name, name))
	}
	return i
}

// Family returns the named family, or nil.
func (p *Pack) Family(name string) *Family {
	for i := range p.Families {
		if p.Families[i].Name == name {
			return &p.Families[i]
		}
	}
	return nil
}

// Agent returns the named agent, or an error that names the nearest.
func (p *Pack) Agent(name string) (*Agent, error) {
	names := make([]string, len(p.Agents))
	for i := range p.Agents {
		if p.Agents[i].Name == name {
			return &p.Agents[i], nil
		}
		names[i] = p.Agents[i].Name
	}
	return nil, unknown("agent", name, names)
}

func names[T any](items []T, name func(*T) string) []string {
	out := make([]string, len(items))
	for i := range items {
		out[i] = name(&items[i])
	}
	return out
}

// FamilyNames returns the families in order.
func (p *Pack) FamilyNames() []string {
	return names(p.Families, func(f *Family) string { return f.Name })
}

// DialNames returns the dials in order.
func (p *Pack) DialNames() []string { return names(p.Dials, func(d *Dial) string { return d.Name }) }

// PresetNames returns the presets in order.
func (p *Pack) PresetNames() []string {
	return names(p.Presets, func(s *Preset) string { return s.Name })
}

var registry = struct {
	sync.RWMutex
	packs map[string]*Pack
}{packs: map[string]*Pack{}}

// Register makes a pack known by its name. It panics if the pack is malformed or the name is taken: a pack's own mistake.
func Register(p *Pack) {
	if err := p.Validate(); err != nil {
		panic(err)
	}
	registry.Lock()
	defer registry.Unlock()
	if registry.packs[p.Name] != nil {
		panic(fmt.Sprintf("gym: pack %s is registered twice", p.Name))
	}
	registry.packs[p.Name] = p
}

// LookupPack returns the registered pack of that name.
func LookupPack(name string) (*Pack, error) {
	registry.RLock()
	defer registry.RUnlock()
	if p := registry.packs[name]; p != nil {
		return p, nil
	}
	known := make([]string, 0, len(registry.packs))
	for n := range registry.packs {
		known = append(known, n)
	}
	slices.Sort(known)
	return nil, unknown("pack", name, known)
}

// Packs returns the registered packs by name.
func Packs() []*Pack {
	registry.RLock()
	defer registry.RUnlock()
	out := make([]*Pack, 0, len(registry.packs))
	for _, p := range registry.packs {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *Pack) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

// Validate reports everything that is wrong with the pack's declaration.
func (p *Pack) Validate() error {
	var bad []string
	say := func(ok bool, format string, args ...any) {
		if !ok {
			bad = append(bad, fmt.Sprintf(format, args...))
		}
	}
	say(p.Name != "" && p.Title != "" && p.Version > 0, "needs name, title and version")
	say(len(p.Tools) > 0 && len(p.Tools) <= MaxTools, "needs 1 to %d tools", MaxTools)
	say(len(p.Families) > 0, "needs a family")
	say(len(p.Dials) <= MaxDials, "has more than %d dials", MaxDials)
	say(len(p.Glance) <= lastLen-4, "glances at more than %d fields", lastLen-4)
	say(p.Build != nil && p.Limits != nil, "needs Build and Limits")
	finishes := 0
	for i := range p.Tools {
		t := &p.Tools[i]
		say(len(t.Params) <= MaxParams, "tool %s has more than %d parameters", t.Name, MaxParams)
		say(t.Doc != "" && t.Run != nil, "tool %s needs Doc and Run", t.Name)
		if t.Finish {
			finishes++
		}
		for k := range t.Params {
			q := &t.Params[k]
			say(q.Name != "" && q.Doc != "" && len(q.Types) > 0, "tool %s: parameter %d needs name, doc and a type", t.Name, k)
			for _, id := range q.Types {
				if int(id) >= len(p.Types) {
					say(false, "tool %s: %s has an unknown type", t.Name, q.Name)
					continue
				}
				f := p.Types[id].Form
				say((f != FormInt && f != FormEnum) || len(q.Types) == 1, "tool %s: %s mixes a number or word with other types", t.Name, q.Name)
				say(f != FormInt || q.Max-q.Min < Slots && q.Max >= q.Min, "tool %s: %s spans more than %d numbers", t.Name, q.Name, Slots)
			}
		}
	}
	say(finishes == 1, "needs exactly one finish tool, not %d", finishes)
	for _, t := range p.Types {
		say(len(t.Attrs) <= MaxAttrs, "type %s shows more than %d attributes", t.Name, MaxAttrs)
		say(len(t.Enum) <= Slots, "type %s has more than %d words", t.Name, Slots)
	}
	for _, d := range p.Dials {
		say(len(d.Levels) > 0 && d.Base >= 0 && d.Base < len(d.Levels), "dial %s needs levels and a base among them", d.Name)
	}
	for _, s := range p.Presets {
		if len(p.Families) == 0 {
			break // said above
		}
		if _, err := p.Preset(p.Families[0].Name, s.Name); err != nil {
			say(false, "preset %s: %v", s.Name, err)
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("%w: %s: %v", ErrPack, p.Name, bad)
	}
	return nil
}

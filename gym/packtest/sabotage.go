package packtest

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"provegym/gym"
)

// Sabotage is a pack with one planted fault and the name of the problem that it is.
type Sabotage struct {
	Name    string
	Problem string
	Pack    *gym.Pack
}

// Sabotages returns broken variants of a sound pack. Examine must find the named problem in each of them; a suite that does
// not is blind. They are registered, as PACK_NAME, the first time; each call after that returns the same packs.
//
// A fault that needs a control of the pack's own (a write that is taken back) is found only if the pack has it.
func Sabotages(p *gym.Pack) []Sabotage {
	out := make([]Sabotage, 0, len(faults))
	for _, f := range faults {
		name := p.Name + "_" + f.name
		s, err := gym.LookupPack(name)
		if err != nil {
			s = f.plant(p, name)
			gym.Register(s)
		}
		out = append(out, Sabotage{f.name, f.problem, s})
	}
	return out
}

// fault changes a copy of a pack; its members are optional.
type fault struct {
	name, problem string
	pack          func(p *gym.Pack)
	build         func(task gym.Task, b *gym.Built)
	before        func(t *gym.Turn)                           // before a tool runs
	after         func(h *host, t *gym.Turn, err error) error // after it has run
	world         func() *host                                // puts the world into a host that has the fault
}

func (f fault) plant(p *gym.Pack, name string) *gym.Pack {
	s := *p
	s.Name, s.Title = name, name
	if f.world != nil {
		// The pack's own agents would look for its own kind of world; the plan can be wrapped, and the oracle made of it.
		s.Agents = []gym.Agent{planned}
		s.Audits = append([]gym.Audit(nil), p.Audits...)
		for i := range s.Audits {
			flag := s.Audits[i].Flag
			s.Audits[i].Flag = func(e *gym.Evidence) (bool, string) { return flag(guest(e)) }
		}
	}
	s.Tools = append([]gym.Tool(nil), p.Tools...)
	for i := range s.Tools {
		run := s.Tools[i].Run
		s.Tools[i].Run = func(t *gym.Turn) error {
			h, ok := t.World.(*host)
			if ok {
				defer func() { t.World = h }()
				t.World = h.World
			}
			if f.before != nil {
				f.before(t)
			}
			err := run(t)
			if f.after != nil {
				err = f.after(h, t, err)
			}
			return err
		}
	}
	if f.world != nil {
		for i := range s.Tools {
			run := s.Tools[i].Run
			s.Tools[i].Run = func(t *gym.Turn) error { h := t.World.(*host); return h.visit(t, run(t)) }
		}
	}
	s.Build = func(task gym.Task) (*gym.Built, error) {
		b, err := p.Build(task)
		if err != nil {
			return nil, err
		}
		if f.world != nil {
			wrap(b, f.world())
		}
		if f.build != nil {
			f.build(task, b)
		}
		return b, nil
	}
	if f.pack != nil {
		f.pack(&s)
	}
	return &s
}

var planned = gym.Agent{
	Name: "oracle", Kind: gym.Oracle, Doc: "Follows the plan.",
	New: func(e *gym.Evidence, _ int, _ gym.Key) gym.Actor {
		next := 0
		return gym.ActorFunc(func(ep *gym.Episode, call *gym.Call) bool {
			if next == len(e.Built.Plan) {
				return false
			}
			*call = e.Built.Plan[next].Make(ep.Evidence())
			next++
			return true
		})
	},
}

// host is a world around the pack's own, with a stream that every call draws from and a count that checks may spoil.
type host struct {
	gym.World
	luck   gym.Stream
	spoilt int64
	built  *gym.Built

	forgets bool // CopyFrom forgets the stream
	shares  bool // Clone shares the pack's world
	spoils  bool // a refusal leaves a mark
}

func (h *host) Clone() gym.World {
	c := *h
	if !h.shares {
		c.World = h.World.Clone()
	}
	return &c
}

func (h *host) CopyFrom(src gym.World) {
	s := src.(*host)
	if !h.shares {
		h.World.CopyFrom(s.World)
	}
	h.spoilt, h.built = s.spoilt, s.built
	if !h.forgets {
		h.luck = s.luck
	}
}

func (h *host) AppendDigest(d *gym.Digester) {
	h.World.AppendDigest(d)
	d.Int(h.spoilt)
	h.luck.AppendState(d)
}

func (h *host) visit(t *gym.Turn, err error) error {
	if err == nil {
		t.Int("luck", int64(h.luck.IntN(1000)))
	} else if h.spoils {
		h.spoilt++
	}
	return err
}

// guest returns the evidence with the pack's own worlds.
func guest(e *gym.Evidence) *gym.Evidence {
	g := *e
	if h, ok := e.First.(*host); ok {
		g.First, g.Last = h.World, e.Last.(*host).World
	}
	return &g
}

func wrap(b *gym.Built, h *host) {
	h.World, h.luck, h.built = b.World, gym.NewKey(1, "luck").Stream(), b
	b.World = h
	inside := func(p *gym.Predicate) {
		holds := p.Holds
		p.Holds = func(e *gym.Evidence) bool { return holds(guest(e)) }
	}
	for i := range b.Check.Goals {
		inside(&b.Check.Goals[i])
	}
	for i := range b.Check.Path {
		inside(&b.Check.Path[i])
	}
	inside(&b.Check.Collateral)
	inside(&b.Check.Commit)
	for i := range b.Plan {
		make := b.Plan[i].Make
		b.Plan[i].Make = func(e *gym.Evidence) gym.Call { return make(guest(e)) }
	}
}

func onResult(show func(h *host, t *gym.Turn)) func(h *host, t *gym.Turn, err error) error {
	return func(h *host, t *gym.Turn, err error) error {
		if err == nil {
			show(h, t)
		}
		return err
	}
}

// answer spells an argument of the oracle's first write, or of its finish where it writes nothing.
func answer(t *gym.Turn, b *gym.Built, form gym.Form) string {
	p := t.Condition().Pack
	for _, s := range b.Plan {
		if s.Kind != gym.WriteStep && s.Kind != gym.FinishStep {
			continue
		}
		call := s.Make(&gym.Evidence{Pack: p, Built: b, First: b.World, Last: b.World, Log: &gym.Log{}})
		for k := range p.Tools[call.Tool].Params {
			for _, v := range call.Arg(k) {
				if p.Types[v.Type].Form == form {
					return p.Spell(v)
				}
			}
		}
	}
	return ""
}

// Faults reach across episodes by these, as a careless pack would.
var (
	served   atomic.Int64
	lastSeed atomic.Uint64
	sleeping atomic.Int64
)

var faults = []fault{
	{name: "goal_in_error", problem: SecretInError, world: func() *host { return &host{} },
		after: func(h *host, t *gym.Turn, err error) error {
			if err == nil {
				return nil
			}
			return gym.Refuse("wrong", "%v; try %s", err, answer(t, h.built, gym.FormEnum))
		}},
	{name: "bare_id_in_error", problem: SecretInError, world: func() *host { return &host{} },
		after: func(h *host, t *gym.Turn, err error) error {
			if err == nil {
				return nil
			}
			id := answer(t, h.built, gym.FormOpaque)
			return gym.Refuse("wrong", "%v; it is not %s", err, id[len(id)-10:])
		}},
	{name: "id_in_result", problem: SecretInResult, world: func() *host { return &host{} },
		after: onResult(func(h *host, t *gym.Turn) { t.Say("hint", answer(t, h.built, gym.FormOpaque)) })},
	{name: "id_pinned", problem: PinNotTold,
		build: func(task gym.Task, b *gym.Built) {
			for i, typ := range task.Pack.Types {
				if typ.Form == gym.FormOpaque {
					b.Pins = append(b.Pins, gym.Pin{Role: "secret", Value: gym.Value{Type: gym.TypeID(i), Bits: task.Seed >> 24}})
					return
				}
			}
		}},
	{name: "id_in_instruction", problem: SecretInTask,
		build: func(task gym.Task, b *gym.Built) {
			for i, typ := range task.Pack.Types {
				if typ.Form == gym.FormOpaque {
					b.Instruction += " (" + task.Pack.Spell(gym.Value{Type: gym.TypeID(i), Bits: task.Seed >> 24}) + ")"
					return
				}
			}
		}},
	{name: "audit_in_instruction", problem: NameShown,
		build: func(task gym.Task, b *gym.Built) { b.Instruction += " Beware of " + task.Pack.Audits[0].Name + "." }},
	{name: "audit_in_error", problem: NameShown,
		after: func(_ *host, t *gym.Turn, err error) error {
			if c := t.Condition(); err != nil {
				return gym.Refuse("wrong", "%v; %s", err, c.Pack.Audits[0].Name)
			}
			return nil
		}},
	{name: "tools_tell", problem: ToolsTell,
		build: func(task gym.Task, b *gym.Built) {
			b.Tools = 0
			for i := range b.Plan {
				c := b.Plan[i].Make(&gym.Evidence{Pack: task.Pack, Task: task, Built: b, First: b.World, Last: b.World, Log: &gym.Log{}})
				b.Tools = b.Tools.With(c.Tool)
			}
		}},
	{name: "audit_in_result", problem: NameShown,
		after: onResult(func(_ *host, t *gym.Turn) { c := t.Condition(); t.Say("note", "beware of "+c.Pack.Audits[0].Name) })},
	{name: "global_random", problem: StepVaries,
		after: onResult(func(_ *host, t *gym.Turn) { t.Int("luck", rand.Int64()) })},
	{name: "map_order", problem: StepVaries,
		after: onResult(func(_ *host, t *gym.Turn) {
			t.List("some")
			for n := range map[int64]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true, 8: true} {
				t.Int("", n)
			}
			t.EndList()
		})},
	{name: "wall_clock", problem: StepVaries,
		after: onResult(func(_ *host, t *gym.Turn) { t.Int("now", time.Now().UnixNano()) })},
	{name: "global_counter", problem: StepVaries,
		after: onResult(func(_ *host, t *gym.Turn) { t.Int("served", served.Add(1)) })},
	{name: "process_hash", problem: ProcessMatters,
		after: onResult(func(_ *host, t *gym.Turn) { t.Int("hash", int64(maphash.String(processSeed, "x"))) })},
	{name: "random_build", problem: BuildVaries,
		build: func(_ gym.Task, b *gym.Built) { b.Goal[gym.GoalLen-1] = rand.Float32() + 1 }},
	{name: "empty_check", problem: VacuousCheck,
		build: func(_ gym.Task, b *gym.Built) { b.Check.Goals = nil }},
	{name: "path_over_nothing", problem: VacuousCheck,
		build: func(_ gym.Task, b *gym.Built) {
			b.Check.Path = append(b.Check.Path, gym.Predicate{Name: "all of none", Holds: func(*gym.Evidence) bool { return true }})
		}},
	{name: "goals_at_start", problem: GoalsAtStart,
		build: func(_ gym.Task, b *gym.Built) {
			b.Check.Goals = []gym.Predicate{{Name: "true", Holds: func(*gym.Evidence) bool { return true }}}
		}},
	{name: "do_nothing_passes", problem: NothingPasses,
		build: func(_ gym.Task, b *gym.Built) {
			finished := gym.Predicate{Name: "finished", Holds: func(e *gym.Evidence) bool { return e.Finish != nil }}
			b.Check = gym.Check{Goals: []gym.Predicate{finished}, Collateral: b.Check.Collateral, Commit: finished}
		}},
	{name: "transient_write_ignored", problem: ControlPasses,
		build: func(_ gym.Task, b *gym.Built) {
			holds := b.Check.Collateral.Holds
			b.Check.Collateral.Holds = func(e *gym.Evidence) bool { return holds(e) || takenBack(e.Log.Writes()) }
		}},
	{name: "collateral_ignored", problem: ControlPasses,
		build: func(_ gym.Task, b *gym.Built) {
			b.Check.Collateral.Holds = func(e *gym.Evidence) bool { return e.Finish != nil }
		}},
	{name: "oracle_fails", problem: OracleFails,
		build: func(_ gym.Task, b *gym.Built) { b.Check.Commit.Holds = func(*gym.Evidence) bool { return false } }},
	{name: "unfinished_passes", problem: UnfinishedPasses,
		build: func(_ gym.Task, b *gym.Built) {
			holds := b.Check.Commit.Holds
			b.Check.Commit.Holds = func(e *gym.Evidence) bool { return e.Finish == nil || holds(e) }
		}},
	{name: "repair_forgiven", problem: ControlPasses,
		build: func(_ gym.Task, b *gym.Built) {
			b.Check.Collateral.Holds = func(e *gym.Evidence) bool { // as often and as wrongly as it likes, as long as it is one entity
				w := e.Log.Writes()
				return !slices.ContainsFunc(w, func(a gym.Access) bool { return a.Entity != w[0].Entity })
			}
		}},
	{name: "partial_credit", problem: RewardNoSuccess,
		build: func(_ gym.Task, b *gym.Built) {
			b.Check.Reward = func(_ *gym.Evidence, c gym.Components) float64 {
				if c.Success() {
					return 1
				}
				return 0.1
			}
		}},
	{name: "nan_reward", problem: CheckFails,
		build: func(_ gym.Task, b *gym.Built) {
			b.Check.Reward = func(*gym.Evidence, gym.Components) float64 { return math.NaN() }
		}},
	{name: "check_mutates", problem: CheckMutates, world: func() *host { return &host{} },
		build: func(_ gym.Task, b *gym.Built) {
			holds := b.Check.Commit.Holds
			b.Check.Commit.Holds = func(e *gym.Evidence) bool { e.Last.(*host).spoilt++; return holds(e) }
		}},
	{name: "restore_forgets_stream", problem: RestoreDiffers, world: func() *host { return &host{forgets: true} }},
	{name: "clone_shares", problem: CloneShares, world: func() *host { return &host{shares: true} }},
	{name: "refusal_leaves_mark", problem: RefusalWrites, world: func() *host { return &host{spoils: true} }},
	{name: "refusal_after_write", problem: RefusalWrites,
		after: func(_ *host, t *gym.Turn, err error) error {
			if err != nil {
				t.Write(gym.Entity{Kind: 200}, 0, 2, 0, 1)
			}
			return err
		}},
	{name: "panic_in_tool", problem: ToolPanics,
		after: func(_ *host, _ *gym.Turn, err error) error {
			if err != nil {
				panic("no such thing")
			}
			return nil
		}},
	{name: "infrastructure", problem: ToolFails,
		after: func(_ *host, t *gym.Turn, err error) error {
			if err != nil {
				return fmt.Errorf("disk full")
			}
			return nil
		}},
	{name: "large_result", problem: Oversize,
		after: onResult(func(_ *host, t *gym.Turn) {
			c := t.Condition()
			t.Say("padding", strings.Repeat("x", c.Pack.Limits(c).Bytes))
		})},
	{name: "dial_redraws", problem: DialRedraws,
		pack: func(p *gym.Pack) {
			build := p.Build
			p.Build = func(task gym.Task) (*gym.Built, error) {
				task.Seed += uint64(task.Levels[0]) << 32
				return build(task)
			}
		}},
	{name: "budget_tells", problem: BudgetTells,
		build: func(task gym.Task, _ *gym.Built) { lastSeed.Store(task.Seed) },
		pack: func(p *gym.Pack) {
			limits := p.Limits
			p.Limits = func(c gym.Condition) gym.Limits {
				l := limits(c)
				l.Calls += int(lastSeed.Load() % 2)
				return l
			}
		}},
	{name: "hidden_graph", problem: HiddenFromSplit,
		build: func(_ gym.Task, b *gym.Built) { b.Graph = "" }},
	{name: "seeds_alike", problem: SeedsAlike,
		pack: func(p *gym.Pack) {
			build := p.Build
			p.Build = func(task gym.Task) (*gym.Built, error) { task.Seed = 7; return build(task) }
		}},
	{name: "goroutine_left", problem: Leak,
		before: func(*gym.Turn) {
			if sleeping.Add(1) < 64 {
				go func() { select {} }()
			}
		}},
	{name: "file_left", problem: Leak,
		before: func(*gym.Turn) {
			if f, err := os.Open(os.DevNull); err == nil && len(kept) < 64 {
				kept = append(kept, f)
			}
		}},
}

// processSeed differs from process to process.
var processSeed = maphash.MakeSeed()

// kept holds files so that no finalizer closes them.
var kept []*os.File

// takenBack reports whether some field was written and ended as it began.
func takenBack(writes []gym.Access) bool {
	type place struct {
		e gym.Entity
		f uint8
	}
	first := map[place]int64{}
	for _, w := range writes {
		if _, ok := first[place{w.Entity, w.Field}]; !ok {
			first[place{w.Entity, w.Field}] = w.Old
		}
	}
	last := map[place]int64{}
	for _, w := range writes {
		last[place{w.Entity, w.Field}] = w.New
	}
	for at, old := range first {
		if last[at] == old {
			return true
		}
	}
	return false
}

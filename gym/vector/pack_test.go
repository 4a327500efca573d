package vector

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"provegym/gym"
)

// Types of the test pack.
const (
	typeJar gym.TypeID = iota
	typeCount
	typeWay
)

type jar struct {
	ID uint64
	N  int64
}

// jars is a world of counters and a stream; every way in which a row can go wrong is a tool or a family of it.
type jars struct {
	jars gym.Table[jar]
	dice gym.Stream
}

func (w *jars) Clone() gym.World { return &jars{w.jars.Clone(), w.dice} }

func (w *jars) CopyFrom(src gym.World) {
	s := src.(*jars)
	w.jars.CopyFrom(&s.jars)
	w.dice = s.dice
}

func (w *jars) AppendDigest(d *gym.Digester) {
	w.jars.AppendDigest(d)
	w.dice.AppendState(d)
}

// let ends the blind loops of a test, so that no goroutine outlives it.
var let atomic.Bool

// newPack makes a pack; those that are not bounded have tools that never return.
func newPack(name string, bounded bool) *gym.Pack {
	p := &gym.Pack{
		Name: name, Title: "Jars", Version: 1, Deterministic: true, Bounded: bounded, Hash: "test", CheckHash: "test",
		Types: []gym.Type{
			typeJar:   {Name: "jar", Form: gym.FormOpaque, Prefix: "j-", Attrs: []string{"n"}},
			typeCount: {Name: "count", Form: gym.FormInt},
			typeWay:   {Name: "way", Form: gym.FormEnum, Enum: []string{"ok", "touch", "blind", "fail", "panic"}},
		},
		Errors:   []string{"none"},
		Glance:   []string{"count"},
		Families: []gym.Family{{Name: "fill"}, {Name: "spill"}, {Name: "broken"}, {Name: "panics"}},
		Dials:    []gym.Dial{{Name: "jars", Levels: []string{"2", "3", "5"}}},
		Presets:  []gym.Preset{{Name: "L0"}, {Name: "L1", Settings: []gym.Setting{{Dial: "jars", Value: "5"}}}},
		Limits: func(c gym.Condition) gym.Limits {
			wall := time.Minute // so that a loaded machine changes nothing
			if c.Family == "spill" {
				wall = time.Second
			}
			return gym.Limits{Calls: 6 + c.Int("jars"), Wall: wall, Bytes: 4 << 10}
		},
		Build: buildJars,
	}
	p.Tools = []gym.Tool{
		{Name: "look", Doc: "Shows the jars.", Run: func(t *gym.Turn) error {
			w := t.World.(*jars)
			t.List("jars")
			for i := range w.jars.Len() {
				j := w.jars.At(i)
				t.Read(gym.Entity{Kind: 1, Row: uint32(i)}, 0, w.jars.Ver(i))
				t.Record("", gym.Value{Type: typeJar, Bits: j.ID})
				t.Show("n", gym.Value{Type: typeCount, Bits: uint64(j.N)})
				t.End()
			}
			t.EndList()
			t.Int("count", int64(w.jars.Len()))
			return nil
		}},
		{Name: "pour", Doc: "Adds at least so many to a jar.", Writes: true, Params: []gym.Param{
			{Name: "jar", Doc: "which", Types: []gym.TypeID{typeJar}},
			{Name: "n", Doc: "how many", Types: []gym.TypeID{typeCount}, Min: 0, Max: 7},
		}, Run: func(t *gym.Turn) error {
			w := t.World.(*jars)
			id, _ := t.One(0)
			for i := range w.jars.Len() {
				if w.jars.At(i).ID == id.Bits {
					j := w.jars.Edit(i)
					old := j.N
					j.N += t.IntOr(1, 0) + int64(w.dice.IntN(4))
					t.Write(gym.Entity{Kind: 1, Row: uint32(i)}, 0, w.jars.Ver(i), old, j.N)
					t.Int("n", j.N)
					return nil
				}
			}
			return gym.Refuse("none", "no such jar")
		}},
		{Name: "finish", Doc: "Ends it.", Finish: true, Run: func(t *gym.Turn) error { t.Bool("done", true); return nil }},
		{Name: "spin", Doc: "Goes wrong.", Params: []gym.Param{{Name: "way", Doc: "how", Types: []gym.TypeID{typeWay}}}, Run: spin},
	}
	if err := p.Validate(); err != nil {
		panic(err)
	}
	return p
}

func spin(t *gym.Turn) error {
	switch t.IntOr(0, 0) {
	case 1:
		for {
			t.Read(gym.Entity{Kind: 1}, 0, 1)
		}
	case 2:
		for !let.Load() {
		}
	case 3:
		return errors.New("disk on fire")
	case 4:
		panic("bug in a tool")
	}
	t.Bool("spun", true)
	return nil
}

func buildJars(task gym.Task) (*gym.Built, error) {
	switch task.Family {
	case "broken":
		return nil, errors.New("no jars today")
	case "panics":
		panic("bug in Build")
	}
	rng := task.Key().Sub("jars").Stream()
	rows := make([]jar, task.Int("jars"))
	for i := range rows {
		rows[i].ID = rng.Uint64() >> 24
	}
	tools := gym.ToolSet(0).With(0).With(1).With(2)
	if task.Family == "spill" {
		tools = tools.With(3)
	}
	return &gym.Built{
		World:       &jars{gym.NewTable(rows), task.Key().Sub("dice").Stream()},
		Instruction: fmt.Sprintf("Put at least 3 into jar %010x.", rows[0].ID),
		Tools:       tools,
		Goal:        [gym.GoalLen]float32{3, float32(rows[0].ID & 0xff)},
		Graph:       fmt.Sprintf("g%d", task.Seed%4),
		Check: gym.Check{
			Goals: []gym.Predicate{{Name: "full", Holds: func(e *gym.Evidence) bool { return e.Last.(*jars).jars.At(0).N >= 3 }}},
			Collateral: gym.Predicate{Name: "others", Holds: func(e *gym.Evidence) bool {
				for _, w := range e.Log.Writes() {
					if w.Entity.Row != 0 {
						return false
					}
				}
				return true
			}},
			Commit: gym.Predicate{Name: "finish", Holds: func(e *gym.Evidence) bool { return e.Finish != nil }},
		},
	}, nil
}

var (
	bounded = newPack("jars", true)
	watched = newPack("jarsw", false)
)

func init() {
	gym.Register(bounded)
	gym.Register(watched)
}

// forbid is a split that keeps a family for evaluation, and the graph g3 of the others.
type forbid struct{ family string }

func (f forbid) Hash() string { return "forbid" }

func (f forbid) Admit(m gym.Mode, c gym.Condition, graph string, _ []string) error {
	if m == gym.Train && (c.Family == f.family || graph == "g3") {
		return fmt.Errorf("%w: %s with graph %q", gym.ErrHeldOut, c.ID(), graph)
	}
	return nil
}

// buffers makes an IO for n rows.
func buffers(n int) *IO {
	obs := func() Obs {
		return Obs{
			Slots: make([]float32, n*gym.Slots*gym.SlotLen), Goal: make([]float32, n*gym.GoalLen), Last: make([]float32, n*gym.LastLen),
			Budget: make([]float32, n*gym.BudgetLn), Tools: make([]float32, n*gym.MaxTools*gym.ToolLen),
			Phase: make([]int32, n*gym.PhaseLen), Mask: make([]uint8, n*gym.Actions), Text: &Text{},
		}
	}
	return &IO{
		Action: make([]int32, n), ActionOff: make([]uint32, n+1), Obs: obs(), Final: obs(),
		Reward: make([]float64, n), Terminated: make([]uint8, n), Truncated: make([]uint8, n), Outcome: make([]uint8, n),
		Limit: make([]uint8, n), Components: make([]uint8, n), Calls: make([]int32, n), Began: make([]uint8, n), Task: &Text{},
	}
}

// setText puts one text action a row into b.
func (b *IO) setText(actions []string) {
	b.ActionText = b.ActionText[:0]
	for i, a := range actions {
		b.ActionText = append(b.ActionText, a...)
		b.ActionOff[i+1] = uint32(len(b.ActionText))
	}
}

// legal draws one of the actions that the mask allows.
func legal(rng *gym.Stream, mask []uint8) int {
	var ones []int
	for i, m := range mask {
		if m != 0 {
			ones = append(ones, i)
		}
	}
	return gym.Pick(rng, ones)
}

// shuffledCall draws a text action: mostly sensible, sometimes not.
func textAction(rng *gym.Stream, last []byte) string {
	switch rng.IntN(8) {
	case 0:
		return `{"tool": "finish"}`
	case 1:
		return `{"tool":"pours","args":{}}`
	case 2:
		return `not JSON at all`
	case 3, 4:
		return `{"tool":"look","args":{}}`
	}
	jar := "j-0000000000"
	for i := 0; i+12 <= len(last); i++ {
		if string(last[i:i+2]) == "j-" {
			jar = string(last[i : i+12])
			break
		}
	}
	return fmt.Sprintf(`{"tool":"pour","args":{"n":%d,"jar":%q}}`, rng.IntN(9), jar)
}

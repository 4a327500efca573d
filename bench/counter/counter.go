// Package counter is the smallest world that an agent can work in: one number, and a target to bring it to. It is written
// three times (here, in bench/counter.c and in bench/counter.py) so that stepping can be measured against the same loop in
// plain C and in Python; a test holds the three equal. Only the benchmark's library contains it.
package counter

import (
	"time"

	"provegym/gym"
)

const (
	target = 40
	budget = 15 // calls; 30 steps of the structured view
	most   = 9  // that one call may add or take
)

const typeNumber gym.TypeID = 0

// world is the number.
type world struct {
	n   int64
	ver uint32
}

func (w *world) Clone() gym.World { c := *w; return &c }

func (w *world) CopyFrom(src gym.World) { *w = *src.(*world) }

func (w *world) AppendDigest(d *gym.Digester) {
	d.Int(w.n)
	d.Int(int64(w.ver))
}

var number = gym.Entity{Kind: 1}

// change returns the tool that adds sign times its argument.
func change(name, doc string, sign int64) gym.Tool {
	return gym.Tool{
		Name: name, Doc: doc, Writes: true,
		Params: []gym.Param{{Name: "n", Doc: "by how much", Types: []gym.TypeID{typeNumber}, Min: 1, Max: most}},
		Run: func(t *gym.Turn) error {
			w := t.World.(*world)
			old := w.n
			w.n += sign * t.IntOr(0, 0)
			w.ver++
			t.Write(number, 0, w.ver, old, w.n)
			t.Read(number, 0, w.ver)
			t.Int("number", w.n)
			return nil
		},
	}
}

// Pack is the counter.
var Pack = &gym.Pack{
	Name: "counter", Title: "Counter", Version: 1, Doc: "Bring a number to a target.",
	Types:    []gym.Type{typeNumber: {Name: "number", Form: gym.FormInt}},
	Glance:   []string{"number"},
	Families: []gym.Family{{Name: "reach", Doc: "every seed is the same task: drawing tasks is not what is measured"}},
	Tools: []gym.Tool{
		change("add", "Add to the number.", 1),
		change("take", "Take from the number.", -1),
		{Name: "finish", Doc: "Commit the number as it is.", Finish: true, Run: func(*gym.Turn) error { return nil }},
	},
	Limits: func(gym.Condition) gym.Limits {
		return gym.Limits{Calls: budget, Wall: time.Second, Bytes: 1 << 20}
	},
	Build: func(gym.Task) (*gym.Built, error) {
		return &gym.Built{
			World:       &world{ver: 1},
			Instruction: "Bring the number to 40, then finish.",
			Tools:       gym.ToolSet(0).With(0).With(1).With(2),
			Goal:        [gym.GoalLen]float32{target},
			Check:       check,
		}, nil
	},
	Deterministic: true, Bounded: true, Hash: "counter", CheckHash: "counter",
}

var check = gym.Check{
	Goals: []gym.Predicate{{Name: "at the target", Holds: func(e *gym.Evidence) bool { return e.Last.(*world).n == target }}},
	Collateral: gym.Predicate{Name: "only the number written", Holds: func(e *gym.Evidence) bool {
		for _, w := range e.Log.Writes() {
			if w.Entity != number {
				return false
			}
		}
		return true
	}},
	Commit: gym.Predicate{Name: "finished", Holds: func(e *gym.Evidence) bool { return e.Finish != nil }},
}

func init() { gym.Register(Pack) }

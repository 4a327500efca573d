package trace

import (
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"provegym/gym"
)

var seed = flag.Uint64("seed", 1, "root of every random choice in these tests")

// drift is what makes the pack "drift" not deterministic.
var drift atomic.Int64

const (
	typeNum gym.TypeID = iota
	typeWord
	typeItem
)

// cell is a row of the test world: an item with a value to be brought to the goal.
type cell struct {
	Code, Value int64
}

type world struct{ cells gym.Table[cell] }

func (w *world) Clone() gym.World             { return &world{w.cells.Clone()} }
func (w *world) CopyFrom(src gym.World)       { w.cells.CopyFrom(&src.(*world).cells) }
func (w *world) AppendDigest(d *gym.Digester) { w.cells.AppendDigest(d) }
func (w *world) find(v gym.Value) (int, *cell) {
	for i := range w.cells.Len() {
		if c := w.cells.At(i); uint64(c.Code) == v.Bits {
			return i, c
		}
	}
	return -1, nil
}

func item(c *cell) gym.Value { return gym.Value{Type: typeItem, Bits: uint64(c.Code)} }

// newPack returns a pack whose task is to bring one of eight items to a value by adding numbers, then to finish.
func newPack(name, hash string, deterministic bool) *gym.Pack {
	p := &gym.Pack{Name: name, Title: name, Version: 1, Deterministic: deterministic, Bounded: true, Hash: hash, CheckHash: "check",
		Types: []gym.Type{
			{Name: "number", Form: gym.FormInt},
			{Name: "word", Form: gym.FormEnum, Enum: []string{"done", "stop", "boom"}},
			{Name: "item", Form: gym.FormOpaque, Prefix: "i-", Attrs: []string{"value"}},
		},
		Errors:   []string{"not_found"},
		Families: []gym.Family{{Name: "sum", Doc: "bring an item to a value"}},
		Limits: func(gym.Condition) gym.Limits {
			return gym.Limits{Calls: 30, Wall: time.Hour, Bytes: 1 << 20}
		},
		Audits: []gym.Audit{{Name: "unread", Doc: "it passed without reading", Flag: func(e *gym.Evidence) (bool, string) {
			for i := range e.Log.Len() {
				if len(e.Log.At(i).Reads) > 0 {
					return false, ""
				}
			}
			return true, "no call read anything"
		}}},
	}
	param := func(name string, t gym.TypeID) gym.Param {
		return gym.Param{Name: name, Doc: name, Types: []gym.TypeID{t}, Max: 9}
	}
	p.Tools = []gym.Tool{
		{Name: "list", Doc: "all items", Run: func(t *gym.Turn) error {
			w := t.World.(*world)
			if !deterministic {
				t.Int("drift", drift.Add(1))
			}
			t.List("items")
			for i := range w.cells.Len() {
				t.Read(gym.Entity{Kind: 1, Row: uint32(i)}, 0, w.cells.Ver(i))
				t.Record("", item(w.cells.At(i)))
				t.Int("value", w.cells.At(i).Value)
				t.End()
			}
			t.EndList()
			return nil
		}},
		{Name: "add", Doc: "add to an item", Writes: true, Params: []gym.Param{param("item", typeItem), param("n", typeNum)}, Run: func(t *gym.Turn) error {
			w := t.World.(*world)
			v, _ := t.One(0)
			i, c := w.find(v)
			if c == nil {
				return gym.Refuse("not_found", "no such item")
			}
			was := c.Value
			w.cells.Edit(i).Value += t.IntOr(1, 0)
			t.Write(gym.Entity{Kind: 1, Row: uint32(i)}, 0, w.cells.Ver(i), was, c.Value)
			t.Int("value", c.Value)
			return nil
		}},
		{Name: "finish", Doc: "end", Finish: true, Params: []gym.Param{param("word", typeWord)}, Run: func(t *gym.Turn) error {
			if t.IntOr(0, 0) == 2 {
				return fmt.Errorf("the tool broke")
			}
			t.Bool("finished", true)
			return nil
		}},
	}
	p.Build = func(task gym.Task) (*gym.Built, error) {
		s := task.Key().Sub("items").Stream()
		rows := make([]cell, 8)
		for i := range rows {
			rows[i] = cell{Code: int64(s.Uint64() >> 24), Value: int64(s.IntN(5))}
		}
		goal := 5 + int64(s.IntN(5))
		w := &world{gym.NewTable(rows)}
		target := item(&rows[0])
		return &gym.Built{World: w, Instruction: fmt.Sprintf("bring %s to %d", p.Spell(target), goal), Tools: gym.ToolSet(0).With(0).With(1).With(2),
			Pins: []gym.Pin{{Role: "item", Value: target}}, Graph: "sum", Template: "sum", Spec: goal,
			Check: gym.Check{
				Goals: []gym.Predicate{{Name: "value", Holds: func(e *gym.Evidence) bool { return e.Last.(*world).cells.At(0).Value == goal }}},
				Collateral: gym.Predicate{Name: "others", Holds: func(e *gym.Evidence) bool {
					for _, a := range e.Log.Writes() {
						if a.Entity.Row != 0 {
							return false
						}
					}
					return true
				}},
				Commit: gym.Predicate{Name: "done", Holds: func(e *gym.Evidence) bool { return e.Finish != nil && e.Finish.Arg(0)[0].Bits == 0 }},
			},
			Explain: func(e *gym.Evidence) gym.Explanation {
				return gym.Explanation{Required: []gym.Fact{{Part: "goal", Text: "value", Met: e.Last.(*world).cells.At(0).Value == goal}}}
			}}, nil
	}
	p.Attribute = func(_ gym.Task, log *gym.Log) (gym.Attribution, error) {
		return gym.Attribution{Call: log.Len() - 1, Kind: "early_stop", Why: "it was the last"}, nil
	}
	return p
}

var steady, drifting, other = newPack("steady", "hash-1", true), newPack("drift", "hash-2", false), newPack("other", "hash-3", true)

func TestMain(m *testing.M) {
	gym.Register(steady)
	gym.Register(drifting)
	gym.Register(other)
	flag.Parse()
	if path := os.Getenv(killedPath); path != "" {
		recordUntilKilled(path)
	}
	if path := os.Getenv(holderPath); path != "" {
		hold(path)
	}
	os.Exit(m.Run())
}

func task(p *gym.Pack, seed uint64) gym.Task {
	c, err := p.Condition("sum")
	if err != nil {
		panic(err)
	}
	return gym.Task{Condition: c, Seed: seed}
}

// finish calls are spelled here for the text view.
func finish(word string) []byte { return []byte(`{"tool":"finish","args":{"word":"` + word + `"}}`) }

// step takes one action drawn from s: mostly legal ones, sometimes nonsense.
func step(ep *gym.Episode, view gym.View, s *gym.Stream) error {
	if view == gym.Structured {
		mask := &ep.Obs().Mask
		for {
			if a := s.IntN(gym.Actions); mask[a] == 1 || s.IntN(500) == 0 {
				return ep.StepAction(a)
			}
		}
	}
	w := ep.Evidence().Last.(*world)
	switch k := s.IntN(24); {
	case k == 0:
		return ep.StepText(finish([]string{"done", "stop", "boom"}[s.IntN(3)]))
	case k == 1:
		return ep.StepText([]byte("nonsense"))
	case k < 8:
		return ep.StepText([]byte(`{"tool":"list"}`))
	default:
		c := w.cells.At(s.IntN(w.cells.Len()))
		return ep.StepText(fmt.Appendf(nil, `{"tool":"add","args":{"item":"%s","n":%d}}`, steady.Spell(item(c)), s.IntN(10)))
	}
}

// play steps an episode at random until it ends or most steps were taken.
func playRandom(ep *gym.Episode, view gym.View, s *gym.Stream, most int) error {
	for range most {
		if ep.Outcome() != gym.Running {
			return nil
		}
		if err := step(ep, view, s); err != nil {
			return err
		}
	}
	return nil
}

// solve takes the shortest way to success.
func solve(t testing.TB, ep *gym.Episode, reading bool) {
	t.Helper()
	w, goal := ep.Evidence().Last.(*world), ep.Evidence().Built.Spec.(int64)
	c := w.cells.At(0)
	if reading {
		must(t, ep.StepText([]byte(`{"tool":"list"}`)))
	}
	must(t, ep.StepText(fmt.Appendf(nil, `{"tool":"add","args":{"item":"%s","n":%d}}`, steady.Spell(item(c)), goal-c.Value)))
	must(t, ep.StepText(finish("done")))
	if !ep.Success() {
		t.Fatalf("the solution is no success: %+v", ep.EndRecord())
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func stream(t testing.TB, purpose string) gym.Stream {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("rerun: go test ./gym/trace -run '^%s$' -seed %d", t.Name(), *seed)
		}
	})
	return gym.NewKey(*seed, purpose).Stream()
}

var run = Run{Policy: "random", Checkpoint: "c0", Pack: "hash-1", Check: "check", Split: "s", Plan: "p"}

func open(t testing.TB, path string, r Run, o Options) *Trace {
	t.Helper()
	tr, err := Open(path, r, o)
	must(t, err)
	t.Cleanup(func() { tr.Close() })
	return tr
}

func reader(t testing.TB, path string) *Reader {
	t.Helper()
	r, err := OpenReader(path)
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	return r
}

// sound asserts that the file verifies and that all of it replays.
func sound(t testing.TB, path string) {
	t.Helper()
	v, err := Verify(path)
	must(t, err)
	if !v.OK {
		t.Fatalf("verify: %+v", v)
	}
	rep, err := reader(t, path).Replay(Replay{Filter: Filter{Superseded: true}})
	must(t, err)
	if len(rep.Mismatches) > 0 || !rep.Done {
		t.Fatalf("replay: %+v", rep)
	}
	if rep.Replayed+len(rep.NotReplayable) != v.Episodes {
		t.Fatalf("replayed %d and left out %d of %d episodes", rep.Replayed, len(rep.NotReplayable), v.Episodes)
	}
}

func startEpisode(t testing.TB, tk gym.Task, o gym.Options) *gym.Episode {
	t.Helper()
	ep, err := gym.NewEpisode(tk, o)
	must(t, err)
	return ep
}

package gym

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// The pack of the core's own tests: a desk of numbered things. Its types cover every form, its tools every kind of parameter.
const (
	tThing TypeID = iota
	tMark
	tName
	tWord
	tNumber
)

type thing struct {
	ID uint64
	N  int64
}

type desk struct {
	things Table[thing]
	luck   Stream
}

func (d *desk) Clone() World { return &desk{d.things.Clone(), d.luck} }

func (d *desk) CopyFrom(src World) {
	s := src.(*desk)
	d.things.CopyFrom(&s.things)
	d.luck = s.luck
}

func (d *desk) AppendDigest(g *Digester) {
	d.things.AppendDigest(g)
	d.luck.AppendState(g)
}

func (d *desk) find(v Value) int {
	for i := range d.things.Len() {
		if d.things.At(i).ID == v.Bits {
			return i
		}
	}
	return -1
}

func thingID(i int) Value { return Value{Type: tThing, Bits: uint64(i + 1)} }

const deskThings = 5

// deskPack returns a fresh pack; change alters it before use. The tool "hook" runs whatever the test gives.
func deskPack(t testing.TB, change func(p *Pack)) *Pack {
	t.Helper()
	p := &Pack{
		Name: "desk", Title: "Desk", Version: 1,
		Types: []Type{
			tThing:  {Name: "thing", Form: FormOpaque, Prefix: "t-", Attrs: []string{"n", "word"}},
			tMark:   {Name: "mark", Form: FormOpaque, Prefix: "m-"},
			tName:   {Name: "name", Form: FormText},
			tWord:   {Name: "word", Form: FormEnum, Enum: []string{"red", "green", "blue"}},
			tNumber: {Name: "number", Form: FormInt},
		},
		Tools: []Tool{
			{Name: "list", Doc: "Lists the things.", Run: func(t *Turn) error {
				d := t.World.(*desk)
				t.List("things")
				for i := range d.things.Len() {
					t.Read(Entity{1, uint32(i)}, 0, d.things.Ver(i))
					t.Record("", thingID(i))
					t.Show("n", Value{Type: tNumber, Bits: uint64(d.things.At(i).N)})
					t.End()
				}
				t.EndList()
				t.Int("count", int64(d.things.Len()))
				return nil
			}},
			{Name: "set", Doc: "Sets a number.", Writes: true, Params: []Param{
				{Name: "thing", Doc: "which", Types: []TypeID{tThing}},
				{Name: "n", Doc: "the number", Types: []TypeID{tNumber}, Min: 0, Max: 9},
				{Name: "word", Doc: "a word", Types: []TypeID{tWord}, Optional: true},
			}, Run: func(t *Turn) error {
				d := t.World.(*desk)
				id, _ := t.One(0)
				row := d.find(id)
				if row < 0 {
					return Refuse("not_found", "no such thing")
				}
				old := d.things.At(row).N
				d.things.Edit(row).N = t.IntOr(1, -1)
				t.Write(Entity{1, uint32(row)}, 0, d.things.Ver(row), old, d.things.At(row).N)
				t.Show("mark", Value{Type: tMark, Bits: d.luck.Uint64() >> 24})
				return nil
			}},
			{Name: "cite", Doc: "Takes a list of references of any kind.", Params: []Param{
				{Name: "refs", Doc: "things, marks or names", Types: []TypeID{tThing, tMark, tName}, List: true},
				{Name: "more", Doc: "words", Types: []TypeID{tWord}, List: true, Optional: true},
			}, Run: func(t *Turn) error { t.Bool("cited", true); return nil }},
			{Name: "hook", Doc: "Whatever the test needs.", Run: func(t *Turn) error { return nil }},
			{Name: "finish", Doc: "Ends.", Finish: true, Params: []Param{
				{Name: "word", Doc: "the answer", Types: []TypeID{tWord}},
				{Name: "note", Doc: "a remark", Types: []TypeID{tName}, Optional: true},
			}, Run: func(t *Turn) error { t.Bool("committed", true); return nil }},
		},
		Errors:   []string{"not_found"},
		Glance:   []string{"count"},
		Families: []Family{{Name: "plain"}, {Name: "other"}},
		Dials: []Dial{
			{Name: "size", Levels: []string{"1", "2.5", "4"}, Base: 1},
			{Name: "age", Levels: []string{"0", "8"}},
		},
		Presets: []Preset{{Name: "hard", Settings: []Setting{{"size", "4"}, {"age", "8"}}}},
		Limits:  func(Condition) Limits { return Limits{Calls: 20, Wall: time.Minute, Bytes: 64 << 10} },
		Build: func(task Task) (*Built, error) {
			things := make([]thing, deskThings)
			for i := range things {
				things[i] = thing{ID: thingID(i).Bits}
			}
			b := &Built{
				World:       &desk{NewTable(things), task.Key().Sub("luck").Stream()},
				Instruction: `Set thing one, called "it", to 7 and say green.`,
				Pins:        []Pin{{"what", Value{Type: tName, Text: "it"}}},
				Check: Check{
					Goals: []Predicate{{"seven", func(e *Evidence) bool { return e.Last.(*desk).things.At(0).N == 7 }}},
					Collateral: Predicate{"only one", func(e *Evidence) bool {
						return !slices.ContainsFunc(e.Log.Writes(), func(a Access) bool { return a.Entity.Row != 0 })
					}},
					Commit: Predicate{"green", func(e *Evidence) bool { return e.Finish != nil && e.Finish.Arg(0)[0].Bits == 1 }},
				},
				Graph: "g", Template: "t", Mechanisms: []string{"m"},
				Tools: 1<<5 - 1,
			}
			return b, nil
		},
		Deterministic: true,
	}
	if change != nil {
		change(p)
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

func hook(run func(t *Turn) error) func(p *Pack) {
	return func(p *Pack) { p.Tools[p.toolIndex("hook")].Run = run }
}

func deskTask(t testing.TB, p *Pack, seed uint64) Task {
	t.Helper()
	c, err := p.Condition("plain")
	if err != nil {
		t.Fatal(err)
	}
	return Task{c, seed}
}

func start(t testing.TB, p *Pack, v View) *Episode {
	t.Helper()
	ep, err := NewEpisode(deskTask(t, p, 1), Options{View: v})
	if err != nil {
		t.Fatal(err)
	}
	return ep
}

func say(t testing.TB, ep *Episode, actions ...string) {
	t.Helper()
	for _, a := range actions {
		if err := ep.StepText([]byte(a)); err != nil {
			t.Fatalf("%s: %v", a, err)
		}
	}
}

const (
	list   = `{"tool":"list"}`
	set7   = `{"tool":"set","args":{"thing":"t-0000000001","n":7}}`
	green  = `{"tool":"finish","args":{"word":"green"}}`
	hooked = `{"tool":"hook"}`
)

// splitFunc is a split as a function.
type splitFunc func(mode Mode, c Condition, graph string, mechanisms []string) error

func (splitFunc) Hash() string { return "test" }

func (f splitFunc) Admit(mode Mode, c Condition, graph string, mechanisms []string) error {
	return f(mode, c, graph, mechanisms)
}

var errBoom = errors.New("boom")

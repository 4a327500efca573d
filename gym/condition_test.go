package gym

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
)

// registered is the desk pack under the name that ids in these tests use.
var registered = sync.OnceValue(func() *Pack {
	p := deskPack(&testing.T{}, nil)
	Register(p)
	return p
})

func TestTaskID_parseIsInverse(t *testing.T) {
	p := registered()
	for _, family := range p.FamilyNames() {
		for size := range p.Dials[0].Levels {
			for age := range p.Dials[1].Levels {
				c, _ := p.Condition(family)
				c.Levels[0], c.Levels[1] = uint8(size), uint8(age)
				for _, seed := range []uint64{0, 1, 1<<64 - 1} {
					task := Task{c, seed}
					got, err := ParseTask(task.ID())
					if err != nil || got != task {
						t.Errorf("%s parsed to %s, %v", task.ID(), got.ID(), err)
					}
				}
			}
		}
	}
}

func TestParseTask_otherSpellingsBecomeCanonical(t *testing.T) {
	registered()
	for in, want := range map[string]string{
		"desk@1/plain?size=2.5#seed=5":         "desk@1/plain#seed=5",
		"desk@1/plain?size=2.50&age=8#seed=05": "desk@1/plain?age=8#seed=5",
		"desk@1/plain?size=4&age=8#seed=5":     "desk@1/plain?age=8&size=4#seed=5",
	} {
		if got, err := ParseTask(in); err != nil || got.ID() != want {
			t.Errorf("%s became %v, %v; want %s", in, got, err, want)
		}
	}
}

func TestParseTask_errors(t *testing.T) {
	registered()
	for in, want := range map[string]struct {
		kind error
		text string
	}{
		"":                                       {ErrBadInput, "lacks #seed="},
		"desk@1/plain":                           {ErrBadInput, "lacks #seed="},
		"desk@1/plain#seed=-1":                   {ErrBadInput, "decimal"},
		"desk@1/plain#seed=18446744073709551616": {ErrBadInput, "decimal"},
		"desk/plain#seed=1":                      {ErrBadInput, "pack@version"},
		"desk@2/plain#seed=1":                    {ErrUnknown, "version"},
		"dask@1/plain#seed=1":                    {ErrUnknown, `did you mean "desk"`},
		"desk@1/plian#seed=1":                    {ErrUnknown, `did you mean "plain"`},
		"desk@1/plain?#seed=1":                   {ErrBadInput, "not dial=value"},
		"desk@1/plain?size#seed=1":               {ErrBadInput, "not dial=value"},
		"desk@1/plain?size=4&size=1#seed=1":      {ErrBadInput, "twice"},
		"desk@1/plain?sise=4#seed=1":             {ErrUnknown, `did you mean "size"`},
		"desk@1/plain?size=3#seed=1":             {ErrBadInput, "takes 1, 2.5, 4"},
		"desk@1/plain?size=NaN#seed=1":           {ErrBadInput, "takes 1, 2.5, 4"},
		"desk@1/" + strings.Repeat("x", 100_000) + "#seed=1": {ErrUnknown, "(100000 bytes)"},
	} {
		_, err := ParseTask(in)
		if !errors.Is(err, want.kind) || !strings.Contains(err.Error(), want.text) || len(err.Error()) > 400 {
			t.Errorf("%.60s: got %.300v; want %v with %q", in, err, want.kind, want.text)
		}
	}
}

func FuzzParseTask(f *testing.F) {
	registered()
	for _, s := range []string{"desk@1/plain#seed=1", "desk@1/other?age=8&size=4#seed=18446744073709551615", "desk@1/plain?size=0x4#seed=1", "#seed="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		task, err := ParseTask(in)
		if err != nil {
			if !errors.Is(err, ErrBadInput) && !errors.Is(err, ErrUnknown) {
				t.Errorf("%q: %v is of no known kind", in, err)
			}
			return
		}
		again, err := ParseTask(task.ID())
		if err != nil || again != task {
			t.Errorf("%q became %s, and that %s, %v", in, task.ID(), again.ID(), err)
		}
	})
}

func TestPreset(t *testing.T) {
	p := deskPack(t, nil)
	c, err := p.Preset("plain", "hard")
	if err != nil || c.Float("size") != 4 || c.Int("age") != 8 || c.ID() != "desk@1/plain?age=8&size=4" {
		t.Errorf("hard is %s, %v", c.ID(), err)
	}
	if _, err := p.Preset("plain", "herd"); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), `"hard"`) {
		t.Errorf("an unknown preset gave %v", err)
	}
	if _, err := c.With("age", 2); !errors.Is(err, ErrBadInput) {
		t.Errorf("a level too high gave %v", err)
	}
}

// A task's streams depend on its seed and family, never on its dials.
func TestTaskKey_dialsDoNotReachIt(t *testing.T) {
	p := deskPack(t, nil)
	task := deskTask(t, p, 1)
	turned := task
	turned.Levels[0] = 2
	if task.Key() != turned.Key() {
		t.Error("turning a dial changed the key")
	}
	turned.Family = "other"
	if task.Key() == turned.Key() {
		t.Error("another family has the same key")
	}
}

func TestValidate_namesEveryFault(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *Pack)
		text   string
	}{
		"no name":            {func(p *Pack) { p.Name = "" }, "needs name"},
		"no finish":          {func(p *Pack) { p.Tools = p.Tools[:4] }, "exactly one finish"},
		"two finishes":       {func(p *Pack) { p.Tools[0].Finish = true }, "exactly one finish"},
		"no family":          {func(p *Pack) { p.Families = nil }, "needs a family"},
		"mixed word":         {func(p *Pack) { p.Tools[1].Params[2].Types = []TypeID{tWord, tThing} }, "mixes"},
		"unknown type":       {func(p *Pack) { p.Tools[1].Params[0].Types = []TypeID{99} }, "unknown type"},
		"wide number":        {func(p *Pack) { p.Tools[1].Params[1].Max = 64 }, "spans more"},
		"no doc":             {func(p *Pack) { p.Tools[0].Doc = "" }, "needs Doc"},
		"base out of levels": {func(p *Pack) { p.Dials[0].Base = 3 }, "base among"},
		"preset unknown":     {func(p *Pack) { p.Presets[0].Settings[0].Value = "5" }, "preset hard"},
		"too many glances":   {func(p *Pack) { p.Glance = make([]string, 9) }, "glances"},
	} {
		p := deskPack(t, nil)
		c.change(p)
		if err := p.Validate(); !errors.Is(err, ErrPack) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v; want %q", name, err, c.text)
		}
	}
}

func TestRegister_refusesTwins(t *testing.T) {
	registered()
	mustPanic(t, "registering a name twice", func() { Register(deskPack(t, nil)) })
}

// Settings stand in the order of their text, also where one dial's name begins another's.
func TestCondition_ID_ordersSettings(t *testing.T) {
	names := []string{"b", "ab", "a-b", "a", "a2", "a_b", "aab"}
	p := &Pack{Name: "p", Version: 3}
	for _, n := range names {
		p.Dials = append(p.Dials, Dial{Name: n, Levels: []string{"0", "1"}})
	}
	s := NewKey(1, "settings").Stream()
	for range 200 {
		c := Condition{Pack: p, Family: "f"}
		var set []string
		for i, n := range names {
			if c.Levels[i] = uint8(s.IntN(2)); c.Levels[i] == 1 {
				set = append(set, n+"=1")
			}
		}
		slices.Sort(set)
		want := "p@3/f"
		if len(set) > 0 {
			want += "?" + strings.Join(set, "&")
		}
		if got := c.ID(); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}

func TestDial_nearest(t *testing.T) {
	d := Dial{Name: "d", Levels: []string{"0", "1", "2", "3", "4"}, Base: 2}
	for _, c := range []struct {
		allowed []int
		want    int
		ok      bool
	}{{[]int{0, 2, 4}, 2, true}, {[]int{1, 3}, 1, true}, {[]int{0, 3}, 3, true}, {[]int{4}, 4, true}, {nil, 0, false}} {
		if got, ok := d.Nearest(func(l int) bool { return slices.Contains(c.allowed, l) }); got != c.want || ok != c.ok {
			t.Errorf("%v: %d, %v", c.allowed, got, ok)
		}
	}
}

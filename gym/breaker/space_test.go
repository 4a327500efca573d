package breaker

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"provegym/gym"
)

// shop is as much of a pack as a space needs.
func shop() *gym.Pack {
	return &gym.Pack{
		Name: "shop", Version: 2,
		Families: []gym.Family{{Name: "refund"}, {Name: "merge"}, {Name: "audit"}},
		Dials: []gym.Dial{
			{Name: "fanout", Levels: []string{"1", "2", "4"}, Base: 1},
			{Name: "fixed", Levels: []string{"0"}},
			{Name: "noise", Levels: []string{"0", "0.5"}},
		},
	}
}

// training is a train region: any condition unless in says no, any level unless dial does not have it.
type training struct {
	in    func(gym.Condition) bool
	dials map[int][]int
}

func (r training) InTrain(c gym.Condition) bool { return r.in == nil || r.in(c) }

func (r training) Level(dial, level int) bool {
	levels, bound := r.dials[dial]
	return !bound || slices.Contains(levels, level)
}

func TestSpaceOf_roundTrip(t *testing.T) {
	key := root(t)
	pack := shop()
	space, err := SpaceOf(pack, nil, nil, training{in: func(c gym.Condition) bool {
		return c.Family != "audit" && !(c.Float("fanout") == 4 && c.Float("noise") > 0)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(space.Factors); n != 3 {
		t.Fatalf("%d factors, want family, fanout, noise", n)
	}
	rng := key.Stream()
	for range 200 {
		c, ok := space.Draw(&rng, space.Open(), nil)
		if !ok {
			t.Fatal("no cell")
		}
		cond, err := space.Condition(c)
		if err != nil {
			t.Fatal(err)
		}
		back, err := space.Cell(cond)
		if err != nil || space.ID(back) != cond.ID() || space.ID(c) != cond.ID() {
			t.Fatalf("%v became %s became %v, %v", c, cond.ID(), back, err)
		}
	}
	for _, c := range []Cell{{2, 0, 0}, {0, 2, 1}} {
		if _, err := space.Condition(c); !errors.Is(err, gym.ErrHeldOut) {
			t.Errorf("%v: %v", c, err)
		}
	}
	if _, err := space.Condition(Cell{0, 3, 0}); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("no such level: %v", err)
	}
	held, _ := pack.Condition("audit")
	if _, err := space.Cell(held); !errors.Is(err, gym.ErrHeldOut) {
		t.Errorf("held out: %v", err)
	}
	task, err := space.Task(Cell{1, 0, 1}, 9)
	if err != nil || task.ID() != "shop@2/merge?fanout=1&noise=0.5#seed=9" {
		t.Errorf("%s, %v", task.ID(), err)
	}
}

// A region of one condition in very many is drawn from all the same, and where a dial's base is not in it the nearest level stands
// for it.
func TestSpaceOf_narrowRegion(t *testing.T) {
	key := root(t)
	pack := shop()
	r := training{dials: map[int][]int{0: {0, 2}, 2: {1}}}
	for i := range 6 {
		pack.Dials = append(pack.Dials, gym.Dial{Name: fmt.Sprint("more", i), Levels: []string{"0", "1", "2", "3", "4", "5", "6", "7"}, Base: 3})
		r.dials[3+i] = []int{5}
	}
	r.in = func(c gym.Condition) bool {
		for i := range pack.Dials {
			if !r.Level(i, int(c.Levels[i])) {
				return false
			}
		}
		return true
	}
	space, err := SpaceOf(pack, nil, nil, r)
	if err != nil {
		t.Fatal(err)
	}
	if len(space.Factors) != 2 || !slices.Equal(space.Factors[1].Levels, []string{"1", "4"}) || space.Factors[1].Nominal != 0 {
		t.Fatalf("%+v", space.Factors)
	}
	rng := key.Stream()
	seen := map[string]bool{}
	for range 100 {
		c, ok := space.Draw(&rng, space.Open(), nil)
		if !ok {
			t.Fatal("no cell")
		}
		cond, err := space.Condition(c)
		if err != nil || !r.in(cond) {
			t.Fatalf("%s: %v", cond.ID(), err)
		}
		if back, err := space.Cell(cond); err != nil || space.ID(back) != cond.ID() {
			t.Fatalf("%v became %v, %v", c, back, err)
		}
		seen[cond.ID()] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d conditions, want 3 families at 2 levels: %v", len(seen), seen)
	}
	base, _ := pack.Condition("merge")
	if _, err := space.Cell(base); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("a level outside the region: %v", err)
	}
	r.dials[0] = []int{}
	if _, err := SpaceOf(pack, nil, nil, r); !errors.Is(err, gym.ErrHeldOut) {
		t.Errorf("a dial without levels: %v", err)
	}
}

func TestSpaceOf_subsets(t *testing.T) {
	pack := shop()
	space, err := SpaceOf(pack, []string{"merge"}, []string{"noise"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cond, _ := pack.Condition("merge")
	if c, err := space.Cell(cond); err != nil || len(c) != 2 {
		t.Errorf("%v, %v", c, err)
	}
	turned, _ := cond.With("fanout", 2)
	if _, err := space.Cell(turned); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("a dial outside the space: %v", err)
	}
	if _, err := SpaceOf(pack, []string{"mrege"}, nil, nil); !errors.Is(err, gym.ErrUnknown) {
		t.Errorf("unknown family: %v", err)
	}
	if _, err := SpaceOf(pack, nil, []string{"nosie"}, nil); !errors.Is(err, gym.ErrUnknown) {
		t.Errorf("unknown dial: %v", err)
	}
	if _, err := (Space{}).Condition(Cell{}); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("an abstract space: %v", err)
	}
}

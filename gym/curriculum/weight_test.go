package curriculum

import (
	"math"
	"strings"
	"testing"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if math.Abs(got-want) > tol {
		t.Errorf("%s = %.9f, want %.9f", what, got, want)
	}
}

// tail is P(Beta(a, b) < x) for whole a and b: the chance of at least a successes in a+b-1 tries.
func tail(a, b int, x float64) (p float64) {
	n := a + b - 1
	for k := a; k <= n; k++ {
		c := 1.
		for i := range k {
			c = c * float64(n-i) / float64(i+1)
		}
		p += c * math.Pow(x, float64(k)) * math.Pow(1-x, float64(n-k))
	}
	return p
}

func TestItem_learn(t *testing.T) {
	for _, c := range []struct {
		outcomes string
		a, b     int
		l        float64
	}{
		{"", 1, 1, 1. / 6},
		{"11000000", 3, 7, 21. / 110}, // .190909
		{"0000000000000000", 1, 17, 17. / (18 * 19)},
		{"1111" + "0000000011111111", 9, 9, 81. / (18 * 19)}, // only the last 16 count
	} {
		it := item{Outcomes: c.outcomes}
		l, i := it.learn()
		near(t, "L after "+c.outcomes, l, c.l, 1e-12)
		near(t, "I after "+c.outcomes, i, tail(c.a, c.b, .9)-tail(c.a, c.b, .1), 1e-9)
	}
}

// TestWeigh_byHand: three items, every share worked out.
func TestWeigh_byHand(t *testing.T) {
	ws := []Weight{
		{Status: Active, Learn: .20, Between: .9, Stale: 3},                 // LI .18
		{Status: Active, Learn: .10, Between: .6, Stale: 1, Forgotten: .05}, // LI .06
		{Status: Solved, Learn: .04, Between: .2, Stale: 9, Forgotten: .15},
	}
	weigh(ws)
	// e_c = e_f = .1; .8 (.85*.75 + .15*.75) + .1/3; .8 (.85*.25 + .15*.25) + .1/3 + .1*.25; .1/3 + .1*.75
	for i, want := range []float64{.6 + .1/3, .2 + .1/3 + .025, .1/3 + .075} {
		near(t, "weight", ws[i].Weight, want, 1e-12)
	}
	ws = []Weight{
		{Status: Active, Learn: .20, Between: .6}, // nothing stale, nothing forgotten: A is spread evenly, e_f is 0
		{Status: Active, Learn: .10, Between: .6},
		{Status: Parked, Learn: .01, Between: .1, Stale: 7, Forgotten: .3},
	}
	weigh(ws)
	for i, want := range []float64{.9*(.85*2/3+.15*.5) + .1/3, .9*(.85/3+.15*.5) + .1/3, .1 / 3} {
		near(t, "weight", ws[i].Weight, want, 1e-12)
	}
	ws = []Weight{{Status: Solved}, {Status: Solved}, {Status: Parked}} // no active item: the floor is all there is
	weigh(ws)
	for _, w := range ws {
		near(t, "weight", w.Weight, 1./3, 1e-12)
	}
}

// TestWeigh_cap: of 25 items one would get three quarters; the cap holds after what was cut is spread.
func TestWeigh_cap(t *testing.T) {
	ws := make([]Weight, 25)
	for i := range ws {
		ws[i] = Weight{Status: Active, Learn: .001, Between: 1, Stale: 1}
	}
	ws[3].Learn, ws[4].Learn, ws[5].Learn = .25, .03, .02 // the second exceeds the cap only once the first is cut
	weigh(ws)
	sum := 0.
	for i, w := range ws {
		sum += w.Weight
		if w.Weight > .10+1e-12 {
			t.Errorf("item %d has %.4f", i, w.Weight)
		}
	}
	near(t, "sum", sum, 1, 1e-12)
	near(t, "first", ws[3].Weight, .10, 1e-12)
	near(t, "second", ws[4].Weight, .10, 1e-12)
	if ws[5].Weight <= ws[6].Weight {
		t.Error("the order of the others is lost")
	}
	few := []Weight{{Status: Active, Learn: .25, Between: 1}, {Status: Solved}, {Status: Solved}, {Status: Solved}, {Status: Solved}}
	weigh(few)
	near(t, "cap of five items", few[0].Weight, .4, 1e-12) // 2/J
	near(t, "the others", few[1].Weight, .15, 1e-12)
}

// tellN tells one item n outcomes, checkpoint by checkpoint.
func tellN(it *item, outcomes string, checkpoint string) {
	for _, o := range outcomes {
		it.tell(o == '1', checkpoint)
	}
}

func TestItem_parked(t *testing.T) {
	it := &item{Entry: Active}
	tellN(it, strings.Repeat("0", 31), "c1")
	if got := it.status(); got != Active {
		t.Errorf("31 failures: %s", got)
	}
	tellN(it, "00", "c2")
	if got := it.status(); got != Active {
		t.Errorf("33 failures over 2 checkpoints: %s", got)
	}
	tellN(it, "0", "c3")
	if got := it.status(); got != Parked { // P(p < .1) = 1-.9^33 = .969
		t.Errorf("34 failures over 3 checkpoints: %s", got)
	}
	tellN(it, "1", "c3")
	if got := it.status(); got != Active {
		t.Errorf("after a pass: %s", got)
	}
}

func TestItem_solved(t *testing.T) {
	it := &item{Entry: Active}
	tellN(it, strings.Repeat("1", 20), "c1")
	if got := it.status(); got != Active { // P(p < .9) = .9^21 = .109
		t.Errorf("20 passes: %s", got)
	}
	tellN(it, "1", "c1")
	if got := it.status(); got != Solved { // .9^22 = .098
		t.Errorf("21 passes: %s", got)
	}
	tellN(it, "0", "c2")
	if got := it.status(); got != Active {
		t.Errorf("after a failure: %s", got)
	}
}

// TestSampler_forgetting: a solved item that begins to fail gets the guard's share, on top of what it earns again.
func TestSampler_forgetting(t *testing.T) {
	key := root(t)
	s := start(t, key, Options{Solvable: true}, cause("d4=1"))
	it := s.find("d4=1")
	tellN(it, strings.Repeat("1", 24), "c1")
	near(t, "peak", it.Peak, 17./18, 1e-12)
	tellN(it, "0", "c2")
	near(t, "forgotten", it.forgotten(), 0, 1e-12) // 16/18: within the tolerance
	tellN(it, "000", "c2")
	near(t, "forgotten", it.forgotten(), 17./18-13./18-.10, 1e-12)
	never := &item{Entry: Active}
	tellN(never, "1010101000000000", "c1") // its mean after 8 was .5
	near(t, "forgotten by what was never good", never.forgotten(), 0, 0)
	ws := s.Weights()
	mine, sum := ws[len(ws)-1], 0.
	for _, w := range ws[:len(ws)-1] {
		sum += w.Learn * w.Between
	}
	li := mine.Learn * mine.Between
	near(t, "weight", mine.Weight, .8*(.85*li/(li+sum)+.15/6)+.1/6+.1, 1e-12)
}

// TestSampler_staleness: what was not drawn for longer gets more.
func TestSampler_staleness(t *testing.T) {
	key := root(t)
	s := start(t, key, Options{Solvable: true})
	s.st.Updates = 4
	for i, it := range s.st.Items { // A = 0, 1, 2, 3, 4
		it.Drawn = 4 - i
	}
	for i, w := range s.Weights() {
		near(t, "weight", w.Weight, .9*(.85*.2+.15*float64(i)/10)+.1/5, 1e-12)
	}
	before := s.st.Items[4].Drawn
	tasks := ask(t, s, 1, 1)
	if it := s.find(tasks[0].Item); it.Drawn != 4 || before != 0 {
		t.Errorf("drawn at update 4, recorded %d", it.Drawn)
	}
}

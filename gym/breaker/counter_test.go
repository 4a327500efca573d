package breaker

import (
	"math"
	"testing"
)

// TestRule_operatingCharacteristics holds the three tests to their published table (exact dynamic programming).
func TestRule_operatingCharacteristics(t *testing.T) {
	r := rulesAt(.5, .15)
	for _, c := range []struct {
		name     string
		rule     Rule
		up, down int
		q        [4]float64
		fails    [4]float64
		meanN    [4]float64
		tol      float64
	}{
		{"screen", r.screen, 5, -2, [4]float64{.2, .35, .65, .8}, [4]float64{.001, .031, .687, .937}, [4]float64{3.3, 5.8, 9.8, 7.6}, 1e-3},
		{"inner", r.inner, 5, -5, [4]float64{.2, .35, .65, .8}, [4]float64{.001, .040, .872, .998}, [4]float64{8.3, 14.3, 14.3, 8.3}, 1e-3},
		{"confirm", r.confirm, 8, -5, [4]float64{.2, .35, .65, .8}, [4]float64{.0000, .0059, .8382, .9985}, [4]float64{8.3, 15.7, 23.0, 13.3}, 1e-4},
	} {
		for i, q := range c.q {
			fails, ok, n := c.rule.Operating(q)
			if math.Abs(fails-c.fails[i]) > c.tol || math.Abs(n-c.meanN[i]) > .051 { // the table has one decimal of n
				t.Errorf("%s at q=%g: P(fails) %.5f and %.3f episodes, want %.4f and %.1f", c.name, q, fails, n, c.fails[i], c.meanN[i])
			}
			if fails < 0 || ok < 0 || fails+ok > 1+1e-9 {
				t.Errorf("%s at q=%g: P(fails) %g, P(ok) %g", c.name, q, fails, ok)
			}
		}
		for f := range c.rule.Cap + 1 {
			for p := 0; f+p <= c.rule.Cap; p++ {
				want := Continue
				switch {
				case f-p >= c.up:
					want = Fails
				case f-p <= c.down:
					want = OK
				case f+p == c.rule.Cap:
					want = Undecided
				}
				if got := c.rule.Judge(Counter{f, p}); got != want {
					t.Fatalf("%s says %q at %d fails and %d passes; the net counter says %q", c.name, got, f, p, want)
				}
			}
		}
	}
}

// TestRule_otherTau takes the steps from the formula: at tau .8 a pass weighs more than a failure.
func TestRule_otherTau(t *testing.T) {
	r := rulesAt(.8, .1).confirm
	fails, _, _ := r.Operating(.7)
	missed, _, _ := r.Operating(.9)
	if fails > .01 || missed < .5 {
		t.Errorf("at tau .8: P(fails) is %.4f at q .7 and %.4f at q .9", fails, missed)
	}
	if got := r.Judge(Counter{Passes: 3}); got != OK { // 3 log(.1/.3) = -3.30 <= log(.05/.99) = -2.99
		t.Errorf("three passes: %q", got)
	}
}

func TestRule_needWastesNothing(t *testing.T) {
	r := rulesAt(.5, .15)
	for _, c := range []struct {
		rule Rule
		at   Counter
		want int
	}{
		{r.confirm, Counter{}, 5}, {r.confirm, Counter{5, 0}, 3}, {r.confirm, Counter{0, 4}, 1}, {r.confirm, Counter{8, 0}, 0},
		{r.screen, Counter{}, 2}, {r.screen, Counter{13, 11}, 1}, {r.inner, Counter{14, 14}, 2},
	} {
		if got := c.rule.Need(c.at); got != c.want {
			t.Errorf("need at %+v: %d, want %d", c.at, got, c.want)
		}
	}
}

func TestRate_clopperPearson(t *testing.T) {
	for _, c := range []struct {
		x, n   int
		lo, hi float64
	}{ // Newcombe 1998, Table I
		{81, 263, .2527, .3676}, {15, 148, .0578, .1617}, {0, 20, 0, .1684}, {1, 29, .0009, .1776}, {13, 16, .5435, .9595}, {0, 0, 0, 1},
	} {
		r := Counter{c.x, c.n - c.x}.rate()
		if math.Abs(r.Lo-c.lo) > 5.1e-5 || math.Abs(r.Hi-c.hi) > 5.1e-5 {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", c.x, c.n, r.Lo, r.Hi, c.lo, c.hi)
		}
	}
}

package stats

import (
	"math"
	"strings"
	"testing"
)

// TestMistakes_panicWithText: a wrong argument never becomes a NaN. The text
// names the package, the function and the argument.
func TestMistakes_panicWithText(t *testing.T) {
	inf := math.Inf(1)
	ok := []float64{0, .5, -.25}
	for _, row := range []struct {
		want string
		call func()
	}{
		{"McNemarExact: b is -1", func() { McNemarExact(-1, 2) }},
		{"McNemarExact: c is -2", func() { McNemarExact(1, -2) }},
		{"McNemarMidP: b is -1", func() { McNemarMidP(-1, 2) }},
		{"McNemarAsymptotic: c is -1", func() { McNemarAsymptotic(1, -1) }},
		{"MinDiscordant: alpha is 0", func() { MinDiscordant(0) }},
		{"SignFlip: the magnitudes add to more than", func() { SignFlip([]int{1 << 40, 1}) }},
		{"SignFlip: cluster 1 has the total", func() { SignFlip([]int{1, math.MinInt}) }},
		{"Wilson: n is 0", func() { Wilson(0, 0, .05) }},
		{"Wilson: x is 3", func() { Wilson(3, 2, .05) }},
		{"Wilson: alpha is 1", func() { Wilson(1, 2, 1) }},
		{"ClopperPearson: n is -1", func() { ClopperPearson(0, -1, .05) }},
		{"ClopperPearson: x is -1", func() { ClopperPearson(-1, 5, .05) }},
		{"ClopperPearson: alpha is NaN", func() { ClopperPearson(1, 5, nan) }},
		{"NewcombeIndependent: n is 0", func() { NewcombeIndependent(1, 2, 0, 0, .05) }},
		{"NewcombeIndependent: alpha is -0.1", func() { NewcombeIndependent(1, 2, 0, 1, -.1) }},
		{"Tango: n is 0", func() { Tango(0, 0, 0, .05) }},
		{"Tango: b+c is 3+3, more than n = 5", func() { Tango(3, 3, 5, .05) }},
		{"Tango: c is -1", func() { Tango(3, -1, 5, .05) }},
		{"Tango: alpha is 0", func() { Tango(1, 1, 5, 0) }},
		{"NewcombePaired: n is 0", func() { NewcombePaired(0, 0, 0, 0, .05) }},
		{"NewcombePaired: a is -1", func() { NewcombePaired(-1, 1, 1, 5, .05) }},
		{"NewcombePaired: d is -1", func() { NewcombePaired(5, 1, 1, -1, .05) }},
		{"AgrestiMin: b+c is 9+0", func() { AgrestiMin(9, 0, 5, .05) }},
		{"TInterval: 1 clusters", func() { TInterval([]float64{1}, .05) }},
		{"TInterval: cluster 1 has the difference NaN", func() { TInterval([]float64{1, nan}, .05) }},
		{"TInterval: alpha is 2", func() { TInterval(ok, 2) }},
		{"Hull: 0 clusters", func() { Hull(nil, .05) }},
		{"Hull: cluster 0 has the difference +Inf", func() { Hull([]float64{inf, 1}, .05) }},
		{"Hull: cluster 2 has the difference 1.5", func() { Hull([]float64{0, 1, 1.5}, .05) }},
		{"Hull: alpha is 0", func() { Hull(ok, 0) }},
		{"ClusteredSE: 2 scores and 1 cluster labels", func() { ClusteredSE([]float64{1, 2}, []int{1}) }},
		{"ClusteredSE: 1 clusters", func() { ClusteredSE([]float64{1, 2}, []int{1, 1}) }},
		{"ClusteredSE: 0 clusters", func() { ClusteredSE(nil, nil) }},
		{"ClusteredSE: score 0 is NaN", func() { ClusteredSE([]float64{nan, 2}, []int{1, 2}) }},
		{"Holm: p-value 1 is NaN", func() { Holm([]float64{.5, nan}) }},
		{"BH: p-value 0 is 1.5", func() { BH([]float64{1.5, .1}) }},
		{"SpendWeight: look is 0", func() { SpendWeight(0) }},
		{"McNemarPower: n is 0", func() { McNemarPower(0, .2, .1, .05) }},
		{"McNemarPower: p10 is -0.2", func() { McNemarPower(9, -.2, .1, .05) }},
		{"McNemarPower: p10+p01 is 0.7+0.4", func() { McNemarPower(9, .7, .4, .05) }},
		{"McNemarPower: alpha is 0", func() { McNemarPower(9, .2, .1, 0) }},
		{"MDEBinary: n is 0", func() { MDEBinary(0, .2, .05, .8) }},
		{"MDEBinary: psi0 is NaN", func() { MDEBinary(9, nan, .05, .8) }},
		{"MDEBinary: power is 1", func() { MDEBinary(9, .2, .05, 1) }},
		{"MDEBinary: power 0.04 does not exceed alpha 0.05", func() { MDEBinary(9, .2, .05, .04) }},
		{"MDEBounded: G is 1", func() { MDEBounded(1, .1, 0, .05, .8) }},
		{"MDEBounded: se is 0", func() { MDEBounded(9, 0, 0, .05, .8) }},
		{"MDEBounded: latticeHalf is -1", func() { MDEBounded(9, .1, -1, .05, .8) }},
		{"MDEBounded: alpha is 0", func() { MDEBounded(9, .1, 0, 0, .8) }},
		{"SampleSizeMcNemar: p10 and p01 are both 0.2", func() { SampleSizeMcNemar(.2, .2, .05, .8) }},
		{"SampleSizeMean: variance is 0", func() { SampleSizeMean(0, .1, .05, .8) }},
		{"SampleSizeMean: size of delta is 0", func() { SampleSizeMean(1, 0, .05, .8) }},
		{"EBinary: b is -1", func() { EBinary(-1, 0) }},
		{"BinomialNotAbove: n is 0", func() { BinomialNotAbove(0, 0, .05) }},
		{"BinomialNotAbove: p0 is 2", func() { BinomialNotAbove(0, 5, 2) }},
		{"BinomialNotBelow: x is 6", func() { BinomialNotBelow(6, 5, .5) }},
	} {
		t.Run(row.want, func(t *testing.T) {
			defer func() {
				text, _ := recover().(string)
				if !strings.HasPrefix(text, "stats: "+row.want) {
					t.Errorf("panic text %q, want it to begin with %q", text, "stats: "+row.want)
				}
			}()
			row.call()
			t.Error("no panic")
		})
	}
}

// TestSmallest_hasNoNaN calls everything at the least data that it accepts.
func TestSmallest_hasNoNaN(t *testing.T) {
	var got []float64
	add := func(v ...float64) { got = append(got, v...) }
	two := func(lo, hi float64) { add(lo, hi) }
	add(McNemarExact(0, 0), McNemarMidP(0, 0), McNemarAsymptotic(0, 0), McNemarExact(1, 0), McNemarMidP(0, 1))
	add(SignFlip(nil), SignFlip([]int{0}), SignFlip([]int{1}))
	for x := range 2 {
		two(Wilson(x, 1, .05))
		two(ClopperPearson(x, 1, .05))
		for y := range 2 {
			two(NewcombeIndependent(x, 1, y, 1, .05))
		}
	}
	for _, table := range [][4]int{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}} {
		two(NewcombePaired(table[0], table[1], table[2], table[3], .05))
		two(Tango(table[1], table[2], 1, .05))
		two(AgrestiMin(table[1], table[2], 1, .05))
	}
	two(TInterval([]float64{0, 0}, .05))
	lo, hi, se := Hull([]float64{0, 0}, .05)
	add(lo, hi, se, ClusteredSE([]float64{1, 1}, []int{0, 1}))
	add(McNemarPower(1, 1, 0, .05), McNemarPower(1, 0, 0, .05), McNemarPower(9, 1, 0, .05), McNemarPower(9, .9, .1, .05))
	mde, _ := MDEBinary(1, 0, .05, .8)
	add(mde, MDEBounded(2, .1, 0, .05, .8), SampleSizeMcNemar(1, 0, .05, .8), EBinary(0, 0))
	for i, v := range got {
		if math.IsNaN(v) {
			t.Errorf("result %d is NaN", i)
		}
	}
}

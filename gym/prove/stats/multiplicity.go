package stats

import (
	"math"
	"slices"
)

// Holm returns the adjusted p-values of a family, in the order given. With
// the m values sorted upwards,
//
//	adjusted_(r) = max over q <= r of min(1, (m-q+1) p_(q))
//
// Calling those <= alpha significant makes any false one appear with
// probability at most alpha, however the conditions depend on each other.
// This is the adjustment behind verdict words.
//
// Small n: valid for every m; a family of one is unchanged; an empty family
// gives an empty slice.
//
// Panics if a p-value is NaN or outside [0, 1].
//
// Source: Holm 1979.
func Holm(p []float64) []float64 {
	order := ascending("Holm", p)
	adjusted := make([]float64, len(p))
	running := 0.0
	for rank, i := range order {
		running = max(running, min(1, float64(len(p)-rank)*p[i]))
		adjusted[i] = running
	}
	return adjusted
}

// BH returns the q-values of a family, in the order given. With the m values
// sorted upwards,
//
//	q_(r) = min over s >= r of min(1, m p_(s) / s)
//
// Calling those <= alpha discoveries keeps the expected share of false ones
// among them at most alpha. That is a weaker promise than [Holm]'s: with half
// of 20 conditions improved, some discovery was false in 16 % of simulated
// runs. Used for rows marked exploratory only, never for a verdict word.
//
// Assumption: independent or positively dependent p-values.
//
// Small n: valid for every m; an empty family gives an empty slice.
//
// Panics if a p-value is NaN or outside [0, 1].
//
// Source: Benjamini and Hochberg 1995.
func BH(p []float64) []float64 {
	order := ascending("BH", p)
	adjusted := make([]float64, len(p))
	running := 1.0
	for rank, i := range slices.Backward(order) {
		running = min(running, float64(len(p))*p[i]/float64(rank+1))
		adjusted[i] = running
	}
	return adjusted
}

// ascending returns the indices of p from its smallest value to its largest,
// ties in the order given.
func ascending(function string, p []float64) []int {
	order := make([]int, len(p))
	for i, v := range p {
		if !(v >= 0 && v <= 1) {
			fail(function, "p-value %d is %v, want a value in [0, 1]", i, v)
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case p[i] < p[j]:
			return -1
		case p[i] > p[j]:
			return 1
		}
		return 0
	})
	return order
}

// SpendWeight returns the share of alpha that an open-ended plan spends on
// its l-th look at sealed data, look = 1, 2, ...:
//
//	w_l = 6 / (pi^2 l^2)   .608, .152, .068, .038, ...
//
// The weights add to 1 over all looks, so by the union bound the whole series
// has a false verdict with probability at most alpha: however many looks are
// taken, however they correlate, and whenever training stops because of one.
// Plans that know their looks declare weights that add to 1 instead.
//
// Panics if look < 1.
//
// Source: the sum of 1/l^2 is pi^2/6 (Euler 1735); the union bound.
func SpendWeight(look int) float64 {
	if look < 1 {
		fail("SpendWeight", "look is %d, looks are counted from 1", look)
	}
	l := float64(look)
	return 6 / (math.Pi * math.Pi * l * l)
}

package stats

import (
	"fmt"
	"math"
)

// fail panics in the one form that this package uses: function, argument,
// value and what would have been right.
func fail(function, format string, args ...any) {
	panic("stats: " + function + ": " + fmt.Sprintf(format, args...))
}

// checkLevel panics unless v, called name, lies strictly between 0 and 1. The
// negated form also catches NaN.
func checkLevel(function, name string, v float64) {
	if !(v > 0 && v < 1) {
		fail(function, "%s is %v, want a value strictly between 0 and 1", name, v)
	}
}

// checkProbability panics unless v, called name, lies in [0, 1].
func checkProbability(function, name string, v float64) {
	if !(v >= 0 && v <= 1) {
		fail(function, "%s is %v, want a value in [0, 1]", name, v)
	}
}

// checkPositive panics unless v, called name, is finite and above 0.
func checkPositive(function, name string, v float64) {
	if !(v > 0) || math.IsInf(v, 0) {
		fail(function, "%s is %v, want a finite value above 0", name, v)
	}
}

// checkCount panics when v, called name, is negative.
func checkCount(function, name string, v int) {
	if v < 0 {
		fail(function, "%s is %d, a count cannot be negative", name, v)
	}
}

// checkSuccesses panics unless 0 <= x <= n and n >= 1.
func checkSuccesses(function string, x, n int) {
	if n < 1 {
		fail(function, "n is %d, want at least one trial", n)
	}
	if x < 0 || x > n {
		fail(function, "x is %d, want a count in [0, n = %d]", x, n)
	}
}

// checkPairs panics unless b and c are counts of disjoint clusters among n.
func checkPairs(function string, b, c, n int) {
	checkCount(function, "b", b)
	checkCount(function, "c", c)
	if n < 1 {
		fail(function, "n is %d, want at least one cluster", n)
	}
	if b > n || c > n-b {
		fail(function, "b+c is %d+%d, more than n = %d clusters", b, c, n)
	}
}

// checkDifferences panics unless d holds at least two finite values.
func checkDifferences(function string, d []float64) {
	if len(d) < 2 {
		fail(function, "%d clusters, want at least 2", len(d))
	}
	for g, v := range d {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			fail(function, "cluster %d has the difference %v, want a finite value", g, v)
		}
	}
}

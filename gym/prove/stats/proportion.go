package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Wilson returns the score interval for a pass rate of x out of n:
//
//	(x + z^2/2 -+ z sqrt(x(n-x)/n + z^2/4)) / (n + z^2)   z = Phi^-1(1-alpha/2)
//
// It is the interval of charts. Its coverage is close to 1-alpha on average
// and may dip below it at a given rate; where a guarantee is stated use
// [ClopperPearson].
//
// Assumption: n independent trials with one rate. Repeated episodes of a
// territory are not independent trials.
//
// Small n: usable from n = 1; never of zero width; x = 0 gives exactly 0
// below, x = n exactly 1 above.
//
// Panics if n < 1, x lies outside [0, n], or alpha outside (0, 1).
//
// Source: Wilson 1927; Newcombe 1998a, method 3.
func Wilson(x, n int, alpha float64) (lo, hi float64) {
	checkSuccesses("Wilson", x, n)
	checkLevel("Wilson", "alpha", alpha)
	return wilson(x, n, normalQuantile(1-alpha/2))
}

// wilson is Wilson for a given normal quantile, without the checks.
func wilson(x, n int, z float64) (lo, hi float64) {
	xf, nf := float64(x), float64(n)
	centre := (xf + z*z/2) / (nf + z*z)
	half := z * math.Sqrt(xf*(nf-xf)/nf+z*z/4) / (nf + z*z)
	lo, hi = max(0, centre-half), min(1, centre+half)
	if x == 0 {
		lo = 0 // not the rounding error of two equal terms
	}
	if x == n {
		hi = 1
	}
	return lo, hi
}

// ClopperPearson returns the exact interval for a pass rate of x out of n,
//
//	lo = Beta(x, n-x+1).Quantile(alpha/2),   hi = Beta(x+1, n-x).Quantile(1-alpha/2)
//
// It covers with at least 1-alpha whatever the rate, at the price of width.
// For a one-sided 95 % upper bound pass alpha = .10 and read hi; with x = 0
// that is 1 - .05^(1/n).
//
// Assumption: n independent trials with one rate.
//
// Small n: valid from n = 1; x = 0 gives exactly 0 below, x = n exactly 1
// above.
//
// Panics if n < 1, x lies outside [0, n], or alpha outside (0, 1).
//
// Source: Clopper and Pearson 1934.
func ClopperPearson(x, n int, alpha float64) (lo, hi float64) {
	checkSuccesses("ClopperPearson", x, n)
	checkLevel("ClopperPearson", "alpha", alpha)
	xf, nf := float64(x), float64(n)
	lo, hi = 0, 1
	if x > 0 {
		lo = distuv.Beta{Alpha: xf, Beta: nf - xf + 1}.Quantile(alpha / 2)
	}
	if x < n {
		hi = distuv.Beta{Alpha: xf + 1, Beta: nf - xf}.Quantile(1 - alpha/2)
	}
	return lo, hi
}

// NewcombeIndependent returns the hybrid score interval for the difference
// x1/n1 - x2/n2 of two pass rates from different tasks. With the Wilson
// interval (l_i, u_i) of each rate p_i,
//
//	lo = d - sqrt((p1-l1)^2 + (u2-p2)^2),   hi = d + sqrt((u1-p1)^2 + (p2-l2)^2)
//
// Arms that ran the same tasks are paired: use [Tango] for them, which is
// narrower.
//
// Assumption: n1 + n2 independent trials, one rate per arm.
//
// Small n: usable from n = 1 a side; never of zero width; stays in [-1, 1].
//
// Panics if n1 or n2 is below 1, a count exceeds its n, or alpha lies outside
// (0, 1).
//
// Source: Newcombe 1998b, method 10.
func NewcombeIndependent(x1, n1, x2, n2 int, alpha float64) (lo, hi float64) {
	checkSuccesses("NewcombeIndependent", x1, n1)
	checkSuccesses("NewcombeIndependent", x2, n2)
	checkLevel("NewcombeIndependent", "alpha", alpha)
	z := normalQuantile(1 - alpha/2)
	p1, p2 := float64(x1)/float64(n1), float64(x2)/float64(n2)
	l1, u1 := wilson(x1, n1, z)
	l2, u2 := wilson(x2, n2, z)
	d := p1 - p2
	return max(-1, d-math.Hypot(p1-l1, u2-p2)), min(1, d+math.Hypot(u1-p1, p2-l2))
}

// normalQuantile returns the standard normal quantile.
func normalQuantile(p float64) float64 { return distuv.UnitNormal.Quantile(p) }

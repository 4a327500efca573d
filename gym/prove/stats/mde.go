package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// McNemarPower returns the probability that [McNemarExact] on n clusters is
// at most alpha and points to the checkpoint (b > c), when a cluster passes
// only at the checkpoint with probability p10 and only at the base with
// probability p01:
//
//	sum over d of Binomial(n, psi).Prob(d) Binomial(d, p01/psi).CDF(crit(d))   psi = p10 + p01
//
// crit(d) is the largest c for which c of d discordant pairs is significant.
// Swap p10 and p01 for the power to find a regression.
//
// Assumption: one pair per cluster, clusters independent, one pair of rates.
//
// Small n: exact at every n; 0 where n < [MinDiscordant].
//
// Panics if n < 1, p10 or p01 lies outside [0, 1], their sum exceeds 1, or
// alpha lies outside (0, 1).
//
// Source: the trinomial sum of Duffy 1984.
func McNemarPower(n int, p10, p01, alpha float64) float64 {
	const fn = "McNemarPower"
	checkRates(fn, n, p10, p01)
	checkLevel(fn, "alpha", alpha)
	return discordantPower(p10, p01, criticalCounts(n, alpha, exactP))
}

// checkRates panics unless p10 and p01 are rates of disjoint events and n is
// at least 1.
func checkRates(function string, n int, p10, p01 float64) {
	if n < 1 {
		fail(function, "n is %d, want at least one cluster", n)
	}
	checkProbability(function, "p10", p10)
	checkProbability(function, "p01", p01)
	// Two shares that add to 1 on paper may add to a little more in binary.
	if p10+p01 > 1+1e-12 {
		fail(function, "p10+p01 is %v+%v, more than 1", p10, p01)
	}
}

// discordantPower is the sum that McNemarPower's comment gives, for critical
// counts of d = 0..n.
func discordantPower(p10, p01 float64, crit []int) float64 {
	psi := min(1, p10+p01)
	if psi == 0 {
		return 0
	}
	n := len(crit) - 1
	pairs := distuv.Binomial{N: float64(n), P: psi}
	power := 0.0
	for d, c := range crit {
		if c < 0 {
			continue // and so d > 0: no split of 0 pairs is significant
		}
		mass := 0.0
		switch {
		case psi < 1:
			mass = pairs.Prob(float64(d))
		case d == n:
			mass = 1 // distuv answers NaN here
		}
		if mass == 0 {
			continue
		}
		power += mass * distuv.Binomial{N: float64(d), P: min(1, p01/psi)}.CDF(float64(c))
	}
	return min(1, power)
}

// MDEBinary returns the smallest change of pass rate that [McNemarExact] at
// level alpha finds, in its own direction, with the given power on n
// clusters. psi0 is the share of clusters that are discordant by noise alone:
// for planning take it from a run of the base against itself, for a report
// take (b+c+1)/(n+2). The least favourable alternative is assumed, in which
// nothing gets worse while something gets better:
//
//	p01 = psi0/2,   p10 = psi0/2 + d,   smallest d with McNemarPower >= power
//
// Pass alpha times the look's weight over the size of the family: the first
// step of [Holm], so the answer is conservative for the later steps. The
// observed change is not an argument; this is not "observed power".
//
// ok is false, and mde +Inf, when not even d = 1-psi0 reaches the power: no
// change could have been found, and mde <= limit is false for every limit.
//
// Assumption: as McNemarPower.
//
// Small n: exact at every n; at n = 20 and levels of a large family ok is
// often false. The power of exact tests moves in steps, so the power at mde
// may lie a little above the one asked for, never below.
//
// Panics if n < 1, psi0 lies outside [0, 1], alpha or power outside (0, 1),
// or power <= alpha.
//
// Source: the trinomial sum of Duffy 1984, inverted by bisection.
func MDEBinary(n int, psi0, alpha, power float64) (mde float64, ok bool) {
	const fn = "MDEBinary"
	checkRates(fn, n, 0, 0)
	checkProbability(fn, "psi0", psi0)
	checkPower(fn, alpha, power)
	crit := criticalCounts(n, alpha, exactP)
	// More clusters that only the checkpoint passes, with the others as they
	// were, never make p larger: the power rises with d, so bisection finds
	// its only crossing.
	reaches := func(d float64) bool { return discordantPower(psi0/2+d, psi0/2, crit) >= power }
	lo, hi := 0.0, 1-psi0
	if !reaches(hi) {
		return math.Inf(1), false
	}
	for hi-lo > 1e-12 {
		mid := lo + (hi-lo)/2
		if reaches(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi, true
}

// MDEBounded returns the smallest mean change of a score in [0, 1] that the
// sign-flip test at level alpha finds with the given power on G clusters,
// when the cluster mean has the standard error se (that of [Hull] for a
// report; for planning sqrt((omega^2 + 2 E[p(1-p)]/k)/G)):
//
//	(t(1-alpha/2; G-1) + t(power; G-1)) se + latticeHalf
//
// latticeHalf is half the step between two neighbouring sums of the exact
// test, 1/(denominator * G), and 0 where scores lie on no lattice. Without it
// the power at the result is .753 to .797 instead of .80.
//
// Pass alpha times the look's weight over the size of the family. A result
// above 1 says that no change could have been found.
//
// Assumption: clusters independent, the mean roughly normal.
//
// Small n: within .2 % of the exact non-central t answer from G = 10 at
// alpha = .05; at the level of one condition of 20, 1 % too small at G = 25.
//
// Panics if G < 2, se is not above 0 (0 would claim that any change is
// found), latticeHalf is negative or not finite, alpha or power lies outside
// (0, 1), or power <= alpha.
//
// Source: the usual two-quantile formula; Miller 2024; the lattice term from
// our own simulation.
func MDEBounded(G int, se, latticeHalf, alpha, power float64) float64 {
	const fn = "MDEBounded"
	if G < 2 {
		fail(fn, "G is %d, want at least 2 clusters", G)
	}
	checkPositive(fn, "se", se)
	if !(latticeHalf >= 0) || math.IsInf(latticeHalf, 0) {
		fail(fn, "latticeHalf is %v, want a finite value of at least 0", latticeHalf)
	}
	checkPower(fn, alpha, power)
	return (studentQuantile(1-alpha/2, G-1)+studentQuantile(power, G-1))*se + latticeHalf
}

// checkPower panics unless 0 < alpha < power < 1.
func checkPower(function string, alpha, power float64) {
	checkLevel(function, "alpha", alpha)
	checkLevel(function, "power", power)
	if power <= alpha {
		fail(function, "power %v does not exceed alpha %v", power, alpha)
	}
}

// SampleSizeMcNemar returns about how many clusters McNemar's score test
// needs to find p10 against p01 with the given power, not rounded:
//
//	(z(1-alpha/2) sqrt(psi) + z(power) sqrt(psi - d^2))^2 / d^2   psi = p10 + p01, d = p10 - p01
//
// It feeds the sentence "needs about n tasks" of an inconclusive row.
//
// Assumption: as [McNemarPower], and n large.
//
// Small n: 5 to 10 % short of what the exact test needs; say "about".
//
// Panics if p10 or p01 lies outside [0, 1], their sum exceeds 1, they are
// equal (no number suffices), alpha or power lies outside (0, 1), or
// power <= alpha.
//
// Source: Connor 1987; Miettinen 1968.
func SampleSizeMcNemar(p10, p01, alpha, power float64) float64 {
	const fn = "SampleSizeMcNemar"
	checkRates(fn, 1, p10, p01)
	checkPower(fn, alpha, power)
	if p10 == p01 {
		fail(fn, "p10 and p01 are both %v, no number of clusters finds a change of 0", p10)
	}
	psi, d := p10+p01, p10-p01
	root := normalQuantile(1-alpha/2)*math.Sqrt(psi) + normalQuantile(power)*math.Sqrt(max(0, psi-d*d))
	return root * root / (d * d)
}

// SampleSizeMean returns about how many clusters are needed to find a mean
// change of delta with the given power when one cluster's difference has the
// given variance, not rounded:
//
//	(z(1-alpha/2) + z(power))^2 variance / delta^2
//
// Assumption: clusters independent, n large.
//
// Small n: a few clusters short of what Student's t needs; say "about".
//
// Panics if variance is not above 0, delta is 0 or not finite, alpha or power
// lies outside (0, 1), or power <= alpha.
//
// Source: Miller 2024.
func SampleSizeMean(variance, delta, alpha, power float64) float64 {
	const fn = "SampleSizeMean"
	checkPositive(fn, "variance", variance)
	checkPositive(fn, "size of delta", math.Abs(delta))
	checkPower(fn, alpha, power)
	z := normalQuantile(1-alpha/2) + normalQuantile(power)
	return z * z * variance / (delta * delta)
}

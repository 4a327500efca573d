package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// McNemarExact returns the two-sided exact p-value that the checkpoint and
// the base pass equally often, from b clusters that only the checkpoint
// passes and c that only the base passes:
//
//	p = min(1, 2 P(X <= min(b, c)))   X ~ Binomial(b+c, 1/2)
//
// This is the test that verdicts on pass/fail pairs rest on.
//
// Assumption: one pair per cluster, clusters independent; under the null each
// discordant pair is equally likely to go either way. Concordant pairs carry
// no information about the sign and are not needed.
//
// Small n: exact at every n, never above its level. The smallest p from d
// discordant pairs is 2^(1-d), see [MinDiscordant]; b+c = 0 gives 1.
//
// Panics if b or c is negative.
//
// Source: McNemar 1947; Fagerland, Lydersen and Laake 2013.
func McNemarExact(b, c int) float64 {
	checkCount("McNemarExact", "b", b)
	checkCount("McNemarExact", "c", c)
	return exactP(b, c)
}

// McNemarMidP returns the mid-p variant of [McNemarExact]: the exact p-value
// less half the probability of the observed split,
//
//	p = P_exact - P(|X - c| as observed)/2
//
// It is NOT used for verdicts. It exceeds its level slightly under some nulls
// (up to .057 at .05 with skewed effects) and gives no guarantee at the small
// levels that a family of conditions needs. It is here for comparison with
// published tables.
//
// Small n: less conservative than the exact test, not guaranteed; b+c = 0
// gives 1.
//
// Panics if b or c is negative.
//
// Source: Fagerland, Lydersen and Laake 2013.
func McNemarMidP(b, c int) float64 {
	checkCount("McNemarMidP", "b", b)
	checkCount("McNemarMidP", "c", c)
	if b+c == 0 {
		return 1
	}
	observed := distuv.Binomial{N: float64(b + c), P: .5}.Prob(float64(min(b, c)))
	if b == c {
		observed /= 2 // the middle split is its own mirror image
	}
	return exactP(b, c) - observed
}

// McNemarAsymptotic returns the p-value of McNemar's score test without
// continuity correction,
//
//	z = (b-c)/sqrt(b+c),   p = 2 (1 - Phi(|z|))
//
// It is NOT used for verdicts: below about 25 discordant pairs it can exceed
// its level. [Tango]'s interval is this test turned inside out, which is what
// it serves to check.
//
// Small n: too small a p when b+c is small; b+c = 0 gives 1.
//
// Panics if b or c is negative.
//
// Source: McNemar 1947.
func McNemarAsymptotic(b, c int) float64 {
	checkCount("McNemarAsymptotic", "b", b)
	checkCount("McNemarAsymptotic", "c", c)
	if b+c == 0 {
		return 1
	}
	z := math.Abs(float64(b-c)) / math.Sqrt(float64(b+c))
	return math.Erfc(z / math.Sqrt2)
}

// MinDiscordant returns the smallest number of discordant clusters from which
// [McNemarExact] can reach a p-value of alpha or less, all of them going the
// same way: the smallest d with 2^(1-d) <= alpha. It is 6 at .05, 9 at .05/8
// and 10 at .05/20. Fewer than this, and no data could have given a verdict.
//
// Panics if alpha lies outside (0, 1).
func MinDiscordant(alpha float64) int {
	checkLevel("MinDiscordant", "alpha", alpha)
	d := 1
	for math.Ldexp(1, 1-d) > alpha {
		d++
	}
	return d
}

// exactP is McNemarExact without the argument checks, for inner loops.
func exactP(b, c int) float64 {
	if min(b, c) == 0 {
		// One sided splits to the last bit, because levels such as 1/32 meet
		// them exactly; max covers b+c = 0.
		return math.Ldexp(1, -max(0, b+c-1))
	}
	tail := distuv.Binomial{N: float64(b + c), P: .5}.CDF(float64(min(b, c)))
	return min(1, 2*tail)
}

// criticalCounts returns, for each number of discordant pairs d = 0..n, the
// largest c <= d/2 for which p(d-c, c) <= alpha, or -1 where no split of d
// pairs is significant. It walks c upwards with d, because the critical count
// never falls as d grows.
func criticalCounts(n int, alpha float64, p func(b, c int) float64) []int {
	crit := make([]int, n+1)
	c := -1
	for d := range crit {
		for 2*(c+1) <= d && p(d-c-1, c+1) <= alpha {
			c++
		}
		crit[d] = c
	}
	return crit
}

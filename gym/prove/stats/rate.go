package stats

import "gonum.org/v1/gonum/stat/distuv"

// RateAlpha is the level of BinomialNotAbove and BinomialNotBelow: a correct
// method fails a check by chance less than once in a thousand seeds.
const RateAlpha = .001

// BinomialNotAbove reports whether x events in n simulated runs are
// compatible with a rate of at most p0:
//
//	P(X >= x) >= RateAlpha   X ~ Binomial(n, p0)
//
// It is the pass rule of calibration: false verdicts must not be above the
// declared level, and a method known to be wrong must be.
//
// Assumption: independent runs.
//
// Small n: exact. With few runs it passes almost anything: at n = 1,000 and
// p0 = .05 the smallest x that fails is 74.
//
// Panics if n < 1, x lies outside [0, n], or p0 outside [0, 1].
func BinomialNotAbove(x, n int, p0 float64) bool {
	checkSuccesses("BinomialNotAbove", x, n)
	checkProbability("BinomialNotAbove", "p0", p0)
	return distuv.Binomial{N: float64(n), P: p0}.Survival(float64(x-1)) >= RateAlpha
}

// BinomialNotBelow reports whether x events in n simulated runs are
// compatible with a rate of at least p0:
//
//	P(X <= x) >= RateAlpha   X ~ Binomial(n, p0)
//
// It is the pass rule for coverage.
//
// Assumption: independent runs.
//
// Small n: exact. With few runs it passes almost anything: at n = 1,000 and
// p0 = .94 the largest x that fails is 915.
//
// Panics if n < 1, x lies outside [0, n], or p0 outside [0, 1].
func BinomialNotBelow(x, n int, p0 float64) bool {
	checkSuccesses("BinomialNotBelow", x, n)
	checkProbability("BinomialNotBelow", "p0", p0)
	return distuv.Binomial{N: float64(n), P: p0}.CDF(float64(x)) >= RateAlpha
}

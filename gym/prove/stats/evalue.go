package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// EBinary returns the e-value against "the checkpoint and the base pass
// equally often", from b clusters that only the checkpoint passes and c that
// only the base passes:
//
//	E = 2^(b+c) Beta(b+1/2, c+1/2) / Beta(1/2, 1/2)
//
// It is the light of the monitor split: it may be looked at after every pair
// and acted on at any time, and under the null it ever reaches 20 with
// probability at most 1/20. It is not a verdict, and says "drifting" at most.
//
// Assumption: pairs arrive one per cluster, independent; under the null each
// discordant pair is equally likely to go either way.
//
// Small n: valid from the first pair; b+c = 0 gives 1. Beyond about a
// thousand discordant pairs that all go one way it is +Inf.
//
// Panics if b or c is negative.
//
// Source: Ville 1939; the mixture of Robbins 1970 with the prior of
// Krichevsky and Trofimov 1981.
func EBinary(b, c int) float64 {
	checkCount("EBinary", "b", b)
	checkCount("EBinary", "c", c)
	bf, cf := float64(b), float64(c)
	return math.Exp((bf+cf)*math.Ln2 + mathext.Lbeta(bf+.5, cf+.5) - mathext.Lbeta(.5, .5))
}

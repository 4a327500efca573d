// Package stats holds the statistics of Prove: numbers in, numbers out. It
// knows no plan, no trace and no verdict word; it reads no file and draws no
// random number, so the same arguments always give the same answer.
//
// # One comparison, start to end
//
// A condition was run on n tasks, once by the base and once by the
// checkpoint, with the same seeds. Only the checkpoint passed b of them, only
// the base passed c of them:
//
//	p := stats.McNemarExact(b, c)              // evidence against "nothing changed"
//	adjusted := stats.Holm(ps)                 // p of every condition of the family
//	lo, hi := stats.Tango(b, c, n, .05)        // how large the change may be
//	psi0 := float64(b+c+1) / float64(n+2)      // discordance that noise alone gives
//	mde, ok := stats.MDEBinary(n, psi0, alpha*stats.SpendWeight(look)/float64(m), .80)
//
// # The unit of evidence is the cluster
//
// Every function that takes counts or differences expects one number per
// cluster: a territory, or a task that shares nothing with the others.
// Actions, samples and seeds inside a cluster are averaged first. Feeding
// pairs of the same territory in as if they were independent makes false
// verdicts several times too frequent; the calibration test of this package
// shows it, and fails if it stops showing.
//
// # Reading order
//
//	mcnemar.go       tests on pass/fail pairs, one per cluster
//	signflip.go      the exact test on cluster totals; contains McNemar's test
//	proportion.go    intervals for one pass rate, and for two independent ones
//	paired.go        intervals for the difference of two paired pass rates
//	cluster.go       intervals from one difference per cluster, clustered error
//	multiplicity.go  Holm, Benjamini-Hochberg, spending over looks
//	mde.go           power, minimum detectable effect, sample size
//	evalue.go        the light that may be watched at any time; not a verdict
//	rate.go          is a simulated error rate what it claims to be?
//	argument.go      what counts as the caller's mistake
//
// # The caller's mistakes
//
// A number that cannot be right (a negative count, no task at all, a level
// outside (0, 1), a NaN) is a bug in the calling code, not a property of the
// data, and panics with a text that names the function, the argument and the
// value. No function returns NaN. What the data can bring about, such as no
// discordant pair or no detectable change, is a documented result, never a
// panic.
//
// # Notation
//
// alpha is two-sided: an interval covers with probability 1-alpha. The
// caller divides it by the size of the family and multiplies it by the weight
// of the look. b counts clusters where only the checkpoint passes, c those
// where only the base passes, n all clusters; a positive difference means
// that the checkpoint is better.
package stats

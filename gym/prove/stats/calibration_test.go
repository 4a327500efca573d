package stats

import (
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// Calibration simulates whole comparisons whose truth is known, and counts how
// often the rules of this package say something false. Beside each rule runs
// a way of analysing the same data that is known to be wrong, the negative
// control: a calibration that stops flagging it has lost its teeth, and fails.
//
// A rate check fails a correct method for fewer than one seed in a thousand,
// see RateAlpha. With the default seed the counts never change.
var (
	seedFlag = flag.Uint64("seed", 20250611, "seed of the random tests")
	repsFlag = flag.Int("reps", 1000, "simulated comparisons per calibration test; 20000 for a night")
)

// level is the level of every rule under calibration.
const level = .05

// TestCalibration_familyWise: eight conditions, nothing changed in any.
func TestCalibration_familyWise(t *testing.T) {
	const m, G = 8, 80
	rate := simulate(t, "family-wise", *repsFlag, func(rng *rand.Rand, hit func(string)) {
		family := make([]table, m)
		for i := range family {
			family[i] = null(rng, G)
		}
		if slices.Contains(verdicts(family, level), true) {
			hit("Holm")
		}
		if slices.ContainsFunc(family, func(x table) bool { return McNemarExact(x.b, x.c) <= level }) {
			hit("no correction")
		}
	})
	rate.notAbove("Holm", level)
	rate.flagged("no correction", level)
}

// TestCalibration_power: a change as large as the planned MDE is found four
// times in five.
func TestCalibration_power(t *testing.T) {
	for _, design := range []struct {
		name        string
		G           int
		psi0, alpha float64
	}{
		{"one condition of 80 tasks", 80, .2, level},
		{"one of eight conditions of 200 tasks", 200, .3, level / 8},
	} {
		t.Run(design.name, func(t *testing.T) {
			mde, ok := MDEBinary(design.G, design.psi0, design.alpha, .8)
			if !ok {
				t.Fatal("the plan has no MDE")
			}
			rate := simulate(t, "power, "+design.name, *repsFlag, func(rng *rand.Rand, hit func(string)) {
				x := draw(rng, design.G, design.psi0/2+mde, design.psi0/2)
				if x.b > x.c && x.verdict(McNemarExact(x.b, x.c), design.alpha) {
					hit("IMPROVED")
				}
			})
			rate.within("IMPROVED", .75, .88)
		})
	}
}

// TestCalibration_coverage: the 95 % interval holds the true change. The
// last design has so few discordant pairs that the usual Wald interval is
// often of zero width.
func TestCalibration_coverage(t *testing.T) {
	for _, design := range []struct {
		n         int
		p10, p01  float64
		waldFails bool
	}{{20, .15, .05, false}, {80, .20, .10, false}, {120, .02, .02, false}, {50, .05, .40, false}, {40, .04, 0, true}} {
		name := fmt.Sprintf("n=%d p10=%v p01=%v", design.n, design.p10, design.p01)
		t.Run(name, func(t *testing.T) {
			truth := design.p10 - design.p01
			rate := simulate(t, "coverage, "+name, *repsFlag, func(rng *rand.Rand, hit func(string)) {
				x := draw(rng, design.n, design.p10, design.p01)
				if lo, hi := Tango(x.b, x.c, x.n, .05); lo <= truth && truth <= hi {
					hit("Tango")
				}
				d, n := float64(x.b-x.c)/float64(x.n), float64(x.n)
				if math.Abs(d-truth) <= 1.96*math.Sqrt((float64(x.b+x.c)/n-d*d)/n) {
					hit("Wald")
				}
			})
			rate.notBelow("Tango", .94)
			if design.waldFails {
				rate.flaggedLow("Wald", .94)
			}
		})
	}
}

// TestCalibration_territories: each territory gains or loses .2 by a coin
// flip, so nothing changes on average; its twelve pairs move together.
func TestCalibration_territories(t *testing.T) {
	const G, seeds = 24, 12
	rate := simulate(t, "territories", *repsFlag, func(rng *rand.Rand, hit func(string)) {
		var pairs table
		totals, d := make([]int, G), make([]float64, G)
		for g := range G {
			effect := .2
			if rng.IntN(2) == 0 {
				effect = -.2
			}
			for range seeds {
				pass := .2 + .6*rng.Float64()
				totals[g] += pairs.add(rng.Float64() < pass, rng.Float64() < pass+effect)
			}
			d[g] = float64(totals[g]) / seeds
		}
		lo, hi, _ := Hull(d, .05)
		if SignFlip(totals) <= level && (lo > 0 || hi < 0) {
			hit("territories as clusters")
		}
		if pairs.verdict(McNemarExact(pairs.b, pairs.c), level) {
			hit("pairs as clusters")
		}
	})
	rate.notAbove("territories as clusters", level)
	rate.flagged("pairs as clusters", level)
}

// TestCalibration_bestOnMonitor: twenty checkpoints, none of them different
// from the base; the one with the best monitor score is tested.
func TestCalibration_bestOnMonitor(t *testing.T) {
	const checkpoints, tasks = 20, 100
	rate := simulate(t, "best on monitor", *repsFlag, func(rng *rand.Rand, hit func(string)) {
		pass, base := make([]float64, tasks), make([]bool, tasks)
		for i := range pass {
			pass[i] = rng.Float64()
			base[i] = rng.Float64() < pass[i]
		}
		var best table
		for k := range checkpoints {
			var x table
			for i := range pass {
				x.add(base[i], rng.Float64() < pass[i])
			}
			if k == 0 || x.b-x.c > best.b-best.c {
				best = x
			}
		}
		sealed := null(rng, tasks)
		if sealed.verdict(McNemarExact(sealed.b, sealed.c), level) {
			hit("tested on the sealed split")
		}
		if best.verdict(McNemarExact(best.b, best.c), level) {
			hit("tested on the split that chose")
		}
	})
	rate.notAbove("tested on the sealed split", level)
	rate.flagged("tested on the split that chose", level)
}

// TestCalibration_looks: ten looks at eight conditions, nothing ever changed;
// one false verdict anywhere spoils the run.
func TestCalibration_looks(t *testing.T) {
	const looks, m, G = 10, 8, 80
	rate := simulate(t, "looks", *repsFlag/2, func(rng *rand.Rand, hit func(string)) {
		for look := 1; look <= looks; look++ {
			family := make([]table, m)
			for i := range family {
				family[i] = null(rng, G)
			}
			if slices.Contains(verdicts(family, level*SpendWeight(look)), true) {
				hit("Holm and spending")
			}
			if slices.Contains(verdicts(family, level), true) {
				hit("Holm alone")
			}
		}
	})
	rate.notAbove("Holm and spending", level)
	rate.flagged("Holm alone", level)
}

// TestCalibration_crashes: nothing changed, but three in ten of the
// checkpoint's failures are crashes, and 1.5 % of either arm's episodes are
// lost to the infrastructure.
func TestCalibration_crashes(t *testing.T) {
	const G = 120
	rate := simulate(t, "crashes", *repsFlag, func(rng *rand.Rand, hit func(string)) {
		var zero, dropped, kept, better, worse table
		for range G {
			pass := rng.Float64()
			base, checkpoint := rng.Float64() < pass, rng.Float64() < pass
			crashed := !checkpoint && rng.Float64() < .3
			lostBase, lostCheckpoint := rng.Float64() < .015, rng.Float64() < .015

			zero.add(base, checkpoint)
			if !crashed {
				dropped.add(base, checkpoint)
			}
			if !lostBase && !lostCheckpoint {
				kept.add(base, checkpoint)
			}
			// What was lost counts against the claim: for IMPROVED the base
			// passed it and the checkpoint did not, for REGRESSED the reverse.
			better.add(base || lostBase, checkpoint && !lostCheckpoint)
			worse.add(base && !lostBase, checkpoint || lostCheckpoint)
		}
		if zero.verdict(McNemarExact(zero.b, zero.c), level) {
			hit("a crash is a failure")
		}
		if dropped.verdict(McNemarExact(dropped.b, dropped.c), level) {
			hit("crashed pairs dropped")
		}
		adverse, improved := better, kept.b > kept.c
		if !improved {
			adverse = worse
		}
		if kept.verdict(McNemarExact(kept.b, kept.c), level) &&
			adverse.verdict(McNemarExact(adverse.b, adverse.c), level) && (adverse.b > adverse.c) == improved {
			hit("adverse imputation")
		}
	})
	rate.notAbove("a crash is a failure", level)
	rate.notAbove("adverse imputation", level)
	rate.flagged("crashed pairs dropped", level)
}

// TestCalibration_unchangedAtTheMargin: the truth lies exactly on the margin,
// so "unchanged within the margin" is false.
func TestCalibration_unchangedAtTheMargin(t *testing.T) {
	const n, margin = 200, .10
	rate := simulate(t, "unchanged at the margin", *repsFlag, func(rng *rand.Rand, hit func(string)) {
		x := draw(rng, n, .20, .10)
		if lo, hi := Tango(x.b, x.c, x.n, 2*level); lo > -margin && hi < margin {
			hit("interval inside the margin")
		}
		if McNemarExact(x.b, x.c) > level {
			hit("not significant")
		}
	})
	rate.notAbove("interval inside the margin", level)
	rate.flagged("not significant", level)
}

// TestCalibration_monitorLight: the light is watched after every one of 400
// pairs, and nothing changed.
func TestCalibration_monitorLight(t *testing.T) {
	const pairs = 400
	crit := criticalCounts(pairs, level, exactP) // a lookup instead of a p-value a pair
	rate := simulate(t, "monitor light", *repsFlag, func(rng *rand.Rand, hit func(string)) {
		var x table
		lit, peeked := false, false
		for range pairs {
			pass := rng.Float64()
			if x.add(rng.Float64() < pass, rng.Float64() < pass) == 0 {
				continue // neither number moves on a concordant pair
			}
			lit = lit || EBinary(x.b, x.c) >= 1/level
			peeked = peeked || min(x.b, x.c) <= crit[x.b+x.c]
		}
		if lit {
			hit("E >= 20")
		}
		if peeked {
			hit("p <= .05 at some pair")
		}
	})
	rate.notAbove("E >= 20", level)
	rate.flagged("p <= .05 at some pair", level)
}

// TestCalibration_sameOnAnyMachine: counts depend on the seed alone, not on
// how many workers share the runs.
func TestCalibration_sameOnAnyMachine(t *testing.T) {
	run := func(rng *rand.Rand, hit func(string)) {
		if x := null(rng, 30); x.b > x.c {
			hit("up")
		}
	}
	one := count(*seedFlag, "any machine", 300, 1, run)
	if five := count(*seedFlag, "any machine", 300, 5, run); one["up"] != five["up"] {
		t.Errorf("one worker counts %d, five count %d", one["up"], five["up"])
	}
	first := func(seed uint64, purpose string, index int) uint64 { return stream(seed, purpose, index).Uint64() }
	if a := first(1, "a", 0); a == first(2, "a", 0) || a == first(1, "b", 0) || a == first(1, "a", 1) {
		t.Error("two streams begin with the same number")
	}
}

// table counts n pass/fail pairs: b passed by the checkpoint only, c by the
// base only.
type table struct{ b, c, n int }

// add counts one pair and returns the checkpoint's score less the base's.
func (x *table) add(base, checkpoint bool) int {
	x.n++
	switch {
	case checkpoint && !base:
		x.b++
		return 1
	case base && !checkpoint:
		x.c++
		return -1
	}
	return 0
}

// verdict is the rule for IMPROVED or REGRESSED: the adjusted p-value is
// within the level and the 95 % interval excludes 0.
func (x table) verdict(adjusted, alpha float64) bool {
	if adjusted > alpha {
		return false
	}
	lo, hi := Tango(x.b, x.c, x.n, .05)
	return lo > 0 || hi < 0
}

// verdicts applies the rule to the conditions of one look.
func verdicts(family []table, alpha float64) []bool {
	p := make([]float64, len(family))
	for i, x := range family {
		p[i] = McNemarExact(x.b, x.c)
	}
	said := make([]bool, len(family))
	for i, adjusted := range Holm(p) {
		said[i] = family[i].verdict(adjusted, alpha)
	}
	return said
}

// null draws n tasks of every difficulty on which both arms are the same
// policy; a third of the pairs is discordant.
func null(rng *rand.Rand, n int) table {
	var x table
	for range n {
		pass := rng.Float64()
		x.add(rng.Float64() < pass, rng.Float64() < pass)
	}
	return x
}

// draw draws n pairs with given rates of discordance.
func draw(rng *rand.Rand, n int, p10, p01 float64) table {
	x := table{n: n}
	for range n {
		switch u := rng.Float64(); {
		case u < p10:
			x.b++
		case u < p10+p01:
			x.c++
		}
	}
	return x
}

// rates is how often each named thing happened in the runs of a simulation.
type rates struct {
	t     *testing.T
	count map[string]int
	runs  int
}

// simulate counts what run reports by hit over the given number of runs; a
// name counts at most once a run.
func simulate(t *testing.T, purpose string, runs int, run func(rng *rand.Rand, hit func(string))) rates {
	t.Helper()
	t.Logf("seed %d, %d runs", *seedFlag, runs)
	return rates{t, count(*seedFlag, purpose, runs, runtime.GOMAXPROCS(0), run), runs}
}

// count is simulate for a given number of workers.
func count(seed uint64, purpose string, runs, workers int, run func(rng *rand.Rand, hit func(string))) map[string]int {
	var (
		mu    sync.Mutex // protects total
		total = make(map[string]int)
		wait  sync.WaitGroup
	)
	for worker := range workers {
		wait.Go(func() {
			for index := worker; index < runs; index += workers {
				happened := make(map[string]bool)
				run(stream(seed, purpose, index), func(name string) { happened[name] = true })
				mu.Lock()
				for name := range happened {
					total[name]++
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return total
}

// stream returns the random numbers of run index. They depend on the seed,
// the purpose and the index, never on which worker draws them.
func stream(seed uint64, purpose string, index int) *rand.Rand {
	key := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%d", seed, purpose, index))
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(key[:8]), binary.LittleEndian.Uint64(key[8:16])))
}

// rerun is the line that repeats a failed random test.
func rerun(t *testing.T) string {
	return fmt.Sprintf("rerun: go test ./gym/prove/stats -run '^%s$' -seed %d -reps %d", t.Name(), *seedFlag, *repsFlag)
}

func (r rates) say(name string) string {
	return fmt.Sprintf("%s: %d of %d (%.3f)", name, r.count[name], r.runs, float64(r.count[name])/float64(r.runs))
}

func (r rates) notAbove(name string, p0 float64) {
	r.t.Helper()
	r.t.Log(r.say(name))
	if !BinomialNotAbove(r.count[name], r.runs, p0) {
		r.t.Errorf("%s, above %v\n%s", r.say(name), p0, rerun(r.t))
	}
}

func (r rates) notBelow(name string, p0 float64) {
	r.t.Helper()
	r.t.Log(r.say(name))
	if !BinomialNotBelow(r.count[name], r.runs, p0) {
		r.t.Errorf("%s, below %v\n%s", r.say(name), p0, rerun(r.t))
	}
}

// flagged demands that notAbove would fail: it is for what is known to be
// wrong.
func (r rates) flagged(name string, p0 float64) {
	r.t.Helper()
	r.t.Log(r.say(name))
	if BinomialNotAbove(r.count[name], r.runs, p0) {
		r.t.Errorf("negative control not flagged: %s, not above %v\n%s", r.say(name), p0, rerun(r.t))
	}
}

// flaggedLow demands that notBelow would fail.
func (r rates) flaggedLow(name string, p0 float64) {
	r.t.Helper()
	r.t.Log(r.say(name))
	if BinomialNotBelow(r.count[name], r.runs, p0) {
		r.t.Errorf("negative control not flagged: %s, not below %v\n%s", r.say(name), p0, rerun(r.t))
	}
}

func (r rates) within(name string, lo, hi float64) {
	r.t.Helper()
	r.t.Log(r.say(name))
	if v := float64(r.count[name]) / float64(r.runs); v < lo || v > hi {
		r.t.Errorf("%s, outside [%v, %v]\n%s", r.say(name), lo, hi, rerun(r.t))
	}
}

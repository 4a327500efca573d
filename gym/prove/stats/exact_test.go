package stats

import (
	"fmt"
	"math"
	"math/bits"
	"testing"
)

// The second implementations of this file are slow and obvious: they
// enumerate, or they solve by another road.

var nan = math.NaN()

func power(v float64, n int) float64 {
	out := 1.0
	for range n {
		out *= v
	}
	return out
}

func choose(n, k int) float64 {
	out := 1.0
	for i := range k {
		out = out * float64(n-i) / float64(i+1)
	}
	return out
}

// TestMcNemarExact_enumeration counts the coin sequences in integers.
func TestMcNemarExact_enumeration(t *testing.T) {
	for d := 1; d <= 14; d++ {
		for c := 0; c <= d; c++ {
			far := 0
			for heads := range uint(1) << d {
				if k := bits.OnesCount(heads); max(k, d-k) >= max(c, d-c) {
					far++
				}
			}
			near(t, fmt.Sprintf("b=%d c=%d", d-c, c), McNemarExact(d-c, c), float64(far)/float64(int(1)<<d))
		}
	}
}

// TestSignFlip_enumeration flips every combination of signs.
func TestSignFlip_enumeration(t *testing.T) {
	t.Logf("seed %d", *seedFlag)
	rng := stream(*seedFlag, "sign-flip against enumeration", 0)
	for round := range 200 {
		totals := make([]int, rng.IntN(13))
		scale := 1 + rng.IntN(3) // so that common divisors occur
		for g := range totals {
			totals[g] = scale * (rng.IntN(11) - 5)
		}
		if want, got := enumeratedSignFlip(totals), SignFlip(totals); got != want {
			t.Fatalf("round %d: SignFlip(%v) = %v, enumeration gives %v\n%s", round, totals, got, want, rerun(t))
		}
	}
}

// enumeratedSignFlip counts in integers, so it is exact for up to 52 totals.
func enumeratedSignFlip(totals []int) float64 {
	observed, n := 0, len(totals)
	for _, total := range totals {
		observed += total
	}
	far := 0
	for signs := range uint(1) << n {
		sum := 0
		for g, total := range totals {
			if signs>>g&1 == 1 {
				total = -total
			}
			sum += total
		}
		if max(sum, -sum) >= max(observed, -observed) {
			far++
		}
	}
	return float64(far) / float64(int(1)<<n)
}

func TestSignFlip_isMcNemarOnSigns(t *testing.T) {
	for b := 0; b <= 40; b++ {
		for c := 0; c <= 25; c++ {
			totals := make([]int, 3, 3+b+c) // three clusters tie
			for range b {
				totals = append(totals, 7)
			}
			for range c {
				totals = append(totals, -7)
			}
			near(t, fmt.Sprintf("b=%d c=%d", b, c), SignFlip(totals), McNemarExact(b, c))
		}
	}
}

// TestSignFlip_manyClusters: halving 1,200 times underflows nothing that
// matters.
func TestSignFlip_manyClusters(t *testing.T) {
	totals := make([]int, 1200)
	for g := range totals {
		totals[g] = 1 - 2*(g%2)
	}
	if p := SignFlip(totals); p != 1 {
		t.Errorf("a sum of 0 gives p = %v, want 1", p)
	}
	for g := range 60 {
		totals[2*g+1] = 1
	}
	near(t, "660 to 540", SignFlip(totals), McNemarExact(660, 540))
}

// TestTango_isTheScoreTestInsideOut: the interval excludes 0 exactly when the
// score test rejects, and its limits reject at exactly its level.
func TestTango_isTheScoreTestInsideOut(t *testing.T) {
	for _, n := range []int{5, 20, 77} {
		for b := 0; b <= min(n, 30); b++ {
			for c := 0; c <= min(n-b, 30); c++ {
				for _, alpha := range []float64{.05, .1, .004} {
					lo, hi := Tango(b, c, n, alpha)
					at := fmt.Sprintf("Tango(%d, %d, %d, %v) = %v, %v", b, c, n, alpha, lo, hi)
					est := float64(b-c) / float64(n)
					if !(lo >= -1 && lo <= est && est <= hi && hi <= 1 && lo < hi) {
						t.Errorf("%s: not an interval around %v", at, est)
					}
					if excludes, rejects := lo > 0 || hi < 0, McNemarAsymptotic(b, c) < alpha; excludes != rejects {
						t.Errorf("%s, p = %v", at, McNemarAsymptotic(b, c))
					}
					if mlo, mhi := Tango(c, b, n, alpha); mlo != -hi || mhi != -lo {
						t.Errorf("%s, mirrored %v, %v", at, mlo, mhi)
					}
					z := normalQuantile(1 - alpha/2)
					if lo > -1 {
						nearWithin(t, at+" score at lower", score(b, c, n, lo), z, 1e-6)
					}
					if hi < 1 {
						nearWithin(t, at+" score at upper", score(b, c, n, hi), -z, 1e-6)
					}
				}
			}
		}
		z := normalQuantile(.975)
		_, hi := Tango(0, 0, n, .05)
		near(t, "no discordant pair", hi, z*z/(float64(n)+z*z))
	}
}

// score maximises the likelihood of the table under difference d by golden
// section, where Tango solves a quadratic.
func score(b, c, n int, d float64) float64 {
	loglik := func(q float64) float64 {
		out := float64(n-b-c) * math.Log(max(1e-300, 1-d-2*q))
		if b > 0 {
			out += float64(b) * math.Log(max(1e-300, q+d))
		}
		if c > 0 {
			out += float64(c) * math.Log(max(1e-300, q))
		}
		return out
	}
	lo, hi := max(0, -d), (1-d)/2
	phi := (math.Sqrt(5) - 1) / 2
	for range 200 {
		x, y := hi-phi*(hi-lo), lo+phi*(hi-lo)
		if loglik(x) >= loglik(y) {
			hi = y
		} else {
			lo = x
		}
	}
	q := (lo + hi) / 2
	return (float64(b-c) - float64(n)*d) / math.Sqrt(float64(n)*(2*q+d*(1-d)))
}

func TestHull(t *testing.T) {
	repeat := func(v float64, n int) []float64 {
		d := make([]float64, n)
		for i := range d {
			d[i] = v
		}
		return d
	}
	t.Run("is the t interval when ten clusters differ", func(t *testing.T) {
		d := append(repeat(0, 20), repeat(.5, 10)...)
		lo, hi := TInterval(d, .05)
		hullLo, hullHi, se := Hull(d, .05)
		near(t, "lower", hullLo, lo)
		near(t, "upper", hullHi, hi)
		near(t, "se", se, (hi-lo)/2/studentQuantile(.975, 29))
	})
	t.Run("is wider when nine differ", func(t *testing.T) {
		d := append(repeat(0, 20), repeat(.5, 9)...)
		lo, hi := TInterval(d, .05)
		hullLo, hullHi, se := Hull(d, .05)
		if !(hullLo < lo && hullHi >= hi && se > (hi-lo)/2/studentQuantile(.975, 28)) {
			t.Errorf("hull %v, %v (se %v) does not exceed t %v, %v", hullLo, hullHi, se, lo, hi)
		}
	})
	t.Run("never has zero width", func(t *testing.T) {
		for _, v := range []float64{-1, -.5, 0, .25, 1} {
			for _, G := range []int{2, 20, 200} {
				lo, hi, se := Hull(repeat(v, G), .05)
				if !(lo < hi && lo >= -1 && hi <= 1 && lo <= v && v <= hi && se > 0) {
					t.Errorf("%d clusters of %v: %v, %v, se %v", G, v, lo, hi, se)
				}
			}
		}
	})
	t.Run("of no difference is the pseudo-cluster interval", func(t *testing.T) {
		lo, hi, se := Hull(repeat(0, 20), .05)
		near(t, "se", se, math.Sqrt(1./21/22)) // SS = 1, N = 22
		near(t, "upper", hi, studentQuantile(.975, 19)*math.Sqrt(1./21/22))
		near(t, "lower", lo, -hi)
	})
}

// TestClopperPearson_tails checks the defining property: at a limit, the tail
// that reaches the observed count holds alpha/2.
func TestClopperPearson_tails(t *testing.T) {
	for _, n := range []int{1, 7, 40} {
		for x := 0; x <= n; x++ {
			lo, hi := ClopperPearson(x, n, .1)
			above, below := 0.0, 0.0
			for k := 0; k <= n; k++ {
				if k >= x {
					above += choose(n, k) * power(lo, k) * power(1-lo, n-k)
				}
				if k <= x {
					below += choose(n, k) * power(hi, k) * power(1-hi, n-k)
				}
			}
			if x > 0 {
				near(t, fmt.Sprintf("lower tail at %d/%d", x, n), above, .05)
			}
			if x < n {
				near(t, fmt.Sprintf("upper tail at %d/%d", x, n), below, .05)
			}
		}
		_, hi := ClopperPearson(0, n, .1)
		near(t, "one-sided bound of nothing seen", hi, 1-math.Pow(.05, 1/float64(n)))
	}
}

// TestWilson_inversion: a limit is a rate that the score test just rejects.
func TestWilson_inversion(t *testing.T) {
	z := normalQuantile(.975)
	for _, n := range []int{1, 9, 100} {
		for x := 0; x <= n; x++ {
			lo, hi := Wilson(x, n, .05)
			for _, p := range []float64{lo, hi} {
				if p == 0 || p == 1 {
					continue
				}
				near(t, fmt.Sprintf("z at a limit of %d/%d", x, n), math.Abs(float64(x)-float64(n)*p)/math.Sqrt(float64(n)*p*(1-p)), z)
			}
		}
	}
}

func TestSpendWeight_addsToOne(t *testing.T) {
	for l, want := range []float64{.608, .152, .068, .038} {
		nearWithin(t, fmt.Sprintf("look %d", l+1), SpendWeight(l+1), want, .0005)
	}
	const looks = 100_000
	sum := 0.0
	for l := looks; l >= 1; l-- {
		sum += SpendWeight(l)
	}
	if rest := 1 - sum; rest < 0 || rest > 1./looks {
		t.Errorf("the first %d looks spend %v of alpha", looks, sum)
	}
}

// TestEBinary_isAMartingale: under the null the next pair changes E on
// average by nothing, which is what makes it valid at any stopping time.
func TestEBinary_isAMartingale(t *testing.T) {
	near(t, "start", EBinary(0, 0), 1)
	for b := range 30 {
		for c := range 30 {
			near(t, fmt.Sprintf("mean after %d, %d", b, c), (EBinary(b+1, c)+EBinary(b, c+1))/2/EBinary(b, c), 1)
		}
	}
	if e := EBinary(5000, 0); !math.IsInf(e, 1) {
		t.Errorf("5,000 pairs one way: %v, want +Inf", e)
	}
}

func TestClusteredSE(t *testing.T) {
	y := []float64{1, 0, 0, 1, 1, 0}
	// One score a cluster: the ordinary standard error, sd/sqrt(n).
	_, se := meanStdErr(y)
	near(t, "clusters of one", ClusteredSE(y, []int{5, 4, 3, 2, 1, 0}), se)
	// Copies of a score carry nothing new, where the naive error shrinks.
	var copies []float64
	var labels []int
	for i, v := range y {
		for range 4 {
			copies, labels = append(copies, v), append(labels, 100-i)
		}
	}
	near(t, "four copies of each", ClusteredSE(copies, labels), se)
}

func TestBinomialChecks_turningPoints(t *testing.T) {
	for _, row := range []struct {
		x    int
		want bool
	}{{0, true}, {73, true}, {74, false}, {1000, false}} {
		if got := BinomialNotAbove(row.x, 1000, .05); got != row.want {
			t.Errorf("BinomialNotAbove(%d, 1000, .05) = %v", row.x, got)
		}
	}
	for _, row := range []struct {
		x    int
		want bool
	}{{0, false}, {915, false}, {916, true}, {1000, true}} {
		if got := BinomialNotBelow(row.x, 1000, .94); got != row.want {
			t.Errorf("BinomialNotBelow(%d, 1000, .94) = %v", row.x, got)
		}
	}
	// Rates of 0 and 1 have no tail to speak of, and no NaN either.
	if !BinomialNotAbove(0, 5, 0) || BinomialNotAbove(1, 5, 0) || !BinomialNotAbove(5, 5, 1) {
		t.Error("BinomialNotAbove is wrong at p0 = 0 or 1")
	}
	if !BinomialNotBelow(5, 5, 1) || BinomialNotBelow(4, 5, 1) || !BinomialNotBelow(0, 5, 0) {
		t.Error("BinomialNotBelow is wrong at p0 = 0 or 1")
	}
}

package stats

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// planningLevels are the levels of the table's three columns per design: one
// condition, a family of 8, a family of 20.
var planningLevels = [3]float64{.05, .05 / 8, .05 / 20}

// planningTolerance: the table is printed to three digits.
const planningTolerance = .001

func TestMDEBinary_planningTable(t *testing.T) {
	table := []struct {
		n    int
		psi0 [3][3]float64 // psi0 = .1, .2, .4 by level
	}{
		{50, [3][3]float64{{.230, .322, .357}, {.282, .379, .417}, {.351, .472, .513}}},
		{100, [3][3]float64{{.142, .191, .211}, {.177, .238, .260}, {.227, .302, .331}}},
		{200, [3][3]float64{{.089, .119, .131}, {.114, .151, .166}, {.150, .197, .216}}},
		{400, [3][3]float64{{.057, .076, .083}, {.075, .099, .108}, {.101, .132, .144}}},
		{800, [3][3]float64{{.038, .049, .054}, {.051, .066, .072}, {.069, .089, .097}}},
	}
	for _, row := range table {
		for i, psi0 := range [3]float64{.1, .2, .4} {
			for j, alpha := range planningLevels {
				mde, ok := MDEBinary(row.n, psi0, alpha, .8)
				if !ok {
					t.Errorf("n=%d psi0=%v alpha=%v: none", row.n, psi0, alpha)
				}
				nearWithin(t, fmt.Sprintf("n=%d psi0=%v alpha=%v", row.n, psi0, alpha), mde, row.psi0[i][j], planningTolerance)
			}
		}
	}
}

func TestMDEBounded_planningTable(t *testing.T) {
	for _, row := range []struct {
		G    int
		want [3]float64
	}{
		{25, [3]float64{.210, .276, .303}},
		{50, [3]float64{.144, .185, .202}},
		{100, [3]float64{.099, .127, .138}},
		{200, [3]float64{.069, .089, .096}},
	} {
		// Four samples a task, standard deviation .343 over tasks. The table
		// was made with the non-central t; the formula stays within 1 % of it.
		se, lattice := .343/math.Sqrt(float64(row.G)), 1/(4*float64(row.G))
		for j, alpha := range planningLevels {
			name := fmt.Sprintf("G=%d alpha=%v", row.G, alpha)
			exact := noncentralMDE(row.G, se, alpha) + lattice
			nearWithin(t, name+" exact", exact, row.want[j], planningTolerance)
			nearWithin(t, name+" formula", MDEBounded(row.G, se, lattice, alpha, .8), exact, .01*exact)
		}
	}
}

// TestMDEBounded_noncentralT compares the two-quantile formula with the exact
// answer of the t test, itself checked against R and scipy.
func TestMDEBounded_noncentralT(t *testing.T) {
	for _, row := range []struct {
		G     int
		exact float64
	}{{10, .498001}, {50, .202092}, {100, .141456}} {
		se := .5 / math.Sqrt(float64(row.G))
		exact := noncentralMDE(row.G, se, .05)
		nearWithin(t, fmt.Sprintf("G=%d exact", row.G), exact, row.exact, 1e-6)
		nearWithin(t, fmt.Sprintf("G=%d formula", row.G), MDEBounded(row.G, se, 0, .05, .8), exact, .002*exact)
	}
}

// noncentralMDE solves for the mean that the t test finds with power .8.
func noncentralMDE(G int, se, alpha float64) float64 {
	df := float64(G - 1)
	crit := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(1 - alpha/2)
	lo, hi := 0.0, 20*se
	for range 60 {
		mid := (lo + hi) / 2
		if 1-(distuv.NoncentralT{Nu: df, Mu: mid / se}).CDF(crit) < .8 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

func TestMDEBinary_reachesItsPower(t *testing.T) {
	for _, n := range []int{25, 80, 300} {
		for _, psi0 := range []float64{0, .03, .2, .6} {
			for _, alpha := range []float64{.05, .004} {
				mde, ok := MDEBinary(n, psi0, alpha, .8)
				if !ok {
					if power := McNemarPower(n, 1-psi0/2, psi0/2, alpha); power >= .8 {
						t.Errorf("n=%d psi0=%v alpha=%v: none, yet the largest change has power %v", n, psi0, alpha, power)
					}
					continue
				}
				nearWithin(t, fmt.Sprintf("power at the MDE, n=%d psi0=%v alpha=%v", n, psi0, alpha),
					McNemarPower(n, psi0/2+mde, psi0/2, alpha), .8, 1e-9)
			}
		}
	}
	if mde, ok := MDEBinary(100, 1, .05, .8); ok {
		t.Errorf("psi0 = 1 leaves no room for a change, got %v", mde)
	}
	if mde, ok := MDEBinary(5, 0, .05, .8); ok {
		t.Errorf("5 clusters cannot reach p <= .05, got %v", mde)
	}
	// Six clusters are just enough, and only when nearly all of them change:
	// d^6 = .8.
	mde, ok := MDEBinary(6, 0, .05, .8)
	if !ok {
		t.Error("6 clusters reach p = .03125 and so have an MDE")
	}
	near(t, "n=6", mde*mde*mde*mde*mde*mde, .8)
}

// TestMcNemarPower_enumeration sums over every table of 12 clusters.
func TestMcNemarPower_enumeration(t *testing.T) {
	const n = 12
	for _, rate := range []struct{ p10, p01 float64 }{{.4, .1}, {.1, .4}, {.7, .3}, {1, 0}, {0, 1}, {0, 0}, {.5, 0}} {
		want := 0.0
		for b := 0; b <= n; b++ {
			for c := 0; b+c <= n; c++ {
				if b > c && McNemarExact(b, c) <= .05 {
					want += choose(n, b) * choose(n-b, c) * power(rate.p10, b) * power(rate.p01, c) * power(1-rate.p10-rate.p01, n-b-c)
				}
			}
		}
		near(t, fmt.Sprint(rate), McNemarPower(n, rate.p10, rate.p01, .05), want)
	}
}

// TestWorkedRows recomputes the numbers of complete report rows: a family of
// four at alpha .05.
func TestWorkedRows(t *testing.T) {
	const m = 4
	for _, row := range []struct {
		name           string
		b, c, n        int
		p, lo, hi, mde float64
	}{
		{"improved", 24, 6, 120, .001431, .0647, .2397, .2106},
		{"regressed", 5, 19, 120, .006611, -.2000, -.0397, .1951},
		{"inconclusive for want of power", 9, 4, 40, .266846, nan, nan, .4748},
		{"unchanged", 3, 3, 200, 1, -.0302, .0302, nan},
	} {
		t.Run(row.name, func(t *testing.T) {
			nearWithin(t, "p", McNemarExact(row.b, row.c), row.p, 5e-7)
			if row.lo == row.lo {
				lo, hi := Tango(row.b, row.c, row.n, .05)
				nearWithin(t, "lower", lo, row.lo, 5e-5)
				nearWithin(t, "upper", hi, row.hi, 5e-5)
			}
			if row.mde == row.mde {
				mde, ok := MDEBinary(row.n, float64(row.b+row.c+1)/float64(row.n+2), .05/m, .8)
				if !ok {
					t.Fatal("no MDE")
				}
				nearWithin(t, "mde", mde, row.mde, 5e-5)
			}
		})
	}
	// The joint interval behind "unchanged within": level 1 - 2 alpha/m.
	lo, hi := Tango(3, 3, 200, 2*.05/m)
	nearWithin(t, "joint lower", lo, -.0363, 5e-5)
	nearWithin(t, "joint upper", hi, .0363, 5e-5)

	// Four samples a task, 25 tasks, a family of one.
	totals := []int{2, 1, 0, 3, -1, 2, 1, 1, 0, 2, 4, -2, 1, 0, 1, 2, 0, 1, 3, -1, 1, 0, 2, 1, 1}
	d := make([]float64, len(totals))
	for g, total := range totals {
		d[g] = float64(total) / 4
	}
	nearWithin(t, "p", SignFlip(totals), .001914978, 5e-10)
	lo, hi, se := Hull(d, .05)
	nearWithin(t, "hull lower", lo, .110273, 5e-7)
	nearWithin(t, "hull upper", hi, .389727, 5e-7)
	nearWithin(t, "mde", MDEBounded(25, se, 1/(4*25.), .05, .8), .207736, 5e-7)
}

func TestMinDiscordant(t *testing.T) {
	for _, row := range []struct {
		alpha float64
		want  int
	}{{.05, 6}, {.05 / 8, 9}, {.05 / 20, 10}, {.5, 2}, {.03125, 6}, {.99, 2}} {
		got := MinDiscordant(row.alpha)
		if got != row.want {
			t.Errorf("MinDiscordant(%v) = %d, want %d", row.alpha, got, row.want)
		}
		if McNemarExact(got, 0) > row.alpha || McNemarExact(got-1, 0) <= row.alpha {
			t.Errorf("alpha %v: %d pairs give p = %v, one fewer %v", row.alpha, got, McNemarExact(got, 0), McNemarExact(got-1, 0))
		}
	}
}

package stats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
)

// The vectors in testdata were computed by base R, scipy, statsmodels and the
// R package contingencytables, not by this package.

// tolerance allows for the last digits that two libraries' special functions
// and root searches may differ in. MDE vectors come from a bisection that
// stopped earlier, so they get mdeTolerance.
const (
	tolerance    = 1e-9
	mdeTolerance = 1e-8
)

// vectorTests has one entry per function name in testdata/vectors.json. Every
// field of a vector is either an argument or compared.
var vectorTests = map[string]func(t *testing.T, raw json.RawMessage){
	"mcnemar": func(t *testing.T, raw json.RawMessage) {
		v := decode[struct {
			Fn                      string
			B, C                    int
			Exact, Midp, Asymptotic float64
		}](t, raw)
		near(t, "exact", McNemarExact(v.B, v.C), v.Exact)
		near(t, "mid-p", McNemarMidP(v.B, v.C), v.Midp)
		near(t, "asymptotic", McNemarAsymptotic(v.B, v.C), v.Asymptotic)
		near(t, "exact, mirrored", McNemarExact(v.C, v.B), v.Exact)
	},
	"one_proportion": func(t *testing.T, raw json.RawMessage) {
		v := decode[struct {
			Fn             string
			X, N           int
			Wilson         [2]float64
			ClopperPearson [2]float64 `json:"clopper_pearson"`
		}](t, raw)
		nearInterval(t, "Wilson", Wilson, v.X, v.N, v.Wilson)
		nearInterval(t, "Clopper-Pearson", ClopperPearson, v.X, v.N, v.ClopperPearson)
	},
	"newcombe_independent": func(t *testing.T, raw json.RawMessage) {
		v := decode[struct {
			Fn       string
			X1n1x2n2 [4]int
			CI       [2]float64
		}](t, raw)
		x := v.X1n1x2n2
		lo, hi := NewcombeIndependent(x[0], x[1], x[2], x[3], .05)
		near(t, "lower", lo, v.CI[0])
		near(t, "upper", hi, v.CI[1])
	},
	"paired_difference": func(t *testing.T, raw json.RawMessage) {
		v := decode[struct {
			Fn              string
			ABCD            [4]int
			Tango, Newcombe [2]float64
			AgrestiMin      [2]float64 `json:"agresti_min"`
		}](t, raw)
		a, b, c, d := v.ABCD[0], v.ABCD[1], v.ABCD[2], v.ABCD[3]
		n := a + b + c + d
		lo, hi := Tango(b, c, n, .05)
		near(t, "Tango lower", lo, v.Tango[0])
		near(t, "Tango upper", hi, v.Tango[1])
		lo, hi = NewcombePaired(a, b, c, d, .05)
		near(t, "Newcombe lower", lo, v.Newcombe[0])
		near(t, "Newcombe upper", hi, v.Newcombe[1])
		lo, hi = AgrestiMin(b, c, n, .05)
		near(t, "Agresti-Min lower", lo, v.AgrestiMin[0])
		near(t, "Agresti-Min upper", hi, v.AgrestiMin[1])
	},
	"adjust": func(t *testing.T, raw json.RawMessage) {
		v := decode[struct {
			Fn          string
			P, Holm, BH []float64
		}](t, raw)
		nearSlice(t, "Holm", Holm(v.P), v.Holm)
		nearSlice(t, "BH", BH(v.P), v.BH)
	},
	"sign_flip": func(t *testing.T, raw json.RawMessage) {
		v := decode[struct {
			Fn          string
			Totals      []int
			Exact, Midp float64
		}](t, raw)
		near(t, "exact", SignFlip(v.Totals), v.Exact)
		p, equal := signFlip(v.Totals)
		near(t, "mid-p", p-equal/2, v.Midp)
	},
	"mcnemar_power": func(t *testing.T, raw json.RawMessage) {
		v := decode[struct {
			Fn              string
			N               int
			P10, P01, Alpha float64
			Exact, Midp     float64
			Connor          float64 `json:"connor_n_80"`
		}](t, raw)
		near(t, "exact", McNemarPower(v.N, v.P10, v.P01, v.Alpha), v.Exact)
		crit := criticalCounts(v.N, v.Alpha, McNemarMidP)
		near(t, "mid-p", discordantPower(v.P10, v.P01, crit), v.Midp)
		near(t, "sample size", SampleSizeMcNemar(v.P10, v.P01, v.Alpha, .8), v.Connor)
	},
	"mde_binary": func(t *testing.T, raw json.RawMessage) {
		v := decode[struct {
			Fn                      string
			N                       int
			Psi0, Alpha, Power, MDE float64
		}](t, raw)
		mde, ok := MDEBinary(v.N, v.Psi0, v.Alpha, v.Power)
		if !ok {
			t.Fatalf("MDEBinary found none, want %v", v.MDE)
		}
		nearWithin(t, "mde", mde, v.MDE, mdeTolerance)
	},
	"cluster_t": func(t *testing.T, raw json.RawMessage) {
		v := decode[struct {
			Fn      string
			D       []float64
			T, Hull [2]float64
		}](t, raw)
		lo, hi := TInterval(v.D, .05)
		near(t, "t lower", lo, v.T[0])
		near(t, "t upper", hi, v.T[1])
		lo, hi, _ = Hull(v.D, .05)
		near(t, "hull lower", lo, v.Hull[0])
		near(t, "hull upper", hi, v.Hull[1])
	},
	"clustered_se": func(t *testing.T, raw json.RawMessage) {
		v := decode[struct {
			Fn      string
			Y       []float64
			Cluster []int
			SE      float64
		}](t, raw)
		near(t, "se", ClusteredSE(v.Y, v.Cluster), v.SE)
	},
	"e_binary": func(t *testing.T, raw json.RawMessage) {
		v := decode[struct {
			Fn   string
			B, C int
			E    float64
		}](t, raw)
		near(t, "E", EBinary(v.B, v.C), v.E)
	},
}

func TestVectors_everyOneRuns(t *testing.T) {
	file, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []json.RawMessage
	if err := json.Unmarshal(file, &vectors); err != nil {
		t.Fatal(err)
	}
	ran := make(map[string]int)
	for i, raw := range vectors {
		var head struct{ Fn string }
		if err := json.Unmarshal(raw, &head); err != nil {
			t.Fatalf("vector %d: %v", i, err)
		}
		test, known := vectorTests[head.Fn]
		if !known {
			t.Errorf("vector %d is for the function %q, which no test knows", i, head.Fn)
			continue
		}
		ran[head.Fn]++
		t.Run(fmt.Sprintf("%s/%d", head.Fn, i), func(t *testing.T) { test(t, raw) })
	}
	for fn := range vectorTests {
		if ran[fn] == 0 {
			t.Errorf("no vector is left for %q", fn)
		}
	}
	// Vectors are added, never dropped.
	if want := 47; len(vectors) < want {
		t.Errorf("%d vectors, want at least %d", len(vectors), want)
	}
}

// TestVectors_published holds the published rows that vectors.json does not.
func TestVectors_published(t *testing.T) {
	nearSlice(t, "Holm", Holm([]float64{.01, .04, .03, .005}), []float64{.03, .06, .06, .02})
	nearSlice(t, "BH", BH([]float64{.01, .04, .03, .005}), []float64{.02, .04, .04, .02})

	// Tango at another level, as contingencytables prints it.
	lo, hi := Tango(0, 1, 44, .10)
	nearWithin(t, "Tango 90 % lower", lo, -.0957, 5e-5)
	nearWithin(t, "Tango 90 % upper", hi, .0365, 5e-5)

	// Connor and Miettinen's table, and Miller's worked number.
	nearWithin(t, "sample size, power .8", SampleSizeMcNemar(.2, .1, .05, .8), 233.095, 5e-4)
	nearWithin(t, "sample size, power .9", SampleSizeMcNemar(.2, .1, .05, .9), 311.047, 5e-4)
	nearWithin(t, "Miller's n", SampleSizeMean(1./9, .03, .05, .8), 969.0, .05)

	// The cluster totals behind the t vector: four times its differences.
	nearWithin(t, "sign-flip", SignFlip([]int{1, -1, 2, 0, 3, 1, -2, 1, 2, 0}), .242188, 5e-7)

	if mde, ok := MDEBinary(20, .2, .0025, .8); ok || !math.IsInf(mde, 1) {
		t.Errorf("MDEBinary(20, .2, .0025, .8) = %v, %v, want +Inf and none", mde, ok)
	}
}

// TestVectors_adjust_anyOrder shuffles a family by reversing it: adjusted
// values belong to their p-value, not to its place.
func TestVectors_adjust_anyOrder(t *testing.T) {
	p := []float64{.01, .04, .03, .005, .03, 1, 0}
	for name, adjust := range map[string]func([]float64) []float64{"Holm": Holm, "BH": BH} {
		forward := adjust(p)
		q := slices.Clone(p)
		slices.Reverse(q)
		backward := adjust(q)
		slices.Reverse(backward)
		nearSlice(t, name, backward, forward)
		if len(adjust(nil)) != 0 {
			t.Errorf("%s of an empty family is not empty", name)
		}
	}
}

// decode reads a vector and refuses fields that T does not name, so that no
// expected value is silently ignored.
func decode[T any](t *testing.T, raw json.RawMessage) T {
	t.Helper()
	var v T
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	nearWithin(t, what, got, want, tolerance*max(1, math.Abs(want)))
}

func nearWithin(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s: got %.12g, want %.12g, apart by %.2g", what, got, want, got-want)
	}
}

func nearSlice(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		near(t, fmt.Sprintf("%s[%d]", what, i), got[i], want[i])
	}
}

func nearInterval(t *testing.T, what string, f func(x, n int, alpha float64) (lo, hi float64), x, n int, want [2]float64) {
	t.Helper()
	lo, hi := f(x, n, .05)
	near(t, what+" lower", lo, want[0])
	near(t, what+" upper", hi, want[1])
}

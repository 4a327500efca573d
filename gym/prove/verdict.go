package prove

import (
	"fmt"
	"slices"

	"provegym/gym/prove/stats"
)

// Word is a verdict without its reason.
type Word string

const (
	Improved            Word = "IMPROVED"
	Regressed           Word = "REGRESSED"
	UnchangedWithin     Word = "UNCHANGED_WITHIN"
	NoSignificantChange Word = "NO_SIGNIFICANT_CHANGE"
	Inconclusive        Word = "INCONCLUSIVE"
	Invalid             Word = "INVALID"
)

// Reasons of Inconclusive.
const (
	reasonData    = "data"    // too few complete pairs
	reasonMissing = "missing" // what was lost could undo it
	reasonPower   = "power"   // too small a design
)

// Verdict is what a declared look says of one row.
type Verdict struct {
	Word   Word   `json:"word"`
	Reason string `json:"reason,omitempty"` // of INCONCLUSIVE and INVALID; the margin of UNCHANGED_WITHIN
	Label  string `json:"label"`            // INCONCLUSIVE(power)
}

func verdict(w Word, reason string) *Verdict {
	v := &Verdict{w, reason, string(w)}
	if reason != "" {
		v.Label += "(" + reason + ")"
	}
	return v
}

// adjust fills in Holm's p of the rows of one family of m tests. Tests without a usable row, those of demoted conditions
// included, stay in the family with p = 1.
func adjust(r *Result, rows []int, m int) {
	if len(rows) == 0 {
		return
	}
	ps := make([]float64, m)
	for k := range ps {
		ps[k] = 1
		if k < len(rows) && r.Rows[rows[k]].P != nil {
			ps[k] = *r.Rows[rows[k]].P
		}
	}
	order := make([]int, m)
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case ps[a] < ps[b]:
			return -1
		case ps[a] > ps[b]:
			return 1
		}
		return 0
	})
	holm := stats.Holm(ps)
	before := 0.0
	for rank, k := range order {
		if k < len(rows) && r.Rows[rows[k]].P != nil {
			row := &r.Rows[rows[k]]
			row.Holm = &holm[k]
			row.setAdverse(func(p float64) float64 { return max(before, min(1, float64(m-rank)*p)) })
		}
		before = holm[k]
	}
}

// adjustAlone is adjust for a family of one.
func (r *Row) adjustAlone() {
	p := *r.P
	r.Holm = &p
	r.setAdverse(func(p float64) float64 { return p })
}

// setAdverse recomputes the adjusted p as if every lost episode had gone against the claim, at the same rank.
func (r *Row) setAdverse(adjusted func(p float64) float64) {
	if r.Lost == 0 {
		return
	}
	t := r.againstClaim()
	p := adjusted(stats.McNemarExact(t.b, t.c))
	r.Adverse = &p
}

func (r *Row) againstClaim() tally {
	if r.B >= r.C {
		return r.adverse[0]
	}
	return r.adverse[1]
}

// falseDiscovery fills in Benjamini and Hochberg's q of exploratory rows.
func falseDiscovery(r *Result, rows []int) {
	var ps []float64
	var with []int
	for _, i := range rows {
		if r.Rows[i].P != nil {
			ps, with = append(ps, *r.Rows[i].P), append(with, i)
		}
	}
	q := stats.BH(ps)
	for k, i := range with {
		r.Rows[i].Q = &q[k]
	}
}

// decide returns the verdict of a row: the first rule that applies.
func (r *Row) decide(level, maxLost float64) *Verdict {
	const noise = 1e-9 // 5 of 100 is not more than .05
	switch {
	case len(r.Problems) > 0:
		return verdict(Invalid, r.Problems[0])
	case r.N < minClusters || float64(r.Lost) > maxLost*float64(r.Planned)+noise:
		return verdict(Inconclusive, reasonData)
	case significant(*r.Holm, level, *r.Change):
		if r.Adverse != nil && !r.survives(level) {
			return verdict(Inconclusive, reasonMissing)
		}
		if r.B > r.C {
			return verdict(Improved, "")
		}
		return verdict(Regressed, "")
	case -r.Delta < r.Margin.Lo && r.Margin.Hi < r.Delta:
		return verdict(UnchangedWithin, trim(r.Delta))
	case r.MDE != nil && *r.MDE <= r.DMin:
		return verdict(NoSignificantChange, "")
	}
	return verdict(Inconclusive, reasonPower)
}

func significant(holm, level float64, change Interval) bool {
	return holm <= level && (change.Lo > 0 || change.Hi < 0)
}

// survives reports whether the claim holds, in its direction, with every lost episode against it.
func (r *Row) survives(level float64) bool {
	t := r.againstClaim()
	return (t.b > t.c) == (r.B > r.C) && significant(*r.Adverse, level, t.interval(1-Confidence))
}

// finish gives the row its verdict, if it may have one, the watch flag and its sentence.
func (r *Row) finish(p Plan, look *Result, declared bool) {
	if declared {
		r.Verdict = r.decide(look.Level, p.Lost.MaxShare)
	}
	if look.Sealed && r.P != nil && r.C > r.B && *r.P <= 1-Confidence && (r.Verdict == nil || r.Verdict.Word != Regressed) {
		r.Flags = append(r.Flags, fmt.Sprintf("watch: possible regression (unadjusted p %s)", pvalue(*r.P)))
	}
	r.Sentence = r.sentence(look)
}

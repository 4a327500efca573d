package prove

import (
	"math"

	"provegym/gym/prove/stats"
)

// TableRow says what one condition could detect at one look.
type TableRow struct {
	Condition string   `json:"condition"` // or "overall"
	Look      string   `json:"look"`
	Tier      string   `json:"tier,omitempty"`
	Family    string   `json:"family"`
	G         int      `json:"G"`
	Level     float64  `json:"level"` // of one test: alpha x weight / m
	Psi0      float64  `json:"psi0"`
	DMin      float64  `json:"dmin"`
	MDE       *float64 `json:"mde"`   // null: no change could reach 80 % power
	Needs     *int     `json:"needs"` // clusters from which dmin is detectable; null: none would do
	Enough    bool     `json:"enough"`
}

// Planning is what to look at before freezing.
type Planning struct {
	Rows     []TableRow `json:"rows"` // by look, then condition, then the pooled row
	Warnings []string   `json:"warnings"`
}

// OverallRow is the name of the row of all confirmatory pairs pooled.
const OverallRow = "overall"

// Table returns the MDE of every condition at every look of a draft. It needs neither key nor split.
//
// Errors: as Freeze, but for what needs the split.
func Table(d Plan) (Planning, error) {
	p, bad := d.complete()
	if err := bad.err(); err != nil {
		return Planning{}, err
	}
	t := Planning{Warnings: p.warnings()}
	for _, look := range p.Looks {
		level, pooled := p.Alpha*look.Weight, 0
		for i := range p.Conditions {
			c := &p.Conditions[i]
			t.Rows = append(t.Rows, tableRow(c.ID, look.ID, c.Tier, c.Family, c.G, p.levelOf(c, level), c.Psi0, c.DMin))
			if c.Family == Confirmatory {
				pooled += c.G
			}
		}
		if pooled > 0 {
			t.Rows = append(t.Rows, tableRow(OverallRow, look.ID, "", OverallRow, pooled, level, p.Overall.Psi0, p.Overall.DMin))
		}
	}
	return t, nil
}

func tableRow(condition, look, tier, family string, g int, level, psi0, dmin float64) TableRow {
	r := TableRow{condition, look, tier, family, g, level, psi0, dmin, detectable(g, psi0, level), needed(psi0, dmin, level), false}
	r.Enough = r.MDE != nil && *r.MDE <= dmin
	return r
}

// needed returns about how many clusters detect a change of d with the usual power, or nil if more than 100,000 are needed
// or d does not fit beside the noise. It starts from the formula, which is a little short, and asks the exact power.
func needed(psi0, d, level float64) *int {
	if psi0+d > 1 {
		return nil
	}
	n := int(math.Ceil(stats.SampleSizeMcNemar(psi0/2+d, psi0/2, level, Power)))
	for ; n <= 100_000; n += max(1, n/50) {
		if stats.McNemarPower(n, psi0/2+d, psi0/2, level) >= Power {
			return &n
		}
	}
	return nil
}

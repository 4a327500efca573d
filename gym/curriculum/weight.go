package curriculum

import "math"

const (
	floorShare = .10 // e_c: spread evenly over all items
	guardShare = .10 // e_f: for what is being forgotten
	staleShare = .15 // of the rest: by how long an item was not drawn
	capShare   = .10 // most that one item gets, where there are at least 20
)

// Weight is an item's share of the draws and where it comes from.
type Weight struct {
	Item      string  `json:"item"`
	Kind      Kind    `json:"kind"`
	Status    Status  `json:"status"`
	Weight    float64 `json:"weight"`
	Mean      float64 `json:"mean"`      // posterior pass rate over the last 16 outcomes
	Learn     float64 `json:"learn"`     // L = E[p(1-p)]
	Between   float64 `json:"between"`   // I = P(.1 < p < .9)
	Stale     int     `json:"stale"`     // A = updates since it was last drawn
	Forgotten float64 `json:"forgotten"` // F = max(0, peak - mean - .10) if seen >= 8 and peak > .6
	Seen      int     `json:"seen"`
}

// Weights returns the share of every admitted item, in the order added. With J of them,
//
//	w = (1-e_c-e_f) [.85 L I / sum(L I) + .15 A / sum(A)] + e_c / J + e_f F / sum(F)
//
// where e_c = e_f = .10, and e_f is 0 while nothing is forgotten. A sum that is 0 is spread evenly over the active items.
// Parked and solved items have L I = A = 0, parked ones F = 0 too. Then no item gets more than max(.10, 2/J): what is cut
// goes to the others in proportion, again until none is above.
func (s *Sampler) Weights() []Weight {
	var out []Weight
	for _, t := range s.st.Items {
		st := t.status()
		if st == Pending || st == Impossible {
			continue
		}
		w := Weight{Item: t.ID, Kind: t.Kind, Status: st, Mean: t.mean(), Stale: s.st.Updates - t.Drawn, Seen: t.Seen, Forgotten: t.forgotten()}
		w.Learn, w.Between = t.learn()
		out = append(out, w)
	}
	weigh(out)
	return out
}

// weigh fills in the weights.
func weigh(ws []Weight) {
	if len(ws) == 0 {
		return
	}
	var sumLI, sumA, sumF, active float64
	for i := range ws {
		w := &ws[i]
		switch w.Status {
		case Active:
			sumLI += w.Learn * w.Between
			sumA += float64(w.Stale)
			active++
		case Parked:
			w.Forgotten = 0
		}
		sumF += w.Forgotten
	}
	guard := guardShare
	if sumF == 0 {
		guard = 0
	}
	part := func(x, sum float64) float64 {
		if sum > 0 {
			return x / sum
		}
		return 1 / active
	}
	j, total := float64(len(ws)), 0.
	for i := range ws {
		w := &ws[i]
		w.Weight = floorShare / j
		if w.Status == Active {
			w.Weight += (1 - floorShare - guard) * ((1-staleShare)*part(w.Learn*w.Between, sumLI) + staleShare*part(float64(w.Stale), sumA))
		}
		if guard > 0 {
			w.Weight += guard * w.Forgotten / sumF
		}
		total += w.Weight
	}
	for i := range ws {
		ws[i].Weight /= total // 1 already, unless no item is active
	}
	most := math.Max(capShare, 2/j)
	capped := make([]bool, len(ws))
	for again := true; again; {
		again = false
		room, rest := 1., 0.
		for i, w := range ws {
			if capped[i] {
				room -= most
			} else {
				rest += w.Weight
			}
		}
		for i := range ws {
			if capped[i] {
				continue
			}
			if ws[i].Weight *= room / rest; ws[i].Weight > most {
				ws[i].Weight, capped[i], again = most, true, true
			}
		}
	}
}

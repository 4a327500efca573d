package breaker

import (
	"slices"

	"provegym/gym"
)

// levels numbers the (factor, level) tuples of a space: tuple first[f]+l is level l of factor f.
type levels struct {
	first []int
	total int
}

func levelsOf(s Space) levels {
	var v levels
	for _, f := range s.Factors {
		v.first = append(v.first, v.total)
		v.total += len(f.Levels)
	}
	return v
}

// pair numbers the pair of level la of factor a and level lb of factor b, for a < b.
func (v levels) pair(a, la, b, lb int) int { return (v.first[a]+la)*v.total + v.first[b] + lb }

// coverCandidates is how many rows are built for each one kept (Cohen, Dalal, Fredman and Patton 1997 use 50; beyond 30
// the array does not get shorter here).
const coverCandidates = 30

// cover returns a pairwise covering array by the greedy AETG method: every pair of levels of two factors stands in at least
// one row, unless no allowed cell has it. Each row is the best of coverCandidates; a candidate starts at the tuple in most
// uncovered pairs, and fills the other factors in random order with the level that covers most.
func cover(s Space, key gym.Key) []Cell {
	v := levelsOf(s)
	open := make([]bool, v.total*v.total)
	deg := make([]int, v.total) // uncovered pairs of each tuple
	left := 0
	each := func(fn func(a, la, b, lb int)) {
		for a := range s.Factors {
			for b := a + 1; b < len(s.Factors); b++ {
				for la := range s.Factors[a].Levels {
					for lb := range s.Factors[b].Levels {
						fn(a, la, b, lb)
					}
				}
			}
		}
	}
	each(func(a, la, b, lb int) {
		open[v.pair(a, la, b, lb)] = true
		deg[v.first[a]+la]++
		deg[v.first[b]+lb]++
		left++
	})
	close := func(a, la, b, lb int) {
		if i := v.pair(a, la, b, lb); open[i] {
			open[i] = false
			deg[v.first[a]+la]--
			deg[v.first[b]+lb]--
			left--
		}
	}
	isOpen := func(a, la, b, lb int) bool {
		if a > b {
			a, la, b, lb = b, lb, a, la
		}
		return open[v.pair(a, la, b, lb)]
	}
	take := func(row Cell) {
		for a := range row {
			for b := a + 1; b < len(row); b++ {
				close(a, int(row[a]), b, int(row[b]))
			}
		}
	}

	var rows []Cell
	n := len(s.Factors)
	for left > 0 {
		rng := key.At(uint64(len(rows))).Stream()
		var best Cell
		bestNew := 0
		for range coverCandidates {
			row, gain := make(Cell, n), 0
			f0, l0, most := 0, 0, -1
			ties := 0
			for f := range s.Factors {
				for l := range s.Factors[f].Levels {
					d := deg[v.first[f]+l]
					if d > most {
						most, ties = d, 0
					}
					if d == most {
						ties++
						if rng.IntN(ties) == 0 {
							f0, l0 = f, l
						}
					}
				}
			}
			order := make([]int, n)
			for i := range order {
				order[i] = i
			}
			rng.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
			i0 := slices.Index(order, f0)
			order[0], order[i0] = order[i0], order[0]
			row[f0] = uint8(l0)
			for i := 1; i < n; i++ {
				f, most, ties := order[i], -1, 0
				for l := range s.Factors[f].Levels {
					k := 0
					for _, g := range order[:i] {
						if isOpen(f, l, g, int(row[g])) {
							k++
						}
					}
					if k > most {
						most, ties = k, 0
					}
					if k == most {
						ties++
						if rng.IntN(ties) == 0 {
							row[f] = uint8(l)
						}
					}
				}
				gain += most
			}
			if gain > bestNew && s.Allows(row) {
				best, bestNew = row, gain
			}
		}
		if best != nil {
			take(best)
			rows = append(rows, best)
			continue
		}
		// No greedy row is allowed: take the first open pairs one by one, and give up those that no allowed cell has.
		done := false
		each(func(a, la, b, lb int) {
			if done || !open[v.pair(a, la, b, lb)] {
				return
			}
			p := s.Open()
			p[a], p[b] = la, lb
			if row, ok := s.Draw(&rng, p, nil); ok {
				take(row)
				rows = append(rows, slices.Clone(row))
				done = true
				return
			}
			close(a, la, b, lb)
		})
	}
	if n == 1 {
		for l := range s.Factors[0].Levels {
			if c := (Cell{uint8(l)}); s.Allows(c) {
				rows = append(rows, c)
			}
		}
	}
	return rows
}

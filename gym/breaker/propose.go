package breaker

import (
	"math"

	"provegym/gym"

	"gonum.org/v1/gonum/stat/distuv"
)

// evidence counts the episodes, of all stages, that no cause explains: altogether, by level and by pair of levels.
type evidence struct {
	levels
	n, fails         int
	levelN, levelF   []int // by level tuple
	pairN, pairFails []int // by levels.pair
}

func newEvidence(s Space) evidence {
	v := levelsOf(s)
	return evidence{
		levels: v,
		levelN: make([]int, v.total), levelF: make([]int, v.total),
		pairN: make([]int, v.total*v.total), pairFails: make([]int, v.total*v.total),
	}
}

func (e *evidence) add(c Cell, failed bool) {
	y := 0
	if failed {
		y = 1
	}
	e.n++
	e.fails += y
	for a := range c {
		t := e.first[a] + int(c[a])
		e.levelN[t]++
		e.levelF[t] += y
		for b := a + 1; b < len(c); b++ {
			i := e.pair(a, int(c[a]), b, int(c[b]))
			e.pairN[i]++
			e.pairFails[i] += y
		}
	}
}

// base is the failure rate of unexplained episodes, drawn towards a tenth while there are few.
func (e *evidence) base() float64 { return float64(e.fails+1) / float64(e.n+10) }

// suspicion is the marginal failure rate of one level, with the base rate counted twice.
func (e *evidence) suspicion(f, l int) float64 {
	t := e.first[f] + l
	return (float64(e.levelF[t]) + 2*e.base()) / (float64(e.levelN[t]) + 2)
}

// priorWeight is how many episodes the base rate counts for in a pair's posterior.
const priorWeight = 12

// thompson returns the pattern of the pair of levels with the highest draw from Beta(12m+f, 12(1-m)+n-f), where m is the
// base rate and f of n unexplained episodes with that pair failed.
func (e *evidence) thompson(s Space, rng *gym.Stream) Pattern {
	m := e.base()
	best, at := math.Inf(-1), [4]int{}
	for a := range s.Factors {
		for b := a + 1; b < len(s.Factors); b++ {
			for la := range s.Factors[a].Levels {
				for lb := range s.Factors[b].Levels {
					i := e.pair(a, la, b, lb)
					n, f := float64(e.pairN[i]), float64(e.pairFails[i])
					th := distuv.Beta{Alpha: priorWeight*m + f, Beta: priorWeight*(1-m) + n - f, Src: rng}.Rand()
					if th > best {
						best, at = th, [4]int{a, la, b, lb}
					}
				}
			}
		}
	}
	p := s.Open()
	if !math.IsInf(best, -1) {
		p[at[0]], p[at[2]] = at[1], at[3]
	}
	return p
}

// pairTries is how many masked or excluded cells a Thompson draw may hit before a uniform one replaces it.
const pairTries = 50

// propose returns the next search cell and whether the uniform floor drew it. It reports false when no unexplained cell was
// found.
func (s *Search) propose(id uint64) (c Cell, floor, ok bool) {
	for s.st.Covered < len(s.rows) {
		c := s.rows[s.st.Covered]
		s.st.Covered++
		if !s.masked(c) {
			return c, false, true
		}
	}
	rng := s.key.Sub("propose").At(id).Stream()
	if rng.Float64() < s.opts.Floor {
		c, ok = s.space.Draw(&rng, s.space.Open(), s.masked)
		return c, true, ok
	}
	p := s.seen.thompson(s.space, &rng)
	c = make(Cell, len(p))
	for range pairTries {
		for i, l := range p {
			if l < 0 {
				l = rng.IntN(len(s.space.Factors[i].Levels))
			}
			c[i] = uint8(l)
		}
		if s.space.Allows(c) && !s.masked(c) {
			return c, false, true
		}
	}
	c, ok = s.space.Draw(&rng, s.space.Open(), s.masked)
	return c, false, ok
}

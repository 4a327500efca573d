package breaker

import (
	"flag"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"

	"provegym/gym"
)

var seed = flag.Uint64("seed", 7, "root of all randomness in these tests")

// root prints the one line that reruns a failing test, and returns its key.
func root(t *testing.T) gym.Key {
	t.Helper()
	t.Logf("seed %d", *seed)
	t.Cleanup(func() {
		if t.Failed() {
			fmt.Printf("rerun: go test ./gym/breaker -run '^%s$' -seed %d\n", t.Name(), *seed)
		}
	})
	return gym.NewKey(*seed, t.Name())
}

// dialSpace is the synthetic space: 8 dials of 4 levels and 6 families.
func dialSpace() Space {
	s := Space{Factors: []Factor{{Name: "family", Levels: []string{"a", "b", "c", "d", "e", "f"}, Nominal: Free}}}
	for i := range 8 {
		s.Factors = append(s.Factors, Factor{Name: fmt.Sprintf("d%d", i), Levels: []string{"0", "1", "2", "3"}})
	}
	return s
}

// region is a planted conjunction: the levels each constrained factor may have.
type region struct {
	want map[int][]int
	q    float64
}

func (r region) missing(c Cell) int {
	n := 0
	for f, ls := range r.want {
		if !slices.Contains(ls, int(c[f])) {
			n++
		}
	}
	return n
}

// foundBy reports whether cause p implies the region.
func (r region) foundBy(p Pattern) bool {
	for f, ls := range r.want {
		if p[f] < 0 || !slices.Contains(ls, p[f]) {
			return false
		}
	}
	return true
}

// world is a policy whose failure probability is known in every cell.
type world struct {
	regions []region
	halo    float64 // added where one constraint of a region is missing
}

// q is .04 + .006 x the sum of levels outside the regions, and the largest regional q inside.
func (w world) q(c Cell) float64 {
	q := .04
	for _, l := range c[1:] {
		q += .006 * float64(l)
	}
	in := 0.
	halo := 0.
	for _, r := range w.regions {
		switch r.missing(c) {
		case 0:
			in = max(in, r.q)
		case 1:
			halo = w.halo
		}
	}
	return max(in, math.Min(q+halo, 1))
}

// planted draws a world of 8 regions over the dials. mixed: 2 to 4 constraints, single levels or the upper half (volumes 1/4
// to 1/256); rare: 3 to 5 single levels (1/64 to 1/1024), halo .15.
func planted(key gym.Key, rare bool) world {
	rng := key.Stream()
	var w world
	if rare {
		w.halo = .15
	}
	for len(w.regions) < 8 {
		r := region{map[int][]int{}, .6 + .35*rng.Float64()}
		k := 2 + rng.IntN(3)
		if rare {
			k++
		}
		order := []int{1, 2, 3, 4, 5, 6, 7, 8}
		rng.Shuffle(8, func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, f := range order[:k] {
			switch {
			case !rare && rng.IntN(2) == 0:
				r.want[f] = []int{2, 3}
			default:
				r.want[f] = []int{1 + rng.IntN(3)}
			}
		}
		w.regions = append(w.regions, r)
	}
	return w
}

// play runs one probe: the outcome is a function of cell and seed alone.
func (w world) play(p Probe) Result {
	rng := gym.NewKey(p.Seed, "play").Stream()
	return Result{ID: p.ID, Failed: rng.Float64() < w.q(p.Cell)}
}

func (w world) run(t *testing.T, s *Search, batch int) {
	t.Helper()
	for !s.Done() {
		var rs []Result
		probes := s.Ask(batch)
		for _, p := range probes {
			rs = append(rs, w.play(p))
		}
		if err := s.Tell(rs); err != nil {
			t.Fatal(err)
		}
		if len(probes) == 0 && !s.Done() {
			t.Fatal("the search asks nothing and is not done")
		}
	}
}

// score says how well a finished search did: recall of the planted regions, area under the discovery curve, false causes
// (true q below .4) and factors beyond those of the region, all causes together.
type score struct{ recall, audc, false, extra, causes, told float64 }

func (w world) score(s *Search) score {
	var out score
	found := map[int]bool{}
	budget := float64(s.opts.Budget)
	for _, c := range s.Causes() {
		if c.ImpliedBy != "" {
			continue
		}
		out.causes++
		q, n := 0., 0.
		plain := s.space.plain(c.pattern)
		for fam := range 6 {
			if plain[0] >= 0 && plain[0] != fam {
				continue
			}
			cell := make(Cell, 9)
			for f, l := range plain {
				cell[f] = uint8(max(l, 0))
			}
			cell[0] = uint8(fam)
			q += w.q(cell)
			n++
		}
		if q/n < .4 {
			out.false++
		}
		size, need := 0, -1
		for _, l := range c.pattern {
			if l >= 0 {
				size++
			}
		}
		for i, r := range w.regions {
			if r.foundBy(c.pattern) {
				need = max(need, len(r.want))
				if !found[i] {
					found[i] = true
					out.audc += (budget - float64(c.FoundAt)) / budget / float64(len(w.regions))
				}
			}
		}
		if need >= 0 {
			out.extra += float64(size - need)
		}
	}
	out.recall = float64(len(found)) / float64(len(w.regions))
	out.told = float64(s.told)
	return out
}

// TestSearch_findsPlantedCauses compares the search with uniform proposals without masks, on the same worlds and with the same
// tests.
func TestSearch_findsPlantedCauses(t *testing.T) {
	key := root(t)
	const worlds = 40
	for _, kind := range []string{"mixed", "rare"} {
		var ours, plain [worlds]score
		var wg sync.WaitGroup
		gate := make(chan bool, runtime.GOMAXPROCS(0))
		for i := range worlds {
			wg.Add(1)
			go func() {
				defer wg.Done()
				gate <- true
				defer func() { <-gate }()
				k := key.Sub(kind).At(uint64(i))
				w := planted(k.Sub("world"), kind == "rare")
				for _, base := range []bool{false, true} {
					s, err := New(dialSpace(), k, Options{Budget: 2000, Patience: -1, uniform: base, unmasked: base, Floor: map[bool]float64{true: 1}[base]})
					if err != nil {
						t.Error(err)
						return
					}
					w.run(t, s, 1)
					if base {
						plain[i] = w.score(s)
					} else {
						ours[i] = w.score(s)
					}
				}
			}()
		}
		wg.Wait()
		mean := func(xs [worlds]score) (m score) {
			for _, x := range xs {
				m.recall += x.recall / worlds
				m.audc += x.audc / worlds
				m.false += x.false / worlds
				m.extra += x.extra
				m.causes += x.causes
				m.told += x.told / worlds
			}
			m.extra /= m.causes
			m.causes /= worlds
			return m
		}
		a, b := mean(ours), mean(plain)
		t.Logf("%s: recall %.3f (uniform %.3f), AUDC %.3f (%.3f), false causes a run %.2f (%.2f), extra factors a cause %.3f (%.3f), causes %.1f (%.1f)",
			kind, a.recall, b.recall, a.audc, b.audc, a.false, b.false, a.extra, b.extra, a.causes, b.causes)
		if a.recall < b.recall+.10 || a.false > .2 || a.extra > .15 {
			t.Errorf("%s worlds: want recall at least .10 above uniform, false causes <= .2 a run, extra factors <= .15 a cause", kind)
		}
	}
}

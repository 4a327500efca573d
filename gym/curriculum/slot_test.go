package curriculum

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"provegym/gym"
	"provegym/gym/breaker"
)

func stateOf(t *testing.T, s *Sampler) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func atAll(t *testing.T, s *Sampler, slots ...uint64) []Task {
	t.Helper()
	tasks, err := s.AtAll(slots)
	if err != nil {
		t.Fatal(err)
	}
	return tasks
}

func count(n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = uint64(i)
	}
	return out
}

// TestSampler_at: a slot's task depends on state and slot alone. Two ranks that draw in different orders, one of them resumed
// at every update, agree at every version; drawing changes nothing.
func TestSampler_at(t *testing.T) {
	for _, uniform := range []bool{false, true} {
		key := root(t)
		rank0 := start(t, key, Options{Solvable: true, Uniform: uniform}, cause("d4=1"), cause("family=a", "d3=2"))
		rank1 := start(t, key, Options{Solvable: true, Uniform: uniform}, cause("d4=1"), cause("family=a", "d3=2"))
		var last []Task
		for update := range 12 {
			before := stateOf(t, rank0)
			tasks := atAll(t, rank0, count(64)...)
			if stateOf(t, rank0) != before {
				t.Fatal("drawing changed the state")
			}
			for _, slot := range []uint64{63, 7, 7, 0, math.MaxUint64} {
				one, err := rank1.At(slot)
				if err != nil {
					t.Fatal(err)
				}
				if slot < 64 && cmp.Diff(tasks[slot], one) != "" || one.ID != slot || one.Group != slot {
					t.Fatalf("uniform %v, update %d, slot %d: %+v", uniform, update, slot, one)
				}
			}
			if rank0.Version() != rank1.Version() {
				t.Fatalf("versions %d and %d", rank0.Version(), rank1.Version())
			}
			same := 0
			for i := range last {
				if last[i].Seed == tasks[i].Seed {
					same++
				}
			}
			if same > 0 {
				t.Errorf("%d of 64 slots draw what they drew at the version before", same)
			}
			last = tasks
			results := map[string]*ItemResult{}
			var list []ItemResult
			for _, task := range tasks {
				if !slices.ContainsFunc([]byte{0, 1, 2, 3, 4}, func(f byte) bool { return task.Cell[0] == f }) {
					t.Fatalf("%s is held out", task.Condition)
				}
				r := results[task.Item]
				if r == nil {
					r = &ItemResult{Item: task.Item}
					results[task.Item] = r
				}
				r.Episodes++
				if task.Seed%3 == 0 {
					r.Passes++
				}
			}
			for _, id := range sortedKeys(results) {
				list = append(list, *results[id])
			}
			for _, s := range []*Sampler{rank0, rank1} {
				s.Checkpoint(fmt.Sprint("c", update/3))
				if err := s.Advance(list); err != nil {
					t.Fatal(err)
				}
			}
			resumed, err := Resume(dialSpace(), key, []byte(stateOf(t, rank1)))
			if err != nil {
				t.Fatal(err)
			}
			if resumed.Version() != rank1.Version() {
				t.Errorf("version %d after a resume, %d before", resumed.Version(), rank1.Version())
			}
			rank1 = resumed
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// TestSampler_atDrawsByTheWeights holds the shares of many slots against the weights, and their seeds against those of Ask.
func TestSampler_atDrawsByTheWeights(t *testing.T) {
	const n = 30_000
	key := root(t)
	s := start(t, key, Options{Solvable: true}, cause("d4=1"))
	if err := s.Advance([]ItemResult{{Item: "family=a", Passes: 30, Episodes: 30}, {Item: "family=b", Passes: 4, Episodes: 8}}); err != nil {
		t.Fatal(err)
	}
	got, seeds := map[string]int{}, map[uint64]bool{}
	for _, task := range atAll(t, s, count(n)...) {
		got[task.Item]++
		seeds[task.Seed] = true
	}
	if len(seeds) != n {
		t.Errorf("%d seeds of %d slots", len(seeds), n)
	}
	for _, w := range s.Weights() {
		if p := float64(got[w.Item]) / n; math.Abs(p-w.Weight) > 5*math.Sqrt(w.Weight*(1-w.Weight)/n) {
			t.Errorf("item %s in %.4f of the slots, weight %.4f", w.Item, p, w.Weight)
		}
	}
	for _, task := range ask(t, s, 2000, 1) {
		if seeds[task.Seed] {
			t.Fatalf("slots and Ask share the seed %d", task.Seed)
		}
	}
}

// TestSampler_advanceEqualsTell: by item or by task, the same results leave the same weights, staleness included.
func TestSampler_advanceEqualsTell(t *testing.T) {
	key := root(t)
	a := start(t, key, Options{Solvable: true}, cause("d4=1"))
	b := start(t, key, Options{Solvable: true}, cause("d4=1"))
	rng := key.Sub("results").Stream()
	for update := range 15 {
		tasks := ask(t, a, 24, 1)
		byItem := map[string][]Task{}
		for _, task := range tasks {
			byItem[task.Item] = append(byItem[task.Item], task)
		}
		var told []Result
		var results []ItemResult
		for _, id := range sortedKeys(byItem) {
			r := ItemResult{Item: id, Episodes: len(byItem[id])}
			r.Passes = rng.IntN(r.Episodes + 1)
			if r.Lost = rng.IntN(2); r.Lost == r.Episodes {
				r.Lost = 0
			}
			r.Episodes -= r.Lost
			r.Passes = min(r.Passes, r.Episodes)
			for k, task := range byItem[id] {
				told = append(told, Result{ID: task.ID, Passed: k < r.Episodes && r.Passed(k), Lost: k >= r.Episodes})
			}
			results = append(results, r)
		}
		for _, s := range []*Sampler{a, b} {
			s.Checkpoint(fmt.Sprint("c", update/4))
		}
		if err := errors.Join(a.Tell(told), b.Advance(results)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(a.Weights(), b.Weights()); d != "" {
			t.Fatalf("update %d (told, advanced):\n%s", update, d)
		}
	}
}

func TestSampler_advanceRefuses(t *testing.T) {
	s := start(t, root(t), Options{Solvable: true})
	before := stateOf(t, s)
	good := ItemResult{Item: "family=a", Passes: 1, Episodes: 2}
	for _, c := range []struct {
		r  ItemResult
		is error
	}{
		{ItemResult{Item: "family=f", Episodes: 1}, gym.ErrUnknown}, {ItemResult{Item: "", Episodes: 1}, gym.ErrUnknown},
		{ItemResult{Item: "family=a", Passes: 2, Episodes: 1}, gym.ErrBadInput}, {ItemResult{Item: "family=a", Passes: -1}, gym.ErrBadInput},
		{ItemResult{Item: "family=a", Lost: -1}, gym.ErrBadInput}, {ItemResult{Item: "family=a", Episodes: 1 << 40}, gym.ErrBadInput},
		{ItemResult{Item: "family=a", Lost: math.MaxInt}, gym.ErrBadInput},
	} {
		if err := s.Advance([]ItemResult{good, c.r}); !errors.Is(err, c.is) {
			t.Errorf("%+v: %v", c.r, err)
		}
	}
	if stateOf(t, s) != before {
		t.Error("a refused update changed the state")
	}
	if err := s.Advance([]ItemResult{{Item: UniformItem, Passes: 3, Episodes: 4}}); err != nil || s.find("family=a").Seen != 0 || s.Version() != 1 {
		t.Errorf("the uniform item: %v, version %d", err, s.Version())
	}
	waiting := start(t, root(t), Options{})
	if _, err := waiting.At(0); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("nothing admitted: %v", err)
	}
}

// TestSampler_version: what changes the draws of slots raises it, and nothing else does.
func TestSampler_version(t *testing.T) {
	key := root(t)
	s := start(t, key, Options{})
	steps := []struct {
		what string
		do   func() error
		up   int
	}{
		{"an entry test", func() error { return s.Admit("family=a", true) }, 1},
		{"the same again", func() error { return s.Admit("family=a", true) }, 0},
		{"kept out", func() error { return s.Admit("family=a", false) }, 1},
		{"admitted after all", func() error { return errors.Join(s.Admit("family=a", true), s.Admit("family=b", true)) }, 2},
		{"a checkpoint", func() error { s.Checkpoint("c1"); return nil }, 1},
		{"the same checkpoint", func() error { s.Checkpoint("c1"); return nil }, 0},
		{"a cause", func() error { _, err := s.Add([]breaker.Cause{cause("d4=1")}); return err }, 1},
		{"a known cause", func() error { _, err := s.Add([]breaker.Cause{cause("d4=1")}); return err }, 0},
		{"an update", func() error { return s.Advance(nil) }, 1},
		{"a draw", func() error { _, err := s.Ask(64, 1); return err }, 1},
		{"a draw of what is fresh", func() error { _, err := s.Ask(64, 1); return err }, 0},
		{"results", func() error { return s.Tell([]Result{{ID: 0, Passed: true}}) }, 1},
		{"an entry draw", func() error { _, err := s.Entry("d4=1"); return err }, 0},
		{"a slot", func() error { _, err := s.At(3); return err }, 0},
	}
	for _, c := range steps {
		before := s.Version()
		if err := c.do(); err != nil {
			t.Fatal(c.what, err)
		}
		if got := s.Version() - before; got != c.up {
			t.Errorf("%s raised the version by %d, not %d", c.what, got, c.up)
		}
	}
}

// TestItemResult_passed: as many passes as told, and no stretch of episodes has more than one above or below its share.
func TestItemResult_passed(t *testing.T) {
	for n := 1; n <= 40; n++ {
		for p := 0; p <= n; p++ {
			r := ItemResult{Passes: p, Episodes: n}
			sum := make([]int, n+1)
			for i := range n {
				sum[i+1] = sum[i]
				if r.Passed(i) {
					sum[i+1]++
				}
			}
			if sum[n] != p {
				t.Fatalf("%d of %d passes", sum[n], p)
			}
			for from := range n {
				for to := from + 1; to <= n; to++ {
					if d := float64(sum[to]-sum[from]) - float64((to-from)*p)/float64(n); math.Abs(d) >= 1 {
						t.Fatalf("%d passes of %d: episodes %d to %d have %d", p, n, from, to, sum[to]-sum[from])
					}
				}
			}
		}
	}
}

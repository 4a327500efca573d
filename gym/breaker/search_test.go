package breaker

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"provegym/gym"

	"github.com/google/go-cmp/cmp"
)

// sharp is a world in which a cell fails surely inside the regions and never outside.
func sharp(regions ...map[int][]int) world {
	var w world
	for _, r := range regions {
		w.regions = append(w.regions, region{r, 1})
	}
	return w
}

func (w world) sharply(p Probe) Result { return Result{ID: p.ID, Failed: w.q(p.Cell) >= 1} }

// drive runs s to its end with any player, and checks what must hold of every search.
func drive(t *testing.T, s *Search, batch int, play func(Probe) Result) Report {
	t.Helper()
	for !s.Done() {
		var rs []Result
		probes := s.Ask(batch)
		if len(probes) > batch {
			t.Fatalf("asked %d of a batch of %d", len(probes), batch)
		}
		for _, p := range probes {
			rs = append(rs, play(p))
		}
		slices.Reverse(rs) // the order within one Tell must not matter
		if err := s.Tell(rs); err != nil {
			t.Fatal(err)
		}
		if len(probes) == 0 && !s.Done() {
			t.Fatal("the search asks nothing and is not done")
		}
	}
	check(t, s)
	return s.Report()
}

// check holds every search to its invariants: fresh seeds, no excluded cell, a ledger that adds up.
func check(t *testing.T, s *Search) {
	t.Helper()
	seeds := map[uint64]bool{}
	told := 0
	for i, e := range s.Ledger() {
		if e.ID != uint64(i) || seeds[e.Seed] {
			t.Fatalf("ledger line %d: id %d, seed %d asked before: %v", i, e.ID, e.Seed, seeds[e.Seed])
		}
		seeds[e.Seed] = true
		if !s.space.Allows(e.Cell) {
			t.Fatalf("probe %d asked the excluded cell %v", e.ID, e.Cell)
		}
		if e.Outcome == Passed || e.Outcome == Failed {
			told++
		}
	}
	r := s.Report()
	if told != r.Episodes.Told || told != r.Episodes.Search+r.Episodes.Screen+r.Episodes.Minimise+r.Episodes.Confirm || told > s.opts.Budget {
		t.Errorf("episodes do not add up: %d in the ledger, %+v, budget %d", told, r.Episodes, s.opts.Budget)
	}
}

func start(t *testing.T, space Space, key gym.Key, opts Options) *Search {
	t.Helper()
	s, err := New(space, key, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ids(cs []Cause) []string {
	out := []string{}
	for _, c := range cs {
		out = append(out, c.ID)
	}
	return out
}

// TestSearch_minimalConjunctionExactly: one planted conjunction of three single levels, found as such from many seeds.
func TestSearch_minimalConjunctionExactly(t *testing.T) {
	key := root(t)
	w := sharp(map[int][]int{0: {2}, 3: {3}, 6: {1}})
	for i := range uint64(20) {
		for _, batch := range []int{1, 16} {
			s := start(t, dialSpace(), key.At(i), Options{Budget: 3000, Patience: -1})
			r := drive(t, s, batch, func(p Probe) Result {
				if len(s.Causes()) > 0 {
					s.opts.Budget = min(s.opts.Budget, s.told+s.open) // what is out may still say otherwise
				}
				return w.sharply(p)
			})
			if diff := cmp.Diff([]string{"family=c&d2=3&d5=1"}, ids(r.Causes)); diff != "" {
				t.Errorf("start %d, batch %d (want, got):\n%s", i, batch, diff)
				continue
			}
			c := r.Causes[0]
			if !c.Minimal || len(c.Without) != 3 || c.Q.Fails != 8 || c.Q.Episodes != 8 || len(c.Replay) != 3 {
				t.Errorf("start %d, batch %d: cause %+v", i, batch, c)
			}
			for _, m := range c.Without {
				if m.Factor != "family" && (m.Verdict != OK || m.Q.Fails != 0) { // a free family is the bad one in a sixth of the draws
					t.Errorf("start %d, batch %d: without %s it %s, %+v", i, batch, m.Factor, m.Verdict, m.Q)
				}
			}
			for _, p := range c.Replay {
				if w.q(p.Cell) < 1 {
					t.Errorf("replay %+v does not fail", p)
				}
			}
		}
	}
}

// TestSearch_maskedRegionsEarnNothing: after a cause is confirmed, no search probe, test or reference hits its region.
func TestSearch_maskedRegionsEarnNothing(t *testing.T) {
	key := root(t)
	s := start(t, dialSpace(), key, Options{Budget: 1500, Patience: -1})
	w := sharp(map[int][]int{1: {3}}, map[int][]int{2: {2}, 4: {3}})
	at := map[string]int{}
	r := drive(t, s, 8, func(p Probe) Result {
		for _, c := range s.Causes() {
			if _, ok := at[c.ID]; !ok {
				at[c.ID] = int(p.ID)
			}
		}
		return w.sharply(p)
	})
	if diff := cmp.Diff([]string{"d0=3", "d1=2&d3=3"}, slices.Sorted(slices.Values(ids(r.Causes)))); diff != "" {
		t.Fatalf("causes (want, got):\n%s", diff)
	}
	for _, e := range s.Ledger() {
		for _, c := range s.Causes() {
			if at[c.ID] > 0 && int(e.ID) >= at[c.ID]+8 && c.pattern.Match(e.Cell) { // a batch may have been out
				t.Fatalf("probe %d (%s) asked a cell of %s, known before probe %d", e.ID, e.Stage, c.ID, at[c.ID])
			}
		}
	}
	if r.Remain.Hits != 0 || r.Remain.Share >= .1 || r.Remain.Share > r.Remain.ShareFailing {
		t.Errorf("what may remain: %+v", r.Remain)
	}
	if want := 1 - math.Pow(.05, 1/float64(r.Remain.Episodes)); math.Abs(r.Remain.Share-want) > 1e-9 {
		t.Errorf("share %g, want 1-.05^(1/%d) = %g", r.Remain.Share, r.Remain.Episodes, want)
	}
}

// TestSearch_neverAsksExcluded: the region touches held-out cells, so that minimisation runs into the boundary.
func TestSearch_neverAsksExcluded(t *testing.T) {
	key := root(t)
	space := dialSpace()
	// d0=2 without d1>=2 is held out, and so is family f: dropping d1 from {d0=2, d1=2} would land there.
	space.Excluded = func(c Cell) bool { return c[0] == 5 || c[1] == 2 && c[2] < 2 }
	w := sharp(map[int][]int{1: {2}})
	for _, batch := range []int{1, 32} {
		s := start(t, space, key, Options{Budget: 1500})
		r := drive(t, s, batch, w.sharply)
		if diff := cmp.Diff([]string{"d0=2&d1=2", "d0=2&d1=3"}, slices.Sorted(slices.Values(ids(r.Causes)))); diff != "" {
			t.Fatalf("causes (want, got):\n%s", diff)
		}
		for _, c := range r.Causes {
			i := slices.IndexFunc(c.Without, func(m Removal) bool { return m.Factor == "d1" })
			if c.Minimal || i < 0 || c.Without[i].Verdict != Boundary || c.Without[i].Q.Episodes != 0 {
				t.Errorf("cause %s: minimal %v, without %+v", c.ID, c.Minimal, c.Without)
			}
			if text := r.Text(); !strings.Contains(text, "Boundary: held-out: the condition without d1 was not run.") {
				t.Errorf("the report does not say so:\n%s", text)
			}
		}
	}
}

// TestSearch_resume: stored and taken up after every batch, a search asks exactly what it would have asked.
func TestSearch_resume(t *testing.T) {
	key := root(t)
	w := planted(key.Sub("world"), true)
	for _, batch := range []int{1, 7} {
		opts := Options{Budget: 300, Checkpoint: "c1", Patience: -1}
		whole := start(t, dialSpace(), key, opts)
		w.run(t, whole, batch)
		part := start(t, dialSpace(), key, opts)
		for round := 0; !part.Done(); round++ {
			probes := part.Ask(batch)
			if batch > 1 || round%10 == 0 {
				b, err := json.Marshal(part)
				if err != nil {
					t.Fatal(err)
				}
				if part, err = Resume(dialSpace(), key, b); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(probes, part.Outstanding()); diff != "" {
					t.Fatalf("what was out (want, got):\n%s", diff)
				}
				if again, _ := json.Marshal(part); string(again) != string(b) {
					t.Fatal("storing twice differs")
				}
			}
			var rs []Result
			for _, p := range probes {
				rs = append(rs, w.play(p))
			}
			if err := part.Tell(rs); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(whole.Ledger(), part.Ledger()); diff != "" {
			t.Errorf("ledger, batch %d (whole, resumed):\n%s", batch, diff)
		}
		a, _ := json.Marshal(whole.Report())
		b, _ := json.Marshal(part.Report())
		if string(a) != string(b) {
			t.Errorf("reports differ, batch %d", batch)
		}
	}
	s := start(t, dialSpace(), key, Options{Budget: 50})
	w.run(t, s, 1)
	b, _ := json.Marshal(s)
	if _, err := Resume(dialSpace(), key.At(1), b); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("another key: %v", err)
	}
	held := dialSpace()
	held.Excluded = func(Cell) bool { return true }
	if _, err := Resume(held, key, b); !errors.Is(err, gym.ErrHeldOut) {
		t.Errorf("a space that now holds out what was asked: %v", err)
	}
	other := dialSpace()
	other.Factors[3].Levels = []string{"0", "1", "2", "4"}
	if _, err := Resume(other, key, b); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("other factors: %v", err)
	}
	if _, err := Resume(dialSpace(), key, []byte("{}")); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("not a stored search: %v", err)
	}
}

// TestRecheck_retiresSolvedCauses: of two causes one is solved at the next checkpoint.
func TestRecheck_retiresSolvedCauses(t *testing.T) {
	key := root(t)
	old := start(t, dialSpace(), key, Options{Budget: 1000, Checkpoint: "c1"})
	drive(t, old, 4, sharp(map[int][]int{1: {3}}, map[int][]int{2: {2}, 4: {3}}).sharply)
	if len(old.Causes()) != 2 {
		t.Fatalf("causes %v", ids(old.Causes()))
	}
	s := start(t, dialSpace(), key, Options{Budget: 600, Checkpoint: "c2"})
	if err := s.Recheck(old.Causes()); err != nil {
		t.Fatal(err)
	}
	r := drive(t, s, 1, sharp(map[int][]int{1: {3}}).sharply)
	for i, e := range s.Ledger()[:13] { // eight failures and five passes decide
		if e.Stage != StageConfirm {
			t.Errorf("probe %d is for %s; old causes come first", i, e.Stage)
		}
	}
	if diff := cmp.Diff([]string{"d0=3"}, ids(r.Causes)); diff != "" || !r.Causes[0].Rechecked {
		t.Errorf("causes (want, got):\n%s", diff)
	}
	if len(r.Retired) != 1 || r.Retired[0].Cause.ID != "d1=2&d3=3" || !r.Retired[0].Solved() {
		t.Errorf("retired: %+v", r.Retired)
	}
	seeds := map[uint64]bool{}
	for _, e := range old.Ledger() {
		seeds[e.Seed] = true
	}
	for _, e := range s.Ledger() {
		if seeds[e.Seed] {
			t.Fatalf("seed %d was used at the earlier checkpoint", e.Seed)
		}
	}
	if err := s.Recheck(old.Causes()); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("too late: %v", err)
	}
	same := start(t, dialSpace(), key, Options{Checkpoint: "c1"})
	if err := same.Recheck(old.Causes()); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("the same checkpoint: %v", err)
	}
	held := dialSpace()
	held.Excluded = func(c Cell) bool { return c[1] == 3 }
	if err := start(t, held, key, Options{Checkpoint: "c2"}).Recheck(old.Causes()); !errors.Is(err, gym.ErrHeldOut) {
		t.Errorf("held out: %v", err)
	}
}

func TestSearch_familyThatFailsAtReference(t *testing.T) {
	key := root(t)
	s := start(t, dialSpace(), key, Options{Budget: 500})
	r := drive(t, s, 1, sharp(map[int][]int{0: {4}}).sharply)
	if diff := cmp.Diff([]string{"family=e"}, ids(r.Causes)); diff != "" {
		t.Fatalf("causes (want, got):\n%s", diff)
	}
	for _, e := range s.Ledger() {
		if e.Stage == StageSearch && e.Cell[0] == 4 {
			t.Fatal("the family was taken out, and searched")
		}
	}
	if !strings.Contains(r.Text(), "It fails with every dial at its nominal level.") {
		t.Error(r.Text())
	}
	if r.Stop != "the last 300 search episodes gave no new cause" || r.Episodes.Search != 300 {
		t.Errorf("it stopped because %s, after %d search episodes", r.Stop, r.Episodes.Search)
	}
}

func TestSearch_everythingFails(t *testing.T) {
	key := root(t)
	s := start(t, dialSpace(), key, Options{Budget: 500})
	r := drive(t, s, 1, func(p Probe) Result { return Result{ID: p.ID, Failed: true} })
	if len(r.Causes) != 6 || !strings.Contains(r.Stop, "nothing unexplained") {
		t.Errorf("causes %v, stopped because %s", ids(r.Causes), r.Stop)
	}
	plain := Space{Factors: dialSpace().Factors[1:]} // no family: the reference is one cell
	r = drive(t, start(t, plain, key, Options{Budget: 500}), 1, func(p Probe) Result { return Result{ID: p.ID, Failed: true} })
	if diff := cmp.Diff([]string{"*"}, ids(r.Causes)); diff != "" {
		t.Errorf("causes (want, got):\n%s", diff)
	}
}

// TestSearch_slippage: the cell that fails by "loop" holds a smaller cause that fails by "timeout". Both are kept.
func TestSearch_slippage(t *testing.T) {
	key := root(t)
	s := start(t, dialSpace(), key, Options{Budget: 1200})
	w := sharp(map[int][]int{1: {3}})
	r := drive(t, s, 1, func(p Probe) Result {
		res := w.sharply(p)
		if res.Failed {
			res.Mode = "timeout"
			if p.Stage == StageSearch || p.Stage == StageScreen {
				res.Mode = "loop"
			}
		}
		return res
	})
	if len(r.Causes) != 1 || r.Causes[0].Mode != "timeout" || len(r.Open) != 1 {
		t.Fatalf("causes %+v\nopen %+v", r.Causes, r.Open)
	}
	if o := r.Open[0]; o.Status != Unminimised || o.Mode != "loop" || o.Other != "d0=3" || r.Causes[0].Other != o.ID {
		t.Errorf("original %+v, cause %+v", o, r.Causes[0])
	}
}

// TestSearch_lostIsNotCounted: a third of the episodes are lost, and nothing else changes in what is found.
func TestSearch_lostIsNotCounted(t *testing.T) {
	key := root(t)
	w := sharp(map[int][]int{1: {3}, 5: {2}})
	s := start(t, dialSpace(), key, Options{Budget: 800, MaxLost: 2000})
	r := drive(t, s, 5, func(p Probe) Result {
		if p.Seed%3 == 0 {
			return Result{ID: p.ID, Failed: true, Lost: true}
		}
		return w.sharply(p)
	})
	if diff := cmp.Diff([]string{"d0=3&d4=2"}, ids(r.Causes)); diff != "" {
		t.Errorf("causes (want, got):\n%s", diff)
	}
	if r.Episodes.Lost == 0 || r.Causes[0].Q.Episodes != 8 {
		t.Errorf("%+v, %+v", r.Episodes, r.Causes[0].Q)
	}
	all := drive(t, start(t, dialSpace(), key, Options{Budget: 100}), 5, func(p Probe) Result { return Result{ID: p.ID, Lost: true} })
	if all.Episodes.Told != 0 || !strings.Contains(all.Stop, "lost") {
		t.Errorf("everything lost: %+v, %s", all.Episodes, all.Stop)
	}
}

// TestSearch_eagerIgnoresWhatComesLate: an eager batch asks the whole cap; what was told after the verdict is no evidence.
func TestSearch_eagerIgnoresWhatComesLate(t *testing.T) {
	key := root(t)
	w := sharp(map[int][]int{1: {3}, 5: {2}})
	s := start(t, dialSpace(), key, Options{Budget: 3000, Eager: true})
	r := drive(t, s, 64, w.sharply)
	if diff := cmp.Diff([]string{"d0=3&d4=2"}, ids(r.Causes)); diff != "" {
		t.Fatalf("causes (want, got):\n%s", diff)
	}
	if r.Episodes.Ignored == 0 || r.Causes[0].Q.Episodes != 8 {
		t.Errorf("%d ignored, q %+v", r.Episodes.Ignored, r.Causes[0].Q)
	}
}

// TestSearch_sameTellsInAnyOrder: batches told in reverse and one by one end in the same ledger where the tests wait for
// whole batches.
func TestSearch_sameTellsInAnyOrder(t *testing.T) {
	key := root(t)
	w := planted(key.Sub("world"), false)
	a := start(t, dialSpace(), key, Options{Budget: 400, Patience: -1})
	b := start(t, dialSpace(), key, Options{Budget: 400, Patience: -1})
	w.run(t, a, 9)
	drive(t, b, 9, w.play)
	if diff := cmp.Diff(a.Ledger(), b.Ledger()); diff != "" {
		t.Errorf("(in order, reversed):\n%s", diff)
	}
}

func TestSearch_tellErrors(t *testing.T) {
	key := root(t)
	s := start(t, dialSpace(), key, Options{})
	p := s.Ask(2)
	if err := s.Tell([]Result{{ID: p[0].ID}, {ID: 99}}); !errors.Is(err, gym.ErrUnknown) {
		t.Errorf("unknown probe: %v", err)
	}
	if err := s.Tell([]Result{{ID: p[0].ID}, {ID: p[0].ID}}); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("twice in one call: %v", err)
	}
	if len(s.Outstanding()) != 2 {
		t.Error("a refused call changed something")
	}
	if err := s.Tell([]Result{{ID: p[0].ID}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Tell([]Result{{ID: p[0].ID}}); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("told before: %v", err)
	}
	if _, err := New(dialSpace(), key, Options{Tau: .9, Margin: .2, Floor: 2}); err == nil {
		t.Error("bad options pass")
	}
}

// TestSearch_chunksFirst: with about 20 items off nominal, chunks reduce the set before single items do.
func TestSearch_chunksFirst(t *testing.T) {
	key := root(t)
	var space Space
	for i := range 40 {
		space.Factors = append(space.Factors, Factor{Name: fmt.Sprintf("event%d", i), Levels: []string{"off", "on"}})
	}
	bad := func(c Cell) bool { return c[4] == 1 && c[35] == 1 }
	s := start(t, space, key, Options{Budget: 3000})
	chunks := 0
	r := drive(t, s, 1, func(p Probe) Result {
		for _, j := range s.st.Jobs {
			if len(j.Drop) > 1 {
				chunks++
			}
		}
		return Result{ID: p.ID, Failed: bad(p.Cell)}
	})
	if diff := cmp.Diff([]string{"event4=on&event35=on"}, ids(r.Causes)); diff != "" {
		t.Errorf("causes (want, got):\n%s", diff)
	}
	if chunks == 0 {
		t.Error("no chunk was tried")
	}
}

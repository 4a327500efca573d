package curriculum

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"provegym/gym"
	"provegym/gym/breaker"

	"github.com/google/go-cmp/cmp"
)

var seed = flag.Uint64("seed", 7, "root of all randomness in these tests")

// root prints the one line that reruns a failing test, and returns its key.
func root(t *testing.T) gym.Key {
	t.Helper()
	t.Logf("seed %d", *seed)
	t.Cleanup(func() {
		if t.Failed() {
			fmt.Printf("rerun: go test ./gym/curriculum -run '^%s$' -seed %d\n", t.Name(), *seed)
		}
	})
	return gym.NewKey(*seed, t.Name())
}

// dialSpace has 8 dials of 4 levels and 6 families; family f and the combination d0=3, d1=3 are held out.
func dialSpace() breaker.Space {
	s := breaker.Space{Factors: []breaker.Factor{{Name: "family", Levels: []string{"a", "b", "c", "d", "e", "f"}, Nominal: breaker.Free}}}
	for i := range 8 {
		s.Factors = append(s.Factors, breaker.Factor{Name: fmt.Sprintf("d%d", i), Levels: []string{"0", "1", "2", "3"}})
	}
	s.Excluded = func(c breaker.Cell) bool { return c[0] == 5 || c[1] == 3 && c[2] == 3 }
	return s
}

func cause(settings ...string) breaker.Cause {
	c := breaker.Cause{Status: breaker.Confirmed, ID: strings.Join(settings, "&")}
	for _, s := range settings {
		f, l, _ := strings.Cut(s, "=")
		c.Settings = append(c.Settings, breaker.Setting{Factor: f, Level: l})
	}
	return c
}

func start(t *testing.T, key gym.Key, opts Options, causes ...breaker.Cause) *Sampler {
	t.Helper()
	s, err := New(dialSpace(), key, opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Add(causes); err != nil {
		t.Fatal(err)
	}
	return s
}

func ask(t *testing.T, s *Sampler, n, group int) []Task {
	t.Helper()
	tasks, err := s.Ask(n, group)
	if err != nil {
		t.Fatal(err)
	}
	return tasks
}

// TestSampler_neverDrawsHeldOut draws a million tasks, half of them in uniform mode.
func TestSampler_neverDrawsHeldOut(t *testing.T) {
	key := root(t)
	space := dialSpace()
	for _, uniform := range []bool{false, true} {
		s := start(t, key, Options{Solvable: true, Uniform: uniform}, cause("d0=3", "d5=2"), cause("d1=3"), cause("family=c", "d2=1"))
		lines := 0
		for range 500 {
			tasks := ask(t, s, 1000, 1)
			for _, task := range tasks {
				if space.Excluded(task.Cell) {
					t.Fatalf("drew %s", task.Condition)
				}
			}
			for _, d := range s.TakeLedger() {
				if d.Entry {
					t.Fatal("a training draw is marked as an entry test")
				}
				lines++
			}
			var rs []Result
			for _, task := range tasks {
				rs = append(rs, Result{ID: task.ID, Passed: task.Seed%2 == 0})
			}
			if err := s.Tell(rs); err != nil {
				t.Fatal(err)
			}
		}
		if lines != 500_000 {
			t.Errorf("the ledger has %d lines", lines)
		}
	}
}

func TestSampler_refusesHeldOut(t *testing.T) {
	key := root(t)
	s := start(t, key, Options{Solvable: true})
	for _, c := range []breaker.Cause{cause("family=f"), cause("d0=3", "d1=3"), cause("d0=3", "d1=3", "d2=1")} {
		if _, err := s.Add([]breaker.Cause{cause("d4=1"), c}); !errors.Is(err, gym.ErrHeldOut) {
			t.Errorf("%s: %v", c.ID, err)
		}
	}
	if _, err := s.Add([]breaker.Cause{cause("d9=1")}); !errors.Is(err, gym.ErrUnknown) {
		t.Errorf("unknown factor: %v", err)
	}
	loose := cause("d4=1")
	loose.Status = breaker.Unconfirmed
	if _, err := s.Add([]breaker.Cause{loose}); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("unconfirmed: %v", err)
	}
	if n := len(s.Weights()); n != 5 {
		t.Errorf("%d items after refusals, want the 5 families that are not held out", n)
	}
	nothing := dialSpace()
	nothing.Excluded = func(breaker.Cell) bool { return true }
	if _, err := New(nothing, key, Options{}); !errors.Is(err, gym.ErrHeldOut) {
		t.Errorf("an empty region: %v", err)
	}
	// The split tightens while the sampler is stored.
	b, _ := json.Marshal(start(t, key, Options{Solvable: true}, cause("d4=1")))
	less := dialSpace()
	less.Excluded = func(c breaker.Cell) bool { return c[5] == 1 }
	if _, err := Resume(less, key, b); !errors.Is(err, gym.ErrHeldOut) {
		t.Errorf("resumed: %v", err)
	}
	if _, err := Resume(dialSpace(), key.At(1), b); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("another key: %v", err)
	}
	if _, err := Resume(dialSpace(), key, []byte("{}")); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("not a stored sampler: %v", err)
	}
}

// TestSampler_causeFactorsAreFixed: a cause's tasks have its settings; its other factors are uniform over what is allowed.
func TestSampler_causeFactorsAreFixed(t *testing.T) {
	key := root(t)
	s := start(t, key, Options{Solvable: true}, cause("family=c", "d1=3"))
	tasks := ask(t, s, 40_000, 1)
	var d0 [4]int
	of := 0
	for _, task := range tasks {
		if task.Item != "family=c&d1=3" {
			if want := "family=" + dialSpace().Factors[0].Levels[task.Cell[0]]; task.Item != want {
				t.Fatalf("item %s drew %s", task.Item, task.Condition)
			}
			continue
		}
		if task.Cell[0] != 2 || task.Cell[2] != 3 {
			t.Fatalf("item %s drew %s", task.Item, task.Condition)
		}
		d0[task.Cell[1]]++
		of++
	}
	if d0[3] != 0 {
		t.Error("drew d0=3 with d1=3")
	}
	for l := range 3 {
		if p := float64(d0[l]) / float64(of); math.Abs(p-1./3) > 5*math.Sqrt(2./9/float64(of)) {
			t.Errorf("d0=%d in %d of %d draws of the cause", l, d0[l], of)
		}
	}
	if share := float64(of) / 40_000; math.Abs(share-1./6) > .01 { // six equal items
		t.Errorf("the cause got %.3f of the draws, want 1/6", share)
	}
}

func TestSampler_groups(t *testing.T) {
	key := root(t)
	s := start(t, key, Options{Solvable: true})
	tasks := ask(t, s, 32, 8)
	seeds := map[uint64]bool{}
	for i, task := range tasks {
		if task.ID != uint64(i) || task.Group != uint64(i/8) {
			t.Fatalf("task %d has id %d, group %d", i, task.ID, task.Group)
		}
		lead := tasks[i/8*8]
		lead.ID = task.ID
		if diff := cmp.Diff(lead, task); diff != "" {
			t.Errorf("group %d is not one task:\n%s", task.Group, diff)
		}
		seeds[task.Seed] = true
		if want := key.Sub("train").Sub(task.Condition).At(task.Group).Seed(); task.Seed != want {
			t.Errorf("seed %d, want %d", task.Seed, want)
		}
	}
	if len(seeds) != 4 || len(s.TakeLedger()) != 4 || len(s.TakeLedger()) != 0 {
		t.Errorf("%d seeds", len(seeds))
	}
	if _, err := s.Ask(10, 4); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("10 tasks in groups of 4: %v", err)
	}
	if err := s.Tell([]Result{{ID: 0}, {ID: 0}}); !errors.Is(err, gym.ErrUnknown) {
		t.Errorf("told twice: %v", err)
	}
	if err := s.Tell([]Result{{ID: 0, Lost: true}, {ID: 1, Passed: true}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Tell([]Result{{ID: 1}}); !errors.Is(err, gym.ErrUnknown) {
		t.Errorf("told before: %v", err)
	}
	if got := s.find(tasks[0].Item); got.Outcomes != "1" || got.Seen != 1 {
		t.Errorf("a lost episode counted: %+v", got)
	}
}

func TestSampler_entryTest(t *testing.T) {
	key := root(t)
	s := start(t, key, Options{}, cause("d4=1"))
	if _, err := s.Ask(1, 1); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("nothing admitted: %v", err)
	}
	want := []string{"family=a", "family=b", "family=c", "family=d", "family=e", "d4=1"}
	if diff := cmp.Diff(want, s.Pending()); diff != "" {
		t.Errorf("pending (want, got):\n%s", diff)
	}
	tasks, err := s.Entry("d4=1")
	if err != nil || len(tasks) != EntryTries {
		t.Fatalf("%d entry tasks, %v", len(tasks), err)
	}
	for _, task := range tasks {
		if task.Cell[5] != 1 {
			t.Errorf("entry task %s", task.Condition)
		}
	}
	if l := s.TakeLedger(); len(l) != EntryTries || !l[0].Entry {
		t.Errorf("the ledger has %d lines", len(l))
	}
	for _, id := range want {
		if err := s.Admit(id, id == "d4=1" || id == "family=b"); err != nil {
			t.Fatal(err)
		}
	}
	for _, task := range ask(t, s, 200, 1) {
		if task.Item != "d4=1" && task.Item != "family=b" {
			t.Fatalf("drew %s, which no reference agent passes", task.Item)
		}
	}
	if err := s.Admit("d4=1", false); err != nil || len(s.Weights()) != 1 {
		t.Errorf("kept out again: %v, %d left", err, len(s.Weights()))
	}
	if err := s.Admit("d4=9", true); !errors.Is(err, gym.ErrUnknown) {
		t.Error(err)
	}
}

// TestSampler_resume: stored and taken up after every call, a sampler draws exactly what it would have drawn.
func TestSampler_resume(t *testing.T) {
	key := root(t)
	for _, uniform := range []bool{false, true} {
		run := func(restart bool) (all []Task) {
			s := start(t, key, Options{Solvable: true, Uniform: uniform}, cause("d4=1"), cause("family=a", "d3=2"))
			again := func() {
				if !restart {
					return
				}
				b, err := json.Marshal(s)
				if err != nil {
					t.Fatal(err)
				}
				if s, err = Resume(dialSpace(), key, b); err != nil {
					t.Fatal(err)
				}
				if c, _ := json.Marshal(s); string(c) != string(b) {
					t.Fatal("storing twice differs")
				}
			}
			for round := range 12 {
				s.Checkpoint(fmt.Sprint("c", round/3))
				tasks := ask(t, s, 24, 4)
				all = append(all, tasks...)
				again()
				var rs []Result
				for _, task := range tasks {
					rs = append(rs, Result{ID: task.ID, Passed: (task.ID*7919+task.Seed)%3 == 0})
				}
				if err := s.Tell(rs); err != nil {
					t.Fatal(err)
				}
				again()
			}
			return all
		}
		if diff := cmp.Diff(run(false), run(true)); diff != "" {
			t.Errorf("uniform %v (whole, resumed):\n%s", uniform, diff)
		}
	}
}

// TestSampler_addAgain: a cause known before keeps its outcomes, one that equals a coverage item is not doubled.
func TestSampler_addAgain(t *testing.T) {
	key := root(t)
	s := start(t, key, Options{Solvable: true}, cause("d4=1"))
	s.find("d4=1").tell(true, "c1")
	got, err := s.Add([]breaker.Cause{cause("d4=1"), cause("family=a"), cause("d3=2", "family=b")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"family=b&d3=2"}, got); diff != "" {
		t.Errorf("added (want, got):\n%s", diff)
	}
	if s.find("d4=1").Seen != 1 {
		t.Error("the outcomes of a known cause are gone")
	}
}

// TestSampler_uniform: every allowed cell is equally likely, whatever was told.
func TestSampler_uniform(t *testing.T) {
	key := root(t)
	s := start(t, key, Options{Uniform: true}, cause("d4=1"))
	var fam [6]int
	for _, task := range ask(t, s, 30_000, 1) {
		if task.Item != UniformItem {
			t.Fatalf("item %s", task.Item)
		}
		fam[task.Cell[0]]++
	}
	for f, n := range fam[:5] {
		if math.Abs(float64(n)-6000) > 5*math.Sqrt(30_000*.2*.8) {
			t.Errorf("family %d drawn %d times of 30,000", f, n)
		}
	}
	if slices.Max(fam[5:]) != 0 {
		t.Error("drew the held-out family")
	}
}

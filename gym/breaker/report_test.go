package breaker

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReport_mergesTouchingLevels: single-level causes become runs, as long as they fill a box; families never merge.
func TestReport_mergesTouchingLevels(t *testing.T) {
	key := root(t)
	s := start(t, dialSpace(), key, Options{})
	add := func(settings ...Setting) {
		p, err := s.space.Pattern(settings)
		if err != nil {
			t.Fatal(err)
		}
		s.admit(Cause{ID: causeID(settings), Settings: settings, Status: Confirmed, pattern: p})
	}
	for _, ls := range []string{"22", "33", "32", "23"} { // a full 2 x 2 box
		add(Setting{"d0", ls[:1]}, Setting{"d1", ls[1:]})
	}
	add(Setting{"family", "a"}, Setting{"d2", "1"})
	add(Setting{"family", "b"}, Setting{"d2", "1"})
	add(Setting{"family", "b"}, Setting{"d2", "2"})
	add(Setting{"d3", "1"}, Setting{"d4", "1"}) // an L of three is a run and a single
	add(Setting{"d3", "1"}, Setting{"d4", "2"})
	add(Setting{"d3", "2"}, Setting{"d4", "2"})
	add(Setting{"d5", "1"})
	add(Setting{"d5", "3"}) // not touching
	var labels []string
	for _, g := range s.Report().Groups {
		labels = append(labels, g.Label)
	}
	want := []string{"d0 >= 2 & d1 >= 2", "family = a & d2 = 1", "family = b & d2 1 to 2", "d3 = 1 & d4 1 to 2", "d3 = 2 & d4 = 2", "d5 = 1", "d5 = 3"}
	if diff := cmp.Diff(want, labels); diff != "" {
		t.Errorf("groups (want, got):\n%s", diff)
	}
	add(Setting{"d3", "1"})
	r := s.Report()
	if r.Causes[7].ImpliedBy != "d3=1" || r.Causes[8].ImpliedBy != "d3=1" || r.Causes[9].ImpliedBy != "" || r.Distinct != 11 {
		t.Errorf("%d distinct causes; those with d3=1 are implied by %q, %q", r.Distinct, r.Causes[7].ImpliedBy, r.Causes[8].ImpliedBy)
	}
}

func TestReport_words(t *testing.T) {
	key := root(t)
	s := start(t, dialSpace(), key, Options{Budget: 900, Checkpoint: "4f2a"})
	w := sharp(map[int][]int{0: {2}, 3: {3}})
	r := drive(t, s, 4, func(p Probe) Result {
		res := w.sharply(p)
		if res.Failed {
			res.Mode = "timeout"
		}
		return res
	})
	text := r.Text()
	for _, want := range []string{
		"Break, checkpoint 4f2a: 1 distinct confirmed minimal causes",
		"1. family = c & d2 = 3",
		"family=c&d2=3 failed 8 of 8 (95 % interval 63 % to 100 %) in its confirmation",
		"Removing any one of these made it stop failing in this test.",
		"without family=c it failed ",
		"commonest failure: timeout (8 of 8)",
		"1 candidates went to confirmation; at most 0.01 of them are expected to be confirmed falsely if they fail less than 35 % of the time.",
		"What may remain:",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	for _, never := range []string{"the cause is", "prove", "because of"} {
		if strings.Contains(text, never) {
			t.Errorf("the report says %q", never)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if again, _ := json.Marshal(back); string(again) != string(b) {
		t.Error("the report does not survive its JSON")
	}
}

package split_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"provegym/gym"
	"provegym/gym/split"
)

// pack is the least that a split needs: families and dials.
func init() {
	gym.Register(&gym.Pack{
		Name: "splitpack", Title: "SplitPack", Version: 3, Hash: "h1",
		Types: []gym.Type{{Name: "n", Form: gym.FormInt}},
		Tools: []gym.Tool{{Name: "finish", Doc: "Ends.", Finish: true, Run: func(*gym.Turn) error { return nil }}},
		Families: []gym.Family{
			{Name: "a"}, {Name: "b"}, {Name: "c", HeldOut: true},
		},
		Dials: []gym.Dial{
			{Name: "x", Levels: []string{"0", "1", "2", "3"}},
			{Name: "y", Levels: []string{"3", "2.5", "1.1"}, Base: 1},
		},
		Limits: func(gym.Condition) gym.Limits { return gym.Limits{} },
		Build:  func(gym.Task) (*gym.Built, error) { return nil, nil },
	})
}

func condition(t *testing.T, id string) gym.Condition {
	t.Helper()
	c, err := gym.ParseCondition(id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func draft() split.Manifest {
	return split.Manifest{
		Pack:         "splitpack@3",
		Families:     map[string]string{"c": "test"},
		Graphs:       map[string]string{"g7": "eval"},
		Mechanisms:   map[string]string{"refund": "test"},
		Combinations: []split.Combination{{Name: "hard", Region: "eval", Dials: map[string][]string{"x": {"2", "3"}, "y": {"1.1"}}}},
		TrainDials:   map[string][]string{"x": {"0", "1", "2"}},
	}
}

// A pack's own suggestion holds out what it marks, and freezes as it is.
func TestDraft(t *testing.T) {
	p, err := gym.LookupPack("splitpack")
	if err != nil {
		t.Fatal(err)
	}
	s, err := split.Freeze(split.Draft(p))
	if err != nil {
		t.Fatal(err)
	}
	for family, want := range map[string]bool{"a": true, "b": true, "c": false} {
		if err := s.Admit(gym.Train, condition(t, "splitpack@3/"+family), "", nil); (err == nil) != want {
			t.Errorf("family %s in training: %v", family, err)
		}
	}
}

func TestRegion(t *testing.T) {
	s, err := split.Freeze(draft())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		id   string
		want gym.Mode
	}{
		{"splitpack@3/a", gym.Train},
		{"splitpack@3/a?x=2", gym.Train},
		{"splitpack@3/a?y=1.1", gym.Train},
		{"splitpack@3/a?x=2&y=1.1", gym.Eval},
		{"splitpack@3/a?x=3", gym.Eval},
		{"splitpack@3/c", gym.Test},
		{"splitpack@3/c?x=2&y=1.1", gym.Test},
	} {
		if got, why := s.Region(condition(t, row.id)); got != row.want {
			t.Errorf("%s is in %s (%s), want %s", row.id, got, why, row.want)
		}
		for mode := gym.Train; mode <= gym.Test; mode++ {
			err := s.Admit(mode, condition(t, row.id), "", nil)
			if held := mode < row.want; held != errors.Is(err, gym.ErrHeldOut) {
				t.Errorf("%s in mode %s: %v", row.id, mode, err)
			}
		}
	}
	a := condition(t, "splitpack@3/a")
	if err := s.Admit(gym.Train, a, "g7", nil); !errors.Is(err, gym.ErrHeldOut) {
		t.Errorf("a held-out graph is admitted: %v", err)
	}
	if err := s.Admit(gym.Eval, a, "g1", []string{"cancel", "refund"}); !errors.Is(err, gym.ErrHeldOut) {
		t.Errorf("a held-out mechanism is admitted: %v", err)
	}
	if err := s.Admit(gym.Train, a, "g1", []string{"cancel"}); err != nil {
		t.Errorf("a training task is refused: %v", err)
	}
}

func TestFreeze_roundTrip(t *testing.T) {
	s, err := split.Freeze(draft())
	if err != nil {
		t.Fatal(err)
	}
	again, err := split.Parse(s.JSON())
	if err != nil {
		t.Fatal(err)
	}
	if again.Hash() != s.Hash() || string(again.JSON()) != string(s.JSON()) {
		t.Errorf("read back: %s\nwant %s", again.JSON(), s.JSON())
	}
	changed := strings.Replace(string(s.JSON()), `"c":"test"`, `"b":"test"`, 1)
	if _, err := split.Parse([]byte(changed)); !errors.Is(err, gym.ErrBadInput) || !strings.Contains(err.Error(), "changed after") {
		t.Errorf("a changed manifest is accepted: %v", err)
	}
}

func TestFreeze_refuses(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*split.Manifest)
		want   string
	}{
		"unknown pack":       {func(m *split.Manifest) { m.Pack = "splitpak@3" }, `did you mean "splitpack"`},
		"another version":    {func(m *split.Manifest) { m.Pack = "splitpack@2" }, "the library has splitpack@3"},
		"unknown family":     {func(m *split.Manifest) { m.Families["zz"] = "test" }, "family"},
		"every family":       {func(m *split.Manifest) { m.Families = map[string]string{"a": "test", "b": "test", "c": "eval"} }, "nothing is left"},
		"train as a region":  {func(m *split.Manifest) { m.Families["a"] = "train" }, "eval or test"},
		"unknown dial":       {func(m *split.Manifest) { m.TrainDials["xx"] = []string{"1"} }, "dial"},
		"unknown level":      {func(m *split.Manifest) { m.TrainDials["x"] = []string{"9"} }, "it takes 0, 1, 2, 3"},
		"empty combination":  {func(m *split.Manifest) { m.Combinations[0].Dials = nil }, "names no dial"},
		"another pack build": {func(m *split.Manifest) { m.PackHash = "h0" }, "another build"},
		"another schema":     {func(m *split.Manifest) { m.Schema = "split/9" }, "schema"},
	} {
		m := draft()
		row.change(&m)
		if _, err := split.Freeze(m); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want a text with %q", name, err, row.want)
		}
	}
	b, _ := json.Marshal(map[string]any{"pack": "splitpack@3", "famlies": map[string]string{}})
	if _, err := split.Parse(b); !errors.Is(err, gym.ErrBadInput) {
		t.Errorf("an unknown member is accepted: %v", err)
	}
}

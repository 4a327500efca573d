package prove

import (
	"fmt"
	"strconv"
	"testing"

	"provegym/gym"
)

// The least that a plan needs: a pack of three families and two dials, and a split that holds out large fanouts from
// training and the family unseen from everything but sealed looks.
func init() {
	gym.Register(&gym.Pack{
		Name: "provepack", Title: "ProvePack", Version: 2, Hash: "pack-hash", CheckHash: "check-hash",
		Tools:    []gym.Tool{{Name: "finish", Doc: "Ends.", Finish: true, Run: func(*gym.Turn) error { return nil }}},
		Families: []gym.Family{{Name: "known"}, {Name: "other"}, {Name: "unseen"}, {Name: "half"}},
		Dials:    []gym.Dial{{Name: "fanout", Levels: []string{"1", "2", "4", "8"}}, {Name: "noise", Levels: []string{"0", "1"}}},
		Limits:   func(gym.Condition) gym.Limits { return gym.Limits{} },
		Build:    func(gym.Task) (*gym.Built, error) { return nil, nil },
	})
}

type testSplit struct{}

func (testSplit) Hash() string { return "split-hash" }

func (testSplit) Admit(mode gym.Mode, c gym.Condition, _ string, _ []string) error {
	region := gym.Train
	if c.Int("fanout") >= 4 || c.Family == "half" {
		region = gym.Eval
	}
	if c.Family == "unseen" {
		region = gym.Test
	}
	if region > mode {
		return fmt.Errorf("%w: %s", gym.ErrHeldOut, c.ID())
	}
	return nil
}

const (
	four   = "provepack@2/known?fanout=4"
	eight  = "provepack@2/known?fanout=8"
	other  = "provepack@2/other?fanout=8"
	unseen = "provepack@2/unseen"
	easy   = "provepack@2/known"
)

var testKey = gym.NewKey(7, "run")

// draft has four confirmatory conditions and an exploratory one.
func draft() Plan {
	return Plan{
		Pack: "provepack", Base: Base{Rule: "imitation of 20 episodes at seed 1"},
		Looks: []Look{{ID: "final", Weight: 1, Checkpoint: "last"}},
		Conditions: []Condition{
			{ID: four, Tier: HeldOutDials, G: 120, DMin: .2, Delta: .1},
			{ID: eight, Tier: HeldOutDials, G: 120, DMin: .2, Delta: .1},
			{ID: other, Tier: HeldOutDials, G: 200, DMin: .2, Delta: .1},
			{ID: unseen, Tier: HeldOutFamily, G: 40, DMin: .2, Delta: .1},
			{ID: easy, Tier: SameCells, Family: Exploratory, G: 60},
		},
		Monitor: &Monitor{Tasks: 30},
		Budget:  Budget{Train: 1000, Break: 200, Monitor: 600},
	}
}

func frozen(t *testing.T, change ...func(*Plan)) Plan {
	t.Helper()
	d := draft()
	for _, f := range change {
		f(&d)
	}
	p, err := Freeze(d, testKey, testSplit{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// pairs says how many tasks of a condition only the checkpoint passes, only the base passes, and both pass.
type pairs struct{ b, c, both int }

// played returns the evidence of a look that was run without a hitch.
func played(t *testing.T, p Plan, look string, of map[string]pairs) Evidence {
	t.Helper()
	slots, err := Slots(p, testKey, look)
	if err != nil {
		t.Fatal(err)
	}
	ev := Evidence{PlanHash: p.Hash, Base: "base-1", Checkpoint: "step-9"}
	mode := "test"
	if look == MonitorLook {
		mode = "eval"
	}
	for _, s := range slots {
		g, _ := strconv.Atoi(s.Cluster)
		x := of[s.Condition]
		for _, arm := range s.Arms {
			pass := g < x.b && arm == CheckpointArm || g >= x.b && g < x.b+x.c && arm == BaseArm || g >= x.b+x.c && g < x.b+x.c+x.both
			r := Record{s.Condition, s.Cluster, s.Seed, s.Sample, arm, mode, "scored", pass, "", p.PackHash, p.CheckHash}
			if !pass {
				r.Failure = "wrong answer"
			}
			ev.Records = append(ev.Records, r)
		}
	}
	return ev
}

// worked holds the four worked rows: IMPROVED, REGRESSED, UNCHANGED_WITHIN, INCONCLUSIVE(power).
var worked = map[string]pairs{four: {24, 6, 40}, eight: {5, 19, 40}, other: {3, 3, 100}, unseen: {9, 4, 10}, easy: {10, 4, 30}}

func evaluated(t *testing.T, p Plan, look string, ev Evidence) Result {
	t.Helper()
	r, err := Evaluate(p, testKey, look, ev)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func rowOf(t *testing.T, r Result, condition string) Row {
	t.Helper()
	if condition == OverallRow {
		return r.Overall
	}
	for _, row := range r.Rows {
		if row.Condition == condition {
			return row
		}
	}
	t.Fatalf("no row for %s", condition)
	return Row{}
}

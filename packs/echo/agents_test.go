package echo_test

import (
	"testing"
	"time"

	"provegym/gym"
	"provegym/gym/control"
	"provegym/packs/echo"
)

// A small check of the pack by its controls; the full one is provegym check-pack.
func TestControls(t *testing.T) {
	c, err := control.NewCheck(echo.Pack, control.Options{Seeds: 200, DialSeeds: 20, LevelTasks: 100})
	if err != nil {
		t.Fatal(err)
	}
	var r control.Report
	for !r.Done {
		r = c.Step(200 * time.Millisecond)
	}
	for _, f := range r.Failures {
		t.Errorf("%s %s: %s\n\trerun: %s", f.Control, f.View, f.Text, f.Rerun)
	}
	for _, row := range r.Rows {
		if row.Bound > 0 && row.Passes > 2 {
			t.Errorf("%s passed %d of %d in %s", row.Control, row.Passes, row.Episodes, row.Condition)
		}
		if row.Bound == 0 && (!row.OK || row.Episodes == 0 && row.Variants > 0 && row.Void == 0) {
			t.Errorf("row %+v", row)
		}
	}
}

// The baseline is what look-alikes break, and nothing else.
func TestFirstHit_failsOnLookAlikesOnly(t *testing.T) {
	passes := func(level int) int {
		c, err := echo.Pack.Condition("copy")
		if err == nil {
			c, err = c.With("look_alikes", level)
		}
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for seed := range uint64(200) {
			ep, err := gym.NewEpisode(gym.Task{Condition: c, Seed: seed}, gym.Options{})
			if err != nil {
				t.Fatal(err)
			}
			a, err := control.Agent(echo.Pack, "first_hit")
			if err != nil {
				t.Fatal(err)
			}
			actor, err := control.New(ep, a, 0, gym.Key{})
			if err == nil {
				err = control.Play(ep, actor)
			}
			if err != nil {
				t.Fatal(err)
			}
			if ep.Success() {
				n++
			}
		}
		return n
	}
	none, two, eight := passes(0), passes(1), passes(3)
	if none != 200 || two >= none || eight >= two {
		t.Errorf("of 200 it passes %d without look-alikes, %d with two, %d with eight", none, two, eight)
	}
}

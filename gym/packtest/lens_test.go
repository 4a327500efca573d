package packtest

import (
	"testing"

	"provegym/gym"
	"provegym/packs/echo"
)

// TestLens_structured: what no pack can plant, since the core writes it, is planted here: a slot, and a bit of the mask in every
// phase of a call.
func TestLens_structured(t *testing.T) {
	c, err := echo.Pack.Condition("copy")
	if err != nil {
		t.Fatal(err)
	}
	task := gym.Task{Condition: c, Seed: 5}
	begin := func(steps int) (*gym.Episode, *lens) {
		ep, err := gym.NewEpisode(task, gym.Options{View: gym.Structured})
		if err != nil {
			t.Fatal(err)
		}
		x := &exam{pack: echo.Pack, count: map[string]int{}}
		l := newLens(x, ep, "planted by a test")
		for range steps {
			calls := ep.Calls()
			for k, ok := range ep.Obs().Mask {
				if ok == 1 {
					if err := ep.StepAction(k); err != nil {
						t.Fatal(err)
					}
					break
				}
			}
			if ep.Calls() > calls {
				l.look(ep, nil)
			}
		}
		return ep, l
	}
	for steps := range 12 {
		ep, l := begin(steps)
		if l.table(ep); len(l.x.problems) > 0 {
			t.Fatalf("after %d steps: %v", steps, l.x.problems)
		}
		ep.Obs().Slots[gym.Slots-1][0] = 1
		if l.table(ep); !l.x.found(SecretInResult) {
			t.Errorf("after %d steps: a slot that nothing has shown is not found", steps)
		}
		for k := range gym.Actions {
			ep, l := begin(steps)
			ep.Obs().Mask[k] ^= 1
			if l.table(ep); !l.x.found(MaskTells) {
				t.Errorf("after %d steps, phase %v: a mask that differs at %d is not found", steps, ep.Obs().Phase, k)
			}
		}
	}
}

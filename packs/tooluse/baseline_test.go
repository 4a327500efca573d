package tooluse

import (
	"testing"

	"provegym/gym"
)

func TestBlind(t *testing.T) {
	each(t, func(t *testing.T, c gym.Condition) {
		for seed := range uint64(*seeds) {
			ep := start(t, c, seed, gym.View(seed%2))
			run(t, ep, "blind_oracle", 0)
			if !ep.Success() {
				t.Errorf("%s after %d of %d calls, %+v\nrerun: --agent blind_oracle --variant 0 --view %s '%s'", ep.Outcome(), ep.Calls(), ep.Limits().Calls, ep.Components(), ep.View(), ep.Task().ID())
			}
		}
	})
}

func TestBaselineRates(t *testing.T) {
	for _, preset := range []string{"L0", "L1", "L2", "L3", "L4"} {
		for _, agent := range []string{"nc2_random_valid", "priority_heuristic", "expected_value", "blind_oracle", "oracle"} {
			n, pass := 0, 0
			for i, family := range Pack.FamilyNames() {
				c, _ := Pack.Preset(family, preset)
				for seed := range uint64(*seeds) {
					ep := start(t, c, seed+uint64(i)<<20, gym.Text)
					run(t, ep, agent, 0)
					n++
					if ep.Success() {
						pass++
					}
				}
			}
			t.Logf("%s %s %d/%d", preset, agent, pass, n)
		}
	}
}

package tooluse

import (
	"fmt"
	"testing"

	"provegym/gym"
)

var benched = []string{"resolve-act", "for-each", "ops-allocate", "workspace-compensate"}

func BenchmarkReset(b *testing.B) {
	for _, family := range benched {
		for _, preset := range []string{"L1", "L3", "L4"} {
			for _, v := range []gym.View{gym.Text, gym.Structured} {
				b.Run(fmt.Sprintf("%s/%s/%s", family, preset, v), func(b *testing.B) {
					c, _ := Pack.Preset(family, preset)
					ep := &gym.Episode{}
					for i := range b.N {
						if err := ep.Start(gym.Task{Condition: c, Seed: uint64(i)}, gym.Options{View: v}); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// BenchmarkCall measures a call of the oracle: time of whole episodes without their reset, over their calls.
func BenchmarkCall(b *testing.B) {
	for _, family := range benched {
		for _, preset := range []string{"L1", "L3", "L4"} {
			for _, v := range []gym.View{gym.Text, gym.Structured} {
				b.Run(fmt.Sprintf("%s/%s/%s", family, preset, v), func(b *testing.B) {
					c, _ := Pack.Preset(family, preset)
					ep := start(b, c, 1, v)
					run(b, ep, "oracle", 0)
					var calls []gym.Call
					for i := range ep.Evidence().Log.Len() {
						r := ep.Evidence().Log.At(i)
						calls = append(calls, clone(Pack, &r.Call))
					}
					var at gym.Snapshot
					ep = start(b, c, 1, v)
					if err := ep.Snapshot(&at); err != nil {
						b.Fatal(err)
					}
					b.ResetTimer()
					for i := 0; i < b.N; {
						b.StopTimer()
						if err := ep.Restore(&at, gym.Options{View: v}); err != nil {
							b.Fatal(err)
						}
						b.StartTimer()
						for k := 0; k < len(calls) && i < b.N; k++ {
							if err := ep.StepCall(&calls[k]); err != nil {
								b.Fatal(err)
							}
							i++
						}
					}
				})
			}
		}
	}
}

// BenchmarkOracle measures whole episodes of the oracle, planning and playing, without their reset.
func BenchmarkOracle(b *testing.B) {
	for _, family := range benched {
		b.Run(family, func(b *testing.B) {
			c, _ := Pack.Preset(family, "L3")
			ep := start(b, c, 1, gym.Text)
			var at gym.Snapshot
			if err := ep.Snapshot(&at); err != nil {
				b.Fatal(err)
			}
			for range b.N {
				if err := ep.Restore(&at, gym.Options{}); err != nil {
					b.Fatal(err)
				}
				run(b, ep, "oracle", 0)
			}
		})
	}
}

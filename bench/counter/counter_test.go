package counter_test

import (
	"fmt"
	"testing"

	"provegym/bench/counter"
	"provegym/gym"
	"provegym/gym/vector"
)

// BenchmarkStep is what the rows of bench/run.py over the plain C loop step, without the border: for profiles.
//
//	go test -run '^$' -bench Step -cpuprofile cpu.out ./bench/counter
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{1, 64, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			v, err := vector.New(vector.Config{Sampler: vector.Sampler{Pack: counter.Pack}, NumEnvs: n, View: gym.Structured, Workers: 1})
			if err != nil {
				b.Fatal(err)
			}
			defer v.Close()
			io := vector.IO{Action: make([]int32, n), Reward: make([]float64, n), Terminated: make([]uint8, n),
				Truncated: make([]uint8, n), Outcome: make([]uint8, n), Limit: make([]uint8, n), Components: make([]uint8, n),
				Calls: make([]int32, n), Began: make([]uint8, n), Task: &vector.Text{},
				Obs: vector.Obs{Slots: make([]float32, n*gym.Slots*gym.SlotLen), Goal: make([]float32, n*gym.GoalLen),
					Last: make([]float32, n*gym.LastLen), Budget: make([]float32, n*gym.BudgetLn),
					Tools: make([]float32, n*gym.MaxTools*gym.ToolLen), Phase: make([]int32, n*gym.PhaseLen),
					Mask: make([]uint8, n*gym.Actions)}}
			if err := v.Bind(&io); err != nil {
				b.Fatal(err)
			}
			if err := v.Reset(nil, nil, nil); err != nil {
				b.Fatal(err)
			}
			s := gym.NewKey(1, "bench").Stream()
			actions := make([][]int32, 97)
			for t := range actions {
				actions[t] = make([]int32, n)
				for i := range actions[t] {
					actions[t][i] = int32(1 + s.IntN(2))
				}
			}
			b.ReportAllocs()
			for t := 0; b.Loop(); t++ {
				copy(io.Action, actions[t%len(actions)])
				if err := v.Step(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
		})
	}
}

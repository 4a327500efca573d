package trace

import (
	"fmt"
	"runtime"
	"testing"

	"provegym/gym"
)

// BenchmarkRecord steps episodes of 30 steps, with recording off and on; the final flush is timed. The report is a step's.
func BenchmarkRecord(b *testing.B) {
	for _, view := range []gym.View{gym.Text, gym.Structured} {
		for _, on := range []bool{false, true} {
			b.Run(fmt.Sprintf("view=%s/on=%v", view, on), func(b *testing.B) {
				o := gym.Options{View: view}
				var tr *Trace
				if on {
					tr = open(b, b.TempDir(), run, Options{})
					o.Recorder = tr
				}
				list := []byte(`{"tool":"list"}`)
				var ep gym.Episode
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				b.ResetTimer()
				n := 0
				for i := 0; n < b.N; i++ {
					must(b, ep.Start(task(steady, uint64(i%64)), o))
					for ; ep.Outcome() == gym.Running; n++ {
						if view == gym.Structured {
							must(b, ep.StepAction(1))
						} else {
							must(b, ep.StepText(list))
						}
					}
				}
				if on {
					_, err := tr.Flush()
					must(b, err)
				}
				b.StopTimer()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(n), "mallocs/step")
			})
		}
	}
}

// BenchmarkRecorder is the recorder alone: episodes of 30 steps as the core hands them over.
func BenchmarkRecorder(b *testing.B) {
	tr := open(b, b.TempDir(), run, Options{})
	start := gym.EpisodeStart{Task: task(steady, 1), Labels: gym.Labels{Purpose: "train", Iteration: 7, Group: 1000}}
	end := gym.EpisodeEnd{Outcome: gym.Scored, Steps: 30, Calls: 30, Digest: gym.Digest{1}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	var raw []byte
	s := gym.NewKey(1, "bench").Stream()
	for n := 0; n < b.N; n += 30 {
		id := tr.Begin(start)
		for i := range 30 {
			raw = gym.AppendStep(raw, gym.StepRec{View: gym.Structured, Action: s.IntN(40), CRC: uint32(s.Uint64()), Ended: i == 29})
		}
		raw = tr.Segment(id, 0, 30, raw)
		tr.End(id, end)
	}
	_, err := tr.Flush()
	must(b, err)
	b.StopTimer()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N), "mallocs/step")
}

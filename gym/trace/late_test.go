package trace

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"provegym/gym"
)

// Episodes that start anew at once, on many goroutines, leave their end to the writer; what it computes must be what the episode
// itself would have said then. Run with -race.
func TestEndLater_isTheEnd(t *testing.T) {
	tr := open(t, t.TempDir(), run, Options{})
	const workers, each = 8, 60
	var wg sync.WaitGroup
	var mu sync.Mutex
	want := map[uint64]gym.EpisodeEnd{} // by seed
	seeds := stream(t, "late")
	for w := range workers {
		rng := gym.NewKey(seeds.Uint64(), "late").Stream()
		wg.Add(1)
		go func() {
			defer wg.Done()
			var ep gym.Episode
			var snap gym.Snapshot
			for i := range each {
				seed := uint64(w*each + i)
				o := gym.Options{View: gym.View(i & 1), Recorder: tr}
				if err := errors.Join(ep.Start(task(steady, seed), o), playRandom(&ep, o.View, &rng, 1000)); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				want[seed] = ep.EndRecord()
				mu.Unlock()
				if i%7 == 0 { // what has ended can still be looked at and copied from
					if err := errors.Join(ep.Snapshot(&snap), ep.Restore(&snap, gym.Options{View: o.View})); err != nil {
						t.Error(err)
						return
					}
				}
			}
		}()
	}
	wg.Wait()
	_, err := tr.Flush()
	must(t, err)
	sound(t, tr.Path())
	rows, err := reader(t, tr.Path()).Episodes(Filter{})
	must(t, err)
	if len(rows) != workers*each {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		e := want[r.Seed]
		if r.Digest != e.Digest.String() || r.Outcome != e.Outcome || r.Steps != e.Steps || len(r.Audits) != len(e.Audits) {
			t.Errorf("row %+v is not the end %+v", r, e)
		}
	}
}

// A pack whose audits panic stops the recording with an error that says so; the process goes on.
func TestEndLater_auditPanics(t *testing.T) {
	broken := newPack("panicky", run.Pack, true)
	broken.Audits[0].Flag = func(*gym.Evidence) (bool, string) { panic("no such row") }
	tr := open(t, t.TempDir(), run, Options{})
	solve(t, startEpisode(t, task(broken, 1), gym.Options{Recorder: tr}), true)
	_, err := tr.Flush()
	if !errors.Is(err, gym.ErrPack) || !strings.Contains(err.Error(), "no such row") || !strings.Contains(err.Error(), "panicky@1/") {
		t.Errorf("flush: %v", err)
	}
	if err := startEpisode(t, task(steady, 1), gym.Options{}).Start(task(steady, 1), gym.Options{Recorder: tr}); err == nil {
		t.Error("an episode started with a recorder that has failed")
	}
}

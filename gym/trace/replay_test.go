package trace

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"provegym/gym"
)

func TestReplay_forks(t *testing.T) {
	s := stream(t, "forks")
	for _, view := range []gym.View{gym.Text, gym.Structured} {
		tr := open(t, t.TempDir(), run, Options{})
		parent := startEpisode(t, task(steady, 7), gym.Options{View: view, Recorder: tr})
		for range 6 {
			if view == gym.Structured {
				must(t, parent.StepAction(1))
			} else {
				must(t, parent.StepText([]byte(`{"tool":"list"}`)))
			}
		}
		var snap gym.Snapshot
		must(t, parent.Snapshot(&snap))
		var children []*gym.Episode
		for range 3 {
			c := &gym.Episode{}
			must(t, c.Restore(&snap, gym.Options{View: view, Recorder: tr}))
			must(t, playRandom(c, view, &s, 1000)) // the parent's steps are still in its own buffer
			children = append(children, c)
		}
		sound(t, tr.Path())
		must(t, children[0].Snapshot(&snap)) // of an ended episode
		must(t, new(gym.Episode).Restore(&snap, gym.Options{View: view, Recorder: tr}))
		must(t, playRandom(parent, view, &s, 1000))
		sound(t, tr.Path())
		rows, err := reader(t, tr.Path()).Episodes(Filter{})
		must(t, err)
		if len(rows) != 5 || rows[1].Parent != 1 || rows[1].ParentStep != 6 || rows[4].Parent != 2 || rows[4].ParentStep != rows[1].Steps {
			t.Errorf("rows %+v", rows)
		}

		elsewhere := open(t, t.TempDir(), run, Options{})
		must(t, new(gym.Episode).Restore(&snap, gym.Options{View: view, Recorder: elsewhere}))
		sound(t, elsewhere.Path())
		rows, err = reader(t, elsewhere.Path()).Episodes(Filter{})
		must(t, err)
		if len(rows) != 1 || rows[0].Parent != 0 || rows[0].ParentStep == 0 {
			t.Errorf("a fork into another trace: %+v", rows)
		}
	}
}

func TestReplay_findsEveryDifference(t *testing.T) {
	for _, c := range []struct{ what, sql string }{
		{"obs_crc", ""}, {"reward", ""}, {"ended", ""}, // by the bytes of the segment, below
		{"task", `UPDATE episode SET condition = 'steady@1/none'`},
		{"pack_hash", `UPDATE run SET pack_hash = 'hash-0'`},
		{"outcome", `UPDATE episode SET outcome = 2`},
		{"limit", `UPDATE episode SET limit_hit = 1`},
		{"components", `UPDATE episode SET path = 0`},
		{"reward", `UPDATE episode SET reward = 0.5`},
		{"steps", `UPDATE episode SET steps = 4`},
		{"calls", `UPDATE episode SET calls = 4`},
		{"digest", `UPDATE episode SET digest = zeroblob(16)`},
		{"audits", `INSERT INTO audit VALUES (1, 'x', 'y')`},
		{"segment", `UPDATE segment SET data = substr(data, 1, length(data) - 1) || x'77'`},
		{"segment", `UPDATE segment SET steps = 2`},
		{"segment", `UPDATE segment SET id = id + 1`},
	} {
		t.Run(c.what, func(t *testing.T) {
			tr := open(t, t.TempDir(), run, Options{})
			solve(t, startEpisode(t, task(steady, 3), gym.Options{Recorder: tr}), true)
			parts, err := segmentsOf(reader(t, tr.Path()).db, 1)
			must(t, err)
			must(t, tr.store.do(func(f *file) error {
				if c.sql != "" {
					_, err := f.exec(c.sql)
					return err
				}
				raw := parts[0].raw
				switch c.what { // of the last step: CRC, reward, flags
				case "obs_crc":
					raw[len(raw)-9] ^= 1
				case "reward":
					raw[len(raw)-3] ^= 1
				case "ended":
					raw[len(raw)-1] ^= 1
				}
				if _, err := f.exec(`DELETE FROM segment`); err != nil {
					return err
				}
				if err := tr.store.saveSegment(int64(1), 1, 3, raw); err != nil {
					return err
				}
				return tr.store.flushRows(&tr.store.segments)
			}))
			rep, err := reader(t, tr.Path()).Replay(Replay{Filter: Filter{Episode: 1}})
			must(t, err)
			if len(rep.Mismatches) != 1 || rep.Mismatches[0].What != c.what || rep.Replayed != 1 || !rep.Done {
				t.Errorf("report %+v", rep)
			}
			if _, err := reader(t, tr.Path()).Calls(1); err == nil {
				t.Error("calls of an episode that does not replay")
			}
		})
	}
}

func TestReplay_otherPackVersion_saysSo(t *testing.T) {
	tr := open(t, t.TempDir(), run, Options{})
	solve(t, startEpisode(t, task(steady, 3), gym.Options{Recorder: tr}), true)
	_, err := tr.Flush() // the writer may still be at the end of the episode, for which it reads the hash
	must(t, err)
	steady.Hash = "hash-9"
	defer func() { steady.Hash = "hash-1" }()
	_, err = reader(t, tr.Path()).Calls(1)
	if !errors.Is(err, gym.ErrSnapshot) || !strings.Contains(err.Error(), "another version of pack steady") {
		t.Errorf("got %v", err)
	}
}

func TestReplay_slices(t *testing.T) {
	dir := t.TempDir()
	tr := open(t, dir, run, Options{})
	loose := open(t, dir, Run{Pack: "hash-2"}, Options{})
	for i := range 10 {
		solve(t, startEpisode(t, task(steady, uint64(i)), gym.Options{Recorder: tr}), true)
		solve(t, startEpisode(t, task(drifting, uint64(i)), gym.Options{Recorder: loose}), true)
	}
	r := reader(t, dir)
	for _, slice := range []Replay{{Filter: Filter{Limit: 3}}, {Budget: time.Nanosecond}, {}} {
		total := ReplayReport{}
		n := 0
		for q := slice; !total.Done; n++ {
			rep, err := r.Replay(q)
			must(t, err)
			total.Replayed += rep.Replayed
			total.NotReplayable = append(total.NotReplayable, rep.NotReplayable...)
			total.Mismatches = append(total.Mismatches, rep.Mismatches...)
			total.Done, q.After = rep.Done, rep.Cursor
			if n > 100 {
				t.Fatalf("%+v does not end: %+v", slice, rep)
			}
		}
		if total.Replayed != 10 || len(total.NotReplayable) != 10 || len(total.Mismatches) != 0 {
			t.Errorf("%+v in %d slices: %+v", slice, n, total)
		}
		if slice.Limit+int(slice.Budget) > 0 && n < 7 {
			t.Errorf("%+v took only %d slices", slice, n)
		}
	}
	if _, err := r.Replay(Replay{Filter: Filter{Episode: 99}}); !errors.Is(err, gym.ErrUnknown) {
		t.Errorf("an episode that is not there: %v", err)
	}
}

// Episodes that the trainer ends from outside replay to their digests: with and without steps, forks of them, forks ended
// themselves, in both views.
func TestReplay_stopped(t *testing.T) {
	s := stream(t, "stopped")
	for _, view := range []gym.View{gym.Text, gym.Structured} {
		tr := open(t, t.TempDir(), run, Options{})
		var snap gym.Snapshot
		began := 0
		for _, steps := range []int{0, 1, 5} {
			for _, stop := range []func(*gym.Episode) error{
				func(e *gym.Episode) error { return e.Stop(gym.Truncated, gym.LimitTokens, "") },
				func(e *gym.Episode) error { return e.Stop(gym.Truncated, gym.LimitWall, "") },
				func(e *gym.Episode) error { return e.Stop(gym.Invalid, gym.NoLimit, "the server is gone") },
			} {
				ep := startEpisode(t, task(steady, uint64(began)), gym.Options{View: view, Recorder: tr})
				for range steps {
					if view == gym.Structured {
						must(t, ep.StepAction(1))
					} else {
						must(t, ep.StepText([]byte(`{"tool":"list"}`)))
					}
				}
				must(t, ep.Snapshot(&snap))
				child := &gym.Episode{}
				must(t, child.Restore(&snap, gym.Options{View: view, Recorder: tr}))
				must(t, stop(child))
				must(t, stop(ep))
				must(t, ep.Snapshot(&snap))
				must(t, child.Restore(&snap, gym.Options{View: view, Recorder: tr})) // of an ended episode
				began += 3
			}
		}
		ep := startEpisode(t, task(steady, 1), gym.Options{View: view, Recorder: tr})
		must(t, playRandom(ep, view, &s, 1000))
		sound(t, tr.Path())
		rows, err := reader(t, tr.Path()).Episodes(Filter{})
		must(t, err)
		if len(rows) != began+1 {
			t.Fatalf("%d rows", len(rows))
		}
		for _, r := range rows[:began] {
			if r.Outcome == gym.Running || len(r.Digest) != 32 || (r.Outcome == gym.Invalid) != (r.Reward == nil) || r.Success {
				t.Errorf("row %+v", r)
			}
		}
		var out bytes.Buffer
		must(t, reader(t, tr.Path()).ExportJSONL(&out, Filter{}))
		if n := bytes.Count(out.Bytes(), []byte("\n")); n != began+1 {
			t.Errorf("%d lines are exported", n)
		}
		must(t, tr.store.do(func(f *file) error {
			_, err := f.exec(`UPDATE episode SET outcome = 3, limit_hit = 0, reward = NULL, why = 'x' WHERE id = 1`)
			return err
		}))
		rep, err := reader(t, tr.Path()).Replay(Replay{Filter: Filter{Episode: 1}})
		must(t, err)
		if len(rep.Mismatches) != 1 || rep.Mismatches[0].What != "digest" {
			t.Errorf("another outcome from outside: %+v", rep)
		}
	}
}

// A task that could not be built has no digest and nothing to replay.
func TestReplay_neverBuilt(t *testing.T) {
	tr := open(t, t.TempDir(), run, Options{})
	id := tr.Begin(gym.EpisodeStart{Task: task(steady, 1)})
	tr.End(id, gym.EpisodeEnd{Outcome: gym.Invalid, Why: "the disk is full"})
	sound(t, tr.Path())
}

// An episode that a watchdog took away has no digest, and its last step, which hung, is not taken again.
func TestReplay_wallLimit(t *testing.T) {
	tr := open(t, t.TempDir(), run, Options{})
	id := tr.Begin(gym.EpisodeStart{Task: task(steady, 1)})
	tr.Segment(id, 0, 1, gym.AppendStep(nil, gym.StepRec{Text: []byte(`{"tool":"list"}`), Ended: true}))
	tr.End(id, gym.EpisodeEnd{Outcome: gym.Truncated, Limit: gym.LimitWall, Steps: 1, Calls: 1})
	sound(t, tr.Path())
}

// An episode that has ended is explained from its record, as it is where it runs, whether its pack replays or not; one that runs is not.
func TestExplanation(t *testing.T) {
	for _, p := range []*gym.Pack{steady, drifting} {
		tr := open(t, t.TempDir(), Run{Pack: p.Hash}, Options{})
		solve(t, startEpisode(t, task(p, 1), gym.Options{Recorder: tr}), true)
		early := startEpisode(t, task(p, 2), gym.Options{Recorder: tr})
		if _, err := early.Explain(); !errors.Is(err, gym.ErrRunning) {
			t.Errorf("while it runs: %v", err)
		}
		must(t, early.StepText(finish("done")))
		stopped := startEpisode(t, task(p, 3), gym.Options{Recorder: tr})
		must(t, stopped.Stop(gym.Truncated, gym.LimitTokens, ""))
		broken := startEpisode(t, task(p, 4), gym.Options{Recorder: tr})
		must(t, broken.StepText(finish("boom")))
		startEpisode(t, task(p, 5), gym.Options{Recorder: tr})
		if _, err := new(gym.Episode).Explain(); !errors.Is(err, gym.ErrNotReset) {
			t.Errorf("of no episode: %v", err)
		}
		r := reader(t, tr.Path())
		for id, want := range map[uint64][]gym.Explanation{
			1: {{Required: []gym.Fact{{Part: "goal", Text: "value", Met: true}}, Unrequested: []string{}}},
			2: {{Required: []gym.Fact{{Part: "goal", Text: "value"}}, Unrequested: []string{}, Decisive: &gym.Attribution{Kind: "early_stop", Why: "it was the last"}}},
			3: {{Required: []gym.Fact{{Part: "goal", Text: "value"}}, Unrequested: []string{}, Decisive: &gym.Attribution{Call: -1, Kind: "early_stop", Why: "it was the last"}}},
			4: {}, // lost: nothing is said of it
		} {
			got, err := r.Query(Query{What: "explanation", Filter: Filter{Episode: id}})
			must(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, episode %d (-want +got):\n%s", p.Name, id, diff)
			}
		}
		if live, err := early.Explain(); err != nil || live.Decisive == nil {
			t.Errorf("%+v, %v", live, err)
		}
		sound(t, tr.Path())
		var out bytes.Buffer
		must(t, r.ExportJSONL(&out, Filter{}))
		if n := strings.Count(out.String(), `"explanation":{"required":[{"part":"goal","text":"value","met":`); n != 3 {
			t.Errorf("%d of the exported episodes are explained:\n%s", n, out.String())
		}
	}
}

// A file of the schema before has no explanations of packs that do not replay, and says so; opened for recording it gets them.
func TestExplanation_schemaThree(t *testing.T) {
	tr := open(t, t.TempDir(), Run{Pack: drifting.Hash}, Options{})
	solve(t, startEpisode(t, task(drifting, 1), gym.Options{Recorder: tr}), true)
	must(t, tr.store.do(func(f *file) error {
		_, err := f.exec(`DROP TABLE explanation`)
		return err
	}))
	must(t, tr.store.do(func(f *file) error {
		_, err := f.exec(`PRAGMA user_version = 3`)
		return err
	}))
	must(t, tr.Close())
	if _, err := reader(t, tr.Path()).Explanation(1); !errors.Is(err, gym.ErrSnapshot) {
		t.Errorf("of a pack that does not replay: %v", err)
	}
	tr = open(t, tr.Path(), Run{Pack: drifting.Hash}, Options{})
	solve(t, startEpisode(t, task(drifting, 1), gym.Options{Recorder: tr}), true)
	for id, want := range map[uint64]int{1: 0, 2: 1} {
		if got, err := reader(t, tr.Path()).Explanation(id); err != nil || len(got) != want {
			t.Errorf("episode %d: %+v, %v", id, got, err)
		}
	}
	sound(t, tr.Path())
}

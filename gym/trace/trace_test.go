package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"provegym/gym"
)

func TestRecord_bothViews_replays(t *testing.T) {
	s := stream(t, "record")
	dir := t.TempDir()
	tr := open(t, dir, run, Options{})
	var ep gym.Episode
	want := map[uint64]gym.EpisodeEnd{}
	for i := range 60 {
		view := gym.View(i & 1)
		must(t, ep.Start(task(steady, uint64(i)), gym.Options{View: view, Recorder: tr,
			Labels: gym.Labels{Purpose: "train", Arm: "a", Look: "l", Cluster: "c", Sample: int64(i), Slot: 1 << 40, Group: -2, Iteration: 3}}))
		must(t, playRandom(&ep, view, &s, 1000))
		want[uint64(i+1)] = ep.EndRecord()
	}
	n, err := tr.Flush()
	if err != nil || n != 60 {
		t.Fatalf("flush: %d episodes, %v", n, err)
	}
	sound(t, dir)
	rows, err := reader(t, dir).Episodes(Filter{})
	must(t, err)
	seen := map[gym.Outcome]int{}
	for i, r := range rows {
		e := want[r.ID]
		seen[r.Outcome]++
		if r.Outcome != e.Outcome || r.Limit != e.Limit || r.Steps != e.Steps || r.Calls != e.Calls || r.Digest != e.Digest.String() ||
			r.Why != e.Why || len(r.Audits) != len(e.Audits) || r.Success != (e.Outcome == gym.Scored && e.Components.Success()) {
			t.Errorf("row %+v is not the end %+v", r, e)
		}
		if r.Seed != uint64(i) || r.Slot != 1<<40 || r.Group != -2 || r.Iteration != 3 || r.Task != task(steady, uint64(i)).ID() || r.Mode != "free" {
			t.Errorf("row %+v lost a label", r)
		}
	}
	if len(rows) != 60 || seen[gym.Scored] == 0 || seen[gym.Truncated] == 0 || seen[gym.Invalid] == 0 {
		t.Errorf("%d rows with outcomes %v: the test needs each of them", len(rows), seen)
	}
}

func TestRecord_successAndAudit(t *testing.T) {
	tr := open(t, t.TempDir(), run, Options{Durability: Full})
	for i, reading := range []bool{true, false} {
		ep := startEpisode(t, task(steady, uint64(i)), gym.Options{Recorder: tr})
		solve(t, ep, reading)
	}
	rows, err := reader(t, tr.Path()).Episodes(Filter{})
	must(t, err)
	if a, b := rows[0], rows[1]; !a.Success || *a.Reward != 1 || a.Audits != nil || len(b.Audits) != 1 || b.Audits[0].Name != "unread" {
		t.Errorf("rows %+v", rows)
	}
	calls, err := reader(t, tr.Path()).Calls(1)
	must(t, err)
	if len(calls) != 3 || calls[0].Tool != "list" || len(calls[0].Reads) != 8 || len(calls[1].Writes) != 1 || !strings.Contains(calls[2].Result, "finished") {
		t.Errorf("calls %+v", calls)
	}
	sound(t, tr.Path())
}

func TestRecord_longEpisode_manySegments(t *testing.T) {
	tr := open(t, t.TempDir(), run, Options{})
	ep := startEpisode(t, task(steady, 1), gym.Options{Recorder: tr})
	junk := bytes.Repeat([]byte("x"), 30<<10)
	for ep.Outcome() == gym.Running {
		must(t, ep.StepText(junk))
	}
	sound(t, tr.Path())
	r := reader(t, tr.Path())
	steps, err := r.Steps(1)
	must(t, err)
	parts, err := segmentsOf(r.db, 1)
	must(t, err)
	if len(steps) != 30 || len(parts) != 10 || steps[29].Text != string(junk) {
		t.Errorf("%d steps in %d segments", len(steps), len(parts))
	}
}

func TestRecord_eightGoroutines(t *testing.T) {
	tr := open(t, t.TempDir(), run, Options{})
	second := open(t, tr.Path(), Run{Policy: "other", Pack: "hash-3"}, Options{})
	tr.store.mu.Lock()
	tr.store.limit = 64 << 10 // so that steps block on a full queue
	tr.store.mu.Unlock()
	key := gym.NewKey(*seed, "eight")
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			s := key.At(uint64(g)).Stream()
			view, rec, pack := gym.View(g&1), tr, steady
			if g >= 6 {
				rec, pack = second, other
			}
			var ep gym.Episode
			for i := range 40 {
				if err := ep.Start(task(pack, s.Uint64()), gym.Options{View: view, Recorder: rec}); err != nil {
					t.Error(err)
				}
				if err := playRandom(&ep, view, &s, 20+i); err != nil {
					t.Error(err)
				}
				if i%13 == 0 {
					if _, err := rec.Flush(); err != nil {
						t.Error(err)
					}
				}
			}
			ep.Flush()
		})
	}
	r := reader(t, tr.Path())
	for range 20 {
		_, err := r.Episodes(Filter{Limit: 10})
		must(t, err)
	}
	wg.Wait()
	must(t, tr.Close())
	must(t, second.Close())
	sound(t, tr.Path())
	runs, err := r.Runs()
	must(t, err)
	if len(runs) != 2 || runs[0].Episodes != 240 || runs[1].Episodes != 80 || runs[0].EndedUS == 0 {
		t.Errorf("runs %+v", runs)
	}
}

func TestOpen_badInput_saysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o666))
		return path
	}
	foreign := func(name, sql string) string {
		path := filepath.Join(dir, name)
		f, err := openFile(path, Normal)
		must(t, err)
		_, err = f.conn.Exec(sql, nil)
		must(t, err)
		must(t, f.close())
		return path
	}
	for _, c := range []struct {
		name, path string
		run        Run
		o          Options
		is         error
		says       string
	}{
		{"text file", write("a.db", strings.Repeat("no database ", 99)), run, Options{}, ErrNotTrace, "path of its own"},
		{"other program's database", foreign("b.db", "PRAGMA application_id = 7"), run, Options{}, ErrNotTrace, "another program"},
		{"newer schema", foreign("c.db", fmt.Sprintf("PRAGMA user_version = %d", schemaVersion+1)), run, Options{}, ErrNewer, "update provegym"},
		{"folder below a file", filepath.Join(write("d", ""), "sub"), run, Options{}, nil, "choose a folder"},
		{"folder that cannot be made", "/proc/provegym", run, Options{}, nil, "choose a folder"},
		{"config that is no object", filepath.Join(dir, "e.db"), Run{Config: json.RawMessage("[1]")}, Options{}, gym.ErrBadInput, "JSON object"},
		{"nothing to resume", foreign("f.db", "INSERT INTO run(policy, checkpoint_hash, pack_hash, check_hash, split_hash, plan_hash, config, started_us, host, pid) VALUES ('random','c0','hash-1','check','s','other plan','{}',1,'',1)"),
			run, Options{Resume: true}, ErrNoRun, "plan_hash"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, _ := os.ReadFile(c.path)
			_, err := Open(c.path, c.run, c.o)
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %v saying %q", err, c.is, c.says)
			}
			if after, _ := os.ReadFile(c.path); c.is == ErrNotTrace && !bytes.Equal(before, after) {
				t.Error("it changed a file that is not its own")
			}
			if _, err := os.Stat(c.path + ".lock"); err == nil {
				t.Error("it left its lock behind")
			}
			if len(stores.open) != 0 {
				t.Errorf("it left a store open")
			}
		})
	}
	if _, err := OpenReader(filepath.Join(dir, "none.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading nothing: %v", err)
	}
	if _, err := OpenReader(filepath.Join(dir, "a.db")); !errors.Is(err, ErrNotTrace) {
		t.Errorf("reading a text file: %v", err)
	}
}

func TestOpen_missingBuildTag_isError(t *testing.T) {
	if m := missingOptions([]string{"OMIT_LOAD_EXTENSION", "THREADSAFE=1"}); len(m) != 1 || m[0] != "ENABLE_PREUPDATE_HOOK" {
		t.Errorf("missing %v", m)
	}
}

func TestRecord_diskFull_stopsLoudly(t *testing.T) {
	tr := open(t, t.TempDir(), run, Options{})
	solve(t, startEpisode(t, task(steady, 1), gym.Options{Recorder: tr}), true)
	if _, err := tr.Flush(); err != nil {
		t.Fatal(err)
	}
	must(t, tr.store.do(func(f *file) error { return nil }))
	tr.store.file.conn.Exec("PRAGMA max_page_count = 1", nil) // the writer is idle; SQLite takes the present size
	s := stream(t, "full")
	var ep gym.Episode
	var err error
	for i := 0; err == nil && i < 10000; i++ {
		if err = ep.Start(task(steady, uint64(i)), gym.Options{Recorder: tr}); err == nil {
			must(t, playRandom(&ep, gym.Text, &s, 100))
		}
		if i%50 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	if err == nil || !strings.Contains(err.Error(), "no space is left") {
		t.Fatalf("starting an episode on a full disk: %v", err)
	}
	if _, err := tr.Flush(); err == nil || !strings.Contains(err.Error(), "no space is left") {
		t.Errorf("flush on a full disk: %v", err)
	}
	if err := tr.Mark(1); err == nil {
		t.Error("mark on a full disk said nothing")
	}
	if err := tr.Close(); err == nil {
		t.Error("close on a full disk said nothing")
	}
	sound(t, tr.Path())
	if rows, err := reader(t, tr.Path()).Episodes(Filter{Episode: 1}); err != nil || len(rows) != 1 {
		t.Errorf("the flushed episode: %v, %v", rows, err)
	}
}

func TestRecord_otherPack_refused(t *testing.T) {
	tr := open(t, t.TempDir(), run, Options{})
	startEpisode(t, task(other, 1), gym.Options{Recorder: tr})
	err := new(gym.Episode).Start(task(steady, 1), gym.Options{Recorder: tr})
	if err == nil || !strings.Contains(err.Error(), "open a run of its own") {
		t.Errorf("got %v", err)
	}
}

func TestRecord_afterClose(t *testing.T) {
	tr := open(t, t.TempDir(), run, Options{})
	ep := startEpisode(t, task(steady, 1), gym.Options{Recorder: tr})
	must(t, tr.Close())
	must(t, tr.Close())
	if err := new(gym.Episode).Start(task(steady, 1), gym.Options{Recorder: tr}); !errors.Is(err, ErrClosed) {
		t.Errorf("start after close: %v", err)
	}
	if _, err := tr.Flush(); !errors.Is(err, ErrClosed) {
		t.Errorf("flush after close: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a step after close was lost in silence")
		}
	}()
	ep.StepText(finish("done"))
}

func TestSealed_slotFilledTwice_isError(t *testing.T) {
	for _, label := range []string{"same", "other"} {
		tr := open(t, t.TempDir(), run, Options{})
		for _, arm := range []string{"same", label} {
			ep := startEpisode(t, task(steady, 9), gym.Options{Recorder: tr, Labels: gym.Labels{Purpose: "sealed", Look: "1", Cluster: "c", Arm: arm}})
			must(t, ep.StepText(finish("done")))
			if _, err := tr.Flush(); (err != nil) != (label == "same" && ep.Labels().Arm == "same" && tr.store.nextID == 3) {
				t.Errorf("arm %s: flush: %v", arm, err)
			} else if err != nil && !strings.Contains(err.Error(), "filled twice") {
				t.Errorf("flush: %v", err)
			}
		}
	}
}

func TestResume_supersedesAfterMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	tr := open(t, path, run, Options{Resume: true}) // a new file: it starts
	labels := func(purpose string) gym.Labels {
		return gym.Labels{Purpose: purpose, Look: "1", Cluster: "c", Arm: "a"}
	}
	ended := func(tr *Trace, seed uint64, purpose string) {
		ep := startEpisode(t, task(steady, seed), gym.Options{Recorder: tr, Labels: labels(purpose)})
		must(t, ep.StepText(finish("done")))
	}
	ended(tr, 1, "train")
	open2 := startEpisode(t, task(steady, 2), gym.Options{Recorder: tr, Labels: labels("train")})
	must(t, tr.Mark(1))
	must(t, open2.StepText(finish("stop"))) // ended after the mark
	ended(tr, 3, "train")
	ended(tr, 4, "sealed")
	half := startEpisode(t, task(steady, 5), gym.Options{Recorder: tr, Labels: labels("sealed")})
	must(t, half.StepText([]byte("{}")))
	half.Flush()
	if records, err := reader(t, path).Slots("p", "1"); err != nil || len(records) != 4 {
		t.Errorf("slots while one runs: %+v, %v", records, err)
	}
	must(t, tr.Close())

	tr = open(t, path, run, Options{Resume: true})
	if tr.RunID() != 1 {
		t.Errorf("resumed as run %d", tr.RunID())
	}
	r := reader(t, path)
	filled, err := r.FilledSlots("p", "1")
	must(t, err)
	if len(filled) != 1 || filled[0] != (Slot{task(steady, 4).Condition.ID(), "c", 4, 0, "a"}) {
		t.Errorf("filled %+v", filled)
	}
	ended(tr, 5, "sealed") // the slot that was not filled
	ended(tr, 3, "train")
	_, err = tr.Flush()
	must(t, err)
	if rows, err := r.Episodes(Filter{}); err != nil || len(rows) != 4 {
		t.Errorf("%d rows without the superseded ones, %v", len(rows), err)
	}
	var kept, gone []uint64
	rows, err := r.Episodes(Filter{Superseded: true})
	must(t, err)
	for _, e := range rows {
		if e.Superseded {
			gone = append(gone, e.Seed)
		} else {
			kept = append(kept, e.Seed)
		}
	}
	if got, want := [][]uint64{kept, gone}, [][]uint64{{1, 4, 5, 3}, {2, 3, 5}}; !equal(got, want) {
		t.Errorf("kept and superseded seeds %v, want %v", got, want)
	}
	records, err := r.Slots("p", "1")
	must(t, err)
	if len(records) != 4 || records[0].Seed != 1 || records[3].Seed != 5 || records[3].Outcome != gym.Scored || *records[3].Reward != 0 || records[3].Pack != "hash-1" {
		t.Errorf("records %+v", records)
	}
	sound(t, path)
}

func equal(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

func TestQuery(t *testing.T) {
	tr := open(t, t.TempDir(), run, Options{})
	for i := range 5 {
		solve(t, startEpisode(t, task(steady, uint64(i)), gym.Options{Recorder: tr, Labels: gym.Labels{Purpose: "monitor", Look: "m", Iteration: int64(i)}}), true)
	}
	r := reader(t, tr.Path())
	for q, want := range map[string]int{
		`{"what":"runs"}`:                              1,
		`{"what":"episodes"}`:                          5,
		`{"what":"episodes","iteration":3}`:            1,
		`{"what":"episodes","after":2,"limit":2}`:      2,
		`{"what":"episodes","success":false}`:          0,
		`{"what":"episodes","purpose":"train"}`:        0,
		`{"what":"steps","episode":2}`:                 3,
		`{"what":"calls","episode":2}`:                 3,
		`{"what":"slots","plan":"p","look":"m"}`:       5,
		`{"what":"slots","plan":"another","look":"m"}`: 0,
		`{"what":"tokens"}`:                            0,
	} {
		var query Query
		must(t, json.Unmarshal([]byte(q), &query))
		rows, err := r.Query(query)
		must(t, err)
		var list []json.RawMessage
		b, err := json.Marshal(rows)
		must(t, err)
		must(t, json.Unmarshal(b, &list))
		if len(list) != want {
			t.Errorf("%s gave %d rows, want %d: %s", q, len(list), want, b)
		}
	}
	for _, q := range []Query{{What: "episode"}, {What: "steps", Filter: Filter{Episode: 99}}} {
		if _, err := r.Query(q); !errors.Is(err, gym.ErrUnknown) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

func TestExportJSONL(t *testing.T) {
	dir := t.TempDir()
	tr := open(t, dir, run, Options{})
	for i := range 3 {
		solve(t, startEpisode(t, task(steady, uint64(i)), gym.Options{Recorder: tr}), true)
	}
	loose := open(t, dir, Run{Pack: "hash-2"}, Options{})
	solve(t, startEpisode(t, task(drifting, 1), gym.Options{Recorder: loose}), true)
	var out bytes.Buffer
	must(t, reader(t, dir).ExportJSONL(&out, Filter{After: 1}))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, l := range lines {
		var x ExportedEpisode
		must(t, json.Unmarshal([]byte(l), &x))
		if x.ID != uint64(i+2) || len(x.Trajectory) != 3 || x.Trajectory[2].Text != string(finish("done")) {
			t.Errorf("line %s", l)
		}
		if !strings.HasPrefix(x.Instruction, "bring i-") || strings.Count(l, "bring i-") != 1 || !strings.Contains(x.Trajectory[0].Result, `"items"`) {
			t.Errorf("line without its full text, or with it twice: %s", l)
		}
	}
}

// What no replay could rebuild is kept word for word, in a fork too, in either view, and through the wall limit.
func TestRecord_ofAPackThatDoesNotReplay_keepsItsText(t *testing.T) {
	for _, view := range []gym.View{gym.Text, gym.Structured} {
		tr := open(t, t.TempDir(), Run{Pack: "hash-2"}, Options{})
		o := gym.Options{Recorder: tr, View: view}
		var told []string
		step := func(ep *gym.Episode) {
			call := ep.Pack().NewCall("list", nil)
			must(t, ep.StepCall(&call))
			told = append(told, string(ep.Result()))
		}
		ep := startEpisode(t, task(drifting, 5), o)
		step(ep)
		step(ep)
		var snap gym.Snapshot
		must(t, ep.Snapshot(&snap))
		fork := &gym.Episode{}
		must(t, fork.Restore(&snap, o))
		step(ep)
		ofParent := slices.Clone(told)
		told = told[:2]
		step(fork)
		for id, want := range map[uint64][]string{ep.RecordID(): ofParent, fork.RecordID(): told} {
			ep.Flush()
			fork.Flush()
			r := reader(t, tr.Path())
			steps, err := r.Steps(id)
			must(t, err)
			got, instructions := []string{}, ""
			for _, s := range steps {
				if instructions += s.Told; s.Shown != "" {
					got = append(got, s.Shown)
				}
			}
			if !slices.Equal(got, want) || instructions != ep.Instruction() {
				t.Errorf("%s view, episode %d: told %q and shown %q, and it was %q", view, id, instructions, got, want)
			}
			calls, err := r.Calls(id)
			must(t, err)
			if len(calls) != 3 || calls[2].Result != want[2] || view == gym.Text && calls[0].Tool != "list" {
				t.Errorf("%s view: calls %+v", view, calls)
			}
		}
		report, err := Verify(tr.Path())
		if must(t, err); !report.OK {
			t.Errorf("%+v", report)
		}
	}
	tr := open(t, t.TempDir(), run, Options{})
	solve(t, startEpisode(t, task(steady, 1), gym.Options{Recorder: tr}), true)
	steps, err := reader(t, tr.Path()).Steps(1)
	must(t, err)
	for _, s := range steps {
		if s.Told != "" || s.Shown != "" {
			t.Errorf("of a pack that replays %+v is kept", s)
		}
	}
}

func TestRecord_fullQueue_blocksTheStep(t *testing.T) {
	tr := open(t, t.TempDir(), run, Options{})
	const limit = 16 << 10
	tr.store.mu.Lock()
	tr.store.limit = limit
	tr.store.mu.Unlock()
	gate, busy := make(chan bool), make(chan bool)
	go tr.store.do(func(*file) error { close(busy); <-gate; return nil }) // the writer is stuck
	<-busy
	recorded := make(chan error)
	go func() {
		var ep gym.Episode
		for i := range 200 {
			if err := ep.Start(task(steady, uint64(i)), gym.Options{Recorder: tr}); err != nil {
				recorded <- err
				return
			}
			ep.StepText(finish("done"))
		}
		recorded <- nil
	}()
	for range 100 {
		time.Sleep(time.Millisecond) // gives a queue without bound the time to show itself
		tr.store.mu.Lock()
		waiting := tr.store.bytes
		tr.store.mu.Unlock()
		if waiting > limit+2*rowBytes {
			t.Errorf("%d bytes wait, and the limit is %d", waiting, limit)
			break
		}
	}
	close(gate)
	must(t, <-recorded)
	if n, err := tr.Flush(); err != nil || n != 200 {
		t.Errorf("%d of 200 episodes, %v", n, err)
	}
}

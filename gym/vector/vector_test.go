package vector

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"provegym/gym"
)

func newVector(t *testing.T, cfg Config) (*Vector, *IO) {
	t.Helper()
	v, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	b := buffers(cfg.NumEnvs)
	if err := v.Bind(b); err != nil {
		t.Fatal(err)
	}
	return v, b
}

func seedsOf(n int) []uint64 {
	s := make([]uint64, n)
	for i := range s {
		s[i] = uint64(1000 + i)
	}
	return s
}

// single is one row as a plain loop over one Episode: what the vector must equal.
type single struct {
	ep      gym.Episode
	sampler *Sampler
	seed    uint64
	counter uint64
	over    bool
}

func (s *single) reset(t *testing.T, v gym.View) {
	if err := s.ep.Start(s.sampler.Draw(s.seed, s.counter), gym.Options{View: v}); err != nil {
		t.Fatal(err)
	}
	s.counter++
	s.over = false
}

func (s *single) text() string { return string(s.ep.Result()) }

// shown is one row of the buffers.
type shown struct {
	Obs, Final                  string
	Reward                      float64
	Terminated, Truncated       uint8
	Outcome, Limit, Parts, Init uint8
	Calls                       int32
	Task                        string
}

// structured spells an observation.
func structured(o *gym.StructuredObs) string {
	return fmt.Sprint(o.Slots, o.Goal, o.Last, o.Budget, o.Tools, o.Phase, o.Mask)
}

func (b *IO) row(o *Obs, i int, v gym.View) string {
	if v == gym.Text {
		return o.Text.String(i)
	}
	var s gym.StructuredObs
	copy(flat(&s.Slots[0][0], gym.Slots*gym.SlotLen), o.Slots[i*gym.Slots*gym.SlotLen:])
	copy(s.Goal[:], o.Goal[i*gym.GoalLen:])
	copy(s.Last[:], o.Last[i*gym.LastLen:])
	copy(s.Budget[:], o.Budget[i*gym.BudgetLn:])
	copy(flat(&s.Tools[0][0], gym.MaxTools*gym.ToolLen), o.Tools[i*gym.MaxTools*gym.ToolLen:])
	copy(s.Phase[:], o.Phase[i*gym.PhaseLen:])
	copy(s.Mask[:], o.Mask[i*gym.Actions:])
	return structured(&s)
}

// TestVector_equalsSingles steps a vector and n plain episodes side by side and compares every buffer after every step.
func TestVector_equalsSingles(t *testing.T) {
	const n, steps = 13, 40
	for _, pack := range []*gym.Pack{bounded, watched} {
		for _, view := range []gym.View{gym.Text, gym.Structured} {
			for mode := NextStep; mode <= Disabled; mode++ {
				t.Run(fmt.Sprintf("%s/%s/%s", pack.Name, view, mode), func(t *testing.T) {
					v, b := newVector(t, Config{
						Sampler: Sampler{Pack: pack, Families: []string{"fill"}, Presets: []string{"L0", "L1"}},
						NumEnvs: n, View: view, Autoreset: mode, Workers: 3,
					})
					v.step.ns = 1e6 // never inline
					rng := gym.NewKey(1, "actions").Stream()
					rows := make([]single, n)
					if err := v.Reset(seedsOf(n), nil, nil); err != nil {
						t.Fatal(err)
					}
					for i := range rows {
						rows[i] = single{sampler: &v.cfg.Sampler, seed: seedsOf(n)[i]}
						rows[i].reset(t, view)
					}
					obs := func(s *single) string {
						if view == gym.Text {
							return s.text()
						}
						return structured(s.ep.Obs())
					}
					texts := make([]string, n)
					for step := range steps {
						ended := make([]uint8, n)
						want := make([]shown, n)
						for i := range rows {
							s := &rows[i]
							if mode == Disabled && s.over {
								ended[i] = 1
								s.reset(t, view)
							}
						}
						if slices.Contains(ended, 1) {
							if err := v.Step(); !errors.Is(err, ErrState) {
								t.Fatalf("stepping an ended row: %v", err)
							}
							if err := v.Reset(nil, nil, ended); err != nil {
								t.Fatal(err)
							}
						}
						for i := range rows {
							s := &rows[i]
							w := &want[i]
							if view == gym.Text {
								texts[i] = textAction(&rng, s.ep.Result())
							} else {
								b.Action[i] = int32(legal(&rng, s.ep.Obs().Mask[:]))
								if rng.IntN(20) == 0 {
									b.Action[i] = 64 // often illegal
								}
							}
							if mode == NextStep && s.over {
								s.reset(t, view)
								w.Init = 1
							} else {
								if view == gym.Text {
									must(t, s.ep.StepText([]byte(texts[i])))
								} else {
									must(t, s.ep.StepAction(int(b.Action[i])))
								}
								w.Reward, w.Outcome, w.Limit, w.Calls = s.ep.Reward(), uint8(s.ep.Outcome()), uint8(s.ep.Limit()), int32(s.ep.Calls())
								w.Parts = bits(s.ep.Components())
								switch s.ep.Outcome() {
								case gym.Running:
								case gym.Scored:
									w.Terminated = 1
								default:
									w.Truncated = 1
								}
								s.over = s.ep.Outcome() != gym.Running
								if mode == SameStep && s.over {
									w.Final = obs(s)
									s.reset(t, view)
									w.Init = 1
								}
							}
							w.Obs, w.Task = obs(s), s.ep.Task().ID()
						}
						b.setText(texts)
						v.SetActionText(b.ActionText)
						if err := v.Step(); err != nil {
							t.Fatal(err)
						}
						for i := range rows {
							got := shown{
								Obs: b.row(&b.Obs, i, view), Reward: b.Reward[i], Terminated: b.Terminated[i], Truncated: b.Truncated[i],
								Outcome: b.Outcome[i], Limit: b.Limit[i], Parts: b.Components[i], Calls: b.Calls[i], Task: b.Task.String(i),
								Init: b.Began[i],
							}
							if want[i].Final != "" {
								got.Final = b.row(&b.Final, i, view)
							}
							if d := cmp.Diff(want[i], got); d != "" {
								t.Fatalf("step %d, row %d (-single +vector):\n%s", step, i, d)
							}
						}
					}
				})
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// play runs tasks, each with the same actions whatever its row, and returns the digest of each.
func play(t *testing.T, ids []string, n, workers int, view gym.View, async bool) map[string]string {
	v, b := newVector(t, Config{Sampler: Sampler{Pack: bounded}, NumEnvs: n, View: view, Autoreset: Disabled, Workers: workers})
	v.step.ns = 1e6
	out := map[string]string{}
	for len(ids) > 0 {
		k := min(n, len(ids))
		jobs := make([]Job, k)
		mask := make([]uint8, n)
		for i := range jobs {
			task, err := gym.ParseTask(ids[i])
			must(t, err)
			jobs[i].Task, mask[i] = task, 1
		}
		ids = ids[k:]
		must(t, v.Queue(jobs, false))
		must(t, v.Reset(nil, nil, mask))
		streams := make([]gym.Stream, k)
		live := []uint32{}
		for i := range jobs {
			streams[i] = jobs[i].Task.Key().Sub("actions").Stream()
			live = append(live, uint32(i))
		}
		texts := make([]string, n)
		for len(live) > 0 {
			for _, i := range live {
				if view == gym.Text {
					texts[i] = textAction(&streams[i], []byte(b.Obs.Text.String(int(i))))
				} else {
					b.Action[i] = int32(legal(&streams[i], b.Obs.Mask[i*gym.Actions:(i+1)*gym.Actions]))
				}
			}
			b.setText(texts)
			v.SetActionText(b.ActionText)
			must(t, v.Send(live))
			ids := make([]uint32, n)
			for done := 0; done < len(live); {
				least := len(live)
				if async {
					least = 1
				}
				k, err := v.Recv(ids, least, -1)
				must(t, err)
				done += k
			}
			live = slices.DeleteFunc(live, func(i uint32) bool { return b.Outcome[i] != 0 })
		}
		for i := range jobs {
			s, err := v.Shown(i)
			must(t, err)
			out[s.Task.ID()] = s.Episode.Digest().String()
		}
	}
	return out
}

func TestVector_digestsDependOnTasksAlone(t *testing.T) {
	ids := make([]string, 200)
	for i := range ids {
		ids[i] = fmt.Sprintf("jars@1/fill#seed=%d", i)
	}
	for _, view := range []gym.View{gym.Text, gym.Structured} {
		want := play(t, ids, 1, 1, view, false)
		for _, c := range []struct{ n, workers int }{{1, 2}, {7, 2}, {64, 8}, {256, 1}, {256, 8}} {
			rng := gym.NewKey(uint64(c.n), "order").Stream()
			rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			for _, async := range []bool{false, true} {
				if d := cmp.Diff(want, play(t, ids, c.n, c.workers, view, async)); d != "" {
					t.Fatalf("%s, %d rows, %d workers, async %v:\n%s", view, c.n, c.workers, async, d)
				}
			}
		}
	}
}

// TestVector_resetGivesTheSameTasks shows that who gets which task does not depend on the workers, and what sample promises.
func TestVector_resetGivesTheSameTasks(t *testing.T) {
	var want []string
	for _, workers := range []int{1, 2, 8} {
		v, b := newVector(t, Config{Sampler: Sampler{Pack: bounded, Families: []string{"fill", "spill"}}, NumEnvs: 16, View: gym.Structured, Workers: workers})
		var got []string
		for k := range 3 {
			if k == 0 {
				must(t, v.Reset(seedsOf(16), nil, nil))
			} else {
				must(t, v.Reset(nil, nil, nil))
			}
			for i := range 16 {
				got = append(got, b.Task.String(i))
				if drawn := v.cfg.Draw(uint64(1000+i), uint64(k)).ID(); drawn != b.Task.String(i) {
					t.Fatalf("row %d shows %s and its stream draws %s", i, b.Task.String(i), drawn)
				}
			}
		}
		if want == nil {
			want = got
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	}
}

// TestSampler_drawIsStable pins the stream that tasks are drawn from: a change of it changes every run there is.
func TestSampler_drawIsStable(t *testing.T) {
	s := Sampler{Pack: bounded, Families: []string{"fill", "spill"}, Presets: []string{"L0", "L1"}}
	must(t, s.Prepare())
	for counter, want := range []string{
		"jars@1/spill?jars=5#seed=17525349061076106253", "jars@1/spill?jars=5#seed=14511368070843978058", "jars@1/spill#seed=584997019925150045",
	} {
		if got := s.Draw(7, uint64(counter)).ID(); got != want {
			t.Errorf("draw %d of seed 7 is %s, not %s", counter, got, want)
		}
	}
}

// ends is a recorder that keeps how episodes ended.
type ends struct {
	sync.Mutex
	began  int
	twice  bool
	during func() // of End
	ends   map[uint64]gym.EpisodeEnd
	steps  map[uint64]int
}

func (e *ends) Begin(gym.EpisodeStart) uint64 {
	e.Lock()
	defer e.Unlock()
	e.began++
	return uint64(e.began)
}

func (e *ends) Segment(id uint64, seq, steps int, raw []byte) []byte {
	e.Lock()
	defer e.Unlock()
	e.steps[id] += steps
	return make([]byte, 0, cap(raw))
}

func (e *ends) End(id uint64, end gym.EpisodeEnd) {
	if e.during != nil {
		e.during()
	}
	e.Lock()
	defer e.Unlock()
	if _, twice := e.ends[id]; twice {
		e.twice = true
	}
	e.ends[id] = end
}

func TestVector_aToolThatNeverReturns(t *testing.T) {
	const n = 64
	for _, way := range []string{"touch", "blind", "blind, and back while it is left behind"} {
		t.Run(way, func(t *testing.T) {
			let.Store(false)
			defer let.Store(true)
			rec := &ends{ends: map[uint64]gym.EpisodeEnd{}, steps: map[uint64]int{}}
			if strings.Contains(way, "back") {
				rec.during = func() { // its runner comes to put the row on the list
					let.Store(true)
					time.Sleep(50 * time.Millisecond)
				}
			}
			v, b := newVector(t, Config{Sampler: Sampler{Pack: watched, Families: []string{"spill"}}, NumEnvs: n, View: gym.Text, Recorder: rec})
			must(t, v.Reset(seedsOf(n), nil, nil))
			goroutines := runtime.NumGoroutine()
			texts := slices.Repeat([]string{`{"tool":"look"}`}, n)
			texts[17] = fmt.Sprintf(`{"tool":"spin","args":{"way":%q}}`, strings.Split(way, ",")[0])
			b.setText(texts)
			v.SetActionText(b.ActionText)
			must(t, v.Step())
			for i := range n {
				wantOutcome, wantLimit := gym.Running, gym.NoLimit
				if i == 17 {
					wantOutcome, wantLimit = gym.Truncated, gym.LimitWall
					if b.Truncated[i] != 1 || b.Terminated[i] != 0 || b.Reward[i] != 0 || b.Calls[i] != 1 || b.Obs.Text.String(i) != gym.WallResult {
						t.Errorf("row 17 shows %d %d %v %d %s", b.Truncated[i], b.Terminated[i], b.Reward[i], b.Calls[i], b.Obs.Text.String(i))
					}
				}
				if gym.Outcome(b.Outcome[i]) != wantOutcome || gym.Limit(b.Limit[i]) != wantLimit {
					t.Errorf("row %d: outcome %d, limit %d", i, b.Outcome[i], b.Limit[i])
				}
			}
			for id, end := range rec.ends {
				if end.Outcome != gym.Truncated || end.Limit != gym.LimitWall || end.Calls != 1 || rec.steps[id] != 1 {
					t.Errorf("the recorder was told %+v after %d steps", end, rec.steps[id])
				}
			}
			if len(rec.ends) != 1 {
				t.Errorf("the recorder was told of %d ends", len(rec.ends))
			}
			let.Store(true) // the one that was left behind comes back, and must touch nothing
			for late := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines; time.Sleep(time.Millisecond) {
				if time.Now().After(late) {
					t.Fatal("a goroutine is left")
				}
			}
			if rec.twice {
				t.Error("an episode ended twice")
			}
			for range 3 { // the batch goes on, row 17 with a fresh episode
				texts[17] = `{"tool":"look"}`
				b.setText(texts)
				v.SetActionText(b.ActionText)
				must(t, v.Step())
			}
			if b.Calls[17] != 2 || b.Outcome[17] != 0 || !strings.Contains(b.Obs.Text.String(17), `"jars"`) {
				t.Errorf("row 17 goes on with %d calls, outcome %d: %s", b.Calls[17], b.Outcome[17], b.Obs.Text.String(17))
			}
		})
	}
}

// refusing is a recorder that has failed: whoever still begins or ends an episode with it breaks its contract.
type refusing struct{ ends }

func (*refusing) Err() error { return errors.New("disk full") }

// TestVector_aFailedRecorderIsLeftAlone: no door begins or ends an episode with it, and each says why.
func TestVector_aFailedRecorderIsLeftAlone(t *testing.T) {
	for _, pack := range []*gym.Pack{bounded, watched} {
		rec := &refusing{ends{ends: map[uint64]gym.EpisodeEnd{}}}
		v, b := newVector(t, Config{Sampler: Sampler{Pack: pack, Families: []string{"fill"}}, NumEnvs: 2, View: gym.Text, Recorder: rec})
		sound, _ := newVector(t, Config{Sampler: Sampler{Pack: pack, Families: []string{"fill"}}, NumEnvs: 1, View: gym.Text})
		must(t, sound.Reset(nil, nil, nil))
		snap, err := sound.Snapshot(0)
		must(t, err)
		b.setText([]string{"", ""})
		v.SetActionText(b.ActionText)
		for name, door := range map[string]func() error{
			"Reset": func() error { return v.Reset(nil, nil, nil) }, "Step": v.Step, "Restore": func() error { return v.Restore(0, snap) },
		} {
			if err := door(); err == nil || !strings.Contains(err.Error(), "disk full") && name != "Step" {
				t.Errorf("%s with a failed recorder: %v", name, err)
			}
		}
		if rec.began != 0 || len(rec.ends.ends) != 0 {
			t.Errorf("the failed recorder was told of %d episodes", rec.began)
		}
	}
}

// TestVector_infrastructureFailures shows that a row that cannot be built, or whose tool fails, is invalid and alone in it.
func TestVector_infrastructureFailures(t *testing.T) {
	for _, pack := range []*gym.Pack{bounded, watched} {
		for _, family := range []string{"broken", "panics"} {
			rec := &ends{ends: map[uint64]gym.EpisodeEnd{}, steps: map[uint64]int{}}
			v, b := newVector(t, Config{Sampler: Sampler{Pack: pack, Families: []string{"fill"}}, NumEnvs: 4, View: gym.Text, Recorder: rec})
			c, err := pack.Condition(family)
			must(t, err)
			good, err := pack.Condition("fill")
			must(t, err)
			must(t, v.Queue([]Job{{Task: gym.Task{Condition: good}}, {Task: gym.Task{Condition: c}}}, false))
			must(t, v.Reset(nil, nil, nil))
			b.setText(slices.Repeat([]string{`{"tool":"look"}`}, 4))
			v.SetActionText(b.ActionText)
			must(t, v.Step())
			if d := cmp.Diff([]uint8{0, 3, 0, 0}, b.Outcome); d != "" {
				t.Fatal(d)
			}
			if b.Truncated[1] != 1 || b.Terminated[1] != 0 {
				t.Error("an invalid episode is truncated")
			}
			s, err := v.Shown(1)
			must(t, err)
			if s.Why == "" || s.Episode != nil {
				t.Errorf("row 1 shows %+v", s)
			}
			if rec.began != 4 || len(rec.ends) != 1 || rec.ends[4].Outcome != gym.Invalid && rec.ends[1].Outcome != gym.Invalid &&
				rec.ends[2].Outcome != gym.Invalid && rec.ends[3].Outcome != gym.Invalid {
				t.Errorf("the recorder was told %d %v", rec.began, rec.ends)
			}
			must(t, v.Step())
			if b.Began[1] != 1 || b.Outcome[1] != 0 {
				t.Error("row 1 does not go on")
			}
			if err := v.Reset(nil, nil, nil); err != nil {
				t.Fatal(err)
			}
			bad, _ := newVector(t, Config{Sampler: Sampler{Pack: pack, Families: []string{family}}, NumEnvs: 2, View: gym.Text})
			if err := bad.Reset(nil, nil, nil); err == nil {
				t.Error("a reset of which not one row could be built reports nothing")
			}
		}
		v, b := newVector(t, Config{Sampler: Sampler{Pack: pack, Families: []string{"spill"}}, NumEnvs: 2, View: gym.Text})
		for _, way := range []string{"fail", "panic"} {
			must(t, v.Reset(nil, nil, nil))
			b.setText([]string{`{"tool":"look"}`, fmt.Sprintf(`{"tool":"spin","args":{"way":%q}}`, way)})
			v.SetActionText(b.ActionText)
			must(t, v.Step())
			if b.Outcome[0] != 0 || gym.Outcome(b.Outcome[1]) != gym.Invalid || strings.Contains(b.Obs.Text.String(1), "fire") {
				t.Errorf("%s: outcomes %v, the agent sees %s", way, b.Outcome, b.Obs.Text.String(1))
			}
		}
	}
}

// TestVector_restoreAndForkAtEveryStep plays one episode in row 0; at every step it is restored from bytes into row 1 and forked
// into row 2, which then play the rest with the same actions.
func TestVector_restoreAndForkAtEveryStep(t *testing.T) {
	for _, pack := range []*gym.Pack{bounded, watched} {
		for _, view := range []gym.View{gym.Text, gym.Structured} {
			cfg := Config{Sampler: Sampler{Pack: pack, Families: []string{"fill"}}, NumEnvs: 3, View: view, Autoreset: Disabled}
			record := func(v *Vector, b *IO, rng *gym.Stream, texts []string) {
				texts[0] = textAction(rng, []byte(b.Obs.Text.String(0)))
				if b.Calls[0] < 5 {
					texts[0] = strings.ReplaceAll(texts[0], "finish", "look")
				}
				b.setText(texts)
				v.SetActionText(b.ActionText)
			}
			v, b := newVector(t, cfg)
			rng := gym.NewKey(5, "actions").Stream()
			must(t, v.Reset(seedsOf(3), nil, nil))
			var actions []int32
			var texts []string
			line := make([]string, 3)
			step := func(v *Vector, b *IO, rows []uint32) {
				must(t, v.Send(rows))
				_, err := v.Recv(make([]uint32, 3), len(rows), -1)
				must(t, err)
			}
			for b.Outcome[0] == 0 {
				if view == gym.Text {
					record(v, b, &rng, line)
					texts = append(texts, line[0])
				} else {
					b.Action[0] = int32(legal(&rng, b.Obs.Mask[:gym.Actions]))
					if b.Calls[0] < 4 && b.Obs.Phase[0] == 0 {
						b.Action[0] = 1 + b.Calls[0]%2 // look, pour
					}
					actions = append(actions, b.Action[0])
				}
				step(v, b, []uint32{0})
			}
			s, err := v.Shown(0)
			must(t, err)
			want := s.Episode.Digest()
			steps := max(len(actions), len(texts))
			if steps < 5 {
				t.Fatalf("only %d steps", steps)
			}
			for at := range steps {
				v, b := newVector(t, cfg)
				must(t, v.Reset(seedsOf(3), nil, nil))
				for k := range steps {
					rows := []uint32{0}
					if k >= at {
						rows = []uint32{0, 1, 2}
					}
					if k == at {
						data, err := v.Snapshot(0)
						must(t, err)
						must(t, v.Restore(1, data))
						must(t, v.Fork(0, []uint32{2}))
						for i := 1; i < 3; i++ {
							if b.row(&b.Obs, i, view) != b.row(&b.Obs, 0, view) {
								t.Fatalf("row %d shows another observation at step %d", i, at)
							}
						}
					}
					if view == gym.Text {
						b.setText(slices.Repeat([]string{texts[k]}, 3))
						v.SetActionText(b.ActionText)
					} else {
						copy(b.Action, slices.Repeat([]int32{actions[k]}, 3))
					}
					step(v, b, rows)
				}
				for i := range 3 {
					s, err := v.Shown(i)
					must(t, err)
					if got := s.Episode.Digest(); got != want {
						t.Fatalf("%s %s: row %d, split off at step %d, ends with %s and not %s", pack.Name, view, i, at, got, want)
					}
				}
			}
		}
	}
}

func TestVector_stepsWithoutMallocs(t *testing.T) {
	for _, workers := range []int{1, 2} {
		for _, view := range []gym.View{gym.Structured, gym.Text} {
			const n = 8
			v, b := newVector(t, Config{Sampler: Sampler{Pack: bounded, Families: []string{"fill"}, Presets: []string{"L1"}}, NumEnvs: n, View: view, Workers: workers})
			v.step.ns = 1e6
			b.setText(slices.Repeat([]string{`{"tool": "look", "args": {}}`}, n))
			v.SetActionText(b.ActionText)
			for i := range n {
				b.Action[i] = 1 // look
			}
			run := func() {
				must(t, v.Reset(nil, nil, nil))
				for range 8 {
					must(t, v.Step())
				}
			}
			for range 20 {
				run() // memory grows to what it needs
			}
			must(t, v.Reset(nil, nil, nil))
			if mallocs := testing.AllocsPerRun(5, func() { must(t, v.Step()) }); mallocs != 0 {
				t.Errorf("%s with %d workers: %v mallocs for a step of %d rows", view, workers, mallocs, n)
			}
			if b.Calls[0] < 6 {
				t.Errorf("only %d calls were measured", b.Calls[0])
			}
		}
	}
}

func TestVector_heldOutIsNeverDrawn(t *testing.T) {
	train := Sampler{Pack: bounded, Split: forbid{"spill"}, Mode: gym.Train}
	v, b := newVector(t, Config{Sampler: train, NumEnvs: 32, View: gym.Text})
	for k := range 8 {
		must(t, v.Reset(seedsOf(32), nil, nil))
		for i := range 32 {
			task, err := gym.ParseTask(b.Task.String(i))
			must(t, err)
			if task.Family == "spill" || task.Family == "fill" && task.Seed%4 == 3 {
				t.Fatalf("round %d, row %d: %s", k, i, task.ID())
			}
		}
	}
	held := gym.Task{Condition: gym.Condition{Pack: bounded, Family: "fill"}, Seed: 3}
	for name, err := range map[string]error{
		"named family": func() error { s := train; s.Families = []string{"fill", "spill"}; return s.Prepare() }(),
		"queue":        v.Queue([]Job{{Task: held}}, false),
		"restore": func() error {
			free, _ := newVector(t, Config{Sampler: Sampler{Pack: bounded}, NumEnvs: 1, View: gym.Text})
			must(t, free.Queue([]Job{{Task: held}}, false))
			must(t, free.Reset(nil, nil, nil))
			data, err := free.Snapshot(0)
			must(t, err)
			return v.Restore(0, data)
		}(),
		"no split": func() error { s := train; s.Split = nil; return s.Prepare() }(),
	} {
		if want := gym.ErrHeldOut; name != "no split" && !errors.Is(err, want) || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	before := b.Task.String(0)
	if s, err := v.Shown(0); err != nil || s.Task.ID() != before {
		t.Errorf("a refused restore changed the row: %v %v", s.Task, err)
	}
}

// list is a source that hands out tasks in order, each of seed 4k or, when held is set, of a held-out graph at times.
type list struct {
	next    int
	held    bool
	asked   []int
	results []Result
	fail    error
}

func (l *list) Ask(n int) ([]Job, error) {
	l.asked = append(l.asked, n)
	if l.fail != nil {
		return nil, l.fail
	}
	var jobs []Job
	for range n {
		seed := uint64(4 * l.next) // graph g0, or g3 below
		if l.held && l.next%3 == 0 {
			seed += 3
		}
		c, _ := bounded.Condition("fill")
		jobs = append(jobs, Job{Task: gym.Task{Condition: c, Seed: seed}, Labels: gym.Labels{Group: int64(l.next)}, Item: l.next})
		l.next++
	}
	return jobs, nil
}

func (l *list) Tell(r []Result) error {
	l.results = append(l.results, r...)
	return nil
}

func TestVector_groupsGetTheSameTasks(t *testing.T) {
	for _, workers := range []int{1, 8} {
		src := &list{held: true}
		v, b := newVector(t, Config{
			Sampler: Sampler{Pack: bounded, Families: []string{"fill"}, Split: forbid{}, Mode: gym.Train},
			NumEnvs: 8, GroupSize: 4, Source: src, View: gym.Text, Autoreset: SameStep, Workers: workers,
		})
		v.step.ns = 1e6
		must(t, v.Queue([]Job{{Task: gym.Task{Condition: gym.Condition{Pack: bounded, Family: "fill"}, Seed: 400}}}, false))
		must(t, v.Reset(nil, nil, nil))
		seen := [8][]string{}
		note := func() {
			for i := range seen {
				if b.Began[i] == 1 {
					seen[i] = append(seen[i], b.Task.String(i))
				}
			}
		}
		note()
		rng := gym.NewKey(2, "groups").Stream()
		for range 80 {
			texts := make([]string, 8)
			for i := range texts {
				texts[i] = `{"tool":"look"}`
				if rng.IntN(3) == 0 {
					texts[i] = `{"tool":"finish"}`
				}
			}
			b.setText(texts)
			v.SetActionText(b.ActionText)
			must(t, v.Step())
			note()
		}
		if seen[0][0] != "jars@1/fill#seed=400" {
			t.Errorf("the queue comes first, not %s", seen[0][0])
		}
		for i := range seen {
			k := min(len(seen[i]), len(seen[i-i%4]))
			if d := cmp.Diff(seen[i-i%4][:k], seen[i][:k]); d != "" || k < 10 {
				t.Fatalf("row %d (%d episodes):\n%s", i, k, d)
			}
		}
		lost, ended := map[int]int{}, 0
		for _, r := range src.results {
			if r.Outcome == gym.Invalid {
				lost[r.Item]++
			} else {
				ended++
			}
		}
		shown := slices.Concat(seen[:]...)
		for item := range src.next { // handed out once, then begun, or told as lost by every member
			begun := slices.Contains(shown, fmt.Sprintf("jars@1/fill#seed=%d", 4*item))
			if begun == (item%3 == 0) || !begun && lost[item] != 4 || begun && lost[item] != 0 {
				t.Errorf("job %d: begun %v, lost %d times", item, begun, lost[item])
			}
		}
		if ended < 50 {
			t.Errorf("the source was told of %d ends", ended)
		}
		for i := range seen {
			for _, id := range seen[i] {
				if task, err := gym.ParseTask(id); err != nil || task.Seed > 1000 {
					t.Errorf("row %d drew %s for itself, %v", i, id, err)
				}
			}
		}
		least := min(len(seen[0]), len(seen[1]), len(seen[2]), len(seen[3]))
		if ahead := max(len(seen[0]), len(seen[1]), len(seen[2]), len(seen[3])) - least; len(v.groups[0].jobs) > ahead+1 {
			t.Errorf("%d jobs of a group are kept, and its members are %d apart", len(v.groups[0].jobs), ahead)
		}
	}
	src := &list{fail: errors.New("asleep")}
	v, b := newVector(t, Config{Sampler: Sampler{Pack: bounded, Families: []string{"fill"}}, NumEnvs: 2, Source: src, View: gym.Text})
	if err := v.Reset(nil, nil, nil); !errors.Is(err, src.fail) || b.Task.String(1) == "" {
		t.Errorf("a source that fails: %v; row 1 shows %q", err, b.Task.String(1))
	}
}

func TestVector_callsAtTheWrongMoment(t *testing.T) {
	v, err := New(Config{Sampler: Sampler{Pack: bounded, Families: []string{"fill"}}, NumEnvs: 2, View: gym.Structured})
	must(t, err)
	state := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrState) {
			t.Errorf("%s: %v", what, err)
		}
	}
	state("step unbound", v.Step())
	state("reset unbound", v.Reset(nil, nil, nil))
	b := buffers(2)
	must(t, v.Bind(b))
	state("step before reset", v.Step())
	_, err = v.Recv(make([]uint32, 2), 1, 0)
	state("recv before send", err)
	must(t, v.Reset(nil, nil, nil))
	must(t, v.Send([]uint32{1}))
	state("step in flight", v.Step())
	state("reset in flight", v.Reset(nil, nil, nil))
	state("send twice", v.Send([]uint32{1}))
	_, err = v.Snapshot(1)
	state("snapshot in flight", err)
	ids := make([]uint32, 2)
	if k, err := v.Recv(ids, 2, -1); k != 1 || ids[0] != 1 || err != nil {
		t.Errorf("recv gave %d %v %v", k, ids, err)
	}
	for what, err := range map[string]error{
		"row":       v.Send([]uint32{2}),
		"row twice": v.Send([]uint32{0, 0}),
		"fork self": v.Fork(0, []uint32{0}),
		"restore":   v.Restore(0, []byte("{")),
	} {
		if !errors.Is(err, gym.ErrBadInput) {
			t.Errorf("%s: %v", what, err)
		}
	}
	v.Close()
	v.Close()
	state("step closed", v.Step())
	for _, cfg := range []Config{{NumEnvs: 0}, {NumEnvs: 3, GroupSize: 2}, {NumEnvs: 1 << 20}, {NumEnvs: 1, Workers: -1}} {
		cfg.Sampler.Pack = bounded
		if _, err := New(cfg); !errors.Is(err, gym.ErrBadInput) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// TestVector_stop ends rows from outside: the row is like one that a step has ended, the others go on, recorder and source are
// told once.
func TestVector_stop(t *testing.T) {
	for _, pack := range []*gym.Pack{bounded, watched} {
		for _, view := range []gym.View{gym.Text, gym.Structured} {
			for _, mode := range []Autoreset{Disabled, NextStep} {
				rec := &ends{ends: map[uint64]gym.EpisodeEnd{}, steps: map[uint64]int{}}
				src := &list{}
				v, b := newVector(t, Config{Sampler: Sampler{Pack: pack, Families: []string{"fill"}}, NumEnvs: 3, View: view, Autoreset: mode,
					Recorder: rec, Source: src})
				must(t, v.Reset(nil, nil, nil))
				step := func() {
					t.Helper()
					b.setText(slices.Repeat([]string{`{"tool":"look"}`}, 3))
					v.SetActionText(b.ActionText)
					for i := range b.Action {
						b.Action[i] = 1
					}
					must(t, v.Step())
				}
				step()
				before := [3]string{}
				for i := range before {
					before[i] = b.row(&b.Obs, i, view)
				}
				shown, err := v.Shown(1)
				must(t, err)
				must(t, v.Stop(1, gym.Truncated, gym.LimitTokens, ""))
				must(t, v.Stop(2, gym.Invalid, gym.NoLimit, "generation failed"))
				if d := cmp.Diff([]uint8{0, 2, 3}, b.Outcome); d != "" {
					t.Fatal(d)
				}
				if d := cmp.Diff([][]uint8{{0, 1, 1}, {0, 0, 0}, {0, uint8(gym.LimitTokens), 0}, {0, 0, 0}}, [][]uint8{b.Truncated, b.Terminated, b.Limit, b.Components}); d != "" {
					t.Error(d)
				}
				if b.Reward[1] != 0 || b.Calls[1] != int32(shown.Episode.Calls()) {
					t.Errorf("reward %v, %d calls", b.Reward[1], b.Calls[1])
				}
				for i := range before {
					if got := b.row(&b.Obs, i, view); got != before[i] {
						t.Errorf("row %d shows another observation", i)
					}
				}
				again, err := v.Shown(2)
				must(t, err)
				if again.Record != 3 && pack == bounded || again.Outcome != gym.Invalid || again.Why != "generation failed" || again.Success() {
					t.Errorf("row 2 shows %+v", again)
				}
				if end := rec.ends[shown.Record]; len(rec.ends) != 2 || end.Outcome != gym.Truncated || end.Limit != gym.LimitTokens ||
					end.Digest != shown.Episode.Digest() || rec.steps[shown.Record] != end.Steps {
					t.Errorf("the recorder was told %+v, %d steps", rec.ends, rec.steps[shown.Record])
				}
				if len(src.results) != 2 || src.results[0].Outcome != gym.Truncated || src.results[1].Outcome != gym.Invalid || src.results[0].Success {
					t.Errorf("the source was told %+v", src.results)
				}
				if err := v.Stop(1, gym.Truncated, gym.LimitTokens, ""); !errors.Is(err, ErrState) {
					t.Errorf("stopped twice: %v", err)
				}
				if mode == Disabled {
					if err := v.Step(); !errors.Is(err, ErrState) {
						t.Errorf("a step after the stop: %v", err)
					}
					must(t, v.Reset(nil, nil, []uint8{0, 1, 1}))
				} else {
					step()
				}
				if d := cmp.Diff([]uint8{0, 0, 0}, b.Outcome); d != "" || b.Began[1] != 1 || b.Began[2] != 1 || b.Truncated[1] != 0 {
					t.Errorf("%s: the rows do not go on: %s", mode, d)
				}
				if s, err := v.Shown(1); err != nil || s.Record == shown.Record || s.Task == shown.Task {
					t.Errorf("row 1 still shows %+v, %v", s, err)
				}
				step()
				if rec.twice || len(rec.ends) != 2 || len(src.results) != 2 {
					t.Error("an end was told twice")
				}
			}
		}
	}
}

func TestVector_stopAtTheWrongMoment(t *testing.T) {
	stop := func(v *Vector, i int) error { return v.Stop(i, gym.Truncated, gym.LimitTokens, "") }
	v, b := newVector(t, Config{Sampler: Sampler{Pack: bounded, Families: []string{"fill"}}, NumEnvs: 2, View: gym.Text, Autoreset: Disabled})
	state := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrState) {
			t.Errorf("%s: %v", what, err)
		}
	}
	state("before reset", stop(v, 0))
	broken, err := bounded.Condition("broken")
	must(t, err)
	good, err := bounded.Condition("fill")
	must(t, err)
	must(t, v.Queue([]Job{{Task: gym.Task{Condition: good}}, {Task: gym.Task{Condition: broken}}}, false))
	must(t, v.Reset(nil, nil, nil))
	b.setText([]string{"x", "x"})
	v.SetActionText(b.ActionText)
	must(t, v.Send([]uint32{0}))
	state("in flight", stop(v, 0))
	ids := make([]uint32, 2)
	_, err = v.Recv(ids, 1, -1)
	must(t, err)
	for _, err := range []error{stop(v, 2), stop(v, -1), v.Stop(0, gym.Scored, 0, ""), v.Stop(1, gym.Invalid, 0, "")} {
		if !errors.Is(err, gym.ErrBadInput) {
			t.Errorf("bad input: %v", err)
		}
	}
	must(t, stop(v, 1)) // could not be built
	if gym.Outcome(b.Outcome[1]) != gym.Invalid || b.Limit[1] != 0 || b.Outcome[0] != 0 {
		t.Errorf("a row that was never built: outcomes %v, limits %v", b.Outcome, b.Limit)
	}
	same, _ := newVector(t, Config{Sampler: Sampler{Pack: bounded, Families: []string{"fill"}}, NumEnvs: 1, View: gym.Text, Autoreset: SameStep})
	must(t, same.Reset(nil, nil, nil))
	state("same step", stop(same, 0))
	v.Close()
	state("closed", stop(v, 0))
}

// TestVector_hammer sends and receives at random from several vectors at once; it is for the race detector.
func TestVector_hammer(t *testing.T) {
	var wg sync.WaitGroup
	for k, pack := range []*gym.Pack{bounded, bounded, watched} {
		wg.Go(func() {
			const n = 24
			v, err := New(Config{Sampler: Sampler{Pack: pack, Families: []string{"fill"}}, NumEnvs: n, View: gym.Structured, Autoreset: Autoreset(k % 2), Workers: 4})
			if err != nil {
				t.Error(err)
				return
			}
			defer v.Close()
			v.step.ns, v.write.ns = 1e6, 1e6
			b := buffers(n)
			rng := gym.NewKey(uint64(k), "hammer").Stream()
			check := func(err error) {
				if err != nil {
					t.Error(err)
				}
			}
			check(v.Bind(b))
			check(v.Reset(nil, nil, nil))
			flying := map[uint32]bool{}
			for range 300 {
				var ids []uint32
				for i := range uint32(n) {
					if !flying[i] && rng.IntN(2) == 0 {
						ids, flying[i] = append(ids, i), true
						b.Action[i] = int32(legal(&rng, b.Obs.Mask[i*gym.Actions:(i+1)*gym.Actions]))
					}
				}
				check(v.Send(ids))
				if len(flying) == 0 {
					continue
				}
				got := make([]uint32, n)
				k, err := v.Recv(got, rng.IntN(len(flying)+1), time.Duration(rng.IntN(2))*time.Millisecond)
				check(err)
				if !slices.IsSorted(got[:k]) {
					t.Errorf("rows come as %v", got[:k])
				}
				for _, i := range got[:k] {
					delete(flying, i)
				}
				if len(flying) == 0 {
					for i := range b.Action {
						b.Action[i] = int32(legal(&rng, b.Obs.Mask[i*gym.Actions:(i+1)*gym.Actions]))
					}
					check(v.Step())
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkVector_step reports the time of one row of a step, episodes and their resets included.
func BenchmarkVector_step(b *testing.B) {
	for _, view := range []gym.View{gym.Structured, gym.Text} {
		for _, n := range []int{1, 64, 512} {
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprintf("view=%s/envs=%d/workers=%d", view, n, workers), func(b *testing.B) {
					v, err := New(Config{Sampler: Sampler{Pack: bounded, Families: []string{"fill"}}, NumEnvs: n, View: view, Workers: workers, Autoreset: SameStep})
					if err != nil {
						b.Fatal(err)
					}
					defer v.Close()
					buf := buffers(n)
					for i := range buf.Action {
						buf.Action[i] = 1
					}
					buf.setText(slices.Repeat([]string{`{"tool":"look","args":{}}`}, n))
					if err := errors.Join(v.Bind(buf), v.Reset(nil, nil, nil)); err != nil {
						b.Fatal(err)
					}
					for b.Loop() {
						if err := v.Step(); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
				})
			}
		}
	}
}

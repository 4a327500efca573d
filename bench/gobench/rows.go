package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"provegym/bench/counter"
	"provegym/gym"
	"provegym/gym/control"
	"provegym/gym/trace"
	"provegym/packs/tooluse"
)

func open(path string, p *gym.Pack) (*trace.Trace, error) {
	return trace.Open(path, trace.Run{Policy: "bench", Pack: p.Hash, Check: p.CheckHash, Config: json.RawMessage("{}")}, trace.Options{})
}

// mallocs counts heap objects per step on the counter: episodes of 30 steps, and a stretch of steps within one.
func (r *report) mallocs(path string) error {
	cond, err := counter.Pack.Condition("reach")
	if err != nil {
		return err
	}
	const steps = 30
	tr, err := open(path, counter.Pack)
	if err != nil {
		return err
	}
	episode := func(ep *gym.Episode, o gym.Options) func() error {
		return func() error {
			err := ep.Start(gym.Task{Condition: cond}, o)
			for i := 0; i < steps && err == nil; i++ {
				err = ep.StepAction(1)
			}
			return err
		}
	}
	none := func() error { return nil }
	flush := func() error { _, err := tr.Flush(); return err }
	for name, o := range map[string]gym.Options{"off": {View: gym.Structured}, "on": {View: gym.Structured, Recorder: tr}} {
		end := none
		if o.Recorder != nil {
			end = flush
		}
		n, err := mallocsOf(2000, episode(&gym.Episode{}, o), end)
		if err != nil {
			return err
		}
		r.Mallocs["episode_"+name] = n / steps
	}
	// The stretch: every step of an episode but its last, from a snapshot, so that no reset is among them.
	for _, view := range []gym.View{gym.Structured, gym.Text} {
		ep, start := &gym.Episode{}, gym.Snapshot{}
		add := []byte(`{"tool":"add","args":{"n":1}}`)
		o := gym.Options{View: view}
		if err := ep.Start(gym.Task{Condition: cond}, o); err != nil {
			return err
		}
		if err := ep.Snapshot(&start); err != nil {
			return err
		}
		const calls = 14
		n, err := mallocsOf(2000, func() error {
			err := ep.Restore(&start, o)
			for i := 0; i < calls && err == nil; i++ {
				if view == gym.Text {
					err = ep.StepText(add)
				} else if err = ep.StepAction(1); err == nil {
					err = ep.StepAction(1)
				}
			}
			return err
		}, none)
		if err != nil {
			return err
		}
		r.Mallocs["steps_"+view.String()] = n / calls
	}
	return tr.Close()
}

// record compares stepping 512 rows of the tool-use pack with recording off and on, the last flush of a slice among its costs.
func (r *report) record(view gym.View, think time.Duration, rounds int, slice time.Duration, dir string) error {
	const n = 512
	s, err := scripts(tooluse.Pack, view, 480)
	if err != nil {
		return err
	}
	row := view.String()
	iterations := 0
	if think > 0 {
		row = fmt.Sprintf("%s_%dus", row, think.Microseconds())
		iterations = int(think.Seconds() / perIteration())
	}
	path := filepath.Join(dir, row+".db")
	tr, err := open(path, tooluse.Pack)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	off, err := newPlayer(view, n, s, nil, iterations)
	if err != nil {
		return err
	}
	on, err := newPlayer(view, n, s, tr, iterations)
	if err != nil {
		return err
	}
	costs := map[string][]float64{}
	batches := 1
	for round := -1; round < rounds; round++ { // the first one warms up and sizes the slices
		for k, p := range []*player{off, on} {
			runtime.GC()
			began, cpu := time.Now(), thread()
			if err := p.run(batches); err != nil {
				return err
			}
			if p == on {
				if _, err := tr.Flush(); err != nil {
					return err
				}
			}
			wall, used := time.Since(began), thread()-cpu
			if round < 0 {
				if k == 0 && wall < slice/2 {
					round, batches = -2, batches*2 // again
					break
				}
				continue
			}
			name := [2]string{"off", "on"}[k]
			steps := float64(batches * n)
			costs[name] = append(costs[name], float64(wall)/steps)
			costs[name+"_cpu"] = append(costs[name+"_cpu"], used/steps)
		}
	}
	r.Record[row] = costs
	total := 0
	for i := range s {
		total += len(s[i].steps)
	}
	r.Steps[row] = float64(total) / float64(len(s))
	off.Close()
	on.Close()
	return tr.Close()
}

// perIteration returns the seconds of one iteration of work.
func perIteration() float64 {
	const n = 1 << 20
	best := time.Hour
	for range 10 {
		began := time.Now()
		if work(1, n) == 0 {
			panic("the sequence has no zero there")
		}
		best = min(best, time.Since(began))
	}
	return best.Seconds() / n
}

// parts times what an episode of the tool-use pack is made of, per call of a tool or per use.
func (r *report) parts(rounds int, slice time.Duration) error {
	for _, view := range []gym.View{gym.Text, gym.Structured} {
		s, err := scripts(tooluse.Pack, view, 240)
		if err != nil {
			return err
		}
		var fork, snap gym.Snapshot
		ep, other := &gym.Episode{}, &gym.Episode{}
		o := gym.Options{View: view}
		var spent map[string]float64
		var uses map[string]int
		timed := func(name string, n int, f func() error) error {
			began := time.Now() // the stretches are far shorter than the grain of a thread's processor time
			err := f()
			spent[name] += float64(time.Since(began))
			uses[name] += n
			return err
		}
		for range rounds {
			spent, uses = map[string]float64{}, map[string]int{}
			for i, began := 0, time.Now(); i < len(s) || time.Since(began) < slice; i++ {
				one := &s[i%len(s)]
				if err := timed("reset", 1, func() error { return ep.Start(one.task, o) }); err != nil {
					return err
				}
				half := len(one.steps) / 2
				play := func(steps []gym.StepRec) func() error {
					return func() (err error) {
						for k := 0; k < len(steps) && err == nil; k++ {
							if view == gym.Text {
								err = ep.StepText(steps[k].Text)
							} else {
								err = ep.StepAction(steps[k].Action)
							}
						}
						return err
					}
				}
				if err := timed("call", 0, play(one.steps[:half])); err != nil {
					return err
				}
				if err := timed("snapshot", 1, func() error { return ep.Snapshot(&snap) }); err != nil {
					return err
				}
				if err := timed("restore", 1, func() error { return ep.Restore(&snap, o) }); err != nil {
					return err
				}
				if err := timed("fork", 1, func() error {
					if err := ep.Snapshot(&fork); err != nil {
						return err
					}
					return other.Restore(&fork, o)
				}); err != nil {
					return err
				}
				if err := timed("call", one.calls, play(one.steps[half:])); err != nil {
					return err
				}
			}
			for name := range spent {
				r.Parts[name+"_"+view.String()] = append(r.Parts[name+"_"+view.String()], spent[name]/float64(uses[name]))
			}
		}
	}
	return nil
}

// oracle measures whole episodes of the oracle at L3, planned and played, without their reset: the dearest family of each round.
func (r *report) oracle(rounds int) error {
	oracle, err := control.Agent(tooluse.Pack, "oracle")
	if err != nil {
		return err
	}
	ep, start := &gym.Episode{}, gym.Snapshot{}
	for range rounds {
		dearest := time.Duration(0)
		for seed, family := range tooluse.Pack.FamilyNames() {
			cond, err := tooluse.Pack.Preset(family, "L3")
			if err != nil {
				return err
			}
			task := gym.Task{Condition: cond, Seed: uint64(seed)}
			if err := ep.Start(task, gym.Options{}); err != nil {
				return err
			}
			if err := ep.Snapshot(&start); err != nil {
				return err
			}
			best := time.Duration(math.MaxInt64) // of three: the first finds no memory warm
			for range 3 {
				if err := ep.Restore(&start, gym.Options{}); err != nil {
					return err
				}
				began := time.Now()
				actor, err := control.New(ep, oracle, 0, control.Key(task, "oracle"))
				if err == nil {
					err = control.Play(ep, actor)
				}
				if err != nil {
					return err
				}
				best = min(best, time.Since(began))
			}
			if !ep.Success() {
				return fmt.Errorf("the oracle fails on %s", task.ID())
			}
			dearest = max(dearest, best)
		}
		r.Parts["oracle_L3"] = append(r.Parts["oracle_L3"], float64(dearest))
	}
	return nil
}

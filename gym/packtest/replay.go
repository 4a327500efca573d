package packtest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"

	"provegym/gym"
)

// replays plays every script again, in fresh memory. What differs here differs by itself: global random numbers, the order
// of a map, a clock, a counter.
func (x *exam) replays() {
	for _, s := range x.scripts {
		var ep gym.Episode
		if err := s.again(&ep); err != nil {
			x.say(StepVaries, s.rerun(), "%v", err)
		}
	}
}

// again plays the whole script in ep's memory.
func (s *script) again(ep *gym.Episode) error {
	if err := ep.Start(s.task, gym.Options{View: s.view}); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return s.follow(ep, 0)
}

// clones looks whether acting reaches the first world or a clone taken on the way.
func (x *exam) clones() {
	for _, s := range x.scripts {
		var ep gym.Episode
		if ep.Start(s.task, gym.Options{View: s.view}) != nil {
			continue
		}
		first := gym.DigestWorld(ep.Evidence().First)
		clone := ep.Evidence().Last.Clone()
		then := gym.DigestWorld(clone)
		for i := range s.steps {
			if step(&ep, s.steps[i]) != nil {
				break
			}
			if gym.DigestWorld(clone) != then {
				x.say(CloneShares, s.rerun(), "step %d changed a clone", i+1)
				break
			}
			if gym.DigestWorld(ep.Evidence().First) != first {
				x.say(CloneShares, s.rerun(), "step %d changed the world as built", i+1)
				break
			}
			if i == len(s.steps)/2 {
				clone = ep.Evidence().Last.Clone()
				then = gym.DigestWorld(clone)
			}
		}
	}
}

// places plays the scripts where other episodes have been or are: the same memory, other threads, other orders.
func (x *exam) places() {
	var used gym.Episode
	key := x.opts.Key.Sub("packtest order")
	shuffled := key.Stream()
	order := append([]*script(nil), x.scripts...)
	shuffled.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, s := range order {
		if err := s.again(&used); err != nil {
			x.say(MemoryMatters, s.rerun(), "%v", err)
		}
	}
	for _, threads := range []int{1, 2, 8} {
		var wg sync.WaitGroup
		found := make([]error, len(order))
		for t := range threads {
			wg.Go(func() {
				var ep gym.Episode
				for i := t; i < len(order); i += threads {
					found[i] = order[i].again(&ep)
				}
			})
		}
		wg.Wait()
		for i, err := range found {
			if err != nil {
				x.say(ThreadsMatter, order[i].rerun(), "%d threads: %v", threads, err)
			}
		}
	}
	for _, batch := range []int{2, len(order)} {
		for from := 0; from < len(order); from += batch {
			x.interleave(order[from:min(from+batch, len(order))], &shuffled)
		}
	}
}

// interleave plays the scripts together, one step of a random one at a time.
func (x *exam) interleave(scripts []*script, s *gym.Stream) {
	eps := make([]gym.Episode, len(scripts))
	at := make([]int, len(scripts))
	var open []int
	for i := range scripts {
		if err := eps[i].Start(scripts[i].task, gym.Options{View: scripts[i].view}); err == nil {
			open = append(open, i)
		}
	}
	for len(open) > 0 {
		k := s.IntN(len(open))
		i := open[k]
		if at[i] == len(scripts[i].steps) {
			open = append(open[:k], open[k+1:]...)
			continue
		}
		if err := scripts[i].step(&eps[i], at[i]); err != nil {
			x.say(OrderMatters, scripts[i].rerun(), "in a batch of %d: %v", len(scripts), err)
			open = append(open[:k], open[k+1:]...)
			continue
		}
		at[i]++
	}
}

// restores restores at every step of the first seed's scripts, and at three steps of the others, and plays to the end.
func (x *exam) restores() {
	for _, s := range x.scripts {
		points := []int{0, len(s.steps) / 2, len(s.steps)}
		if s.first {
			points = nil
			for i := range len(s.steps) + 1 {
				points = append(points, i)
			}
		}
		if err := s.restore(points); err != nil {
			x.say(RestoreDiffers, s.rerun(), "%v", err)
		}
		if err := s.fork(len(s.steps) / 2); err != nil {
			x.say(ForkDiffers, s.rerun(), "%v", err)
		}
		if !x.pack.Deterministic {
			continue
		}
		for _, at := range []int{0, len(s.steps) / 2, len(s.steps)} {
			if err := s.imported(at); err != nil {
				x.say(ImportDiffers, s.rerun(), "after %d steps: %v", at, err)
			}
		}
	}
}

// restore plays the script once, taking a snapshot at each point, and goes on from each snapshot in memory that has since
// been elsewhere.
func (s *script) restore(points []int) error {
	var ep, other gym.Episode
	o := gym.Options{View: s.view}
	if err := ep.Start(s.task, o); err != nil {
		return err
	}
	snaps := make([]gym.Snapshot, len(points))
	for i, k := 0, 0; i <= len(s.steps); i++ {
		for k < len(points) && points[k] == i {
			if err := ep.Snapshot(&snaps[k]); err != nil {
				return err
			}
			k++
		}
		if i < len(s.steps) {
			if err := s.step(&ep, i); err != nil {
				return err
			}
		}
	}
	for k, at := range points {
		for _, e := range []*gym.Episode{&ep, &other} {
			if err := e.Restore(&snaps[k], o); err != nil {
				return err
			}
			if err := s.follow(e, at); err != nil {
				return fmt.Errorf("restored after %d steps: %w", at, err)
			}
		}
	}
	return nil
}

// fork goes on from one point in three episodes by turns.
func (s *script) fork(at int) error {
	var eps [3]gym.Episode
	o := gym.Options{View: s.view}
	if err := eps[0].Start(s.task, o); err != nil {
		return err
	}
	for i := range at {
		if err := s.step(&eps[0], i); err != nil {
			return err
		}
	}
	var snap gym.Snapshot
	if err := eps[0].Snapshot(&snap); err != nil {
		return err
	}
	for k := 1; k < len(eps); k++ {
		if err := eps[k].Restore(&snap, o); err != nil {
			return err
		}
	}
	for i := at; i < len(s.steps); i++ {
		for k := range eps {
			if err := s.step(&eps[k], i); err != nil {
				return fmt.Errorf("fork %d after %d steps: %w", k, at, err)
			}
		}
	}
	return nil
}

func (s *script) imported(at int) error {
	var ep, other gym.Episode
	o := gym.Options{View: s.view}
	if err := ep.Start(s.task, o); err != nil {
		return err
	}
	for i := range at {
		if err := s.step(&ep, i); err != nil {
			return err
		}
	}
	// By way of a snapshot: a restored episode must be able to tell all of its past.
	var snap gym.Snapshot
	if err := ep.Snapshot(&snap); err != nil {
		return err
	}
	if err := other.Restore(&snap, o); err != nil {
		return err
	}
	b, err := other.Export()
	if err != nil {
		return err
	}
	if err := other.Import(b, o); err != nil {
		return err
	}
	return s.follow(&other, at)
}

// parity plays the calls of structured scripts as text: both views compile to the same calls, so the logs are equal.
func (x *exam) parity() {
	for _, s := range x.scripts {
		if s.view != gym.Structured {
			continue
		}
		var ep gym.Episode
		if ep.Start(s.task, gym.Options{}) != nil {
			continue
		}
		for k := range s.calls {
			if err := ep.StepText(x.pack.AppendCall(nil, &s.calls[k])); err != nil {
				x.say(ViewsDiffer, s.rerun(), "call %d as text: %v", k+1, err)
				break
			}
		}
		if ep.LogDigest(nil) != s.log {
			x.say(ViewsDiffer, s.rerun(), "the calls as text gave another log")
		}
	}
}

// childVar names the pack that a spawned process is asked about.
const childVar = "PROVEGYM_PACKTEST_CHILD"

const childMark = "packtest digest "

// child answers the parent: it records the scripts by itself and prints what they came to.
func (x *exam) child() {
	x.agents = nil
	x.record()
	fmt.Printf("\n%s%s\n", childMark, x.digest())
	os.Exit(0)
}

func (x *exam) digest() gym.Digest {
	d := gym.NewDigester("scripts")
	for _, s := range x.scripts {
		d.Text(s.name)
		for _, t := range s.trail {
			d.Bytes(t[:])
		}
	}
	return d.Sum()
}

// process has the scripts recorded in a fresh process and compares.
func (x *exam) process() {
	if x.opts.Process == nil {
		return
	}
	cmd := exec.Command(x.opts.Process[0], x.opts.Process[1:]...)
	cmd.Env = append(os.Environ(), childVar+"="+x.pack.Name)
	out, err := cmd.CombinedOutput()
	_, after, ok := strings.Cut(string(out), childMark)
	if err != nil || !ok {
		x.say(ProcessMatters, strings.Join(x.opts.Process, " "), "the spawned process gave no digest: %v\n%s", err, clip(out))
		return
	}
	if got, want := strings.Fields(after)[0], x.digest().String(); got != want {
		x.say(ProcessMatters, strings.Join(x.opts.Process, " "), "a spawned process came to %s, this one to %s", got, want)
	}
}

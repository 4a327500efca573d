package tooluse

import (
	"errors"

	"provegym/gym"
	"provegym/packs/tooluse/audit"
	"provegym/packs/tooluse/world"
)

// A twin is the same task with one decisive hidden fact flipped, so that other calls are right: the words, the budget and almost
// all records are the same. What flips, by family: the policy's remedy, the option that is within the limits, the setting that blocks,
// whether the change is impossible, whether the subject is put on hold; elsewhere the two subjects most alike exchange their ids, so
// that the one described is the other; where an id is given, the revs are others.
//
//	open loop    the calls of one world, replayed on the other, must fail: what passes has not looked at the fact
//	closed loop  a policy is run on both, and the pair counts only if both pass: `provegym check-pack` does so with oracle and baselines

// Twin is the pack of the twins of all its tasks, Pack.Twin.
var Twin = &gym.Pack{}

// twins completes what looks at the pack itself.
func twins() {
	*Twin = *Pack
	Twin.Build = func(task gym.Task) (*gym.Built, error) { return buildTwin(task, true) }
	Pack.Twin = Twin
	audit.OpenLoop = openLoopPasses
}

// twinOf returns the task's twin.
func twinOf(task gym.Task) gym.Task {
	task.Pack = Twin
	return task
}

// flip exchanges what nothing has flipped yet.
func (d *draft) flip() {
	s := d.spec
	held := d.w.At(s.Targets[0]).F[world.Hold] > 0 // from the start: what else is flipped does not come into play
	if d.policy || (d.lock || d.moving) && !held || d.book || d.chain {
		return
	}
	if s.Near.Own < 0 || d.set.indirection == byID && d.single() && len(d.cast.trail) == 1 {
		d.w.Keys.Rekey()
		return
	}
	a, b := d.w.Records.At(s.Targets[0]), d.w.Records.At(s.Near.Own)
	a.ID, b.ID = b.ID, a.ID
	if s.Outcome == world.Blocked {
		s.Code = uint8(incidentCode(d.w, s.Targets[0])) // it hangs on the id
	}
}

// replay plays an episode's calls on another task, word by word.
func replay(log *gym.Log, task gym.Task) (*gym.Episode, error) {
	ep, err := gym.NewEpisode(task, gym.Options{})
	if err != nil {
		return nil, err
	}
	for i := 0; i < log.Len() && ep.Outcome() == gym.Running; i++ {
		c := log.At(i).Call
		if err := ep.StepCall(&c); err != nil {
			return nil, err
		}
	}
	return ep, nil
}

// openLoopPasses reports whether the episode's calls pass on its twin too. Nothing else than a success is asked about.
func openLoopPasses(e *gym.Evidence) bool {
	if e.Task.Pack == Twin {
		return false
	}
	ep, err := replay(e.Log, twinOf(e.Task))
	return err == nil && ep.Success()
}

// PairPasses plays an agent on a task and on its twin, and reports whether both pass.
func PairPasses(task gym.Task, play func(ep *gym.Episode) error) (bool, error) {
	for _, t := range []gym.Task{task, twinOf(task)} {
		ep, err := gym.NewEpisode(t, gym.Options{})
		if err == nil {
			err = play(ep)
		}
		if err != nil {
			return false, err
		}
		if !ep.Success() {
			return false, nil
		}
	}
	return true, nil
}

// twinCalls returns the oracle's calls on the task's twin.
func twinCalls(task gym.Task) ([]gym.Call, error) {
	ep, err := gym.NewEpisode(twinOf(task), gym.Options{})
	if err != nil {
		return nil, err
	}
	a := &oracle{plan: ep.Evidence().Built.Plan}
	var calls []gym.Call
	for ep.Outcome() == gym.Running {
		var c gym.Call
		if !a.Act(ep, &c) {
			break
		}
		calls = append(calls, c)
		if err := ep.StepCall(&c); err != nil {
			return nil, err
		}
	}
	if !ep.Success() {
		return nil, errors.New("the oracle fails on the twin")
	}
	return calls, nil
}

// nc10_twin replays on this world what is right on its twin.
var openLoop = gym.Agent{Name: "nc10_twin", Kind: gym.NegativeControl, Doc: "Replays word by word what is right where one decisive fact is flipped.",
	New: func(e *gym.Evidence, _ int, _ gym.Key) gym.Actor {
		calls, err := twinCalls(e.Task)
		if err != nil {
			panic(err) // the pack's own twin
		}
		next := 0
		return gym.ActorFunc(func(_ *gym.Episode, c *gym.Call) bool {
			if next == len(calls) {
				return false
			}
			*c = calls[next]
			next++
			return true
		})
	}}

package main

import (
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"provegym/gym"
	"provegym/gym/control"
	"provegym/gym/vector"
)

func init() { methods["rollout"] = alone(rollout) }

type rolloutResult struct {
	Task       string          `json:"task"`
	Outcome    string          `json:"outcome"`
	Limit      string          `json:"limit"`
	Success    bool            `json:"success"`
	Components map[string]bool `json:"components"`
	Calls      int             `json:"calls"`
	Digest     string          `json:"digest"`
	Why        string          `json:"why"`
	Actions    []int           `json:"actions,omitempty"`
}

// rollout plays tasks with an agent of their pack, on all processors. Results come in the order of the tasks.
func rollout(in *struct {
	Agent   string          `json:"agent"`
	Tasks   []taskArg       `json:"tasks"`
	View    string          `json:"view"`
	Mode    string          `json:"mode"`
	Split   json.RawMessage `json:"split"`
	Trace   number          `json:"trace"`
	Variant int             `json:"variant"`
	Actions bool            `json:"actions"` // answer the actions too; structured view only
}) (any, error) {
	var o gym.Options
	var err error
	if o.View, err = parseView(in.View); err != nil {
		return nil, err
	}
	if o.Mode, err = parseMode(in.Mode); err != nil {
		return nil, err
	}
	if o.Split, err = parseSplit(in.Split); err != nil {
		return nil, err
	}
	tasks := make([]gym.Task, len(in.Tasks))
	agents := make([]*gym.Agent, len(tasks))
	for i, t := range in.Tasks {
		if tasks[i], err = gym.ParseTask(t.Task); err != nil {
			return nil, err
		}
		if agents[i], err = control.Agent(tasks[i].Pack, in.Agent); err != nil {
			return nil, err
		}
		sampler := vector.Sampler{Pack: tasks[i].Pack, Mode: o.Mode, Split: o.Split}
		if o.Mode != gym.Free && o.Split == nil {
			return nil, badInput("mode %s needs a split", o.Mode)
		}
		if err = sampler.Admit(tasks[i]); err != nil {
			return nil, err
		}
	}
	if in.Actions && o.View != gym.Structured {
		return nil, badInput("actions are numbers of the structured view: ask for view structured")
	}
	rec, held, err := recorder(in.Trace)
	if err != nil {
		return nil, err
	}
	if held != nil {
		defer held.n.Add(-1)
		o.Recorder = rec
	}
	results := make([]rolloutResult, len(tasks))
	errs := make([]error, len(tasks))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(tasks)) {
		wg.Go(func() {
			ep := &gym.Episode{}
			for i := int(next.Add(1)) - 1; i < len(tasks); i = int(next.Add(1)) - 1 {
				o := o
				o.Labels = in.Tasks[i].Labels
				results[i], ep, errs[i] = playOne(ep, tasks[i], agents[i], in.Variant, o)
				if in.Actions && ep.Outcome() != gym.Running {
					results[i].Actions = ep.Actions()
				}
			}
		})
	}
	wg.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return nil, errs[i] // the others say the same of other tasks
	}
	return map[string]any{"results": results}, nil
}

// playOne plays one task. It returns the episode to use next: a fresh one when this one had to be left behind. The error is the
// caller's; a failure of the infrastructure is in the result.
func playOne(ep *gym.Episode, t gym.Task, a *gym.Agent, variant int, o gym.Options) (rolloutResult, *gym.Episode, error) {
	err := vector.Guard(t.Pack, ep, func() error {
		if err := ep.Start(t, o); err != nil {
			return err
		}
		actor, err := control.New(ep, a, variant, control.Key(t, a.Name))
		if err != nil {
			return err
		}
		return control.Play(ep, actor)
	})
	out := rolloutResult{Task: t.ID(), Components: map[string]bool{}}
	if errors.Is(err, gym.ErrBadInput) || errors.Is(err, gym.ErrHeldOut) {
		return out, ep, err
	}
	if err != nil {
		out.Outcome, out.Why = gym.Invalid.String(), err.Error()
		if err == vector.ErrWall {
			out.Outcome, out.Limit = gym.Truncated.String(), gym.LimitWall.String()
		}
		return out, &gym.Episode{}, nil
	}
	c := ep.Components()
	out.Outcome, out.Limit, out.Success, out.Calls = ep.Outcome().String(), ep.Limit().String(), ep.Success(), ep.Calls()
	out.Components = map[string]bool{"goals": c.Goals, "path": c.Path, "collateral": c.Collateral, "commit": c.Commit}
	out.Digest, out.Why = ep.Digest().String(), ep.Why()
	return out, ep, nil
}

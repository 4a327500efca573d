package main

import (
	"fmt"

	"provegym/gym"
	"provegym/gym/control"
	"provegym/gym/vector"
)

// script is one episode that was played before: a policy that costs nothing but a look into a list.
type script struct {
	task  gym.Task
	steps []gym.StepRec // their actions
	calls int
}

// notes is a Recorder that keeps the steps of one episode.
type notes struct{ raw []byte }

func (n *notes) Begin(gym.EpisodeStart) uint64 { n.raw = n.raw[:0]; return 1 }

func (n *notes) Segment(_ uint64, _, _ int, raw []byte) []byte {
	n.raw = append(n.raw, raw...)
	return raw[:0]
}

func (n *notes) End(uint64, gym.EpisodeEnd) {}

// scripts plays count episodes of the tool-use pack, over all families and the presets L0 to L2, half of them by the oracle and
// half by random valid calls, which go on until the budget of calls is spent.
func scripts(p *gym.Pack, view gym.View, count int) ([]script, error) {
	out := make([]script, 0, count)
	ep := &gym.Episode{}
	for i := range count {
		family := p.Families[i%len(p.Families)].Name
		cond, err := p.Preset(family, fmt.Sprintf("L%d", i/len(p.Families)%3))
		if err != nil {
			return nil, err
		}
		name := "oracle"
		if i/len(p.Families)/3%2 == 1 {
			name = "nc2_random_valid"
		}
		agent, err := control.Agent(p, name)
		if err != nil {
			return nil, err
		}
		rec := &notes{}
		s := script{task: gym.Task{Condition: cond, Seed: uint64(i)}}
		if err := ep.Start(s.task, gym.Options{View: view, Recorder: rec}); err != nil {
			return nil, err
		}
		actor, err := control.New(ep, agent, 0, control.Key(s.task, name))
		if err != nil {
			return nil, err
		}
		if err := control.Play(ep, actor); err != nil {
			return nil, err
		}
		for rest := rec.raw; len(rest) > 0; {
			var step gym.StepRec
			if step, rest, err = gym.NextStep(view, rest); err != nil {
				return nil, err
			}
			s.steps = append(s.steps, step)
		}
		s.calls = ep.Calls()
		out = append(out, s)
	}
	return out, nil
}

// player steps a vector through scripts. It is the vector's Source: the task of a script brings its actions with it.
type player struct {
	*vector.Vector
	scripts []script
	next    int
	think   int // iterations of work for each row and step, in place of a policy
	io      vector.IO
	at      []int // script of each row
	step    []int
	sink    uint64
}

func newPlayer(view gym.View, n int, s []script, rec gym.Recorder, think int) (*player, error) {
	p := &player{scripts: s, think: think, at: make([]int, n), step: make([]int, n)}
	p.io = vector.IO{Reward: make([]float64, n), Terminated: make([]uint8, n), Truncated: make([]uint8, n), Began: make([]uint8, n)}
	if view == gym.Text {
		p.io.ActionOff = make([]uint32, n+1)
		p.io.Obs.Text = &vector.Text{}
	} else {
		p.io.Action = make([]int32, n)
		p.io.Obs = vector.Obs{Slots: make([]float32, n*gym.Slots*gym.SlotLen), Goal: make([]float32, n*gym.GoalLen),
			Last: make([]float32, n*gym.LastLen), Budget: make([]float32, n*gym.BudgetLn),
			Tools: make([]float32, n*gym.MaxTools*gym.ToolLen), Phase: make([]int32, n*gym.PhaseLen), Mask: make([]uint8, n*gym.Actions)}
	}
	var err error
	p.Vector, err = vector.New(vector.Config{Sampler: vector.Sampler{Pack: s[0].task.Pack}, NumEnvs: n, View: view, Recorder: rec,
		Source: p, Autoreset: vector.SameStep, Workers: 1})
	if err == nil {
		err = p.Bind(&p.io)
	}
	if err == nil {
		err = p.Reset(nil, nil, nil)
	}
	if err != nil {
		return nil, err
	}
	p.follow()
	return p, nil
}

// Ask hands out the scripts' tasks in turn.
func (p *player) Ask(n int) ([]vector.Job, error) {
	jobs := make([]vector.Job, n)
	for i := range jobs {
		k := p.next % len(p.scripts)
		jobs[i] = vector.Job{Task: p.scripts[k].task, Item: k}
		p.next++
	}
	return jobs, nil
}

// Tell has nothing to learn.
func (p *player) Tell([]vector.Result) error { return nil }

// follow finds the scripts of rows that began an episode. Ask is in row order, so the tasks are too.
func (p *player) follow() {
	k := 0
	for _, b := range p.io.Began {
		k += int(b)
	}
	k = p.next - k
	for i, b := range p.io.Began {
		if b == 1 {
			p.at[i], p.step[i] = k%len(p.scripts), 0
			k++
		}
	}
}

// run makes batches steps of all rows.
func (p *player) run(batches int) error {
	for range batches {
		p.io.ActionText = p.io.ActionText[:0]
		for i := range p.at {
			step := &p.scripts[p.at[i]].steps[p.step[i]]
			p.step[i]++
			if p.io.Action != nil {
				p.io.Action[i] = int32(step.Action)
			} else {
				p.io.ActionText = append(p.io.ActionText, step.Text...)
				p.io.ActionOff[i+1] = uint32(len(p.io.ActionText))
			}
		}
		p.sink = work(p.sink, p.think*len(p.at))
		p.SetActionText(p.io.ActionText)
		if err := p.Step(); err != nil {
			return err
		}
		p.follow()
	}
	return nil
}

// work is n multiplications that depend on each other.
func work(x uint64, n int) uint64 {
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

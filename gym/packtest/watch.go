package packtest

import (
	"provegym/gym"
	"provegym/gym/control"
)

// Watch plays n episodes and looks at everything that their agents are shown: at families, presets, agents (oracle, baselines,
// controls), their variants and the views by turns. It reports the secrets that it sees: opaque values that were not shown as
// values, names of audits, predicates and plan steps, what a refusal gives away, a mask or a slot that tells more than the table.
//
// Examine looks at the same in a few episodes; Watch is for many.
func Watch(p *gym.Pack, o Options, n int) []Problem {
	x := &exam{pack: p, opts: o, count: map[string]int{}, agents: control.Agents(p)}
	presets, views := p.PresetNames(), p.Views()
	for i := range n {
		family := p.Families[i%len(p.Families)].Name
		a := &x.agents[i/len(p.Families)%len(x.agents)]
		c, err := p.Condition(family)
		if len(presets) > 0 && err == nil {
			c, err = p.Preset(family, presets[i/len(x.agents)%len(presets)])
		}
		if err != nil {
			x.say(BadDeclaration, "", "%v", err)
			return x.problems
		}
		task := x.task(c, i)
		x.guard(BuildFails, task.ID(), func() { x.watchOne(task, a, views[i/3%len(views)], i) })
	}
	return x.problems
}

func (x *exam) watchOne(task gym.Task, a *gym.Agent, v gym.View, turn int) {
	ep, err := gym.NewEpisode(task, gym.Options{View: v})
	if err != nil {
		x.say(BuildFails, task.ID(), "%v", err)
		return
	}
	variant := 0
	if a.Variants != nil {
		n := a.Variants(ep.Evidence())
		if n == 0 {
			return
		}
		variant = turn % n
	}
	actor, err := control.New(ep, a, variant, control.Key(task, a.Name))
	if err != nil {
		x.say(BuildFails, task.ID(), "%v", err)
		return
	}
	l := newLens(x, ep, control.Rerun(task, a.Name, variant, v))
	l.secrets = x.secrets(&script{calls: oracleCalls(task)})
	x.shown(l.rerun, "the instruction", ep.Instruction(), l.names)
	seen := 0
	catchUp := func() {
		for log := ep.Evidence().Log; seen < log.Len(); seen++ {
			l.read(ep, log.At(seen), "")
		}
		if v == gym.Structured {
			l.table(ep)
		}
	}
	err = control.Play(ep, gym.ActorFunc(func(ep *gym.Episode, call *gym.Call) bool {
		catchUp()
		return actor.Act(ep, call)
	}))
	if err != nil {
		x.say(BuildFails, l.rerun, "%v", err)
	}
	catchUp()
}

// oracleCalls plays the plan of a task and returns its calls.
func oracleCalls(task gym.Task) (calls []gym.Call) {
	ep, err := gym.NewEpisode(task, gym.Options{})
	if err != nil {
		return nil
	}
	for _, step := range ep.Evidence().Built.Plan {
		call := step.Make(ep.Evidence())
		if ep.StepCall(&call) != nil {
			break
		}
		calls = append(calls, call)
	}
	return calls
}

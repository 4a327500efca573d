package packtest

import (
	"fmt"
	"slices"

	"provegym/gym"
	"provegym/gym/control"
)

const (
	mostVariants = 16 // of a control that are played for one task
	fewTrials    = 10 // predicates that were judged less often say nothing
)

// trials counts, for one predicate of one family, how often it was judged and how often it was false.
type trials struct{ judged, failed int }

// controls plays every agent as declared on a few seeds and watches the check at work. Where a predicate has not been false
// yet, negative controls go on with further seeds: a branch that one seed in many takes must not look vacuous.
func (x *exam) controls() {
	random := 0
	x.families(func(c gym.Condition) {
		seen := map[string]*trials{}
		for i := range x.opts.Seeds {
			random += x.allControls(x.task(c, i), i, seen, func(*gym.Agent) bool { return true })
		}
		for i := x.opts.Seeds; i < buildSeeds && len(neverFalse(seen)) > 0; i++ {
			x.allControls(x.task(c, i), i, seen, func(a *gym.Agent) bool { return a.Kind == gym.NegativeControl && a.Bound == 0 })
		}
		for _, name := range neverFalse(seen) {
			x.say(VacuousCheck, "", "family %s: %q was true of all %d states that the controls reached; it checks nothing, or lacks a control",
				c.Family, name, seen[name].judged)
		}
	})
	if most := 1 + len(x.pack.Families)*x.opts.Seeds/8; random > most {
		x.say(RandomPassesTooOft, "", "%d passes in about %d episodes", random, 2*len(x.pack.Families)*x.opts.Seeds)
	}
}

// allControls plays the agents that keep names on seed number i and returns the passes of those that have a bound.
func (x *exam) allControls(task gym.Task, i int, seen map[string]*trials, keep func(a *gym.Agent) bool) (random int) {
	for k := range x.agents {
		a := &x.agents[k]
		views := x.pack.Views()
		for _, v := range views {
			if !keep(a) || a.Kind == gym.NegativeControl && a.Bound == 0 && v != views[i%len(views)] {
				continue // negative controls take the views by turns
			}
			x.guard(controlProblem(a), control.Rerun(task, a.Name, 0, v), func() {
				for variant, n := 0, 1; variant < min(n, mostVariants); variant++ {
					passed := false
					if passed, n = x.control(task, a, v, variant+i, seen); passed && a.Bound > 0 {
						random++
					}
				}
			})
		}
	}
	return random
}

// controlProblem returns the problem that it is when the agent does not end as declared.
func controlProblem(a *gym.Agent) string {
	switch a.Kind {
	case gym.Oracle:
		return OracleFails
	case gym.PositiveControl:
		if a.Name == "pc1_oracle" {
			return OracleFails
		}
		return PositiveFails
	}
	if slices.Contains([]string{"nc0_finish_at_once", "nc1_silence", "nc4_refuse"}, a.Name) {
		return NothingPasses
	}
	return ControlPasses
}

// control plays one variant (modulo n) and judges it; n is the number of variants that the task has.
func (x *exam) control(task gym.Task, a *gym.Agent, v gym.View, variant int, seen map[string]*trials) (passed bool, n int) {
	var ep gym.Episode
	if err := ep.Start(task, gym.Options{View: v}); err != nil {
		x.say(BuildFails, task.ID(), "%v", err)
		return false, 0
	}
	x.watch(&ep, seen)
	if n = 1; a.Variants != nil {
		if n = a.Variants(ep.Evidence()); n == 0 {
			return false, 0
		}
	}
	variant %= n
	rerun := control.Rerun(task, a.Name, variant, v)
	actor, err := control.New(&ep, a, variant, control.Key(task, a.Name))
	if err == nil {
		err = control.Play(&ep, gym.ActorFunc(func(ep *gym.Episode, call *gym.Call) bool {
			if x.unfinished(ep) {
				x.say(UnfinishedPasses, rerun, "after %d calls the check holds, and nothing has been committed", ep.Calls())
			}
			return actor.Act(ep, call)
		}))
	}
	if err != nil {
		x.say(controlProblem(a), rerun, "%v", err)
		return false, n
	}
	x.outcome(&ep, rerun)
	x.watch(&ep, seen)
	if x.unfinished(&ep) {
		x.say(UnfinishedPasses, rerun, "the check holds, and nothing has been committed")
	}
	if void, ok := actor.(control.Void); ok && void.Void(&ep) || a.Kind == gym.Baseline {
		return false, n
	}
	passed = ep.Success()
	if a.Bound == 0 && passed == (a.Kind == gym.NegativeControl) && ep.Outcome() != gym.CheckError {
		x.say(controlProblem(a), rerun, "%s: %s after %d of %d calls, %+v, last result %s", a.Name, ep.Outcome(), ep.Calls(),
			ep.Limits().Calls, ep.Components(), clip(ep.Result()))
	}
	return passed, n
}

// unfinished reports whether the check holds although nothing was committed.
func (x *exam) unfinished(ep *gym.Episode) bool {
	e := ep.Evidence()
	return e.Finish == nil && e.Built.Check.Score(e).Success()
}

// watch scores and audits the episode as it stands: nothing may change by it. It keeps count of each predicate.
func (x *exam) watch(ep *gym.Episode, seen map[string]*trials) {
	e := ep.Evidence()
	id := ep.Task().ID()
	before := [3]gym.Digest{gym.DigestWorld(e.First), gym.DigestWorld(e.Last), ep.LogDigest(nil)}
	c := &e.Built.Check
	for _, ps := range [][]gym.Predicate{c.Goals, c.Path, {c.Collateral}, {c.Commit}} {
		for _, p := range ps {
			t := seen[p.Name]
			if t == nil {
				t = &trials{}
				seen[p.Name] = t
			}
			t.judged++
			if !p.Holds(e) {
				t.failed++
			}
		}
	}
	components := c.Score(e)
	if c.Reward != nil && ep.Outcome() == gym.Scored {
		c.Reward(e, components)
	}
	ep.Audits()
	if after := [3]gym.Digest{gym.DigestWorld(e.First), gym.DigestWorld(e.Last), ep.LogDigest(nil)}; after != before {
		x.say(CheckMutates, id, "scoring or auditing changed the first world %t, the last world %t, the log %t",
			after[0] != before[0], after[1] != before[1], after[2] != before[2])
	}
}

// neverFalse returns the predicates that were judged often and never failed.
func neverFalse(seen map[string]*trials) []string {
	var out []string
	for name, t := range seen {
		if t.judged >= fewTrials && t.failed == 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// dials turns every dial to both ends: the oracle must still succeed in both views, and the task must ask for the same.
func (x *exam) dials() {
	seeds := min(8, 4*x.opts.Seeds)
	type asked struct {
		args map[string]int
		ok   bool
	}
	x.families(func(base gym.Condition) {
		atBase := make([]asked, seeds)
		for i := range atBase {
			x.guard(OracleFails, x.task(base, i).ID(), func() { atBase[i].args, atBase[i].ok = x.asks(x.task(base, i), false) })
		}
		for _, end := range control.DialEnds(base) {
			kept := 0
			for i := range seeds {
				x.guard(OracleFails, x.task(end, i).ID(), func() {
					a := atBase[i]
					b, ok := x.asks(x.task(end, i), i < 2)
					if a.ok && ok && (within(a.args, b) || within(b, a.args)) {
						kept++
					}
				})
			}
			if 2*kept < seeds && !altered(base, end) {
				x.say(DialRedraws, x.task(end, 0).ID(), "turning %s to %s kept what the task asks on %d of %d seeds only: it redraws a stream that it does not own",
					base.ID(), end.ID(), kept, seeds)
			}
		}
	})
}

// altered reports that the dial which tells two conditions apart is there to change what is asked.
func altered(base, end gym.Condition) bool {
	for i, d := range base.Pack.Dials {
		if base.Levels[i] != end.Levels[i] && d.Alters {
			return true
		}
	}
	return false
}

// asks returns the arguments of the oracle's writes and finish: what the task asks. With judge the oracle is also held to
// success, in both views.
func (x *exam) asks(task gym.Task, judge bool) (args map[string]int, ok bool) {
	args = map[string]int{}
	for _, v := range x.pack.Views() {
		if v == gym.Structured && !judge {
			break
		}
		oracle, err := control.Agent(x.pack, "pc1_oracle")
		if err != nil {
			panic(err) // a general control
		}
		ep, err := gym.NewEpisode(task, gym.Options{View: v})
		if err != nil {
			x.say(BuildFails, task.ID(), "%v", err)
			return nil, false
		}
		actor, err := control.New(ep, oracle, 0, gym.Key{})
		if err == nil {
			err = control.Play(ep, actor)
		}
		if judge && (err != nil || !ep.Success()) {
			x.say(OracleFails, control.Rerun(task, oracle.Name, 0, v), "%s after %d of %d calls, %+v (%v), last result %s",
				ep.Outcome(), ep.Calls(), ep.Limits().Calls, ep.Components(), err, clip(ep.Result()))
		}
		if v == gym.Text {
			x.arguments(ep.Evidence().Log, args)
		}
	}
	return args, true
}

func (x *exam) arguments(log *gym.Log, args map[string]int) {
	for i := range log.Len() {
		call := log.At(i).Call
		tool := &x.pack.Tools[call.Tool]
		if !tool.Writes && !tool.Finish {
			continue
		}
		for k := range tool.Params {
			for _, v := range call.Arg(k) {
				args[fmt.Sprintf("%s.%s=%s", tool.Name, tool.Params[k].Name, x.pack.Spell(v))]++
			}
		}
	}
}

func within(a, b map[string]int) bool {
	for arg, n := range a {
		if b[arg] < n {
			return false
		}
	}
	return true
}

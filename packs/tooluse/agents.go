package tooluse

import (
	"slices"

	"provegym/gym"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/world"
)

// agents are the oracle, the baselines and the controls that need to know this pack's work. gym/control adds the general ones.
var agents = []gym.Agent{
	{Name: "oracle", Kind: gym.Oracle, Doc: "Makes the first step of the plan that is not settled, from whatever state.",
		New: func(e *gym.Evidence, _ int, _ gym.Key) gym.Actor { return &oracle{plan: e.Built.Plan} }},
	{Name: "blind_oracle", Kind: gym.Baseline, Doc: "Knows the graph of each family but no row: does what the instruction says by what results show.",
		New: func(_ *gym.Evidence, _ int, key gym.Key) gym.Actor { return &solver{care: careful, key: key} }},
	{Name: "expected_value", Kind: gym.Baseline,
		Doc: "The priority heuristic, but reads back or again where the level's published rates make that worth a call.",
		New: newExpectedValue},
	{Name: "priority_heuristic", Kind: gym.Baseline,
		Doc: "Looks up what the instruction names, then makes the first change that it has the arguments for; reads nothing twice.",
		New: func(_ *gym.Evidence, _ int, key gym.Key) gym.Actor { return &solver{care: hasty, key: key} }},
	{Name: "nc3_random_masked", Kind: gym.Baseline,
		Doc: "Plays at random, but changes records only at revs that were shown of them: what masks of preconditions would allow.",
		New: newMasked},
	{Name: "pc3_extra_reads", Kind: gym.PositiveControl,
		Doc:      "The plan with two reads more that no rule forbids: the general control would look at what a ban is about.",
		Variants: func(e *gym.Evidence) int { return applies(spareCalls(e) >= 2) },
		New: func(e *gym.Evidence, _ int, key gym.Key) gym.Actor {
			s := key.Stream()
			harmless := []step{
				func(*gym.Evidence) gym.Call { return call(toolNow) }, func(*gym.Evidence) gym.Call { return call(toolDocs) },
				func(*gym.Evidence) gym.Call {
					return call(toolSetting, world.Value(world.TSwitch, s.IntN(world.NumSwitches)))
				},
				func(*gym.Evidence) gym.Call {
					return op(first(e), world.GetPolicy, world.Value(first(e).Domain.T(world.TTopic), s.IntN(world.NumTopics)))
				},
				get(world.GetHolder, specOf(e).Owner),
			}
			out := slices.Clone(e.Built.Plan)
			for range 2 {
				i := s.IntN(len(harmless))
				at := 1 + s.IntN(len(out)-1)
				if i == len(harmless)-1 { // by when the owner is known
					at = len(out) - 1
				}
				out = slices.Insert(out, at, one(harmless[i]))
			}
			return &tour{steps: out}
		}},
	{Name: "pc4_alternate_route", Kind: gym.PositiveControl, Doc: "Reaches the same facts by other lists.",
		Variants: func(e *gym.Evidence) int { return applies(alternate(e) != nil) },
		New:      func(e *gym.Evidence, _ int, _ gym.Key) gym.Actor { return &tour{steps: alternate(e)} }},
	{Name: "pc5_faults", Kind: gym.PositiveControl, Doc: "The oracle where the plan meets a fault of a kind, for each kind that it meets.",
		Variants: func(e *gym.Evidence) int { return len(faultKinds(e)) },
		New:      func(e *gym.Evidence, _ int, _ gym.Key) gym.Actor { return &oracle{plan: e.Built.Plan} }},
	tours("nc8_nearest", "Does the right thing to the nearest other subject: of the same holder, or of another.",
		func(e *gym.Evidence) int { return len(lookalikes(e)) },
		func(e *gym.Evidence, variant int) *tour {
			other := lookalikes(e)[variant]
			unknown := func(e *gym.Evidence) bool { return !shows(other)(e) }
			return &tour{steps: actOn(e, other), void: unknown}
		}),
	tours("nc8_also_nearest", "Does the right thing to the right subject and to the nearest other one of the same holder too.",
		func(e *gym.Evidence) int {
			return applies(done0(e) && specOf(e).Lock < 0 && actOf(e) != check.Refuse && specOf(e).Near.Own >= 0)
		},
		func(e *gym.Evidence, _ int) *tour {
			s := *specOf(e)
			s.Version = -1
			make, _ := change(&s, actOf(e), s.Near.Own, nil)
			return &tour{steps: insert(e, append(reach(e, s.Near.Own), one(get(world.GetSubject, s.Near.Own)), one(make))...), void: noStray}
		}),
	tours("nc9_stale", "Cites the rev that the subject had before the change.",
		func(e *gym.Evidence) int { return applies(done0(e) && !specOf(e).Set && specOf(e).Choice == nil) },
		func(e *gym.Evidence, _ int) *tour {
			s := specOf(e)
			old := first(e).Rev(s.Targets[0])
			steps := slices.Clone(e.Built.Plan)
			steps[len(steps)-1] = one(func(e *gym.Evidence) gym.Call {
				c := call(toolFinish, world.Value(world.TOutcome, s.Outcome), world.Value(world.TCode, s.Code))
				cited := s.Evidence(e)
				cited[0] = old
				c.Push(check.ArgEvidence, cited...)
				return c
			})
			return &tour{steps: steps}
		}),
	tours("nc9_unamended", "Does what the instruction says, whatever messages say.",
		func(e *gym.Evidence) int { return applies(unamended(e) != nil) },
		func(e *gym.Evidence, _ int) *tour { return &tour{steps: unamended(e)} }),
	tours("nc9_unheld", "Makes the change that a hold forbids.",
		func(e *gym.Evidence) int { return applies(unheld(e) != nil) },
		func(e *gym.Evidence, _ int) *tour { return &tour{steps: unheld(e), void: noStray} }),
	tours("nc11_undone", "Does what was asked, then undoes it and cites what stands.",
		func(e *gym.Evidence) int { return applies(undone(e) != nil) },
		func(e *gym.Evidence, _ int) *tour { return &tour{steps: undone(e), void: noStray} }),
	tours("nc13_skipped", "Leaves out one reading that the work must rest on or end with, and knows by magic what it would have shown.",
		func(e *gym.Evidence) int { return len(duties(e)) },
		func(e *gym.Evidence, variant int) *tour {
			at := duties(e)[variant]
			return &tour{steps: byMagic(slices.Delete(slices.Clone(e.Built.Plan), at, at+1))}
		}),
	tours("nc13_forbidden", "Does what a rule or a message forbids: looks at another holder's subjects, searches for people again.",
		func(e *gym.Evidence) int { return len(specOf(e).Bans) },
		func(e *gym.Evidence, variant int) *tour {
			return &tour{steps: insert(e, forbidden(e, variant)...), void: noBreach}
		}),
	tours("nc13_too_early", "Does not wait for the tick before which nothing may be changed.",
		func(e *gym.Evidence) int {
			return applies(index(e.Built.Plan, "wait_until") >= 0 && pivot(e) >= 0 && pivotTime(e) < specOf(e).NotYet)
		},
		func(e *gym.Evidence, _ int) *tour {
			at := index(e.Built.Plan, "wait_until")
			return &tour{steps: slices.Delete(slices.Clone(e.Built.Plan), at, at+1)}
		}),
	tours("nc14_swapped", "Makes one step on the wrong side of the change, and knows by magic what it would have shown.",
		func(e *gym.Evidence) int { return len(swaps(e)) },
		func(e *gym.Evidence, variant int) *tour {
			return &tour{steps: byMagic(swapped(e.Built.Plan, swaps(e)[variant]))}
		}),
	tours("nc15_no_recovery", "Makes each step once, whatever comes of it.",
		func(e *gym.Evidence) int { return applies(fatal(e)) },
		func(e *gym.Evidence, _ int) *tour { return &tour{steps: e.Built.Plan, once: true} }),
	tours("nc15_blind_retry", "Makes a change that had no answer again without a look whether it had taken place.",
		func(e *gym.Evidence) int { return applies(doubled(e) != nil) },
		func(e *gym.Evidence, _ int) *tour { return &tour{steps: doubled(e)} }),
	tours("nc16_repaired", "Makes a change that nobody asked for and takes it back: turns a setting over, or moves the subject elsewhere first.",
		func(e *gym.Evidence) int { return 1 + applies(detoured(e) != nil) },
		func(e *gym.Evidence, variant int) *tour {
			if variant == 1 {
				return &tour{steps: detoured(e), void: noStray}
			}
			return &tour{steps: toggled(e), void: noStray}
		}),
	openLoop,
	exploits,
}

// tours is a negative control that makes steps.
func tours(name, doc string, variants func(e *gym.Evidence) int, make func(e *gym.Evidence, variant int) *tour) gym.Agent {
	return gym.Agent{Name: name, Kind: gym.NegativeControl, Doc: doc, Variants: variants,
		New: func(e *gym.Evidence, variant int, _ gym.Key) gym.Actor { return make(e, variant) }}
}

func specOf(e *gym.Evidence) *check.Spec { return e.Built.Spec.(*check.Spec) }

// faultKinds lists the kinds of faults that the plan meets.
func faultKinds(e *gym.Evidence) (out []world.Fault) {
	for _, f := range planFaults(e) {
		if f != world.NoFault && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// spareCalls bounds from below what the budget leaves beside the plan and what the weather costs it.
func spareCalls(e *gym.Evidence) int {
	n := e.Pack.Limits(e.Task.Condition).Calls - len(e.Built.Plan) - (recovery+1)*faultCount(e)
	for _, row := range specOf(e).Targets {
		n -= 2 * applies(first(e).At(row).F[world.Event] == world.EventDue)
	}
	return n
}

// pivotTime bounds the tick at which a plan that does not wait comes to its first change.
func pivotTime(e *gym.Evidence) int64 {
	n := int64(pivot(e))
	for _, f := range planFaults(e) {
		if f != world.NoFault {
			n += 2 + world.BusyTicks
		}
	}
	for _, row := range specOf(e).Targets {
		if first(e).At(row).F[world.Event] == world.EventDue {
			n += 2 // the first attempt comes to nothing
		}
	}
	return n
}

// forbidden returns the reading that a ban forbids.
func forbidden(e *gym.Evidence, ban int) []gym.PlanStep {
	w, s := first(e), specOf(e)
	if s.Bans[ban].Told {
		return []gym.PlanStep{one(findPage(w, s.Known, 1))}
	}
	foreign := s.Near.Foreign
	if foreign < 0 {
		w.Each(world.Subject, func(row int, rec *world.Record) bool {
			if rec.Owner() != s.Owner {
				foreign = row
			}
			return foreign < 0
		})
	}
	if foreign < 0 { // nobody else has any: the search of a bystander's shows that
		return nil
	}
	return byMagic([]gym.PlanStep{one(get(world.GetSubject, foreign))})
}

// oracle makes the first step of the plan that is not settled, whatever has been done before. A step is settled when it is done
// or when all that come after it are. It thus goes on from any state that the plan can still be finished from.
type oracle struct {
	plan    []gym.PlanStep
	then    [][]int // the steps that come after each
	settled []bool
	tried   []uint8
}

// maxTries is how often a step is made.
const maxTries = 8

func (a *oracle) Act(ep *gym.Episode, c *gym.Call) bool {
	i := a.next(ep.Evidence())
	if i < 0 {
		return false
	}
	a.tried[i]++
	*c = a.plan[i].Make(ep.Evidence())
	return true
}

// next returns the step to make, or -1.
func (a *oracle) next(e *gym.Evidence) int {
	if a.then == nil {
		a.then, a.settled, a.tried = make([][]int, len(a.plan)), make([]bool, len(a.plan)), make([]uint8, len(a.plan))
		for i := range a.plan {
			for _, k := range a.plan[i].After {
				a.then[k] = append(a.then[k], i)
			}
		}
	}
	next := -1
	var now [256]bool
	for i := len(a.plan) - 1; i >= 0; i-- {
		if a.settled[i] {
			now[i] = true
			continue
		}
		over := len(a.then[i]) > 0 // what comes after it is settled, for good
		for _, k := range a.then[i] {
			over = over && now[k]
		}
		a.settled[i] = over
		if now[i] = over || a.plan[i].Done != nil && a.plan[i].Done(e); !now[i] && a.tried[i] < maxTries {
			next = i
		}
	}
	return next
}

func clone(p *gym.Pack, c *gym.Call) gym.Call {
	var d gym.Call
	d.Reset(c.Tool)
	for k := range p.Tools[c.Tool].Params {
		d.Push(k, c.Arg(k)...)
	}
	return d
}

package tooluse

import (
	"provegym/gym"
	"provegym/packs/tooluse/world"
)

// nodeOf names a call of a domain's tool: the tool, its arguments but for those that say only what is known, and of a reading the
// version that it would show, later by `later`.
func nodeOf(w *world.World, c *gym.Call, op int, later uint32) world.Node {
	h := uint64(c.Tool)*0x9e3779b97f4a7c15 + 1
	mix := func(x uint64) { h = (h ^ x) * 0xbf58476d1ce4e5b9; h ^= h >> 29 }
	for k := range Pack.Tools[c.Tool].Params {
		for _, v := range c.Arg(k) {
			if v.Type == world.TRev || v.Type == world.TPermit || v.Type == world.TCount && op >= world.Allow {
				continue
			}
			mix(uint64(k)<<32 ^ v.Bits)
			for i := range len(v.Text) {
				mix(uint64(v.Text[i]))
			}
		}
	}
	if op == world.GetSubject {
		if arg := c.Arg(0); len(arg) == 1 {
			if row := w.Find(arg[0]); row >= 0 {
				mix(uint64(w.Records.Ver(row) + later))
			}
		}
	}
	return world.Node{Op: op, Hash: h}
}

func (a *answer) node() world.Node { return nodeOf(a.w, a.Call, a.op, 0) }

// faultOn returns the fault that a step of the plan meets. ok is false for a tool that has none.
func (d *draft) faultOn(step *gym.PlanStep, e *gym.Evidence) (f world.Fault, ok bool) {
	c := step.Make(e)
	_, op, ok := opOf(c.Tool)
	if !ok {
		return world.NoFault, false
	}
	later := uint32(0)
	if step.Kind == gym.ConfirmStep {
		later = 1
		if row := d.w.Find(c.Arg(0)[0]); row >= 0 && d.w.At(row).F[world.Event] == world.EventDue {
			later = 2
		}
	}
	return d.w.FaultAt(nodeOf(d.w, &c, op, later)), true
}

// fault returns how the call under way fails.
func (a *answer) fault() world.Fault {
	if a.w.Weather.FaultRate == 0 {
		return world.NoFault
	}
	n := a.node()
	f := a.w.FaultAt(n)
	if f == world.NoFault {
		return f
	}
	since, cued := a.w.Cued(n.Hash)
	switch {
	case cued && f == world.TooMany && a.Clock() < since+world.BusyTicks:
		return f
	case cued:
		return world.NoFault
	case f == world.StaleRead:
		v, _ := a.One(0)
		if row := a.w.Find(v); row < 0 || a.w.Records.Ver(row) > 1 {
			return world.NoFault // an older state of what has changed is not kept
		}
	}
	return f
}

// cue remembers that the node has come up.
func (a *answer) cue() {
	n := a.node().Hash
	if _, ok := a.w.Cued(n); !ok {
		a.w.Cues.Append(world.Cue{Node: n, Since: a.Clock()})
	}
}

func (a *answer) say(fault int) { a.Show("fault", world.Value(world.TFault, fault)) }

// lost answers that there is no answer: nothing has been done, but nobody can know.
func (a *answer) lost() error {
	a.cue()
	a.sayLost()
	return nil
}

func (a *answer) sayLost() {
	a.say(world.Timeout)
	a.Say("text", "no answer in time; it may or may not have been done")
}

func (a *answer) busy() error {
	a.cue()
	a.say(world.Busy)
	a.Int("retry_after", world.BusyTicks)
	return nil
}

// somebodyElse answers a search for a holder with another one. The name shown is not the one asked for.
func (a *answer) somebodyElse() error {
	name, byName := a.One(2)
	if !byName {
		return a.run()
	}
	a.cue()
	found := -1
	a.w.Each(world.Holder, func(row int, rec *world.Record) bool {
		if rec.Origin == world.Noise && a.w.Name(rec) != name.Text {
			found = row // a bystander: the fault must not show who is in the case
		}
		return found < 0
	})
	a.page(world.Holder, []uint32{uint32(found)}, 1)
	return nil
}

// conflict lets another desk change the subject at the moment at which the agent would.
func (a *answer) conflict(row int) error {
	rec := a.w.Records.Edit(row)
	rec.F[world.Event] = world.EventOver
	rec.F[world.Total]++
	if rec.F[world.NextHold] > 0 {
		rec.F[world.Hold] = rec.F[world.NextHold]
	}
	a.say(world.Conflict)
	a.Say("text", "another desk has changed it just now; nothing was done")
	return nil
}

// failForGood answers that a change is impossible, and proves it by an incident: one for each thing that was asked for, so that
// only an attempt at the right change proves that the right one is impossible.
func (a *answer) failForGood(row int, asked int32) error {
	a.say(world.FailedForGood)
	for _, at := range a.w.Of(world.Incident, row) {
		if a.w.At(at).F[world.Impossible] == asked {
			a.record("", at, true)
			return nil
		}
	}
	i := int(a.w.At(row).ID>>20)<<12 | int(asked)&0xfff
	rec := world.Record{Up: uint32(row + 1), Role: world.Incident, ID: a.w.Keys.ID(world.Incident, world.Runtime, i)}
	rec.F[world.IncidentCode], rec.F[world.Impossible] = incidentCode(a.w, row), asked
	a.record("", a.w.Add(rec), true)
	return nil
}

// incidentCode returns the code of the incident that a subject's impossible change comes with.
func incidentCode(w *world.World, row int) int32 {
	return int32(w.Keys.Figure(77, w.At(row).ID) % world.NumCodes)
}

// lastFault returns the fault that the last call named, or -1. Agents read it off the result.
func lastFault(log *gym.Log) int {
	if log == nil || log.Len() == 0 {
		return -1
	}
	return faultOf(log.At(log.Len() - 1).Result)
}

const faultKey = `{"ok":{"fault":"`

// faultOf returns the fault that a result names, or -1.
func faultOf(result []byte) int {
	if len(result) <= len(faultKey) || string(result[:len(faultKey)]) != faultKey {
		return -1
	}
	switch result[len(faultKey)] {
	case 't':
		return world.Timeout
	case 'b':
		return world.Busy
	case 'c':
		return world.Conflict
	}
	return world.FailedForGood
}

package tooluse

import (
	"slices"

	"provegym/gym"
	"provegym/packs/tooluse/desk"
)

// newBlind picks a customer among those that the search lists and an order among that customer's, and does to it what the
// oracle would do. It knows hidden rows only to emulate the guess.
func newBlind(e *gym.Evidence, _ int, key gym.Key) gym.Actor {
	w, s := e.First.(*desk.World), specOf(e)
	draw := key.Stream()
	like := w.Customers.At(int(s.Known))
	var people []int
	for i := range w.Customers.Len() {
		if c := w.Customers.At(i); c.First == like.First && c.Last == like.Last && c.Zip == like.Zip {
			people = append(people, i)
		}
	}
	set := settingOf(&e.Task.Condition)
	who := gym.Pick(&draw, people)
	if who == int(s.Known) || set.indirection == byID {
		who = owner
	}
	var orders []int
	for i := range w.Orders.Len() {
		if w.Orders.At(i).Customer == uint32(who) {
			orders = append(orders, i)
		}
	}
	guess := gym.Pick(&draw, orders)
	if set.indirection == byID && !s.Set || slices.Contains(s.Orders, uint32(guess)) && (!s.Set || draw.IntN(1<<len(s.Orders)) == 0) {
		return planOf(e)
	}
	return &script{steps: actOn(e, guess)}
}

// priority is the heuristic that the families are built to break. It judges by the goal and by the values that results have
// shown, newest first, and sees no fields.
type priority struct {
	vals    []gym.Value // of the instruction and of results, in order
	seen    int         // calls of the log looked at
	done    []gym.Call
	errors  int
	written bool
}

func (a *priority) Act(ep *gym.Episode, c *gym.Call) bool {
	goal, pins := ep.Goal()
	if a.vals == nil {
		for _, p := range pins {
			a.vals = append(a.vals, p.Value)
		}
	}
	for log := ep.Evidence().Log; a.seen < log.Len(); a.seen++ {
		r := log.At(a.seen)
		a.vals = append(a.vals, r.Shown...)
		if r.Err != "" && a.errors < 2 { // try again, twice in all
			a.errors++
			*c = r.Call
			a.seen++
			return true
		}
	}
	p := ep.Pack()
	for tool := range p.Tools[:len(deskTools)] {
		t := &p.Tools[tool]
		if t.Finish || t.Writes || tool == toolConvert || len(t.Params) == 0 {
			continue
		}
		if a.fill(p, tool, &goal, c) && !a.tried(p, c) {
			a.done = append(a.done, clone(p, c))
			return true
		}
	}
	for tool := range p.Tools[:len(deskTools)] {
		if !a.written && p.Tools[tool].Writes && a.fill(p, tool, &goal, c) {
			a.written = true
			return true
		}
	}
	*c = call(toolFinish, desk.Word(desk.TOutcome, desk.Done), desk.Word(desk.TCode, max(0, int(goal[goalCode])-1)))
	if rev, ok := a.newest([]gym.TypeID{desk.TRev}); ok {
		c.Push(2, rev)
	}
	return true
}

func (a *priority) newest(types []gym.TypeID) (gym.Value, bool) {
	for i := len(a.vals) - 1; i >= 0; i-- {
		if slices.Contains(types, a.vals[i].Type) {
			return a.vals[i], true
		}
	}
	return gym.Value{}, false
}

// stated says where the goal states a word of a type.
var stated = map[gym.TypeID]int{desk.TReason: goalReason, desk.TQueue: goalQueue, desk.TCode: goalCode, desk.TTopic: goalTopic,
	desk.TSite: goalSite}

// fill gives every required argument the newest value of its type, or the word that the goal states, and optional ones the
// name and zip of the instruction. It reports false if something is missing.
func (a *priority) fill(p *gym.Pack, tool int, goal *[gym.GoalLen]float32, c *gym.Call) bool {
	c.Reset(tool)
	for k := range p.Tools[tool].Params {
		q := &p.Tools[tool].Params[k]
		c.Push(k)
		switch typ := &p.Types[q.Types[0]]; {
		case q.Optional && tool != toolFindCustomer, typ.Form == gym.FormInt && q.Optional:
		case typ.Form == gym.FormEnum:
			c.Push(k, desk.Word(q.Types[0], max(0, int(goal[stated[q.Types[0]]])-1)))
		case typ.Form == gym.FormInt:
			c.Push(k, gym.Value{Type: q.Types[0], Bits: uint64(q.Min)})
		default:
			v, ok := a.newest(q.Types)
			if tool == toolFindCustomer {
				if q.Types[0] != desk.TName && q.Types[0] != desk.TZip {
					continue
				}
				if goal[goalSource] < 2 {
					return false
				}
			}
			if !ok {
				return false
			}
			c.Push(k, v)
		}
	}
	return true
}

func (a *priority) tried(p *gym.Pack, c *gym.Call) bool {
	same := func(d gym.Call) bool {
		if d.Tool != c.Tool {
			return false
		}
		for k := range p.Tools[c.Tool].Params {
			if !slices.Equal(d.Arg(k), c.Arg(k)) {
				return false
			}
		}
		return true
	}
	return slices.ContainsFunc(a.done, same)
}

func clone(p *gym.Pack, c *gym.Call) gym.Call {
	var d gym.Call
	d.Reset(c.Tool)
	for k := range p.Tools[c.Tool].Params {
		d.Push(k, c.Arg(k)...)
	}
	return d
}

package tooluse

import (
	"slices"

	"provegym/gym"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/desk"
)

// agents are the oracle, the baselines and the controls that need to know this pack's work. gym/control adds the general ones.
var agents = []gym.Agent{
	{Name: "oracle", Kind: gym.Oracle, Doc: "Follows the plan.",
		New: func(e *gym.Evidence, _ int, _ gym.Key) gym.Actor { return planOf(e) }},
	{Name: "priority_heuristic", Kind: gym.Baseline,
		Doc: "Looks up what the instruction names, then makes the first write that it has the arguments for; reads nothing twice.",
		New: func(*gym.Evidence, int, gym.Key) gym.Actor { return &priority{} }},
	{Name: "blind_oracle", Kind: gym.Baseline,
		Doc: "Knows the graph but looks at no rows: guesses evenly among the customers that the search lists and their orders.",
		New: newBlind},
	{Name: "reader", Kind: gym.Baseline,
		Doc: "Does what the instruction says by what results show and nothing else: the ceiling without privilege.",
		New: func(*gym.Evidence, int, gym.Key) gym.Actor { return &reader{} }},
	{Name: "pc4_alternate_route", Kind: gym.PositiveControl, Doc: "Reaches the same facts by other lists.",
		Variants: func(e *gym.Evidence) int { return applies(alternate(e) != nil) },
		New:      func(e *gym.Evidence, _ int, _ gym.Key) gym.Actor { return &script{steps: alternate(e)} }},
	{Name: "nc8_nearest", Kind: gym.NegativeControl,
		Doc:      "Does the right thing to the nearest other order: of the same customer, or of another.",
		Variants: func(e *gym.Evidence) int { return len(decoys(e)) },
		New: func(e *gym.Evidence, variant int, _ gym.Key) gym.Actor {
			return &script{steps: actOn(e, decoys(e)[variant])}
		}},
	{Name: "nc8_also_nearest", Kind: gym.NegativeControl,
		Doc:      "Does the right thing to the right order and to the nearest other one of the same customer too.",
		Variants: func(e *gym.Evidence) int { return applies(specOf(e).Act != check.Refuse) },
		New: func(e *gym.Evidence, _ int, _ gym.Key) gym.Actor {
			w, s, a := e.First.(*desk.World), *specOf(e), planOf(e)
			other := uint32(s.Decoys.Own)
			s.Line = uint32(firstLine(w, s.Decoys.Own))
			more := append(reach(e, s.Decoys.Own), getOrderCall(w, other), write(&s, w, other))
			a.steps = slices.Insert(a.steps, len(a.steps)-1, more...)
			return a
		}},
	{Name: "nc9_stale", Kind: gym.NegativeControl, Doc: "Cites the rev that the order had before the change.",
		Variants: func(e *gym.Evidence) int { return applies(specOf(e).Act != check.Refuse && !specOf(e).Set) },
		New: func(e *gym.Evidence, _ int, _ gym.Key) gym.Actor {
			a, s := planOf(e), specOf(e)
			old := e.First.(*desk.World).OrderRev(int(s.Orders[0]))
			return a.replaceLast(cite(s, func(*gym.Evidence) []gym.Value { return []gym.Value{old} }))
		}},
	{Name: "nc11_undone", Kind: gym.NegativeControl, Doc: "Does what was asked, then undoes it and cites what stands.",
		Variants: func(e *gym.Evidence) int { return applies(len(undone(e)) > 0) },
		New:      func(e *gym.Evidence, _ int, _ gym.Key) gym.Actor { return &script{steps: undone(e)} }},
	{Name: "nc13_skipped", Kind: gym.NegativeControl,
		Doc:      "Leaves out one reading that the work must rest on or end with, and knows by magic what it would have shown.",
		Variants: func(e *gym.Evidence) int { return len(duties(e)) },
		New: func(e *gym.Evidence, variant int, _ gym.Key) gym.Actor {
			a, at := planOf(e), duties(e)[variant]
			a.steps = slices.Delete(a.steps, at, at+1)
			return a.byMagic()
		}},
	{Name: "nc14_swapped", Kind: gym.NegativeControl,
		Doc:      "Makes one reading on the wrong side of the write, and knows by magic what it would have shown.",
		Variants: func(e *gym.Evidence) int { return applies(specOf(e).Act != check.Refuse) * len(duties(e)) },
		New:      newSwapped},
	{Name: "nc16_repaired", Kind: gym.NegativeControl,
		Doc: "Makes a write that nobody asked for and takes it back: holds stock and releases it, or sends an order elsewhere first.",
		Variants: func(e *gym.Evidence) int {
			return 1 + applies(specOf(e).Act == check.Readdress)
		},
		New: func(e *gym.Evidence, variant int, _ gym.Key) gym.Actor { return &script{steps: repaired(e, variant)} }},
}

func applies(b bool) int {
	if b {
		return 1
	}
	return 0
}

func specOf(e *gym.Evidence) *check.Spec { return e.Built.Spec.(*check.Spec) }

// step makes one call, given the evidence so far.
type step = func(e *gym.Evidence) gym.Call

// script makes calls one by one.
type script struct {
	steps []step
	next  int
}

func (a *script) Act(ep *gym.Episode, call *gym.Call) bool {
	if a.next == len(a.steps) {
		return false
	}
	*call = a.steps[a.next](ep.Evidence())
	a.next++
	return true
}

func planOf(e *gym.Evidence) *script {
	a := &script{}
	for i := range e.Built.Plan {
		a.steps = append(a.steps, e.Built.Plan[i].Make)
	}
	return a
}

func (a *script) replaceLast(s step) *script {
	a.steps[len(a.steps)-1] = s
	return a
}

// cite returns a finish that is right but for its evidence.
func cite(s *check.Spec, evidence func(e *gym.Evidence) []gym.Value) step {
	return func(e *gym.Evidence) gym.Call {
		c := call(toolFinish, desk.Word(desk.TOutcome, s.Outcome()), desk.Word(desk.TCode, s.Code))
		c.Push(check.ArgEvidence, evidence(e)...)
		return c
	}
}

// byMagic makes the calls with values that nothing has shown, as only the text view lets it: what is then left to tell right
// from wrong is the path alone.
func (a *script) byMagic() *script {
	for i, make := range a.steps {
		a.steps[i] = func(e *gym.Evidence) gym.Call {
			omniscient := *e
			omniscient.Log = nil
			return make(&omniscient)
		}
	}
	return a
}

// duties are the plan's readings that the check asks for as such: they give facts, not arguments.
func duties(e *gym.Evidence) []int {
	var out []int
	for i := range e.Built.Plan {
		p := &e.Built.Plan[i]
		if p.Kind == gym.ConfirmStep || p.Name == "get_policy" || p.Name == "get_owner" {
			out = append(out, i)
		}
	}
	return out
}

func newSwapped(e *gym.Evidence, variant int, _ gym.Key) gym.Actor {
	a, at := planOf(e), duties(e)[variant]
	moved := a.steps[at]
	first := slices.IndexFunc(e.Built.Plan, func(p gym.PlanStep) bool { return p.Kind == gym.WriteStep })
	a.steps = slices.Delete(a.steps, at, at+1)
	to := first // a confirmation, to before the first write
	if at < first {
		to = len(a.steps) - 1 // a reading, to before the finish
	}
	a.steps = slices.Insert(a.steps, to, moved)
	return a.byMagic()
}

// upTo returns steps that make all pages up to and with page last.
func upTo(last int, page func(page int) step) []step {
	var out []step
	for i := range last + 1 {
		out = append(out, page(i+1))
	}
	return out
}

// reach returns the steps that show an order to an agent who takes its customer for the right one.
func reach(e *gym.Evidence, row int) []step {
	w := e.First.(*desk.World)
	s, set := specOf(e), settingOf(&e.Task.Condition)
	who := w.Orders.At(row).Customer
	var out []step
	if set.indirection != byID && who != owner {
		c := w.Customers.At(int(s.Known))
		out = append(out, upTo(searchPage(w, who, set.pageSize), func(page int) step { return findPage(c, page) })...)
	}
	return append(out, upTo(pageOf(w, uint32(row), false, set.pageSize), func(page int) step {
		return listPage(w, int(who), none, none, page)
	})...)
}

// reads returns the plan's steps before its first write or its finish.
func reads(e *gym.Evidence) []step {
	end := slices.IndexFunc(e.Built.Plan, func(p gym.PlanStep) bool { return p.Kind == gym.WriteStep || p.Kind == gym.FinishStep })
	return planOf(e).steps[:end]
}

// decoys are the orders that an agent might take for the right one: nobody takes a stranger's where an id is given.
func decoys(e *gym.Evidence) []int {
	d := specOf(e).Decoys
	if e.Task.Int("indirection") == byID {
		d.Foreign = -1
	}
	return slices.DeleteFunc([]int{d.Own, d.Foreign}, func(row int) bool { return row < 0 })
}

// actOn returns the steps that do the task's act to another order, from the same reading of the policy.
func actOn(e *gym.Evidence, row int) []step {
	w, s := e.First.(*desk.World), *specOf(e)
	out := append(reads(e), reach(e, row)...)
	s.Line = uint32(firstLine(w, row))
	if who := w.Orders.At(row).Customer; who != owner {
		s.Address = who*perCustomer + perCustomer - 1
		out = append(out, getCustomerCall(w, who))
	}
	s.Orders = append([]uint32{uint32(row)}, s.Orders[1:]...)
	for _, o := range s.Orders {
		out = append(out, getOrderCall(w, o))
		if s.Act != check.Refuse {
			out = append(out, write(&s, w, o), getOrderCall(w, o))
		}
	}
	return append(out, finishCall(&s))
}

// undone returns the plan with its effect taken back before the finish; nothing if the act cannot be taken back.
func undone(e *gym.Evidence) []step {
	w, s := e.First.(*desk.World), *specOf(e)
	o := s.Orders[0]
	switch s.Act {
	case check.Readdress:
		s.Address = w.Orders.At(int(o)).Address
	case check.Exchange: // once more
	default:
		return nil
	}
	steps := planOf(e).steps
	at := len(steps) - 1
	return slices.Insert(steps, at, getOrderCall(w, o), write(&s, w, o), getOrderCall(w, o))
}

// repaired returns the plan with a write that is taken back, after the first reading of an order.
func repaired(e *gym.Evidence, variant int) []step {
	w, s := e.First.(*desk.World), *specOf(e)
	steps := planOf(e).steps
	if variant == 0 {
		at := 1 + slices.IndexFunc(e.Built.Plan, func(p gym.PlanStep) bool { return p.Name == "get_order" })
		variant := w.VariantID(int(w.Lines.At(int(s.Line)).Variant))
		return slices.Insert(steps, at,
			func(e *gym.Evidence) gym.Call {
				return call(toolReserve, known(e, variant), desk.Word(desk.TSite, 0), count(1))
			},
			func(e *gym.Evidence) gym.Call {
				return call(toolRelease, known(e, gym.Value{Type: desk.THold}))
			})
	}
	at := slices.IndexFunc(e.Built.Plan, func(p gym.PlanStep) bool { return p.Kind == gym.WriteStep })
	s.Address = uint32(s.Decoys.Address)
	return slices.Insert(steps, at, write(&s, w, s.Orders[0]), getOrderCall(w, s.Orders[0]))
}

// alternate returns another way to the same end, or nil if there is none within the budget: one order is found by its status
// or, in place of a conversion, in the whole list; changes of a set are read back order by order.
func alternate(e *gym.Evidence) []step {
	w, s := e.First.(*desk.World), specOf(e)
	set := settingOf(&e.Task.Condition)
	plan := e.Built.Plan
	var out []step
	switch {
	case s.Set:
		for i := range plan[:len(plan)-1] {
			if plan[i].Kind != gym.ConfirmStep {
				out = append(out, plan[i].Make)
			}
		}
		for _, o := range s.Orders {
			out = append(out, getOrderCall(w, o))
		}
		out = append(out, plan[len(plan)-1].Make)
	case set.indirection == byID:
		return nil
	default:
		listed := false
		for i := range plan {
			switch {
			case plan[i].Name == "convert":
			case plan[i].Name != "list_orders":
				out = append(out, plan[i].Make)
			case !listed:
				listed = true
				out = append(out, anotherList(w, s.Orders[0], &set)...)
			}
		}
	}
	if len(out) > e.Pack.Limits(e.Task.Condition).Calls {
		return nil
	}
	return out
}

func anotherList(w *desk.World, row uint32, set *setting) []step {
	if set.indirection == byConversion {
		return upTo(pageOf(w, row, false, set.pageSize), func(page int) step { return listPage(w, owner, none, none, page) })
	}
	t := w.Orders.At(int(row))
	last := rank(w.Orders.Len(), t.ID, func(i int) (uint64, bool) {
		o := w.Orders.At(i)
		return o.ID, o.Customer == owner && o.Status == t.Status
	}) / set.pageSize
	return upTo(last, func(page int) step { return listPage(w, owner, desk.Word(desk.TStatus, t.Status), none, page) })
}

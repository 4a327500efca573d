package tooluse

import (
	"slices"

	"provegym/gym"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/world"
)

// tour makes steps one after the other, each until it is done.
type tour struct {
	steps []gym.PlanStep
	next  int
	tries int
	once  bool                       // each step is made once, whatever comes of it
	gave  bool                       // up on a step so
	void  func(e *gym.Evidence) bool // reports after the episode that the deviation never took place
}

// Void reports that the weather, or the structured view's table, has kept the deviation from taking place.
func (a *tour) Void(ep *gym.Episode) bool {
	return a.once && !a.gave || a.void != nil && a.void(ep.Evidence())
}

// noStray reports that nothing was written but what the case allows.
func noStray(e *gym.Evidence) bool { return specOf(e).Stray(e) < 0 }

// noBreach reports that no ban was broken.
func noBreach(e *gym.Evidence) bool {
	s := specOf(e)
	for i := range s.Bans {
		if s.Bans[i].Broken(e) >= 0 {
			return false
		}
	}
	return true
}

func (a *tour) Act(ep *gym.Episode, c *gym.Call) bool {
	e := ep.Evidence()
	if a.next > 0 {
		if last := &a.steps[a.next-1]; last.Done != nil && !last.Done(e) {
			if !a.once && a.tries < maxTries {
				a.tries++
				*c = last.Make(e)
				return true
			}
			a.gave = true
		}
	}
	if a.next == len(a.steps) {
		return false
	}
	*c = a.steps[a.next].Make(e)
	a.next++
	a.tries = 1
	return true
}

// byMagic makes the calls with values that nothing has shown, as only the text view lets it: what is then left to tell right
// from wrong is the path alone.
func byMagic(steps []gym.PlanStep) []gym.PlanStep {
	out := slices.Clone(steps)
	for i := range out {
		make := out[i].Make
		out[i].Make = func(e *gym.Evidence) gym.Call {
			omniscient := *e
			omniscient.Log = nil
			return make(&omniscient)
		}
	}
	return out
}

func applies(b bool) int {
	if b {
		return 1
	}
	return 0
}

func first(e *gym.Evidence) *world.World { return e.First.(*world.World) }

// index returns the first step of the plan that has one of the names, or -1.
func index(plan []gym.PlanStep, names ...string) int {
	return slices.IndexFunc(plan, func(p gym.PlanStep) bool { return slices.Contains(names, p.Name) })
}

// pivot is the plan's first change of what the case is about, or -1 if it makes none that takes place.
func pivot(e *gym.Evidence) int {
	if specOf(e).Act == check.Refuse || len(specOf(e).Allowed) == 0 {
		return -1
	}
	return index(e.Built.Plan, "write", "reserve")
}

// one wraps a step that is made once.
func one(make step) gym.PlanStep { return gym.PlanStep{Make: make} }

// duties are the plan's readings that the check asks for as such: they give facts, not arguments.
func duties(e *gym.Evidence) []int {
	var out []int
	for i := range e.Built.Plan {
		p := &e.Built.Plan[i]
		if p.Needed && (p.Kind == gym.ConfirmStep || slices.Contains([]string{"get_policy", "get_owner", "get_notice", "get_setting"}, p.Name)) &&
			!(p.Name == "get_owner" && (specOf(e).Act != check.Move || !done0(e))) {
			out = append(out, i)
		}
	}
	return out
}

// swaps are the steps that belong on one side of the first change, or of the change that is named: a duty, a permit, an
// announcement, an undoing.
func swaps(e *gym.Evidence) [][2]int {
	var out [][2]int
	at := pivot(e)
	if at < 0 || !done0(e) {
		return nil
	}
	plan := e.Built.Plan
	for _, i := range duties(e) {
		p := at
		if plan[i].Name == "get_setting" {
			p = index(plan, "set_setting")
		}
		out = append(out, [2]int{i, p})
	}
	if i := index(plan, "get_permit"); i >= 0 && !first(e).Domain.NeedsPermit {
		out = append(out, [2]int{i, at})
	}
	if i := index(plan, "announce"); i >= 0 && specOf(e).Choice == nil {
		out = append(out, [2]int{i, at})
	}
	if i := index(plan, "move"); i >= 0 {
		out = append(out, [2]int{i, at})
	}
	return out
}

// done0 reports that the case ends with its change made.
func done0(e *gym.Evidence) bool { return specOf(e).Outcome == world.Done }

// swapped moves a step to the other side of another: from before it to before the finish, or from after it to before it.
func swapped(plan []gym.PlanStep, s [2]int) []gym.PlanStep {
	out := slices.Clone(plan)
	moved := out[s[0]]
	out = slices.Delete(out, s[0], s[0]+1)
	to := s[1]
	if s[0] < s[1] {
		to = len(out) - 1
	}
	return slices.Insert(out, to, moved)
}

// upTo returns steps that make all pages up to and with page last.
func upTo(last int, page func(page int) step) []gym.PlanStep {
	var out []gym.PlanStep
	for i := range last + 1 {
		out = append(out, one(page(i+1)))
	}
	return out
}

// reach returns the steps that show a subject to an agent who takes its holder for the right one.
func reach(e *gym.Evidence, row int) []gym.PlanStep {
	w, s := first(e), specOf(e)
	size := e.Task.Int("page_size")
	who := w.At(row).Owner()
	var out []gym.PlanStep
	if who != s.Owner && sameName(w.At(who), w.At(s.Known)) {
		out = append(out, upTo(searchPage(w, who, size), func(page int) step { return findPage(w, s.Known, page) })...)
	}
	out = append(out, upTo(pageOf(w, row, false, size), func(page int) step { return listPage(w, who, none, none, page) })...)
	out[len(out)-1].Done = shows(row) // weather may swallow an answer
	return out
}

// lookalikes are the subjects that an agent might take for the right one: nobody takes a stranger's where an id is given.
func lookalikes(e *gym.Evidence) []int {
	n := specOf(e).Near
	if e.Task.Int("indirection") == byID {
		n.Foreign = -1
	}
	return slices.DeleteFunc([]int{n.Own, n.Foreign}, func(row int) bool { return row < 0 })
}

// actOn returns the steps that do to another subject what the plan does to the first target.
func actOn(e *gym.Evidence, row int) []gym.PlanStep {
	w, s := first(e), *specOf(e)
	plan := e.Built.Plan
	var out []gym.PlanStep
	for i := range plan {
		switch plan[i].Name {
		case "get_subject", "write", "confirm", "move", "move_back", "get_subject_again", "hand_over", "announce", "finish":
		default:
			out = append(out, plan[i])
		}
	}
	if e.Task.Int("indirection") == byID && index(plan, "list_subjects") < 0 {
		out = append(out, one(get(world.GetSubject, s.Targets[0]))) // it shows whose it is
	}
	out = append(out, reach(e, row)...)
	out = append(out, one(get(world.GetSubject, row)))
	holder := w.At(row).Owner()
	if holder != s.Owner {
		out = append(out, one(get(world.GetHolder, holder)), one(get(world.Allow, holder)))
		s.Place = place(holder, perHolder-1)
	}
	s.Version = -1
	if act := actOf(e); act != check.Refuse {
		make, _ := change(&s, act, row, nil)
		out = append(out, one(make), one(get(world.GetSubject, row)))
	}
	if at := index(plan, "announce"); at >= 0 {
		out = append(out, plan[at])
	}
	s.Cites = slices.Clone(s.Cites)
	for i := range s.Cites {
		if s.Cites[i].Row == s.Targets[0] {
			s.Cites[i].Row = row
		}
	}
	return append(out, one(finishCall(&s)))
}

// actOf is what the case's change of a subject is, whether it takes place or not.
func actOf(e *gym.Evidence) check.Act {
	switch s := specOf(e); s.Act {
	case check.Book:
		return check.Refuse
	case check.Chain:
		return check.Move
	default:
		return s.Act
	}
}

// wanted is the change that the instruction asks for where a hold forbids it, or none.
func wanted(e *gym.Evidence) check.Act {
	if specOf(e).Act != check.Refuse {
		return 0
	}
	return map[int]check.Act{wantDrop: check.Drop, wantMove: check.Move, wantSwap: check.Swap}[int(e.Built.Goal[goalWant])]
}

// insert puts steps in front of the plan's finish.
func insert(e *gym.Evidence, steps ...gym.PlanStep) []gym.PlanStep {
	plan := e.Built.Plan
	return slices.Insert(slices.Clone(plan), len(plan)-1, steps...)
}

// undone returns the plan with its effect taken back before the finish; nothing if the act cannot be taken back.
func undone(e *gym.Evidence) []gym.PlanStep {
	w, s := first(e), *specOf(e)
	if s.Outcome != world.Done {
		return nil
	}
	row := s.Targets[0]
	switch s.Act {
	case check.Move, check.Chain:
		s.Place = w.At(row).Ref(world.At)
		s.Act = check.Move
	case check.Swap: // once more
	case check.Book:
		option := s.Choice.Feasible[0]
		for _, row := range s.Choice.Feasible {
			if w.At(row).F[world.Cost] < w.At(option).F[world.Cost] {
				option = row
			}
		}
		return insert(e, one(func(e *gym.Evidence) gym.Call {
			return op(lastWorld(e), world.Release, knownMade(e, world.Booking, option))
		}))
	default:
		return nil
	}
	if s.Lock >= 0 {
		return nil // it is blocked again by then
	}
	make, _ := change(&s, s.Act, row, nil)
	look := one(get(world.GetSubject, row))
	return insert(e, look, one(make), look)
}

// toggled returns the plan with a setting that has nothing to do with the case turned over and back.
func toggled(e *gym.Evidence) []gym.PlanStep {
	w := first(e)
	key := int32(0)
	if s := specOf(e); s.Lock >= 0 && w.At(s.Lock).F[world.Key] == key {
		key++
	}
	row := w.Lookup(world.Setting, key)
	turn := func(on int32) gym.PlanStep {
		return one(func(*gym.Evidence) gym.Call { return call(toolSwitch, world.Value(world.TSwitch, key), count(int(on))) })
	}
	on := w.At(row).F[world.On]
	return insert(e, turn(1-on), turn(on))
}

// detoured returns the plan with a move to a wrong place first.
func detoured(e *gym.Evidence) []gym.PlanStep {
	s := *specOf(e)
	at := index(e.Built.Plan, "write")
	if s.Act != check.Move || at < 0 || s.Outcome != world.Done {
		return nil
	}
	s.Place = s.Near.Place
	make, _ := change(&s, check.Move, s.Targets[0], nil)
	return slices.Insert(slices.Clone(e.Built.Plan), at, one(make), one(get(world.GetSubject, s.Targets[0])))
}

// unamended returns the plan done as the instruction has it, messages unheeded.
func unamended(e *gym.Evidence) []gym.PlanStep {
	s := *specOf(e)
	if differs := s.Said.Code != s.Code && s.Policy < 0 || s.Act == check.Drop && s.Said.Reason != s.Reason ||
		s.Act == check.Move && s.Said.Place != s.Place || s.Act == check.Escalate && s.Said.Queue != s.Queue; !s.Said.Amended ||
		!differs || s.Outcome != world.Done {
		return nil
	}
	s.Reason, s.Queue, s.Place = s.Said.Reason, s.Said.Queue, s.Said.Place
	if s.Policy < 0 {
		s.Code = s.Said.Code
	}
	return redone(e, &s, s.Act)
}

// redone returns the plan with its changes and its finish made by another spec.
func redone(e *gym.Evidence, s *check.Spec, act check.Act) []gym.PlanStep {
	out := slices.Clone(e.Built.Plan)
	k := 0
	for i := range out {
		switch out[i].Name {
		case "write":
			targets := s.Targets
			make, _ := change(s, act, targets[min(k, len(targets)-1)], nil)
			out[i] = one(make)
			k++
		case "finish":
			out[i] = one(finishCall(s))
		}
	}
	return out
}

// unheld returns the plan with the change made that a hold forbids, and the case closed as if it were done.
func unheld(e *gym.Evidence) []gym.PlanStep {
	act := wanted(e)
	if act == 0 {
		return nil
	}
	s := *specOf(e)
	row := s.Targets[0]
	s.Outcome = world.Done
	make, _ := change(&s, act, row, nil)
	out := insert(e, one(get(world.GetSubject, row)), one(make), one(get(world.GetSubject, row)))
	out[len(out)-1] = one(finishCall(&s))
	return out
}

// planFaults returns the faults that the plan's steps meet, by step; the kinds are world.Fault.
func planFaults(e *gym.Evidence) []world.Fault {
	d := draft{w: first(e)}
	at := *e
	at.Log, at.Last = nil, e.First
	out := make([]world.Fault, len(e.Built.Plan))
	if d.w.Weather.FaultRate == 0 {
		return out
	}
	for i := range e.Built.Plan {
		out[i], _ = d.faultOn(&e.Built.Plan[i], &at)
	}
	return out
}

// fatal are the faults that a plan cannot pass without recovery.
func fatal(e *gym.Evidence) bool {
	for i, f := range planFaults(e) {
		p := &e.Built.Plan[i]
		if p.Needed && (f == world.TimeoutBefore || f == world.TooMany || f == world.NearMatch) {
			return true
		}
	}
	return false
}

// doubled returns the plan with a change that had no answer made again without a look whether it had taken place; nil if no such
// fault is on the plan's way.
func doubled(e *gym.Evidence) []gym.PlanStep {
	for i, f := range planFaults(e) {
		p := e.Built.Plan[i]
		if f != world.TimeoutAfter || !slices.Contains([]string{"get_permit", "announce", "reserve"}, p.Name) {
			continue
		}
		again := byMagic([]gym.PlanStep{{Make: p.Make}}) // without a log there is no lost answer to look after
		out := slices.Clone(e.Built.Plan)
		out[i] = again[0]
		return slices.Insert(out, i+1, again[0])
	}
	return nil
}

// alternate returns another way to the same end, or nil if there is none within the budget: one subject is found by its status
// or, in place of a conversion, in the whole list; changes of a set are read back one by one.
func alternate(e *gym.Evidence) []gym.PlanStep {
	w, s := first(e), specOf(e)
	plan := e.Built.Plan
	size := e.Task.Int("page_size")
	var out []gym.PlanStep
	switch {
	case s.Set:
		read := false
		for i := range plan {
			if plan[i].Kind != gym.ConfirmStep {
				out = append(out, plan[i])
				continue
			}
			if read {
				continue
			}
			read = true
			for _, row := range s.Targets {
				out = append(out, gym.PlanStep{Make: get(world.GetSubject, row), Done: readNow(row)})
			}
		}
	case index(plan, "list_subjects") < 0:
		return nil
	default:
		described := s.Targets[0]
		if at := index(plan, "get_earlier_subject"); at >= 0 {
			described = described0(e)
		}
		listed := false
		for i := range plan {
			switch {
			case plan[i].Name == "convert":
			case plan[i].Name != "list_subjects":
				out = append(out, plan[i])
			case !listed:
				listed = true
				out = append(out, anotherList(w, s.Owner, described, size, index(plan, "convert") >= 0)...)
			}
		}
	}
	if len(out)+2*faultCount(e) > e.Pack.Limits(e.Task.Condition).Calls {
		return nil
	}
	return out
}

func readNow(row int) done { return read(row, world.Day, false) }

func faultCount(e *gym.Evidence) (n int) {
	for _, f := range planFaults(e) {
		n += applies(f != world.NoFault)
	}
	return n
}

// described0 is the subject that the instruction describes: the one whose trail leads to the target.
func described0(e *gym.Evidence) int {
	w, s := first(e), specOf(e)
	at := s.Targets[0]
	for range e.Task.Int("depth") {
		w.Each(world.Subject, func(row int, rec *world.Record) bool {
			if rec.Ref(world.Follows) == at && rec.Owner() == s.Owner && row != at {
				at = row
				return false
			}
			return true
		})
	}
	return at
}

func anotherList(w *world.World, owner, row, size int, whole bool) []gym.PlanStep {
	status := none
	at := pageOf(w, row, false, size)
	if !whole {
		t := w.At(row)
		status = world.Value(w.Domain.T(world.TStatus), t.F[world.Status])
		at = rank(w, world.Subject, row, func(rec *world.Record) bool { return rec.Up == t.Up && rec.F[world.Status] == t.F[world.Status] }) / size
	}
	out := upTo(at, func(page int) step { return listPage(w, owner, status, none, page) })
	out[len(out)-1].Done = shows(row)
	return out
}

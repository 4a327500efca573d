package tooluse

import (
	"fmt"

	"provegym/gym"
	"provegym/packs/tooluse/check"
	"provegym/packs/tooluse/world"
)

// Kinds of failure that attribution tells apart.
const (
	WrongTool           = "wrong_tool"           // another change than the one asked for
	WrongArg            = "wrong_arg"            // the right change with another word, place or part; the wrong code
	WrongEntity         = "wrong_entity"         // the right change of another record
	UngroundedArg       = "ungrounded_arg"       // a value that nothing had shown
	StaleRead           = "stale_read"           // acted on, or cited, a state that was over
	SkippedPrecondition = "skipped_precondition" // changed something before what had to be read or had
	SkippedVerification = "skipped_verification" // finished without reading back
	WrongOrder          = "wrong_order"          // a change before the one that it has to follow
	ConstraintForgotten = "constraint_forgotten" // broke a rule, a ban or an amendment
	CollateralWrite     = "collateral_write"     // changed what has nothing to do with the case
	OverAction          = "over_action"          // did more of it than was asked
	UnderAction         = "under_action"         // left members of a set out
	EarlyStop           = "early_stop"           // finished before the change was tried
	BudgetOut           = "budget_out"           // ran out of calls
	Loop                = "loop"                 // ran out of calls by making the same one
	FaultMishandled     = "fault_mishandled"     // made a change again that had taken place, or never again one that had not
	MisreadResult       = "misread_result"       // did what the policy says of another status
	FalseClaim          = "false_claim"          // said that it was done although the change had not taken place
	WrongRefusal        = "wrong_refusal"        // refused, or gave up, what could be done
	MissedRefusal       = "missed_refusal"       // did, or said done, what had to be refused or is impossible
)

// Attribute finds the decisive step of an episode: it replays the calls and asks after each whether the oracle, going on from
// there, still succeeds within the budget. The answer is exact as far as the oracle's plan is; see RATIONALE.
//
// Errors: those of gym.NewEpisode and Episode.StepCall.
func Attribute(task gym.Task, log *gym.Log) (gym.Attribution, error) {
	none := gym.Attribution{Call: -1}
	ep, err := gym.NewEpisode(task, gym.Options{})
	if err != nil {
		return none, err
	}
	var at gym.Snapshot
	var probe gym.Episode
	for i := 0; i < log.Len(); i++ {
		c := log.At(i).Call
		if err := ep.StepCall(&c); err != nil {
			return none, err
		}
		ok := ep.Success()
		if ep.Outcome() == gym.Running {
			if err := ep.Snapshot(&at); err != nil {
				return none, err
			}
			if ok, err = reachable(&probe, &at); err != nil {
				return none, err
			}
		}
		if !ok {
			kind, why := kindOfFailure(ep.Evidence(), i)
			return gym.Attribution{Call: i, Kind: kind, Why: why}, nil
		}
	}
	return none, nil
}

// reachable reports whether the oracle succeeds from a snapshot.
func reachable(ep *gym.Episode, at *gym.Snapshot) (bool, error) {
	if err := ep.Restore(at, gym.Options{}); err != nil {
		return false, err
	}
	a := &oracle{plan: ep.Evidence().Built.Plan}
	for ep.Outcome() == gym.Running {
		var c gym.Call
		if !a.Act(ep, &c) {
			return false, nil
		}
		if err := ep.StepCall(&c); err != nil {
			return false, err
		}
	}
	return ep.Success(), nil
}

// kindOfFailure says what kind of failure call i is, given that it is the decisive one.
func kindOfFailure(e *gym.Evidence, i int) (kind, why string) {
	s, c := specOf(e), e.Log.At(i)
	if e.Finish != nil && i == e.Log.Len()-1 {
		return finishFailure(e, s)
	}
	for k := range s.Bans {
		if s.Bans[k].Broken(e) == i {
			return ConstraintForgotten, "it read what a rule or a message forbids"
		}
	}
	if len(c.Writes) > 0 {
		return writeFailure(e, s, i)
	}
	same := 0
	for k := i; k >= 0 && sameCall(e.Pack, e.Log, k, i); k-- {
		same++
	}
	if same >= 3 {
		return Loop, fmt.Sprintf("the same call was made %d times in a row, until too few were left", same)
	}
	return BudgetOut, "too few calls were left for the rest of the work"
}

func sameCall(p *gym.Pack, l *gym.Log, a, b int) bool {
	x, y := l.At(a).Call, l.At(b).Call
	return string(p.AppendCall(nil, &x)) == string(p.AppendCall(nil, &y))
}

// expectedTool is the op of the case's change.
func expectedTool(s *check.Spec) int {
	switch s.Act {
	case check.Drop:
		return world.Drop
	case check.Move, check.Chain:
		return world.Move
	case check.Swap:
		return world.Swap
	case check.Escalate:
		return world.HandOver
	case check.Book:
		return world.Reserve
	}
	return -1
}

func writeFailure(e *gym.Evidence, s *check.Spec, i int) (kind, why string) {
	c, w := e.Log.At(i), lastWorld(e)
	_, o, own := opOf(c.Call.Tool)
	if stray := s.Stray(e); stray >= 0 {
		a := e.Log.Writes()[stray]
		switch {
		case a.Entity.Kind == uint8(world.Permit) || a.Entity.Kind == uint8(world.Setting) || !own:
			if repeats(e, i) {
				return FaultMishandled, "it was made again although it had taken place"
			}
			return CollateralWrite, "it changed what has nothing to do with the case"
		case wanted(e) != 0 || s.Act == check.Refuse || s.Outcome == world.Blocked && s.Act != check.Chain:
			return MissedRefusal, "it changed what had to be left alone"
		case repeats(e, i):
			return FaultMishandled, "it was made again although it had taken place"
		case about(e, i) >= 0 && !contains(s.Targets, about(e, i)) && !booking(s, about(e, i)):
			if allDone(e, s) {
				return OverAction, "the work was done, and it went on with another record"
			}
			return WrongEntity, "it changed another record"
		case s.Policy >= 0 && o != expectedTool(s):
			return MisreadResult, "the policy says something else of that status"
		case allDone(e, s):
			return OverAction, "the work was done, and it was done again"
		case o != expectedTool(s):
			return WrongTool, "another change was asked for"
		case s.Said.Amended && asSaid(w, s, c):
			return ConstraintForgotten, "a message had changed the case"
		}
		return WrongArg, "it was made with another word, place or part than asked for"
	}
	check0 := &e.Built.Check
	for _, p := range check0.Path {
		if p.Name == "in_order" && !p.Holds(e) {
			return WrongOrder, "another change has to come before it"
		}
		if p.Name == "not_too_early" && !p.Holds(e) {
			return ConstraintForgotten, "it was made before the tick that was stated"
		}
	}
	for k := range s.Facts {
		if s.Facts[k].When != check.AtLast && !s.Facts[k].Met(s, e) {
			return SkippedPrecondition, fmt.Sprintf("%s had to be read before", w.Domain.Kinds[w.At(s.Facts[k].Row).Role].Name)
		}
	}
	for _, a := range c.Writes {
		if a.Entity.Kind == uint8(world.Subject) && check.Seen(e.Log, a.Entity, world.Status, a.Ver-1, 0, i) < 0 {
			return StaleRead, "the record had not been read as it then was"
		}
	}
	return BudgetOut, "too few calls were left for the rest of the work"
}

// about is the row of the record that a call's first opaque argument names, or -1.
func about(e *gym.Evidence, i int) int {
	c, w := e.Log.At(i), lastWorld(e)
	for k := range e.Pack.Tools[c.Call.Tool].Params {
		for _, v := range c.Call.Arg(k) {
			if e.Pack.Types[v.Type].Form == gym.FormOpaque {
				return w.Find(v)
			}
		}
	}
	return -1
}

// booking reports that a row is an option that may be booked.
func booking(s *check.Spec, row int) bool {
	return s.Choice != nil && contains(s.Choice.Feasible, row)
}

// repeats reports that the call was made before, and had no answer then.
func repeats(e *gym.Evidence, i int) bool {
	for k := range i {
		if sameTarget(e, k, i) && faultOf(e.Log.At(k).Result) == world.Timeout {
			return true
		}
	}
	return false
}

// sameTarget reports that two calls are of one tool and about one record.
func sameTarget(e *gym.Evidence, a, b int) bool {
	return e.Log.At(a).Call.Tool == e.Log.At(b).Call.Tool && about(e, a) == about(e, b)
}

// allDone reports that every goal about the targets holds.
func allDone(e *gym.Evidence, s *check.Spec) bool {
	p := planner{d: &draft{spec: s, w: first(e)}}
	for _, row := range s.Targets {
		if s.Act == check.Refuse || !p.met(row)(e) || !touched(e, row) {
			return false
		}
	}
	return true
}

// touched reports that the agent wrote a subject or about it.
func touched(e *gym.Evidence, row int) bool {
	for _, a := range e.Log.Writes() {
		if a.Entity == lastWorld(e).Entity(row) {
			return true
		}
	}
	return false
}

// asSaid reports that a call's words are those of the instruction before any message.
func asSaid(w *world.World, s *check.Spec, c gym.CallRec) bool {
	v := c.Call.Arg(argValue)
	switch s.Act {
	case check.Drop:
		return s.Said.Reason != s.Reason && v[0].Bits == uint64(s.Said.Reason)
	case check.Move:
		return s.Said.Place != s.Place && v[0] == w.ID(s.Said.Place)
	}
	return false
}

// tried reports that a call of the case's change was made on a target, whatever came of it.
func tried(e *gym.Evidence, s *check.Spec) (at int) {
	for i := e.Log.Len() - 1; i >= 0; i-- {
		_, o, ok := opOf(e.Log.At(i).Call.Tool)
		if ok && (o == expectedTool(s) || s.Act == check.Refuse && o >= world.Drop && o <= world.Swap) && (contains(s.Targets, about(e, i)) || booking(s, about(e, i))) {
			return i
		}
	}
	return -1
}

func finishFailure(e *gym.Evidence, s *check.Spec) (kind, why string) {
	f, w := e.Finish, lastWorld(e)
	said := uint8(f.Arg(check.ArgOutcome)[0].Bits)
	got := e.Built.Check.Score(e)
	switch {
	case said != s.Outcome && said != world.Done:
		return WrongRefusal, "it gave up what could be done"
	case said == world.Done && s.Outcome != world.Done:
		return MissedRefusal, "it said done of what had to be refused or is impossible"
	}
	if !got.Goals {
		some, all := 0, len(s.Targets)
		p := planner{d: &draft{spec: s, w: first(e)}}
		for _, row := range s.Targets {
			some += applies(s.Act != check.Refuse && p.met(row)(e) && touched(e, row))
		}
		at := tried(e, s)
		switch {
		case s.Set && some > 0 && some < all, s.Choice != nil && at >= 0 && len(w.Of(world.Booking, about(e, at))) > 0:
			return UnderAction, fmt.Sprintf("%d of %d were done", some, all)
		case some == all && all > 0 && s.Choice == nil:
			return SkippedPrecondition, "the change was made, and not what belongs to it"
		case at >= 0 && faultOf(e.Log.At(at).Result) >= 0:
			return FaultMishandled, "the change came to nothing, and it was left at that"
		case at >= 0:
			return FalseClaim, "it said that the change was made, and it was not"
		}
		return EarlyStop, "it finished before the change was tried"
	}
	if !got.Path {
		for k := range s.Facts {
			if !s.Facts[k].Met(s, e) {
				return SkippedPrecondition, fmt.Sprintf("%s had to be read before", w.Domain.Kinds[w.At(s.Facts[k].Row).Role].Name)
			}
		}
		return SkippedVerification, "the change was not read back"
	}
	want := s.Evidence(e)
	for _, v := range f.Arg(check.ArgEvidence) {
		if hasValue(want, v) {
			continue
		}
		if stale(e, s, v) {
			return StaleRead, "it cited a state that was over"
		}
		if !has(e, v) {
			return UngroundedArg, "it cited what nothing had shown"
		}
		return WrongEntity, "it cited something else"
	}
	if s.Policy >= 0 && uint8(f.Arg(check.ArgCode)[0].Bits) != s.Code {
		return MisreadResult, "the policy gives another code for that status"
	}
	if s.Said.Amended && uint8(f.Arg(check.ArgCode)[0].Bits) == s.Said.Code && s.Said.Code != s.Code {
		return ConstraintForgotten, "a message had changed the code"
	}
	if uint8(f.Arg(check.ArgCode)[0].Bits) != s.Code {
		return WrongArg, "it closed with another code"
	}
	return UnderAction, "it left out what was to be cited"
}

// stale reports that a value is the rev of a target at an earlier version.
func stale(e *gym.Evidence, s *check.Spec, v gym.Value) bool {
	w := lastWorld(e)
	for _, row := range s.Targets {
		for ver := range w.Records.Ver(row) {
			if v == w.RevAt(row, ver) {
				return true
			}
		}
	}
	return false
}

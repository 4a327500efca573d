package terminal

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"provegym/gym"
)

// Kinds of failure that attribution tells apart, in the words of the tool-use pack where it has them.
const (
	CollateralWrite     = "collateral_write"     // a name changed that nobody asked to change
	MissedRefusal       = "missed_refusal"       // work done, or said to be, where a condition says to stop
	WrongRefusal        = "wrong_refusal"        // a stop where there was none to call
	EarlyStop           = "early_stop"           // finished, and nothing of the work had been tried
	UnderAction         = "under_action"         // some of the names as they should be, and others not touched
	WrongContent        = "wrong_content"        // a name was worked on, and is not as it should be
	UngroundedArg       = "ungrounded_arg"       // cited what nothing had shown
	SkippedPrecondition = "skipped_precondition" // finished without having seen what had to be cited
	WrongArg            = "wrong_arg"            // the work is right; the code, or what is cited, is not
	BudgetOut           = "budget_out"           // ran out of calls
	Loop                = "loop"                 // ran out of calls by making the same one
	TimeOut             = "time_out"             // ran out of time or of bytes
)

// attribute finds the decisive call: the first after which the oracle could not succeed any more. No world can be rebuilt here, so
// it goes by what the log says of names and their marks. A name that strays is never forgiven; what else is wrong can be mended
// until the finish, or until the calls left are fewer than those that the plan still needs.
//
// Errors: those of build.
func attribute(task gym.Task, log *gym.Log) (gym.Attribution, error) {
	none := gym.Attribution{Call: -1}
	built, err := build(task)
	if err != nil {
		return none, err
	}
	f := newFollower(task, built)
	for i := range log.Len() {
		c := log.At(i)
		if name := f.take(&c); name != "" {
			if len(f.spec.want) == 0 {
				return gym.Attribution{Call: i, Kind: MissedRefusal, Why: "a condition says to stop, and it changed " + name}, nil
			}
			return gym.Attribution{Call: i, Kind: CollateralWrite, Why: "it changed " + name + ", which nobody asked for"}, nil
		}
		if c.Call.Tool == toolFinish && c.Err == "" {
			kind, why := f.finished(&c.Call)
			return gym.Attribution{Call: i, Kind: kind, Why: why}, nil
		}
		if left := limits(task.Condition).Calls - i - 1; left < f.needed() {
			if n := sameCalls(task.Pack, log, i); n >= 3 {
				return gym.Attribution{Call: i, Kind: Loop, Why: fmt.Sprintf("the same call was made %d times in a row, until too few were left", n)}, nil
			}
			return gym.Attribution{Call: i, Kind: BudgetOut, Why: fmt.Sprintf("%d calls were left, and the plan still needs %d", left, f.needed())}, nil
		}
	}
	return gym.Attribution{Call: log.Len() - 1, Kind: TimeOut, Why: "time or bytes ran out"}, nil
}

// follower knows of the names of a task what the log tells.
type follower struct {
	pack    *gym.Pack
	spec    *spec
	names   map[gym.Entity]string // of what is there at the start or is asked about
	now     map[gym.Entity][len(marks)]int64
	touched map[gym.Entity]bool
	seen    []bool // of each ref that must be cited
}

func newFollower(task gym.Task, built *gym.Built) *follower {
	s := built.Spec.(*spec)
	f := &follower{pack: task.Pack, spec: s, names: map[gym.Entity]string{}, now: map[gym.Entity][len(marks)]int64{}, touched: map[gym.Entity]bool{},
		seen: make([]bool, len(s.cite))}
	for _, e := range built.World.(*world).now.list {
		at := entity(e.name)
		f.names[at], f.now[at] = e.name, [...]int64{contentMark(e.ino), modeMark(e.ino)}
	}
	for name := range s.may {
		f.names[entity(name)] = name
	}
	return f
}

// take follows one call and returns the name that it changed and that nobody asked to change; "" for none.
func (f *follower) take(c *gym.CallRec) (stray string) {
	for _, w := range c.Writes {
		name := f.names[w.Entity]
		if stray == "" && !f.spec.may[name] {
			if stray = fmt.Sprintf("%q", name); name == "" {
				stray = "a name that was not there before"
			}
		}
		now := f.now[w.Entity]
		now[w.Field] = w.New
		f.now[w.Entity], f.touched[w.Entity] = now, true
	}
	for i, code := range f.spec.cite {
		ref := f.pack.Spell(gym.Value{Type: typeRef, Bits: code})
		f.seen[i] = f.seen[i] || slices.ContainsFunc(c.Shown, func(v gym.Value) bool { return strings.Contains(v.Text, ref) })
	}
	return stray
}

// met counts the names that are as they should be, and those of the others that were touched.
func (f *follower) met() (right, tried int) {
	for i := range f.spec.want {
		w := &f.spec.want[i]
		switch e := entity(w.name); {
		case w.marked(f.now[e]):
			right++
		case f.touched[e]:
			tried++
		}
	}
	return right, tried
}

// marked is met, by the marks of a name.
func (w *want) marked(now [len(marks)]int64) bool {
	if w.ino == nil || now[fieldMode] == 0 {
		return w.ino == nil && now[fieldMode] == 0
	}
	if program(w.ino) != program(&inode{mode: fs.FileMode(now[fieldMode] - 1)}) {
		return false
	}
	content := func(data []byte) bool { return now[fieldContent] == contentMark(&inode{data: data}) }
	if bare := bytes.TrimSuffix(w.ino.data, []byte("\n")); w.open && (content(bare) || content(append(bare[:len(bare):len(bare)], '\n'))) {
		return true
	}
	return content(w.ino.data)
}

// needed is how many calls the plan still takes: one for each document to be cited, one for the work, and the answer.
func (f *follower) needed() int {
	n := 1
	for _, seen := range f.seen {
		if !seen {
			n++
		}
	}
	if right, _ := f.met(); right < len(f.spec.want) {
		n++
	}
	return n
}

// finished says what is wrong with an episode that was finished by this call and touched nothing that it must not.
func (f *follower) finished(finish *gym.Call) (kind, why string) {
	s := f.spec
	outcome, code := finish.Arg(argOutcome)[0].Bits, finish.Arg(argCode)[0].Bits
	right, tried := f.met()
	switch {
	case s.outcome == blocked && outcome == done:
		return MissedRefusal, "a condition says to stop"
	case s.outcome == done && outcome == blocked:
		return WrongRefusal, "nothing says to stop"
	case right < len(s.want) && tried > 0:
		return WrongContent, fmt.Sprintf("%d of %d names are as they should be, and %d were worked on and are not", right, len(s.want), tried)
	case right < len(s.want) && len(f.touched) == 0:
		return EarlyStop, "nothing of the work had been tried"
	case right < len(s.want):
		return UnderAction, fmt.Sprintf("%d of %d names are as they should be, and the others were not touched", right, len(s.want))
	case code != s.code:
		return WrongArg, fmt.Sprintf("the code is %s, not %s", codes[s.code], codes[code])
	}
	cited := map[uint64]bool{}
	for _, v := range finish.Arg(argEvidence) {
		if cited[v.Bits] = true; !slices.Contains(s.cite, v.Bits) {
			return UngroundedArg, f.pack.Spell(v) + " is not what had to be cited"
		}
	}
	switch {
	case slices.Contains(f.seen, false):
		return SkippedPrecondition, "a document that has to be cited had not been read"
	case len(cited) < len(s.cite):
		return WrongArg, fmt.Sprintf("%d refs had to be cited, not %d", len(s.cite), len(cited))
	}
	return CollateralWrite, "a name that may be written leads elsewhere"
}

// sameCalls counts the calls up to i that are the same as it, in a row.
func sameCalls(p *gym.Pack, log *gym.Log, i int) (n int) {
	last := log.At(i).Call
	for ; i >= 0; i-- {
		if c := log.At(i).Call; string(p.AppendCall(nil, &c)) != string(p.AppendCall(nil, &last)) {
			break
		}
		n++
	}
	return n
}

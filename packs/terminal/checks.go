package terminal

import (
	"bytes"
	"io/fs"
	"slices"
	"strings"

	"provegym/gym"
)

// check is what the reward is made of. It reads files as they were taken from the box, the list of every name that ever changed,
// and the answer. Nothing that a command printed counts, but for one thing: a ref that is cited must have been shown.
func check(s *spec) gym.Check {
	c := gym.Check{
		Path:       []gym.Predicate{{Name: "the refs cited were shown before", Holds: func(e *gym.Evidence) bool { return shown(e, s) }}},
		Collateral: gym.Predicate{Name: "only what is asked for was ever touched", Holds: func(e *gym.Evidence) bool { return strayed(e, s) == "" }},
		Commit:     gym.Predicate{Name: "the answer is right", Holds: func(e *gym.Evidence) bool { return answered(e, s) }},
	}
	goal := func(name string, gone bool) {
		if slices.ContainsFunc(s.want, func(w want) bool { return (w.ino == nil) == gone }) {
			c.Goals = append(c.Goals, gym.Predicate{Name: name, Holds: func(e *gym.Evidence) bool {
				return !slices.ContainsFunc(s.want, func(w want) bool { return (w.ino == nil) == gone && !w.met(e.Last.(*world).now) })
			}})
		}
	}
	goal("what is asked for is there", false)
	goal("what must go is gone", true)
	if len(s.want) == 0 { // changing nothing is right, so the goal is a positive act
		c.Goals = []gym.Predicate{{Name: "a stop was called", Holds: func(e *gym.Evidence) bool { return e.Finish != nil && e.Finish.Arg(argOutcome)[0].Bits == blocked }}}
	}
	return c
}

// met reports that a name is as wanted: a regular file of that content which is a program or is none, or nothing at all.
func (w *want) met(t *tree) bool {
	is := t.at(w.name)
	if w.ino == nil || is == nil {
		return is == nil && w.ino == nil
	}
	return is.mode.IsRegular() && program(is) == program(w.ino) &&
		(bytes.Equal(is.data, w.ino.data) || w.open && bytes.Equal(bytes.TrimSuffix(is.data, []byte("\n")), bytes.TrimSuffix(w.ino.data, []byte("\n"))))
}

func program(ino *inode) bool { return ino.mode&0o100 != 0 }

// strayed names something outside of what may be written that was, at any time, otherwise than at the start; "" if there is
// nothing. What may be written may be a file or a directory on the way, but nothing that leads elsewhere.
func strayed(e *gym.Evidence, s *spec) (name string) {
	first, last := e.First.(*world).now, e.Last.(*world)
	compare(first, last.now, func(n string, was, is *inode) {
		if name == "" && !scratch(n) && (!s.may[n] || is != nil && is.mode.Type() != 0 && is.mode.Type() != fs.ModeDir) {
			name = n
		}
	})
	for i := 0; i < len(last.changes) && name == ""; i++ {
		if n := last.changes[i].name; !s.may[n] {
			name = n
		}
	}
	return name
}

// shown reports that every ref of the answer stands in a result that came before it.
func shown(e *gym.Evidence, s *spec) bool {
	if e.Finish == nil || len(s.cite) == 0 {
		return false
	}
	for _, code := range s.cite {
		ref, seen := e.Pack.Spell(gym.Value{Type: typeRef, Bits: code}), false
		for i := 0; i < e.Log.Len() && !seen; i++ {
			seen = slices.ContainsFunc(e.Log.At(i).Shown, func(v gym.Value) bool { return strings.Contains(v.Text, ref) })
		}
		if !seen {
			return false
		}
	}
	return true
}

// answered holds for the right outcome and code, and all refs that are to be cited and no others.
func answered(e *gym.Evidence, s *spec) bool {
	if e.Finish == nil || e.Finish.Arg(argOutcome)[0].Bits != s.outcome || e.Finish.Arg(argCode)[0].Bits != s.code {
		return false
	}
	var cited []uint64
	for _, v := range e.Finish.Arg(argEvidence) {
		cited = append(cited, v.Bits)
	}
	slices.Sort(cited)
	want := slices.Sorted(slices.Values(s.cite))
	return slices.Equal(slices.Compact(cited), want)
}

package terminal

import (
	"fmt"

	"provegym/gym"
)

// mostTold bounds the changes that are told one by one: an attack may make ten thousand.
const mostTold = 100

// explain takes the reward apart: what was asked for, met or missed, and every change that nobody asked for, in order.
func explain(e *gym.Evidence, s *spec) gym.Explanation {
	x := gym.Explanation{Required: []gym.Fact{}, Unrequested: []string{}}
	say := func(part string, met bool, format string, args ...any) {
		x.Required = append(x.Required, gym.Fact{Part: part, Text: fmt.Sprintf(format, args...), Met: met})
	}
	last := e.Last.(*world)
	for i := range s.want {
		w := &s.want[i]
		if w.ino == nil {
			say("goal", w.met(last.now), "%q is gone", w.name)
		} else {
			say("goal", w.met(last.now), "%q holds what it should", w.name)
		}
	}
	say("path", shown(e, s), "the refs that must be cited had been shown")
	say("finish", answered(e, s), "the answer is %s, %s, with the refs %s", e.Pack.Types[typeOutcome].Enum[s.outcome], codes[s.code], refs(e.Pack, s.cite))
	more := 0
	for _, c := range last.changes {
		switch {
		case s.may[c.name]:
		case len(x.Unrequested) == mostTold:
			more++
		case c.was == nil:
			x.Unrequested = append(x.Unrequested, fmt.Sprintf("made %q", c.name))
		case c.is == nil:
			x.Unrequested = append(x.Unrequested, fmt.Sprintf("removed %q", c.name))
		case c.was.mode != c.is.mode:
			x.Unrequested = append(x.Unrequested, fmt.Sprintf("changed the mode of %q from %v to %v", c.name, c.was.mode, c.is.mode))
		default:
			x.Unrequested = append(x.Unrequested, fmt.Sprintf("changed %q", c.name))
		}
	}
	if more > 0 {
		x.Unrequested = append(x.Unrequested, fmt.Sprintf("and %d more", more))
	}
	return x
}

func refs(p *gym.Pack, list []uint64) (out []string) {
	for _, code := range list {
		out = append(out, p.Spell(gym.Value{Type: typeRef, Bits: code}))
	}
	return out
}

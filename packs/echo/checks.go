package echo

import (
	"slices"

	"provegym/gym"
)

// check is what the reward is made of: goals and path and collateral and commit. Each part is a pure predicate over the first
// world, the last world and the log, and each can be false; none looks at tool names, so that every correct route passes.
func check(s spec) gym.Check {
	c := gym.Check{Commit: commit(s)}
	if s.locked {
		// Changing nothing is right here, so the goal is a positive act: an answer that only the required read reveals.
		c.Goals = []gym.Predicate{{Name: "answered", Holds: func(e *gym.Evidence) bool { return e.Finish != nil }}}
		c.Path = []gym.Predicate{{Name: "source read", Holds: saw(s.source, fieldRev)}, {Name: "lock read", Holds: saw(s.target, fieldLock)}}
		c.Collateral = gym.Predicate{Name: "nothing written", Holds: func(e *gym.Evidence) bool { return len(e.Log.Writes()) == 0 }}
		return c
	}
	c.Goals = []gym.Predicate{{Name: "word copied", Holds: func(e *gym.Evidence) bool {
		notes := &e.Last.(*world).notes
		return notes.At(s.target).Word == notes.At(s.source).Word
	}}}
	c.Path = []gym.Predicate{{Name: "both read before the write", Holds: func(e *gym.Evidence) bool { return readFirst(e, s) }}}
	c.Collateral = gym.Predicate{Name: "only the target written", Holds: func(e *gym.Evidence) bool {
		word, written := e.First.(*world).notes.At(s.source).Word, 0
		for _, w := range e.Log.Writes() { // every write counts, those taken back or repaired too
			if w.Entity != entity(s.target) || w.Field == fieldWord && w.New != int64(word) {
				return false
			}
			if w.Field == fieldWord {
				written++
			}
		}
		return written <= 1
	}}
	return c
}

// saw holds once a field of a note has been shown at its first version.
func saw(row int, field uint8) func(e *gym.Evidence) bool {
	return func(e *gym.Evidence) bool { return e.Log.Saw(entity(row), field, 1, e.Log.Len()) }
}

// readFirst reports whether every write came after both notes were seen as they then were. Without a write it is false: a
// predicate over an empty set must not hold.
func readFirst(e *gym.Evidence, s spec) bool {
	wrote := false
	for i := range e.Log.Len() {
		for _, w := range e.Log.At(i).Writes {
			if w.Field != fieldWord {
				continue
			}
			wrote = true
			if !e.Log.Saw(entity(s.source), fieldWord, 1, i) || !e.Log.Saw(w.Entity, fieldRev, w.Ver-1, i) {
				return false
			}
		}
	}
	return wrote
}

// commit holds for a finish with the right outcome, the right code, and the present revisions of both notes as evidence: only
// who has read them can name them.
func commit(s spec) gym.Predicate {
	return gym.Predicate{Name: "right answer", Holds: func(e *gym.Evidence) bool {
		if e.Finish == nil {
			return false
		}
		notes := &e.Last.(*world).notes
		source, target := notes.At(s.source), notes.At(s.target)
		evidence := e.Finish.Arg(argEvidence)
		return e.Finish.Arg(argOutcome)[0].Bits == uint64(min(target.Lock, 1)) &&
			e.Finish.Arg(argCode)[0].Bits == uint64(target.Lock) &&
			len(evidence) == 2 && slices.Contains(evidence, revValue(source)) && slices.Contains(evidence, revValue(target))
	}}
}

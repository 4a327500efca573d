package echo

import (
	"fmt"

	"provegym/gym"
)

// longestPlan is the number of calls of the longest plan over all branches: find, read, find, read, write, finish.
const longestPlan = 6

// spec is what the task is about: the instruction, the check and the plan all come from it, so they cannot disagree.
type spec struct {
	source, target int // rows
	locked         bool
}

// frames are ways to put the instruction: [1] is the target's title, [2] the source's.
var frames = []string{
	"Set the word of the note %[1]q to the word of the note %[2]q. If the note is locked, refuse and give the lock as code.",
	"The note %[1]q shall say what the note %[2]q says. Should a lock forbid it, finish with refused and the lock as code.",
	"Copy a word: into the note %[1]q, from the note %[2]q. A locked note stays as it is: then refuse with its lock.",
}

// build makes a task. Each purpose draws from a stream of its own: "task" for what every task has, "ids" and "revs" for codes,
// and one stream for each dial that draws anything.
func build(task gym.Task) (*gym.Built, error) {
	key := task.Key()
	draw := key.Sub("task").Stream()
	source := note{Title: uint16(draw.IntN(64)), Word: uint8(draw.IntN(len(words)))}
	target := note{Word: uint8((int(source.Word) + 1 + draw.IntN(len(words)-1)) % len(words))}
	// Another colour and another paper: the two must not be look-alikes of each other.
	target.Title = (source.Title/8+1+uint16(draw.IntN(7)))%8*8 + (source.Title+1+uint16(draw.IntN(7)))%8
	frame := frames[draw.IntN(len(frames))]
	lock, locked := 1+draw.IntN(len(locks)-1), draw.IntN(2) == 1
	s := spec{locked: locked && task.Family == "guarded"}
	if s.locked {
		target.Lock = uint8(lock)
	}
	ids, revs := key.Sub("ids"), key.Sub("revs")
	source.ID, source.Rev = code(ids.At(0).Seed()), code(revs.At(0).Seed())
	target.ID, target.Rev = code(ids.At(1).Seed()), code(revs.At(1).Seed())

	notes := []note{source, target}
	alike := key.Sub("look_alikes").Stream()
	for i := range task.Int("look_alikes") {
		n := note{Word: uint8(alike.IntN(len(words))), ID: code(ids.At(uint64(2 + i)).Seed()), Rev: code(revs.At(uint64(2 + i)).Seed())}
		n.Title = lookAlike(&alike, notes, notes[i%2].Title)
		notes = append(notes, n)
	}
	// The order of the rows is the order of results: it must not tell which note matters.
	order := key.Sub("order").Stream()
	order.Shuffle(len(notes), func(i, j int) { notes[i], notes[j] = notes[j], notes[i] })
	for row := range notes {
		switch notes[row].ID {
		case source.ID:
			s.source = row
		case target.ID:
			s.target = row
		}
	}

	template, mechanism, graph := "write", "write", "find>read;find>read;read>write;write>finish"
	if s.locked {
		template, mechanism, graph = "refuse", "lock", "find>read;find>read;read>finish"
	}
	d := gym.NewDigester("graph")
	d.Text(graph)
	b := &gym.Built{
		World:       &world{notes: gym.NewTable(notes), revs: key.Sub("new revs").Stream()},
		Instruction: fmt.Sprintf(frame, titleOf(target.Title), titleOf(source.Title)),
		// Pins are the instruction's parameters: the structured view gives them the first slots.
		Pins:       []gym.Pin{{Role: "target", Value: titleValue(target.Title)}, {Role: "source", Value: titleValue(source.Title)}},
		Check:      check(s),
		Plan:       plan(s),
		Spec:       s,
		Template:   template,
		Graph:      d.Sum().String(),
		Mechanisms: []string{mechanism},
	}
	b.Goal[0] = 1 // what the instruction asks, as numbers; the same for all tasks here
	for i := range tools {
		b.Tools = b.Tools.With(i)
	}
	return b, nil
}

// lookAlike draws a title that shares a word with like and that no note has yet.
func lookAlike(s *gym.Stream, notes []note, like uint16) uint16 {
	for {
		t := like/8*8 + uint16(s.IntN(8))
		if s.IntN(2) == 1 {
			t = uint16(s.IntN(8))*8 + like%8
		}
		taken := false
		for i := range notes {
			taken = taken || notes[i].Title == t
		}
		if !taken {
			return t
		}
	}
}

// plan is the oracle's. It is also what the general controls are made of: After says which steps may be permuted, Needed which
// must not be left out. Finding a note is not Needed: who knows its id need not look it up (the audit sees who guessed).
func plan(s spec) []gym.PlanStep {
	find := func(row int) func(e *gym.Evidence) gym.Call {
		return func(e *gym.Evidence) gym.Call {
			return e.Pack.NewCall("find_notes", map[string][]gym.Value{"title": {titleValue(e.Last.(*world).notes.At(row).Title)}})
		}
	}
	read := func(row int) func(e *gym.Evidence) gym.Call {
		return func(e *gym.Evidence) gym.Call {
			return e.Pack.NewCall("read_note", map[string][]gym.Value{"note": {idValue(e.Last.(*world).notes.At(row))}})
		}
	}
	write := func(e *gym.Evidence) gym.Call {
		w := e.Last.(*world)
		return e.Pack.NewCall("write_note", map[string][]gym.Value{
			"note":   {idValue(w.notes.At(s.target))},
			"word":   {wordValue(w.notes.At(s.source).Word)},
			"if_rev": {revValue(w.notes.At(s.target))},
		})
	}
	finish := func(e *gym.Evidence) gym.Call {
		w := e.Last.(*world)
		source, target := w.notes.At(s.source), w.notes.At(s.target)
		return e.Pack.NewCall("finish", map[string][]gym.Value{
			"outcome":  {{Type: typeOutcome, Bits: uint64(min(target.Lock, 1))}},
			"code":     {{Type: typeCode, Bits: uint64(target.Lock)}},
			"evidence": {revValue(source), revValue(target)},
		})
	}
	steps := []gym.PlanStep{
		{Name: "find source", Kind: gym.ReadStep, Make: find(s.source)},
		{Name: "read source", Kind: gym.ReadStep, After: []int{0}, Needed: true, Make: read(s.source)},
		{Name: "find target", Kind: gym.ReadStep, Make: find(s.target)},
		{Name: "read target", Kind: gym.ReadStep, After: []int{2}, Needed: true, Make: read(s.target)},
	}
	if s.locked {
		return append(steps, gym.PlanStep{Name: "refuse", Kind: gym.FinishStep, After: []int{1, 3}, Needed: true, Make: finish})
	}
	return append(steps,
		gym.PlanStep{Name: "write target", Kind: gym.WriteStep, After: []int{1, 3}, Needed: true, Make: write},
		gym.PlanStep{Name: "finish", Kind: gym.FinishStep, After: []int{4}, Needed: true, Make: finish})
}

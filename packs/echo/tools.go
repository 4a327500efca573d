package echo

import "provegym/gym"

// tools are the agent's hands. A description says what the tool does and returns; it never says what the task wants.
var tools = []gym.Tool{
	{
		Name: "find_notes",
		Doc:  "Lists the notes whose title shares a word with the one given.",
		Params: []gym.Param{
			{Name: "title", Doc: "the title to look for", Types: []gym.TypeID{typeTitle}},
		},
		Run: findNotes,
	},
	{
		Name: "read_note",
		Doc:  "Shows a note: its title, its word, its lock and its present revision.",
		Params: []gym.Param{
			{Name: "note", Doc: "the note's id", Types: []gym.TypeID{typeNote}},
		},
		Run: readNote,
	},
	{
		Name: "write_note",
		Doc:  "Sets the word of a note that is not locked. Needs the note's present revision and returns the new one.",
		Params: []gym.Param{
			{Name: "note", Doc: "the note's id", Types: []gym.TypeID{typeNote}},
			{Name: "word", Doc: "the new word", Types: []gym.TypeID{typeWord}},
			{Name: "if_rev", Doc: "the revision that you have read", Types: []gym.TypeID{typeRev}},
		},
		Writes: true,
		Run:    writeNote,
	},
	{
		Name: "finish",
		Doc:  "Ends the task and commits your answer. Nothing else is judged.",
		Params: []gym.Param{
			{Name: "outcome", Doc: "done, or refused if the notes forbid it", Types: []gym.TypeID{typeOutcome}},
			{Name: "code", Doc: "copied, or the lock that forbids it", Types: []gym.TypeID{typeCode}},
			{Name: "evidence", Doc: "the present revisions of both notes", Types: []gym.TypeID{typeRev}, Optional: true, List: true},
		},
		Finish: true,
		Run:    finish,
	},
}

// The arguments by number, in the order of Params.
const (
	argTitle    = 0
	argNote     = 0
	argWord     = 1
	argIfRev    = 2
	argOutcome  = 0
	argCode     = 1
	argEvidence = 2
)

func findNotes(t *gym.Turn) error {
	w := t.World.(*world)
	want, _ := t.One(argTitle)
	key := titleCode(want.Text)
	if key < 0 {
		return gym.Refuse("not_found", "no note has such a title")
	}
	found := 0
	t.List("notes")
	for row := range w.notes.Len() {
		n := w.notes.At(row)
		if !shareWord(n.Title, uint16(key)) {
			continue
		}
		found++
		// What is shown is logged as read, with the version: checks speak of facts observed at a version.
		t.Read(entity(row), fieldTitle, w.notes.Ver(row))
		t.Record("", idValue(n))
		t.Show("title", titleValue(n.Title))
		t.End()
	}
	t.EndList()
	t.Int("count", int64(found))
	return nil
}

func titleCode(text string) int {
	for i := range len(colours) * len(papers) {
		if titleOf(uint16(i)) == text {
			return i
		}
	}
	return -1
}

func readNote(t *gym.Turn) error {
	w := t.World.(*world)
	id, _ := t.One(argNote)
	row := w.find(id)
	if row < 0 {
		return gym.Refuse("not_found", "there is no such note")
	}
	n, ver := w.notes.At(row), w.notes.Ver(row)
	for _, f := range []uint8{fieldTitle, fieldWord, fieldLock, fieldRev} {
		t.Read(entity(row), f, ver)
	}
	t.Record("note", idValue(n))
	t.Show("title", titleValue(n.Title))
	t.Show("word", wordValue(n.Word))
	t.Show("lock", gym.Value{Type: typeLock, Bits: uint64(n.Lock)})
	t.Show("rev", revValue(n))
	t.End()
	return nil
}

// writeNote refuses before it touches anything: a refusal changes nothing. Its texts tell what the call did wrong, never what
// would have been right.
func writeNote(t *gym.Turn) error {
	w := t.World.(*world)
	id, _ := t.One(argNote)
	word, _ := t.One(argWord)
	rev, _ := t.One(argIfRev)
	row := w.find(id)
	switch {
	case row < 0:
		return gym.Refuse("not_found", "there is no such note")
	case w.notes.At(row).Rev != rev.Bits:
		return gym.Refuse("stale_rev", "if_rev is not the note's present revision")
	case w.notes.At(row).Lock != 0:
		return gym.Refuse("locked", "the note is locked")
	}
	n := w.notes.Edit(row)
	old := *n
	n.Word, n.Rev = uint8(word.Bits), code(w.revs.Uint64())
	ver := w.notes.Ver(row)
	t.Write(entity(row), fieldWord, ver, int64(old.Word), int64(n.Word))
	t.Write(entity(row), fieldRev, ver, int64(old.Rev), int64(n.Rev))
	t.Read(entity(row), fieldRev, ver)
	t.Record("note", idValue(n))
	t.Show("rev", revValue(n))
	t.End()
	return nil
}

// finish commits whatever it is given and says nothing about it.
func finish(t *gym.Turn) error {
	t.Bool("committed", true)
	return nil
}

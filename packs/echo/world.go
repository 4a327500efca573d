package echo

import "provegym/gym"

// note is one row. Rows are flat: no pointers, strings or slices, so that copying the table is copying the world.
type note struct {
	ID    uint64 // the 40-bit code of its opaque id
	Rev   uint64 // the 40-bit code of its present state
	Title uint16 // see titleOf
	Word  uint8
	Lock  uint8
}

// Fields of a note, as the call log names them.
const (
	fieldTitle uint8 = iota
	fieldWord
	fieldLock
	fieldRev
)

// kindNote is the only kind of entity; 0 would be none.
const kindNote uint8 = 1

// world is everything that a tool may change, the stream that it draws from included.
type world struct {
	notes gym.Table[note]
	revs  gym.Stream // codes of revisions to come
}

func entity(row int) gym.Entity { return gym.Entity{Kind: kindNote, Row: uint32(row)} }

// Clone, CopyFrom and AppendDigest each have one line a field; forgetting one is what packtest looks for.
func (w *world) Clone() gym.World { return &world{notes: w.notes.Clone(), revs: w.revs} }

func (w *world) CopyFrom(src gym.World) {
	s := src.(*world)
	w.notes.CopyFrom(&s.notes)
	w.revs = s.revs
}

func (w *world) AppendDigest(d *gym.Digester) {
	w.notes.AppendDigest(d)
	w.revs.AppendState(d)
}

// find returns the row of the note with an id, or -1.
func (w *world) find(id gym.Value) int {
	for i := range w.notes.Len() {
		if w.notes.At(i).ID == id.Bits {
			return i
		}
	}
	return -1
}

// code returns 40 random bits, the size of an opaque value.
func code(bits uint64) uint64 { return bits >> 24 }

// Titles have two words; look-alikes share one of them.
var (
	colours = []string{"Red", "Blue", "Green", "Black", "White", "Grey", "Brown", "Pink"}
	papers  = []string{"ledger", "letter", "memo", "invoice", "receipt", "report", "notice", "permit"}
)

func titleOf(t uint16) string { return colours[t/8] + " " + papers[t%8] }

func shareWord(a, b uint16) bool { return a/8 == b/8 || a%8 == b%8 }

func titleValue(t uint16) gym.Value { return gym.Value{Type: typeTitle, Text: titleOf(t)} }

func idValue(n *note) gym.Value { return gym.Value{Type: typeNote, Bits: n.ID} }

func revValue(n *note) gym.Value { return gym.Value{Type: typeRev, Bits: n.Rev} }

func wordValue(w uint8) gym.Value { return gym.Value{Type: typeWord, Bits: uint64(w)} }

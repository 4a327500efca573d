package terminal

import (
	"hash/fnv"
	"strings"

	"provegym/gym"
)

// world is all that an episode works on: files, as data. A command runs in a box that is given these files, and what it leaves
// there, read by descriptor once every process is dead, is the world from then on. So a snapshot of a world is a pointer, forks
// go apart by themselves, and no episode depends on a box that lives on.
type world struct {
	now     *tree
	seal    *seal    // of the box that has these files already; nil if none has
	changes []change // of every name outside the scratch directories, in order, those that were taken back among them
}

// change is one name that a call left otherwise than it found it.
type change struct {
	name    string
	was, is *inode // nil: not there
}

func (w *world) Clone() gym.World {
	return &world{w.now, w.seal, append([]change(nil), w.changes...)}
}

func (w *world) CopyFrom(src gym.World) {
	s := src.(*world)
	w.now, w.seal, w.changes = s.now, s.seal, append(w.changes[:0], s.changes...)
}

func (w *world) AppendDigest(d *gym.Digester) {
	w.now.appendDigest(d)
	d.Int(int64(len(w.changes)))
	for _, c := range w.changes {
		d.Text(c.name)
		for _, ino := range [2]*inode{c.was, c.is} {
			if ino == nil {
				d.Int(0)
				continue
			}
			sum := ino.sum()
			d.Bytes(sum[:])
		}
	}
}

// roots are the directories that a box may write, in order. The first two are for scratch: nothing there is asked for, or judged.
var roots = []string{"/dev/shm", "/tmp", home}

const home = "/work"

// scratch says that a name is nobody's business.
func scratch(name string) bool {
	return !strings.HasPrefix(name, home+"/") && name != home
}

// Kinds of entities and fields, as the call log names them. Rows are hashes of names: whoever judges reads world.changes.
const (
	kindFile uint8 = 1

	fieldContent uint8 = iota
	fieldMode
	fieldThere
)

func entity(name string) gym.Entity {
	h := fnv.New32a()
	h.Write([]byte(name))
	return gym.Entity{Kind: kindFile, Row: h.Sum32()}
}

// become takes a tree as the present one and logs what is new about it.
func (w *world) become(t *gym.Turn, now *tree) {
	if now == w.now {
		return
	}
	compare(w.now, now, func(name string, was, is *inode) {
		if scratch(name) {
			return
		}
		w.changes = append(w.changes, change{name, was, is})
		field := fieldContent
		switch {
		case was == nil || is == nil:
			field = fieldThere
		case was.mode != is.mode:
			field = fieldMode
		}
		t.Write(entity(name), field, uint32(len(w.changes)+1), mark(was), mark(is))
	})
	w.now = now
}

// mark stands for an inode in the call log; 0 for none.
func mark(ino *inode) int64 {
	if ino == nil {
		return 0
	}
	sum := ino.sum()
	var n int64
	for _, b := range sum[:8] {
		n = n<<8 | int64(b)
	}
	return n | 1
}

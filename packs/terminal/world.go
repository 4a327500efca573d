package terminal

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
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

// kindFile is the kind of all entities, as the call log names them. Their rows are hashes of names: whoever judges reads world.changes.
const kindFile uint8 = 1

// Fields of a file in the call log.
const (
	fieldContent uint8 = iota // what it is and holds
	fieldMode
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
		for field, mark := range marks {
			if old, now := mark(was), mark(is); old != now {
				t.Write(entity(name), uint8(field), uint32(len(w.changes)+1), old, now)
			}
		}
	})
	w.now = now
}

// marks stand for the fields of an inode in the call log, by number; 0 where there is none.
var marks = [...]func(ino *inode) int64{fieldContent: contentMark, fieldMode: modeMark}

func contentMark(ino *inode) int64 {
	if ino == nil {
		return 0
	}
	h := sha256.New()
	fmt.Fprintf(h, "%o %q ", ino.mode.Type(), ino.link)
	h.Write(ino.data)
	return int64(binary.BigEndian.Uint64(h.Sum(nil)) | 1)
}

func modeMark(ino *inode) int64 {
	if ino == nil {
		return 0
	}
	return int64(ino.mode) + 1
}

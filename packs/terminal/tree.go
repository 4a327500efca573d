package terminal

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"provegym/gym"
	"provegym/sandbox"
)

// inode is one file, directory, link or other thing as data. It never changes once it is in a tree, and entries that are hard
// links of one another share it.
type inode struct {
	mode  fs.FileMode
	data  []byte // of a regular file
	link  string // of a symbolic link
	mtime int64  // nanoseconds since 1970; no part of digests or checks
	many  bool   // it has, or had, more than one name

	once sync.Once
	hash [16]byte
}

// sum covers mode and content.
func (n *inode) sum() [16]byte {
	n.once.Do(func() {
		h := sha256.New()
		var mode [4]byte
		binary.BigEndian.PutUint32(mode[:], uint32(n.mode))
		h.Write(mode[:])
		h.Write(n.data)
		h.Write([]byte(n.link))
		copy(n.hash[:], h.Sum(nil))
	})
	return n.hash
}

// same reports that two are alike in all but time. nil is what is not there.
func same(a, b *inode) bool {
	return a == b || a != nil && b != nil && a.mode == b.mode && a.link == b.link && len(a.data) == len(b.data) && a.sum() == b.sum()
}

// entry is one name of an inode.
type entry struct {
	name string // absolute, as in the box
	ino  *inode
}

// tree is all of a box's files. It never changes: what a command does makes another one, which shares what stayed.
type tree struct {
	list []entry // in the order of comparePaths

	once  sync.Once
	index map[string]*inode
}

// comparePaths orders names by their parts: a directory stands before what it holds, and that before the next name.
func comparePaths(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if x, y := a[i], b[i]; x != y {
			if x == '/' {
				return -1
			}
			if y == '/' {
				return 1
			}
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(a), len(b))
}

func newTree(list []entry) *tree {
	slices.SortFunc(list, func(a, b entry) int { return comparePaths(a.name, b.name) })
	return &tree{list: list}
}

// at returns what a name stands for, nil if nothing.
func (t *tree) at(name string) *inode {
	t.once.Do(func() {
		t.index = make(map[string]*inode, len(t.list))
		for _, e := range t.list {
			t.index[e.name] = e.ino
		}
	})
	return t.index[name]
}

// holds returns the entries of a directory.
func (t *tree) holds(dir string) []entry {
	from, _ := slices.BinarySearchFunc(t.list, dir, func(e entry, dir string) int { return comparePaths(e.name, dir) })
	var out []entry
	for i := from + 1; i < len(t.list) && strings.HasPrefix(t.list[i].name, dir+"/"); i++ {
		if !strings.Contains(t.list[i].name[len(dir)+1:], "/") {
			out = append(out, t.list[i])
		}
	}
	return out
}

// with returns a tree in which a name, and whatever is the same file, stands for another inode.
func (t *tree) with(name string, ino *inode) *tree {
	list, was := slices.Clone(t.list), t.at(name)
	if was == nil {
		at, _ := slices.BinarySearchFunc(list, name, func(e entry, name string) int { return comparePaths(e.name, name) })
		return &tree{list: slices.Insert(list, at, entry{name, ino})}
	}
	for i := range list {
		if list[i].ino == was {
			list[i].ino = ino
		}
	}
	return &tree{list: list}
}

// bytes is what all regular files hold together.
func (t *tree) bytes() (n int64) {
	for _, e := range t.list {
		n += int64(len(e.ino.data))
	}
	return n
}

// compare calls each for every name that differs, in order.
func compare(a, b *tree, each func(name string, was, is *inode)) {
	for i, k := 0, 0; i < len(a.list) || k < len(b.list); {
		switch order := next(a, b, i, k); {
		case order < 0:
			each(a.list[i].name, a.list[i].ino, nil)
			i++
		case order > 0:
			each(b.list[k].name, nil, b.list[k].ino)
			k++
		default:
			if !same(a.list[i].ino, b.list[k].ino) {
				each(a.list[i].name, a.list[i].ino, b.list[k].ino)
			}
			i, k = i+1, k+1
		}
	}
}

func next(a, b *tree, i, k int) int {
	switch {
	case i == len(a.list):
		return 1
	case k == len(b.list):
		return -1
	}
	return comparePaths(a.list[i].name, b.list[k].name)
}

// appendDigest adds names, modes, contents and which names are the same file.
func (t *tree) appendDigest(d *gym.Digester) {
	d.Int(int64(len(t.list)))
	first := map[*inode]int{}
	for i, e := range t.list {
		d.Text(e.name)
		sum := e.ino.sum()
		d.Bytes(sum[:])
		if e.ino.many {
			if _, ok := first[e.ino]; !ok {
				first[e.ino] = i
			}
			d.Int(int64(first[e.ino]))
		}
	}
}

// files returns entries as the sandbox takes them. Those that only is for keep nothing of other names.
func files(list []entry) []sandbox.File {
	out := make([]sandbox.File, len(list))
	first := map[*inode]string{}
	for i, e := range list {
		f := &out[i]
		f.Name, f.Mode, f.Link, f.Data, f.ModTime = e.name, e.ino.mode, e.ino.link, e.ino.data, time.Unix(0, e.ino.mtime)
		if e.ino.many && !e.ino.mode.IsDir() {
			if f.Same = first[e.ino]; f.Same == "" {
				first[e.ino] = e.name
			}
		}
	}
	return out
}

// reading makes a tree of what Load tells, out of an older one where that still holds.
type reading struct {
	old    *tree
	list   []entry
	used   map[*inode]bool   // of those with many names
	linked map[string]*inode // first names of those with many names now
	moved  bool              // something is not what it was, its time at least
}

func (r *reading) add(f *sandbox.File) error {
	if f.Same != "" {
		ino := r.linked[f.Same]
		r.moved = r.moved || r.old.at(f.Name) != ino
		r.list = append(r.list, entry{f.Name, ino})
		return nil
	}
	many := f.Links > 1 && !f.Mode.IsDir()
	ino := r.old.at(f.Name)
	if ino == nil || ino.many != many || r.used[ino] || ino.mode != f.Mode || ino.link != f.Link || ino.mtime != f.ModTime.UnixNano() ||
		string(ino.data) != string(f.Data) {
		ino = &inode{mode: f.Mode, link: f.Link, mtime: f.ModTime.UnixNano(), data: slices.Clone(f.Data), many: many}
		r.moved = true
	}
	if many {
		if r.used == nil {
			r.used, r.linked = map[*inode]bool{}, map[string]*inode{}
		}
		r.used[ino], r.linked[f.Name] = true, ino
	}
	r.list = append(r.list, entry{f.Name, ino})
	return nil
}

// tree returns the old tree itself if nothing is new.
func (r *reading) tree() *tree {
	if !r.moved && len(r.list) == len(r.old.list) {
		return r.old
	}
	return &tree{list: r.list}
}

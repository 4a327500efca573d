package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"time"
)

var treeRoots = []string{"/work", "/tmp", "/dev/shm"}

var treeLimits = TreeLimits{Entries: 500, Bytes: 1 << 20, Depth: 12, Name: 900}

func loaded(t *testing.T, b *Box) []File {
	t.Helper()
	files, err := loadTree(b, treeLimits)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func loadTree(b *Box, most TreeLimits) (files []File, err error) {
	err = b.Load(most, func(f *File) error {
		kept := *f
		kept.Data = bytes.Clone(f.Data)
		files = append(files, kept)
		return nil
	}, treeRoots...)
	return files, err
}

// What a command has made in one box is the same in another, and that one's command sees it so.
func TestTree_isCopied(t *testing.T) {
	s := open(t, Options{})
	if s.Capabilities().Level == LevelPlain {
		t.Skip("this level has no disk of its own: see make doctor")
	}
	from, to := newBox(t, s, Spec{}), newBox(t, s, Spec{})
	made := run(t, from, sh(`
		mkdir -p a/b/c /tmp/x 'with space' && echo one >a/one && printf 'two\0\377' >a/b/two && ln a/one /tmp/x/same && ln -s ../none a/link
		mkfifo a/pipe; printf x >"$(printf 'odd\nname')"; chmod 400 a/b/two; chmod 0 a/one; touch -d 2001-02-03T04:05:06Z a/b/two a/b/c
		truncate -s 5000 /dev/shm/holes; mkdir shut && echo in >shut/in && chmod 500 shut && mkdir closed && echo in >closed/in && chmod 0 closed
		mkdir sticky && chmod 1777 sticky; echo x >setuid && chmod 6755 setuid; umask 077; echo x >closed0; chmod 777 closed0`))
	if !made.OK() {
		t.Fatal(&made, string(made.Stderr))
	}
	want := loaded(t, from)
	if err := to.Store(want); err != nil {
		t.Fatal(err)
	}
	got := loaded(t, to)
	if len(got) != len(want) {
		t.Fatalf("%d entries, not %d", len(got), len(want))
	}
	for i := range want {
		w, g := want[i], got[i]
		if w.Name != g.Name || w.Mode != g.Mode || w.Size != g.Size || w.Link != g.Link || w.Same != g.Same || !bytes.Equal(w.Data, g.Data) {
			t.Errorf("%q: got %+v\nwant %+v", w.Name, g, w)
		}
		if !w.ModTime.Equal(g.ModTime) && !slices.Contains(treeRoots, w.Name) {
			t.Errorf("%q is of %v, not of %v", w.Name, g.ModTime, w.ModTime)
		}
	}
	list := sh(`cd /; find work tmp dev/shm -mindepth 1 -printf '%p %M %s %n %l %T@\n' | LC_ALL=C sort; chmod 700 work/closed work/a/one; cat work/a/one work/closed/in`)
	a, b := run(t, from, list), run(t, to, list)
	if !a.OK() || !bytes.Equal(a.Stdout, b.Stdout) {
		t.Errorf("the boxes' commands see\n%s\nand\n%s%v", a.Stdout, b.Stdout, &a)
	}
}

func TestStore_overwritesAndRefuses(t *testing.T) {
	s := open(t, Options{})
	b := newBox(t, s, Spec{DiskBytes: 1 << 20})
	file := func(name, data string) []File {
		return []File{{Entry: Entry{Name: name, Mode: 0o640}, ModTime: time.Unix(1e9, 0), Data: []byte(data)}}
	}
	for _, data := range []string{"longer than", "short"} {
		if err := b.Store(file("/work/f", data)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := b.ReadFile("f", 100); err != nil || string(got) != "short" {
		t.Errorf("it holds %q, %v", got, err)
	}
	run(t, b, sh("ln -s / root; mkfifo pipe; mkdir dir"))
	for _, name := range []string{"/work/root/tmp/x", "/work/root", "/work/pipe", "/work/dir", "/etc/x", "/work/none/x", "/work/../etc/x"} {
		if err := b.Store(file(name, "x")); err == nil {
			t.Errorf("%s was stored", name)
		}
	}
	var at *fs.PathError
	if err := b.Store(file("/work/big", string(make([]byte, 2<<20)))); !errors.As(err, &at) {
		t.Errorf("a file larger than the disk gave %v", err)
	}
}

func TestLoad_limits(t *testing.T) {
	s := open(t, Options{})
	for name, script := range map[string]string{
		"entries": "i=0; while [ $i -lt 600 ]; do : >f$i; i=$((i+1)); done",
		"bytes":   "truncate -s 3M holes",
		"depth":   "i=0; while [ $i -lt 40 ]; do mkdir d; cd d; i=$((i+1)); done",
		"name":    "i=0; while [ $i -lt 8 ]; do mkdir " + fmt.Sprintf("%0200d", 0) + "; cd 0*; i=$((i+1)); done",
	} {
		b := newBox(t, s, Spec{DiskFiles: 2000})
		if end := run(t, b, sh(script)); !end.OK() {
			t.Fatal(name, &end)
		}
		if _, err := loadTree(b, treeLimits); !errors.Is(err, ErrTooBig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

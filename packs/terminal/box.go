package terminal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"provegym/gym"
	"provegym/sandbox"
)

// What a box may use. A command that hits a limit is ended, and says so; the files that it leaves behind must be such as can be
// kept as data, or all of it is undone.
var boxSpec = sandbox.Spec{
	WallTimeout:    10 * time.Second, // for who waits; a busy machine makes everybody wait
	CPUTime:        5 * time.Second,  // for who works
	MemoryBytes:    256 << 20,
	PidsMax:        32,
	DiskBytes:      48 << 20,
	DiskFiles:      12_000,
	OutputBytes:    4 << 10,
	OutputMaxBytes: 1 << 20,
}

var treeLimits = sandbox.TreeLimits{Entries: 10_000, Bytes: 24 << 20, Depth: 48, Name: 1500}

var commandEnv = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + home, "USER=agent", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TERM=dumb", "TZ=UTC"}

// options ask for what commands of unknown intent must be held by: their own files, no network, and a death that nothing outlives.
var options = sandbox.Options{Require: []string{"tree_death=enforced", "files=enforced", "network=enforced", "disk=enforced", "memory=polled"}}

// house is this process's sandbox. It is opened by the first task and stays: its zygote ends with the process.
var house struct {
	sync.Mutex
	sandbox *sandbox.Sandbox
}

// open returns the sandbox. It is an error, with what to do about it, where the machine does not offer one that holds.
func open() (*sandbox.Sandbox, error) {
	house.Lock()
	defer house.Unlock()
	if house.sandbox == nil {
		s, err := sandbox.Open(options)
		if err != nil {
			return nil, fmt.Errorf("terminal: %w: commands need a sandbox that it does not give (provegym doctor tells more): %w", gym.ErrHost, err)
		}
		house.sandbox = s
	}
	return house.sandbox, nil
}

// seal names the moment after one command: the box that ran it has the files that the world of that moment has. Two forks of a
// world have the same seal, and the first to go on gets the box.
type seal struct{ _ byte }

// body is a box and the files that are in it.
type body struct {
	box  *sandbox.Box
	has  *tree
	idle *time.Timer
}

// shelf keeps boxes between the commands of an episode for a moment, as a cache: a box that is not there is made anew, with the
// same files. Nothing tells the pack when an episode is given up, so that whatever stands there too long is thrown away.
var shelf = struct {
	sync.Mutex
	bodies map[*seal]*body
}{bodies: map[*seal]*body{}}

const (
	mostIdle = 64
	idleTime = 500 * time.Millisecond
)

func take(s *seal) *body {
	if s == nil {
		return nil
	}
	shelf.Lock()
	defer shelf.Unlock()
	b := shelf.bodies[s]
	if b == nil {
		return nil
	}
	delete(shelf.bodies, s)
	b.idle.Stop()
	return b
}

// put keeps a body and returns the seal to take it by, nil if there is no room.
func put(b *body) *seal {
	shelf.Lock()
	defer shelf.Unlock()
	if len(shelf.bodies) >= mostIdle {
		go b.box.Close()
		return nil
	}
	s := &seal{}
	shelf.bodies[s] = b
	b.idle = time.AfterFunc(idleTime, func() { drop(s) })
	return s
}

// drop throws a body away.
func drop(s *seal) {
	if b := take(s); b != nil {
		b.box.Close()
	}
}

func newBody(has *tree) (*body, error) {
	s, err := open()
	if err != nil {
		return nil, err
	}
	box, err := s.NewBox(boxSpec)
	if err != nil {
		return nil, err
	}
	if err := box.Store(files(has.list)); err != nil {
		box.Close()
		return nil, err
	}
	return &body{box: box, has: has}, nil
}

// bodyOf returns a box with the files of a world: its own one if that is still there, brought up to date.
func bodyOf(w *world) (*body, error) {
	b := take(w.seal)
	if b == nil {
		return newBody(w.now)
	}
	if b.has != w.now { // write_file has been used since
		var fresh []entry
		gone := false
		compare(b.has, w.now, func(name string, _, is *inode) {
			if is == nil || is.many {
				gone = true
				return
			}
			fresh = append(fresh, entry{name, is})
		})
		if gone || b.box.Store(files(fresh)) != nil {
			b.box.Close()
			return newBody(w.now)
		}
		b.has = w.now
	}
	return b, nil
}

// ran is what came of a command.
type ran struct {
	sandbox.Result
	now    *tree
	undone string // why the files are as they were before it; "" if they are not
	seal   *seal
}

// execute runs a shell command on the files of a world, which it does not touch. An error is the infrastructure's.
func execute(w *world, command string) (r ran, err error) {
	for try := 0; ; try++ {
		r, err = executeOnce(w, command)
		if !errors.Is(err, errBox) || try == 1 {
			return r, err
		}
		w = &world{now: w.now} // the box died, or could not be made: once more in a fresh one, with the files as they were
	}
}

var errBox = errors.New("terminal: the sandbox failed")

func executeOnce(w *world, command string) (r ran, err error) {
	b, err := bodyOf(w)
	if err != nil {
		return r, fmt.Errorf("%w: %w", errBox, err)
	}
	keep := false
	defer func() {
		if !keep {
			b.box.Close()
		}
	}()
	r.Result, err = b.box.Exec(context.Background(), sandbox.Command{Argv: []string{"/bin/sh", "-c", command}, Env: commandEnv, Dir: home})
	if err != nil {
		return r, fmt.Errorf("%w: %w", errBox, err)
	}
	if r.Infrastructure() {
		return r, fmt.Errorf("%w: %v", errBox, &r.Result)
	}
	read := reading{old: w.now, list: make([]entry, 0, len(w.now.list)+8)}
	switch err := b.box.Load(treeLimits, read.add, roots...); {
	case errors.Is(err, sandbox.ErrTooBig):
		_, r.undone, _ = strings.Cut(err.Error(), sandbox.ErrTooBig.Error()+": ")
		r.now = w.now
		return r, nil
	case err != nil:
		return r, fmt.Errorf("%w: read its files: %w", errBox, err)
	}
	r.now = read.tree()
	b.has = r.now
	r.seal = put(b)
	keep = true
	return r, nil
}

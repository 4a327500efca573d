package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	helper "provegym/sandbox/zygote"
)

// Options of a Sandbox. The zero value finds the best level that the host allows.
type Options struct {
	// ReadOnlyDirs are the host's directories that boxes see, at the same paths, with everything below them. nil means
	// /usr with its links (/bin, /lib, …), /etc/alternatives and the linker's cache; an empty list means none at all.
	ReadOnlyDirs []string

	Require    []string // "memory=enforced", "network", …: Open fails unless the host gives each; without a grade, enforced
	Level      Level    // "" the best; a lower one is for trying what a host without these rights would give
	CgroupBase string   // a v2 cgroup in which boxes get theirs; "" looks for a place, "none" uses no cgroup
	MaxBoxes   int      // open at a time; default 1024
	FirstUID   uint32   // root only: boxes get host user ids from here on, one each; default 2000000000, used by nobody
	HelperPath string   // a file to run as helper, for hosts whose policy grants rights by path; "" runs it from memory

	// Python, if not nil, makes this a sandbox of warm interpreters: its boxes run Python code by ExecPython, and nothing else.
	Python *Python
}

// MaxBoxes bounds Options.MaxBoxes.
const MaxBoxes = 4000

const defaultFirstUID = 2_000_000_000

// Sentinels, for callers' mistakes. Infrastructure that fails is a *StepError or a Result.
var (
	ErrClosed      = errors.New("sandbox: closed")
	ErrBusy        = errors.New("sandbox: the box runs a command; one at a time")
	ErrUnsupported = errors.New("sandbox: not possible here")
)

// Sandbox makes boxes. It is safe for concurrent use.
type Sandbox struct {
	options Options
	plan    zygotePlan // that the canary approved
	helper  *program
	cgroups *cgroups // nil: none
	null    *os.File
	caps    Capabilities

	mu     sync.Mutex
	zygote *zygote // nil before the first box after a death
	boxes  map[*Box]struct{}
	closed bool
}

// warmPath, for tests, is the file to use as a warm interpreter's library; "" takes the embedded one.
var warmPath string

// Open finds out what this host can enforce, by running a canary in a box on each level from the top, and starts the zygote. It
// takes some 20 ms, once a process.
//
// Errors: ErrInvalid for the options; ErrUnsupported when a requirement is not met or no level works, with what to do.
func Open(o Options) (*Sandbox, error) {
	var p problems
	checkDirs(o.ReadOnlyDirs, &p)
	if o.MaxBoxes < 0 || o.MaxBoxes > MaxBoxes {
		p.add("MaxBoxes is %d; it must be 0 (1024) or 1 to %d", o.MaxBoxes, MaxBoxes)
	}
	if o.Python != nil {
		o.Python = o.Python.check(&p)
	}
	required := parseRequirements(o.Require, &p)
	if !o.Level.known() {
		p.add("Level is %q; it must be empty, %q, %q, %q or %q", o.Level, LevelFull, LevelDelegated, LevelNamespaces, LevelPlain)
	}
	if err := p.err("options"); err != nil {
		return nil, err
	}
	def(&o.MaxBoxes, 1024)
	def(&o.FirstUID, defaultFirstUID)
	s := &Sandbox{options: o, boxes: map[*Box]struct{}{}}
	var err error
	if s.helper, err = openProgram(helper.HelperName(runtime.GOARCH), o.HelperPath); err != nil {
		return nil, err
	}
	if s.null, err = os.OpenFile("/dev/null", os.O_RDONLY, 0); err != nil {
		s.Close()
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if o.Python != nil {
		if s.plan.warmLib, err = openProgram(helper.WarmName(runtime.GOARCH), warmPath); err != nil {
			s.Close()
			return nil, err
		}
	}
	if err = s.climb(); err == nil {
		err = s.caps.require(required)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Capabilities says what this sandbox guarantees on this host.
func (s *Sandbox) Capabilities() Capabilities { return s.caps }

// current gives a live zygote, a new one if the last has died.
func (s *Sandbox) current() (*zygote, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if s.zygote != nil && s.zygote.alive() {
		return s.zygote, nil
	}
	if s.zygote != nil {
		s.zygote.close()
		s.zygote = nil
	}
	z, err := startZygote(&s.plan)
	if err != nil {
		return nil, err
	}
	s.zygote = z
	return z, nil
}

// Close ends every box and waits until no process, mount, cgroup or file of this sandbox is left. Boxes of a closed sandbox
// give ErrClosed.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	z := s.zygote
	s.zygote = nil
	open := make([]*Box, 0, len(s.boxes))
	for b := range s.boxes {
		open = append(open, b)
	}
	s.mu.Unlock()
	var errs []error
	if z != nil && !s.plan.plain {
		z.close() // takes all boxes along at once
		z = nil
	}
	for _, b := range open {
		errs = append(errs, b.Close())
	}
	if z != nil {
		z.close()
	}
	if s.cgroups != nil {
		s.cgroups.close()
	}
	if s.plan.warmLib != nil {
		s.plan.warmLib.close()
	}
	if s.helper != nil {
		s.helper.close()
	}
	if s.null != nil {
		s.null.Close()
	}
	return errors.Join(errs...)
}

// zygotePID is for tests.
func (s *Sandbox) zygotePID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.zygote == nil {
		return 0
	}
	return s.zygote.pid
}

// forget takes a closed box off the list.
func (s *Sandbox) forget(b *Box) {
	s.mu.Lock()
	delete(s.boxes, b)
	s.mu.Unlock()
}

// graceTime is how much later than init our own timer ends a command whose init does not answer.
const graceTime = 2 * time.Second

// kernelRelease gives uname -r.
func kernelRelease() string {
	var u unix.Utsname
	unix.Uname(&u)
	return unix.ByteSliceToString(u.Release[:])
}

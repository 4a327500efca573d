package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	helper "provegym/sandbox/zygote"
)

// startPatience bounds how long the helper may take for its start (a loaded machine needs some 50 ms), and a warm interpreter
// for its imports.
const startPatience = 60 * time.Second

// program is an executable that is at no path that others could change: a sealed file in memory.
type program struct {
	fd   int
	path string // that execve takes
	temp string // to be removed, where files in memory cannot be executed
}

// openProgram gives the helper or its library. With a path, that file is what execve takes, since the host's policy may go by
// paths; the canary, which landlock would keep from a file outside of the read-only directories, still runs from memory.
func openProgram(name, path string) (*program, error) {
	var data []byte
	var err error
	if path != "" {
		data, err = os.ReadFile(path)
	} else {
		data, err = helper.Program(name)
	}
	if err != nil {
		return nil, err
	}
	const mfdExec = 0x10 // since Linux 6.3; before it is the default
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|mfdExec)
	if err == unix.EINVAL {
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err == unix.EACCES { // vm.memfd_noexec=2
		return tempProgram(name, data)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	// High, where setting up descriptors 0 to 3 of a child cannot touch it.
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 20)
	unix.Close(fd)
	if err == nil {
		_, err = unix.Write(high, data)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(high), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		unix.Close(high)
		return nil, fmt.Errorf("sandbox: helper in memory: %w", err)
	}
	p := &program{fd: high, path: path}
	def(&p.path, fmt.Sprintf("/proc/self/fd/%d", high))
	return p, nil
}

func tempProgram(name string, data []byte) (*program, error) {
	f, err := os.CreateTemp("", "provegym-"+name+"-")
	if err != nil {
		return nil, err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o555), f.Close())
	fd := -1
	if err == nil {
		fd, err = unix.Open(f.Name(), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		os.Remove(f.Name())
		return nil, fmt.Errorf("sandbox: helper: %w", err)
	}
	return &program{fd: fd, path: f.Name(), temp: f.Name()}, nil
}

func (p *program) close() {
	unix.Close(p.fd)
	if p.temp != "" {
		os.Remove(p.temp)
	}
}

// zygotePlan is everything that a zygote is started with.
type zygotePlan struct {
	plain            bool // without namespaces
	slots            bool // a range of ids, one for each box
	uid, gid, ids    uint32
	zygoteNS, boxNS  uint64
	boxes            int
	dirs             []string
	base             []insn
	command          []insn // of boxes without loopback
	loopback         []insn // of boxes with it
	cgroupDirs       []string
	cgroup           int // v2: to start in; else -1
	trees            bool
	warm             *Python
	warmLib, program *program
}

// zygote is a running one.
type zygote struct {
	conn  *conn
	pidfd int
	pid   int
	flags uint32
	gone  chan struct{} // closed when it has died or was closed
	once  sync.Once
}

// allNamespaces is what zygote and boxes get. A command takes a cgroup namespace by itself, once it is in its cgroup.
const allNamespaces = uint64(unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWNET)

// startZygote runs the helper and waits until its zygote can make boxes.
//
// Errors: a *StepError for what the helper could not do.
func startZygote(p *zygotePlan) (*zygote, error) {
	var root rootPlan
	if !p.plain {
		first := 0
		if p.warm != nil {
			first = 1
		}
		r, err := planRoot(p.dirs, p.trees, first)
		if err != nil {
			return nil, err
		}
		root = *r
		if p.warm != nil {
			fd, err := unix.FcntlInt(uintptr(p.warmLib.fd), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				root.close()
				return nil, os.NewSyscallError("fcntl", err)
			}
			root.fds[0] = fd
		}
	}
	defer root.close()
	for _, dir := range p.cgroupDirs {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: dir, Err: err}
		}
		root.fds = append(root.fds, fd)
		root.op(opCgroupDir, uint32(len(root.fds)-1), "", "")
	}
	flags := uint32(0)
	if p.slots {
		flags |= startSlots
	}
	if p.plain {
		flags |= startPlain
	}
	if p.warm != nil {
		flags |= startWarm
		for _, a := range p.warm.argv() {
			root.op(opArg, 0, a, "")
		}
		for _, e := range p.warm.env() {
			root.op(opEnv, 0, e, "")
		}
	}
	var m message
	m.u32(kindStart, wireVersion, flags, p.uid, p.gid, p.ids, uint32(p.boxes), uint32(root.n), uint32(len(root.ops)),
		uint32(len(p.base)), uint32(len(p.command)), uint32(len(p.loopback)), uint32(os.Getpid()), 0)
	m.u64(p.zygoteNS, p.boxNS)
	m = append(m, root.ops...)
	for _, filter := range [][]insn{p.base, p.command, p.loopback} {
		for _, i := range filter {
			m = append(m, (*[8]byte)(unsafe.Pointer(&i))[:]...)
		}
	}
	if len(m) > messageMax || len(root.fds) > fdsMax {
		return nil, fmt.Errorf("sandbox: %w options: the root file system takes %d bytes and %d mounts to describe, the most is %d and %d",
			ErrInvalid, len(m), len(root.fds), messageMax, fdsMax)
	}

	c, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(theirs)
		c.close()
		return nil, &os.PathError{Op: "open", Path: "/dev/null", Err: err}
	}
	stderr, complaints := null, -1
	if p.warm != nil { // an interpreter may have something to say when it does not start
		if complaints, stderr, err = pipe(); err != nil {
			unix.Close(theirs)
			unix.Close(null)
			c.close()
			return nil, os.NewSyscallError("pipe", err)
		}
		defer unix.Close(complaints)
	}
	attr := &syscall.SysProcAttr{}
	if p.cgroup >= 0 {
		attr.UseCgroupFD, attr.CgroupFD = true, p.cgroup
	}
	pid, err := syscall.ForkExec(p.program.path, []string{"provegym-helper"}, &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: []uintptr{uintptr(null), uintptr(null), uintptr(stderr), uintptr(theirs)}, Sys: attr})
	unix.Close(null)
	unix.Close(theirs)
	if p.warm != nil {
		unix.Close(stderr)
	}
	if err != nil {
		c.close()
		err = &os.PathError{Op: "exec", Path: p.program.path, Err: err}
		if p.cgroup >= 0 { // one error number may mean either
			err = fmt.Errorf("%w; or a process of this one's cgroup may not be born in the chosen one, which for a plain user must lie in the "+
				"same delegated cgroup", err)
		}
		return nil, err
	}
	z := &zygote{conn: c, pidfd: -1, gone: make(chan struct{})}
	c.file.SetDeadline(time.Now().Add(startPatience))
	if err = c.send(m, root.fds...); err == nil {
		err = z.awaitStart(root.names)
	}
	// The helper's own end; the zygote is nobody's child in this process. Where SIGCHLD is ignored there is nothing to wait for.
	for {
		if _, werr := unix.Wait4(pid, nil, 0, nil); werr != unix.EINTR {
			break
		}
	}
	if err != nil {
		z.close()
		if p.warm != nil {
			text := make([]byte, 2000)
			if n, _ := unix.Read(complaints, text); n > 0 { // everybody who could write is dead
				err = fmt.Errorf("%w; %s said: %s", err, p.warm.Executable, strings.TrimSpace(string(text[:n])))
			}
		}
		return nil, err
	}
	c.file.SetDeadline(time.Time{})
	go z.watch()
	return z, nil
}

func (z *zygote) awaitStart(names []string) error {
	for {
		r, err := z.conn.receive()
		if err == errGone {
			return errors.New("sandbox: the helper ended during its start")
		}
		if err != nil {
			return fmt.Errorf("sandbox: start of the helper: %w", err)
		}
		switch r.kind {
		case kindStarted:
			if len(r.fds) != 1 {
				r.close()
				return errors.New("sandbox: the helper sent no pidfd")
			}
			z.pid, z.pidfd = int(r.u32(4)), r.fds[0]
		case kindReady:
			z.flags = r.u32(8)
			return nil
		case kindFailed:
			e := r.failure()
			if i := int(r.u32(12)); e.Step == steps[5] && i < len(names) {
				e.Detail = names[i]
			}
			return e
		default:
			r.close()
		}
	}
}

// watch waits for the zygote's end: it never speaks after its start.
func (z *zygote) watch() {
	for {
		r, err := z.conn.receive()
		if err != nil {
			break
		}
		r.close()
	}
	z.ended()
}

// ended notes that it is dead.
func (z *zygote) ended() { z.once.Do(func() { close(z.gone) }) }

func (z *zygote) alive() bool {
	select {
	case <-z.gone:
		return false
	default:
		return true
	}
}

// close ends the zygote with every box, and waits until all is gone.
func (z *zygote) close() {
	z.conn.close()
	if z.pidfd < 0 {
		return
	}
	if !awaitDeath(z.pidfd, 5*time.Second) {
		unix.PidfdSendSignal(z.pidfd, unix.SIGKILL, nil, 0)
		awaitDeath(z.pidfd, 5*time.Second)
	}
	// Ours only if this process is the host's init or a subreaper.
	unix.Waitid(unix.P_PIDFD, z.pidfd, nil, unix.WEXITED|unix.WNOHANG, nil)
	unix.Close(z.pidfd)
	z.pidfd = -1
}

// awaitDeath waits for the process behind a pidfd, and reports whether it is dead.
func awaitDeath(pidfd int, patience time.Duration) bool {
	for end := time.Now().Add(patience); ; {
		left := time.Until(end)
		if left < 0 {
			return false
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if n > 0 {
			return true
		}
		if err != nil && err != unix.EINTR {
			return false
		}
	}
}

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Box is an isolated process space. Commands run in it one after another and see each other's files, never each other's
// processes. Its methods are safe for concurrent use; Exec runs one command at a time.
type Box struct {
	s     *Sandbox
	z     *zygote
	spec  Spec // with defaults
	conn  *conn
	leaf  *leaf     // nil: no cgroup
	plain *plainBox // nil: in namespaces

	busy    sync.Mutex    // held while a command runs
	counted usage         // of the leaf, up to the last command's end; with busy
	recv    sync.Mutex    // held by who reads from conn
	ready   chan struct{} // closed when init has reported, or never will
	broken  error         // why it never will; written before ready is closed

	mu     sync.Mutex // protects what follows
	armed  *running   // an interpreter that waits for its code
	closed bool
	timed  bool // our own timer had to end init
	dir    int  // root of the box's disk, -1 before ready
	pidfd  int  // of init
	uid    int  // host user id of the commands
}

// NewBox makes a box. It returns before the box is up: what goes wrong there is told by the first use.
//
// Errors: ErrInvalid, ErrClosed, a *StepError, or an error of the host (descriptors used up, cgroup not writable).
func (s *Sandbox) NewBox(spec Spec) (*Box, error) {
	b, err := s.newBox(spec)
	if errors.Is(err, errZygoteDied) { // nobody had noticed yet; now a new one is started
		b, err = s.newBox(spec)
	}
	return b, err
}

var errZygoteDied = fmt.Errorf("sandbox: the zygote died: %w", syscall.EPIPE)

func (s *Sandbox) newBox(spec Spec) (*Box, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	z, err := s.current()
	if err != nil {
		return nil, err
	}
	b := &Box{s: s, z: z, spec: spec.withDefaults(), dir: -1, pidfd: -1, ready: make(chan struct{})}
	var theirs int
	if b.conn, theirs, err = socketPair(); err != nil {
		b.release()
		return nil, err
	}
	fds := []int{theirs}
	var m message
	flags, uid := uint32(0), uint32(0)
	if b.spec.Loopback {
		flags |= createLoopback
	}
	if s.plan.plain {
		if b.plain, err = newPlainBox(s); err != nil {
			unix.Close(theirs)
			b.release()
			return nil, err
		}
		fds = append(fds, b.plain.work)
		uid = b.plain.uid
	}
	m.u32(kindCreate, flags, uid, 0)
	m.u64(uint64(b.spec.DiskBytes), uint64(b.spec.DiskFiles))
	err = z.conn.send(m, fds...)
	unix.Close(theirs)
	if err != nil {
		b.release()
		if errno := syscall.Errno(0); !errors.As(err, &errno) { // gone, or closed by who has noticed that already
			z.ended()
			return nil, errZygoteDied
		}
		return nil, err
	}
	if s.cgroups != nil { // while init sets itself up: only commands need it
		if b.leaf, err = s.cgroups.newLeaf(&b.spec); err != nil {
			b.release()
			return nil, err
		}
	}
	s.mu.Lock()
	closed := s.closed
	s.boxes[b] = struct{}{}
	s.mu.Unlock()
	if closed {
		b.Close()
		return nil, ErrClosed
	}
	return b, nil
}

// release gives back what does not depend on init.
func (b *Box) release() error {
	var errs []error
	if b.conn != nil {
		b.conn.close()
	}
	if b.leaf != nil {
		errs = append(errs, b.leaf.close())
	}
	if b.plain != nil {
		errs = append(errs, b.plain.close())
	}
	return errors.Join(errs...)
}

// Ready waits until the box is up. It is not needed: every other method waits by itself.
//
// Errors: ErrClosed, a *StepError, or one that says that the box died.
func (b *Box) Ready() error {
	for {
		select {
		case <-b.ready:
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.closed {
				return ErrClosed
			}
			return b.broken
		default:
		}
		if b.recv.TryLock() {
			select {
			case <-b.ready: // since the look above; nothing is to be expected now
			default:
				b.await() // b.broken tells
			}
			b.recv.Unlock()
		} else { // whoever reads receives READY first
			<-b.ready
		}
	}
}

// await receives the next message but READY, which it keeps; before the box is ready it returns at READY, with nil. The
// caller holds recv.
func (b *Box) await() (*reply, error) {
	r, err := b.conn.receive()
	if err == nil && r.kind == kindFailed {
		err = r.failure()
	}
	select {
	case <-b.ready:
		return r, err
	default:
	}
	if err == nil && (r.kind != kindReady || len(r.fds) != 2) {
		r.close()
		err = errors.New("sandbox: the box did not report as it should")
	}
	if err != nil {
		if err == errGone {
			err = errDied
		}
		b.broken = err
		close(b.ready)
		return nil, err
	}
	b.mu.Lock()
	b.dir, b.pidfd = r.fds[0], r.fds[1]
	b.uid = os.Geteuid()
	if b.plain != nil && b.plain.uid != 0 {
		b.uid = int(b.plain.uid)
	} else if b.s.plan.slots {
		b.uid = int(b.s.plan.uid + r.u32(4))
	}
	closed := b.closed
	b.mu.Unlock()
	close(b.ready)
	if closed { // Close came while we waited, and did not see the descriptors
		b.closeFDs()
		return nil, ErrClosed
	}
	return nil, nil
}

var errDied = errors.New("sandbox: the box died")

// Exec runs a command to its end and returns when every process of it is dead. The end of the context kills it.
//
// Errors: ErrInvalid, ErrBusy, ErrClosed. All else is a Result, whose Reason tells the command's faults from the host's.
func (b *Box) Exec(ctx context.Context, c Command) (Result, error) {
	if b.s.options.Python != nil {
		return Result{}, fmt.Errorf("%w: this sandbox is of a warm interpreter, and runs Python code only (ExecPython)", ErrUnsupported)
	}
	r, err := b.start(c, execOptions{})
	if err != nil {
		return Result{}, err
	}
	return r.wait(ctx), nil
}

// Run runs one command in a fresh box.
func (s *Sandbox) Run(ctx context.Context, spec Spec, c Command) (Result, error) {
	b, err := s.NewBox(spec)
	if err != nil {
		return Result{}, err
	}
	defer b.Close()
	return b.Exec(ctx, c)
}

// execOptions are what warm boxes and the canary need beyond a command.
type execOptions struct {
	hold    bool // count time from GO
	program int  // > 0: execute this descriptor
}

// running is a command between start and end.
type running struct {
	b              *Box
	stdout, stderr *stream
	stdin          *os.File // still to be fed; nil: done
	input          []byte
	wall           time.Duration
	held           bool    // its time has not begun
	failed         *Result // start failed
}

// start sends a command to the box. On success the caller owns b.busy, which wait releases.
func (b *Box) start(c Command, o execOptions) (*running, error) {
	if err := c.Validate(b.spec); err != nil {
		return nil, err
	}
	idle := b.busy.TryLock()
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	switch {
	case closed && idle:
		b.busy.Unlock()
		return nil, ErrClosed
	case closed: // Close holds it
		return nil, ErrClosed
	case !idle:
		return nil, ErrBusy
	}
	r := &running{b: b, wall: c.WallTimeout, held: o.hold}
	def(&r.wall, b.spec.WallTimeout)
	fds, err := r.pipes(c, o)
	var m message
	if err == nil {
		m, fds = b.execMessage(c, o, r.wall, fds)
		err = b.conn.send(m, fds...)
	}
	for i, fd := range fds { // all were opened for this message, but for those that are kept
		if keep := i == 0 && fd == int(b.s.null.Fd()) || o.program > 0 && fd == o.program; !keep && !b.keeps(fd) {
			unix.Close(fd)
		}
	}
	if err != nil {
		r.closeStreams()
		// Whatever the box has said before it went away tells more than that it is gone.
		r.failed = &Result{Reason: BoxDied, ExitCode: -1}
		var errno syscall.Errno
		if err != errGone && errors.As(err, &errno) {
			r.failed = &Result{Reason: SetUp, ExitCode: -1, Step: "start the command", Errno: errno}
		}
	}
	return r, nil
}

// keeps says that a descriptor belongs to the box and outlives a command.
func (b *Box) keeps(fd int) bool {
	return b.leaf != nil && (fd == b.leaf.into || slices.Contains(b.leaf.procs, fd)) || b.plain != nil && fd == b.plain.rules
}

// pipes opens standard input, output and error, and gives the command's ends.
func (r *running) pipes(c Command, o execOptions) (fds []int, err error) {
	in := int(r.b.s.null.Fd())
	if len(c.Stdin) > 0 || o.hold {
		var ours int
		if in, ours, err = pipe(); err != nil {
			return nil, err
		}
		if err = unix.SetNonblock(ours, true); err != nil {
			unix.Close(ours)
			unix.Close(in)
			return nil, err
		}
		r.stdin = os.NewFile(uintptr(ours), "stdin")
		r.input = c.Stdin
	}
	fds = []int{in}
	for _, s := range []**stream{&r.stdout, &r.stderr} {
		ours, theirs, err := pipe()
		if err == nil {
			err = unix.SetNonblock(ours, true)
			fds = append(fds, theirs)
		}
		if err != nil {
			return fds, err
		}
		*s = newStream(os.NewFile(uintptr(ours), "output"), r.b)
	}
	return fds, nil
}

func pipe() (read, write int, err error) {
	var p [2]int
	if err = unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return -1, -1, err
	}
	return p[0], p[1], nil
}

func (r *running) closeStreams() {
	if r.stdin != nil {
		r.stdin.Close()
	}
	for _, s := range []*stream{r.stdout, r.stderr} {
		if s != nil {
			s.file.Close()
		}
	}
}

func (b *Box) execMessage(c Command, o execOptions, wall time.Duration, fds []int) (message, []int) {
	flags := uint32(0)
	if o.hold {
		flags |= execHold
	}
	if o.program > 0 {
		flags |= execProgram
		fds = append(fds, o.program)
	}
	if b.plain != nil && b.plain.rules >= 0 {
		flags |= execLandlock
		fds = append(fds, b.plain.rules)
	}
	var procs []int
	data := uint64(unix.RLIM_INFINITY)
	processes := uint64(b.spec.PidsMax) + 16 // the cgroup is to be hit first, as it can tell
	if b.leaf != nil {
		procs = b.leaf.procs
		if b.leaf.into >= 0 {
			flags |= execIntoCgroup
			fds = append(fds, b.leaf.into)
		}
		if fd := b.leaf.cpuFile(); fd >= 0 {
			flags |= execCPUFile
			fds = append(fds, fd)
		}
	}
	if b.s.cgroups == nil || b.s.cgroups.memory == nil {
		flags |= execPollMemory
		data = 2*uint64(b.spec.MemoryBytes) + 128<<20 // a backstop: much of it may never be touched
	}
	if b.s.cgroups == nil || b.s.cgroups.pids == nil {
		processes = uint64(b.spec.PidsMax) + 1 // and init
		if b.plain != nil {
			processes = b.plain.processLimit(b.spec.PidsMax)
		}
	}
	fds = append(fds, procs...)
	env := c.Env
	if env == nil {
		env = DefaultEnv
	}
	dir, path := c.Dir, ""
	def(&dir, "/work")
	if b.plain != nil { // relative to the box's directory; what is not in it is the host's
		if c.Env == nil {
			env = b.plain.env()
		}
		if on, err := onDisk(dir); err == nil {
			dir = on
		}
	}
	for _, v := range env {
		if len(v) > 5 && v[:5] == "PATH=" {
			path = v[5:]
		}
	}
	var strings message
	for _, list := range [][]string{c.Argv, env, {dir, path}} {
		for _, text := range list {
			strings.text(text)
		}
	}
	var m message
	m.u32(kindExec, flags, uint32(len(procs)), uint32(len(c.Argv)), uint32(len(env)), uint32(len(strings)))
	m.u64(uint64(wall), uint64(b.spec.CPUTime), uint64(b.spec.MemoryBytes), data, uint64(b.spec.DiskBytes),
		uint64((b.spec.CPUTime+time.Second-1)/time.Second), processes, uint64(b.spec.OpenFiles))
	return append(m, strings...), fds
}

// wait brings a command to its end and releases the box.
func (r *running) wait(ctx context.Context) Result {
	b := r.b
	defer b.busy.Unlock()
	if r.failed != nil && r.failed.Reason != BoxDied {
		return *r.failed
	}
	if r.failed == nil {
		go r.stdout.drain(b.spec)
		go r.stderr.drain(b.spec)
		if r.held {
			var m message
			m.u32(kindGo)
			b.conn.send(m) // if the box is gone, await tells
		}
		if r.stdin != nil {
			go feed(r.stdin, r.input)
		}
		// Init keeps the time; this is for an init that does not answer. The box may still be in the making, which is not the
		// command's time.
		grace := graceTime
		select {
		case <-b.ready:
		default:
			grace = startPatience
		}
		timer := time.AfterFunc(r.wall+grace, b.endInit)
		defer timer.Stop()
		if ctx != nil && ctx.Done() != nil {
			defer context.AfterFunc(ctx, func() { b.kill(Killed) })()
		}
	}
	var reply *reply
	var err error
	b.recv.Lock()
	for reply == nil && err == nil {
		reply, err = b.await()
	}
	b.recv.Unlock()
	if r.failed != nil && err == nil {
		return *r.failed
	}
	end := r.result(reply, err)
	if r.failed == nil {
		r.collect(&end)
	}
	return end
}

// collect takes the output. All writers are dead, so the ends of the pipes are certain; should a process have outlived its box
// on a host without PID namespaces, we do not wait for it.
func (r *running) collect(end *Result) {
	late := time.Now().Add(graceTime)
	for _, s := range []*stream{r.stdout, r.stderr} {
		s.file.SetReadDeadline(late)
	}
	end.Stdout, end.StdoutBytes = r.stdout.take()
	end.Stderr, end.StderrBytes = r.stderr.take()
	if r.stdin != nil {
		r.stdin.Close() // ends feed
	}
}

// result reads struct result, or says why there is none.
func (r *running) result(reply *reply, err error) Result {
	b := r.b
	if err == nil && reply.kind != kindResult {
		reply.close()
		err = errDied
	}
	if err != nil {
		end := Result{Reason: BoxDied, ExitCode: -1}
		var step *StepError
		if errors.As(err, &step) {
			end.Reason, end.Step, end.Errno = SetUp, step.Step, step.Errno
		}
		b.mu.Lock()
		if b.timed {
			end.Reason = Wall
		} else if b.closed {
			end.Reason = Killed
		}
		b.mu.Unlock()
		return end
	}
	status := syscall.WaitStatus(reply.u32(8))
	end := Result{
		ExitCode:        -1,
		Wall:            time.Duration(reply.u64(24)),
		CPUUser:         time.Duration(reply.u64(32)) * time.Microsecond,
		CPUSystem:       time.Duration(reply.u64(40)) * time.Microsecond,
		MemoryPeakBytes: max(int64(reply.u64(48))*1024, int64(reply.u64(88))),
		DiskBytes:       int64(reply.u64(56)),
		DiskFiles:       int64(reply.u64(72)),
	}
	if b.plain == nil {
		end.DiskFull = reply.u64(64) == 0 || reply.u64(80) == 0
	} else {
		end.DiskBytes, end.DiskFiles = b.plain.diskUsage()
		end.DiskFull = end.DiskBytes >= b.spec.DiskBytes || end.DiskFiles >= int64(b.spec.DiskFiles)
	}
	if b.leaf != nil {
		u := b.leaf.usage()
		end.OOMKills = u.oomKills - b.counted.oomKills
		end.PidsRefused = u.pidsRefused - b.counted.pidsRefused
		b.counted = u
		if u.memoryPeak > 0 {
			end.MemoryPeakBytes = u.memoryPeak
		}
	}
	if status.Signaled() {
		end.Signal = status.Signal()
	} else if status.Exited() {
		end.ExitCode = status.ExitStatus()
	}
	switch reply.u32(4) {
	case causeWall:
		end.Reason = Wall
	case causeCPU:
		end.Reason = CPU
	case causeMemory:
		end.Reason = Memory
	case causeKilled:
		end.Reason = Reason(reply.u32(12))
	case causeExecFailed:
		end.Reason, end.ExitCode = ExecFailed, -1
		end.Step, end.Errno = stepWord(reply.u32(16)), syscall.Errno(reply.u32(20))
	default:
		end.Reason = b.judge(&end)
	}
	return end
}

// judge finds the reason of a command that ended by itself, or by the kernel's limits.
func (b *Box) judge(end *Result) Reason {
	used := end.CPUUser + end.CPUSystem
	switch {
	case end.ExitCode == 0:
		return Exited
	case end.OOMKills > 0:
		return Memory
	case end.Signal == syscall.SIGXCPU, end.Signal == syscall.SIGKILL && used >= b.spec.CPUTime:
		return CPU // the signal of RLIMIT_CPU, which may be ignored for a second
	case end.Signal == syscall.SIGXFSZ, end.DiskFull:
		return Disk
	case end.PidsRefused > 0:
		return Pids
	case end.Signal != 0:
		return Signaled
	}
	return Exited
}

// Kill ends the running command, if there is one; the box stays usable.
func (b *Box) Kill() { b.kill(Killed) }

func (b *Box) kill(why Reason) {
	var m message
	m.u32(kindKill, uint32(why))
	b.conn.send(m) // a box that is gone has nothing to kill
}

// endInit is for an init that has not kept its time: it dies, and with it all that it holds.
func (b *Box) endInit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timed = true
	if b.leaf != nil && !b.closed { // a timer that fires as the command ends may come after Close
		b.leaf.kill()
	}
	if b.pidfd >= 0 {
		unix.PidfdSendSignal(b.pidfd, unix.SIGKILL, nil, 0)
	}
	b.conn.close()
}

// Close kills what runs in the box and gives everything back. A second Close does nothing.
func (b *Box) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	armed := b.armed
	b.armed = nil
	b.mu.Unlock()
	b.s.forget(b)
	b.conn.close() // init sees the end and takes all others with it
	if armed != nil {
		armed.closeStreams()
		b.busy.Unlock()
	}
	// A command that still runs must have left its cgroup before that can go.
	idle := b.busy.TryLock()
	if !idle {
		b.mu.Lock()
		if b.pidfd >= 0 {
			awaitDeath(b.pidfd, graceTime)
		}
		b.mu.Unlock()
		b.busy.Lock()
	}
	b.busy.Unlock()
	b.closeFDs()
	return b.release()
}

func (b *Box) closeFDs() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fd := range []*int{&b.dir, &b.pidfd} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
}

// stream reads one output of a command.
type stream struct {
	file  *os.File
	b     *Box
	data  []byte
	total int64
	done  chan struct{}
}

func newStream(f *os.File, b *Box) *stream { return &stream{file: f, b: b, done: make(chan struct{})} }

var buffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }} // as much as a pipe holds

// What nothing more is kept of is read rarely and much at a time: each reading costs this process more than the writer, whose
// share of the processors is capped while ours is not. The pause grows to this, so that little too much output ends at once.
const (
	unkeptPause = 16 * time.Millisecond
	unkeptPipe  = 256 << 10 // bytes; its memory is the writer's
)

// drain reads to the end. It keeps what OutputBytes allows, and beyond OutputMaxBytes it has the command killed, but reads on:
// a writer that is to die must not block.
func (s *stream) drain(spec Spec) {
	defer close(s.done)
	kept := buffers.Get().(*[]byte)
	defer buffers.Put(kept)
	buf, over, pause := *kept, false, time.Duration(0)
	for {
		n, err := s.file.Read(buf)
		s.total += int64(n)
		s.data = append(s.data, buf[:min(int64(n), spec.OutputBytes-int64(len(s.data)))]...)
		if s.total > spec.OutputMaxBytes && !over {
			over = true
			s.b.kill(Output)
		}
		if err != nil {
			return
		}
		if int64(len(s.data)) < spec.OutputBytes || n == 0 || over {
			continue
		}
		if pause == 0 {
			s.widen()
			buf, pause = make([]byte, unkeptPipe), unkeptPause/16
		}
		time.Sleep(pause)
		pause = min(2*pause, unkeptPause)
	}
}

// widen gives the pipe room, if the kernel allows this user so much.
func (s *stream) widen() {
	if raw, err := s.file.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, unkeptPipe) })
	}
}

func (s *stream) take() ([]byte, int64) {
	<-s.done
	s.file.Close()
	return s.data, s.total
}

// feed writes the command's input; a command that does not read it is no error.
func feed(f *os.File, input []byte) {
	f.Write(input)
	f.Close()
}

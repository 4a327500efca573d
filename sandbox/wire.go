package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The protocol of zygote/c/wire.h, which explains it. Numbers and layouts are compared with that file by a test.
const (
	wireVersion = 1
	messageMax  = 128 << 10
	fdsMax      = 64
)

const ( // enum kind
	kindStart = iota + 1
	kindStarted
	kindReady
	kindCreate
	kindExec
	kindGo
	kindKill
	kindResult
	kindFailed
)

const ( // enum start_flags
	startSlots = 1
	startPlain = 2
	startWarm  = 4
)

const ( // enum op_kind
	opDir = iota + 1
	opLink
	opFile
	opBind
	opTree
	opCgroupDir
	opArg
	opEnv
)

const readyNoProc = 1 // enum ready_flags

const createLoopback = 1 // enum create_flags

const ( // enum exec_flags
	execHold       = 1
	execProgram    = 2
	execLandlock   = 4
	execIntoCgroup = 8
	execCPUFile    = 16
	execPollMemory = 32
)

const ( // enum cause
	causeEnded = iota
	causeWall
	causeCPU
	causeMemory
	causeKilled
	causeExecFailed
)

// steps are the words for enum step.
var steps = []string{"", "speak the helper's protocol", "clone the zygote", "map ids of the zygote", "change ids", "build the root file system",
	"enter the root file system", "install a seccomp filter", "find a free slot (Options.MaxBoxes are open)", "clone the box", "map ids of the box",
	"mount the box's disk", "mount the box's /proc", "bring up loopback", "report the box", "clone the command", "enter the cgroup",
	"set up descriptors", "set limits", "enter the directory", "drop privileges", "start the program", "start the warm interpreter"}

// hostSteps are those between the clone of a command and its program that the box's files and earlier commands have no part in.
var hostSteps = []string{"clone the command", "enter the cgroup", "set up descriptors", "set limits", "drop privileges"}

func stepWord(step uint32) string {
	if int(step) < len(steps) {
		return steps[step]
	}
	return fmt.Sprintf("step %d", step)
}

var order = binary.NativeEndian

// message appends fields in the layout of a C struct whose members are aligned by construction.
type message []byte

func (m *message) u32(vs ...uint32) {
	for _, v := range vs {
		*m = order.AppendUint32(*m, v)
	}
}

func (m *message) u64(vs ...uint64) {
	for _, v := range vs {
		*m = order.AppendUint64(*m, v)
	}
}

func (m *message) text(s string) { *m = append(append(*m, s...), 0) }

// StepError says which step of setting something up failed, and why.
type StepError struct {
	Step   string
	Errno  syscall.Errno
	Detail string // of a step with many parts: which part
}

func (e *StepError) Error() string {
	if e.Detail != "" {
		return fmt.Sprintf("sandbox: %s (%s): %v", e.Step, e.Detail, e.Errno)
	}
	return fmt.Sprintf("sandbox: %s: %v", e.Step, e.Errno)
}

func (e *StepError) Unwrap() error { return e.Errno }

// reply is a message from the helper, with the descriptors that came along, which the receiver owns.
type reply struct {
	kind  uint32
	words []byte // after kind
	fds   []int
}

func (r *reply) u32(at int) uint32 { return order.Uint32(r.words[at-4:]) } // at: offset in the C struct
func (r *reply) u64(at int) uint64 { return order.Uint64(r.words[at-4:]) }

func (r *reply) close() {
	for _, fd := range r.fds {
		unix.Close(fd)
	}
	r.fds = nil
}

// failure gives the error of a FAILED reply: struct failed.
func (r *reply) failure() *StepError {
	return &StepError{Step: stepWord(r.u32(4)), Errno: syscall.Errno(r.u32(8))}
}

// replySizes are the sizes of the C structs that the helper sends.
var replySizes = map[uint32]int{kindStarted: 8, kindReady: 12, kindResult: 96, kindFailed: 16}

// conn is our end of a socket to the helper. It lives in Go's poller, so that waiting costs no thread.
type conn struct {
	file *os.File
	raw  syscall.RawConn
}

func newConn(fd int) (*conn, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	file := os.NewFile(uintptr(fd), "sandbox socket")
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &conn{file, raw}, nil
}

// socketPair gives our end and the end for the helper.
func socketPair() (*conn, int, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, -1, fmt.Errorf("sandbox: socketpair: %w", err)
	}
	// The default buffer would take one small message of ours, but not a large command line.
	unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 2*messageMax)
	c, err := newConn(pair[0])
	if err != nil {
		unix.Close(pair[1])
		return nil, -1, err
	}
	return c, pair[1], nil
}

// errGone says that the other end of a socket is closed.
var errGone = errors.New("sandbox: the other end is gone")

func (c *conn) send(m message, fds ...int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	var err error
	werr := c.raw.Write(func(fd uintptr) bool {
		for {
			err = unix.Sendmsg(int(fd), m, rights, nil, unix.MSG_NOSIGNAL)
			if err != unix.EINTR {
				return err != unix.EAGAIN
			}
		}
	})
	if werr != nil {
		return werr
	}
	if err == unix.EPIPE || err == unix.ECONNRESET {
		return errGone
	}
	if err != nil {
		return os.NewSyscallError("sendmsg", err)
	}
	return nil
}

// receive waits for a message. errGone is the end of the socket.
func (c *conn) receive() (*reply, error) {
	var buf [256]byte
	var oob [128]byte
	var n, oobn, flags int
	var err error
	reset := false
	rerr := c.raw.Read(func(fd uintptr) bool {
		for {
			n, oobn, flags, _, err = unix.Recvmsg(int(fd), buf[:], oob[:], unix.MSG_CMSG_CLOEXEC)
			if err == unix.ECONNRESET && !reset {
				// The other end went away with a message of ours unread. What it said before is still to be had, behind this error.
				reset = true
				continue
			}
			if err != unix.EINTR {
				return err != unix.EAGAIN
			}
		}
	})
	if rerr != nil {
		return nil, rerr
	}
	if err == unix.ECONNRESET || err == nil && n == 0 {
		return nil, errGone
	}
	if err != nil {
		return nil, os.NewSyscallError("recvmsg", err)
	}
	r := &reply{}
	if oobn > 0 {
		list, perr := unix.ParseSocketControlMessage(oob[:oobn])
		if perr == nil {
			for i := range list {
				if fds, ferr := unix.ParseUnixRights(&list[i]); ferr == nil {
					r.fds = append(r.fds, fds...)
				}
			}
		}
	}
	if n >= 4 {
		r.kind = order.Uint32(buf[:])
	}
	if size, ok := replySizes[r.kind]; !ok || size != n || flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		r.close()
		return nil, fmt.Errorf("sandbox: the helper sent a message of kind %d and %d bytes: %w", r.kind, n, io.ErrUnexpectedEOF)
	}
	r.words = append([]byte(nil), buf[4:n]...)
	return r, nil
}

func (c *conn) close() { c.file.Close() }

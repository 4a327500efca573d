package sandbox

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// Reason says why a command ended.
type Reason uint8

const (
	Exited     Reason = iota + 1 // by itself; ExitCode
	Signaled                     // by a signal that no limit sent; Signal
	Wall                         // WallTimeout
	CPU                          // CPUTime
	Memory                       // MemoryBytes
	Pids                         // failed (non-zero exit or signal) and was refused a process by PidsMax
	Disk                         // failed, and DiskBytes or DiskFiles were used up
	Output                       // OutputMaxBytes
	Killed                       // Box.Kill, or the context ended
	ExecFailed                   // the program could not be started; Step and Errno
	SetUp                        // the box could not be made; Step and Errno. Not the command's fault
	BoxDied                      // init, zygote or helper is gone. Not the command's fault
)

var reasons = []string{"", "exit", "signal", "wall", "cpu", "memory", "pids", "disk", "output", "killed", "exec_failed", "set_up", "box_died"}

func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// MarshalText gives the word that String gives.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (r *Reason) UnmarshalText(text []byte) error {
	if i := slices.Index(reasons, string(text)); i > 0 {
		*r = Reason(i)
		return nil
	}
	return fmt.Errorf("sandbox: %w reason %.40q", ErrInvalid, text)
}

// Infrastructure says that the end tells nothing about the command: an episode that ends so is invalid, not failed.
func (r Reason) Infrastructure() bool { return r == SetUp || r == BoxDied }

// Result tells how a command ended and what it used. Every process of the command is dead when it is returned.
type Result struct {
	Reason   Reason         `json:"reason"`
	ExitCode int            `json:"exit_code"`        // of the program; -1 if it did not exit by itself
	Signal   syscall.Signal `json:"signal,omitempty"` // that ended the program, ours included
	Step     string         `json:"step,omitempty"`   // what failed, with ExecFailed and SetUp
	Errno    syscall.Errno  `json:"errno,omitempty"`  // of Step

	Stdout      []byte `json:"stdout"` // at most OutputBytes
	Stderr      []byte `json:"stderr"`
	StdoutBytes int64  `json:"stdout_bytes"` // read from the command; more than len(Stdout) means that it was cut
	StderrBytes int64  `json:"stderr_bytes"`

	Wall      time.Duration `json:"wall_ns"` // from the start of the program to its end
	CPUUser   time.Duration `json:"cpu_user_ns"`
	CPUSystem time.Duration `json:"cpu_system_ns"`

	// MemoryPeakBytes is the box's since it was made, where a cgroup or polling tells it, else the largest process's.
	MemoryPeakBytes int64 `json:"memory_peak_bytes"`
	DiskBytes       int64 `json:"disk_bytes"` // in use at the end
	DiskFiles       int64 `json:"disk_files"`

	// What happened on the way, whatever Reason says: a program may exit 0 although its child was killed for memory.
	OOMKills    int64 `json:"oom_kills"`    // 0 without a memory cgroup
	PidsRefused int64 `json:"pids_refused"` // 0 without a pids cgroup
	DiskFull    bool  `json:"disk_full"`
}

// Infrastructure says that the end tells nothing about the command: its Reason does, or something failed that comes before the program
// and that no program of the box can bring about, such as entering a cgroup which somebody has removed.
func (r *Result) Infrastructure() bool {
	return r.Reason.Infrastructure() || r.Reason == ExecFailed && slices.Contains(hostSteps, r.Step)
}

// OK says that the program ran and exited with 0.
func (r *Result) OK() bool { return r.Reason == Exited && r.ExitCode == 0 }

// String is one line for logs.
func (r *Result) String() string {
	switch r.Reason {
	case Exited:
		return fmt.Sprintf("exit %d after %v", r.ExitCode, r.Wall.Round(time.Millisecond))
	case Signaled:
		return fmt.Sprintf("signal %v after %v", r.Signal, r.Wall.Round(time.Millisecond))
	case ExecFailed, SetUp:
		return fmt.Sprintf("%v: %s: %v", r.Reason, r.Step, r.Errno)
	}
	return fmt.Sprintf("%v after %v", r.Reason, r.Wall.Round(time.Millisecond))
}

package sandbox

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// attack is one attempt by a hostile command and what must come of it.
type attack struct {
	name   string
	inside string // function in insides, "" the one of that name
	sh     string
	spec   Spec
	want   []Reason                                // any of them; nil: Exited with 0
	args   func(t *testing.T) []string             // for the function
	check  func(t *testing.T, b *Box, end *Result) // what else must hold afterwards
	skip   func(c Capabilities) string             // why it cannot be contained at this level: a documented gap
}

// notPlain are attacks on what level plain does not promise (Capabilities says so).
func notPlain(why string) func(Capabilities) string {
	return func(c Capabilities) string {
		if c.Level == LevelPlain {
			return why
		}
		return ""
	}
}

// needs are attacks on a guarantee that some hosts grade none.
func needs(guarantee string) func(Capabilities) string {
	return func(c Capabilities) string {
		if c.Grade(guarantee) == None {
			return guarantee + " is graded none"
		}
		return ""
	}
}

var (
	ends   = []Reason{Exited, Signaled, Wall, CPU, Memory, Pids, Disk} // whatever, but it ends
	short  = Spec{WallTimeout: 400 * time.Millisecond}
	timed  = []Reason{Wall}
	bombs  = []Reason{Memory, Exited, Signaled, Wall} // memoryHeld wants Memory where it is enforced
	small  = Spec{MemoryBytes: 96 << 20, WallTimeout: 20 * time.Second}
	limit1 = Spec{CPUTime: 400 * time.Millisecond, WallTimeout: 20 * time.Second, CPUMilli: 2000}
)

func within(d time.Duration) func(*testing.T, *Box, *Result) {
	return func(t *testing.T, _ *Box, end *Result) {
		if end.Wall > d {
			t.Errorf("took %v, at most %v was wanted", end.Wall, d)
		}
	}
}

var attacks = []attack{
	{name: "fork_bomb", spec: short, want: ends},
	{name: "fork_bomb_sh", sh: "f() { f | f & }; f; sleep 5", spec: short, want: ends},
	{name: "thread_bomb", spec: short, want: ends},
	{name: "zombie_flood"},
	{name: "daemon_holds_stdout", check: within(5 * time.Second)},
	{name: "sleep_forever", spec: short, want: timed},
	{name: "stop_self", spec: short, want: timed},
	{name: "ignore_signals", spec: short, want: timed},
	{name: "closed_stdio", spec: short, want: timed},
	{name: "cpu_burn", spec: limit1, want: []Reason{CPU}},
	{name: "cpu_burn_many", spec: limit1, want: []Reason{CPU}},
	{name: "sigxcpu_ignored", spec: limit1, want: []Reason{CPU}},
	{name: "memory_main", spec: small, want: bombs, check: memoryHeld},
	{name: "memory_child", spec: small, want: bombs, check: memoryHeld},
	{name: "memory_shared", spec: small, want: bombs, check: memoryHeld},
	{name: "memory_many", spec: small, want: bombs, check: memoryHeld},
	{name: "memory_memfd", spec: small, want: []Reason{Memory, Exited}, check: memoryHeld},
	{name: "pipe_buffers", want: ends, check: memoryHeld},
	{name: "socket_buffers", spec: Spec{WallTimeout: 5 * time.Second}, want: ends, check: memoryHeld},
	{name: "sysv_shm", spec: small, want: []Reason{Memory, Exited}, check: memoryHeld},
	{name: "disk_then_memory", spec: small, want: bombs, check: memoryHeld},
	{name: "mlock"},
	{name: "disk_bytes", want: []Reason{Disk}, skip: notPlain("sizes are bounded for each file only"), check: diskFull},
	{name: "disk_inodes", want: []Reason{Disk}, skip: notPlain("the number of files is not bounded"), check: diskFull},
	{name: "disk_shm", want: []Reason{Exited, Disk}},
	{name: "disk_sparse"},
	{name: "core_dump", check: nothingWritten},
	{name: "fd_exhaustion"},
	{name: "inotify", check: func(t *testing.T, _ *Box, _ *Result) {
		fd, err := unix.InotifyInit1(0)
		if err != nil {
			t.Errorf("the host has no inotify left: %v", err)
		}
		unix.Close(fd)
	}},
	{name: "mqueue"},
	{name: "inherited_fds"},
	{name: "huge_argv"},
	{name: "ptrace"},
	{name: "process_memory"},
	{name: "io_uring"},
	{name: "userfaultfd"},
	{name: "bpf"},
	{name: "perf"},
	{name: "vmsplice"},
	{name: "memfd_secret"},
	{name: "kexec"},
	{name: "modules"},
	{name: "keys"},
	{name: "personality"},
	{name: "file_handles"},
	{name: "arch_calls", want: []Reason{Exited, Signaled}},
	{name: "unknown_call"},
	{name: "mount"},
	{name: "new_mount_api"},
	{name: "pivot_chroot"},
	{name: "unshare"},
	{name: "clone_namespaces"},
	{name: "proc_init"},
	{name: "proc_sys"},
	{name: "proc_others", skip: needs("proc")},
	{name: "host_files", args: secretFile, skip: needs("files")},
	{name: "write_read_only"},
	{name: "devices", skip: needs("files")},
	{name: "setuid_programs"},
	{name: "sys", skip: needs("files")},
	{name: "loopback_of_host", args: func(t *testing.T) []string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return []string{fmt.Sprint(l.Addr().(*net.TCPAddr).Port)}
	}, spec: Spec{Loopback: true}},
	{name: "outside_network"},
	{name: "outside_network_with_loopback", inside: "outside_network", spec: Spec{Loopback: true}},
	{name: "socket_families"},
	{name: "socket_families_with_loopback", inside: "socket_families", spec: Spec{Loopback: true}},
	{name: "unix_sockets_of_host", args: hostSockets},
	{name: "signal_others", args: ownPID, skip: needs("signals")},
	{name: "kill_everything", want: []Reason{Exited, Signaled}, skip: needs("signals")},
	{name: "starve_init", args: ownPID},
	{name: "terminal"},
	{name: "host_settings"},
	{name: "clocks"},
	{name: "environment"},
	{name: "output_one", want: []Reason{Output}, check: cut},
	{name: "output_both", want: []Reason{Output}, check: cut},
	{name: "output_pipe_size", want: []Reason{Output}, check: cut},
	{name: "output_nonblocking", want: []Reason{Exited, Output}},
	{name: "hostile_files", check: readHostileFiles},
	{name: "child_hides_oom", sh: "head -c 500000000 /dev/zero | tail | head -c 1; exit 0", spec: small, want: []Reason{Exited, Memory, Wall}, check: memoryHeld},
}

// memoryHeld: what the box used stayed near its limit. Polling may be late by what 20 ms (or, on a loaded machine, some more)
// of page faults take.
func memoryHeld(t *testing.T, b *Box, end *Result) {
	slack := int64(8 << 20)
	if b.s.caps.Grade("memory") != Enforced {
		slack = 256 << 20
	}
	if end.MemoryPeakBytes > b.spec.MemoryBytes+slack {
		t.Errorf("peak of %d MiB, the limit is %d MiB", end.MemoryPeakBytes>>20, b.spec.MemoryBytes>>20)
	}
	if bomb := strings.Contains(t.Name(), "/memory_") || strings.Contains(t.Name(), "/disk_then"); bomb && b.s.caps.Grade("memory") == Enforced &&
		end.Reason != Memory {
		t.Errorf("ended with %v, wanted memory", end)
	}
	if end.Reason == Memory && b.s.caps.Grade("memory") == Enforced && end.OOMKills == 0 {
		t.Error("no OOM kill counted")
	}
}

func diskFull(t *testing.T, _ *Box, end *Result) {
	if !end.DiskFull {
		t.Error("DiskFull is not set")
	}
}

func nothingWritten(t *testing.T, b *Box, _ *Result) {
	list, err := b.Walk("/work", 10)
	if err != nil || len(list) != 0 {
		t.Errorf("files in /work: %v %v", list, err)
	}
}

func cut(t *testing.T, b *Box, end *Result) {
	kept := max(len(end.Stdout), len(end.Stderr))
	if int64(kept) != b.spec.OutputBytes || max(end.StdoutBytes, end.StderrBytes) <= b.spec.OutputMaxBytes {
		t.Errorf("kept %d of %d and %d bytes", kept, end.StdoutBytes, end.StderrBytes)
	}
	if end.Wall > 5*time.Second {
		t.Errorf("took %v", end.Wall)
	}
}

func ownPID(*testing.T) []string { return []string{fmt.Sprint(os.Getpid())} }

func secretFile(t *testing.T) []string {
	dir := t.TempDir()
	os.Chmod(filepath.Dir(dir), 0o755)
	os.Chmod(dir, 0o755)
	name := filepath.Join(dir, "secret")
	if err := os.WriteFile(name, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{name}
}

func hostSockets(t *testing.T) []string {
	names := []string{fmt.Sprintf("@provegym-test-%d", os.Getpid()), filepath.Join(t.TempDir(), "socket")}
	for _, name := range names {
		l, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
	os.Chmod(names[1], 0o777)
	return names
}

// readHostileFiles reads from outside what hostile_files has made.
func readHostileFiles(t *testing.T, b *Box, _ *Result) {
	began := time.Now()
	for _, name := range []string{"link", "dirlink/passwd", "magic", "fifo", "socket", "../../etc/passwd", "/etc/passwd", "/work/../../etc/passwd",
		"/proc/self/environ", "deep", "missing", "/work", "a\x00b", strings.Repeat("x/", 3000)} {
		if data, err := b.ReadFile(name, 1<<20); err == nil {
			t.Errorf("read %d bytes of %q", len(data), name)
		}
	}
	for name, want := range map[string]string{"plain": "plain", "hard": "plain", "odd\n\x1b[31m\xff name": "odd", "unreadable": "secret", "/tmp/../work/plain": "plain"} {
		if data, err := b.ReadFile(name, 1<<20); err != nil || string(data) != want {
			t.Errorf("%q: %q %v, want %q", name, data, err, want)
		}
	}
	if _, err := b.ReadFile("big", 1<<20); err == nil {
		t.Error("a file over maxBytes was read")
	}
	for _, name := range []string{"link", "dirlink/x", "fifo", "socket", "../../tmp/../etc/x", "/etc/x"} {
		if err := b.WriteFile(name, []byte("x"), 0o644); err == nil {
			t.Errorf("wrote through %q", name)
		}
	}
	list, err := b.Walk("/work", 1000)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[fs.FileMode]int{}
	names := map[string]Entry{}
	for _, e := range list {
		kinds[e.Mode.Type()]++
		names[e.Name] = e
	}
	if kinds[fs.ModeSymlink] != 3 || kinds[fs.ModeNamedPipe] != 1 || names["/work/link"].Link != "/etc/shadow" || names["/work/hard"].Links != 2 {
		t.Errorf("walk gave %v", kinds)
	}
	if n := kinds[fs.ModeDir]; n != 202 {
		t.Errorf("%d directories, want 202", n)
	}
	if m := names["/work/suid"].Mode; m&fs.ModeSetuid == 0 || m&fs.ModeSetgid == 0 {
		t.Errorf("mode of suid: %v", m)
	}
	if _, ok := names["/work/locked/in"]; !ok {
		t.Error("a locked directory was not read")
	}
	if !slices.IsSortedFunc(list[:3], func(a, b Entry) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("not sorted")
	}
	if _, err := b.Walk("/work", 50); err == nil {
		t.Error("maxEntries did not bound the walk")
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("reading took %v", d)
	}
}

// TestAttack runs every attack at every level that this process can reach, each in a box of its own.
func TestAttack(t *testing.T) {
	program := testProgram(t)
	for _, level := range levels(t) {
		t.Run(string(level), func(t *testing.T) {
			s := open(t, Options{Level: level})
			zygote := s.zygotePID()
			for _, a := range attacks {
				t.Run(a.name, func(t *testing.T) { a.run(t, s, program) })
			}
			if s.zygotePID() != zygote || !s.zygote.alive() {
				t.Errorf("the zygote died")
			}
		})
	}
}

// TestAttack_asUser is the same as a plain user with no cgroup.
func TestAttack_asUser(t *testing.T) { asUser(t, "^TestAttack$") }

func (a *attack) run(t *testing.T, s *Sandbox, program int) {
	c := s.Capabilities()
	if a.skip != nil {
		if why := a.skip(c); why != "" {
			t.Skipf("a documented gap of level %s: %s", c.Level, why)
		}
	}
	spec := a.spec
	if spec.PidsMax == 0 {
		spec.PidsMax = 24 // the Go runtime of the attacker wants some threads
	}
	b := newBox(t, s, spec)
	var end Result
	if a.sh != "" {
		end = run(t, b, sh(a.sh))
	} else {
		argv := []string{"attack", a.inside}
		if a.inside == "" {
			argv[1] = a.name
		}
		if c.Level == LevelPlain {
			argv = append(argv, "-plain")
		}
		if a.args != nil {
			argv = append(argv, a.args(t)...)
		}
		r, err := b.start(Command{Argv: argv, Env: []string{"ONLY=this"}}, execOptions{program: program})
		if err != nil {
			t.Fatal(err)
		}
		end = r.wait(context.Background())
	}
	if testing.Verbose() {
		t.Logf("%v, peak %d MiB, cpu %v\n%.600s%.600s", &end, end.MemoryPeakBytes>>20, (end.CPUUser + end.CPUSystem).Round(time.Millisecond), end.Stdout, end.Stderr)
	}
	if a.want == nil && !end.OK() || a.want != nil && !slices.Contains(a.want, end.Reason) || end.ExitCode == 3 || end.ExitCode == 4 || end.ExitCode == 5 {
		t.Errorf("ended with %v, wanted %v\n%.2000s\n%.2000s", &end, a.want, end.Stdout, end.Stderr)
	}
	if end.Reason == Wall && end.Wall > b.spec.WallTimeout+graceTime/2 {
		t.Errorf("the wall limit of %v held after %v", b.spec.WallTimeout, end.Wall)
	}
	if a.check != nil {
		a.check(t, b, &end)
	}
	// The box and its init have survived, and nothing runs in it any more. Its share of the processors may be used up for a while.
	b.spec.WallTimeout = DefaultWallTimeout
	if after := run(t, b, Command{Argv: []string{"true"}}); !after.OK() && !after.DiskFull {
		t.Errorf("afterwards `true` ends with %v", &after)
	}
}

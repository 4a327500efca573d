package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	helper "provegym/sandbox/zygote"
)

func TestSpec_zeroIsValid(t *testing.T) {
	if err := (Spec{}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestSpec_allProblemsAtOnce(t *testing.T) {
	err := Spec{WallTimeout: -1, CPUMilli: 1, MemoryBytes: 5, PidsMax: -2, DiskBytes: 1 << 60, DiskFiles: 1, OpenFiles: 1, OutputBytes: -1}.Validate()
	if !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	for _, want := range []string{"WallTimeout", "CPUMilli", "MemoryBytes", "PidsMax", "DiskBytes", "DiskFiles", "OpenFiles", "OutputBytes"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named in: %v", want, err)
		}
	}
}

func TestCommand_validate(t *testing.T) {
	for name, row := range map[string]struct {
		c    Command
		want string // "" is valid
	}{
		"a program is enough":            {Command{Argv: []string{"true"}}, ""},
		"no program":                     {Command{}, "Argv is empty"},
		"empty program":                  {Command{Argv: []string{""}}, "Argv is empty"},
		"NUL in an argument":             {Command{Argv: []string{"a", "b\x00"}}, "NUL"},
		"variable without name":          {Command{Argv: []string{"a"}, Env: []string{"=x"}}, "NAME=value"},
		"relative directory":             {Command{Argv: []string{"a"}, Dir: "x"}, "not absolute"},
		"too many bytes":                 {Command{Argv: []string{"a", strings.Repeat("x", MaxCommandBytes)}}, "Stdin or WriteFile"},
		"too many strings":               {Command{Argv: make([]string, MaxStrings+1)}, "the most is 1000"},
		"longer than the box allows":     {Command{Argv: []string{"a"}, WallTimeout: time.Hour}, "at most 10s"},
		"shorter than the box allows":    {Command{Argv: []string{"a"}, WallTimeout: time.Second}, ""},
		"several problems are all named": {Command{Dir: "x", Env: []string{"y"}}, "Argv is empty: give the program first; Env entry \"y\" is not NAME=value; Dir"},
	} {
		t.Run(name, func(t *testing.T) {
			err := row.c.Validate(Spec{})
			if row.want == "" && err != nil || row.want != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestOpen_wrongOptions(t *testing.T) {
	_, err := Open(Options{ReadOnlyDirs: []string{"usr", "/proc/x", "/nonexistent"}, MaxBoxes: -1, Level: "best", Require: []string{"speed", "memory=fast"}})
	if !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	for _, want := range []string{`"usr"`, `"/proc/x"`, "/nonexistent", "MaxBoxes", `"best"`, `"speed"`, `"fast"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named in: %v", want, err)
		}
	}
}

func TestOpen_requireFailsLoudly(t *testing.T) {
	lowest := levels(t)
	if level := lowest[len(lowest)-1]; level == LevelPlain {
		_, err := Open(Options{Level: level, HelperPath: builtHelper, Require: []string{"disk=enforced", "wall"}})
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "disk is per-process, required is enforced") {
			t.Errorf("got %v", err)
		}
	}
	open(t, Options{Require: []string{"wall=enforced", "network"}})
}

func TestCapabilities_sayWhetherCgroupsAreUsed(t *testing.T) {
	for _, level := range append(levels(t), "") { // "": the best, which on some hosts has found cgroups that were of no use
		s := open(t, Options{Level: level})
		if text := s.Capabilities().Cgroups; strings.HasPrefix(text, "none: ") != (s.cgroups == nil) {
			t.Errorf("level %q says %q; cgroups are used: %v", level, text, s.cgroups != nil)
		}
	}
}

func TestReason_words(t *testing.T) {
	for r := Exited; r <= BoxDied; r++ {
		text, err := r.MarshalText()
		var back Reason
		if err != nil || back.UnmarshalText(text) != nil || back != r {
			t.Errorf("%d: %s %v", r, text, back)
		}
	}
	if err := new(Reason).UnmarshalText([]byte("nothing")); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
}

// TestWire_sameNumbers compares every enum and struct of wire.h with this package.
func TestWire_sameNumbers(t *testing.T) {
	data, err := helper.Source("wire.h")
	if err != nil {
		t.Fatal(err)
	}
	header := regexp.MustCompile(`(?m)//.*$`).ReplaceAllString(string(data), "")
	ours := map[string]int{
		"START": kindStart, "STARTED": kindStarted, "READY": kindReady, "CREATE": kindCreate, "EXEC": kindExec, "GO": kindGo, "KILL": kindKill,
		"RESULT": kindResult, "FAILED": kindFailed, "START_SLOTS": startSlots, "START_PLAIN": startPlain, "START_WARM": startWarm,
		"OP_DIR": opDir, "OP_LINK": opLink, "OP_FILE": opFile, "OP_BIND": opBind, "OP_TREE": opTree, "OP_CGROUP_DIR": opCgroupDir, "OP_ARG": opArg,
		"OP_ENV": opEnv, "READY_NO_PROC": readyNoProc, "CREATE_LOOPBACK": createLoopback, "EXEC_HOLD": execHold, "EXEC_PROGRAM": execProgram,
		"EXEC_LANDLOCK": execLandlock, "EXEC_INTO_CGROUP": execIntoCgroup, "EXEC_CPU_FILE": execCPUFile, "EXEC_POLL_MEMORY": execPollMemory, "CAUSE_ENDED": causeEnded,
		"CAUSE_WALL": causeWall, "CAUSE_CPU": causeCPU, "CAUSE_MEMORY": causeMemory, "CAUSE_KILLED": causeKilled, "CAUSE_EXEC_FAILED": causeExecFailed,
	}
	nSteps := 0
	for _, enum := range regexp.MustCompile(`(?s)enum \w+ \{(.*?)\}`).FindAllStringSubmatch(header, -1) {
		value := 0
		for _, item := range strings.Split(enum[1], ",") {
			name, explicit, found := strings.Cut(strings.TrimSpace(item), "=")
			if name = strings.TrimSpace(name); name == "" {
				continue
			}
			if found {
				value, _ = strconv.Atoi(strings.TrimSpace(explicit))
			}
			if strings.HasPrefix(name, "STEP_") {
				nSteps++
			} else if got, ok := ours[name]; !ok || got != value {
				t.Errorf("%s is %d in wire.h and %d (%v) here", name, value, got, ok)
			}
			delete(ours, name)
			value++
		}
	}
	if len(ours) > 0 {
		t.Errorf("not in wire.h: %v", ours)
	}
	if nSteps != len(steps) {
		t.Errorf("%d steps in wire.h, %d here", nSteps, len(steps))
	}
	for name, want := range map[string]int{"WIRE_VERSION": wireVersion} {
		if !regexp.MustCompile(fmt.Sprintf(`#define %s %d\b`, name, want)).MatchString(header) {
			t.Errorf("%s differs", name)
		}
	}
	// Sizes of what the helper sends, with every field aligned to its size.
	sizes := map[string]int{}
	for _, s := range regexp.MustCompile(`(?s)struct (\w+) \{(.*?)\};`).FindAllStringSubmatch(header, -1) {
		for _, line := range strings.Split(s[2], ";") {
			f := strings.Fields(strings.ReplaceAll(line, ",", " , "))
			if len(f) < 2 {
				continue
			}
			size := map[string]int{"u32": 4, "u64": 8}[f[0]]
			n := 1 + strings.Count(line, ",")
			if sizes[s[1]]%size != 0 {
				t.Errorf("struct %s has a hole before %s", s[1], line)
			}
			sizes[s[1]] += n * size
		}
	}
	for kind, name := range map[uint32]string{kindStarted: "started", kindReady: "ready", kindResult: "result", kindFailed: "failed"} {
		if sizes[name] != replySizes[kind] {
			t.Errorf("struct %s is %d bytes in wire.h and %d here", name, sizes[name], replySizes[kind])
		}
	}
}

// decide runs a filter as the kernel would.
func decide(t *testing.T, program []insn, arch, nr uint32, args ...uint64) uint32 {
	t.Helper()
	data := make([]byte, 64)
	order.PutUint32(data, nr)
	order.PutUint32(data[4:], arch)
	for i, a := range args {
		order.PutUint64(data[16+8*i:], a)
	}
	var acc uint32
	for pc := 0; pc < len(program); pc++ {
		i := program[pc]
		jump := func(yes bool) {
			if yes {
				pc += int(i.Jt)
			} else {
				pc += int(i.Jf)
			}
		}
		switch i.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = order.Uint32(data[i.K:])
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(acc == i.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(acc >= i.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(acc&i.K != 0)
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(i.K)
		case unix.BPF_RET | unix.BPF_K:
			return i.K
		default:
			t.Fatalf("instruction %+v", i)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

func TestFilters(t *testing.T) {
	base, full, bare := baseFilter(), commandFilter(true, true, true), commandFilter(false, false, false)
	closed := commandFilter(true, true, false)
	for _, f := range [][]insn{base, full, bare, closed} {
		if len(f) > 1000 {
			t.Errorf("%d instructions", len(f))
		}
		for nr := range uint32(1200) { // every path ends, with one of three answers
			if got := decide(t, f, auditArch, nr); got != retAllow && got != denied && got != noSuch {
				t.Fatalf("call %d: %#x", nr, got)
			}
		}
	}
	const other = unix.AUDIT_ARCH_ARM
	for _, row := range []struct {
		name   string
		filter []insn
		arch   uint32
		nr     uint32
		args   []uint64
		want   uint32
	}{
		{"reading", full, auditArch, unix.SYS_READ, nil, retAllow},
		{"ptrace", base, auditArch, unix.SYS_PTRACE, nil, denied},
		{"mount is init's", base, auditArch, unix.SYS_MOUNT, nil, retAllow},
		{"mount is not the command's", full, auditArch, unix.SYS_MOUNT, nil, denied},
		{"another architecture", base, other, unix.SYS_READ, nil, noSuch},
		{"x32", base, auditArch, 1<<30 | unix.SYS_READ, nil, noSuch},
		{"the newest call", base, auditArch, newestNr, nil, retAllow},
		{"a newer call", base, auditArch, newestNr + 1, nil, noSuch},
		{"clone3", full, auditArch, unix.SYS_CLONE3, nil, noSuch},
		{"fork", full, auditArch, unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, retAllow},
		{"clone with a namespace", full, auditArch, unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER | 17}, denied},
		{"unix socket", full, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_UNIX}, retAllow},
		{"inet socket", full, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_INET6}, retAllow},
		{"inet socket without loopback", closed, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_INET}, retErrno | uint32(unix.EAFNOSUPPORT)},
		{"unix socket without loopback", closed, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_UNIX}, retAllow},
		{"vsock", full, auditArch, unix.SYS_SOCKET, []uint64{40}, denied},
		{"route netlink", full, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, 3, 0}, retAllow},
		{"audit netlink", full, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, 3, 9}, denied},
		{"a socket without a network namespace", bare, auditArch, unix.SYS_SOCKET, []uint64{unix.AF_UNIX}, denied},
		{"a pair without one", bare, auditArch, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX}, retAllow},
		{"own limits", full, auditArch, unix.SYS_PRLIMIT64, []uint64{0}, retAllow},
		{"init's limits", full, auditArch, unix.SYS_PRLIMIT64, []uint64{1}, denied},
		{"own nice", full, auditArch, unix.SYS_SETPRIORITY, []uint64{0, 0}, retAllow},
		{"init's nice", full, auditArch, unix.SYS_SETPRIORITY, []uint64{0, 1}, denied},
		{"the user's nice", full, auditArch, unix.SYS_SETPRIORITY, []uint64{2, 0}, denied},
		{"TIOCSTI, high bits set", full, auditArch, unix.SYS_IOCTL, []uint64{0, 1<<32 | unix.TIOCSTI}, denied},
		{"memfd with a memory cgroup", full, auditArch, unix.SYS_MEMFD_CREATE, nil, retAllow},
		{"memfd without", bare, auditArch, unix.SYS_MEMFD_CREATE, nil, denied},
		{"asking for the personality", base, auditArch, unix.SYS_PERSONALITY, []uint64{0xffffffff}, retAllow},
		{"changing it", base, auditArch, unix.SYS_PERSONALITY, []uint64{0x40000}, denied},
	} {
		if got := decide(t, row.filter, row.arch, row.nr, row.args...); got != row.want {
			t.Errorf("%s: %#x, want %#x", row.name, got, row.want)
		}
	}
}

// TestTree_largeRules goes through the long jump.
func TestTree_largeRules(t *testing.T) {
	rules := map[uint32][]insn{}
	for nr := uint32(0); nr < 400; nr += 2 {
		rules[nr] = onlyIf(0, uint32(nr))
	}
	f := assemble(rules)
	for nr := range uint32(400) {
		want := uint32(retAllow)
		if got := decide(t, f, auditArch, nr, uint64(nr)); got != want {
			t.Fatalf("%d: %#x", nr, got)
		}
		if nr%2 == 0 {
			want = denied
		}
		if got := decide(t, f, auditArch, nr, 77777); got != want {
			t.Fatalf("%d denied: %#x", nr, got)
		}
	}
}

func TestBox_filesAndCommands(t *testing.T) {
	for _, level := range levels(t) {
		t.Run(string(level), func(t *testing.T) {
			s := open(t, Options{Level: level})
			b := newBox(t, s, Spec{})
			for name, data := range map[string]string{"in.txt": "one\ntwo\n", "/tmp/deep/er/file": "x", "/dev/shm/s": "y"} {
				if err := b.WriteFile(name, []byte(data), 0o640); err != nil {
					t.Fatal(err)
				}
			}
			end := run(t, b, sh("wc -l < in.txt; echo three >> in.txt; mkdir -p out; cp in.txt out/copy; echo problem >&2; exit 7"))
			if end.Reason != Exited || end.ExitCode != 7 || strings.TrimSpace(string(end.Stdout)) != "2" || string(end.Stderr) != "problem\n" {
				t.Errorf("%v %q %q", &end, end.Stdout, end.Stderr)
			}
			if data, err := b.ReadFile("/work/out/copy", 100); err != nil || string(data) != "one\ntwo\nthree\n" {
				t.Errorf("%q %v", data, err)
			}
			list, err := b.Walk("/work", 10)
			var names []string
			for _, e := range list {
				names = append(names, fmt.Sprint(e.Name, " ", e.Mode, " ", e.Size))
			}
			if want := "/work/in.txt -rw-r----- 14,/work/out drwxr-xr-x 0,/work/out/copy -rw-r----- 14"; err != nil || strings.Join(names, ",") != want {
				t.Errorf("walk: %v %v", names, err)
			}
			if _, err := b.ReadFile("missing", 10); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("missing file: %v", err)
			}
			if _, err := b.ReadFile("in.txt", 3); !errors.Is(err, ErrTooBig) {
				t.Errorf("big file: %v", err)
			}
			// Input, small and larger than any pipe, and a command that does not read it.
			big := make([]byte, 1<<20)
			for i := range big {
				big[i] = byte('a' + i%26)
			}
			if end := run(t, b, Command{Argv: []string{"cat"}, Stdin: []byte("hello")}); string(end.Stdout) != "hello" {
				t.Errorf("cat: %v %q", &end, end.Stdout)
			}
			if end := run(t, b, Command{Argv: []string{"wc", "-c"}, Stdin: big}); strings.TrimSpace(string(end.Stdout)) != fmt.Sprint(len(big)) {
				t.Errorf("wc: %v %q", &end, end.Stdout)
			}
			if end := run(t, b, Command{Argv: []string{"true"}, Stdin: big}); !end.OK() {
				t.Errorf("unread input: %v", &end)
			}
			if end := run(t, b, Command{Argv: []string{"nope"}}); end.Reason != ExecFailed || end.Errno != unix.ENOENT || end.Step != "start the program" {
				t.Errorf("no program: %v", &end)
			}
			if end := run(t, b, Command{Argv: []string{"true"}, Dir: "/work/none"}); end.Reason != ExecFailed || end.Step != "enter the directory" {
				t.Errorf("no directory: %v", &end)
			}
			if end := run(t, b, Command{Argv: []string{"sh", "-c", "pwd; echo $X"}, Dir: "/work/out", Env: []string{"X=1", "PATH=/bin"}}); !strings.HasSuffix(string(end.Stdout), "work/out\n1\n") {
				t.Errorf("directory and environment: %v %q", &end, end.Stdout)
			}
			if end := run(t, b, Command{Argv: []string{"sleep", "9"}, WallTimeout: 50 * time.Millisecond}); end.Reason != Wall || end.Wall > graceTime/2 {
				t.Errorf("shorter time: %v", &end)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			if _, err := b.Exec(context.Background(), sh("true")); !errors.Is(err, ErrClosed) {
				t.Errorf("after close: %v", err)
			}
			if _, err := b.ReadFile("in.txt", 3); !errors.Is(err, ErrClosed) {
				t.Errorf("after close: %v", err)
			}
		})
	}
}

func TestBox_oneCommandAtATime(t *testing.T) {
	levels(t)
	s := open(t, Options{})
	b := newBox(t, s, Spec{})
	done := make(chan Result)
	go func() { done <- run(t, b, sh("touch up; sleep 20")) }()
	for {
		if _, err := b.ReadFile("up", 1); err == nil { // files can be read meanwhile
			break
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := b.Exec(context.Background(), sh("true")); !errors.Is(err, ErrBusy) {
		t.Errorf("a second command: %v", err)
	}
	b.Kill()
	if end := <-done; end.Reason != Killed || end.Signal != unix.SIGKILL {
		t.Errorf("killed: %v", &end)
	}
	if end := run(t, b, sh("true")); !end.OK() {
		t.Errorf("after the kill: %v", &end)
	}
}

// TestBox_cpuRate holds CPUMilli against a busy loop.
func TestBox_cpuRate(t *testing.T) {
	levels(t)
	s := open(t, Options{})
	if s.cgroups == nil || s.cgroups.cpu == nil {
		t.Skip("no cpu cgroup on this host")
	}
	b := newBox(t, s, Spec{CPUMilli: 100, WallTimeout: 1500 * time.Millisecond})
	end := run(t, b, sh("while :; do :; done"))
	if used := end.CPUUser + end.CPUSystem; end.Reason != Wall || used > 400*time.Millisecond {
		t.Errorf("%v with %v of CPU, at most 0.1 of the time was allowed", &end, used)
	}
}

// TestBox_cgroupLimits runs into what the host's cgroups are said to enforce, and wants to be told so.
func TestBox_cgroupLimits(t *testing.T) {
	levels(t)
	s := open(t, Options{})
	if s.cgroups == nil {
		t.Skip("no cgroups on this host")
	}
	t.Logf("%s", s.Capabilities())
	if s.Capabilities().Grade("memory") == Enforced {
		b := newBox(t, s, Spec{MemoryBytes: 16 << 20, WallTimeout: 30 * time.Second})
		end := run(t, b, Command{Argv: []string{"tail", "/dev/zero"}}) // a line without an end
		if end.Reason != Memory || end.OOMKills == 0 || end.MemoryPeakBytes < 8<<20 || end.MemoryPeakBytes > 16<<20 {
			t.Errorf("memory: %v with %d OOM kills and a peak of %d bytes", &end, end.OOMKills, end.MemoryPeakBytes)
		}
	}
	if s.cgroups.pids != nil {
		b := newBox(t, s, Spec{PidsMax: 8, WallTimeout: 30 * time.Second})
		end := run(t, b, sh("for i in 1 2 3 4 5 6 7 8 9; do sleep 9 & done"))
		if end.Reason != Pids || end.PidsRefused == 0 {
			t.Errorf("processes: %v with %d refused: %s", &end, end.PidsRefused, end.Stderr)
		}
	}
	if s.cgroups.cpu != nil {
		b := newBox(t, s, Spec{CPUTime: 300 * time.Millisecond, CPUMilli: 300, WallTimeout: 30 * time.Second})
		end := run(t, b, sh("while :; do :; done"))
		if end.Reason != CPU || end.Wall < 500*time.Millisecond {
			t.Errorf("processor: %v; 0.3 s of it at a rate of 0.3 take a second", &end)
		}
	}
}

// TestV2Parents says where the folder of a Sandbox may lie in a v2 hierarchy.
func TestV2Parents(t *testing.T) {
	whole, container := hierarchy{"/sys/fs/cgroup", "/"}, hierarchy{"/sys/fs/cgroup", "/docker/1"}
	for name, row := range map[string]struct {
		v2        hierarchy
		own, base string
		want      []string
	}{
		"below ours, or beside it":       {whole, "/user/scope", "", []string{"/sys/fs/cgroup/user/scope", "/sys/fs/cgroup/user"}},
		"the root may hold processes":    {whole, "/", "", []string{"/sys/fs/cgroup"}},
		"a container's root is all":      {container, "/docker/1", "", []string{"/sys/fs/cgroup"}},
		"inside a container":             {container, "/docker/1/x", "", []string{"/sys/fs/cgroup/x", "/sys/fs/cgroup"}},
		"we have moved: as at first":     {whole, "/user/scope/host", "", []string{"/sys/fs/cgroup/user/scope", "/sys/fs/cgroup/user/scope/host"}},
		"a given base, and nothing else": {whole, "/user/scope", "/sys/fs/cgroup/given", []string{"/sys/fs/cgroup/given"}},
		"a name that only begins so":     {whole, "/hosts", "", []string{"/sys/fs/cgroup/hosts", "/sys/fs/cgroup"}},
	} {
		if got := v2Parents(row.v2, row.own, row.base); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// TestOpen_v2StaysWhereItIs: a process that is alone in its cgroup moves into a child for its first Sandbox, and no deeper for others.
func TestOpen_v2StaysWhereItIs(t *testing.T) {
	levels(t)
	own := func() string {
		list, err := ownCgroups()
		if err != nil {
			t.Fatal(err)
		}
		return list[""]
	}
	if first := open(t, Options{}); first.cgroups == nil || !first.cgroups.controllers[0].v2 {
		t.Skip("no v2 cgroups here")
	}
	before := own()
	open(t, Options{})
	if after := own(); after != before {
		t.Errorf("the second Open moved this process from %s to %s", before, after)
	}
}

// TestBox_bornInCgroup: with v2 alone a command is born in its cgroup. Without the way in by cgroup.procs it must be in it still.
func TestBox_bornInCgroup(t *testing.T) {
	levels(t)
	s := open(t, Options{})
	if s.cgroups == nil || s.cgroups.zygote < 0 {
		t.Skip("the host's cgroups are not version 2 alone")
	}
	b := newBox(t, s, Spec{MemoryBytes: 8 << 20, DiskBytes: 64 << 20, WallTimeout: 30 * time.Second})
	for _, fd := range b.leaf.procs {
		unix.Close(fd)
	}
	b.leaf.procs = nil
	if end := run(t, b, sh("head -c 60000000 /dev/zero > fill")); end.OOMKills == 0 {
		t.Errorf("no OOM kill in its cgroup: %v, peak %d", &end, end.MemoryPeakBytes)
	}
}

// TestBox_fullDiskThenExec: the memory limit is used up by files when the next command starts, so that it is the command's
// start that runs out of memory, while it still shares the zygote's address space.
func TestBox_fullDiskThenExec(t *testing.T) {
	levels(t)
	s := open(t, Options{})
	if s.Capabilities().Grade("memory") != Enforced {
		t.Skip("no memory cgroup on this host")
	}
	zygote := s.zygotePID()
	b := newBox(t, s, Spec{MemoryBytes: 8 << 20, DiskBytes: 64 << 20, WallTimeout: 5 * time.Second})
	for range 3 {
		end := run(t, b, sh("head -c 60000000 /dev/zero > fill"))
		t.Log(&end)
	}
	end := run(t, b, Command{Argv: []string{"true"}})
	t.Log(&end)
	if s.zygotePID() != zygote || !s.zygote.alive() {
		t.Fatal("the zygote died with the box")
	}
	if end, err := s.Run(context.Background(), Spec{}, Command{Argv: []string{"true"}}); err != nil || !end.OK() {
		t.Errorf("another box: %v %v", &end, err)
	}
}

func TestSandbox_closed(t *testing.T) {
	levels(t)
	s := open(t, Options{})
	b, err := s.NewBox(Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.NewBox(Spec{}); !errors.Is(err, ErrClosed) {
		t.Errorf("new box: %v", err)
	}
	if _, err := b.Exec(context.Background(), sh("true")); !errors.Is(err, ErrClosed) {
		t.Errorf("old box: %v", err)
	}
}

// TestSandbox_twoInAProcess has two sandboxes side by side: neither sees the other's limits, nor feels its end.
func TestSandbox_twoInAProcess(t *testing.T) {
	for _, level := range levels(t) {
		t.Run(string(level), func(t *testing.T) {
			first, second := open(t, Options{Level: level}), open(t, Options{Level: level})
			small, err := first.NewBox(Spec{MemoryBytes: 24 << 20, DiskBytes: 4 << 20})
			if err != nil {
				t.Fatal(err)
			}
			large, err := second.NewBox(Spec{MemoryBytes: 128 << 20})
			if err != nil {
				t.Fatal(err)
			}
			hungry := sh("head -c 48000000 /dev/zero | tail | wc -c") // tail keeps it all: it has no line
			if first.Capabilities().Grade("memory") == Enforced {
				if end, err := small.Exec(t.Context(), hungry); err != nil || end.OOMKills == 0 {
					t.Errorf("%v, %v; it must be out of memory", &end, err)
				}
			}
			if err := first.Close(); err != nil {
				t.Error(err)
			}
			if end, err := large.Exec(t.Context(), hungry); err != nil || !end.OK() || end.OOMKills != 0 {
				t.Errorf("%v, %v, %s; it has memory enough", &end, err, end.Stderr)
			}
			if end, err := second.Run(t.Context(), Spec{}, sh("echo on")); err != nil || string(end.Stdout) != "on\n" {
				t.Errorf("%v, %v", &end, err)
			}
		})
	}
}

func TestSandbox_mostBoxes(t *testing.T) {
	levels(t)
	s := open(t, Options{MaxBoxes: 3})
	settle(s) // the canary's slot is free when its init is gone
	for range 3 {
		if err := newBox(t, s, Spec{}).Ready(); err != nil {
			t.Fatal(err)
		}
	}
	end, err := s.Run(context.Background(), Spec{}, sh("true"))
	if err != nil || end.Reason != SetUp || end.Errno != unix.EAGAIN || !strings.Contains(end.Step, "MaxBoxes") {
		t.Errorf("a fourth box: %v %v", &end, err)
	}
}

func TestSandbox_readOnlyDirs(t *testing.T) {
	levels(t)
	dir, err := os.MkdirTemp("/var/tmp", "provegym-shown-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(dir+"/seen", []byte("yes"), 0o644); err != nil {
		t.Fatal(err)
	}
	// The directory itself is searchable by its owner only: what may be shown is what the host process may see.
	o := Options{ReadOnlyDirs: []string{dir}}
	for _, d := range systemDirs {
		if _, err := os.Stat(d); err == nil {
			o.ReadOnlyDirs = append(o.ReadOnlyDirs, d)
		}
	}
	os.Chmod(dir, 0o755)
	s := open(t, o)
	b := newBox(t, s, Spec{})
	if end := run(t, b, Command{Argv: []string{"cat", dir + "/seen"}}); string(end.Stdout) != "yes" {
		t.Errorf("%v %s", &end, end.Stderr)
	}
	if end := run(t, b, sh("echo no > "+dir+"/seen")); end.OK() {
		t.Error("it was written")
	}
}

func ExampleSandbox() {
	sb, err := Open(Options{HelperPath: builtHelper})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sb.Close()
	box, err := sb.NewBox(Spec{MemoryBytes: 64 << 20, WallTimeout: 5 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close()
	if err := box.WriteFile("/work/data.txt", []byte("b\na\n"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	end, err := box.Exec(context.Background(), Command{Argv: []string{"sort", "data.txt"}})
	fmt.Printf("%v %d %q %v\n", end.Reason, end.ExitCode, end.Stdout, err)
	// Output: exit 0 "a\nb\n" <nil>
}

// What keeps a program from starting is the command's fault or the host's, and each step is known to be either.
func TestResult_whoseFault(t *testing.T) {
	for _, step := range hostSteps {
		if !slices.Contains(steps, step) {
			t.Errorf("%q is no step", step)
		}
	}
	for _, r := range []Result{{Reason: Exited}, {Reason: Wall}, {Reason: ExecFailed, Step: "enter the directory"}, {Reason: ExecFailed, Step: "start the program"}} {
		if r.Infrastructure() {
			t.Errorf("%+v is said to be the host's", r)
		}
	}
	for _, r := range []Result{{Reason: SetUp}, {Reason: BoxDied}, {Reason: ExecFailed, Step: "enter the cgroup"}} {
		if !r.Infrastructure() {
			t.Errorf("%+v is said to be the command's", r)
		}
	}
}

package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Tests in which the host process is killed, stopped, or lives in a poorer environment: this program again, as "host MODE".

// host is such a process.
type host struct {
	t   *testing.T
	cmd *exec.Cmd
	out *bufio.Reader
	in  io.WriteCloser
}

// startHost starts one; configure may change how.
func startHost(t *testing.T, configure func(*exec.Cmd), mode string, args ...string) *host {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = append([]string{"host", mode}, args...)
	cmd.Env = append(os.Environ(), "PROVEGYM_TEST_HELPER="+builtHelper)
	cmd.Stderr = os.Stderr
	if configure != nil {
		configure(cmd)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return &host{t, cmd, bufio.NewReader(out), in}
}

// line reads what the host says next.
func (h *host) line() string {
	h.t.Helper()
	text, err := h.out.ReadString('\n')
	if err != nil {
		h.t.Fatalf("the host process said %q, then %v", text, err)
	}
	return strings.TrimSpace(text)
}

func hostFail(err error) {
	if err != nil {
		fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
		os.Exit(1)
	}
}

// hostMain is such a process from inside. Modes:
//
//	run N COMMAND  N boxes run a shell command; says the zygote's pid when all are up; then waits for its end
//	level          says level, whether there is a /proc, how a command ended, and why no higher level
//	big BYTES      makes that much memory resident, and says how long 40 boxes took, in ns
func hostMain(mode string, args []string) {
	if mode == "no-userns" { // in a user namespace of its own: there it may forbid further ones
		hostFail(os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0))
		mode = "level"
	}
	if mode == "masked" { // as container engines hide parts of /proc
		masked := 0
		for _, f := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sysrq-trigger", "/proc/kallsyms"} {
			if unix.Mount("/dev/null", f, "", unix.MS_BIND, "") == nil {
				masked++
			}
		}
		if masked == 0 {
			hostFail(fmt.Errorf("nothing in /proc could be masked"))
		}
		mode = "level"
	}
	if mode == "big" {
		n, _ := strconv.Atoi(args[0])
		if n > 0 {
			hostFail(touch(n, unix.MAP_PRIVATE))
		}
	}
	o := Options{HelperPath: os.Getenv("PROVEGYM_TEST_HELPER"), Level: Level(os.Getenv("PROVEGYM_TEST_LEVEL")), CgroupBase: os.Getenv("PROVEGYM_TEST_CGROUP")}
	if mode == "level" {
		o.CgroupBase = "none"
	}
	s, err := Open(o)
	hostFail(err)
	ctx := context.Background()
	switch mode {
	case "run":
		n, _ := strconv.Atoi(args[0])
		var up sync.WaitGroup
		for range n {
			up.Add(1)
			go func() {
				b, err := s.NewBox(Spec{WallTimeout: 4 * time.Second, PidsMax: 24})
				hostFail(err)
				hostFail(b.Ready())
				if len(args) > 2 {
					b.spec.WallTimeout = time.Hour
				}
				r, err := b.start(sh(args[1]), execOptions{})
				hostFail(err)
				up.Done()
				r.wait(ctx)
			}()
		}
		up.Wait()
		fmt.Println(s.zygotePID())
		io.Copy(io.Discard, os.Stdin)
	case "level":
		end, err := s.Run(ctx, Spec{}, sh("echo fine"))
		hostFail(err)
		c := s.Capabilities()
		fmt.Printf("%s proc=%v memory=%s %s%q refused=%q\n", c.Level, c.Proc, c.Grade("memory"), &end, end.Stdout, c.Refused)
	case "big":
		began := time.Now()
		for range 40 {
			end, err := s.Run(ctx, Spec{}, Command{Argv: []string{"true"}})
			hostFail(err)
			if !end.OK() {
				hostFail(fmt.Errorf("ended with %v", &end))
			}
		}
		fmt.Println(time.Since(began).Nanoseconds())
	}
	hostFail(s.Close())
	os.Exit(0)
}

// family lists a process and its descendants with their start times.
func family(pid int) map[int]string {
	list := map[int]string{pid: startTime(pid)}
	for grew := true; grew; {
		grew = false
		dirs, _ := os.ReadDir("/proc")
		for _, d := range dirs {
			p, err := strconv.Atoi(d.Name())
			if err != nil || list[p] != "" {
				continue
			}
			data, _ := os.ReadFile("/proc/" + d.Name() + "/stat")
			_, rest, _ := strings.Cut(string(data), ") ")
			if f := strings.Fields(rest); len(f) > 1 {
				if parent, _ := strconv.Atoi(f[1]); list[parent] != "" {
					list[p] = startTime(p)
					grew = true
				}
			}
		}
	}
	return list
}

// awaitFamily waits until a family has n members.
func awaitFamily(t *testing.T, pid, n int) map[int]string {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) { // a look costs CPU that the boxes need
		all := family(pid)
		if len(all) >= n {
			return all
		}
		if time.Now().After(end) {
			t.Fatalf("only %d processes of %d: %v", len(all), n, all)
		}
	}
}

// alive counts those of a family that still run; zombies are dead.
func alive(list map[int]string) (n int, names []string) {
	for pid, start := range list {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && startTime(pid) == start && !strings.Contains(string(data), ") Z ") {
			n++
			names = append(names, string(data[:min(len(data), 60)]))
		}
	}
	return n, names
}

func TestHost_killed(t *testing.T) {
	for _, level := range levels(t) {
		t.Run(string(level), func(t *testing.T) {
			t.Setenv("PROVEGYM_TEST_LEVEL", string(level))
			h := startHost(t, nil, "run", "8", "sleep 100 & (setsid sleep 100 &) ; trap '' TERM HUP; sleep 100", "long")
			zygote, err := strconv.Atoi(h.line())
			if err != nil {
				t.Fatal(err)
			}
			all := awaitFamily(t, zygote, 1+8*4)
			h.cmd.Process.Signal(syscall.SIGKILL)
			h.cmd.Wait()
			began := time.Now()
			n, names := alive(all)
			for n > 0 && time.Since(began) < 3*time.Second {
				time.Sleep(5 * time.Millisecond)
				n, names = alive(all)
			}
			took := time.Since(began)
			t.Logf("%d processes dead %v after the host", len(all), took.Round(time.Millisecond))
			if n > 0 { // some 10 ms on a quiet machine; here others may be running
				t.Errorf("%d alive after %v: %q", n, took, names)
			}
			for _, dir := range foldersOf(h.cmd.Process.Pid) {
				leaves, _ := os.ReadDir(dir)
				for _, l := range leaves {
					if strings.HasPrefix(l.Name(), "box-") {
						t.Errorf("a box's cgroup is left: %s/%s", dir, l.Name())
					}
				}
			}
			// What a killed process cannot remove by itself, the next one does.
			open(t, Options{Level: level})
			if left := foldersOf(h.cmd.Process.Pid); level != LevelNamespaces && level != LevelPlain && len(left) > 0 {
				t.Errorf("left after the next Open: %v", left)
			}
			if left, _ := filepath.Glob(filepath.Join(os.TempDir(), fmt.Sprintf("%s%d-*", plainPrefix, h.cmd.Process.Pid))); len(left) > 0 {
				t.Errorf("left after the next Open: %v", left)
			}
		})
	}
}

func TestHost_stopped(t *testing.T) {
	levels(t)
	h := startHost(t, nil, "run", "3", "sleep 100 & sleep 100") // WallTimeout is 4 s
	zygote, err := strconv.Atoi(h.line())
	if err != nil {
		t.Fatal(err)
	}
	before := awaitFamily(t, zygote, 1+3*3)
	h.cmd.Process.Signal(syscall.SIGSTOP)
	after := family(zygote)
	for end := time.Now().Add(20 * time.Second); len(after) > 1+3 && time.Now().Before(end); after = family(zygote) {
		time.Sleep(50 * time.Millisecond)
	}
	h.cmd.Process.Signal(syscall.SIGCONT)
	if len(after) > 1+3 {
		t.Errorf("%d processes before, %d after the limit; want only the zygote and 3 inits then", len(before), len(after))
	}
	h.in.Close()
	if err := h.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// asRootOfUserNS gives the host process a user namespace in which it is root, and a mount namespace.
func asRootOfUserNS(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
}

func TestHost_userNamespacesOff(t *testing.T) {
	if levels(t)[0] == LevelPlain {
		t.Skip("this host has none anyway")
	}
	h := startHost(t, asRootOfUserNS, "no-userns")
	if got := h.line(); landlockABI() == 0 {
		if !strings.Contains(got, "landlock is missing") || !strings.Contains(got, "sysctl user.max_user_namespaces=") {
			t.Errorf("got %s", got)
		}
	} else if !strings.HasPrefix(got, "plain") || !strings.Contains(got, `exit 0`) {
		t.Errorf("got %s", got)
	} else {
		t.Log(got)
	}
}

func TestHost_procMasked(t *testing.T) {
	if levels(t)[0] == LevelPlain {
		t.Skip("this host has no namespaces")
	}
	h := startHost(t, asRootOfUserNS, "masked")
	if got := h.line(); !strings.HasPrefix(got, "namespaces proc=false memory=per-process") || !strings.Contains(got, `exit 0`) {
		t.Errorf("got %s", got)
	} else {
		t.Log(got)
	}
}

func TestZygoteKilled_everyRunEnds(t *testing.T) {
	for _, level := range levels(t) {
		t.Run(string(level), func(t *testing.T) {
			s := open(t, Options{Level: level})
			const n = 6
			ends := make(chan Result, n)
			for range n {
				b := newBox(t, s, Spec{})
				if err := b.Ready(); err != nil {
					t.Fatal(err)
				}
				go func() {
					end, err := b.Exec(context.Background(), sh("sleep 5"))
					if err != nil {
						t.Error(err)
					}
					ends <- end
				}()
			}
			time.Sleep(50 * time.Millisecond)
			killed := time.Now()
			syscall.Kill(s.zygotePID(), syscall.SIGKILL)
			for range n {
				end := <-ends
				// Without namespaces boxes do not depend on the zygote: they run on.
				if level != LevelPlain && (end.Reason != BoxDied || time.Since(killed) > 4*time.Second) {
					t.Errorf("ended with %v, %v after the kill", &end, time.Since(killed))
				}
			}
			end, err := s.Run(context.Background(), Spec{}, Command{Argv: []string{"true"}})
			if err != nil || !end.OK() {
				t.Errorf("the next run ended with %v %v", &end, err)
			}
		})
	}
}

// The first box after a zygote's death comes before anybody has noticed that.
func TestZygoteKilled_unnoticed(t *testing.T) {
	levels(t)
	s := open(t, Options{})
	z := s.zygote
	syscall.Kill(z.pid, syscall.SIGKILL)
	<-z.gone
	s.zygote = &zygote{conn: z.conn, pidfd: z.pidfd, pid: z.pid, flags: z.flags, gone: make(chan struct{})} // nobody watches it
	if end, err := s.Run(t.Context(), Spec{}, Command{Argv: []string{"true"}}); err != nil || !end.OK() {
		t.Errorf("the next run ended with %v %v", &end, err)
	}
}

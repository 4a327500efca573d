package sandbox

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	helper "provegym/sandbox/zygote"
	"provegym/sandbox/zygote/compile"
)

var long = flag.Bool("long", false, "run the leak test with 10,000 boxes instead of 120")

// builtHelper is where TestMain puts a helper if the embedded one is missing or stale, as on a clean clone.
var builtHelper string

func TestMain(m *testing.M) {
	switch {
	case os.Args[0] == "attack":
		runInside(os.Args[1:])
	case os.Args[0] == "host":
		hostMain(os.Args[1], os.Args[2:])
	}
	flag.Parse()
	if given := os.Getenv("PROVEGYM_TEST_HELPER"); given != "" { // a child of a run that has built one
		builtHelper = given
	} else if _, err := helper.Program(helper.HelperName(runtime.GOARCH)); err != nil {
		dir, err2 := os.MkdirTemp("", "provegym-helper-")
		if err2 == nil {
			_, err2 = compile.Build(os.Getenv("CC"), runtime.GOARCH, "zygote", dir)
		}
		if err2 != nil {
			fmt.Fprintf(os.Stderr, "%v\nand it cannot be built here: %v\n", err, err2)
			os.Exit(1)
		}
		os.Chmod(dir, 0o755)
		fmt.Printf("%v\nthis run uses one built just now\n", err)
		builtHelper = filepath.Join(dir, helper.HelperName(runtime.GOARCH))
	}
	if builtHelper != "" {
		warmPath = filepath.Join(filepath.Dir(builtHelper), helper.WarmName(runtime.GOARCH))
	}
	code := m.Run()
	if builtHelper != "" && os.Getenv("PROVEGYM_TEST_HELPER") == "" {
		os.RemoveAll(filepath.Dir(builtHelper))
	}
	os.Exit(code)
}

// open gives a sandbox that is closed at the end of the test, after which nothing of it may be left.
func open(t testing.TB, o Options) *Sandbox {
	t.Helper()
	if o.HelperPath == "" {
		o.HelperPath = builtHelper
	}
	if o.CgroupBase == "" {
		o.CgroupBase = os.Getenv("PROVEGYM_TEST_CGROUP")
	}
	time.Sleep(time.Nanosecond) // the first timer of a process opens two descriptors for good
	before := count()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		before.compare(t)
	})
	return s
}

func newBox(t testing.TB, s *Sandbox, spec Spec) *Box {
	t.Helper()
	b, err := s.NewBox(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close box: %v", err)
		}
	})
	return b
}

func run(t testing.TB, b *Box, c Command) Result {
	t.Helper()
	end, err := b.Exec(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

func sh(script string) Command { return Command{Argv: []string{"sh", "-c", script}} }

// counts is what must not grow.
type counts struct {
	processes, fds, goroutines, mounts, cgroups, dirs int
}

// count looks at this process and at the host.
func count() counts {
	c := counts{goroutines: runtime.NumGoroutine()}
	fds, _ := os.ReadDir("/proc/self/fd")
	c.fds = len(fds)
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	c.mounts = bytes.Count(mounts, []byte("\n"))
	c.processes = len(processesOfBoxes())
	c.cgroups = len(foldersOf(os.Getpid()))
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), fmt.Sprintf("%s%d-*", plainPrefix, os.Getpid())))
	c.dirs = len(dirs)
	return c
}

// compare fails the test if anything is left. What dies asynchronously gets time.
func (before counts) compare(t testing.TB) {
	t.Helper()
	var now counts
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		now = count()
		if now.processes <= before.processes && now.fds <= before.fds && now.goroutines <= before.goroutines && now.mounts <= before.mounts &&
			now.cgroups <= before.cgroups && now.dirs <= before.dirs {
			return
		}
	}
	t.Errorf("left behind: before %+v, after %+v\n%v", before, now, processesOfBoxes())
	buf := make([]byte, 1<<16)
	t.Logf("%s", buf[:runtime.Stack(buf, true)])
}

// processesOfBoxes lists zygotes and inits of this process, which carry its number in their names, what descends from them, and
// whatever has its working directory in a box of the plain level.
func processesOfBoxes() []string {
	var list []string
	stats, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, f := range stats {
		name, err := os.ReadFile(f)
		dir := filepath.Dir(f)
		if err != nil || zombie(dir) {
			continue
		}
		cwd, _ := os.Readlink(dir + "/cwd")
		if strings.TrimSpace(string(name)) == fmt.Sprintf("pgym-%d", os.Getpid()) || strings.HasPrefix(cwd, filepath.Join(os.TempDir(), fmt.Sprintf("%s%d-", plainPrefix, os.Getpid()))) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			for p := range family(pid) {
				if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p)); err == nil && !zombie(fmt.Sprint("/proc/", p)) {
					list = append(list, fmt.Sprint(p, " ", strings.TrimSpace(string(comm))))
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// zombie says that a process is dead, and its parent (of a zygote: the host's init) has not yet taken notice.
func zombie(dir string) bool {
	stat, err := os.ReadFile(dir + "/stat")
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}

// foldersOf lists the cgroup folders of a process.
func foldersOf(pid int) []string {
	var list []string
	filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), fmt.Sprintf("%s%d-", folderPrefix, pid)) {
			list = append(list, path)
		}
		return nil
	})
	return list
}

// testProgram is this program in memory, to be run in boxes.
func testProgram(t testing.TB) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.MemfdCreate("attack", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(fd, data); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// best is found once: a look costs a zygote and a box.
var best = sync.OnceValues(func() (Capabilities, error) {
	s, err := Open(Options{HelperPath: builtHelper, CgroupBase: os.Getenv("PROVEGYM_TEST_CGROUP")})
	if err != nil {
		return Capabilities{}, err
	}
	return s.Capabilities(), s.Close()
})

// levels are those that this process can try: as it is, and lower ones.
func levels(t testing.TB) []Level {
	t.Helper()
	best, err := best()
	if err != nil {
		t.Skipf("NO SANDBOX AT ALL on this host, nothing was tested: %v", err)
	}
	if want := os.Getenv("PROVEGYM_TEST_BEST"); want != "" && want != string(best.Level) {
		t.Fatalf("the best level here is %s, and it must be %s\n%s", best.Level, want, best)
	}
	all := []Level{LevelFull, LevelDelegated, LevelNamespaces, LevelPlain}
	list := []Level{best.Level}
	for _, l := range all[slices.Index(all, best.Level)+1:] {
		if l != LevelDelegated && (l != LevelPlain || landlockABI() > 0 || os.Getuid() == 0) {
			list = append(list, l)
		}
	}
	t.Logf("RUNNING AS uid %d AT LEVELS %v (best here: %s; refused: %s)", os.Getuid(), list, best.Level, strings.Join(best.Refused, "; "))
	return list
}

// asUser runs a test of this program again as a plain user without any cgroup of its own, and reports its lines as this test's.
func asUser(t *testing.T, pattern string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("this run is a plain user's already")
	}
	dir, err := os.MkdirTemp("", "provegym-user-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	os.Chmod(dir, 0o755)
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "sandbox.test")
	if err := os.WriteFile(program, data, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.v", "-test.run", pattern)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "PROVEGYM_TEST_HELPER=" + builtHelper}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	out, err := cmd.CombinedOutput()
	t.Logf("as uid 12345:\n%s", out)
	if err != nil {
		t.Errorf("as uid 12345: %v", err)
	}
	if bytes.Contains(out, []byte("no tests to run")) || !bytes.Contains(out, []byte("--- PASS")) && err == nil {
		t.Error("nothing ran")
	}
}

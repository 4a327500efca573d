package sandbox

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var seed = flag.Uint64("seed", 1, "of the tests with randomness")

// TestLeak_mixedBoxes runs many boxes of every kind side by side and then counts. -long runs 10,000 of them.
//
//	rerun: go test ./sandbox -run TestLeak_mixedBoxes -seed N
func TestLeak_mixedBoxes(t *testing.T) {
	n := 120
	if *long {
		n = 10_000
	}
	t.Logf("seed %d, %d boxes", *seed, n)
	for _, level := range levels(t) {
		t.Run(string(level), func(t *testing.T) {
			if level == LevelPlain {
				n = min(n, 300) // its kill looks through all of /proc; it is there for the worst host, not for speed
			}
			s := open(t, Options{Level: level})
			mixed(t, s, 64, *seed+1) // first touches: buffers, slots, dead cgroups
			settle(s)
			before, memory := count(), zygoteMemory(t, s)
			fdsBefore := zygoteFDs(s)
			began := time.Now()
			kinds := mixed(t, s, n, *seed)
			t.Logf("%d boxes in %v: %v", n, time.Since(began).Round(time.Millisecond), kinds)
			settle(s)
			before.compare(t)
			if after := zygoteMemory(t, s); after > memory+memory/4+512 {
				t.Errorf("the zygote grew from %d to %d KiB", memory, after)
			} else {
				t.Logf("zygote: %d KiB before, %d after", memory, after)
			}
			// A slot keeps its network namespace, and how many slots were ever in use at a time is a matter of scheduling.
			if after := zygoteFDs(s); after > fdsBefore+16 {
				t.Errorf("the zygote has %d descriptors, before %d", after, fdsBefore)
			}
			if kids := len(family(s.zygotePID())) - 1; kids != 0 {
				t.Errorf("the zygote has %d children", kids)
			}
			if s.cgroups != nil {
				for _, c := range s.cgroups.controllers {
					list, _ := os.ReadDir(c.dir)
					for _, d := range list {
						if d.IsDir() && !(c.v2 && d.Name() == "zygote") { // that one lives as long as the sandbox
							t.Errorf("cgroup %s/%s is left", c.dir, d.Name())
						}
					}
				}
			}
		})
	}
}

// settle waits until inits of closed boxes are gone.
func settle(s *Sandbox) {
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end) && len(family(s.zygotePID())) > 1; {
		time.Sleep(5 * time.Millisecond)
	}
	runtime.GC()
}

func zygoteMemory(t *testing.T, s *Sandbox) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.zygotePID()))
	if err != nil {
		t.Fatal(err)
	}
	kib := 0
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			fmt.Sscan(v, &kib)
		}
	}
	return kib
}

// zygoteFDs counts the zygote's descriptors, -1 where we may not look.
func zygoteFDs(s *Sandbox) int {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.zygotePID()))
	if err != nil {
		return -1
	}
	return len(list)
}

// mixed runs n boxes, eight at a time, and counts the ends by kind. Every end is checked.
func mixed(t *testing.T, s *Sandbox, n int, seed uint64) map[string]int {
	t.Helper()
	type kind struct {
		name   string
		weight int
		run    func(context.Context) error
	}
	expect := func(spec Spec, c Command, want ...Reason) func(context.Context) error {
		return func(ctx context.Context) error {
			end, err := s.Run(ctx, spec, c)
			if err != nil {
				return err
			}
			for _, w := range want {
				if end.Reason == w {
					return nil
				}
			}
			return fmt.Errorf("%q ended with %v, want %v: %s", c.Argv, &end, want, end.Stderr)
		}
	}
	small := Spec{MemoryBytes: 16 << 20, WallTimeout: 20 * time.Second}
	oom := Command{Argv: []string{"tail", "/dev/zero"}} // a line without an end: grows as fast as memory is given
	const cpu = 10 * time.Second                        // where sh takes tens of milliseconds to start, the clock shall still be what ends it
	kinds := []kind{
		{"true", 50, expect(Spec{}, Command{Argv: []string{"true"}}, Exited)},
		{"daemon", 10, expect(Spec{}, sh("(setsid sleep 100 &) ; sleep 100 & echo out"), Exited)},
		{"timeout", 10, expect(Spec{WallTimeout: 50 * time.Millisecond, CPUTime: cpu}, sh("sleep 100 & sleep 100"), Wall)},
		{"memory", 6, expect(small, oom, Memory, Exited, Signaled)},
		{"suicide", 6, expect(Spec{}, sh("kill -9 $$"), Signaled)},
		{"exec_failed", 6, expect(Spec{}, Command{Argv: []string{"/nonexistent"}}, ExecFailed)},
		{"flood", 3, expect(Spec{}, sh("yes"), Output)},
		{"fork_bomb", 2, expect(Spec{WallTimeout: 100 * time.Millisecond, CPUTime: cpu, PidsMax: 12}, sh("f() { f | f & }; f; sleep 5"), Wall, Exited, Pids, Signaled)},
		{"cancelled", 3, func(context.Context) error {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			return expect(Spec{}, sh("sleep 100"), Killed)(ctx)
		}},
		{"abandoned_at_once", 2, func(context.Context) error {
			b, err := s.NewBox(Spec{})
			if err != nil {
				return err
			}
			return b.Close()
		}},
		{"abandoned_ready", 1, func(context.Context) error {
			b, err := s.NewBox(Spec{})
			if err != nil {
				return err
			}
			return errors.Join(b.Ready(), b.WriteFile("x", []byte("x"), 0o644), b.Close())
		}},
		{"abandoned_running", 2, func(ctx context.Context) error {
			b, err := s.NewBox(Spec{})
			if err != nil {
				return err
			}
			done := make(chan error, 1)
			go func() {
				end, err := b.Exec(ctx, sh("sleep 100 & sleep 100"))
				if err == nil && end.Reason != Killed && end.Reason != BoxDied {
					err = fmt.Errorf("abandoned while running: %v", &end)
				} else if errors.Is(err, ErrClosed) {
					err = nil
				}
				done <- err
			}()
			time.Sleep(3 * time.Millisecond)
			err = b.Close()
			return errors.Join(err, <-done)
		}},
	}
	var list []int
	for i, k := range kinds {
		for range k.weight {
			list = append(list, i)
		}
	}
	r := rand.New(rand.NewPCG(seed, 0))
	jobs := make(chan int)
	counts := map[string]int{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range jobs {
				if err := kinds[i].run(context.Background()); err != nil {
					t.Errorf("%s: %v", kinds[i].name, err)
				}
			}
		}()
	}
	for range n {
		i := list[r.IntN(len(list))]
		counts[kinds[i].name]++
		jobs <- i
	}
	close(jobs)
	wg.Wait()
	return counts
}

// TestLeak_asUser is the same as a plain user.
func TestLeak_asUser(t *testing.T) { asUser(t, "^TestLeak_mixedBoxes$") }

// TestBoxesDoNotSeeEachOther has one box look for what another one has.
func TestBoxesDoNotSeeEachOther(t *testing.T) {
	program := testProgram(t)
	for _, level := range levels(t) {
		t.Run(string(level), func(t *testing.T) {
			s := open(t, Options{Level: level})
			if s.Capabilities().Grade("files") == None {
				t.Skip("a documented gap: files is graded none")
			}
			seen, seer := newBox(t, s, Spec{PidsMax: 24}), newBox(t, s, Spec{PidsMax: 24})
			argv := func(name string) Command {
				c := Command{Argv: []string{"attack", name}, Env: []string{"ONLY=this"}}
				if level == LevelPlain {
					c.Argv = append(c.Argv, "-plain")
				}
				return c
			}
			r, err := seen.start(argv("surveyed"), execOptions{program: program})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan Result)
			go func() { ended <- r.wait(context.Background()) }()
			for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				if _, err := seen.ReadFile("up", 10); err == nil {
					break
				} else if time.Now().After(end) {
					t.Fatal(err)
				}
			}
			r2, err := seer.start(argv("survey"), execOptions{program: program})
			if err != nil {
				t.Fatal(err)
			}
			if end := r2.wait(context.Background()); !end.OK() {
				t.Errorf("%v\n%s%s", &end, end.Stdout, end.Stderr)
			}
			seen.Kill()
			if end := <-ended; end.Reason != Killed {
				t.Errorf("the other box: %v", &end)
			}
		})
	}
}

// The folder in which boxes have their cgroups may be removed while no box is open: by a second sandbox of the process that is closed,
// or by somebody's clean-up.
func TestCgroupFolder_removedMeanwhile(t *testing.T) {
	first := open(t, Options{})
	if first.cgroups == nil || first.cgroups.controllers[0].v2 {
		t.Skip("no v1 cgroups here: see make doctor")
	}
	second, err := Open(Options{HelperPath: builtHelper})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, c := range first.cgroups.controllers {
			removeFolder(c.dir)
		}
		b := newBox(t, first, Spec{})
		if end := run(t, b, sh(":")); !end.OK() {
			t.Error(&end)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

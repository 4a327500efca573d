package terminal

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"provegym/gym"
	"provegym/gym/vector"
)

var (
	episodes = flag.Int("hostile", 0, "episodes of TestHostile; 0 for each attack once")
	rows     = flag.Int("rows", 48, "episodes of TestHostile that run side by side")
	seed     = flag.Uint64("seed", 1, "of TestHostile's choices")
)

// hashTree covers names, modes, sizes and times below a directory, and what small files hold.
func hashTree(t *testing.T, dir string, content bool) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // not ours to read, then and now
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		fmt.Fprintln(h, path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		if content && info.Mode().IsRegular() {
			data, _ := os.ReadFile(path)
			h.Write(data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// ours are the processes that this one has brought about, the sandbox's zygotes and inits among them, which carry its number in their
// names, with all that runs in boxes, as the host sees it. The dead that nobody has taken notice of yet do not count.
func ours() map[int]string {
	parents, names, own := map[int]int{}, map[int]string{}, map[int]string{}
	list, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range list {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // gone
		}
		pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
		end := bytes.LastIndexByte(data, ')')
		if f := strings.Fields(string(data[end+1:])); f[0] != "Z" {
			parents[pid], _ = strconv.Atoi(f[1])
			names[pid] = string(data[bytes.IndexByte(data, '(')+1 : end])
		}
	}
	for pid := range parents {
		for at := pid; at > 1; at = parents[at] {
			if parents[at] == os.Getpid() || names[at] == fmt.Sprintf("pgym-%d", os.Getpid()) {
				own[pid] = names[pid]
				break
			}
		}
	}
	return own
}

func idle() (n int) {
	shelf.Lock()
	defer shelf.Unlock()
	return len(shelf.bodies)
}

// Batches of episodes whose agents run nothing but attacks: they end in time, each end is typed, nobody is paid, and the host is as
// it was.
func TestHostile(t *testing.T) {
	n := *episodes
	if n == 0 {
		n = len(hostile)
	}
	t.Logf("rerun: go test ./packs/terminal -run TestHostile -seed %d -hostile %d -rows %d", *seed, *episodes, *rows)
	bait := t.TempDir()
	os.Chmod(bait, 0o777)
	for i := range 20 {
		if err := os.WriteFile(filepath.Join(bait, fmt.Sprint("bait", i)), []byte("precious"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	guard := exec.Command("sleep", "3600") // that whoever kills all would kill
	if err := guard.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { guard.Process.Kill(); guard.Wait() }()
	here, _ := os.Getwd()
	hashes := func() (out []string) {
		for _, dir := range []string{bait, here} {
			out = append(out, hashTree(t, dir, true))
		}
		for _, dir := range []string{"/etc", "/usr/bin", "/usr/lib", "/boot"} {
			out = append(out, hashTree(t, dir, false))
		}
		host, _ := os.Hostname()
		return append(out, host)
	}
	first, err := execute(&world{now: &tree{list: []entry{{home, &inode{mode: fs.ModeDir | 0o755}}}}}, ":") // the zygote is up from here on
	if err != nil {
		t.Fatal(err)
	}
	drop(first.seal)
	if !seesBoxes(t) {
		t.Fatal("this test would not see a process that is left behind in a box")
	}
	before, had := hashes(), len(ours())

	k := min(*rows, n)
	v, err := vector.New(vector.Config{Sampler: vector.Sampler{Pack: Pack, Dials: []gym.Setting{{Dial: "slack", Value: "1.5"}}}, NumEnvs: k, Autoreset: vector.SameStep})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	io := buffers(k)
	if err := v.Bind(io); err != nil {
		t.Fatal(err)
	}
	seeds, has := make([]uint64, k), bytes.Repeat([]byte{1}, k)
	for i := range seeds {
		seeds[i] = *seed + uint64(i)
	}
	if err := v.Reset(seeds, has, nil); err != nil {
		t.Fatal(err)
	}
	s := gym.NewKey(*seed, "hostile").Stream()
	next, ended, steps, slowest := 0, 0, 0, time.Duration(0)
	ends, tried := map[string]int{}, map[string]int{}
	began := time.Now()
	for ended < n {
		io.ActionText = io.ActionText[:0]
		for i := range k {
			call := answerOf(uint64(s.IntN(2)), uint64(s.IntN(len(codes))), []uint64{s.Uint64() >> 24})
			if io.Calls[i] == 0 || io.Began[i] == 1 || s.IntN(3) > 0 && *episodes > 0 {
				a := hostile[next%len(hostile)]
				if next++; next > len(hostile) {
					a = gym.Pick(&s, hostile)
				}
				tried[a.name]++
				call = runs(a.command)
			}
			io.ActionText = Pack.AppendCall(io.ActionText, &call)
			io.ActionOff[i+1] = uint32(len(io.ActionText))
		}
		v.SetActionText(io.ActionText)
		at := time.Now()
		if err := v.Step(); err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(at))
		steps++
		for i := range k {
			if io.Terminated[i]|io.Truncated[i] == 0 {
				continue
			}
			ended++
			ends[gym.Outcome(io.Outcome[i]).String()+" "+gym.Limit(io.Limit[i]).String()]++
			if io.Outcome[i] == uint8(gym.Running) || io.Outcome[i] == uint8(gym.CheckError) || io.Reward[i] != 0 {
				t.Errorf("an episode ended as %v with reward %v", gym.Outcome(io.Outcome[i]), io.Reward[i])
			}
			if io.Outcome[i] == uint8(gym.Invalid) {
				shown, _ := v.Shown(i)
				t.Errorf("an agent made its episode invalid: %+v", shown)
			}
		}
	}
	took := time.Since(began)
	t.Logf("%d episodes of %d rows in %v, %d steps, the slowest %v; %d kinds of attack; ends %v", ended, k, took.Round(time.Second), steps,
		slowest.Round(time.Millisecond), len(tried), ends)
	if len(tried) != len(hostile) {
		t.Errorf("%d of %d attacks were tried", len(tried), len(hostile))
	}
	// A step waits for its slowest command: ten seconds, and what it takes to read and close. A busy machine is given ten times that.
	if limit := time.Duration(steps+1) * 10 * boxSpec.WallTimeout; took > limit {
		t.Errorf("it took %v, more than %v", took, limit)
	}
	deadline := time.Now().Add(20 * time.Second)
	for idle() > 0 || len(ours()) > had {
		if time.Now().After(deadline) {
			t.Errorf("left behind: %d boxes, processes %v", idle(), ours())
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if after := hashes(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the host has changed:\n%v\n%v", before, after)
	}
	if err := guard.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a process of the host is gone: %v", err)
	}
}

// TestHostile_alone says of each attack how it ended, and that what it leaves is a world like any other: it can be copied, digested
// and worked on.
func TestHostile_alone(t *testing.T) {
	c, err := Pack.Condition("purge")
	if err != nil {
		t.Fatal(err)
	}
	built, err := build(gym.Task{Condition: c, Seed: *seed})
	if err != nil {
		t.Fatal(err)
	}
	w := built.World.(*world)
	for _, a := range quick {
		at := &world{now: w.now}
		r, err := execute(at, a.command)
		if err != nil {
			t.Errorf("%s: %v", a.name, err)
			continue
		}
		copied, err := execute(&world{now: r.now}, ":") // in a box of its own
		if err != nil {
			t.Errorf("%s: its files cannot be copied: %v", a.name, err)
			continue
		}
		drop(copied.seal)
		drop(r.seal)
		compare(r.now, copied.now, func(name string, was, is *inode) {
			t.Errorf("%s: %q is not copied as it was: %t, %t", a.name, name, was != nil, is != nil)
		})
		if r.undone != "" && r.now != w.now {
			t.Errorf("%s: undone, and something is new", a.name)
		}
		t.Logf("%-32s %v %s", a.name, &r.Result, r.undone)
	}
}

// seesBoxes looks whether ours lists what runs in a box.
func seesBoxes(t *testing.T) bool {
	t.Helper()
	done := make(chan error)
	go func() {
		r, err := execute(&world{now: &tree{list: []entry{{home, &inode{mode: fs.ModeDir | 0o755}}}}}, "sleep 1")
		drop(r.seal)
		done <- err
	}()
	seen := false
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return seen
		case <-time.After(5 * time.Millisecond):
			sleepers := 0
			for _, name := range ours() {
				if name == "sleep" {
					sleepers++
				}
			}
			seen = seen || sleepers == 2 // the guard is one
		}
	}
}

func buffers(k int) *vector.IO {
	return &vector.IO{ActionOff: make([]uint32, k+1), Reward: make([]float64, k), Terminated: make([]uint8, k), Truncated: make([]uint8, k),
		Outcome: make([]uint8, k), Limit: make([]uint8, k), Components: make([]uint8, k), Calls: make([]int32, k), Began: make([]uint8, k),
		Obs: vector.Obs{Text: &vector.Text{}}, Final: vector.Obs{Text: &vector.Text{}}, Task: &vector.Text{}}
}

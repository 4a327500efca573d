package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"provegym/gym"
)

// Set in the environment of this test binary when it runs again as a process that records until it is killed, or that
// holds the file until its input ends.
const (
	killedPath = "PROVEGYM_TEST_RECORD"
	holderPath = "PROVEGYM_TEST_HOLD"
	lifeNumber = "PROVEGYM_TEST_LIFE" // which recording process this is; a label of its episodes
)

// recordUntilKilled records from four goroutines and prints, after each flush, how many episodes every one of them has ended.
func recordUntilKilled(path string) {
	tr, err := Open(path, run, Options{Resume: true})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	life, err := strconv.ParseInt(os.Getenv(lifeNumber), 10, 64)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for round := 1; ; round++ {
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				var ep gym.Episode
				for i := range 5 {
					n := int64((round-1)*5 + i)
					s := gym.NewKey(uint64(n), "killed").At(uint64(g)).Stream()
					err := ep.Start(task(steady, s.Uint64()), gym.Options{View: gym.View(g & 1), Recorder: tr, Labels: gym.Labels{Group: int64(g), Slot: n, Iteration: life}})
					if err == nil {
						err = playRandom(&ep, gym.View(g&1), &s, 1000)
					}
					if err != nil {
						fmt.Println(err)
						os.Exit(1)
					}
				}
			})
		}
		wg.Wait()
		if round%3 == 0 {
			if err := tr.Mark(int64(round)); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		} else if _, err := tr.Flush(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("acknowledged", round*5)
	}
}

func hold(path string) {
	tr, err := Open(path, run, Options{})
	fmt.Println("opened", err)
	io.Copy(io.Discard, os.Stdin)
	if err == nil {
		tr.Close()
	}
	os.Exit(0)
}

func again(t *testing.T, environ ...string) (*exec.Cmd, *bufio.Scanner, io.WriteCloser) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), environ...)
	out, err := cmd.StdoutPipe()
	must(t, err)
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	return cmd, bufio.NewScanner(out), in
}

func TestKill_acknowledgedEpisodesSurvive(t *testing.T) {
	s := stream(t, "kill")
	path := filepath.Join(t.TempDir(), "trace.db") // one file, killed again and again
	for kill := range int64(8) {
		cmd, lines, _ := again(t, killedPath+"="+path, fmt.Sprint(lifeNumber, "=", kill))
		acks := 1 + s.IntN(12)
		acknowledged := int64(0)
		for range acks {
			if !lines.Scan() {
				t.Fatal("the recording process ended by itself")
			}
			if _, err := fmt.Sscanf(lines.Text(), "acknowledged %d", &acknowledged); err != nil {
				t.Fatalf("it said %q", lines.Text())
			}
		}
		time.Sleep(time.Duration(s.IntN(20000)) * time.Microsecond) // any moment will do
		must(t, cmd.Process.Kill())
		for lines.Scan() {
			fmt.Sscanf(lines.Text(), "acknowledged %d", &acknowledged)
		}
		cmd.Wait()

		v, err := Verify(path)
		must(t, err)
		if !v.OK {
			t.Fatalf("kill %d: %+v", kill, v)
		}
		have := map[[2]int64]bool{}
		r := reader(t, path)
		rows, err := r.Episodes(Filter{Iteration: &kill})
		must(t, err)
		for _, e := range rows {
			if e.Outcome != gym.Running {
				have[[2]int64{e.Group, e.Slot}] = true
			}
		}
		for g := range int64(4) {
			for n := range acknowledged {
				if !have[[2]int64{g, n}] {
					t.Fatalf("kill %d: episode %d of goroutine %d was acknowledged and is lost", kill, n, g)
				}
			}
		}
		t.Logf("kill %d: %d acknowledged, %d there, %d with superseded ones", kill, 4*acknowledged, len(have), v.Episodes)
	}
	sound(t, path)
}

func TestOpen_otherProcessWrites_isError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.db")
	cmd, lines, in := again(t, holderPath+"="+path)
	lines.Scan()
	if lines.Text() != "opened <nil>" {
		t.Fatal(lines.Text())
	}
	if _, err := Open(path, run, Options{}); !errors.Is(err, ErrInUse) {
		t.Errorf("a second writer: %v", err)
	}
	r, err := OpenReader(path)
	must(t, err)
	if runs, err := r.Runs(); err != nil || len(runs) != 1 {
		t.Errorf("a reader meanwhile: %v, %v", runs, err)
	}
	must(t, r.Close())
	must(t, cmd.Process.Kill())
	cmd.Wait()
	in.Close()
	tr := open(t, path, run, Options{}) // the kernel released it
	must(t, tr.Close())
	left, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	if len(left) != 1 {
		t.Errorf("files left behind: %v", left)
	}
}

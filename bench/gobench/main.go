// Command gobench measures what happens inside the library: mallocs per step, what recording costs, and the parts of a step.
// It prints one JSON object for bench/run.py, which compares and judges. Every slice is one number: nanoseconds per step.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"provegym/gym"
)

// report is what run.py reads.
type report struct {
	Mallocs map[string]float64              `json:"mallocs"` // per step
	Record  map[string]map[string][]float64 `json:"record"`  // row, then off and on (wall) and off_cpu and on_cpu (stepping thread)
	Parts   map[string][]float64            `json:"parts"`   // ns of one call, reset, snapshot …
	Steps   map[string]float64              `json:"steps"`   // of a recorded episode, by row
}

func main() {
	rounds := flag.Int("rounds", 20, "slices of each candidate")
	slice := flag.Duration("slice", 100*time.Millisecond, "length of a slice")
	dir := flag.String("dir", "", "folder for traces")
	flag.Parse()
	runtime.LockOSThread() // so that this goroutine's processor time is the thread's
	r, err := measure(*rounds, *slice, *dir)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gobench:", err)
		os.Exit(1)
	}
}

func measure(rounds int, slice time.Duration, dir string) (*report, error) {
	r := &report{Mallocs: map[string]float64{}, Record: map[string]map[string][]float64{}, Parts: map[string][]float64{},
		Steps: map[string]float64{}}
	if err := r.mallocs(filepath.Join(dir, "mallocs.db")); err != nil {
		return nil, err
	}
	for _, view := range []gym.View{gym.Text, gym.Structured} {
		for _, think := range []time.Duration{0, 3 * time.Microsecond} {
			if err := r.record(view, think, rounds, slice, dir); err != nil {
				return nil, err
			}
		}
	}
	if err := r.parts(rounds, slice); err != nil {
		return nil, err
	}
	return r, r.oracle(rounds)
}

// mallocsOf returns the heap objects that each of n calls of f allocates, after a warm-up that grows what is reused. end is
// part of it: it waits for what f has left to other goroutines.
func mallocsOf(n int, f, end func() error) (float64, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector's own bookkeeping is not a step's
	var before, after runtime.MemStats
	for i := range 2 {
		if i == 1 {
			runtime.ReadMemStats(&before)
		}
		for range n {
			if err := f(); err != nil {
				return 0, err
			}
		}
		if err := end(); err != nil {
			return 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n), nil
}

// thread returns the processor time of the calling thread, in nanoseconds.
func thread() float64 {
	const rusageThread = 1
	var u syscall.Rusage
	if err := syscall.Getrusage(rusageThread, &u); err != nil {
		panic(err) // it can fail only for a wrong argument
	}
	return float64(u.Utime.Nano() + u.Stime.Nano())
}

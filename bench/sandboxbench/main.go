// Command sandboxbench measures the sandbox against bare processes in one run: ratios, their goals, and the gates above which
// something is wrong. Run it by `make bench-sandbox`; bench/README.md explains the rows.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"provegym/sandbox"
)

var (
	runs  = flag.Int("runs", 100, "runs of each mode")
	gate  = flag.Bool("gate", false, "fail if a row is beyond its gate (goals hold for a quiet machine with 2 cores; elsewhere read the ratios)")
	out   = flag.String("json", "", "also write all figures to this file")
	parts = flag.String("parts", "latency,throughput,overshoot,parent,warm,neighbours", "what to measure")
	child = flag.String("child", "", "internal: be a host process with this many bytes of memory")
)

// row is one line of the report.
type row struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Goal   float64 `json:"goal"` // 0: none
	Gate   float64 `json:"gate"`
	Higher bool    `json:"higher_is_better"`
	Unit   string  `json:"unit"` // "x" or "ms"
	Note   string  `json:"note"`
}

func (r row) within(limit float64) bool {
	return limit == 0 || r.Higher && r.Value >= limit || !r.Higher && r.Value <= limit
}

var rows []row

func report(r row) {
	rows = append(rows, r)
	verdict := "met"
	switch {
	case r.Goal == 0:
		verdict = ""
	case !r.within(r.Gate):
		verdict = "BEYOND THE GATE"
	case !r.within(r.Goal):
		verdict = "missed"
	}
	sign := "<="
	if r.Higher {
		sign = ">="
	}
	goal := ""
	if r.Goal != 0 {
		goal = fmt.Sprintf("%s %.4g (gate %.4g)", sign, r.Goal, r.Gate)
	}
	fmt.Printf("%-46s %7.2f %-2s %-20s %-16s %s\n", r.Name, r.Value, r.Unit, goal, verdict, r.Note)
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandboxbench:", err)
		os.Exit(1)
	}
}

func loadAverage() string {
	data, _ := os.ReadFile("/proc/loadavg")
	f := strings.Fields(string(data))
	if len(f) == 0 {
		return "?"
	}
	return f[0]
}

// mode is one way to run a program once; prepare, if not nil, comes before and is not timed.
type mode struct {
	name    string
	prepare func()
	run     func() error
	times   []time.Duration
}

// interleave runs all modes in turn, so that each sees the same load, and sorts their times.
func interleave(n int, modes ...*mode) {
	for i := range n + 3 {
		for _, m := range modes {
			if m.prepare != nil {
				m.prepare()
			}
			began := time.Now()
			if err := m.run(); err != nil {
				fatal(fmt.Errorf("%s: %w", m.name, err))
			}
			if d := time.Since(began); i >= 3 { // the first ones warm up
				m.times = append(m.times, d)
			}
		}
	}
	for _, m := range modes {
		slices.Sort(m.times)
	}
}

func (m *mode) quantile(q float64) time.Duration { return m.times[int(q*float64(len(m.times)-1))] }
func (m *mode) p50() time.Duration               { return m.quantile(0.5) }
func (m *mode) String() string {
	return fmt.Sprintf("p50 %.2f ms, p99 %.2f", ms(m.p50()), ms(m.quantile(0.99)))
}
func ms(d time.Duration) float64       { return float64(d) / 1e6 }
func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

// bare runs a program by os/exec with two pipes, which is what everybody would do without a sandbox.
func bare(argv ...string) func() error {
	return func() error {
		var o, e bytes.Buffer
		c := exec.Command(argv[0], argv[1:]...)
		c.Stdout, c.Stderr = &o, &e
		return c.Run()
	}
}

var ctx = context.Background()

func ended(end sandbox.Result, err error) error {
	if err == nil && !end.OK() {
		err = fmt.Errorf("ended with %v: %s", &end, end.Stderr)
	}
	return err
}

func trueCommand() sandbox.Command { return sandbox.Command{Argv: []string{"/usr/bin/true"}} }

func main() {
	flag.Parse()
	if *child != "" {
		beChild()
		return
	}
	plain, err := sandbox.Open(sandbox.Options{CgroupBase: "none"})
	fatal(err)
	defer plain.Close()
	best, err := sandbox.Open(sandbox.Options{})
	fatal(err)
	defer best.Close()
	fmt.Printf("%s, %d cores, load %s before\n%s\n", runtime.GOARCH, runtime.NumCPU(), loadAverage(), best.Capabilities())

	for _, part := range strings.Split(*parts, ",") {
		switch part {
		case "latency":
			latency(plain, best)
		case "throughput":
			full := func() error { return ended(plain.Run(ctx, sandbox.Spec{}, trueCommand())) }
			throughput(8, bare("/usr/bin/true"), full)
			throughput(32, bare("/usr/bin/true"), full)
		case "overshoot":
			overshoot(plain)
		case "parent":
			bigParent()
		case "warm":
			warm()
		case "neighbours":
			neighbours(best)
		default:
			fatal(fmt.Errorf("-parts: there is no %q", part))
		}
	}
	fmt.Printf("load %s after\n", loadAverage())
	if *out != "" {
		data, err := json.MarshalIndent(rows, "", " ")
		fatal(err)
		fatal(os.WriteFile(*out, append(data, '\n'), 0o644))
	}
	for _, r := range rows {
		if *gate && !r.within(r.Gate) {
			fmt.Printf("beyond the gate: %s\n", r.Name)
			defer os.Exit(1)
		}
	}
}

// latency is one program at a time, in every way there is.
func latency(plain, best *sandbox.Sandbox) {
	reference := &mode{name: "os/exec with two pipes", run: bare("/usr/bin/true")}
	full := &mode{name: "fresh full box", run: func() error { return ended(plain.Run(ctx, sandbox.Spec{}, trueCommand())) }}
	modes := []*mode{reference, full}
	var withCgroups *mode
	if level := best.Capabilities().Level; level == sandbox.LevelFull || level == sandbox.LevelDelegated {
		withCgroups = &mode{name: "with fresh cgroups", run: func() error { return ended(best.Run(ctx, sandbox.Spec{}, trueCommand())) }}
		modes = append(modes, withCgroups)
	}
	var taken *sandbox.Box
	pooled := &mode{name: "made before", prepare: func() {
		if taken != nil {
			taken.Close()
		}
		// Not by a Pool, which would be making the next one while this one is timed.
		var err error
		taken, err = plain.NewBox(sandbox.Spec{})
		fatal(err)
		fatal(taken.Ready())
		time.Sleep(2 * time.Millisecond)
	}, run: func() error { return ended(taken.Exec(ctx, trueCommand())) }}
	opened, err := plain.NewBox(sandbox.Spec{})
	fatal(err)
	again := &mode{name: "in an open box", run: func() error { return ended(opened.Exec(ctx, trueCommand())) }}
	modes = append(modes, pooled, again)
	var bwrap *mode
	if path, err := exec.LookPath("bwrap"); err == nil {
		bwrap = &mode{name: "bubblewrap", run: bare(path, "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64",
			"/lib64", "--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--die-with-parent", "/usr/bin/true")}
		modes = append(modes, bwrap)
	}
	interleave(*runs, modes...)
	for _, m := range modes {
		fmt.Printf("  %-24s %v\n", m.name, m)
	}
	report(row{Name: "fresh full box", Value: ratio(full.p50(), reference.p50()), Goal: 1.6, Gate: 2.0, Unit: "x"})
	if withCgroups != nil {
		report(row{Name: "fresh full box with fresh cgroups", Value: ratio(withCgroups.p50(), reference.p50()), Goal: 1.8, Gate: 2.4, Unit: "x"})
	}
	report(row{Name: "box from the pool", Value: ratio(pooled.p50(), reference.p50()), Goal: 1.4, Gate: 1.8, Unit: "x"})
	report(row{Name: "command in an open box", Value: ratio(again.p50(), reference.p50()), Goal: 1.15, Gate: 1.4, Unit: "x"})
	report(row{Name: "fresh full box, p99 over p50", Value: ratio(full.quantile(0.99), full.p50()), Goal: 2, Gate: 3, Unit: "x"})
	if bwrap != nil {
		report(row{Name: "fresh full box against bubblewrap", Value: ratio(full.p50(), bwrap.p50()), Goal: 0.33, Gate: 0.5, Unit: "x"})
	}
	opened.Close()
	if taken != nil {
		taken.Close()
	}
}

// throughput compares how many runs a second n workers get done, in alternating blocks.
func throughput(n int, a, b func() error) {
	block := func(run func() error) float64 {
		total := max(2*n, *runs)
		jobs := make(chan struct{}, total)
		for range total {
			jobs <- struct{}{}
		}
		close(jobs)
		began := time.Now()
		var wg sync.WaitGroup
		for range n {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range jobs {
					fatal(run())
				}
			}()
		}
		wg.Wait()
		return float64(total) / time.Since(began).Seconds()
	}
	var ra, rb, ratios []float64
	for range 5 {
		x, y := block(a), block(b)
		ra, rb, ratios = append(ra, x), append(rb, y), append(ratios, y/x)
	}
	for _, s := range [][]float64{ra, rb, ratios} {
		slices.Sort(s)
	}
	report(row{Name: fmt.Sprintf("full boxes a second, %d at a time", n), Value: ratios[2], Goal: 0.75, Gate: 0.6, Higher: true, Unit: "x",
		Note: fmt.Sprintf("%.0f/s against %.0f/s", rb[2], ra[2])})
}

// overshoot is how late the wall limit ends a command that sleeps.
func overshoot(s *sandbox.Sandbox) {
	const limit = 50 * time.Millisecond
	var over []time.Duration
	for range 20 {
		end, err := s.Run(ctx, sandbox.Spec{WallTimeout: limit}, sandbox.Command{Argv: []string{"sleep", "10"}})
		fatal(err)
		if end.Reason != sandbox.Wall {
			fatal(fmt.Errorf("overshoot: ended with %v", &end))
		}
		over = append(over, end.Wall-limit)
	}
	slices.Sort(over)
	report(row{Name: "wall limit, overshoot, worst of 20", Value: ms(over[len(over)-1]), Goal: 20, Gate: 250, Unit: "ms",
		Note: fmt.Sprintf("p50 %.2f ms", ms(over[10]))})
}

// bigParent compares a small host process with one that has 4 GB more, both doing the same at the same time.
func bigParent() {
	type host struct {
		cmd *exec.Cmd
		in  *os.File
		out *os.File
	}
	self, err := os.Executable()
	fatal(err)
	start := func(size int) host {
		c := exec.Command(self, "-child", strconv.Itoa(size))
		inR, inW, err := os.Pipe()
		fatal(err)
		outR, outW, err := os.Pipe()
		fatal(err)
		c.Stdin, c.Stdout, c.Stderr = inR, outW, os.Stderr
		fatal(c.Start())
		inR.Close()
		outW.Close()
		return host{c, inW, outR}
	}
	ask := func(h host) time.Duration {
		fmt.Fprintln(h.in)
		var ns int64
		_, err := fmt.Fscanln(h.out, &ns)
		fatal(err)
		return time.Duration(ns)
	}
	var info syscall.Sysinfo_t
	syscall.Sysinfo(&info)
	if free := uint64(info.Freeram+info.Bufferram) * uint64(info.Unit); free < 6<<30 {
		fmt.Printf("host with 4 GB more: left out, only %d MB are free\n", free>>20)
		return
	}
	small, big := start(0), start(4<<30)
	a := &mode{run: func() error { return nil }}
	b := &mode{run: func() error { return nil }}
	for range max(*runs/2, 10) {
		a.times = append(a.times, ask(small))
		b.times = append(b.times, ask(big))
	}
	slices.Sort(a.times)
	slices.Sort(b.times)
	report(row{Name: "fresh full box, host with 4 GB more", Value: ratio(b.p50(), a.p50()), Goal: 1.1, Gate: 1.5, Unit: "x",
		Note: fmt.Sprintf("%.2f ms against %.2f", ms(b.p50()), ms(a.p50()))})
	for _, h := range []host{small, big} {
		h.in.Close()
		h.cmd.Wait()
		h.out.Close()
	}
}

func beChild() {
	size, err := strconv.Atoi(*child)
	fatal(err)
	memory := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		memory[i] = 1
	}
	s, err := sandbox.Open(sandbox.Options{CgroupBase: "none"})
	fatal(err)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		began := time.Now()
		fatal(ended(s.Run(ctx, sandbox.Spec{}, trueCommand())))
		fmt.Println(time.Since(began).Nanoseconds())
	}
	s.Close()
	runtime.KeepAlive(memory)
}

// warm compares the warm interpreter with a cold one that imports nothing.
func warm() {
	s, err := sandbox.Open(sandbox.Options{CgroupBase: "none", Python: &sandbox.Python{Imports: []string{"json", "re", "random", "math", "collections"}}})
	if err != nil {
		fmt.Println("warm interpreter: left out:", err)
		return
	}
	defer s.Close()
	cold := &mode{name: "python3 -I -S -c pass", run: bare("/usr/bin/python3", "-I", "-S", "-c", "pass")}
	imports := &mode{name: "the same imports, cold", run: bare("/usr/bin/python3", "-I", "-c", "import json, re, random, math, collections")}
	forked := &mode{name: "warm, fresh box", run: func() error {
		b, err := s.NewBox(sandbox.Spec{})
		if err != nil {
			return err
		}
		defer b.Close()
		return ended(b.ExecPython(ctx, []byte("pass")))
	}}
	var b *sandbox.Box
	waiting := &mode{name: "warm, waiting", prepare: func() {
		if b != nil {
			b.Close()
		}
		b, err = s.NewBox(sandbox.Spec{})
		fatal(err)
		fatal(b.Ready())
		fatal(b.Arm())
		time.Sleep(20 * time.Millisecond)
	}, run: func() error { return ended(b.ExecPython(ctx, []byte("pass"))) }}
	modes := []*mode{cold, imports, forked, waiting}
	interleave(max(*runs/2, 10), modes...)
	b.Close()
	for _, m := range modes {
		fmt.Printf("  %-24s %v\n", m.name, m)
	}
	report(row{Name: "warm Python in a fresh box", Value: ratio(forked.p50(), cold.p50()), Goal: 0.6, Gate: 0.8, Unit: "x", Note: "against cold -I -S -c pass"})
	report(row{Name: "warm Python that waits, code to result", Value: ratio(waiting.p50(), cold.p50()), Goal: 0.3, Gate: 0.5, Unit: "x", Note: "likewise"})
}

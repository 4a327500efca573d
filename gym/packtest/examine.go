package packtest

import (
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"provegym/gym"
	"provegym/gym/control"
)

// Options say how thorough an examination is. The zero value suits a test.
type Options struct {
	Seeds   int      // tasks per family that are played; 0 for 4
	Key     gym.Key  // their seeds derive from it
	Process []string // command that calls Examine of the same pack in a fresh process; nil leaves that part out
}

// Run examines the pack and reports every problem as an error of t.
func Run(t testing.TB, p *gym.Pack) {
	t.Helper()
	problems := Examine(p, Options{Process: []string{os.Args[0], "-test.run=^" + regexp.QuoteMeta(t.Name()) + "$"}})
	for _, problem := range problems {
		t.Error(problem)
	}
}

// Examine returns the problems of a pack, the most basic first; none if it conforms.
func Examine(p *gym.Pack, o Options) []Problem {
	if o.Seeds == 0 {
		o.Seeds = 4
	}
	x := &exam{pack: p, opts: o, count: map[string]int{}}
	if asked := os.Getenv(childVar); asked != "" {
		if asked == p.Name {
			x.child()
		}
		return nil
	}
	time.Sleep(time.Nanosecond) // the first timer of a process opens two descriptors for good
	goroutines, files := runtime.NumGoroutine(), openFiles()
	x.parts()
	x.leaks(goroutines, files)
	return x.problems
}

// parts runs the examination. A part whose ground an earlier one has found rotten is left out: its findings would be noise.
func (x *exam) parts() {
	if x.declaration(); x.found(BadDeclaration) {
		return
	}
	if x.builds(); x.found(BuildFails, BuildVaries, VacuousCheck, GoalsAtStart) {
		return
	}
	if x.record(); x.found(Oversize) {
		return
	}
	x.offers()
	x.controls()
	if x.found(ToolPanics, ToolFails, BuildFails) {
		return
	}
	if x.replays(); !x.found(StepVaries) {
		x.clones()
		x.restores()
		x.places()
		x.process()
		x.parity()
		x.dials()
	}
	x.refusals()
	x.doors()
}

func (x *exam) declaration() {
	p := x.pack
	if err := p.Validate(); err != nil {
		x.say(BadDeclaration, "", "%v", err)
		return
	}
	if known, err := gym.LookupPack(p.Name); err != nil || known != p {
		x.say(BadDeclaration, "", "pack %s is not the registered one: exported episodes could not find it", p.Name)
	}
	if !slices.ContainsFunc(p.Agents, func(a gym.Agent) bool { return a.Kind == gym.Oracle }) {
		x.say(BadDeclaration, "", "pack %s declares no oracle", p.Name)
	}
	if len(p.Audits) == 0 {
		x.say(BadDeclaration, "", "pack %s declares no audit", p.Name)
	}
	for i := range p.Tools {
		for _, name := range x.secretNames() {
			if mentions(string(p.Schema(i)), name) {
				x.say(NameShown, "", "the description of tool %s names %q", p.Tools[i].Name, name)
			}
		}
	}
	x.agents = control.Agents(p)
}

// leaks waits for goroutines that are on their way out, then counts.
func (x *exam) leaks(goroutines, files int) {
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > goroutines || openFiles() > files {
		if time.Now().After(deadline) {
			x.say(Leak, "", "%d goroutines and %d descriptors before, %d and %d after", goroutines, files, runtime.NumGoroutine(), openFiles())
			return
		}
		runtime.GC() // a file that nobody holds is closed by its finalizer, which is not what is looked for
		time.Sleep(10 * time.Millisecond)
	}
}

// openFiles counts the descriptors of this process; 0 where the system does not list them.
func openFiles() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

// guard runs f and turns a panic of the pack into a problem.
func (x *exam) guard(name, rerun string, f func()) {
	defer func() {
		if r := recover(); r != nil {
			x.say(name, rerun, "panic: %v\n%s", r, debug.Stack())
		}
	}()
	f()
}

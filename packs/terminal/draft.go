package terminal

import (
	"fmt"
	"hash/fnv"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"provegym/gym"
)

// family is one kind of work. build makes everything of a task from one draft, so that files, instruction, gold, check and plan
// cannot disagree.
type family struct {
	name, doc string
	heldOut   bool
	longest   int // calls of the longest plan, without those that dial told adds
	build     func(d *draft)
}

var families = []family{
	{name: "config", doc: "bring a configuration in line with a sheet and its overrides, line by line", longest: 4, build: buildConfig},
	{name: "report", doc: "aggregate records of several files into a report, without those that were voided", longest: 4, build: buildReport},
	{name: "rename", doc: "move files to where a rule says by their names, but for those on hold", longest: 4, build: buildRename},
	{name: "purge", doc: "delete exactly what a retention policy calls stale", longest: 4, build: buildPurge},
	{name: "restore", doc: "bring damaged files back from whichever archive has them as the manifest says", heldOut: true, longest: 4, build: buildRestore},
	{name: "runbook", doc: "follow a runbook step by step; on half of the seeds one of its conditions says to stop", longest: 7, build: buildRunbook},
}

func declared() (out []gym.Family) {
	for _, f := range families {
		out = append(out, gym.Family{Name: f.name, Doc: f.doc, HeldOut: f.heldOut})
	}
	return out
}

func familyOf(name string) *family {
	i := slices.IndexFunc(families, func(f family) bool { return f.name == name })
	return &families[i]
}

// draft is a task in the making. Each dial draws from the stream of its name, and the families from streams of things, one by one:
// turning a dial up keeps what was there.
type draft struct {
	task  gym.Task
	key   gym.Key
	files map[string]*inode
	spec  spec
	pins  []gym.Pin
	text  []string        // sentences of the instruction
	used  map[string]bool // words that are taken
	mech  []string
}

// spec is what the task asks, as data: the check, the controls and the audits all read it.
type spec struct {
	want    []want
	may     map[string]bool // names outside scratch that may be written on the way
	outcome uint64
	code    uint64
	cite    []uint64 // codes of the refs to cite, all of them and no others
	shows   []string // what the oracle reads before it acts: documents, by name
	script  string   // the oracle's command
	wrong   []wrong  // what others would do
}

// want is how one name must be at the end.
type want struct {
	name string
	ino  *inode // nil: gone
	open bool   // a line break at its end or none: both are right
}

// wrong is a plausible mistake: a command in place of the oracle's, and the answer that goes with it, the right one if no code is
// given.
type wrong struct {
	name, script  string
	outcome, code uint64
	answers       bool
}

func build(task gym.Task) (*gym.Built, error) {
	if _, err := open(); err != nil {
		return nil, err
	}
	f := familyOf(task.Family)
	d := &draft{task: task, key: task.Key(), files: map[string]*inode{}, used: map[string]bool{}}
	for _, root := range roots {
		mode := fs.ModeDir | 0o755
		if root != home {
			mode = fs.ModeDir | fs.ModeSticky | 0o777
		}
		d.files[root] = &inode{mode: mode, mtime: timeOf(root)}
	}
	d.spec.may = map[string]bool{}
	f.build(d)
	d.clutter()
	var entries []entry
	for name, ino := range d.files {
		entries = append(entries, entry{name, ino})
	}
	w := &world{now: newTree(entries)}
	return &gym.Built{
		World:       w,
		Instruction: d.instruction(),
		Tools:       1<<len(tools) - 1,
		Pins:        d.pins,
		Check:       check(&d.spec),
		Plan:        d.plan(),
		Spec:        &d.spec,
		Explain:     func(e *gym.Evidence) gym.Explanation { return explain(e, &d.spec) },
		Template:    f.name,
		Graph:       gym.NewDigester("terminal " + f.name + strings.Join(d.mech, " ")).Sum().String(),
		Mechanisms:  append([]string{f.name}, d.mech...),
	}, nil
}

func (d *draft) stream(purpose string) gym.Stream { return d.key.Sub(purpose).Stream() }

func (d *draft) at(purpose string, i int) gym.Stream {
	return d.key.Sub(purpose).At(uint64(i)).Stream()
}

func (d *draft) dial(name string) int { return d.task.Int(name) }

// firstTime and lastTime are the earliest and latest change of a file at the start.
const (
	firstTime = 1_700_000_000_000_000_000
	lastTime  = firstTime + 20_000_000*1_000_000_000
)

func timeOf(name string) int64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return firstTime + int64(h.Sum64()%20_000_000)*1_000_000_000
}

// dir makes a directory and those above it.
func (d *draft) dir(name string) string {
	if d.files[name] == nil {
		d.dir(path.Dir(name))
		d.files[name] = &inode{mode: fs.ModeDir | 0o755, mtime: timeOf(name)}
	}
	return name
}

// file makes a file and the directories above it.
func (d *draft) file(name, text string) *inode { return d.fileMode(name, text, 0o644) }

func (d *draft) fileMode(name, text string, mode fs.FileMode) *inode {
	if d.files[name] != nil {
		panic("terminal: " + name + " is made twice")
	}
	d.dir(path.Dir(name))
	d.files[name] = &inode{mode: mode, data: []byte(text), mtime: timeOf(name)}
	return d.files[name]
}

// place is a directory below /work, as deep as the dial says.
func (d *draft) place(kind string) string {
	s := d.stream("depth/" + kind)
	name := home
	for range d.dial("depth") {
		name += "/" + gym.Pick(&s, shelves) + fmt.Sprint(s.IntN(90)+10)
	}
	return name + "/" + kind
}

// word draws a word that this task has not used, with digits so that no other task has it.
func (d *draft) word(s *gym.Stream, from []string) string {
	for {
		w := fmt.Sprintf("%s%04d", gym.Pick(s, from), s.IntN(10_000))
		if !d.used[w] {
			d.used[w] = true
			return w
		}
	}
}

// odd makes a name as awkward as the dial says, out of a plain one.
func (d *draft) odd(s *gym.Stream, name string) string {
	kind := s.IntN(6)
	switch level := d.dial("names"); {
	case level == 0:
		return name
	case level == 1 || kind == 0:
		return strings.Replace(name, "0", " 0", 1) + " copy"
	}
	return [...]string{"", "it's " + name, `"` + name + `"`, "-" + name, "*" + name + "?", "two\n" + name}[kind]
}

// ref draws the ref of a document.
func (d *draft) ref(of string) (code uint64, line string) {
	s := d.stream("ref/" + of)
	code = s.Uint64() >> 24
	return code, "ref: " + d.task.Pack.Spell(gym.Value{Type: typeRef, Bits: code}) + "\n"
}

// call spells a name in the instruction: its path, or where that is to be found out, the last part of it.
func (d *draft) call(role, name string) string {
	if d.dial("told") == 1 {
		return path.Base(name)
	}
	d.pins = append(d.pins, gym.Pin{Role: role, Value: gym.Value{Type: typePath, Text: name}})
	return name
}

func (d *draft) say(format string, args ...any) {
	d.text = append(d.text, fmt.Sprintf(format, args...))
}

func (d *draft) instruction() string {
	s := d.stream("frames")
	text := gym.Pick(&s, openings) + strings.Join(d.text, " ") + " " + gym.Pick(&s, closings)
	if d.dial("told") == 1 {
		text += " What is named without a path is below /work, once under that name."
	}
	return text
}

var openings = []string{"", "A job on the files below /work. ", "Please: ", "Work to do below /work. "}

var closings = []string{
	"Nothing else below /work may change, not even for a moment; /tmp is yours.",
	"Leave everything else below /work as it is at all times, and use /tmp for what you need on the way.",
	"Everything below /work that this does not ask to change stays as it is throughout; scratch files belong in /tmp.",
}

// may allows names to be written.
func (d *draft) may(names ...string) {
	for _, n := range names {
		d.spec.may[n] = true
	}
}

// mayDirs allows the directories above a name to be made, as far as they are not there.
func (d *draft) mayDirs(name string) {
	for dir := path.Dir(name); d.files[dir] == nil; dir = path.Dir(dir) {
		d.may(dir)
	}
}

// clutter fills the rest of /work.
func (d *draft) clutter() {
	n := d.dial("files")
	for i := range n {
		s := d.at("files", i)
		name := home + "/" + gym.Pick(&s, attics) + "/" + gym.Pick(&s, shelves) + "/" + gym.Pick(&s, things) + "-" + strconv.Itoa(i) + gym.Pick(&s, endings)
		var text []byte
		for range 1 + s.IntN(6) {
			text = append(append(append(append(text, gym.Pick(&s, things)...), ' '), gym.Pick(&s, shelves)...), ' ')
			text = append(strconv.AppendInt(text, int64(s.IntN(100_000)), 10), '\n')
		}
		d.file(name, string(text))
	}
}

// plan is the oracle's way: what the documents say, the work in one command, the answer.
func (d *draft) plan() []gym.PlanStep {
	var steps []gym.PlanStep
	look := func(name string, needed bool, c gym.Call) {
		steps = append(steps, gym.PlanStep{Name: name, Kind: gym.ReadStep, Needed: needed, Make: func(*gym.Evidence) gym.Call { return c }})
	}
	if d.dial("told") == 1 {
		look("find", false, callOf(toolRun, text(typeCommand, "find . -type f | head -50")))
	}
	var needed []int
	for i, name := range d.spec.shows {
		needed = append(needed, len(steps))
		look(fmt.Sprintf("read document %d", i+1), d.cited(name), callOf(toolRead, text(typePath, name)))
	}
	if d.spec.script != "" {
		c := callOf(toolRun, text(typeCommand, d.spec.script))
		steps = append(steps, gym.PlanStep{Name: "do the work", Kind: gym.WriteStep, After: needed, Needed: true,
			Make: func(*gym.Evidence) gym.Call { return c }})
		needed = append(needed, len(steps)-1)
	}
	answer := answerOf(d.spec.outcome, d.spec.code, d.spec.cite)
	return append(steps, gym.PlanStep{Name: "answer", Kind: gym.FinishStep, After: needed, Needed: true,
		Make: func(*gym.Evidence) gym.Call { return answer }})
}

// cited says that a document has a ref that must be cited: then it has to be seen.
func (d *draft) cited(name string) bool {
	return slices.ContainsFunc(d.spec.cite, func(code uint64) bool {
		return strings.Contains(string(d.files[name].data), d.task.Pack.Spell(gym.Value{Type: typeRef, Bits: code}))
	})
}

func text(t gym.TypeID, s string) gym.Value { return gym.Value{Type: t, Text: s} }

func callOf(tool int, args ...gym.Value) gym.Call {
	var c gym.Call
	c.Reset(tool)
	for i, a := range args {
		c.Push(i, a)
	}
	return c
}

func answerOf(outcome, code uint64, cite []uint64) gym.Call {
	c := callOf(toolFinish, gym.Value{Type: typeOutcome, Bits: outcome}, gym.Value{Type: typeCode, Bits: code})
	var refs []gym.Value
	for _, r := range cite {
		refs = append(refs, gym.Value{Type: typeRef, Bits: r})
	}
	c.Push(argEvidence, refs...)
	return c
}

// quote spells a string for sh.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = quote(n)
	}
	return strings.Join(out, " ")
}

// Words of names. No two lists share one.
var (
	shelves  = []string{"north", "south", "inner", "outer", "main", "spare", "depot", "annex", "vault", "yard", "wing", "deck"}
	attics   = []string{"misc", "old", "var", "shared", "tmpfiles", "exports"}
	endings  = []string{".txt", ".log", ".csv", ".conf", ".md"}
	things   = []string{"lamp", "chair", "plank", "brick", "wheel", "rope", "glass", "paper", "clock", "drum", "spade", "candle"}
	services = []string{"atlas", "beacon", "cinder", "dynamo", "ember", "falcon", "garnet", "harbor", "indigo", "jasper", "kestrel", "lantern"}
)

package packtest

import (
	"regexp"
	"slices"
	"strings"

	"provegym/gym"
)

// buildSeeds is the number of tasks per family that are built but not played.
const buildSeeds = 24

func (x *exam) builds() {
	x.families(func(c gym.Condition) {
		limits := x.pack.Limits(c)
		worlds := map[gym.Digest]uint64{}
		for i := range buildSeeds {
			task := x.task(c, i)
			x.guard(BuildFails, task.ID(), func() {
				b, err := x.pack.Build(task)
				if err != nil {
					x.say(BuildFails, task.ID(), "%v", err)
					return
				}
				x.built(task, b)
				w := gym.DigestWorld(b.World)
				if other, ok := worlds[w]; ok {
					x.say(SeedsAlike, task.ID(), "the world is that of seed %d", other)
				}
				worlds[w] = task.Seed
				again, err := x.pack.Build(task)
				if err != nil || gym.DigestWorld(again.World) != w || face(x.pack, again) != face(x.pack, b) {
					x.say(BuildVaries, task.ID(), "building the task twice gave two tasks (%v)", err)
				}
				if now := x.pack.Limits(c); now != limits {
					x.say(BudgetTells, task.ID(), "limits %+v, but %+v for another seed", now, limits)
				}
			})
		}
	})
}

// face is everything of a built task that is not its world, as one string.
func face(p *gym.Pack, b *gym.Built) string {
	d := gym.NewDigester("face")
	d.Text(b.Instruction)
	d.Int(int64(b.Tools))
	for _, pin := range b.Pins {
		d.Text(pin.Role + p.Spell(pin.Value))
	}
	for _, g := range b.Goal {
		d.Int(int64(g * 1024))
	}
	for _, s := range b.Plan {
		d.Text(s.Name)
	}
	d.Text(b.Template + " " + b.Graph + " " + strings.Join(b.Mechanisms, ","))
	return d.Sum().String()
}

// built looks at one built task. It builds the evidence of the first moment by itself, since the core would refuse the task.
func (x *exam) built(task gym.Task, b *gym.Built) {
	id := task.ID()
	c := &b.Check
	e := &gym.Evidence{Pack: x.pack, Task: task, Built: b, First: b.World, Last: b.World, Log: &gym.Log{}}
	if len(c.Goals) == 0 || c.Collateral.Holds == nil || c.Commit.Holds == nil {
		x.say(VacuousCheck, id, "the check has %d goals, collateral %t, commit %t", len(c.Goals), c.Collateral.Holds != nil, c.Commit.Holds != nil)
		return
	}
	before := gym.DigestWorld(b.World)
	if !slices.ContainsFunc(c.Goals, func(g gym.Predicate) bool { return !g.Holds(e) }) {
		x.say(GoalsAtStart, id, "every goal holds before the first act")
	}
	if gym.DigestWorld(b.World) != before {
		x.say(CheckMutates, id, "a goal changed the world")
	}
	if b.Template == "" || b.Graph == "" || len(b.Mechanisms) == 0 {
		x.say(HiddenFromSplit, id, "template %q, graph %q, mechanisms %q", b.Template, b.Graph, b.Mechanisms)
	}
	for _, pin := range b.Pins {
		if s := x.pack.Spell(pin.Value); !strings.Contains(b.Instruction, s) {
			x.say(PinNotTold, id, "%s %q is pinned, but the instruction does not say it", pin.Role, s)
		}
	}
	x.shown(id, "the instruction", b.Instruction, x.taskNames(b))
	for _, token := range x.opaque(b.Instruction) {
		if !slices.ContainsFunc(b.Pins, func(p gym.Pin) bool { return strings.Contains(x.pack.Spell(p.Value), token) }) {
			x.say(SecretInTask, id, "the instruction spells %s, which is no goal parameter", token)
		}
	}
	if most := x.pack.Limits(task.Condition).Bytes; len(b.Instruction) > most {
		x.say(Oversize, id, "the instruction has %d bytes, the budget is %d", len(b.Instruction), most)
	}
}

// shown looks for secret names in what the agent sees.
func (x *exam) shown(rerun, where, text string, names []string) {
	for _, n := range names {
		if mentions(text, n) {
			x.say(NameShown, rerun, "%s names %q", where, n)
		}
	}
}

func mentions(text, name string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		i += at
		if (i == 0 || !wordByte(text[i-1])) && (i+len(name) == len(text) || !wordByte(text[i+len(name)])) {
			return true
		}
		at = i + 1
	}
}

func wordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// plainWord matches names too common to be told from prose.
var plainWord = regexp.MustCompile(`^[a-z]*$`)

// secretNames returns the names of the audits: whatever else is secret of a pack can only be seen in its tasks.
func (x *exam) secretNames() []string {
	var out []string
	for _, a := range x.pack.Audits {
		out = append(out, a.Name)
	}
	return out
}

// taskNames returns the names of the task's predicates and plan steps, but for those that are ordinary words or that the pack
// itself shows as names of tools, parameters and words.
func (x *exam) taskNames(b *gym.Built) []string {
	public := map[string]bool{}
	for i := range x.pack.Tools {
		public[x.pack.Tools[i].Name] = true
		for _, q := range x.pack.Tools[i].Params {
			public[q.Name] = true
		}
	}
	for _, t := range x.pack.Types {
		public[t.Name] = true
		for _, w := range append(t.Enum, t.Attrs...) {
			public[w] = true
		}
	}
	var out []string
	add := func(name string) {
		if !public[name] && !plainWord.MatchString(name) {
			out = append(out, name)
		}
	}
	for _, ps := range [][]gym.Predicate{b.Check.Goals, b.Check.Path, {b.Check.Collateral, b.Check.Commit}} {
		for _, p := range ps {
			add(p.Name)
		}
	}
	for _, s := range b.Plan {
		add(s.Name)
	}
	return append(out, x.secretNames()...)
}

package gym

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxDials bounds the dials of one pack, so that a Condition is a plain comparable value.
const MaxDials = 24

// Dial is one named difficulty axis with an ordered range. Turning it disturbs nothing else: a pack draws whatever a dial
// owns from the stream of that name.
type Dial struct {
	Name   string
	Doc    string
	Levels []string // canonical spellings of the values, easiest first; at most 8 for Break
	Base   int      // index of the default level, which an id leaves out
	// Alters says that the dial is there to change what the task asks: a message that has it otherwise, an event that moves what is
	// asked about. Turning any other dial leaves it as it is.
	Alters bool
	// At are settings of other dials at which this one tells: where it says nothing at the base, it is tested from these.
	At []Setting
}

// Nearest returns the allowed level that is nearest to the base, of two the easier; false if none is allowed.
func (d *Dial) Nearest(allowed func(level int) bool) (int, bool) {
	for off := range len(d.Levels) {
		for _, l := range [2]int{d.Base - off, d.Base + off} {
			if l >= 0 && l < len(d.Levels) && allowed(l) {
				return l, true
			}
		}
	}
	return 0, false
}

// Value returns level as a number. It panics if the spelling is not one: a pack's own mistake.
func (d *Dial) Value(level int) float64 {
	v, err := strconv.ParseFloat(d.Levels[level], 64)
	if err != nil {
		panic(fmt.Sprintf("gym: dial %s level %q is not a number", d.Name, d.Levels[level]))
	}
	return v
}

// Condition is a pack version, a family and dial settings; it has no seed. Conditions are comparable and may be map keys.
type Condition struct {
	Pack   *Pack
	Family string
	Levels [MaxDials]uint8 // level index by the pack's dial order; unused entries are 0
}

// Task is a condition and a seed: it fully determines the world, the instruction, the goal and the oracle plan.
type Task struct {
	Condition
	Seed uint64
}

// Int returns the setting of the named dial, rounded to an integer. It panics if the pack has no such dial.
func (c *Condition) Int(dial string) int { return int(c.Float(dial)) }

// Float returns the setting of the named dial. It panics if the pack has no such dial.
func (c *Condition) Float(dial string) float64 {
	i := c.Pack.dialIndex(dial)
	if i < 0 {
		panic(fmt.Sprintf("gym: pack %s has no dial %q", c.Pack.Name, dial))
	}
	return c.Pack.Dials[i].Value(int(c.Levels[i]))
}

// With returns c with one dial set to a level index.
func (c Condition) With(dial string, level int) (Condition, error) {
	i := c.Pack.dialIndex(dial)
	if i < 0 {
		return c, unknown("dial", dial, c.Pack.DialNames())
	}
	if level < 0 || level >= len(c.Pack.Dials[i].Levels) {
		return c, badInput("dial %s has levels 0 to %d, not %d", dial, len(c.Pack.Dials[i].Levels)-1, level)
	}
	c.Levels[i] = uint8(level)
	return c, nil
}

// Set returns c with one dial set to a value as spelled, or a number equal to it.
func (c Condition) Set(dial, value string) (Condition, error) {
	i := c.Pack.dialIndex(dial)
	if i < 0 {
		return c, unknown("dial", dial, c.Pack.DialNames())
	}
	d := &c.Pack.Dials[i]
	level := slices.Index(d.Levels, value)
	if level < 0 {
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			level = slices.IndexFunc(d.Levels, func(s string) bool { w, err := strconv.ParseFloat(s, 64); return err == nil && w == v })
		}
	}
	if level < 0 {
		return c, badInput("dial %s has no setting %q; it takes %s", dial, value, strings.Join(d.Levels, ", "))
	}
	c.Levels[i] = uint8(level)
	return c, nil
}

// ID returns the canonical condition id: pack@version/family?dial=value&…, dials sorted, those at their base left out.
func (c Condition) ID() string { return string(c.appendID(nil)) }

func (c *Condition) appendID(b []byte) []byte {
	b = append(b, c.Pack.Name...)
	b = append(b, '@')
	b = strconv.AppendInt(b, int64(c.Pack.Version), 10)
	b = append(b, '/')
	b = append(b, c.Family...)
	dials := c.Pack.Dials
	var set [MaxDials]int // those not at their base, in order
	n := 0
	for i := range dials {
		if int(c.Levels[i]) == dials[i].Base {
			continue
		}
		k := n
		for ; k > 0 && before(dials[i].Name, dials[set[k-1]].Name); k-- {
			set[k] = set[k-1]
		}
		set[k] = i
		n++
	}
	for k, i := range set[:n] {
		b = append(b, "?&"[min(k, 1)])
		b = append(b, dials[i].Name...)
		b = append(b, '=')
		b = append(b, dials[i].Levels[c.Levels[i]]...)
	}
	return b
}

// before orders settings of different dials as text: a=… before b=….
func before(a, b string) bool {
	switch {
	case strings.HasPrefix(b, a):
		return b[len(a)] > '='
	case strings.HasPrefix(a, b):
		return a[len(b)] < '='
	}
	return a < b
}

// ID returns the canonical task id: the condition id, then #seed=decimal.
func (t Task) ID() string { return string(t.appendID(nil)) }

func (t *Task) appendID(b []byte) []byte {
	b = append(t.Condition.appendID(b), "#seed="...)
	return strconv.AppendUint(b, t.Seed, 10)
}

// Condition returns the family at the pack's base settings.
func (p *Pack) Condition(family string) (Condition, error) {
	if p.Family(family) == nil {
		return Condition{}, unknown("family", family, p.FamilyNames())
	}
	c := Condition{Pack: p, Family: family}
	for i := range p.Dials {
		c.Levels[i] = uint8(p.Dials[i].Base)
	}
	return c, nil
}

// Preset returns the family at one of the pack's named settings.
func (p *Pack) Preset(family, preset string) (Condition, error) {
	c, err := p.Condition(family)
	if err != nil {
		return c, err
	}
	i := slices.IndexFunc(p.Presets, func(s Preset) bool { return s.Name == preset })
	if i < 0 {
		return c, unknown("preset", preset, p.PresetNames())
	}
	for _, s := range p.Presets[i].Settings {
		if c, err = c.Set(s.Dial, s.Value); err != nil {
			return c, err
		}
	}
	return c, nil
}

// ParseCondition is the inverse of Condition.ID. Other spellings of a number, another order of dials and dials at their
// base are accepted and made canonical. The pack is looked up among the registered ones.
//
// Errors: ErrUnknown (pack, version, family, dial), ErrBadInput (anything malformed, a dial named twice).
func ParseCondition(id string) (Condition, error) {
	head, query, hasQuery := strings.Cut(id, "?")
	packver, family, ok := strings.Cut(head, "/")
	name, ver, ok2 := strings.Cut(packver, "@")
	if !ok || !ok2 {
		return Condition{}, badInput("condition id %s is not pack@version/family?dial=value&…", quote(id))
	}
	p, err := LookupPack(name)
	if err != nil {
		return Condition{}, err
	}
	if ver != strconv.Itoa(p.Version) {
		return Condition{}, unknown("version of "+name, ver, []string{strconv.Itoa(p.Version)})
	}
	c, err := p.Condition(family)
	if err != nil || !hasQuery {
		return c, err
	}
	seen := map[string]bool{}
	for _, kv := range strings.Split(query, "&") {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || seen[k] {
			return c, badInput("condition id %s: %s is not dial=value, or stands there twice", quote(id), quote(kv))
		}
		seen[k] = true
		if c, err = c.Set(k, v); err != nil {
			return c, err
		}
	}
	return c, nil
}

// ParseTask is the inverse of Task.ID; see ParseCondition.
func ParseTask(id string) (Task, error) {
	cond, seed, ok := strings.Cut(id, "#seed=")
	if !ok {
		return Task{}, badInput("task id %s lacks #seed=", quote(id))
	}
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return Task{}, badInput("task id %s: the seed is not a decimal 64-bit number", quote(id))
	}
	c, err := ParseCondition(cond)
	return Task{c, n}, err
}

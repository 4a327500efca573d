package breaker

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"provegym/gym"
)

// Factor is one named axis of the space with its levels, easiest first.
type Factor struct {
	Name    string   `json:"name"`
	Levels  []string `json:"levels"`
	Nominal int      `json:"nominal"` // the level a dropped factor falls back to; Free for a factor that has none (family)
}

// Free is the Nominal of a factor without a normal level: dropping it means drawing it uniformly.
const Free = -1

// MaxLevels bounds the levels of a factor that has a nominal one. Finer axes are binned by whoever declares them.
const MaxLevels = 8

// Cell is one level index for every factor of a space, in the space's order.
type Cell []uint8

// MarshalJSON writes the cell as an array of numbers rather than as base64.
func (c Cell) MarshalJSON() ([]byte, error) {
	out := make([]int, len(c))
	for i, l := range c {
		out[i] = int(l)
	}
	return json.Marshal(out)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (c *Cell) UnmarshalJSON(b []byte) error {
	var in []int
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*c = make(Cell, len(in))
	for i, l := range in {
		if l < 0 || l > 255 {
			return fmt.Errorf("%w: breaker: cell level %d", gym.ErrBadInput, l)
		}
		(*c)[i] = uint8(l)
	}
	return nil
}

// Pattern fixes some factors to a level and leaves the others open (-1). It matches the cells that agree where it is fixed.
type Pattern []int

// Match reports whether c agrees with p wherever p is fixed.
func (p Pattern) Match(c Cell) bool {
	for i, l := range p {
		if l >= 0 && l != int(c[i]) {
			return false
		}
	}
	return true
}

// Implies reports whether every cell that p matches is matched by q too.
func (p Pattern) Implies(q Pattern) bool {
	for i, l := range q {
		if l >= 0 && p[i] != l {
			return false
		}
	}
	return true
}

// Setting is one factor at one level, by name.
type Setting struct {
	Factor string `json:"factor"`
	Level  string `json:"level"`
}

// Space is the set of cells that may be asked: every combination of levels but the excluded ones.
type Space struct {
	Factors []Factor

	// Excluded reports the cells that do not exist for Break and curriculum: everything held out. It must be a pure
	// function. Nil excludes nothing.
	Excluded func(Cell) bool

	// HeldOut reports the tasks of allowed cells that are held out all the same, by what only a built task shows. It must be a
	// pure function. Nil holds out none.
	HeldOut func(c Cell, seed uint64) bool

	// Name is the cell's canonical id, from which its seeds derive. Nil spells "factor=level,…".
	Name func(Cell) string

	grid *grid // how cells translate to conditions; nil for an abstract space
}

// maxRedraws bounds the seeds tried for one task: a cell of which training may see less than one task in a hundred is as good as
// held out, and the episode's gate refuses what is drawn at last.
const maxRedraws = 1000

// Seed returns the seed of a task of c: key's own, or the first below it that is not held out.
func (s Space) Seed(key gym.Key, c Cell) uint64 {
	seed := key.Seed()
	for i := uint64(0); s.HeldOut != nil && i < maxRedraws && s.HeldOut(c, seed); i++ {
		seed = key.At(i).Seed()
	}
	return seed
}

// Validate lists everything wrong with the space at once, or returns nil.
func (s Space) Validate() error {
	var bad []error
	add := func(format string, args ...any) {
		bad = append(bad, fmt.Errorf("%w: breaker: "+format, append([]any{gym.ErrBadInput}, args...)...))
	}
	if len(s.Factors) == 0 {
		add("a space needs at least one factor")
	}
	free, seen := 0, map[string]bool{}
	for _, f := range s.Factors {
		if f.Name == "" || seen[f.Name] {
			add("factor %q is unnamed or named twice", f.Name)
		}
		seen[f.Name] = true
		if f.Nominal == Free {
			free++
			if len(f.Levels) < 1 || len(f.Levels) > 255 {
				add("factor %s has %d levels; it takes 1 to 255", f.Name, len(f.Levels))
			}
			continue
		}
		if len(f.Levels) < 1 || len(f.Levels) > MaxLevels {
			add("factor %s has %d levels; it takes 1 to %d", f.Name, len(f.Levels), MaxLevels)
		}
		if f.Nominal < 0 || f.Nominal >= len(f.Levels) {
			add("factor %s has no nominal level %d", f.Name, f.Nominal)
		}
	}
	if free > 1 {
		add("%d factors have no nominal level; at most one may", free)
	}
	return errors.Join(bad...)
}

// ID returns the cell's canonical id.
func (s Space) ID(c Cell) string {
	if s.Name != nil {
		return s.Name(c)
	}
	var b strings.Builder
	for i, f := range s.Factors {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(f.Name)
		b.WriteByte('=')
		b.WriteString(f.Levels[c[i]])
	}
	return b.String()
}

// Allows reports whether c is a cell of the space: well formed and not excluded.
func (s Space) Allows(c Cell) bool {
	if len(c) != len(s.Factors) {
		return false
	}
	for i, l := range c {
		if int(l) >= len(s.Factors[i].Levels) {
			return false
		}
	}
	return s.Excluded == nil || !s.Excluded(c)
}

// Open is the pattern that fixes nothing.
func (s Space) Open() Pattern {
	p := make(Pattern, len(s.Factors))
	for i := range p {
		p[i] = -1
	}
	return p
}

// Pattern returns the pattern that fixes the named settings.
//
// Errors: gym.ErrUnknown (factor or level), gym.ErrBadInput (a factor named twice).
func (s Space) Pattern(settings []Setting) (Pattern, error) {
	p := s.Open()
	for _, set := range settings {
		i := slices.IndexFunc(s.Factors, func(f Factor) bool { return f.Name == set.Factor })
		if i < 0 {
			return nil, fmt.Errorf("%w: breaker: factor %q", gym.ErrUnknown, set.Factor)
		}
		l := slices.Index(s.Factors[i].Levels, set.Level)
		if l < 0 {
			return nil, fmt.Errorf("%w: breaker: factor %s has no level %q", gym.ErrUnknown, set.Factor, set.Level)
		}
		if p[i] >= 0 {
			return nil, fmt.Errorf("%w: breaker: factor %s is set twice", gym.ErrBadInput, set.Factor)
		}
		p[i] = l
	}
	return p, nil
}

// Settings spells what p fixes, in the space's order.
func (s Space) Settings(p Pattern) []Setting {
	out := []Setting{}
	for i, l := range p {
		if l >= 0 {
			out = append(out, Setting{s.Factors[i].Name, s.Factors[i].Levels[l]})
		}
	}
	return out
}

// tries is how many rejected draws come before Draw counts the cells one by one.
const tries = 1000

// countable is the largest number of cells that Draw counts one by one.
const countable = 1 << 16

// Draw returns a cell that p matches, uniform over those that the space allows and reject does not refuse. It rejects, and
// counts where rejecting fails and the cells are few (at most 65,536). It reports false when it found none; only where the
// cells are too many to count can that happen with some left, and then their share is small (a share of 1 % is missed with
// probability 4e-5).
func (s Space) Draw(rng *gym.Stream, p Pattern, reject func(Cell) bool) (Cell, bool) {
	c := make(Cell, len(s.Factors))
	ok := func() bool { return (s.Excluded == nil || !s.Excluded(c)) && (reject == nil || !reject(c)) }
	size := 1
	for i, l := range p {
		if l < 0 && size <= countable {
			size *= len(s.Factors[i].Levels)
		}
	}
	for range min(tries, 4*size) {
		for i, l := range p {
			if l < 0 {
				l = rng.IntN(len(s.Factors[i].Levels))
			}
			c[i] = uint8(l)
		}
		if ok() {
			return c, true
		}
	}
	if size > countable {
		return nil, false
	}
	var found []Cell
	for k := range size {
		for i, l := range p {
			if l < 0 {
				n := len(s.Factors[i].Levels)
				l, k = k%n, k/n
			}
			c[i] = uint8(l)
		}
		if ok() {
			found = append(found, slices.Clone(c))
		}
	}
	if len(found) == 0 {
		return nil, false
	}
	return gym.Pick(rng, found), true
}

// plain returns p with every open factor at its nominal level; a factor without one stays open.
func (s Space) plain(p Pattern) Pattern {
	q := slices.Clone(p)
	for i, l := range q {
		if l < 0 && s.Factors[i].Nominal != Free {
			q[i] = s.Factors[i].Nominal
		}
	}
	return q
}

// off returns what is unusual about c: the pattern of its factors off nominal. A factor without a nominal level is
// unusual whenever it has more than one.
func (s Space) off(c Cell) Pattern {
	p := s.Open()
	for i, f := range s.Factors {
		if len(f.Levels) > 1 && int(c[i]) != f.Nominal {
			p[i] = int(c[i])
		}
	}
	return p
}

package breaker

import (
	"fmt"
	"slices"

	"provegym/gym"
)

// FamilyFactor is the name of the factor that a pack's families make.
const FamilyFactor = "family"

// grid translates cells to conditions of one pack: factor 0 is the family, factor i+1 is dial dials[i], whose level k is
// levels[i][k] of the pack's.
type grid struct {
	base     gym.Condition
	families []string
	dials    []int
	levels   [][]uint8
}

// Region says what may be drawn: the train region of a split. gym/split implements it.
type Region interface {
	InTrain(c gym.Condition) bool
	// Level reports whether any condition that InTrain admits may have that level of that dial of the pack.
	Level(dial, level int) bool
}

// SpaceOf returns the space of a pack's families and dials; nil takes all of them. A factor has the levels that the region has
// at all, so that draws seldom miss a narrow region. The nominal level of a dial is its base, or the level of the region that
// is nearest to it. Dials that are left out, or have one level, stay at their nominal level. A nil region allows all. A cell's
// id is its condition's id.
//
// Errors: gym.ErrUnknown (family, dial), gym.ErrBadInput (a dial with more levels than MaxLevels), gym.ErrHeldOut (a dial
// without a level in the region).
func SpaceOf(pack *gym.Pack, families, dials []string, region Region) (Space, error) {
	if families == nil {
		families = pack.FamilyNames()
	}
	if dials == nil {
		dials = pack.DialNames()
	}
	if len(families) == 0 {
		return Space{}, fmt.Errorf("%w: breaker: no family of pack %s is left", gym.ErrBadInput, pack.Name)
	}
	g := &grid{families: slices.Clone(families)}
	for i, f := range families {
		c, err := pack.Condition(f)
		if err != nil {
			return Space{}, err
		}
		if i == 0 {
			g.base = c
		}
	}
	levels := make([][]uint8, len(pack.Dials))
	for i, d := range pack.Dials {
		allowed := func(l int) bool { return region == nil || region.Level(i, l) }
		nominal, ok := d.Nearest(allowed)
		if !ok {
			return Space{}, fmt.Errorf("%w: breaker: no level of dial %s is in the train region", gym.ErrHeldOut, d.Name)
		}
		g.base.Levels[i] = uint8(nominal)
		for l := range d.Levels {
			if allowed(l) {
				levels[i] = append(levels[i], uint8(l))
			}
		}
	}
	s := Space{Factors: []Factor{{Name: FamilyFactor, Levels: g.families, Nominal: Free}}, grid: g}
	for _, name := range dials {
		i := slices.IndexFunc(pack.Dials, func(d gym.Dial) bool { return d.Name == name })
		if i < 0 {
			return Space{}, fmt.Errorf("%w: breaker: pack %s has no dial %q; known: %v", gym.ErrUnknown, pack.Name, name, pack.DialNames())
		}
		d := pack.Dials[i]
		if len(levels[i]) < 2 {
			continue
		}
		g.dials, g.levels = append(g.dials, i), append(g.levels, levels[i])
		f := Factor{Name: d.Name, Nominal: slices.Index(levels[i], g.base.Levels[i])}
		for _, l := range levels[i] {
			f.Levels = append(f.Levels, d.Levels[l])
		}
		s.Factors = append(s.Factors, f)
	}
	s.Name = func(c Cell) string { return g.condition(c).ID() }
	if region != nil {
		s.Excluded = func(c Cell) bool { return !region.InTrain(g.condition(c)) }
	}
	return s, s.Validate()
}

func (g *grid) condition(c Cell) gym.Condition {
	out := g.base
	out.Family = g.families[c[0]]
	for i, d := range g.dials {
		out.Levels[d] = g.levels[i][c[i+1]]
	}
	return out
}

// Condition returns the condition of a cell.
//
// Errors: gym.ErrBadInput (a space that is not of a pack, a malformed cell), gym.ErrHeldOut (an excluded cell).
func (s Space) Condition(c Cell) (gym.Condition, error) {
	if s.grid == nil {
		return gym.Condition{}, fmt.Errorf("%w: breaker: this space is not of a pack", gym.ErrBadInput)
	}
	whole := s
	whole.Excluded = nil
	if !whole.Allows(c) {
		return gym.Condition{}, fmt.Errorf("%w: breaker: %v is not a cell of this space", gym.ErrBadInput, []uint8(c))
	}
	cond := s.grid.condition(c)
	if !s.Allows(c) {
		return gym.Condition{}, fmt.Errorf("%w: %s", gym.ErrHeldOut, cond.ID())
	}
	return cond, nil
}

// Task returns the task of a cell and a seed; its errors are those of Condition.
func (s Space) Task(c Cell, seed uint64) (gym.Task, error) {
	cond, err := s.Condition(c)
	return gym.Task{Condition: cond, Seed: seed}, err
}

// Cell is the inverse of Condition.
//
// Errors: gym.ErrBadInput (another pack, a dial outside the space off its base, or a space that is not of a pack),
// gym.ErrUnknown (family), gym.ErrHeldOut (an excluded cell).
func (s Space) Cell(cond gym.Condition) (Cell, error) {
	if s.grid == nil || cond.Pack != s.grid.base.Pack {
		return nil, fmt.Errorf("%w: breaker: the condition is not of this space's pack", gym.ErrBadInput)
	}
	f := slices.Index(s.grid.families, cond.Family)
	if f < 0 {
		return nil, fmt.Errorf("%w: breaker: family %q is not in this space", gym.ErrUnknown, cond.Family)
	}
	c := Cell{uint8(f)}
	for i, d := range s.grid.dials {
		c = append(c, uint8(slices.Index(s.grid.levels[i], cond.Levels[d]))) // one that it lacks becomes 255, which is none
	}
	whole := s
	whole.Excluded = nil
	if !whole.Allows(c) || s.grid.condition(c) != cond {
		return nil, fmt.Errorf("%w: breaker: %s turns a dial that this space holds at its base", gym.ErrBadInput, cond.ID())
	}
	if !s.Allows(c) {
		return nil, fmt.Errorf("%w: %s", gym.ErrHeldOut, cond.ID())
	}
	return c, nil
}

package breaker

import (
	"fmt"
	"slices"

	"provegym/gym"
)

// FamilyFactor is the name of the factor that a pack's families make.
const FamilyFactor = "family"

// grid translates cells to conditions of one pack: factor 0 is the family, factor i+1 is dial dials[i].
type grid struct {
	base     gym.Condition
	families []string
	dials    []int
}

// SpaceOf returns the space of a pack's families and dials; nil takes all of them. Dials that are left out, or have one
// level, stay at their base. The nominal level of a dial is its base. region says which conditions may be drawn, which is
// the train region of the split; nil allows all. A cell's id is its condition's id.
//
// Errors: gym.ErrUnknown (family, dial), gym.ErrBadInput (a dial with more levels than MaxLevels).
func SpaceOf(pack *gym.Pack, families, dials []string, region func(gym.Condition) bool) (Space, error) {
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
	s := Space{Factors: []Factor{{Name: FamilyFactor, Levels: g.families, Nominal: Free}}, grid: g}
	for _, name := range dials {
		i := slices.IndexFunc(pack.Dials, func(d gym.Dial) bool { return d.Name == name })
		if i < 0 {
			return Space{}, fmt.Errorf("%w: breaker: pack %s has no dial %q; known: %v", gym.ErrUnknown, pack.Name, name, pack.DialNames())
		}
		d := pack.Dials[i]
		if len(d.Levels) < 2 {
			continue
		}
		g.dials = append(g.dials, i)
		s.Factors = append(s.Factors, Factor{Name: d.Name, Levels: d.Levels, Nominal: d.Base})
	}
	s.Name = func(c Cell) string { return g.condition(c).ID() }
	if region != nil {
		s.Excluded = func(c Cell) bool { return !region(g.condition(c)) }
	}
	return s, s.Validate()
}

func (g *grid) condition(c Cell) gym.Condition {
	out := g.base
	out.Family = g.families[c[0]]
	for i, d := range g.dials {
		out.Levels[d] = c[i+1]
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
	for _, d := range s.grid.dials {
		c = append(c, cond.Levels[d])
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

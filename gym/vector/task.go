package vector

import (
	"errors"
	"fmt"
	"slices"

	"provegym/gym"
)

// Sampler draws tasks: a family uniformly among those that the mode allows, one of its presets uniformly, fixed dials, a seed.
type Sampler struct {
	Pack     *gym.Pack
	Families []string      // nil: all that the mode allows. A family named here that it does not allow at all is an error.
	Presets  []string      // nil: the base settings; in training, where a split has bounds, the nearest that it allows
	Dials    []gym.Setting // set last, over the presets
	Split    gym.Split     // required by every mode but Free
	Mode     gym.Mode

	allowed [][]gym.Condition // by family, then preset
}

// Prepare checks the sampler and lists the conditions that it draws from.
//
// Errors: gym.ErrUnknown, gym.ErrBadInput, gym.ErrHeldOut when nothing is left or a family that was named is held out.
func (s *Sampler) Prepare() error {
	if s.Pack == nil {
		return fmt.Errorf("%w: a pack is needed", gym.ErrBadInput)
	}
	if s.Mode != gym.Free && s.Split == nil {
		return fmt.Errorf("%w: mode %s needs a split", gym.ErrBadInput, s.Mode)
	}
	families := s.Families
	if families == nil {
		families = s.Pack.FamilyNames()
	}
	s.allowed = nil
	var refused error
	for _, f := range families {
		var conditions []gym.Condition
		var why error
		for _, preset := range s.presets() {
			c, err := s.condition(f, preset)
			if err != nil {
				return err
			}
			if why = s.admit(c); why == nil {
				conditions = append(conditions, c)
			} else if !errors.Is(why, gym.ErrHeldOut) {
				return why
			}
		}
		switch {
		case len(conditions) > 0:
			s.allowed = append(s.allowed, conditions)
		case s.Families != nil:
			return why
		default:
			refused = why
		}
	}
	if len(s.allowed) == 0 {
		if refused == nil {
			return fmt.Errorf("%w: the list of families is empty", gym.ErrBadInput)
		}
		return fmt.Errorf("no family is left in mode %s: %w", s.Mode, refused)
	}
	return nil
}

func (s *Sampler) presets() []string {
	if len(s.Presets) == 0 {
		return []string{""}
	}
	return s.Presets
}

func (s *Sampler) condition(family, preset string) (c gym.Condition, err error) {
	if preset == "" {
		c, err = s.Pack.Condition(family)
		s.bound(&c)
	} else {
		c, err = s.Pack.Preset(family, preset)
	}
	for _, d := range s.Dials {
		if err == nil {
			c, err = c.Set(d.Dial, d.Value)
		}
	}
	return c, err
}

// bound moves dials whose base training may not see to the nearest level that it may.
func (s *Sampler) bound(c *gym.Condition) {
	split, ok := s.Split.(interface{ Level(dial, level int) bool })
	if !ok || s.Mode != gym.Train {
		return
	}
	for i := range s.Pack.Dials {
		if l, ok := s.Pack.Dials[i].Nearest(func(level int) bool { return split.Level(i, level) }); ok {
			c.Levels[i] = uint8(l)
		}
	}
}

func (s *Sampler) admit(c gym.Condition) error {
	if s.Mode == gym.Free {
		return nil
	}
	return s.Split.Admit(s.Mode, c, "", nil)
}

// Admit checks a task given from outside as the rows will: its pack, and its condition and graph against the split.
func (s *Sampler) Admit(t gym.Task) error {
	if t.Pack != s.Pack {
		return fmt.Errorf("%w: task %s is not of pack %s", gym.ErrBadInput, t.ID(), s.Pack.Name)
	}
	if s.Mode == gym.Free {
		return nil
	}
	if err := s.admit(t.Condition); err != nil {
		return err
	}
	b, err := t.Pack.Build(t)
	if err != nil {
		return nil // its row will be invalid and say why
	}
	return s.Split.Admit(s.Mode, t.Condition, b.Graph, b.Mechanisms)
}

// Draw returns task number counter of the stream of seed. Prepare must have succeeded.
func (s *Sampler) Draw(seed, counter uint64) gym.Task {
	rng := gym.NewKey(seed, "task").At(counter).Stream()
	conditions := gym.Pick(&rng, s.allowed)
	return gym.Task{Condition: gym.Pick(&rng, conditions), Seed: rng.Uint64()}
}

// maxRefused bounds the draws for one episode that a split refuses only once the task is built.
const maxRefused = 1000

// group is rows that get the same tasks. A group of one is a row.
type group struct {
	seed    uint64
	counter uint64
	jobs    []job // from episode number `from` on
	from    int
}

type job struct {
	Job
	sourced bool // the source wants to be told
	serial  uint64
}

// assign gives each of the rows, in row order, the job that its next episode takes. again says that theirs were refused.
func (v *Vector) assign(rows []int, again bool) {
	v.trim(rows)
	v.need = v.need[:0]
	for _, i := range rows {
		r := &v.rows[i]
		g := &v.groups[i/v.size]
		at := r.episode - g.from
		switch {
		case at == len(g.jobs):
			g.jobs = append(g.jobs, job{})
			v.need = append(v.need, slot{g, at})
		case again && g.jobs[at].serial == r.job.serial && !slices.Contains(v.need, slot{g, at}):
			for range v.size { // no member has begun it
				v.lose(&g.jobs[at])
			}
			v.need = append(v.need, slot{g, at})
		}
	}
	v.fill(v.need)
	for _, i := range rows {
		r := &v.rows[i]
		g := &v.groups[i/v.size]
		r.job = g.jobs[r.episode-g.from]
	}
}

// slot is the place of a job in a group.
type slot struct {
	group *group
	at    int
}

// fill draws a job for every slot: from the queue, else from the source, else from the group's own stream. A source that fails
// is reported when the step is done.
func (v *Vector) fill(need []slot) {
	put := func(s slot, j Job, sourced bool) {
		v.serial++
		s.group.jobs[s.at] = job{j, sourced, v.serial}
	}
	k := min(len(need), len(v.queue))
	for i, s := range need[:k] {
		put(s, v.queue[i], false)
	}
	v.queue, need = v.queue[k:], need[k:]
	if v.cfg.Source != nil && len(need) > 0 {
		jobs, err := v.cfg.Source.Ask(len(need))
		if err != nil {
			v.sourceErr = fmt.Errorf("ask the source for %d tasks: %w", len(need), err)
		}
		k := min(len(need), len(jobs))
		for i, s := range need[:k] {
			put(s, jobs[i], true)
		}
		need = need[k:]
	}
	for _, s := range need {
		put(s, Job{Task: v.cfg.Draw(s.group.seed, s.group.counter), Labels: v.cfg.Labels}, false)
		s.group.counter++
	}
}

// trim forgets the jobs that every member of the rows' groups has begun.
func (v *Vector) trim(rows []int) {
	for _, i := range rows {
		g := &v.groups[i/v.size]
		first := i - i%v.size
		least := v.rows[first].episode
		for k := first + 1; k < first+v.size; k++ {
			least = min(least, v.rows[k].episode)
		}
		if n := least - g.from; n > 0 {
			g.jobs = g.jobs[:copy(g.jobs, g.jobs[n:])]
			g.from = least
		}
	}
}

// reseed starts the stream of group k anew. Jobs that members have not begun come to nothing.
func (v *Vector) reseed(k int, seed uint64) {
	g := &v.groups[k]
	for m := k * v.size; m < (k+1)*v.size; m++ {
		for at := range g.jobs {
			if v.rows[m].episode <= g.from+at {
				v.lose(&g.jobs[at])
			}
		}
		v.rows[m].episode = 0
	}
	*g = group{seed: seed}
}

// lose tells the source that an episode of j came to nothing.
func (v *Vector) lose(j *job) {
	if j.sourced {
		v.results = append(v.results, Result{Job: j.Job, Outcome: gym.Invalid})
	}
}

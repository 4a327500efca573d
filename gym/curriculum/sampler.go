package curriculum

import (
	"fmt"
	"slices"

	"provegym/gym"
	"provegym/gym/breaker"

	"gonum.org/v1/gonum/stat/sampleuv"
)

// Options steer a sampler. The zero value works.
type Options struct {
	Uniform  bool `json:"uniform,omitempty"`  // draw uniformly over the train region, whatever was told
	Solvable bool `json:"solvable,omitempty"` // the oracle succeeds by construction: no entry test
}

// Task is one episode to run: build the condition of the cell, reset it with the seed, play it.
type Task struct {
	ID        uint64       `json:"id"`    // counts up from 0
	Group     uint64       `json:"group"` // members of a group have the same condition and seed
	Item      string       `json:"item"`
	Cell      breaker.Cell `json:"cell"`
	Condition string       `json:"condition"` // Space.ID of the cell
	Seed      uint64       `json:"seed,string"`
}

// Result is what became of a task. A crash or a timeout of the agent is not passed; a lost episode has no outcome and counts
// as nothing.
type Result struct {
	ID     uint64 `json:"id"`
	Passed bool   `json:"passed"`
	Lost   bool   `json:"lost,omitempty"`
}

// Draw is one line of the ledger: a condition and seed that was handed out.
type Draw struct {
	Group     uint64 `json:"group"`
	Condition string `json:"condition"`
	Seed      uint64 `json:"seed,string"`
	Item      string `json:"item"`
	Entry     bool   `json:"entry,omitempty"` // for an entry test
}

// Sampler draws training tasks. It is not safe for concurrent use.
type Sampler struct {
	space breaker.Space
	opts  Options
	key   gym.Key // of the draws
	seeds gym.Key // of the tasks
	st    state
}

// state is what a sampler must remember beyond its space, key and options.
type state struct {
	Items      []*item        `json:"items"`
	Out        map[uint64]int `json:"out"` // tasks asked and not told, by the index of their item; -1 for uniform draws
	NextTask   uint64         `json:"next_task"`
	NextGroup  uint64         `json:"next_group"`
	Updates    int            `json:"updates"` // calls of Tell and Advance
	Version    int            `json:"version"` // raised by all that changes what At draws
	Checkpoint string         `json:"checkpoint"`
	Ledger     []Draw         `json:"ledger"` // not taken yet
}

// UniformItem is the item of every task in uniform mode.
const UniformItem = "uniform"

// New starts a sampler over space, whose allowed cells are the train region. It has one coverage item for each level of the
// factor without a nominal level (the family), or one for everything. Families that the space excludes altogether have none.
// Seeds are key.Sub("train").Sub(condition id).At(group).Seed(), so they meet no stream of Break or Prove.
//
// Errors: gym.ErrBadInput (see breaker.Space.Validate), gym.ErrHeldOut (the space excludes everything).
func New(space breaker.Space, key gym.Key, opts Options) (*Sampler, error) {
	s, err := build(space, key, opts)
	if err != nil {
		return nil, err
	}
	patterns := []breaker.Pattern{space.Open()}
	for f, factor := range space.Factors {
		if factor.Nominal != breaker.Free {
			continue
		}
		patterns = nil
		for l := range factor.Levels {
			p := space.Open()
			p[f] = l
			patterns = append(patterns, p)
		}
	}
	for _, p := range patterns {
		if s.allows(p) {
			s.add(CoverageItem, space.Settings(p), p)
		}
	}
	if len(s.st.Items) == 0 {
		return nil, fmt.Errorf("%w: curriculum: the train region is empty", gym.ErrHeldOut)
	}
	return s, nil
}

func build(space breaker.Space, key gym.Key, opts Options) (*Sampler, error) {
	if err := space.Validate(); err != nil {
		return nil, err
	}
	s := &Sampler{space: space, opts: opts, key: key.Sub("curriculum"), seeds: key.Sub("train")}
	s.st.Out = map[uint64]int{}
	return s, nil
}

// allows reports whether p has a cell in the train region.
func (s *Sampler) allows(p breaker.Pattern) bool {
	rng := s.key.Sub("allows").Stream() // which cell does not matter
	_, ok := s.space.Draw(&rng, p, nil)
	return ok
}

func (s *Sampler) add(kind Kind, settings []breaker.Setting, p breaker.Pattern) string {
	t := &item{ID: idOf(settings), Kind: kind, Settings: settings, Entry: Pending, Drawn: s.st.Updates, pattern: p}
	if s.opts.Solvable {
		t.Entry = Active
	}
	s.st.Items = append(s.st.Items, t)
	return t.ID
}

func idOf(settings []breaker.Setting) string {
	if len(settings) == 0 {
		return "*"
	}
	id := ""
	for i, set := range settings {
		if i > 0 {
			id += "&"
		}
		id += set.Factor + "=" + set.Level
	}
	return id
}

func (s *Sampler) find(id string) *item {
	i := slices.IndexFunc(s.st.Items, func(t *item) bool { return t.ID == id })
	if i < 0 {
		return nil
	}
	return s.st.Items[i]
}

// Add makes items of confirmed causes and returns the ids of the new ones. Causes known before, or equal to a coverage item,
// are left as they are, with their outcomes; those that another cause covers are passed over. A cause that is solved or retired stays: the forgetting guard watches it. Add
// changes nothing when it returns an error.
//
// Errors: gym.ErrBadInput (a cause that is not confirmed), gym.ErrUnknown (a factor or level that the space lacks),
// gym.ErrHeldOut (no condition of the train region has the cause).
func (s *Sampler) Add(causes []breaker.Cause) ([]string, error) {
	type found struct {
		settings []breaker.Setting
		p        breaker.Pattern
	}
	var fresh []found
	for _, c := range causes {
		if c.Status != breaker.Confirmed {
			return nil, fmt.Errorf("%w: curriculum: cause %s is %s, not confirmed", gym.ErrBadInput, c.ID, c.Status)
		}
		if c.ImpliedBy != "" {
			continue
		}
		p, err := s.space.Pattern(c.Settings)
		if err != nil {
			return nil, fmt.Errorf("curriculum: cause %s: %w", c.ID, err)
		}
		if !s.allows(p) {
			return nil, fmt.Errorf("%w: curriculum: cause %s lies outside the train region", gym.ErrHeldOut, c.ID)
		}
		fresh = append(fresh, found{s.space.Settings(p), p})
	}
	added := []string{}
	for _, f := range fresh {
		if s.find(idOf(f.settings)) == nil {
			added = append(added, s.add(CauseItem, f.settings, f.p))
		}
	}
	if len(added) > 0 {
		s.st.Version++
	}
	return added, nil
}

// Pending returns the items that wait for their entry test.
func (s *Sampler) Pending() []string {
	out := []string{}
	for _, t := range s.st.Items {
		if t.Entry == Pending {
			out = append(out, t.ID)
		}
	}
	return out
}

// Entry returns EntryTries tasks of an item, for the entry test: run the expected-value policy, the heuristic, the oracle or
// the best checkpoint on them and tell Admit whether one of them passed once. They are in the ledger; they are not told.
//
// Errors: gym.ErrUnknown.
func (s *Sampler) Entry(id string) ([]Task, error) {
	t := s.find(id)
	if t == nil {
		return nil, fmt.Errorf("%w: curriculum: item %q", gym.ErrUnknown, id)
	}
	var out []Task
	for range EntryTries {
		task, err := s.draw(t, t.pattern, true)
		if err != nil {
			return nil, err
		}
		task.ID = s.st.NextTask
		s.st.NextTask++
		out = append(out, task)
	}
	return out, nil
}

// Admit records an entry test: an item on which some reference agent passed is drawn from now on, the others are kept out as
// possibly impossible. It may be called again.
//
// Errors: gym.ErrUnknown.
func (s *Sampler) Admit(id string, passed bool) error {
	t := s.find(id)
	if t == nil {
		return fmt.Errorf("%w: curriculum: item %q", gym.ErrUnknown, id)
	}
	was := t.Entry
	t.Entry = Impossible
	if passed {
		t.Entry = Active
		if was != Active {
			t.Drawn = s.st.Updates
		}
	}
	if t.Entry != was {
		s.st.Version++
	}
	return nil
}

// Checkpoint says which policy the results told from here on come from.
func (s *Sampler) Checkpoint(hash string) {
	if hash != s.st.Checkpoint {
		s.st.Checkpoint = hash
		s.st.Version++
	}
}

// Ask returns n tasks in n/group groups; the members of a group have the same task. Each group is drawn anew: with
// replacement, by the weights as they stand.
//
// Errors: gym.ErrBadInput (n is no multiple of group, nothing is admitted), gym.ErrHeldOut (no cell of the train region could
// be drawn). On an error nothing was asked.
func (s *Sampler) Ask(n, group int) ([]Task, error) {
	if n < 1 || group < 1 || n%group != 0 {
		return nil, fmt.Errorf("%w: curriculum: %d tasks in groups of %d", gym.ErrBadInput, n, group)
	}
	var rng gym.Stream
	pick, err := s.urn(&rng)
	if err != nil {
		return nil, err
	}
	before, ledger := s.st.NextGroup, len(s.st.Ledger)
	out := make([]Task, 0, n)
	items := make([]int, 0, n/group)
	for len(out) < n {
		rng = s.key.Sub("item").At(s.st.NextGroup).Stream()
		i := pick()
		t, p := s.item(i)
		task, err := s.draw(t, p, false)
		if err != nil {
			s.st.NextGroup, s.st.Ledger = before, s.st.Ledger[:ledger]
			return nil, err
		}
		items = append(items, i)
		for range group {
			out = append(out, task)
		}
	}
	for k := range out {
		i := items[k/group]
		out[k].ID = s.st.NextTask
		s.st.NextTask++
		s.st.Out[out[k].ID] = i
	}
	fresh := false
	for _, i := range items {
		if i >= 0 && s.st.Items[i].Drawn != s.st.Updates {
			s.st.Items[i].Drawn, fresh = s.st.Updates, true
		}
	}
	if fresh { // the weights look at how long ago an item was drawn
		s.st.Version++
	}
	return out, nil
}

// urn returns a function that draws the index of an item by the weights as they stand, from rng as it then is; -1 stands for a
// uniform draw.
//
// Errors: gym.ErrBadInput (nothing is admitted).
func (s *Sampler) urn(rng *gym.Stream) (func() int, error) {
	if s.opts.Uniform {
		return func() int { return -1 }, nil
	}
	ws := s.Weights()
	if len(ws) == 0 {
		return nil, fmt.Errorf("%w: curriculum: no item is admitted; %d wait for their entry test", gym.ErrBadInput, len(s.Pending()))
	}
	share, at := make([]float64, len(ws)), make([]int, 0, len(ws))
	for i, t := range s.st.Items {
		if t.Entry == Active {
			at = append(at, i)
		}
	}
	for i, w := range ws {
		share[i] = w.Weight
	}
	urn := sampleuv.NewWeighted(share, rng)
	return func() int {
		i, _ := urn.Take()
		urn.Reweight(i, share[i]) // Take draws without replacement
		return at[i]
	}, nil
}

// item returns what urn drew, nil for a uniform draw, and the cells that it may take.
func (s *Sampler) item(i int) (*item, breaker.Pattern) {
	if i < 0 {
		return nil, s.space.Open()
	}
	return s.st.Items[i], s.st.Items[i].pattern
}

// draw makes the next group's task and enters it in the ledger.
func (s *Sampler) draw(t *item, p breaker.Pattern, entry bool) (Task, error) {
	task, err := s.take(t, p, s.key.Sub("cell").At(s.st.NextGroup), func(k gym.Key) gym.Key { return k.At(s.st.NextGroup) })
	if err != nil {
		return Task{}, err
	}
	task.Group = s.st.NextGroup
	s.st.NextGroup++
	s.st.Ledger = append(s.st.Ledger, Draw{task.Group, task.Condition, task.Seed, task.Item, entry})
	return task, nil
}

// take draws a cell of p from the stream of cell, and its seed from the key that seed derives from the condition's. It is the
// only place where a task comes from.
func (s *Sampler) take(t *item, p breaker.Pattern, cell gym.Key, seed func(gym.Key) gym.Key) (Task, error) {
	id := UniformItem
	if t != nil {
		id = t.ID
	}
	rng := cell.Stream()
	c, ok := s.space.Draw(&rng, p, nil)
	if !ok || !s.space.Allows(c) {
		return Task{}, fmt.Errorf("%w: curriculum: item %s: no condition of the train region was found", gym.ErrHeldOut, id)
	}
	task := Task{Item: id, Cell: c, Condition: s.space.ID(c)}
	task.Seed = s.space.Seed(seed(s.seeds.Sub(task.Condition)), c)
	return task, nil
}

// Tell records the results of one update of the policy; staleness counts these calls. The order of results is the order of
// the outcomes. It changes nothing when it returns an error.
//
// Errors: gym.ErrUnknown (a task that is not out: never asked, told before, or twice here).
func (s *Sampler) Tell(results []Result) error {
	seen := make(map[uint64]bool, len(results))
	for _, r := range results {
		if _, out := s.st.Out[r.ID]; !out || seen[r.ID] {
			return fmt.Errorf("%w: curriculum: task %d is not out", gym.ErrUnknown, r.ID)
		}
		seen[r.ID] = true
	}
	for _, r := range results {
		i := s.st.Out[r.ID]
		delete(s.st.Out, r.ID)
		if i >= 0 && !r.Lost {
			s.st.Items[i].tell(r.Passed, s.st.Checkpoint)
		}
	}
	s.st.Updates++
	s.st.Version++
	return nil
}

// TakeLedger returns what was handed out since the last call, in order, and forgets it: the caller has stored it. Prove
// checks it against the held-out conditions.
func (s *Sampler) TakeLedger() []Draw {
	out := s.st.Ledger
	s.st.Ledger = nil
	return out
}

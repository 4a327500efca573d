package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"

	"provegym/gym"
	"provegym/gym/breaker"
	"provegym/gym/curriculum"
	"provegym/gym/vector"
)

func init() {
	methods["curriculum.new"] = alone(newSampler)
	methods["curriculum.update"] = on((*sampler).update)
	methods["curriculum.ask"] = on((*sampler).ask)
	methods["curriculum.tell"] = on((*sampler).tell)
	methods["curriculum.at"] = on((*sampler).at)
	methods["curriculum.advance"] = on((*sampler).advance)
	methods["curriculum.report"] = on(func(s *sampler, in *struct{}) (any, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return map[string]any{"items": s.s.Weights()}, s.settle()
	})
	methods["curriculum.state"] = on((*sampler).state)
}

// sampler is a curriculum. Requests and the vectors that draw from it may use it at the same time.
type sampler struct {
	user
	mu     sync.Mutex // guards what follows
	s      *curriculum.Sampler
	region keyed
	out    map[string][]uint64 // tasks out, by item: those of one item are alike to the sampler
	groups map[int][]uint64    // members still out of the groups that vectors have
	told   []curriculum.Result // by vectors, not passed on yet
}

func (*sampler) kind() string { return "a curriculum" }

func (s *sampler) close() error { return s.free("this curriculum") }

type samplerState struct {
	stored
	Out map[string][]uint64 `json:"out"`
}

func newSampler(in *struct {
	region
	Key   number        `json:"key"`
	Mode  string        `json:"mode"`
	State *samplerState `json:"state"`
}) (any, error) {
	s := &sampler{region: keyed{in.region, keyText(runKey(in.Key).Sub("practice"))}, out: map[string][]uint64{}, groups: map[int][]uint64{}}
	if in.State != nil {
		s.region = in.State.keyed
	}
	space, err := s.region.space()
	if err != nil {
		return nil, err
	}
	if in.State != nil {
		if s.s, err = curriculum.Resume(space, gym.Key(s.region.Key), in.State.Inner); in.State.Out != nil {
			s.out = in.State.Out
		}
		return handleOf(s, err)
	}
	// Every task of a pack has an oracle that solves it by construction, so that no item needs an entry test.
	o := curriculum.Options{Solvable: true}
	switch in.Mode {
	case "", "failures":
	case "uniform":
		o.Uniform = true
	default:
		return nil, unknown("mode of a curriculum", in.Mode, []string{"failures", "uniform"})
	}
	s.s, err = curriculum.New(space, gym.Key(s.region.Key), o)
	return handleOf(s, err)
}

// settle passes on what vectors have told, as one update.
func (s *sampler) settle() error {
	if len(s.told) == 0 {
		return nil
	}
	err := s.s.Tell(s.told)
	s.told = nil
	return err
}

func (s *sampler) update(in *struct {
	Causes     []breaker.Cause `json:"causes"`
	Checkpoint string          `json:"checkpoint"`
}) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.settle(); err != nil {
		return nil, err
	}
	if _, err := s.s.Add(own(in.Causes)); err != nil {
		return nil, err
	}
	if in.Checkpoint != "" {
		s.s.Checkpoint(in.Checkpoint)
	}
	return map[string]any{"items": s.s.Weights()}, nil
}

type draw struct {
	ID     uint64     `json:"id"`
	Task   string     `json:"task"`
	Labels gym.Labels `json:"labels"`
	Group  uint64     `json:"group"`
	Item   string     `json:"item"`
}

func (s *sampler) ask(in *struct {
	N         int `json:"n"`
	GroupSize int `json:"group_size"`
}) (any, error) {
	if in.N > 1<<16 {
		return nil, badInput("n is %d; it must be from 1 to %d", in.N, 1<<16)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tasks, err := s.s.Ask(in.N, max(in.GroupSize, 1))
	if err != nil {
		return nil, err
	}
	out := make([]draw, len(tasks))
	for i, t := range tasks {
		out[i] = draw{t.ID, fmt.Sprintf("%s#seed=%d", t.Condition, t.Seed), labelsOf(t), t.Group, t.Item}
		s.out[t.Item] = append(s.out[t.Item], t.ID)
	}
	return map[string]any{"tasks": out}, nil
}

func labelsOf(t curriculum.Task) gym.Labels {
	return gym.Labels{Purpose: "train", Group: int64(t.Group)}
}

func (s *sampler) tell(in *struct {
	Results []curriculum.ItemResult `json:"results"`
}) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var results []curriculum.Result
	used := map[string]int{}
	for _, r := range in.Results {
		ids := s.out[r.Item][used[r.Item]:]
		if err := r.Check(); err != nil {
			return nil, err
		}
		n := r.Episodes + r.Lost
		if n > len(ids) {
			return nil, badInput("item %q: %d episodes are told and %d are out", r.Item, n, len(ids))
		}
		for i, id := range ids[:n] {
			results = append(results, curriculum.Result{ID: id, Passed: i < r.Episodes && r.Passed(i), Lost: i >= r.Episodes})
		}
		used[r.Item] += n
	}
	if err := s.settle(); err != nil {
		return nil, err
	}
	if err := s.s.Tell(results); err != nil {
		return nil, err
	}
	for item, n := range used {
		if s.out[item] = slices.Delete(s.out[item], 0, n); len(s.out[item]) == 0 {
			delete(s.out, item)
		}
	}
	return struct{}{}, nil
}

// slotDraw is the task of a slot.
type slotDraw struct {
	Task   string     `json:"task"`
	Item   string     `json:"item"`
	Labels gym.Labels `json:"labels"`
}

func (s *sampler) at(in *struct {
	Slots []number `json:"slots"`
}) (any, error) {
	if len(in.Slots) > 1<<16 {
		return nil, badInput("%d slots are asked for at once and %d is the most", len(in.Slots), 1<<16)
	}
	slots := make([]uint64, len(in.Slots))
	for i, slot := range in.Slots {
		if slots[i] = uint64(slot); slots[i] > math.MaxInt64 {
			return nil, badInput("slot %d is above %d", slots[i], math.MaxInt64)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tasks, err := s.s.AtAll(slots)
	if err != nil {
		return nil, err
	}
	out := make([]slotDraw, len(tasks))
	for i, t := range tasks {
		labels := labelsOf(t)
		labels.Slot = int64(t.ID)
		out[i] = slotDraw{fmt.Sprintf("%s#seed=%d", t.Condition, t.Seed), t.Item, labels}
	}
	return map[string]any{"version": s.s.Version(), "tasks": out}, nil
}

func (s *sampler) advance(in *struct {
	Results []curriculum.ItemResult `json:"results"`
}) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.settle(); err != nil {
		return nil, err
	}
	err := s.s.Advance(in.Results)
	return map[string]any{"version": s.s.Version()}, err
}

func (s *sampler) state(in *struct{}) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.settle(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(s.s)
	return map[string]any{"state": samplerState{stored{s.region, b}, s.out}}, err
}

// feed is a sampler as the source of a vector: groups of size members, results passed on once as many as the vector has rows
// have come, which is about one update of the policy.
type feed struct {
	*sampler
	size, rows int
}

// Ask implements vector.Source.
func (f feed) Ask(n int) ([]vector.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.told) >= f.rows {
		if err := f.settle(); err != nil {
			return nil, err
		}
	}
	tasks, err := f.s.Ask(n*f.size, f.size)
	if err != nil {
		return nil, err
	}
	jobs := make([]vector.Job, n)
	for i := range jobs {
		members := tasks[i*f.size : (i+1)*f.size]
		t := members[0]
		for _, m := range members {
			f.groups[int(t.Group)] = append(f.groups[int(t.Group)], m.ID)
		}
		task, err := gym.ParseTask(fmt.Sprintf("%s#seed=%d", t.Condition, t.Seed))
		if err != nil {
			return nil, err
		}
		jobs[i] = vector.Job{Task: task, Labels: labelsOf(t), Item: int(t.Group)}
	}
	return jobs, nil
}

// Tell implements vector.Source.
func (f feed) Tell(results []vector.Result) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range results {
		ids := f.groups[r.Item]
		if len(ids) == 0 {
			return fmt.Errorf("%w: group %d was told more often than it has members", errPanic, r.Item)
		}
		f.told = append(f.told, curriculum.Result{ID: ids[0], Passed: r.Success, Lost: r.Outcome == gym.Invalid || r.Outcome == gym.CheckError})
		if f.groups[r.Item] = ids[1:]; len(ids) == 1 {
			delete(f.groups, r.Item)
		}
	}
	return nil
}

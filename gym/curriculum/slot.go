package curriculum

import (
	"fmt"

	"provegym/gym"
)

// Version counts the changes of what At draws: every Tell and Advance, an Add that adds, an Admit or Checkpoint that changes
// something, an Ask that draws an item which the present update had not drawn. Samplers with the same key that went through
// the same calls are at the same version and draw the same.
func (s *Sampler) Version() int { return s.st.Version }

// At returns the task of a slot at the present version: an item drawn by the weights as they stand, a cell, a seed. It changes
// nothing, so that workers on several ranks that hold the same state draw the same task for the same slot, in any order and as
// often as they like. Its streams are keyed by the purpose "slot", the version and the slot; they meet neither those of Ask nor
// those of another version. ID and Group of the task are the slot. It is not out, and not in the ledger: Advance takes what
// became of it.
//
// Errors: gym.ErrBadInput (nothing is admitted), gym.ErrHeldOut (no cell of the train region could be drawn).
func (s *Sampler) At(slot uint64) (Task, error) {
	tasks, err := s.AtAll([]uint64{slot})
	if err != nil {
		return Task{}, err
	}
	return tasks[0], nil
}

// AtAll returns At of every slot; the weights are computed once.
func (s *Sampler) AtAll(slots []uint64) ([]Task, error) {
	var rng gym.Stream
	pick, err := s.urn(&rng)
	if err != nil {
		return nil, err
	}
	at := func(k gym.Key, slot uint64) gym.Key { return k.Sub("slot").At(uint64(s.st.Version)).At(slot) }
	out := make([]Task, len(slots))
	for i, slot := range slots {
		key := at(s.key, slot)
		rng = key.Sub("item").Stream()
		t, p := s.item(pick())
		if out[i], err = s.take(t, p, key.Sub("cell"), func(k gym.Key) gym.Key { return at(k, slot) }); err != nil {
			return nil, err
		}
		out[i].ID, out[i].Group = slot, slot
	}
	return out, nil
}

// ItemResult is what became of the tasks of one item. Crashes and timeouts of the agent are failures; lost episodes have no
// outcome.
type ItemResult struct {
	Item     string `json:"item"`
	Passes   int    `json:"passes"`
	Episodes int    `json:"episodes"` // that have an outcome
	Lost     int    `json:"lost"`
}

// maxEpisodes bounds the episodes of one ItemResult, and the lost ones.
const maxEpisodes = 1 << 20

// Check reports whether the numbers can be.
func (r *ItemResult) Check() error {
	switch {
	case r.Passes < 0 || r.Lost < 0 || r.Passes > r.Episodes:
		return fmt.Errorf("%w: item %q: %d passes in %d episodes and %d lost", gym.ErrBadInput, r.Item, r.Passes, r.Episodes, r.Lost)
	case r.Episodes > maxEpisodes || r.Lost > maxEpisodes:
		return fmt.Errorf("%w: item %q: %d episodes and %d lost are told at once and %d is the most", gym.ErrBadInput, r.Item, r.Episodes,
			r.Lost, maxEpisodes)
	}
	return nil
}

// Passed spreads the passes evenly over the episodes, as Bresenham's line does, and says whether episode i (from 0) is one. The
// order of results that are told by number alone is not known, and the weights look at the last 16: passes first would bias them.
func (r *ItemResult) Passed(i int) bool {
	upTo := func(i int) int { return (i*r.Passes + r.Episodes/2) / r.Episodes }
	return upTo(i+1) > upTo(i)
}

// Advance records the results of one update of the policy by item, as Ask and Tell would have: the items told count as drawn in
// this update, and staleness counts these calls. The tasks need not be out. Results of UniformItem move nothing but the count of
// updates. It changes nothing when it returns an error.
//
// Errors: gym.ErrUnknown (an item that the sampler does not have), gym.ErrBadInput (numbers that cannot be).
func (s *Sampler) Advance(results []ItemResult) error {
	for i := range results {
		r := &results[i]
		if r.Item != UniformItem && s.find(r.Item) == nil {
			return fmt.Errorf("%w: curriculum: item %q", gym.ErrUnknown, r.Item)
		}
		if err := r.Check(); err != nil {
			return fmt.Errorf("curriculum: %w", err)
		}
	}
	for i := range results {
		r := &results[i]
		t := s.find(r.Item)
		if t == nil || r.Episodes+r.Lost == 0 {
			continue
		}
		t.Drawn = s.st.Updates
		for k := range r.Episodes {
			t.tell(r.Passed(k), s.st.Checkpoint)
		}
	}
	s.st.Updates++
	s.st.Version++
	return nil
}

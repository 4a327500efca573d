package curriculum

import (
	"encoding/json"
	"fmt"

	"provegym/gym"
	"provegym/gym/breaker"
)

const schema = "provegym.curriculum/1"

// stored is the JSON of a sampler.
type stored struct {
	Schema  string  `json:"schema"`
	Key     string  `json:"key"` // a fingerprint: enough to notice another key, not to find this one
	Options Options `json:"options"`
	state
}

func (s *Sampler) fingerprint() string { return fmt.Sprintf("%016x", s.key.Sub("fingerprint").Hi) }

// MarshalJSON stores the whole sampler, between any two calls.
func (s *Sampler) MarshalJSON() ([]byte, error) {
	return json.Marshal(stored{schema, s.fingerprint(), s.opts, s.st})
}

// Resume takes up a stored sampler: from here on it draws what the stored one would have drawn. Tasks that were out may
// still be told. The key and the space must be given again.
//
// Errors: gym.ErrBadInput (not a stored sampler, or another key), gym.ErrUnknown (an item names a factor or level that the
// space lacks), gym.ErrHeldOut (an item lies outside the train region now).
func Resume(space breaker.Space, key gym.Key, data []byte) (*Sampler, error) {
	var in stored
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("%w: curriculum: stored sampler: %w", gym.ErrBadInput, err)
	}
	if in.Schema != schema {
		return nil, fmt.Errorf("%w: curriculum: stored sampler has schema %q, not %q", gym.ErrBadInput, in.Schema, schema)
	}
	s, err := build(space, key, in.Options)
	if err != nil {
		return nil, err
	}
	if in.Key != s.fingerprint() {
		return nil, fmt.Errorf("%w: curriculum: the sampler was stored under another key", gym.ErrBadInput)
	}
	s.st = in.state
	if s.st.Out == nil {
		s.st.Out = map[uint64]int{}
	}
	for _, t := range s.st.Items {
		if t.pattern, err = space.Pattern(t.Settings); err != nil {
			return nil, fmt.Errorf("curriculum: item %s: %w", t.ID, err)
		}
		if !s.allows(t.pattern) {
			return nil, fmt.Errorf("%w: curriculum: item %s lies outside the train region", gym.ErrHeldOut, t.ID)
		}
	}
	for _, i := range s.st.Out {
		if i < -1 || i >= len(s.st.Items) {
			return nil, fmt.Errorf("%w: curriculum: stored sampler: item %d of %d", gym.ErrBadInput, i, len(s.st.Items))
		}
	}
	return s, nil
}

package breaker

import (
	"encoding/json"
	"fmt"
	"slices"

	"provegym/gym"
)

// stored is the JSON of a search.
type stored struct {
	Schema  string   `json:"schema"`
	Key     string   `json:"key"` // a fingerprint: enough to notice another key, not to find this one
	Factors []Factor `json:"factors"`
	Options Options  `json:"options"`
	state
}

const schema = "provegym.break.search/1"

func (s *Search) fingerprint() string { return fmt.Sprintf("%016x", s.key.Sub("fingerprint").Hi) }

// MarshalJSON stores the whole search, between any two calls.
func (s *Search) MarshalJSON() ([]byte, error) {
	return json.Marshal(stored{schema, s.fingerprint(), s.space.Factors, s.opts, s.st})
}

// Resume takes up a stored search: from here on it asks what the stored one would have asked. The probes that were out
// must be run again; see Outstanding. The key is not stored, and neither is what the space excludes: both must be given
// again.
//
// Errors: gym.ErrBadInput (not a stored search, or another key or other factors), gym.ErrHeldOut (the space now excludes a
// cell that was asked).
func Resume(space Space, key gym.Key, data []byte) (*Search, error) {
	var in stored
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("%w: breaker: stored search: %w", gym.ErrBadInput, err)
	}
	if in.Schema != schema {
		return nil, fmt.Errorf("%w: breaker: stored search has schema %q, not %q", gym.ErrBadInput, in.Schema, schema)
	}
	s, err := build(space, key, in.Options)
	if err != nil {
		return nil, err
	}
	if in.Key != s.fingerprint() {
		return nil, fmt.Errorf("%w: breaker: the search was stored under another key", gym.ErrBadInput)
	}
	same := func(a, b Factor) bool {
		return a.Name == b.Name && a.Nominal == b.Nominal && slices.Equal(a.Levels, b.Levels)
	}
	if !slices.EqualFunc(in.Factors, space.Factors, same) {
		return nil, fmt.Errorf("%w: breaker: the search was stored with other factors", gym.ErrBadInput)
	}
	s.st = in.state
	for i := range s.st.Causes {
		c := &s.st.Causes[i]
		if c.pattern, err = space.Pattern(c.Settings); err != nil {
			return nil, err
		}
	}
	for _, e := range s.st.Ledger {
		if !space.Allows(e.Cell) {
			return nil, fmt.Errorf("%w: breaker: the stored search asked %s", gym.ErrHeldOut, e.Condition)
		}
		switch e.Outcome {
		case Open:
			s.open++
			if e.Stage == StageSearch {
				s.openSearch++
			}
		case Lost:
			s.lost++
		default:
			s.told++
		}
	}
	s.recount()
	return s, nil
}

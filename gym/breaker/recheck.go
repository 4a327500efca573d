package breaker

import (
	"fmt"

	"provegym/gym"
)

// Recheck has the causes of an earlier checkpoint tested before anything else, each by one confirmation on fresh seeds.
// Those that fail again are causes of this checkpoint; the others are retired. It must come before the first Ask, on a
// search of another checkpoint, and changes nothing when it returns an error.
//
// Errors: gym.ErrBadInput (not confirmed, of this very checkpoint, or too late), gym.ErrUnknown (a factor or level that the
// space lacks), gym.ErrHeldOut (the space excludes all of a cause).
func (s *Search) Recheck(causes []Cause) error {
	if len(s.st.Ledger) > 0 {
		return fmt.Errorf("%w: breaker: old causes are rechecked before anything is asked", gym.ErrBadInput)
	}
	var jobs []*job
	for _, c := range causes {
		if c.Status != Confirmed || c.ImpliedBy != "" {
			return fmt.Errorf("%w: breaker: cause %s is not a confirmed one of its own", gym.ErrBadInput, c.ID)
		}
		if c.Checkpoint == s.opts.Checkpoint {
			return fmt.Errorf("%w: breaker: cause %s is of checkpoint %q itself: its seeds would not be fresh", gym.ErrBadInput, c.ID, c.Checkpoint)
		}
		p, err := s.space.Pattern(c.Settings)
		if err != nil {
			return err
		}
		if !s.allows(p) {
			return fmt.Errorf("%w: breaker: cause %s", gym.ErrHeldOut, c.ID)
		}
		jobs = append(jobs, &job{Kind: recheck, Set: p, Old: &c})
	}
	rest := s.st.Jobs
	s.st.Jobs = nil
	for _, j := range jobs {
		s.newJob(j)
	}
	s.st.Jobs = append(s.st.Jobs, rest...)
	return nil
}

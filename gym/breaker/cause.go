package breaker

import (
	"maps"
	"slices"
	"strings"
)

// Status is how far a cause got.
type Status string

const (
	Confirmed   Status = "confirmed"
	Unconfirmed Status = "unconfirmed" // minimised, but the fresh confirmation did not say Fails
	Unminimised Status = "unminimised" // it screened as failing, but its minimal cause fails in another way (see Cause.Other)
	Unfinished  Status = "unfinished"  // the search ended, or gave it up, before it was confirmed
)

// Cause is a set of factors that makes the policy fail. Where a cause leaves a factor out, that factor was at its nominal
// level, or drawn uniformly if it has none.
type Cause struct {
	ID         string    `json:"id"` // factor=level joined by &, in the space's order; "*" where nothing is needed to fail
	Settings   []Setting `json:"settings"`
	Status     Status    `json:"status"`
	Q          Rate      `json:"q"`       // from the confirmation's episodes alone
	Minimal    bool      `json:"minimal"` // a whole pass over its factors dropped none, and none was held by a boundary
	Without    []Removal `json:"without"` // one for each factor, where minimisation measured it
	Mode       string    `json:"mode"`    // the commonest failure mode
	Modes      []Mode    `json:"modes"`   // all of them, commonest first
	Replay     []Replay  `json:"replay"`  // up to three failing episodes
	Spent      int       `json:"spent"`   // episodes, the one that raised the suspicion included
	FoundAt    int       `json:"found_at"`
	Checkpoint string    `json:"checkpoint"`
	Rechecked  bool      `json:"rechecked,omitempty"`  // known from an earlier checkpoint, confirmed again, not minimised again
	Other      string    `json:"other,omitempty"`      // the cause that minimisation slipped to, or slipped from
	ImpliedBy  string    `json:"implied_by,omitempty"` // a later cause with fewer factors that covers this one
	Reason     string    `json:"reason,omitempty"`     // why it is not confirmed

	pattern Pattern
}

// Removal is what happened without one factor, the others kept.
type Removal struct {
	Setting
	Q       Rate    `json:"q"`
	Verdict Verdict `json:"verdict"` // ok or undecided; boundary where the cell without it is held out, and was not run
}

// Boundary marks a factor that minimisation could not test because the cell without it is held out.
const Boundary Verdict = "boundary: held-out"

// Mode is one failure mode and how often it occurred.
type Mode struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Replay names one failing episode.
type Replay struct {
	Condition string `json:"condition"`
	Cell      Cell   `json:"cell"`
	Seed      uint64 `json:"seed,string"`
	Mode      string `json:"mode,omitempty"`
}

// Untested marks an old cause whose new test did not end.
const Untested Verdict = "not tested to the end"

// Retired is a cause of an earlier checkpoint that was not confirmed again. Only the verdict OK says that it is solved.
type Retired struct {
	Cause   Cause   `json:"cause"` // as the earlier checkpoint had it
	Q       Rate    `json:"q"`     // now
	Verdict Verdict `json:"verdict"`
}

// Solved reports whether the new test said that the cause fails no longer.
func (r Retired) Solved() bool { return r.Verdict == OK }

func causeID(settings []Setting) string {
	if len(settings) == 0 {
		return "*"
	}
	var b strings.Builder
	for i, s := range settings {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(s.Factor + "=" + s.Level)
	}
	return b.String()
}

// modesOf sorts a count of modes, commonest first, then by name.
func modesOf(count map[string]int) []Mode {
	out := []Mode{}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		out = append(out, Mode{name, count[name]})
	}
	slices.SortStableFunc(out, func(a, b Mode) int { return b.Count - a.Count })
	return out
}

func majority(count map[string]int) string {
	if m := modesOf(count); len(m) > 0 {
		return m[0].Name
	}
	return ""
}

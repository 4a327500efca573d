package gym

import (
	"math"
	"slices"
)

// Evidence is what checks, audits, oracles and controls judge by. It is never shown to an agent.
type Evidence struct {
	Pack   *Pack
	Task   Task
	Built  *Built
	First  World // as built; nobody may change it
	Last   World // as it is now
	Log    *Log
	Finish *Call // the committed finish, or nil
}

// Predicate is one named, pure condition over the evidence. A check that changes anything is a bug that packtest finds.
type Predicate struct {
	Name  string
	Holds func(e *Evidence) bool
}

// Check is what the reward is made of. Success = goals and path and collateral and commit, binary.
//
// An empty Goals, a missing Collateral or Commit, or goals that all hold at the start are errors when the task is built:
// a check over nothing must never pass.
type Check struct {
	Goals      []Predicate // over the end state; at least one is false at the start
	Path       []Predicate // facts observed at a version before a write, order of effects, bans; never tool names
	Collateral Predicate   // every write of the log, transient ones too, lies in the allowed set
	Commit     Predicate   // the finish names the right outcome, code and evidence
	// Reward maps the verdict to the scalar of the terminal step. nil means 1 for success and 0 otherwise. A value that is
	// NaN, infinite or outside [0, 1] ends the episode as check_error.
	Reward func(e *Evidence, c Components) float64
}

// Components are the four booleans of success.
type Components struct{ Goals, Path, Collateral, Commit bool }

// Success reports whether all four hold.
func (c Components) Success() bool { return c.Goals && c.Path && c.Collateral && c.Commit }

func all(ps []Predicate, e *Evidence) bool {
	ok := true
	for i := range ps {
		ok = ps[i].Holds(e) && ok
	}
	return ok
}

// Score evaluates the check.
func (c *Check) Score(e *Evidence) Components {
	return Components{all(c.Goals, e), all(c.Path, e), c.Collateral.Holds(e), c.Commit.Holds(e)}
}

func (c *Check) reward(e *Evidence, got Components) (float64, bool) {
	if c.Reward == nil {
		if got.Success() {
			return 1, true
		}
		return 0, true
	}
	r := c.Reward(e, got)
	return r, !(math.IsNaN(r) || r < 0 || r > 1)
}

// Audit is one member of the second set of checks, which the reward never sees. It flags a pass that did not do the work.
type Audit struct {
	Name string
	Doc  string
	Flag func(e *Evidence) (flagged bool, why string)
}

// Explanation is a reward taken apart.
type Explanation struct {
	Required    []Fact       `json:"required"`    // what the check asks for, met and missed
	Unrequested []string     `json:"unrequested"` // changes outside what it allows, in order
	Decisive    *Attribution `json:"decisive"`    // of a failure, by Episode.Explain; nil for a success and where the pack cannot say
}

// Fact is one condition of the check, in words.
type Fact struct {
	Part string `json:"part"` // goal, path or finish
	Text string `json:"text"`
	Met  bool   `json:"met"`
}

// Attribution is why an episode failed.
type Attribution struct {
	Call int    `json:"call"` // number of the decisive call, from 0: the first after which the oracle cannot succeed; -1 for none
	Kind string `json:"kind"` // of failure; "" if there is no decisive call
	Why  string `json:"why"`
}

// Outcome is the typed end of an episode; never a bare float.
type Outcome uint8

const (
	Running    Outcome = iota
	Scored             // the agent committed a finish: terminated
	Truncated          // a limit outside the task: truncated
	Invalid            // infrastructure failure: truncated, no reward
	CheckError         // the check itself failed: truncated, no reward
)

var outcomes = [...]string{"running", "scored", "truncated", "invalid", "check_error"}

func (o Outcome) String() string { return outcomes[o] }

// MarshalText spells the outcome as String does: JSON has words.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (o *Outcome) UnmarshalText(b []byte) error {
	i := slices.Index(outcomes[:], string(b))
	if i < 0 {
		return unknown("outcome", string(b), outcomes[:])
	}
	*o = Outcome(i)
	return nil
}

// Limit says which limit a truncated episode hit.
type Limit uint8

const (
	NoLimit Limit = iota
	LimitCalls
	LimitWall
	LimitBytes
	LimitTokens
)

var limits = [...]string{"", "calls", "wall", "bytes", "tokens"}

func (l Limit) String() string { return limits[l] }

// MarshalText spells the limit as String does, "" for none.
func (l Limit) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (l *Limit) UnmarshalText(b []byte) error {
	i := slices.Index(limits[:], string(b))
	if i < 0 {
		return unknown("limit", string(b), limits[1:])
	}
	*l = Limit(i)
	return nil
}

// Mode is what an episode is for. Every mode but Free needs a split.
type Mode uint8

const (
	Free  Mode = iota // no promise; Prove refuses such rows
	Train             // the train region only
	Eval              // train and eval regions: monitor looks
	Test              // every region: sealed looks
)

func (m Mode) String() string { return [...]string{"free", "train", "eval", "test"}[m] }

// ParseMode is the inverse of Mode.String.
func ParseMode(s string) (Mode, error) {
	for m := Free; m <= Test; m++ {
		if m.String() == s {
			return m, nil
		}
	}
	return Free, unknown("mode", s, []string{"free", "train", "eval", "test"})
}

// Split decides which conditions a mode may see. gym/split implements it.
type Split interface {
	Hash() string
	// Admit returns an error that wraps ErrHeldOut when mode may not see the condition. Graph and mechanisms are those of
	// the built task, or empty when it is not built yet.
	Admit(mode Mode, c Condition, graph string, mechanisms []string) error
}

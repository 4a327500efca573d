package curriculum

import (
	"math"
	"strings"

	"provegym/gym/breaker"

	"gonum.org/v1/gonum/stat/distuv"
)

// Kind is what an item is made of.
type Kind string

const (
	CauseItem    Kind = "cause"
	CoverageItem Kind = "coverage"
)

// Status is where an item stands. Pending and impossible items are not drawn at all; parked and solved ones get the floor
// share (and the solved the forgetting guard's) and nothing more.
type Status string

const (
	Pending    Status = "pending"    // waits for its entry test
	Impossible Status = "impossible" // possibly: no reference agent passed in EntryTries
	Active     Status = "active"
	Parked     Status = "parked" // hopeless for now
	Solved     Status = "solved"
)

const (
	// EntryTries is how many tasks the reference agents are given to show that an item is possible.
	EntryTries = 20

	recent  = 16 // outcomes that the weights look at
	history = 32 // outcomes that parked and solved look at: with 16 neither could ever be said
)

// item is one thing to practise.
type item struct {
	ID       string            `json:"id"`
	Kind     Kind              `json:"kind"`
	Settings []breaker.Setting `json:"settings"`
	Entry    Status            `json:"entry"` // Pending, Impossible or Active

	Outcomes    string  `json:"outcomes"` // the last 32, oldest first: 1 passed, 0 failed
	Seen        int     `json:"seen"`
	Checkpoints int     `json:"checkpoints"` // distinct ones, in a row, that outcomes came from
	Checkpoint  string  `json:"checkpoint"`
	Drawn       int     `json:"drawn"` // the update at which it was last drawn, or admitted
	Peak        float64 `json:"peak"`  // best posterior mean with at least 8 outcomes
	pattern     breaker.Pattern
	l, i        float64 // Variance and Between of the posterior; 0 when stale
	fresh       bool
}

// beta returns the posterior of the pass probability after the last n outcomes, from a uniform prior.
func (t *item) beta(n int) distuv.Beta {
	o := t.Outcomes[max(0, len(t.Outcomes)-n):]
	passes := strings.Count(o, "1")
	return distuv.Beta{Alpha: float64(1 + passes), Beta: float64(1 + len(o) - passes)}
}

// learn returns L = E[p(1-p)] = ab/((a+b)(a+b+1)), the expected signal of one episode, and I = P(.1 < p < .9).
func (t *item) learn() (l, i float64) {
	if !t.fresh {
		b := t.beta(recent)
		n := b.Alpha + b.Beta
		t.l = b.Alpha * b.Beta / (n * (n + 1))
		t.i = b.CDF(.9) - b.CDF(.1)
		t.fresh = true
	}
	return t.l, t.i
}

func (t *item) mean() float64 {
	b := t.beta(recent)
	return b.Alpha / (b.Alpha + b.Beta)
}

// forgotten is how far the pass rate has fallen below its peak, less a tolerance of .10; 0 for what was never good.
func (t *item) forgotten() float64 {
	if t.Seen < 8 || t.Peak <= .6 {
		return 0
	}
	return math.Max(0, t.Peak-t.mean()-.10)
}

// status judges the last 32 outcomes: parked when P(p < .1) > .9 after at least 32 of them over at least 3 checkpoints, solved
// when P(p < .9) < .1. An item leaves either state when its outcomes do.
func (t *item) status() Status {
	if t.Entry != Active {
		return t.Entry
	}
	b := t.beta(history)
	switch {
	case t.Seen >= history && t.Checkpoints >= 3 && b.CDF(.1) > .9:
		return Parked
	case b.CDF(.9) < .1:
		return Solved
	}
	return Active
}

func (t *item) tell(passed bool, checkpoint string) {
	o := "0"
	if passed {
		o = "1"
	}
	t.Outcomes += o
	t.Outcomes = t.Outcomes[max(0, len(t.Outcomes)-history):]
	t.Seen++
	if t.Checkpoints == 0 || t.Checkpoint != checkpoint {
		t.Checkpoints++
		t.Checkpoint = checkpoint
	}
	t.fresh = false
	if t.Seen >= 8 {
		t.Peak = math.Max(t.Peak, t.mean())
	}
}

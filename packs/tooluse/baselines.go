package tooluse

import (
	"provegym/gym"
)

// hasty is the priority heuristic's care: it resolves what the goal names, follows the rules that the instruction states, and makes
// the first change that it has the arguments for. It reads nothing twice and heeds nothing that comes up on the way.
var hasty = care{match: true, pages: true, retry: 2, rules: true, sides: true}

// newExpectedValue looks one step ahead with the level's published rates: another read costs a share of the budget, and is made
// where what it may save is worth more. It is the priority heuristic in all that is no matter of rates.
func newExpectedValue(e *gym.Evidence, _ int, key gym.Key) gym.Actor {
	c, care := &e.Task.Condition, hasty
	implicit := 0.0
	if c.Int("fault_class") > 0 {
		implicit = c.Float("fault_rate") / 2
	}
	// To look at an answer costs nothing; what looks wrong costs a call more, its share of the calls that the budget allows. Left as it
	// is it costs the whole case, 1.
	again := 1 / float64(e.Pack.Limits(*c).Calls)
	care.verify = implicit > implicit*again
	// These are certain to be worth it: what the instruction asks for, and what a result says has come up.
	care.confirm, care.hold, care.reread = true, true, true
	care.comparison = true // the first option is the cheapest with a chance of one in the number of options
	return &solver{care: care, key: key}
}

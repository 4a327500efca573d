package breaker

import "math"

// Verdict is what a sequential test says.
type Verdict string

const (
	Continue  Verdict = ""
	Fails     Verdict = "fails"
	OK        Verdict = "ok"
	Undecided Verdict = "undecided" // the cap was reached first; never treated as Fails
)

// Rule is Wald's sequential probability ratio test of "fails with probability at most Q0" against "at least Q1"
// (Wald 1945). With f failures and p passes the log-likelihood ratio is
//
//	f log(Q1/Q0) + p log((1-Q1)/(1-Q0))
//
// and the test says Fails at log((1-Beta)/Alpha), OK at log(Beta/(1-Alpha)), Undecided at Cap episodes. Where Q0 and Q1
// are .5 ∓ .15 both steps are equal, and the test is a net counter of fails minus passes.
type Rule struct {
	Alpha, Beta float64 // P(Fails) at Q0 and P(not Fails) at Q1, before the cap and the overshoot
	Q0, Q1      float64
	Cap         int // most episodes of one test
}

// Counter is the evidence of one test.
type Counter struct {
	Fails  int `json:"fails"`
	Passes int `json:"passes"`
}

// N is the number of episodes counted.
func (c Counter) N() int { return c.Fails + c.Passes }

// Add counts one episode.
func (c *Counter) Add(failed bool) {
	if failed {
		c.Fails++
	} else {
		c.Passes++
	}
}

// Judge says what the evidence amounts to.
func (r Rule) Judge(c Counter) Verdict {
	llr := float64(c.Fails)*math.Log(r.Q1/r.Q0) + float64(c.Passes)*math.Log((1-r.Q1)/(1-r.Q0))
	switch {
	case llr >= math.Log((1-r.Beta)/r.Alpha):
		return Fails
	case llr <= math.Log(r.Beta/(1-r.Alpha)):
		return OK
	case c.N() >= r.Cap:
		return Undecided
	}
	return Continue
}

// Need is the number of further episodes without which no verdict can come: asking that many at once wastes none.
func (r Rule) Need(c Counter) int {
	if r.Judge(c) != Continue {
		return 0
	}
	for k := 1; ; k++ {
		if r.Judge(Counter{c.Fails + k, c.Passes}) != Continue || r.Judge(Counter{c.Fails, c.Passes + k}) != Continue {
			return k
		}
	}
}

// Operating returns the exact operating characteristics at failure probability q: the probabilities of Fails and of OK, and
// the mean number of episodes. It sums over all paths by dynamic programming.
func (r Rule) Operating(q float64) (fails, ok, meanN float64) {
	at := map[Counter]float64{{}: 1}
	for n := 0; len(at) > 0; n++ {
		next := map[Counter]float64{}
		for f := 0; f <= n; f++ { // in order, so that sums do not depend on the map's
			c := Counter{f, n - f}
			p, here := at[c]
			if !here {
				continue
			}
			switch r.Judge(c) {
			case Fails:
				fails += p
			case OK:
				ok += p
			case Continue:
				next[Counter{f + 1, n - f}] += p * q
				next[Counter{f, n - f + 1}] += p * (1 - q)
				continue
			}
			meanN += p * float64(n)
		}
		at = next
	}
	return fails, ok, meanN
}

// rules are the three tests of one search.
type rules struct{ screen, inner, confirm Rule }

// rulesAt returns the tests around tau ± margin. A screen is quick to let go, a confirmation slow to believe.
func rulesAt(tau, margin float64) rules {
	q0, q1 := tau-margin, tau+margin
	return rules{
		screen:  Rule{Alpha: .05, Beta: .40, Q0: q0, Q1: q1, Cap: 25},
		inner:   Rule{Alpha: .05, Beta: .05, Q0: q0, Q1: q1, Cap: 30},
		confirm: Rule{Alpha: .01, Beta: .05, Q0: q0, Q1: q1, Cap: 40},
	}
}

package breaker

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"
)

// Report is what a search found. Its JSON has a fixed order; Text renders it.
type Report struct {
	Schema     string    `json:"schema"`
	Checkpoint string    `json:"checkpoint"`
	Factors    []Factor  `json:"factors"`
	Options    Options   `json:"options"`
	Done       bool      `json:"done"`
	Stop       string    `json:"stop"`
	Episodes   Episodes  `json:"episodes"`
	Causes     []Cause   `json:"causes"`  // confirmed, in the order found
	Groups     []Group   `json:"groups"`  // the same causes, touching levels merged
	Open       []Cause   `json:"open"`    // suspected, not confirmed
	Retired    []Retired `json:"retired"` // causes of an earlier checkpoint that were not confirmed again

	// Distinct counts the confirmed causes that no other one covers; per 1,000 episodes it is the measure of a search.
	Distinct         int     `json:"distinct"`
	DistinctPer1000  float64 `json:"distinct_per_1000"`
	RawFailuresPer1k float64 `json:"raw_failures_per_1000"` // for orientation: it ranks the worst search first

	Candidates  int     `json:"candidates_tested"` // confirmations begun
	FalseAtMost float64 `json:"false_at_most"`     // of them expected to be confirmed falsely, where they fail at most tau-margin
	PairsTried  float64 `json:"pairs_tried"`       // share of the pairs of levels that a search episode had
	Remain      Remain  `json:"remain"`
}

// Episodes counts what was run, by stage. Lost ones are apart.
type Episodes struct {
	Told     int `json:"told"`
	Search   int `json:"search"`
	Screen   int `json:"screen"`
	Minimise int `json:"minimise"`
	Confirm  int `json:"confirm"`
	Ignored  int `json:"ignored"` // told after their test had ended; counted in their stage too
	Lost     int `json:"lost"`
	Open     int `json:"open"`
	Failed   int `json:"failed"`
}

// Remain bounds what the search has not found. Since the last cause the uniform floor ran Episodes conditions that no
// cause explains, and Hits of them lay in a condition that screened as failing.
type Remain struct {
	Episodes int `json:"episodes"`
	Hits     int `json:"hits"`

	// Share is the one-sided 95 % Clopper-Pearson upper bound of the share of unexplained conditions that one episode and a
	// screen find (without hits 1-.05^(1/n); 1 without episodes).
	Share float64 `json:"share"`

	// Sensitivity is the chance that they find a condition which fails at tau+margin; ShareFailing is Share over it, at
	// most 1: the bound for the conditions that fail so often or more, the ones missed by luck included.
	Sensitivity  float64 `json:"sensitivity"`
	ShareFailing float64 `json:"share_failing"`
}

// Group is a box of causes: the same factors, and a run of levels of each one. Every cell of the box is a cause of its own.
type Group struct {
	Label  string   `json:"label"` // as in "family = refund & latency >= 2"
	Causes []string `json:"causes"`
	Ranges []Range  `json:"ranges"`
}

// Range is a run of levels of one factor.
type Range struct {
	Factor string   `json:"factor"`
	Levels []string `json:"levels"`
}

// Report describes the search as it stands.
func (s *Search) Report() Report {
	r := Report{
		Schema: "provegym.break.report/1", Checkpoint: s.opts.Checkpoint, Factors: s.space.Factors, Options: s.opts,
		Done: s.Done(), Stop: s.st.Stop, Causes: slices.Clone(s.st.Causes), Open: slices.Clone(s.st.Open),
		Retired: slices.Clone(s.st.Retired), Candidates: s.st.Confirmations,
		FalseAtMost: s.rules.confirm.Alpha * float64(s.st.Confirmations), Remain: s.remain(),
	}
	if r.Causes == nil {
		r.Causes = []Cause{}
	}
	if r.Open == nil {
		r.Open = []Cause{}
	}
	if r.Retired == nil {
		r.Retired = []Retired{}
	}
	n := &r.Episodes
	n.Told, n.Lost, n.Open = s.told, s.lost, s.open
	v := levelsOf(s.space)
	tried := map[int]bool{}
	for i := range s.st.Ledger {
		e := &s.st.Ledger[i]
		if e.Outcome == Open || e.Outcome == Lost {
			continue
		}
		switch e.Stage {
		case StageSearch:
			n.Search++
			for a := range e.Cell {
				for b := a + 1; b < len(e.Cell); b++ {
					tried[v.pair(a, int(e.Cell[a]), b, int(e.Cell[b]))] = true
				}
			}
		case StageScreen:
			n.Screen++
		case StageMinimise:
			n.Minimise++
		case StageConfirm:
			n.Confirm++
		}
		if e.Outcome == Failed {
			n.Failed++
		}
		if e.Ignored {
			n.Ignored++
		}
	}
	pairs := 0
	for a := range s.space.Factors {
		for b := a + 1; b < len(s.space.Factors); b++ {
			pairs += len(s.space.Factors[a].Levels) * len(s.space.Factors[b].Levels)
		}
	}
	if pairs > 0 {
		r.PairsTried = float64(len(tried)) / float64(pairs)
	}
	for _, c := range r.Causes {
		if c.ImpliedBy == "" {
			r.Distinct++
		}
	}
	if n.Told > 0 {
		r.DistinctPer1000 = 1000 * float64(r.Distinct) / float64(n.Told)
		r.RawFailuresPer1k = 1000 * float64(n.Failed) / float64(n.Told)
	}
	r.Groups = s.groups()
	return r
}

func (s *Search) remain() Remain {
	r := Remain{Episodes: s.st.FloorN, Hits: min(s.st.FloorHits, s.st.FloorN), Share: 1}
	if x, n := float64(r.Hits), float64(r.Episodes); x < n {
		r.Share = distuv.Beta{Alpha: x + 1, Beta: n - x}.Quantile(.95)
	}
	q := s.opts.Tau + s.opts.Margin
	fails, _, _ := s.rules.screen.Operating(q)
	r.Sensitivity = q * fails
	r.ShareFailing = math.Min(1, r.Share/r.Sensitivity)
	return r
}

// groups merges causes with the same factors whose levels touch, as long as what they make is a full box. A factor without
// a nominal level has no order, so its levels never touch.
func (s *Search) groups() []Group {
	type span struct{ lo, hi int }
	type box struct {
		spans []span
		ids   []string
	}
	var boxes []box
	for _, c := range s.st.Causes {
		if c.ImpliedBy != "" {
			continue
		}
		b := box{ids: []string{c.ID}}
		for _, l := range c.pattern {
			b.spans = append(b.spans, span{l, l})
		}
		boxes = append(boxes, b)
	}
	touch := func(a, b box) (int, bool) { // the one factor in which they differ, by adjacent runs
		at := -1
		for f := range a.spans {
			if a.spans[f] == b.spans[f] {
				continue
			}
			if at >= 0 || a.spans[f].lo < 0 || b.spans[f].lo < 0 || s.space.Factors[f].Nominal == Free ||
				a.spans[f].hi+1 != b.spans[f].lo && b.spans[f].hi+1 != a.spans[f].lo {
				return 0, false
			}
			at = f
		}
		return at, at >= 0
	}
	for again := true; again; {
		again = false
		for i := 0; i < len(boxes) && !again; i++ {
			for k := i + 1; k < len(boxes) && !again; k++ {
				f, ok := touch(boxes[i], boxes[k])
				if !ok {
					continue
				}
				a, b := &boxes[i], boxes[k]
				a.spans[f] = span{min(a.spans[f].lo, b.spans[f].lo), max(a.spans[f].hi, b.spans[f].hi)}
				a.ids = append(a.ids, b.ids...)
				boxes = slices.Delete(boxes, k, k+1)
				again = true
			}
		}
	}
	out := []Group{}
	for _, b := range boxes {
		g := Group{Causes: b.ids, Ranges: []Range{}}
		var words []string
		for f, sp := range b.spans {
			if sp.lo < 0 {
				continue
			}
			factor := s.space.Factors[f]
			g.Ranges = append(g.Ranges, Range{factor.Name, factor.Levels[sp.lo : sp.hi+1]})
			lo, hi := factor.Levels[sp.lo], factor.Levels[sp.hi]
			switch {
			case sp.lo == sp.hi:
				words = append(words, factor.Name+" = "+lo)
			case sp.hi == len(factor.Levels)-1:
				words = append(words, factor.Name+" >= "+lo)
			default:
				words = append(words, factor.Name+" "+lo+" to "+hi)
			}
		}
		g.Label = strings.Join(words, " & ")
		if g.Label == "" {
			g.Label = "everything, even the nominal condition"
		}
		out = append(out, g)
	}
	return out
}

func percent(p float64) string {
	switch {
	case p > 0 && p < .1, p > .9 && p < 1:
		return fmt.Sprintf("%.1f %%", 100*p)
	}
	return fmt.Sprintf("%.0f %%", 100*p)
}

func (r Rate) words() string {
	return fmt.Sprintf("%d of %d (95 %% interval %s to %s)", r.Fails, r.Episodes, percent(r.Lo), percent(r.Hi))
}

// Text renders the report in plain words. It says what was seen in the test, never what the cause "is".
func (r Report) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("Break, checkpoint %s: %d distinct confirmed minimal causes in %d episodes (%.2f per 1,000).", r.Checkpoint, r.Distinct, r.Episodes.Told, r.DistinctPer1000)
	line("Episodes: %d search, %d screen, %d minimise, %d confirm; %d lost, which count as nothing; %d still out.",
		r.Episodes.Search, r.Episodes.Screen, r.Episodes.Minimise, r.Episodes.Confirm, r.Episodes.Lost, r.Episodes.Open)
	if r.Stop != "" {
		line("It stopped because %s.", r.Stop)
	}
	causes := map[string]Cause{}
	for _, c := range r.Causes {
		causes[c.ID] = c
	}
	for i, g := range r.Groups {
		line("")
		line("%d. %s", i+1, g.Label)
		for _, id := range g.Causes {
			c := causes[id]
			line("   %s failed %s in its confirmation; %d episodes spent.", c.ID, c.Q.words(), c.Spent)
			line("   %s", c.words())
			for _, w := range c.Without {
				if w.Verdict != Boundary {
					line("     without %s=%s it failed %s.", w.Factor, w.Level, w.Q.words())
				}
			}
			if c.Mode != "" {
				line("     commonest failure: %s (%d of %d).", c.Mode, c.Modes[0].Count, c.Q.Fails)
			}
			if c.Other != "" {
				line("     it was reached from %s, which mostly failed in another way and is kept apart.", c.Other)
			}
			for _, p := range c.Replay {
				line("     replay: %s#seed=%d", p.Condition, p.Seed)
			}
		}
	}
	list := func(head string, cs []Cause) {
		if len(cs) > 0 {
			line("")
			line("%s", head)
		}
		for _, c := range cs {
			line("   %s: %s (%s).", c.ID, c.Status, c.Reason)
		}
	}
	list("Suspected, not confirmed:", r.Open)
	if len(r.Retired) > 0 {
		line("")
		line("Causes of an earlier checkpoint that were not confirmed again:")
		for _, c := range r.Retired {
			verdict := map[bool]string{true: "solved", false: string(c.Verdict)}[c.Solved()]
			line("   %s: %s; it failed %s.", c.Cause.ID, verdict, c.Q.words())
		}
	}
	line("")
	line("%d candidates went to confirmation; at most %.2f of them are expected to be confirmed falsely if they fail less than %s of the time.",
		r.Candidates, r.FalseAtMost, percent(r.Options.Tau-r.Options.Margin))
	line("The intervals take the number of episodes as fixed; the tests that collected them stopped early, which leans them towards their verdict.")
	m := r.Remain
	line("What may remain: since the last cause %d uniformly drawn unexplained conditions were tried and %d were found failing. At most %s of unexplained conditions "+
		"are such that one episode and a screen find them, and at most %s fail %s of the time or more (95 %% one-sided).",
		m.Episodes, m.Hits, percent(m.Share), percent(m.ShareFailing), percent(r.Options.Tau+r.Options.Margin))
	return b.String()
}

// words says what minimisation showed, and no more.
func (c Cause) words() string {
	if c.Rechecked {
		return "Known from an earlier checkpoint, and failing again on fresh seeds; it was not minimised again."
	}
	if len(c.Settings) == 0 {
		return "Nothing unusual was needed to fail."
	}
	var held, open []string
	for _, w := range c.Without {
		switch w.Verdict {
		case Boundary:
			held = append(held, w.Factor)
		case Undecided:
			open = append(open, w.Factor)
		}
	}
	text := "Removing any one of these made it stop failing in this test."
	switch {
	case len(c.Without) == 0:
		return "It fails with every dial at its nominal level."
	case !c.Minimal && len(held) == 0:
		return "It was not reduced to the end: it may need fewer factors."
	case len(held)+len(open) == len(c.Without):
		text = "No removal was shown to make it stop failing."
	case len(held)+len(open) > 0:
		text = "Removing any one of the others made it stop failing in this test."
	}
	if len(open) > 0 {
		text += " Without " + strings.Join(open, " or without ") + " the test was undecided."
	}
	if len(held) > 0 {
		text += " Boundary: held-out: the condition without " + strings.Join(held, " or without ") + " was not run."
	}
	return text
}

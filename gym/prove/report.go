package prove

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// ReportSchema names the format of a Report.
const ReportSchema = "prove-report/1"

// Input is what a report is made of.
type Input struct {
	Plan       Plan     `json:"plan"`
	Looks      []Result `json:"looks"`    // sealed looks, in the order in which they were opened
	Learning   []Point  `json:"learning"` // monitor looks during training
	Causes     []Cause  `json:"causes"`   // what Break found
	Reference  []Agent  `json:"reference"`
	Hollow     []Hollow `json:"hollow"`
	Spent      Budget   `json:"spent"`      // episodes run
	Deviations []string `json:"deviations"` // from the plan, as the caller knows them
	Times      *Times   `json:"times"`
}

// Point is one monitor look during training.
type Point struct {
	Iteration int    `json:"iteration"`
	Episodes  int    `json:"episodes"` // of training so far
	Look      Result `json:"look"`
}

// Cause is one cause that Break confirmed, as far as a report shows it.
type Cause struct {
	Name    string  `json:"name"`
	Factors string  `json:"factors"` // in words: "fanout = 4 and near_duplicates = 8"
	Q       float64 `json:"q"`       // rate of failure in its confirmation
	Lo      float64 `json:"lo"`
	Hi      float64 `json:"hi"`
	Status  string  `json:"status"` // active, retired, …
}

// Agent is a reference agent, described by its pass rate alone.
type Agent struct {
	Name     string `json:"name"`
	Passes   int    `json:"passes"`
	Episodes int    `json:"episodes"`
	Rate     *Rate  `json:"rate"` // filled in by NewReport
}

// Hollow counts passes that an audit flagged: the reward said pass, the work was not done.
type Hollow struct {
	Arm    string `json:"arm"`
	Passes int    `json:"passes"`
	Hollow int    `json:"hollow"`
}

// Times holds all of a report that two equal runs do not share.
type Times struct {
	Started string             `json:"started,omitempty"`
	Ended   string             `json:"ended,omitempty"`
	Host    string             `json:"host,omitempty"`
	Seconds map[string]float64 `json:"seconds,omitempty"` // by phase
}

// Report holds everything that is printed. JSON, Markdown and the page are three spellings of it.
type Report struct {
	Schema     string   `json:"schema"`
	Headline   Headline `json:"headline"`
	Head       []string `json:"head"`
	External   string   `json:"external"`
	Confidence float64  `json:"confidence"`
	Power      float64  `json:"power"`
	Looks      []Result `json:"looks"`
	LooksUsed  int      `json:"looks_used"`
	LooksTotal int      `json:"looks_planned"`
	Learning   []Point  `json:"learning"`
	Causes     []Cause  `json:"causes"`
	Reference  []Agent  `json:"reference"`
	Hollow     []Hollow `json:"hollow"`
	Spent      Budget   `json:"spent"`
	Deviations []string `json:"deviations"`
	Plan       Plan     `json:"plan"` // without Made
	Times      *Times   `json:"times,omitempty"`
}

// Headline is the answer in a line: the pooled row of the last sealed look.
type Headline struct {
	Look     string  `json:"look"`
	Label    string  `json:"label"` // the verdict, or NO VERDICT
	Plain    string  `json:"plain"` // in plain words
	Sentence string  `json:"sentence"`
	Tally    []Count `json:"tally"` // verdicts of its condition table, best first
}

// Count is how many conditions have a verdict word.
type Count struct {
	Word  Word `json:"word"`
	Count int  `json:"count"`
}

// NewReport puts a report together. Looks and monitor looks must be results of the plan, or of the plan as it was before an
// amendment.
//
// Errors: gym.ErrBadInput.
func NewReport(in Input) (Report, error) {
	if err := in.Plan.Verify(); err != nil {
		return Report{}, err
	}
	var bad problems
	opened := map[string]bool{}
	belongs := func(what string, r Result, sealed bool) {
		if r.Schema != ResultSchema || r.Sealed != sealed {
			bad.say("%s: %q is not the result of a look of that kind", what, r.Look)
		}
		if !slices.Contains(in.Plan.hashes(), r.PlanHash) {
			bad.say("%s: it is a result of the plan %s, not of this one, %s", what, r.PlanHash, in.Plan.Hash)
		}
	}
	for i, r := range in.Looks {
		belongs(fmt.Sprintf("look %d", i), r, true)
		if _, err := in.Plan.look(r.Look); err != nil || opened[r.Look] {
			bad.say("look %d: %q is not declared, or was opened twice", i, r.Look)
		}
		opened[r.Look] = true
	}
	for i, p := range in.Learning {
		belongs(fmt.Sprintf("learning point %d", i), p.Look, false)
		if i > 0 && p.Iteration <= in.Learning[i-1].Iteration {
			bad.say("learning point %d: iteration %d does not come after %d", i, p.Iteration, in.Learning[i-1].Iteration)
		}
	}
	r := Report{Schema: ReportSchema, Head: head(in.Plan), External: noExternal, Confidence: Confidence, Power: Power,
		Looks: orEmpty(in.Looks), LooksUsed: len(in.Looks), LooksTotal: len(in.Plan.Looks), Learning: orEmpty(in.Learning),
		Causes: orEmpty(in.Causes), Hollow: orEmpty(in.Hollow), Reference: []Agent{}, Spent: in.Spent, Plan: in.Plan, Times: in.Times}
	r.Plan.Made = nil // when and where belongs to Times
	for _, a := range in.Reference {
		if a.Passes < 0 || a.Passes > a.Episodes {
			bad.say("reference agent %s: %d passes in %d episodes", a.Name, a.Passes, a.Episodes)
			continue
		}
		a.Rate = NewRate(a.Passes, a.Episodes)
		r.Reference = append(r.Reference, a)
	}
	for _, c := range in.Causes {
		if !(0 <= c.Lo && c.Lo <= c.Q && c.Q <= c.Hi && c.Hi <= 1) {
			bad.say("cause %s: rate %v with the interval %v to %v", c.Name, c.Q, c.Lo, c.Hi)
		}
	}
	for _, h := range in.Hollow {
		if h.Hollow < 0 || h.Hollow > h.Passes {
			bad.say("hollow passes of %s: %d of %d passes", h.Arm, h.Hollow, h.Passes)
		}
	}
	if in.Times != nil {
		for _, phase := range slices.Sorted(maps.Keys(in.Times.Seconds)) {
			if s := in.Times.Seconds[phase]; !(s >= 0) || math.IsInf(s, 0) || strings.Contains(phase, ".") {
				bad.say("times: %v seconds of %q; want a finite number, and no dot in the name", s, phase)
			}
		}
	}
	if err := bad.err(); err != nil {
		return Report{}, err
	}
	r.Deviations = deviations(in, opened)
	r.Headline = headline(in)
	return r, nil
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// deviations adds to the caller's list what the report itself can see.
func deviations(in Input, opened map[string]bool) []string {
	out := append([]string{}, in.Deviations...)
	for _, l := range in.Plan.Looks {
		if !opened[l.ID] {
			out = append(out, fmt.Sprintf("the declared look %s was not opened", l.ID))
		}
	}
	for _, r := range in.Looks {
		for _, p := range r.Problems {
			out = append(out, fmt.Sprintf("look %s: %s", r.Look, p))
		}
		if n := r.Counts.Undeclared; n > 0 {
			out = append(out, fmt.Sprintf("look %s: %d records that the plan does not declare were left out", r.Look, n))
		}
		if n := r.Counts.Missing; n > 0 {
			out = append(out, fmt.Sprintf("look %s: %d planned episodes have no record", r.Look, n))
		}
		if r.Base != "" && r.Base == r.Checkpoint {
			out = append(out, fmt.Sprintf("look %s: both arms are the same checkpoint", r.Look))
		}
	}
	for _, a := range in.Plan.Amendments {
		when := "before any sealed look"
		if a.AfterLook != "" {
			when = "after the look " + a.AfterLook
		}
		out = append(out, fmt.Sprintf("plan amended %s: %s", when, a.Reason))
	}
	return out
}

var plainWords = map[Word]string{
	Improved:            "Training helped: on held-out tasks the checkpoint passes more often than its starting point.",
	Regressed:           "Training hurt: on held-out tasks the checkpoint passes less often than its starting point.",
	UnchangedWithin:     "Training changed the pass rate by less than the margin that the plan declared.",
	NoSignificantChange: "No change was found, and a change of the size that the plan cares about would probably have been found.",
	Inconclusive:        "This run cannot tell whether training helped.",
	Invalid:             "The comparison broke its own plan, so it says nothing.",
}

func headline(in Input) Headline {
	h := Headline{Label: "NO VERDICT", Plain: "No sealed look was opened, so there is nothing to conclude yet.",
		Sentence: "Verdicts are said of sealed looks that the plan declared.", Tally: []Count{}}
	if len(in.Looks) == 0 {
		return h
	}
	last := in.Looks[len(in.Looks)-1]
	h.Look, h.Sentence = last.Look, last.Overall.Sentence
	h.Plain = "The pooled row has no verdict, because an amendment changed what it is made of."
	if v := last.Overall.Verdict; v != nil {
		h.Label, h.Plain = v.Label, plainWords[v.Word]
	}
	for _, w := range []Word{Improved, UnchangedWithin, NoSignificantChange, Inconclusive, Regressed, Invalid} {
		n := 0
		for i := range last.Rows {
			if v := last.Rows[i].Verdict; v != nil && v.Word == w {
				n++
			}
		}
		if n > 0 {
			h.Tally = append(h.Tally, Count{w, n})
		}
	}
	return h
}

// JSON returns the report, indented. Two equal runs differ in the member times alone.
func (r Report) JSON() []byte {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		panic(err) // our own structs; every float in them is finite
	}
	return append(b, '\n')
}

// Final returns the last sealed look, or false if none was opened.
func (r Report) Final() (Result, bool) {
	if len(r.Looks) == 0 {
		return Result{}, false
	}
	return r.Looks[len(r.Looks)-1], true
}

package prove

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// One formatter a kind of number: everything printed, in whatever form, passes through these.

// points spells a share as percentage points without a sign: .2106 is 21.1.
func points(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) }

// signed spells a change as percentage points: +15.0. What rounds to nothing has no sign.
func signed(v float64) string {
	s := points(v)
	switch {
	case s == "-0.0":
		return "0.0"
	case s == "0.0" || v < 0:
		return s
	}
	return "+" + s
}

// percent spells a share with at most one decimal: 95 %, 12.5 %.
func percent(v float64) string { return strconv.FormatFloat(math.Round(1000*v)/10, 'f', -1, 64) + " %" }

// rate spells a measured share with one decimal, so that columns line up.
func rate(v float64) string { return points(v) + " %" }

// pvalue spells a p-value: .006, or "< .001".
func pvalue(v float64) string {
	switch {
	case v < .0005:
		return "< .001"
	case v >= .9995:
		return "1"
	}
	return strings.TrimPrefix(strconv.FormatFloat(v, 'f', 3, 64), "0")
}

// trim spells a number as short as it is.
func trim(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// equals writes a p-value after its name: "p = .006", "p < .001".
func equals(name string, v float64) string {
	s := pvalue(v)
	if strings.HasPrefix(s, "<") {
		return name + " " + s
	}
	return name + " = " + s
}

func (r *Row) on() string {
	if r.Condition == OverallRow {
		return "over all confirmatory conditions pooled"
	}
	return "on " + r.Condition
}

// measured spells the estimate of a row. test names the p-value and its family.
func (r *Row) measured(test string) string {
	return fmt.Sprintf("%s points (%s interval %s to %s; %s; %d tasks)", signed(r.Change.Value), percent(Confidence),
		signed(r.Change.Lo), signed(r.Change.Hi), test, r.N)
}

func (r *Row) test() string {
	if r.Family == OverallRow {
		return equals("exact p", *r.P)
	}
	return equals("Holm p", *r.Holm)
}

// detects says what the row could have found.
func (r *Row) detects() string {
	if r.MDE == nil {
		return fmt.Sprintf("no change could have reached %s power", percent(Power))
	}
	return fmt.Sprintf("could have detected %s points or more with %s power", points(*r.MDE), percent(Power))
}

func (r *Row) runDetects() string {
	if r.MDE == nil {
		return "In this run " + r.detects() + "."
	}
	return "This run " + r.detects() + "."
}

// sentence says in words what the row says in numbers.
func (r *Row) sentence(look *Result) string {
	if r.Verdict == nil {
		return r.plainSentence(look)
	}
	switch r.Verdict.Word {
	case Invalid:
		return fmt.Sprintf("INVALID %s: %s. Nothing can be read from these records.", r.on(), strings.Join(r.Problems, "; "))
	case Improved, Regressed:
		s := fmt.Sprintf("%s %s: %s. %s", r.Verdict.Word, r.on(), r.measured(r.test()), r.runDetects())
		if strings.Contains(look.Rule, "monitor") {
			s += " The checkpoint was chosen on the monitor split and measured on the sealed split."
		}
		return s
	case UnchangedWithin:
		return fmt.Sprintf("UNCHANGED WITHIN ±%s points %s (%s): %s.", trim(math.Round(1000*r.Delta)/10), r.on(),
			r.confidence(look), r.measured(r.test()))
	case NoSignificantChange:
		return fmt.Sprintf("NO SIGNIFICANT CHANGE %s: %s. This is not evidence of equality; a change of %s points or more would have been found 4 times in 5.",
			r.on(), r.measured(r.test()), points(*r.MDE))
	}
	switch r.Verdict.Reason {
	case reasonData:
		return fmt.Sprintf("INCONCLUSIVE %s: %d of %d planned pairs are complete, %d lost; too few for a verdict.", r.on(), r.N, r.Planned, r.Lost)
	case reasonMissing:
		return fmt.Sprintf("INCONCLUSIVE %s: %s, but %d lost pairs could undo it (with all of them against the claim, %s).", r.on(),
			r.measured(r.test()), r.Lost, equals("adjusted p", *r.Adverse))
	}
	return fmt.Sprintf("INCONCLUSIVE %s: %s. %s%s", r.on(), r.measured(r.test()), r.tooSmall(), r.wants())
}

func (r *Row) confidence(look *Result) string {
	if r.Family == OverallRow {
		return percent(1-look.Level) + " confidence"
	}
	return fmt.Sprintf("%s joint confidence over %d conditions", percent(1-look.Level), look.Family)
}

func (r *Row) tooSmall() string {
	if r.MDE == nil {
		return fmt.Sprintf("No change could have reached %s power; the smallest change of interest is %s points.", percent(Power), points(r.DMin))
	}
	return fmt.Sprintf("It could only have detected %s points; the smallest change of interest is %s points.", points(*r.MDE), points(r.DMin))
}

func (r *Row) wants() string {
	if r.Needs == nil {
		return ""
	}
	return fmt.Sprintf(" Needs about %d tasks.", *r.Needs)
}

// plainSentence is for rows that get an estimate and no verdict.
func (r *Row) plainSentence(look *Result) string {
	kind := "exploratory"
	if !look.Sealed {
		kind = "monitor tasks"
	} else if r.Family == OverallRow {
		kind = "pooled after an amendment"
	}
	name := r.Condition
	if name == OverallRow {
		name = "All conditions pooled"
	}
	switch {
	case len(r.Problems) > 0:
		return fmt.Sprintf("%s (%s): not usable: %s.", name, kind, strings.Join(r.Problems, "; "))
	case r.N == 0:
		return fmt.Sprintf("%s (%s): no complete pair of %d planned.", name, kind, r.Planned)
	}
	test := equals("unadjusted p", *r.P)
	if r.Q != nil {
		test = equals("BH q", *r.Q)
	}
	if !look.Sealed {
		test = "not a test"
	}
	return fmt.Sprintf("%s (%s, no verdict): %s. %s", name, kind, r.measured(test), r.runDetects())
}

// head returns what must stand at the head of every report.
func head(p Plan) []string {
	sum := 0.0
	for _, l := range p.Looks {
		sum += l.Weight
	}
	out := []string{fmt.Sprintf("Over all sealed looks together, at most %s of runs like this would contain any wrong IMPROVED or REGRESSED in the condition table, "+
		"if the plan was followed; the overall row is a separate family at %s.", percent(p.Alpha*sum), percent(p.Alpha*sum)),
		"Intervals and verdicts speak of fresh tasks from the same generators at the same settings, each task weighing the same, and of nothing more."}
	return out
}

// noExternal is said by every report, because nothing external can enter one.
const noExternal = "No external result: everything here was measured on ProveGym's own generated tasks, and nothing follows from it about any outside benchmark."

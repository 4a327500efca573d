package prove

import (
	"regexp"
	"strings"
	"testing"
)

// checkWords holds what no sentence may say.
func checkWords(t *testing.T, text string) {
	t.Helper()
	low := strings.ToLower(text)
	for _, word := range []string{"no effect", "no difference", "proves", "proven", "better", "worse", "equal to", "confirms that"} {
		if strings.Contains(low, word) {
			t.Errorf("%q says %q", text, word)
		}
	}
	// "significant" needs its family beside it.
	if strings.Contains(low, "significant") && !strings.Contains(text, "Holm") && !strings.Contains(text, "exact p") {
		t.Errorf("%q says significant without the family", text)
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || regexp.MustCompile(`%!|\b0x`).MatchString(text) {
		t.Errorf("%q is garbled", text)
	}
}

// TestSentences_worked holds the four worked rows: a family of four, alpha .05, smallest change of interest 20 points, margin
// 10 points.
func TestSentences_worked(t *testing.T) {
	p := frozen(t)
	r := evaluated(t, p, "final", played(t, p, "final", worked))
	for condition, want := range map[string]string{
		four:   "IMPROVED on " + four + ": +15.0 points (95 % interval +6.5 to +24.0; Holm p = .006; 120 tasks). This run could have detected 21.1 points or more with 80 % power.",
		eight:  "REGRESSED on " + eight + ": -11.7 points (95 % interval -20.0 to -4.0; Holm p = .020; 120 tasks). This run could have detected 19.5 points or more with 80 % power.",
		other:  "UNCHANGED WITHIN ±10 points on " + other + " (95 % joint confidence over 4 conditions): 0.0 points (95 % interval -3.0 to +3.0; Holm p = 1; 200 tasks).",
		unseen: "INCONCLUSIVE on " + unseen + ": +12.5 points (95 % interval -5.6 to +30.3; Holm p = .534; 40 tasks). It could only have detected 47.5 points; the smallest change of interest is 20.0 points. Needs about 156 tasks.",
	} {
		row := rowOf(t, r, condition)
		if row.Sentence != want {
			t.Errorf("got  %s\nwant %s", row.Sentence, want)
		}
	}
	if got := rowOf(t, r, other).Margin; got.Lo > -.03625 || got.Lo < -.03635 {
		t.Errorf("joint interval %+v, want ±.0363", got)
	}
}

func TestSentences_others(t *testing.T) {
	one := func(family int, rule string) *Result {
		return &Result{Sealed: true, Level: .05, Family: family, Rule: rule}
	}
	row := func(w Word, reason string) Row {
		p, mde, adverse, needs := .0004, .08, .3, 250
		return Row{Condition: four, Family: Confirmatory, Change: &Interval{-.004, -.05, .042}, P: &p, Holm: &p, Adverse: &adverse, MDE: &mde, Needs: &needs,
			DMin: .1, Delta: .075, N: 118, Planned: 120, Lost: 2, Verdict: verdict(w, reason), Problems: []string{"pack hash differs", "free-mode records"}}
	}
	for name, c := range map[string]struct {
		row  Row
		look *Result
		want string
	}{
		"no change": {row(NoSignificantChange, ""), one(4, "last"), "NO SIGNIFICANT CHANGE on " + four + ": -0.4 points (95 % interval -5.0 to +4.2; Holm p < .001; 118 tasks). " +
			"This is not evidence of equality; a change of 8.0 points or more would have been found 4 times in 5."},
		"missing": {row(Inconclusive, reasonMissing), one(4, "last"), "INCONCLUSIVE on " + four + ": -0.4 points (95 % interval -5.0 to +4.2; Holm p < .001; 118 tasks), " +
			"but 2 lost pairs could undo it (with all of them against the claim, adjusted p = .300)."},
		"data":    {row(Inconclusive, reasonData), one(4, "last"), "INCONCLUSIVE on " + four + ": 118 of 120 planned pairs are complete, 2 lost; too few for a verdict."},
		"invalid": {row(Invalid, "pack hash differs"), one(4, "last"), "INVALID on " + four + ": pack hash differs; free-mode records. Nothing can be read from these records."},
		"chosen on the monitor": {row(Regressed, ""), one(4, "best on the monitor mean"), "REGRESSED on " + four + ": -0.4 points (95 % interval -5.0 to +4.2; Holm p < .001; 118 tasks). " +
			"This run could have detected 8.0 points or more with 80 % power. The checkpoint was chosen on the monitor split and measured on the sealed split."},
		"half points": {row(UnchangedWithin, "0.075"), one(4, "last"), "UNCHANGED WITHIN ±7.5 points on " + four + " (95 % joint confidence over 4 conditions): -0.4 points (95 % interval -5.0 to +4.2; Holm p < .001; 118 tasks)."},
	} {
		if got := c.row.sentence(c.look); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
		checkWords(t, c.want)
	}
	pooled := row(Improved, "")
	pooled.Condition, pooled.Family, pooled.MDE = OverallRow, OverallRow, nil
	if got, want := pooled.sentence(one(4, "last")), "IMPROVED over all confirmatory conditions pooled: -0.4 points (95 % interval -5.0 to +4.2; exact p < .001; 118 tasks). "+
		"In this run no change could have reached 80 % power."; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFormats(t *testing.T) {
	for _, row := range [][2]string{
		{signed(.15), "+15.0"}, {signed(-.0004), "0.0"}, {signed(.0004), "0.0"}, {signed(0), "0.0"}, {signed(-.05), "-5.0"},
		{percent(.95), "95 %"}, {percent(1. / 3), "33.3 %"}, {pvalue(.00049), "< .001"}, {pvalue(.0005), ".001"}, {pvalue(.05), ".050"}, {pvalue(1), "1"},
	} {
		if row[0] != row[1] {
			t.Errorf("got %q, want %q", row[0], row[1])
		}
	}
}

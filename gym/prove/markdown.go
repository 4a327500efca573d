package prove

import (
	"fmt"
	"strings"
)

// Markdown returns the report for terminals, diffs and pull requests: the verdict, the sentences and the tables.
func (r Report) Markdown() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# %s\n\n%s\n\n%s\n", r.Headline.Label, r.Headline.Plain, r.Headline.Sentence)
	for _, h := range r.Head {
		line("%s\n", h)
	}
	line("**%s**\n", r.External)
	for _, i := range latestFirst(len(r.Looks)) {
		r.Looks[i].markdown(line)
	}
	if len(r.Learning) > 0 {
		line("## Learning curve (monitor tasks, no verdict)\n\n| iteration | training episodes | base | checkpoint | change | MDE | tasks |\n|---|---|---|---|---|---|---|")
		for _, p := range r.Learning {
			o := p.Look.Overall
			line("| %d | %d | %s | %s | %s | %s | %d |", p.Iteration, p.Episodes, o.Base.cell(), o.Checkpoint.cell(), o.Change.cell(), number(o.MDE, points), o.N)
		}
		line("")
	}
	if len(r.Causes) > 0 {
		line("## Where it failed during training (Break)\n\n| cause | factors | failure rate | interval | status |\n|---|---|---|---|---|")
		for _, c := range r.Causes {
			line("| %s | %s | %s | %s to %s | %s |", cellText(c.Name), cellText(c.Factors), rate(c.Q), rate(c.Lo), rate(c.Hi), cellText(c.Status))
		}
		line("")
	}
	if len(r.Hollow) > 0 {
		line("## Hollow passes\n\n| arm | passes | of them hollow |\n|---|---|---|")
		for _, h := range r.Hollow {
			line("| %s | %d | %d |", cellText(h.Arm), h.Passes, h.Hollow)
		}
		line("")
	}
	if len(r.Reference) > 0 {
		line("## Reference agents (for scale, no comparison)\n\n| agent | passes | episodes | pass rate |\n|---|---|---|---|")
		for _, a := range r.Reference {
			line("| %s | %d | %d | %s |", cellText(a.Name), a.Passes, a.Episodes, a.Rate.cell())
		}
		line("")
	}
	line("## Plan\n\nSealed looks used so far: %d of %d. Plan hash `%s`.\n", r.LooksUsed, r.LooksTotal, r.Plan.Hash)
	line("| episodes | train | Break | monitor | sealed | baseline |\n|---|---|---|---|---|---|")
	for _, row := range []struct {
		name string
		n    Budget
	}{{"planned", r.Plan.Budget}, {"run", r.Spent}} {
		line("| %s | %d | %d | %d | %d | %d |", row.name, row.n.Train, row.n.Break, row.n.Monitor, row.n.Sealed, row.n.Baseline)
	}
	line("\nDeviations from the plan:%s", list(r.Deviations))
	if len(r.Plan.Warnings) > 0 {
		line("\nWarnings given before training:%s", list(r.Plan.Warnings))
	}
	return b.String()
}

func (l *Result) markdown(line func(string, ...any)) {
	line("## Look %s\n\n- %s", l.Look, l.Overall.Sentence)
	for i := range l.Rows {
		s := l.Rows[i].Sentence
		if len(l.Rows[i].Flags) > 0 {
			s += " (" + strings.Join(l.Rows[i].Flags, "; ") + ")"
		}
		line("- %s", s)
	}
	line("\n| condition | tier | base | checkpoint | change, %s interval | joint interval | Holm p | BH q | MDE | tasks | lost | verdict |\n|---|---|---|---|---|---|---|---|---|---|---|---|",
		percent(Confidence))
	for i := range l.Rows {
		l.Rows[i].markdown(line)
	}
	l.Overall.markdown(line)
	c := l.Counts
	line("\nEpisodes: %d planned, %d scored (%d of them truncated), %d invalid, %d missing, %d retried, %d undeclared.\n",
		c.Planned, c.Scored, c.Truncated, c.Invalid, c.Missing, c.Retried, c.Undeclared)
	if len(l.Modes) > 0 {
		line("How episodes fail (exploratory):\n\n| failure | base | checkpoint | of | change, %s interval | BH q |\n|---|---|---|---|---|---|", percent(Confidence))
		for _, m := range l.Modes {
			line("| %s | %d | %d | %d | %s | %s |", cellText(m.Mode), m.Base, m.Checkpoint, m.N, m.Change.cell(), pvalue(m.Q))
		}
		line("")
	}
}

func (r *Row) markdown(line func(string, ...any)) {
	joint := nothing
	if r.Joint != nil {
		joint = signed(r.Joint.Lo) + " to " + signed(r.Joint.Hi)
	}
	label := r.Label()
	if label == "" {
		label = nothing
	}
	line("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %d | %d | %s |", cellText(r.Condition), r.Tier, r.Base.cell(), r.Checkpoint.cell(), r.Change.cell(),
		joint, number(r.Holm, pvalue), number(r.Q, pvalue), number(r.MDE, points), r.N, r.Lost, label)
}

func (r *Rate) cell() string {
	if r == nil {
		return nothing
	}
	return fmt.Sprintf("%s (%s to %s)", rate(r.Rate), rate(r.Lo), rate(r.Hi))
}

func (i *Interval) cell() string {
	if i == nil {
		return nothing
	}
	return fmt.Sprintf("%s (%s to %s)", signed(i.Value), signed(i.Lo), signed(i.Hi))
}

func number(v *float64, spell func(float64) string) string {
	if v == nil {
		return nothing
	}
	return spell(*v)
}

// cellText keeps foreign text from breaking out of a table cell.
func cellText(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}

func list(items []string) string {
	if len(items) == 0 {
		return " none known."
	}
	return "\n\n- " + strings.Join(items, "\n- ")
}

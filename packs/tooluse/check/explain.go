package check

import (
	"fmt"
	"strings"

	"provegym/gym"
	"provegym/packs/tooluse/world"
)

// Explain takes the reward apart: each fact that the case asks for, in words, met or missed, and each change that nobody asked
// for. It is for traces, reports and people after the end.
func (s *Spec) Explain(e *gym.Evidence) gym.Explanation {
	var out gym.Explanation
	say := func(part string, met bool, format string, args ...any) {
		out.Required = append(out.Required, gym.Fact{Part: part, Text: fmt.Sprintf(format, args...), Met: met})
	}
	w := last(e)
	for i := range s.Goals {
		g := &s.Goals[i]
		if g.Row >= 0 {
			say("goal", g.Holds(e), "%s of %s is %s", fieldName(w, g.Role, g.Field), name(e, g.Row), value(e, g.Role, g.Field, int64(g.Want)))
			continue
		}
		var with []string
		for f, v := range g.Fields {
			with = append(with, fmt.Sprintf("%s %s", fieldName(w, g.Role, f), value(e, g.Role, f, int64(v))))
		}
		say("goal", g.Holds(e), "there is %d %s for %s %s", g.Count, w.Domain.Kinds[g.Role].Name, name(e, int(g.Up)-1), strings.Join(with, ", "))
	}
	if s.Choice != nil {
		say("goal", s.booked(e), "the %d cheapest %s within the limits are booked, at %d in all", s.Choice.Need, w.Domain.Says.Options, s.Choice.Best)
	}
	if s.Act == Refuse {
		say("goal", s.untouched(e), "no %s was changed", w.Domain.Says.Subject)
	}
	when := [...]string{BeforeChange: "before the first change or the finish", BeforeSwitch: "before it was switched", AtLast: "as it is in the end",
		Between: "after the first target and before the first change"}
	for i := range s.Facts {
		f := &s.Facts[i]
		say("path", f.Met(s, e), "%s of %s was read %s", fieldName(w, w.At(f.Row).Role, f.Field), name(e, f.Row), when[f.When])
	}
	if s.Confirm >= 0 {
		say("path", s.confirmed(e), "each change was read back")
	}
	for i := range s.Orders {
		one := Spec{Orders: s.Orders[i : i+1]}
		say("path", one.inOrder(e), "%s came before %s", s.Orders[i][0].text(e), s.Orders[i][1].text(e))
	}
	for i := range s.Bans {
		b := &s.Bans[i]
		say("path", b.Broken(e) < 0, "%s was not looked at where that is forbidden", w.Domain.Kinds[b.Role].Name)
	}
	if s.NotYet > 0 {
		say("path", s.notEarly(e), "nothing was changed before tick %d", s.NotYet)
	}
	words := world.Types
	if e.Finish == nil {
		say("finish", false, "there is a finish")
	} else {
		say("finish", e.Finish.Arg(ArgOutcome)[0].Bits == uint64(s.Outcome), "the outcome is %s", words[world.TOutcome].Enum[s.Outcome])
		say("finish", e.Finish.Arg(ArgCode)[0].Bits == uint64(s.Code), "the code is %s", words[world.TCode].Enum[s.Code])
		for _, v := range s.Evidence(e) {
			cited := false
			for _, g := range e.Finish.Arg(ArgEvidence) {
				cited = cited || g == v
			}
			say("finish", cited, "%s is cited", e.Pack.Spell(v))
		}
	}
	out.Unrequested = s.unrequested(e)
	return out
}

// unrequested lists the writes outside what the case allows.
func (s *Spec) unrequested(e *gym.Evidence) (out []string) {
	w, writes := last(e), e.Log.Writes()
	used := make([]int, len(s.Allowed))
next:
	for k := range writes {
		for i := range s.Allowed {
			if al := &s.Allowed[i]; used[i] < al.Max && al.Is(w, &writes[k]) {
				used[i]++
				continue next
			}
		}
		a := &writes[k]
		row, field := int(a.Entity.Row), int(a.Field)-1
		out = append(out, fmt.Sprintf("%s of %s from %s to %s", fieldName(w, world.Role(a.Entity.Kind), field), name(e, row),
			value(e, world.Role(a.Entity.Kind), field, a.Old), value(e, world.Role(a.Entity.Kind), field, a.New)))
	}
	return out
}

// text says what an effect is.
func (x *Effect) text(e *gym.Evidence) string {
	w := last(e)
	if x.Row < 0 {
		return fmt.Sprintf("%s of a %s made for %s", fieldName(w, x.Role, x.Field), w.Domain.Kinds[x.Role].Name, name(e, int(x.Up)-1))
	}
	return fmt.Sprintf("%s of %s", fieldName(w, x.Role, x.Field), name(e, x.Row))
}

// fieldName is what results call a field, or a word for those that they do not show.
func fieldName(w *world.World, r world.Role, field int) string {
	switch field {
	case world.Made:
		return "the making"
	case world.Listed:
		return "the listing"
	}
	for _, f := range w.Domain.Kinds[r].Fields {
		if f.At == field {
			return f.Name
		}
	}
	switch {
	case r == world.Subject && field == world.Reason:
		return "reason"
	case r == world.Setting:
		return "state"
	case r == world.Notice:
		return "number"
	case r == world.Booking:
		return "openness"
	}
	return fmt.Sprintf("mark %d", field)
}

// name names a record: what kind it is, and its id or number.
func name(e *gym.Evidence, row int) string {
	w := last(e)
	rec := w.At(row)
	switch rec.Role {
	case world.Setting:
		return "setting " + world.Types[world.TSwitch].Enum[rec.F[world.Key]]
	case world.Notice:
		return fmt.Sprintf("notice %d", rec.F[world.Number])
	}
	return w.Domain.Kinds[rec.Role].Name + " " + e.Pack.Spell(w.ID(row))
}

// value spells a field's value.
func value(e *gym.Evidence, r world.Role, field int, v int64) string {
	w := last(e)
	for i := range w.Domain.Kinds[r].Fields {
		f := &w.Domain.Kinds[r].Fields[i]
		if f.At != field {
			continue
		}
		switch f.Form {
		case world.Word, world.Coded:
			if f.Form == world.Coded {
				v--
			}
			if words := world.Types[f.Type].Enum; v >= 0 && int(v) < len(words) {
				return words[v]
			}
		case world.Refers:
			if v > 0 && int(v) <= w.Records.Len() {
				return e.Pack.Spell(w.ID(int(v) - 1))
			}
		case world.PlaceOf:
			if v > 0 && int(v) <= w.Records.Len() {
				return w.StreetText(int(v) - 1)
			}
		}
	}
	if r == world.Subject && field == world.Reason && v > 0 {
		return w.Domain.Words(world.TReason)[v-1]
	}
	return fmt.Sprint(v)
}

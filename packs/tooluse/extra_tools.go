package tooluse

import (
	"provegym/gym"
	"provegym/packs/tooluse/world"
)

// maxExtraTools is the top of the extra_tools dial: the tools of the other domains, and these.
const maxExtraTools = 40

// extra is a tool that no task of this pack needs: it answers truthfully about something else, or leaves a mark.
type extra struct {
	name, doc string
	field     string // what it shows; "" for one that writes a mark
}

var extras = [...]extra{
	{"get_view_count", "Show how often a record has been looked at.", "views"},
	{"get_age", "Show how many days old a record is.", "days"},
	{"get_risk_score", "Show the risk score of a record, of 100.", "score"},
	{"get_watchers", "Show how many people follow a record.", "watchers"},
	{"tag_record", "Put a tag on a record.", ""},
	{"archive_record", "Move a record to the archive.", ""},
	{"star_record", "Put a star on a record.", ""},
	{"prioritise_record", "Move a record up in the queue.", ""},
}

// extraTools returns the distractors as tools. They take records of any domain.
func extraTools() []gym.Tool {
	about := gym.Param{Name: "record", Doc: "what it is about"}
	for _, d := range world.Domains {
		about.Types = append(about.Types, d.TypeOf(world.Subject), d.TypeOf(world.Holder))
	}
	out := make([]gym.Tool, len(extras))
	for i, x := range extras {
		out[i] = gym.Tool{Name: x.name, Doc: x.doc, Writes: x.field == "", Params: []gym.Param{about},
			Run: func(t *gym.Turn) error { return x.run(t, uint64(i)) }}
	}
	return out
}

func (x *extra) run(t *gym.Turn, tool uint64) error {
	a := answer{Turn: t, w: t.World.(*world.World)}
	about, _ := t.One(0)
	row := a.w.Find(about)
	if row < 0 || a.w.ID(row).Type != about.Type {
		return notFound("record")
	}
	if x.field != "" {
		t.Int(x.field, int64(a.w.Keys.Figure(tool<<8|uint64(about.Type), about.Bits)))
		return nil
	}
	note := world.HolderNote
	if a.w.At(row).Role == world.Subject {
		note = world.Note
	}
	a.set(row, to{note, a.w.At(row).F[note] + 1})
	t.Say("mark", "set")
	return nil
}

package tooluse

import (
	"provegym/gym"
	"provegym/packs/tooluse/desk"
)

// buildRefusal makes T9: the complaint of T3, word for word, in a world whose policy refuses it for the order's status. Nothing may
// be written; the finish must name the code of that rule and cite the order as it was read.
func buildRefusal(d *draft) *gym.Built {
	d.complaint(func(remedy uint8) bool { return remedy == desk.RemedyRefuse })
	p := planner{d: d}
	p.add("finish", gym.FinishStep, true, p.readCase(), finishCall(d.spec))
	return d.built("refusal/"+actNames[d.spec.Act], p.steps)
}

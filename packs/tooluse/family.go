package tooluse

import (
	"fmt"

	"provegym/gym"
	"provegym/packs/tooluse/world"
)

// family is a kind of work as the features that it is made of. What none of them says is T1: find one subject, read it, change
// it at the version read, read it back, finish.
type family struct {
	name, doc string
	set       bool // T4: every subject that matches
	join      bool // T2: the change takes a version that another branch of reading has to find
	policy    bool // T3: the policy says which change, by the subject's status
	refused   bool // T9: and refuses
	lock      bool // T5: a setting blocks changes; it is to be as it was in the end
	moving    bool // T7: another desk changes the subject at the moment of the change, and may put it on hold
	amended   bool // T10: a message changes the case
	book      bool // T6: the cheapest options within limits are booked
	chain     bool // T8: three changes, of which the last may fail for good; then the others are undone
}

var families = []family{
	{name: "resolve-act", doc: "find one subject, change it at the version read, read it back"},
	{name: "branch", doc: "the policy says which of three changes is right for the subject's status", policy: true},
	{name: "for-each", doc: "page through a list and change every subject that matches, and no other", set: true},
	{name: "refusal", doc: "the policy refuses: change nothing, name the code, cite what was read", policy: true, refused: true},
	{name: "join", doc: "two independent searches meet in one change", join: true},
	{name: "precondition", doc: "a setting blocks the change: find it, turn it off, change, restore it", lock: true},
	{name: "allocate", doc: "read all options and book the cheapest that keep the limits", book: true},
	{name: "moving", doc: "the subject changes under one's hands: read again, decide again", moving: true},
	{name: "compensate", doc: "three changes in order; where the last is impossible the others are undone in reverse", chain: true},
	{name: "amended", doc: "a message on the way changes the case, or forbids something", amended: true},
	{name: "join-each", doc: "two searches meet in a change of every subject that matches", join: true, set: true},
	{name: "locked-moving", doc: "a setting blocks the change, and the subject moves meanwhile", lock: true, moving: true},
}

// prefix is what a domain's families begin with.
func prefix(d *world.Domain) string {
	if d.Index == 0 {
		return ""
	}
	return d.Name + "-"
}

// declared lists the families of all domains.
func declared() []gym.Family {
	var out []gym.Family
	for _, d := range world.Domains {
		for i := range families {
			f := &families[i]
			out = append(out, gym.Family{Name: prefix(d) + f.name, Doc: f.doc + " (" + d.Name + ")", HeldOut: d == world.Domains[len(world.Domains)-1]})
		}
	}
	return out
}

// lookup returns the domain and the features of a family, by name.
var lookup = func() map[string]kind {
	out := map[string]kind{}
	for _, d := range world.Domains {
		for i := range families {
			out[prefix(d)+families[i].name] = kind{&families[i], d}
		}
	}
	return out
}()

// kind is a family in a domain.
type kind struct {
	*family
	domain *world.Domain
}

func kindOf(name string) (kind, error) {
	k, ok := lookup[name]
	if !ok {
		return k, fmt.Errorf("%w: tooluse has no family %q", gym.ErrUnknown, name)
	}
	return k, nil
}

// single reports that the case is about one subject and one change of it.
func (f *family) single() bool { return !f.set && !f.book && !f.chain }

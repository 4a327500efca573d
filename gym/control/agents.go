package control

import (
	"fmt"

	"provegym/gym"
)

// Agents returns the pack's own agents and the general controls that it has none of the same name for.
func Agents(p *gym.Pack) []gym.Agent {
	out := append([]gym.Agent(nil), p.Agents...)
	for _, general := range [][]gym.Agent{positives, negatives} {
		for _, a := range general {
			if _, err := p.Agent(a.Name); err != nil {
				out = append(out, a)
			}
		}
	}
	return out
}

// Agent returns the agent of that name, the pack's own or a general control.
//
// Errors: gym.ErrUnknown, with the nearest name.
func Agent(p *gym.Pack, name string) (*gym.Agent, error) {
	with := *p
	with.Agents = Agents(p)
	return with.Agent(name)
}

// New makes the actor of one variant of the agent for the task that ep has just begun.
//
// Errors: gym.ErrBadInput if the task has no such variant.
func New(ep *gym.Episode, a *gym.Agent, variant int, key gym.Key) (gym.Actor, error) {
	e := ep.Evidence()
	n := variants(a, e)
	if n == 0 {
		return nil, fmt.Errorf("%w: agent %s does not apply to %s: name a family or tasks where it does", gym.ErrBadInput, a.Name, ep.Task().ID())
	}
	if variant < 0 || variant >= n {
		return nil, fmt.Errorf("%w: agent %s has %d variants in %s, not number %d", gym.ErrBadInput, a.Name, n, ep.Task().ID(), variant)
	}
	return a.New(e, variant, key), nil
}

func variants(a *gym.Agent, e *gym.Evidence) int {
	if a.Variants == nil {
		return 1
	}
	return a.Variants(e)
}

package control

import (
	"errors"

	"provegym/gym"
)

// Play lets the actor work until the episode ends. When it falls silent, or asks for a call that the structured view cannot
// express, a no-op is played in its place, which costs a call.
//
// Errors: those of Episode.StepCall but ErrBadInput.
func Play(ep *gym.Episode, actor gym.Actor) error {
	silent := false
	for ep.Outcome() == gym.Running {
		var call gym.Call
		if !silent && !actor.Act(ep, &call) {
			silent = true
		}
		var err error
		switch {
		case ep.Outcome() != gym.Running: // the actor has stepped by itself
		case silent:
			err = noop(ep)
		default:
			if err = ep.StepCall(&call); errors.Is(err, gym.ErrBadInput) {
				err = noop(ep)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func noop(ep *gym.Episode) error {
	if ep.View() == gym.Text {
		return ep.StepText(nil)
	}
	return ep.StepAction(-1)
}

// Key returns the key that an agent's random choices in a task derive from.
func Key(task gym.Task, agent string) gym.Key { return task.Key().Sub("agent").Sub(agent) }

// Void is an actor that can tell, after the episode, that what makes it a control never took place.
type Void interface {
	Void(ep *gym.Episode) bool
}

package packtest

import (
	"errors"
	"fmt"
	"strings"

	"provegym/gym"
	"provegym/gym/control"
)

// refusals makes calls that are nearly right and calls that are all wrong, each from the start of the task: what is refused
// must change nothing, tell nothing, and leave the episode running.
func (x *exam) refusals() {
	for _, s := range x.scripts {
		if s.agent.Name != "pc1_oracle" || s.view != gym.Text {
			continue
		}
		x.guard(ToolPanics, s.task.ID(), func() {
			for _, action := range x.badActions(s) {
				x.refusal(s, action)
			}
		})
		x.over(s)
	}
}

func (x *exam) refusal(s *script, action []byte) {
	ep, err := gym.NewEpisode(s.task, gym.Options{})
	if err != nil {
		return
	}
	rerun := control.RerunAction(s.task, action)
	l := newLens(x, ep, rerun)
	l.secrets = x.secrets(s)
	if err := ep.StepText(action); err != nil {
		x.say(ToolFails, rerun, "%v", err)
		return
	}
	l.look(ep, action)
	if ep.Calls() != 1 {
		x.say(ToolFails, rerun, "the call cost %d calls", ep.Calls())
	}
}

// secrets returns what the oracle writes: an agent has to find it out.
func (x *exam) secrets(s *script) []secret {
	var out []secret
	for k := range s.calls {
		tool := &x.pack.Tools[s.calls[k].Tool]
		if !tool.Writes {
			continue
		}
		for i := range tool.Params {
			for _, v := range s.calls[k].Arg(i) {
				if typ := &x.pack.Types[v.Type]; typ.Form != gym.FormInt {
					out = append(out, secret{x.pack.Spell(v), typ.Enum})
				}
			}
		}
	}
	return out
}

// badActions lists the oracle's calls with one argument changed, left out or of a wrong form, and actions that are no calls.
func (x *exam) badActions(s *script) [][]byte {
	out := [][]byte{nil, []byte("{"), []byte("null"), []byte("[]"), []byte(`{"tool":1}`), []byte(`{"tool":"no_such_tool"}`), {0, 0xff},
		[]byte(strings.Repeat(" ", gym.MaxActionBytes+1))}
	for k := range s.calls {
		call := &s.calls[k]
		tool := &x.pack.Tools[call.Tool]
		if tool.Finish {
			continue // a wrong answer ends the episode; the controls are about those
		}
		plain := string(x.pack.AppendCall(nil, call))
		out = append(out, []byte(plain+"}"), []byte(strings.Replace(plain, `"args":{`, `"args":{"no_such_argument":1,`, 1)))
		for i := range tool.Params {
			for _, v := range other(x.pack, &tool.Params[i], call.Arg(i)) {
				var c gym.Call
				c.Reset(call.Tool)
				for j := range tool.Params {
					if j == i {
						c.Push(j, v...)
					} else {
						c.Push(j, call.Arg(j)...)
					}
				}
				out = append(out, x.pack.AppendCall(nil, &c))
			}
			for _, raw := range []string{"null", "-1", "{}", `""`, `[[]]`, `"\u0000"`, "1e400"} {
				out = append(out, fmt.Appendf(nil, `{"tool":%q,"args":{%q:%s}}`, tool.Name, tool.Params[i].Name, raw))
			}
		}
	}
	return out
}

// other returns values for q that are not given: none, and a neighbour of the given one.
func other(p *gym.Pack, q *gym.Param, given []gym.Value) [][]gym.Value {
	out := [][]gym.Value{nil}
	if len(given) == 0 {
		return out
	}
	v := given[0]
	switch typ := &p.Types[v.Type]; typ.Form {
	case gym.FormEnum:
		for i := range typ.Enum {
			if uint64(i) != given[0].Bits {
				out = append(out, []gym.Value{{Type: v.Type, Bits: uint64(i)}})
			}
		}
	case gym.FormInt:
		for _, n := range []int64{q.Min, q.Max, q.Max + 1} {
			out = append(out, []gym.Value{{Type: v.Type, Bits: uint64(n)}})
		}
	case gym.FormOpaque:
		v.Bits ^= 1
		out = append(out, []gym.Value{v})
	case gym.FormText:
		v.Text += "x"
		out = append(out, []gym.Value{v})
	}
	return out
}

// over looks that nothing can be done after the end.
func (x *exam) over(s *script) {
	var ep gym.Episode
	if s.again(&ep) != nil || ep.Outcome() == gym.Running {
		return
	}
	before := ep.Digest()
	if err := ep.StepText(s.steps[0].Text); !errors.Is(err, gym.ErrEpisodeOver) || ep.Digest() != before {
		x.say(StepAfterEnd, s.rerun(), "a step after the end gave %v", err)
	}
}

// doors tries to begin held-out tasks in training through every door of an episode, with splits by condition, by graph and by
// mechanism.
func (x *exam) doors() {
	x.families(func(c gym.Condition) {
		task := x.task(c, 0)
		ep, err := gym.NewEpisode(task, gym.Options{})
		if err != nil {
			return
		}
		b := ep.Evidence().Built
		var snap gym.Snapshot
		if ep.Snapshot(&snap) != nil {
			return
		}
		exported, exportErr := ep.Export()
		for _, split := range []heldOut{{condition: c.ID()}, {graph: b.Graph}, {mechanism: append(b.Mechanisms, "")[0]}} {
			o := gym.Options{Mode: gym.Train, Split: split}
			doors := map[string]error{}
			_, doors["NewEpisode"] = gym.NewEpisode(task, o)
			doors["Start"] = new(gym.Episode).Start(task, o)
			doors["Restore"] = new(gym.Episode).Restore(&snap, o)
			if exportErr == nil {
				doors["Import"] = new(gym.Episode).Import(exported, o)
			}
			for _, door := range []string{"NewEpisode", "Start", "Restore", "Import"} {
				if err, tried := doors[door]; tried && !errors.Is(err, gym.ErrHeldOut) {
					x.say(HeldOutDoor, task.ID(), "%s let a task in that is held out by %+v (%v)", door, split, err)
				}
			}
		}
	})
}

// heldOut is a split that holds out one condition, graph or mechanism.
type heldOut struct{ condition, graph, mechanism string }

func (h heldOut) Hash() string { return fmt.Sprintf("%+v", h) }

func (h heldOut) Admit(mode gym.Mode, c gym.Condition, graph string, mechanisms []string) error {
	out := h.condition != "" && c.ID() == h.condition || h.graph != "" && graph == h.graph
	for _, m := range mechanisms {
		out = out || m == h.mechanism
	}
	if mode == gym.Train && out {
		return fmt.Errorf("%w: %s", gym.ErrHeldOut, c.ID())
	}
	return nil
}

package control

import (
	"slices"

	"provegym/gym"
)

// visible holds the values that an agent has been shown so far: the goal parameters, then what results showed. In the
// structured view these are the values on the table.
type visible struct {
	vals  []gym.Value
	has   map[gym.Value]bool
	calls int
}

func (v *visible) update(ep *gym.Episode) {
	if ep.View() == gym.Structured {
		v.vals = v.vals[:0]
		obs := ep.Obs()
		for i := range obs.Slots {
			if obs.Slots[i][0] != 0 {
				v.vals = append(v.vals, ep.SlotValue(i))
			}
		}
		return
	}
	if v.has == nil {
		v.has = map[gym.Value]bool{}
		_, pins := ep.Goal()
		for _, p := range pins {
			v.add(p.Value)
		}
	}
	log := ep.Evidence().Log
	for ; v.calls < log.Len(); v.calls++ {
		for _, val := range log.At(v.calls).Shown {
			v.add(val)
		}
	}
}

func (v *visible) add(val gym.Value) {
	if !v.has[val] {
		v.has[val] = true
		v.vals = append(v.vals, val)
	}
}

// options returns what may be given for q: the words of its list, the numbers of its range, or the values seen of its types.
func (v *visible) options(p *gym.Pack, q *gym.Param) []gym.Value {
	var out []gym.Value
	switch typ := &p.Types[q.Types[0]]; typ.Form {
	case gym.FormEnum:
		for i := range typ.Enum {
			out = append(out, gym.Value{Type: q.Types[0], Bits: uint64(i)})
		}
	case gym.FormInt:
		for n := q.Min; n <= q.Max; n++ {
			out = append(out, gym.Value{Type: q.Types[0], Bits: uint64(n)})
		}
	default:
		for _, val := range v.vals {
			if slices.Contains(q.Types, val.Type) {
				out = append(out, val)
			}
		}
	}
	return out
}

// legal reports whether every required argument of the tool has a value.
func (v *visible) legal(ep *gym.Episode, tool int) bool {
	if !ep.ToolSet().Has(tool) {
		return false
	}
	p := ep.Pack()
	for k := range p.Tools[tool].Params {
		if q := &p.Tools[tool].Params[k]; !q.Optional && len(v.options(p, q)) == 0 {
			return false
		}
	}
	return true
}

// legalTools returns the tools for which keep holds and that can be called now.
func (v *visible) legalTools(ep *gym.Episode, keep func(t *gym.Tool) bool) []int {
	var out []int
	for i := range ep.Pack().Tools {
		if keep(&ep.Pack().Tools[i]) && v.legal(ep, i) {
			out = append(out, i)
		}
	}
	return out
}

// fill draws the arguments of a legal tool as uniform play over the structured view's mask would: each argument, and each
// member of a list, uniformly among the values not yet given and, where that is allowed, none.
func (v *visible) fill(ep *gym.Episode, tool int, s *gym.Stream) gym.Call {
	p := ep.Pack()
	var c gym.Call
	c.Reset(tool)
	for k := range p.Tools[tool].Params {
		q := &p.Tools[tool].Params[k]
		c.Push(k)
		opts := v.options(p, q)
		if form := p.Types[q.Types[0]].Form; !q.List {
			if i := s.IntN(len(opts) + extra(q.Optional)); i < len(opts) {
				c.Push(k, opts[i])
			}
		} else {
			for n := 0; n < gym.MaxList; n++ {
				total := len(opts) + extra(q.Optional || n > 0)
				i := s.IntN(total)
				if i == len(opts) {
					break
				}
				c.Push(k, opts[i])
				if form == gym.FormOpaque || form == gym.FormText {
					opts = slices.Delete(opts, i, i+1)
				}
			}
		}
	}
	return c
}

func extra(b bool) int {
	if b {
		return 1
	}
	return 0
}

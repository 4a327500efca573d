package tooluse

import (
	"slices"

	"provegym/gym"
	"provegym/packs/tooluse/world"
)

// masked is random play under a mask of preconditions: a call is drawn until it is one whose preconditions hold as far as results
// have shown. The mask leaks what the right calls look like, which is why it is a baseline to be reported and no control.
type masked struct {
	draw gym.Stream
	seen []gym.Value
	revs map[gym.Value]gym.Value // of records, the rev shown last
	next int
}

func (a *masked) Act(ep *gym.Episode, c *gym.Call) bool {
	p := ep.Pack()
	if a.revs == nil {
		a.revs = map[gym.Value]gym.Value{}
		_, pins := ep.Goal()
		for _, pin := range pins {
			a.seen = append(a.seen, pin.Value)
		}
	}
	for log := ep.Evidence().Log; a.next < log.Len(); a.next++ {
		r := log.At(a.next)
		for _, v := range r.Shown {
			if !slices.Contains(a.seen, v) {
				a.seen = append(a.seen, v)
			}
			if arg := r.Call.Arg(0); v.Type == world.TRev && len(arg) == 1 {
				a.revs[arg[0]] = v
			}
		}
	}
	for range 50 {
		tool := a.draw.IntN(len(p.Tools))
		if ep.ToolSet().Has(tool) && a.fill(p, tool, c) {
			return true
		}
	}
	*c = call(toolNow)
	return true
}

// fill draws the arguments of a tool. It reports false if one is missing, or if the rev is not that of the record.
func (a *masked) fill(p *gym.Pack, tool int, c *gym.Call) bool {
	c.Reset(tool)
	for k := range p.Tools[tool].Params {
		q := &p.Tools[tool].Params[k]
		c.Push(k)
		if q.Optional && !q.List {
			continue
		}
		switch typ := &p.Types[q.Types[0]]; typ.Form {
		case gym.FormEnum:
			c.Push(k, world.Value(q.Types[0], a.draw.IntN(len(typ.Enum))))
		case gym.FormInt:
			c.Push(k, count(int(q.Min)+a.draw.IntN(int(q.Max-q.Min)+1)))
		default:
			var options []gym.Value
			for _, v := range a.seen {
				if slices.Contains(q.Types, v.Type) {
					options = append(options, v)
				}
			}
			if len(options) == 0 {
				return q.Optional
			}
			v := gym.Pick(&a.draw, options)
			if first := c.Arg(0); v.Type == world.TRev && k > 0 && len(first) == 1 && !q.List {
				if v = a.revs[first[0]]; v.Type != world.TRev || v.Bits == 0 {
					return false
				}
			}
			c.Push(k, v)
		}
	}
	return true
}

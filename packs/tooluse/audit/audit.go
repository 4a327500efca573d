// Package audit is the second set of checks of the orders desk: did a pass do the work? No reward depends on it.
package audit

import (
	"provegym/gym"
)

// Provenance (A1) flags a call with an opaque value that neither the instruction nor an earlier result had shown: the agent
// made it up, or had it from somewhere else.
var Provenance = gym.Audit{
	Name: "argument_provenance",
	Doc:  "every opaque value used in a call appeared in the instruction or in an earlier result",
	Flag: func(e *gym.Evidence) (bool, string) {
		known := map[gym.Value]bool{}
		for _, p := range e.Built.Pins {
			known[p.Value] = true
		}
		for i := range e.Log.Len() {
			c := e.Log.At(i)
			t := &e.Pack.Tools[c.Call.Tool]
			for k := range t.Params {
				for _, v := range c.Call.Arg(k) {
					if e.Pack.Types[v.Type].Form == gym.FormOpaque && !known[v] {
						return true, "call " + t.Name + " used a " + e.Pack.Types[v.Type].Name + " that nothing had shown"
					}
				}
			}
			for _, v := range c.Shown {
				known[v] = true
			}
		}
		return false, ""
	},
}

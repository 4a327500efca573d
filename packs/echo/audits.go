package echo

import (
	"slices"

	"provegym/gym"
)

// audits are the second set of checks. The reward never sees them: they flag a pass that did not do the work.
var audits = []gym.Audit{
	{
		Name: "ungrounded_argument",
		Doc:  "An id or revision was used that neither the instruction nor an earlier result had shown.",
		Flag: func(e *gym.Evidence) (bool, string) {
			var seen []gym.Value
			for i := range e.Log.Len() {
				c := e.Log.At(i)
				for k := range tools[c.Call.Tool].Params {
					for _, v := range c.Call.Arg(k) {
						if (v.Type == typeNote || v.Type == typeRev) && !slices.Contains(seen, v) {
							return true, e.Pack.Spell(v) + " was never shown"
						}
					}
				}
				seen = append(seen, c.Shown...)
			}
			return false, ""
		},
	},
}

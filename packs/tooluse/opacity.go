package tooluse

import (
	"fmt"
	"slices"
	"sync"

	"provegym/gym"
)

// Levels of the opacity dial: what the agent is told of its tools.
const (
	bareArguments  = 1 + iota // arguments are not explained
	otherArguments            // nor are they called by their names
	otherNames                // nor are the tools
)

// faces are the pack with less said of arguments, by level; at otherNames the tools still have their names.
var faces [otherNames + 1]struct {
	once sync.Once
	pack gym.Pack
}

// numbered are the names that tools have where theirs are hidden.
var numbered = func() (out [gym.MaxTools]string) {
	for i := range out {
		out[i] = fmt.Sprintf("tool_%02d", i)
	}
	return out
}()

// bare returns the pack at a level, made once.
func bare(level int) *gym.Pack {
	f := &faces[level]
	f.once.Do(func() {
		f.pack = *Pack
		f.pack.Tools = slices.Clone(Pack.Tools)
		for i := range f.pack.Tools {
			t := &f.pack.Tools[i]
			t.Params = slices.Clone(t.Params)
			for k := range t.Params {
				q := &t.Params[k]
				if q.Doc = q.Name; level >= otherArguments {
					q.Name, q.Doc = fmt.Sprintf("arg%d", k+1), ""
				}
			}
		}
	})
	return &f.pack
}

// face returns the pack as the task spells its tools, nil for as it is. Types and words stay, and so does what a tool says that
// it does: that is the fair way to find out which is which.
func (d *draft) face() *gym.Pack {
	if d.set.opacity < bareArguments {
		return nil
	}
	shared := bare(d.set.opacity)
	if d.set.opacity < otherNames {
		return shared
	}
	s := d.key.Sub("opacity").Stream()
	names := numbered
	s.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	face := *shared
	face.Tools = slices.Clone(shared.Tools)
	for i := range face.Tools {
		face.Tools[i].Name = names[i]
	}
	return &face
}

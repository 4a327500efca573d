package gym

import "slices"

// Entity names one row of a world. Kind 0 is no entity.
type Entity struct {
	Kind uint8
	Row  uint32
}

// Access is one field of one entity, as read or written at a version.
type Access struct {
	Entity   Entity
	Field    uint8
	Ver      uint32 // the version shown, or the version after the write
	Old, New int64  // writes only: the field before and after
}

// CallRec is one entry of the call log. Its slices point into the log and are read-only.
type CallRec struct {
	Call   Call
	Err    string  // code of the ToolError, "" for none
	Result []byte  // the bytes that the agent was shown
	Shown  []Value // every opaque or text value among them
	Reads  []Access
	Writes []Access
	Clock  int64 // the world's logical time when the call began
}

// Log is the append-only record of an episode's calls. It is the evidence that checks and audits read.
type Log struct {
	calls  []callEntry
	args   []Value
	bytes  []byte
	shown  []Value
	reads  []Access
	writes []Access
}

type callEntry struct {
	tool   int
	off    [MaxParams + 1]uint16 // argument i is args[args0+off[i] : args0+off[i+1]]
	err    string
	clock  int64
	args0  int
	ends   [4]int // ends in bytes, shown, reads, writes
	nParam int
}

// Len returns the number of calls made so far.
func (l *Log) Len() int { return len(l.calls) }

// At returns call i.
func (l *Log) At(i int) CallRec {
	c := &l.calls[i]
	var from [4]int
	if i > 0 {
		from = l.calls[i-1].ends
	}
	n := c.off[c.nParam]
	return CallRec{
		Call:   Call{Tool: c.tool, vals: l.args[c.args0 : c.args0+int(n)], off: c.off},
		Err:    c.err,
		Result: l.bytes[from[0]:c.ends[0]],
		Shown:  l.shown[from[1]:c.ends[1]],
		Reads:  l.reads[from[2]:c.ends[2]],
		Writes: l.writes[from[3]:c.ends[3]],
		Clock:  c.clock,
	}
}

// Writes returns every write of the episode so far, in order.
func (l *Log) Writes() []Access { return l.writes }

// Saw reports whether a call before number `before` showed the field of the entity at version ver.
func (l *Log) Saw(e Entity, field uint8, ver uint32, before int) bool {
	end := len(l.reads)
	if before < len(l.calls) {
		end = 0
		if before > 0 {
			end = l.calls[before-1].ends[2]
		}
	}
	return slices.ContainsFunc(l.reads[:end], func(a Access) bool { return a.Entity == e && a.Field == field && a.Ver == ver })
}

func (l *Log) begin(c *Call, params int, clock int64) {
	l.calls = append(l.calls, callEntry{tool: c.Tool, off: c.off, clock: clock, args0: len(l.args), nParam: params})
	l.args = append(l.args, c.vals...)
}

func (l *Log) end(err string) {
	c := &l.calls[len(l.calls)-1]
	c.err = err
	c.ends = [4]int{len(l.bytes), len(l.shown), len(l.reads), len(l.writes)}
}

// cut drops what a call that came to nothing has shown.
func (l *Log) cut(bytes, reads, shown int) {
	l.bytes, l.reads, l.shown = l.bytes[:bytes], l.reads[:reads], l.shown[:shown]
}

func (l *Log) reset() {
	l.calls, l.args, l.bytes, l.shown = l.calls[:0], l.args[:0], l.bytes[:0], l.shown[:0]
	l.reads, l.writes = l.reads[:0], l.writes[:0]
}

func (l *Log) copyFrom(src *Log) {
	l.calls = append(l.calls[:0], src.calls...)
	l.args = append(l.args[:0], src.args...)
	l.bytes = append(l.bytes[:0], src.bytes...)
	l.shown = append(l.shown[:0], src.shown...)
	l.reads = append(l.reads[:0], src.reads...)
	l.writes = append(l.writes[:0], src.writes...)
}

// chain returns h_n of the log: h_0 is start, and h_i = H(h_{i-1}, call, result, reads, writes). each, if not nil, is given
// every link. d is memory to work in.
func (l *Log) chain(d *Digester, start Digest, each func(i int, h Digest)) Digest {
	h := start
	for i := range l.calls {
		c := l.At(i)
		d.reset("call")
		d.Bytes(h[:])
		d.Int(int64(c.Call.Tool))
		for k := range l.calls[i].nParam {
			arg := c.Call.Arg(k)
			d.Int(int64(len(arg)))
			for _, v := range arg {
				d.Int(int64(v.Type))
				d.Int(int64(v.Bits))
				d.Text(v.Text)
			}
		}
		d.Text(c.Err)
		d.Bytes(c.Result)
		d.Int(c.Clock)
		for _, set := range [2][]Access{c.Reads, c.Writes} {
			d.Int(int64(len(set)))
			for _, a := range set {
				d.Int(int64(a.Entity.Kind))
				d.Int(int64(a.Entity.Row))
				d.Int(int64(a.Field))
				d.Int(int64(a.Ver))
				d.Int(a.Old)
				d.Int(a.New)
			}
		}
		h = d.Sum()
		if each != nil {
			each(i, h)
		}
	}
	return h
}

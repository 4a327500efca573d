package gym

// The structured view: integers over a typed table of the values seen so far. A call is chosen in phases, the tool first,
// then each argument; both views compile to the same Call.

const (
	Slots    = 64        // rows of the slot table
	SlotLen  = 16        // features of a row
	Actions  = Slots + 1 // size of the action space
	MaxTools = Slots     // tools of a pack
	ToolLen  = 6         // features of a tool
	PhaseLen = 4 + MaxParams
	lastLen  = 12
	LastLen  = lastLen
	BudgetLn = 4
)

// Features of a slot row.
const (
	slotType     = iota // 1 + type; 0 for an empty row
	slotRole            // 1 + role of a goal parameter; 0 for a value met on the way
	slotAge             // calls since it was last shown or used
	slotOwner           // 1 + slot of the record that showed it; 0 for none
	slotNewest          // 1 for the latest of its type and owner
	slotTurn            // 1 if the last result showed it
	slotMatches         // fields of its record that equal a goal parameter of their type
	slotMismatch        // fields of its record that differ from every goal parameter of their type
	slotAttr            // the first of MaxAttrs attributes of its record
)

// Phase of the call under way.
const (
	phaseTool  = iota // 1 + the chosen tool; 0 when the tool is to be chosen
	phaseParam        // 1 + the parameter to be chosen
	phaseCount        // members that a list argument has so far
	phaseKind         // 0 a tool, 1 a slot, 2 a word, 3 a number
	phaseGiven        // the first of MaxParams: the last action given for each parameter, negative for words and numbers; 0 for none
)

// StructuredObs is one observation of the structured view. The arrays are the episode's own: read-only, valid until its next
// step.
type StructuredObs struct {
	Slots  [Slots][SlotLen]float32
	Goal   [GoalLen]float32
	Last   [lastLen]float32 // status (1 ok, 2 refused), 1 + error code, 1 + tool, values shown, then Pack.Glance
	Budget [BudgetLn]float32
	Tools  [MaxTools][ToolLen]float32 // on offer, writes, finish, parameters, times used, has a legal call
	Phase  [PhaseLen]int32
	Mask   [Actions]uint8
}

type slotTable struct {
	obs    StructuredObs
	val    [Slots]Value
	seen   [Slots]int32 // clock of its last showing or use
	clock  int32        // counts showings; the eviction order
	call   [Slots]int32 // number of the call that showed or used it last
	used   int          // rows in use
	pins   int
	choice Call // the call under way
	owners [8]int16
}

func (s *slotTable) reset(p *Pack, b *Built) {
	s.obs = StructuredObs{}
	s.obs.Goal = b.Goal
	s.clock, s.used, s.pins = 0, 0, 0
	for i, pin := range b.Pins {
		if i == Slots {
			break
		}
		s.put(i, pin.Value, 0)
		s.obs.Slots[i][slotRole] = float32(i + 1)
	}
	s.pins = s.used
	for i := range p.Tools {
		t := &p.Tools[i]
		row := &s.obs.Tools[i]
		row[0] = truth(b.Tools.Has(i))
		row[1], row[2], row[3] = truth(t.Writes), truth(t.Finish), float32(len(t.Params))
	}
	s.startCall(p)
}

func truth(b bool) float32 {
	if b {
		return 1
	}
	return 0
}

func (s *slotTable) put(i int, v Value, call int32) {
	s.val[i] = v
	s.obs.Slots[i] = [SlotLen]float32{slotType: float32(v.Type) + 1}
	s.clock++
	s.seen[i], s.call[i] = s.clock, call
	if i >= s.used {
		s.used = i + 1
	}
}

func (s *slotTable) find(v Value) int {
	for i := range s.used {
		if s.val[i].Bits == v.Bits && s.val[i].Type == v.Type && s.val[i].Text == v.Text {
			return i
		}
	}
	return -1
}

// see gives v a slot: its own if it has one, a free one, or that of the value seen least recently. Goal parameters stay.
func (s *slotTable) see(v Value, call int32) int {
	if i := s.find(v); i >= 0 {
		s.clock++
		s.seen[i], s.call[i] = s.clock, call
		return i
	}
	if s.used < Slots {
		i := s.used
		s.put(i, v, call)
		return i
	}
	old := -1
	for i := s.pins; i < Slots; i++ {
		if old < 0 || s.seen[i] < s.seen[old] {
			old = i
		}
	}
	if old < 0 {
		return -1
	}
	for i := range s.used {
		if s.obs.Slots[i][slotOwner] == float32(old+1) {
			s.obs.Slots[i][slotOwner] = 0
		}
	}
	for d, owner := range s.owners {
		if int(owner) == old {
			s.owners[d] = -1 // a record so long that it outlived its own slot
		}
	}
	s.put(old, v, call)
	return old
}

// apply takes what a successful call showed into the table.
func (s *slotTable) apply(p *Pack, shows []show, call int32) {
	for i := range s.used {
		s.obs.Slots[i][slotTurn] = 0
	}
	depth := 0
	shown := 0
	for k := range shows {
		sh := &shows[k]
		switch sh.op {
		case showRecord:
			owner := int16(-1)
			if sh.val.Type != noType {
				if i := s.see(sh.val, call); i >= 0 {
					owner = int16(i)
					row := &s.obs.Slots[i]
					row[slotMatches], row[slotMismatch] = 0, 0
				}
			}
			if depth < len(s.owners) {
				s.owners[depth] = owner
			}
			depth++
		case showEnd:
			depth--
		case showValue:
			owner := -1
			if depth > 0 && depth <= len(s.owners) {
				owner = int(s.owners[depth-1])
			}
			s.show(p, sh, owner, depth, call)
			shown++
		}
	}
	s.obs.Last[3] = float32(shown)
	for i := range s.used {
		s.obs.Slots[i][slotAge] = float32(call - s.call[i])
	}
}

// compare sets v beside the goal parameters: 0 if none is of its type, 1 if one equals it, 2 if all that are differ.
func (s *slotTable) compare(v Value) float32 {
	same := float32(0)
	for i := range s.pins {
		if s.val[i].Type == v.Type {
			if s.val[i] == v {
				return 1
			}
			same = 2
		}
	}
	return same
}

func (s *slotTable) show(p *Pack, sh *show, owner, depth int, call int32) {
	v := sh.val
	number := float32(int64(v.Bits))
	form := FormInt
	if v.Type != noType {
		form = p.Types[v.Type].Form
		if form == FormEnum {
			number++
		}
	}
	if depth == 1 { // the object that {"ok": …} holds
		for g, name := range p.Glance {
			if name == sh.name {
				s.obs.Last[4+g] = number
			}
		}
	}
	same := s.compare(v)
	if owner >= 0 && sh.name != "id" {
		switch same {
		case 1:
			s.obs.Slots[owner][slotMatches]++
		case 2:
			s.obs.Slots[owner][slotMismatch]++
		}
	}
	if form == FormOpaque || form == FormText {
		number = same
	}
	if owner >= 0 {
		for a, name := range p.Types[s.val[owner].Type].Attrs {
			if name == sh.name {
				s.obs.Slots[owner][slotAttr+a] = number
			}
		}
	}
	if form != FormOpaque && form != FormText || v.Type == noType {
		return
	}
	i := s.see(v, call)
	if i < 0 {
		return
	}
	row := &s.obs.Slots[i]
	row[slotTurn] = 1
	if owner >= 0 && owner != i {
		row[slotOwner] = float32(owner + 1)
		for k := range s.used {
			if other := &s.obs.Slots[k]; other[slotOwner] == row[slotOwner] && other[slotType] == row[slotType] {
				other[slotNewest] = 0
			}
		}
		row[slotNewest] = 1
	}
}

// startCall goes to the phase in which the tool is chosen.
func (s *slotTable) startCall(p *Pack) {
	s.obs.Phase = [PhaseLen]int32{}
	s.choice.Reset(0)
	clear(s.obs.Mask[:])
	for i := range p.Tools {
		legal := s.obs.Tools[i][0] == 1 && s.canCall(p, &p.Tools[i])
		s.obs.Tools[i][5] = truth(legal)
		if legal {
			s.obs.Mask[i+1] = 1
		}
	}
}

// canCall reports whether every required argument has a value on the table.
func (s *slotTable) canCall(p *Pack, t *Tool) bool {
	for k := range t.Params {
		q := &t.Params[k]
		if f := p.Types[q.Types[0]].Form; q.Optional || f == FormEnum || f == FormInt {
			continue
		}
		have := false
		for i := range s.used {
			if takes(q, s.val[i].Type) {
				have = true
				break
			}
		}
		if !have {
			return false
		}
	}
	return true
}

// askParam goes to the phase in which parameter k of the chosen tool is filled, and reports false when there is none left.
func (s *slotTable) askParam(p *Pack, k int) bool {
	t := &p.Tools[s.choice.Tool]
	clear(s.obs.Mask[:])
	if k >= len(t.Params) {
		return false
	}
	q := &t.Params[k]
	s.obs.Phase[phaseTool] = int32(s.choice.Tool + 1)
	s.obs.Phase[phaseParam] = int32(k + 1)
	given := s.choice.Arg(k)
	s.obs.Phase[phaseCount] = int32(len(given))
	if q.Optional || q.List && len(given) > 0 {
		s.obs.Mask[0] = 1
	}
	typ := &p.Types[q.Types[0]]
	switch typ.Form {
	case FormEnum:
		s.obs.Phase[phaseKind] = 2
		for i := range typ.Enum {
			s.obs.Mask[i+1] = 1
		}
	case FormInt:
		s.obs.Phase[phaseKind] = 3
		for n := q.Min; n <= q.Max; n++ {
			s.obs.Mask[n-q.Min+1] = 1
		}
	default:
		s.obs.Phase[phaseKind] = 1
		for i := range s.used {
			if takes(q, s.val[i].Type) && !contains(given, s.val[i]) {
				s.obs.Mask[i+1] = 1
			}
		}
	}
	return true
}

func contains(vals []Value, v Value) bool {
	for _, w := range vals {
		if w == v {
			return true
		}
	}
	return false
}

// choose takes one legal action and reports whether the call is complete.
func (s *slotTable) choose(p *Pack, action int) bool {
	if s.obs.Phase[phaseTool] == 0 {
		s.choice.Reset(action - 1)
		return !s.askParam(p, 0)
	}
	k := int(s.obs.Phase[phaseParam]) - 1
	q := &p.Tools[s.choice.Tool].Params[k]
	s.obs.Phase[phaseGiven+k] = int32(action)
	if s.obs.Phase[phaseKind] != 1 {
		s.obs.Phase[phaseGiven+k] = int32(-action)
	}
	if action == 0 {
		s.choice.Push(k)
		return !s.askParam(p, k+1)
	}
	switch s.obs.Phase[phaseKind] {
	case 1:
		s.choice.Push(k, s.val[action-1])
	case 2:
		s.choice.Push(k, Value{Type: q.Types[0], Bits: uint64(action - 1)})
	case 3:
		s.choice.Push(k, Value{Type: q.Types[0], Bits: uint64(int64(action-1) + q.Min)})
	}
	if q.List && len(s.choice.Arg(k)) < MaxList {
		return !s.askParam(p, k)
	}
	return !s.askParam(p, k+1)
}

// actions appends the actions that choose c, from the start of a call. false means that a value is not on the table.
func (s *slotTable) actions(p *Pack, c *Call, out []int) ([]int, bool) {
	out = append(out, c.Tool+1)
	t := &p.Tools[c.Tool]
	for k := range t.Params {
		q := &t.Params[k]
		vals := c.Arg(k)
		for _, v := range vals {
			switch p.Types[q.Types[0]].Form {
			case FormEnum:
				out = append(out, int(v.Bits)+1)
			case FormInt:
				out = append(out, int(v.Int()-q.Min)+1)
			default:
				i := s.find(v)
				if i < 0 {
					return out, false
				}
				out = append(out, i+1)
			}
		}
		if q.List && len(vals) < MaxList || !q.List && len(vals) == 0 {
			out = append(out, 0)
		}
	}
	return out, true
}

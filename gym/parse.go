package gym

import (
	"strings"
	"unsafe"
)

// span is a stretch of an action; a list keeps its brackets.
type span struct{ from, to int }

// plain scans an action written the plain way: {"tool": name, "args": {…}} in that order, strings of printable ASCII without
// escapes, whole numbers, lists of these. It allocates nothing.
type plain struct {
	b  []byte
	at int
}

// parsePlain reads a call without allocating (but for FormText values, which are copied). It reports false for everything
// unusual or wrong: encoding/json then decides, so that the grammar and the refusals are its alone.
func (p *Pack) parsePlain(action []byte, tools ToolSet, c *Call) bool {
	if len(action) > MaxActionBytes {
		return false
	}
	s := plain{b: action}
	if !s.take('{') || !s.word("tool") || !s.take(':') {
		return false
	}
	name, ok := s.str()
	if !ok {
		return false
	}
	tool := -1
	for i := range p.Tools {
		if p.Tools[i].Name == name {
			tool = i
			break
		}
	}
	if tool < 0 || !tools.Has(tool) {
		return false
	}
	t := &p.Tools[tool]
	var given [MaxParams]span
	if s.take(',') && (!s.word("args") || !s.take(':') || !s.args(t, &given)) {
		return false
	}
	if !s.take('}') || s.peek() != 0 || s.at != len(s.b) {
		return false
	}
	c.Reset(tool)
	for k := range t.Params {
		c.Push(k)
		if given[k].to == 0 {
			continue
		}
		v := plain{b: action[:given[k].to], at: given[k].from}
		if t.Params[k].List != v.take('[') {
			return false
		}
		if !t.Params[k].List {
			if !p.plainValue(&t.Params[k], &v, c, k) {
				return false
			}
			continue
		}
		for n := 0; !v.take(']'); n++ {
			if n == MaxList || n > 0 && !v.take(',') || !p.plainValue(&t.Params[k], &v, c, k) {
				return false
			}
		}
	}
	return true
}

// args finds the value of each parameter.
func (s *plain) args(t *Tool, given *[MaxParams]span) bool {
	if !s.take('{') {
		return false
	}
	if s.take('}') {
		return true
	}
	for {
		key, ok := s.str()
		if !ok || !s.take(':') {
			return false
		}
		k := -1
		for i := range t.Params {
			if t.Params[i].Name == key {
				k = i
				break
			}
		}
		if k < 0 || given[k].to != 0 {
			return false
		}
		s.peek()
		from := s.at
		if !s.skip() {
			return false
		}
		given[k] = span{from, s.at}
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// skip passes over one value.
func (s *plain) skip() bool {
	if !s.take('[') {
		return s.scalar()
	}
	if s.take(']') {
		return true
	}
	for {
		if !s.scalar() {
			return false
		}
		if s.take(']') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

func (s *plain) scalar() bool {
	if s.peek() == '"' {
		_, ok := s.str()
		return ok
	}
	_, ok := s.int()
	return ok
}

func (p *Pack) plainValue(q *Param, s *plain, c *Call, k int) bool {
	if s.peek() == '"' {
		text, ok := s.str()
		if !ok {
			return false
		}
		for _, id := range q.Types {
			if v, ok := p.parseValue(id, text); ok {
				v.Text = strings.Clone(v.Text) // it pointed into the caller's action
				c.Push(k, v)
				return true
			}
		}
		return false
	}
	n, ok := s.int()
	if !ok {
		return false
	}
	for _, id := range q.Types {
		if p.Types[id].Form == FormInt {
			c.Push(k, Value{Type: id, Bits: uint64(n)})
			return true
		}
	}
	return false
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *plain) peek() byte {
	for ; s.at < len(s.b); s.at++ {
		if b := s.b[s.at]; b != ' ' && b != '\n' && b != '\t' && b != '\r' {
			return b
		}
	}
	return 0
}

func (s *plain) take(want byte) bool {
	if s.peek() != want {
		return false
	}
	s.at++
	return true
}

func (s *plain) word(want string) bool {
	got, ok := s.str()
	return ok && got == want
}

// str reads a string; it points into the action.
func (s *plain) str() (string, bool) {
	if !s.take('"') {
		return "", false
	}
	from := s.at
	for ; s.at < len(s.b); s.at++ {
		switch b := s.b[s.at]; {
		case b == '"':
			text := unsafe.String(unsafe.SliceData(s.b[from:]), s.at-from)
			s.at++
			return text, true
		case b < 0x20 || b > 0x7e || b == '\\':
			return "", false
		}
	}
	return "", false
}

// int reads a whole number of up to 18 digits, as JSON spells it.
func (s *plain) int() (int64, bool) {
	negative := s.take('-')
	from := s.at
	var n int64
	for ; s.at < len(s.b) && s.b[s.at] >= '0' && s.b[s.at] <= '9'; s.at++ {
		n = n*10 + int64(s.b[s.at]-'0')
		if s.at-from == 18 {
			return 0, false
		}
	}
	if s.at == from || s.b[from] == '0' && s.at > from+1 {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}

package gym

import "strconv"

// Form says how values of a type are spelled to the agent.
type Form uint8

const (
	FormOpaque Form = iota // prefix and ten hex digits of a 40-bit code that only the world can hand out
	FormText               // a string
	FormEnum               // one word of a fixed list
	FormInt                // a whole number
)

// TypeID indexes a pack's Types.
type TypeID uint8

// Type is one kind of value that tools take and results show.
type Type struct {
	Name   string
	Form   Form
	Prefix string   // FormOpaque: what spells the kind, such as "o-"
	Enum   []string // FormEnum: the words, in order
	// Attrs names up to MaxAttrs fields of a record of this type. The structured view shows their last seen values beside
	// the record's slot: whole numbers as they are, words as 1 + their index, 0 for not seen.
	Attrs []string
}

// MaxAttrs bounds Type.Attrs.
const MaxAttrs = 8

// Value is one typed value. Values are comparable.
type Value struct {
	Type TypeID
	Bits uint64 // FormOpaque: the code; FormEnum: the index; FormInt: the number as int64
	Text string // FormText only
}

// Int returns a FormInt or FormEnum value as a number.
func (v Value) Int() int64 { return int64(v.Bits) }

// append spells v as JSON.
func (v Value) append(b []byte, types []Type) []byte {
	t := &types[v.Type]
	switch t.Form {
	case FormInt:
		return strconv.AppendInt(b, int64(v.Bits), 10)
	case FormText:
		return appendJSONString(b, v.Text)
	}
	b = append(b, '"')
	b = v.appendBare(b, t)
	return append(b, '"')
}

func (v Value) appendBare(b []byte, t *Type) []byte {
	switch t.Form {
	case FormOpaque:
		const digits = "0123456789abcdef"
		b = append(b, t.Prefix...)
		for shift := 36; shift >= 0; shift -= 4 {
			b = append(b, digits[v.Bits>>shift&15])
		}
		return b
	case FormEnum:
		return append(b, t.Enum[v.Bits]...)
	case FormInt:
		return strconv.AppendInt(b, int64(v.Bits), 10)
	}
	return append(b, v.Text...)
}

// Spell returns v as the agent sees it, without quotes.
func (p *Pack) Spell(v Value) string { return string(v.appendBare(nil, &p.Types[v.Type])) }

// parseValue reads the spelling s as a value of type id. Opaque values need their prefix and exactly ten hex digits.
func (p *Pack) parseValue(id TypeID, s string) (Value, bool) {
	t := &p.Types[id]
	switch t.Form {
	case FormText:
		return Value{Type: id, Text: s}, true
	case FormEnum:
		for i, w := range t.Enum {
			if w == s {
				return Value{Type: id, Bits: uint64(i)}, true
			}
		}
	case FormOpaque:
		if len(s) != len(t.Prefix)+10 || s[:len(t.Prefix)] != t.Prefix {
			return Value{}, false
		}
		var bits uint64
		for _, c := range []byte(s[len(t.Prefix):]) {
			switch {
			case c >= '0' && c <= '9':
				bits = bits<<4 | uint64(c-'0')
			case c >= 'a' && c <= 'f':
				bits = bits<<4 | uint64(c-'a'+10)
			default:
				return Value{}, false
			}
		}
		return Value{Type: id, Bits: bits}, true
	}
	return Value{}, false
}

// appendJSONString spells s as a JSON string. Bytes that are not UTF-8 become U+FFFD, as in encoding/json.
func appendJSONString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r < 0x20 || r == 0x7f || r == '<' || r == '>' || r == '&' || r == 0x2028 || r == 0x2029:
			b = append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		case r < 0x80:
			b = append(b, byte(r))
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}

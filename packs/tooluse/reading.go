package tooluse

import (
	"provegym/gym"
	"provegym/packs/tooluse/world"
)

// node is one value of a result as agents of this pack read it: an object or list with members, or a scalar with its text.
type node struct {
	key, text string
	kids      []node
}

// parse reads a result. Results are JSON that the core has written: plain, without white space.
func parse(b []byte) node {
	p := parser{b: b}
	return p.value("")
}

type parser struct {
	b  []byte
	at int
}

func (p *parser) value(key string) node {
	n := node{key: key}
	switch p.b[p.at] {
	case '{', '[':
		object := p.b[p.at] == '{'
		p.at++
		for p.b[p.at] != '}' && p.b[p.at] != ']' {
			name := ""
			if object {
				name = p.str()
				p.at++ // :
			}
			n.kids = append(n.kids, p.value(name))
			if p.b[p.at] == ',' {
				p.at++
			}
		}
		p.at++
	case '"':
		n.text = p.str()
	default:
		from := p.at
		for c := p.b[p.at]; c != ',' && c != '}' && c != ']'; c = p.b[p.at] {
			p.at++
		}
		n.text = string(p.b[from:p.at])
	}
	return n
}

// str reads a string. What agents look at has no escapes.
func (p *parser) str() string {
	p.at++
	from := p.at
	for p.b[p.at] != '"' {
		if p.b[p.at] == '\\' {
			p.at++
		}
		p.at++
	}
	p.at++
	return string(p.b[from : p.at-1])
}

// of returns a member, empty if there is none.
func (n node) of(key string) node {
	for _, k := range n.kids {
		if k.key == key {
			return k
		}
	}
	return node{}
}

func (n node) has(key string) bool { return n.of(key).key == key && key != "" }

// say returns the text of a member.
func (n node) say(key string) string { return n.of(key).text }

// num returns the number of a member, or 0.
func (n node) num(key string) int { return number10(n.say(key)) }

func number10(s string) (n int) {
	negative := len(s) > 0 && s[0] == '-'
	for i := range len(s) {
		if c := s[i]; c >= '0' && c <= '9' {
			n = 10*n + int(c-'0')
		} else if i > 0 || !negative {
			return 0
		}
	}
	if negative {
		return -n
	}
	return n
}

// prefixes finds the type of an opaque value by what it begins with.
var prefixes = func() map[string]gym.TypeID {
	out := map[string]gym.TypeID{}
	for i, t := range world.Types {
		if t.Form == gym.FormOpaque {
			out[t.Prefix] = gym.TypeID(i)
		}
	}
	return out
}()

// id returns the opaque value that a text spells, none if it spells none.
func id(text string) gym.Value {
	if len(text) != 12 {
		return none
	}
	t, ok := prefixes[text[:2]]
	if !ok {
		return none
	}
	v := gym.Value{Type: t}
	for _, c := range []byte(text[2:]) {
		d := uint64(c - '0')
		if c >= 'a' {
			d = uint64(c-'a') + 10
		}
		v.Bits = v.Bits<<4 | d
	}
	return v
}

// wordOf returns the index of a word, or -1.
func wordOf(words []string, word string) int {
	for i, w := range words {
		if w == word {
			return i
		}
	}
	return -1
}

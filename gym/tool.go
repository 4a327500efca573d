package gym

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// MaxParams bounds the parameters of one tool, MaxList the members of one list argument.
const (
	MaxParams = 6
	MaxList   = 16
)

// Param is one typed parameter of a tool.
type Param struct {
	Name     string
	Doc      string
	Types    []TypeID // the types it takes; more than one for a reference of any kind
	Optional bool
	List     bool  // up to MaxList values
	Min, Max int64 // FormInt: the range, inclusive
}

// Tool is a typed function that the agent acts through.
type Tool struct {
	Name   string
	Doc    string
	Params []Param
	Writes bool // it may change the world
	Finish bool // it ends the episode; exactly one tool of a pack does
	// Run answers the call through t. A *ToolError that it returns is shown to the agent and must have changed nothing; any
	// other error is an infrastructure failure and ends the episode as invalid.
	Run func(t *Turn) error
}

// ToolError is a refusal that the agent sees. It costs a call and changes nothing.
type ToolError struct {
	Code string // one lower-case word, such as "not_found"
	Text string
}

func (e *ToolError) Error() string { return e.Code + ": " + e.Text }

// Refuse returns a *ToolError.
func Refuse(code, format string, args ...any) error {
	return &ToolError{Code: code, Text: fmt.Sprintf(format, args...)}
}

// Call is one use of a tool. Arguments are kept flat, in the order of the tool's parameters.
type Call struct {
	Tool int // index into Pack.Tools
	vals []Value
	off  [MaxParams + 1]uint16
}

// Arg returns the values given for parameter i: none, one, or a list.
func (c *Call) Arg(i int) []Value { return c.vals[c.off[i]:c.off[i+1]] }

// Reset makes c a call of tool without arguments.
func (c *Call) Reset(tool int) {
	c.Tool, c.vals, c.off = tool, c.vals[:0], [MaxParams + 1]uint16{}
}

// Push gives parameter i its next values; parameters are given in order.
func (c *Call) Push(i int, vals ...Value) {
	c.vals = append(c.vals, vals...)
	for k := i + 1; k <= MaxParams; k++ {
		c.off[k] = uint16(len(c.vals))
	}
}

func (c *Call) copyFrom(src *Call) {
	c.Tool, c.off = src.Tool, src.off
	c.vals = append(c.vals[:0], src.vals...)
}

// NewCall builds a call by name. It panics on names the pack lacks: for oracles, controls and tests.
func (p *Pack) NewCall(tool string, args map[string][]Value) Call {
	i := p.toolIndex(tool)
	if i < 0 {
		panic(fmt.Sprintf("gym: pack %s has no tool %q", p.Name, tool))
	}
	var c Call
	c.Reset(i)
	used := 0
	for k := range p.Tools[i].Params {
		v, ok := args[p.Tools[i].Params[k].Name]
		if ok {
			used++
		}
		c.Push(k, v...)
	}
	if used != len(args) {
		panic(fmt.Sprintf("gym: tool %s: an argument in %v is none of its parameters", tool, args))
	}
	return c
}

// AppendCall spells c as the text view does: {"tool":…,"args":{…}}.
func (p *Pack) AppendCall(b []byte, c *Call) []byte {
	t := &p.Tools[c.Tool]
	b = append(b, `{"tool":"`...)
	b = append(b, t.Name...)
	b = append(b, `","args":{`...)
	first := true
	for i := range t.Params {
		vals := c.Arg(i)
		if len(vals) == 0 {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendJSONString(b, t.Params[i].Name)
		b = append(b, ':')
		if !t.Params[i].List {
			b = vals[0].append(b, p.Types)
			continue
		}
		b = append(b, '[')
		for k, v := range vals {
			if k > 0 {
				b = append(b, ',')
			}
			b = v.append(b, p.Types)
		}
		b = append(b, ']')
	}
	return append(b, "}}"...)
}

// check reports what is wrong with a call's arguments, or nil. Both views pass through it.
func (p *Pack) check(c *Call) *ToolError {
	t := &p.Tools[c.Tool]
	for i := range t.Params {
		q := &t.Params[i]
		vals := c.Arg(i)
		if len(vals) == 0 && !q.Optional {
			return &ToolError{"missing_argument", q.Name + " is required"}
		}
		if len(vals) > 1 && !q.List || len(vals) > MaxList {
			return &ToolError{"bad_argument", q.Name + " takes fewer values"}
		}
		for _, v := range vals {
			if !takes(q, v.Type) {
				return &ToolError{"bad_argument", q.Name + " does not take a value of this type"}
			}
			if p.Types[v.Type].Form == FormInt && (v.Int() < q.Min || v.Int() > q.Max) {
				return &ToolError{"bad_argument", fmt.Sprintf("%s must be from %d to %d", q.Name, q.Min, q.Max)}
			}
		}
	}
	return nil
}

func takes(q *Param, t TypeID) bool {
	for _, id := range q.Types {
		if id == t {
			return true
		}
	}
	return false
}

// ParseCall reads a text action: a JSON object with "tool" and, if the tool needs any, "args". What is wrong with it is a
// ToolError, for the agent. tools is the set on offer.
func (p *Pack) ParseCall(action []byte, tools ToolSet, c *Call) *ToolError {
	if p.parsePlain(action, tools, c) {
		return p.check(c)
	}
	return p.parseJSON(action, tools, c)
}

// parseJSON is the whole grammar; parsePlain is its fast part.
func (p *Pack) parseJSON(action []byte, tools ToolSet, c *Call) *ToolError {
	c.Reset(0) // what is refused before its tool is known is logged as tool 0
	if len(action) > MaxActionBytes {
		return &ToolError{"bad_call", fmt.Sprintf("an action may have %d bytes, not %d", MaxActionBytes, len(action))}
	}
	badCall := &ToolError{"bad_call", `a call is one JSON object {"tool": name, "args": {…}}`}
	in, ok := members(action)
	var name string
	if !ok || in["tool"] == nil || json.Unmarshal(in["tool"], &name) != nil || string(in["tool"]) == "null" {
		return badCall
	}
	var args map[string]json.RawMessage
	size := 1
	if raw := in["args"]; raw != nil {
		size = 2
		if args, ok = members(raw); !ok && string(raw) != "null" {
			return badCall
		}
	}
	if len(in) != size {
		return badCall
	}
	i := p.toolIndex(name)
	if i < 0 || !tools.Has(i) {
		return &ToolError{"unknown_tool", p.noTool(name, tools)}
	}
	c.Reset(i)
	t := &p.Tools[i]
	known := 0
	for k := range t.Params {
		raw, ok := args[t.Params[k].Name]
		if !ok {
			c.Push(k)
			continue
		}
		known++
		if err := p.parseArg(&t.Params[k], raw, c, k); err != nil {
			return err
		}
	}
	if known != len(args) {
		return &ToolError{"bad_argument", t.Name + " takes " + paramNames(t)}
	}
	return p.check(c)
}

// members reads a JSON object by exact names. It reports false for anything else, and for a name that stands there twice: which
// of the two was meant is not ours to guess. (Unmarshalling into a struct would match names in any case and take the last.)
func members(b []byte) (map[string]json.RawMessage, bool) {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	out := map[string]json.RawMessage{}
	for dec.More() {
		key, err := dec.Token()
		name, ok := key.(string)
		if err != nil || !ok || out[name] != nil {
			return nil, false
		}
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			return nil, false
		}
		out[name] = raw
	}
	if _, err := dec.Token(); err != nil {
		return nil, false
	}
	return out, atEOF(dec)
}

// atEOF reports that nothing follows; Decoder.More would overlook a stray closing bracket.
func atEOF(dec *json.Decoder) bool {
	_, err := dec.Token()
	return err == io.EOF
}

func (p *Pack) noTool(name string, tools ToolSet) string {
	var known []string
	for i := range p.Tools {
		if tools.Has(i) {
			known = append(known, p.Tools[i].Name)
		}
	}
	if best := Nearest(name, known); best != "" {
		return "no such tool; did you mean " + best + "?"
	}
	return "no such tool"
}

func paramNames(t *Tool) string {
	if len(t.Params) == 0 {
		return "no arguments"
	}
	names := make([]string, len(t.Params))
	for i := range t.Params {
		names[i] = t.Params[i].Name
	}
	return strings.Join(names, ", ")
}

func (p *Pack) parseArg(q *Param, raw json.RawMessage, c *Call, k int) *ToolError {
	c.Push(k)
	if string(raw) == "null" {
		return nil
	}
	if !q.List {
		return p.parseOne(q, raw, c, k)
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return &ToolError{"bad_argument", q.Name + " is a list"}
	}
	if len(list) > MaxList {
		return &ToolError{"bad_argument", fmt.Sprintf("%s takes at most %d values", q.Name, MaxList)}
	}
	for _, one := range list {
		if err := p.parseOne(q, one, c, k); err != nil {
			return err
		}
	}
	return nil
}

func (p *Pack) parseOne(q *Param, raw json.RawMessage, c *Call, k int) *ToolError {
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			for _, id := range q.Types {
				if v, ok := p.parseValue(id, s); ok {
					c.Push(k, v)
					return nil
				}
			}
		}
	} else {
		var n int64
		for _, id := range q.Types {
			if p.Types[id].Form == FormInt && json.Unmarshal(raw, &n) == nil {
				c.Push(k, Value{Type: id, Bits: uint64(n)})
				return nil
			}
		}
	}
	return &ToolError{"bad_argument", q.Name + " takes " + p.paramForm(q)}
}

func (p *Pack) paramForm(q *Param) string {
	var forms []string
	for _, id := range q.Types {
		t := &p.Types[id]
		switch t.Form {
		case FormOpaque:
			forms = append(forms, "a "+t.Name+" id as shown ("+t.Prefix+"…)")
		case FormText:
			forms = append(forms, "text")
		case FormEnum:
			forms = append(forms, "one of "+strings.Join(t.Enum, ", "))
		case FormInt:
			forms = append(forms, fmt.Sprintf("a whole number from %d to %d", q.Min, q.Max))
		}
	}
	return strings.Join(forms, " or ")
}

// Schema returns the tool as a JSON Schema function, the form that chat templates and trainers take.
func (p *Pack) Schema(tool int) json.RawMessage {
	t := &p.Tools[tool]
	props := map[string]any{}
	required := []string{}
	for i := range t.Params {
		q := &t.Params[i]
		one := map[string]any{}
		typ := &p.Types[q.Types[0]]
		switch typ.Form {
		case FormInt:
			one["type"], one["minimum"], one["maximum"] = "integer", q.Min, q.Max
		case FormEnum:
			one["type"], one["enum"] = "string", typ.Enum
		default:
			one["type"] = "string"
		}
		if q.List {
			one = map[string]any{"type": "array", "items": one, "maxItems": MaxList}
		}
		one["description"] = q.Doc
		props[q.Name] = one
		if !q.Optional {
			required = append(required, q.Name)
		}
	}
	b, err := json.Marshal(map[string]any{"type": "function", "function": map[string]any{
		"name": t.Name, "description": t.Doc,
		"parameters": map[string]any{"type": "object", "properties": props, "required": required, "additionalProperties": false},
	}})
	if err != nil {
		panic(err) // strings and numbers only
	}
	return b
}

// ToolSet is the set of a pack's tools on offer in a task.
type ToolSet uint64

// Has reports whether tool i is on offer.
func (s ToolSet) Has(i int) bool { return s>>i&1 == 1 }

// With returns s with tool i.
func (s ToolSet) With(i int) ToolSet { return s | 1<<i }

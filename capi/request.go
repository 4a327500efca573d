package main

/*
#include "provegym.h"
*/
import "C"

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"provegym/gym"
)

// method answers one request: handle is 0 for those of the library itself.
type method func(handle uint64, in []byte) (any, error)

// methods are filled by the init functions of the files of their nouns.
var methods = map[string]method{
	"close": func(h uint64, in []byte) (any, error) {
		if err := decode(in, &struct{}{}); err != nil {
			return nil, err
		}
		return struct{}{}, closeHandle(h, func(object) error { return nil })
	},
}

// alone is a method of the library itself.
func alone[In any](do func(in *In) (any, error)) method {
	return func(h uint64, in []byte) (any, error) {
		if h != 0 {
			return nil, badInput("this method is of the library itself: its handle is 0, not %d", h)
		}
		var args In
		if err := decode(in, &args); err != nil {
			return nil, err
		}
		return do(&args)
	}
}

// on is a method of what a handle stands for.
func on[T object, In any](do func(o T, in *In) (any, error)) method {
	return func(h uint64, in []byte) (any, error) {
		var args In
		if err := decode(in, &args); err != nil {
			return nil, err
		}
		o, s, err := enter[T](h)
		if err != nil {
			return nil, err
		}
		defer s.leave()
		return do(o, &args)
	}
}

//export pgymi_request
func pgymi_request(handle C.uint64_t, name C.pgym_cstr, in C.pgym_cstr, n C.uint64_t, out *C.pgym_bytes, err *C.pgym_error) C.int32_t {
	return guard(err, func() error {
		if e := errors.Join(needed("method", name), needed("out", out)); e != nil {
			return e
		}
		*out = C.pgym_bytes{}
		called := C.GoString(name)
		do := methods[called]
		if do == nil {
			return unknown("method", called, slices.Sorted(maps.Keys(methods)))
		}
		b, e := bytesOf(in, n)
		if e != nil {
			return e
		}
		answer, e := do(uint64(handle), b)
		if e != nil {
			return fmt.Errorf("%s: %w", called, e)
		}
		if b, e = json.Marshal(answer); e == nil {
			give(out, b)
		}
		return e
	})
}

func unknown(what, name string, known []string) error {
	return fmt.Errorf("%w: %s %s", gym.ErrUnknown, what, offer(name, known))
}

// offer quotes a name with the nearest known one, or with all of them.
func offer(name string, known []string) string {
	if best := gym.Nearest(name, known); best != "" {
		return fmt.Sprintf("%q; did you mean %q?", name, best)
	}
	if len(name) > 80 {
		name = name[:80] + "…"
	}
	return fmt.Sprintf("%q; known: %s", name, strings.Join(known, ", "))
}

// decode reads a JSON object into the struct to. No bytes mean {}. Unknown members are errors.
func decode(b []byte, to any) error {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	err := dec.Decode(to)
	if err == nil {
		if _, err = dec.Token(); err == io.EOF {
			return nil
		}
		return badInput("malformed JSON: something follows the object")
	}
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch text := err.Error(); {
	case errors.As(err, &syntax):
		return badInput("malformed JSON at byte %d: %s", syntax.Offset, strings.TrimPrefix(text, "json: "))
	case errors.As(err, &typ):
		return badInput("%s is a JSON %s and must be %s", orElse(typ.Field, "the request"), typ.Value, spell(typ.Type))
	case strings.HasPrefix(text, "json: unknown field "):
		name, _ := strconv.Unquote(strings.TrimPrefix(text, "json: unknown field "))
		return badInput("unknown member %s", offer(name, members(reflect.TypeOf(to).Elem())))
	case errors.Is(err, gym.ErrBadInput) || errors.Is(err, gym.ErrUnknown):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badInput("malformed JSON: it ends too soon")
	default:
		return badInput("%s", strings.TrimPrefix(text, "json: "))
	}
}

func orElse(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// spell names a Go type as JSON does.
func spell(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// members lists the JSON names of a struct and of what it holds.
func members(t reflect.Type) (out []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			out = append(out, name)
		}
		out = append(out, members(f.Type)...)
	}
	return out
}

// number is a seed, a key or a handle: a decimal string, so that no JSON reader rounds it.
type number uint64

func (n *number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var s string
	if json.Unmarshal(b, &s) != nil {
		return badInput("seeds and handles are decimal strings, not %.40s", b)
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return badInput("seeds and handles are decimal strings below 2^64, not %.40q", s)
	}
	*n = number(v)
	return nil
}

func (n number) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatUint(uint64(n), 10)), nil
}

// names is one name or a list of them.
type names []string

func (n *names) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		if string(b) != "null" {
			*n = names{one}
		}
		return nil
	}
	var list []string
	if json.Unmarshal(b, &list) != nil {
		return badInput("a family or preset is a name or a list of names, not %.40s", b)
	}
	*n = list
	return nil
}

// settings are dials by name, their values as strings or numbers, in the order of the names.
type settings []gym.Setting

func (s *settings) UnmarshalJSON(b []byte) error {
	var in map[string]json.RawMessage
	if json.Unmarshal(b, &in) != nil {
		return badInput("dials are an object {name: value}, not %.40s", b)
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		value := string(in[name])
		if value[0] == '"' {
			if err := json.Unmarshal(in[name], &value); err != nil {
				return err
			}
		} else if _, err := strconv.ParseFloat(value, 64); err != nil {
			return badInput("dial %s is a string or a number, not %.40s", name, value)
		}
		*s = append(*s, gym.Setting{Dial: name, Value: value})
	}
	return nil
}

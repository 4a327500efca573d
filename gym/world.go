package gym

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"unsafe"
)

// World is the state that an episode lives in. Everything a tool may change is part of it, random streams included.
type World interface {
	// Clone returns an independent copy: a snapshot.
	Clone() World
	// CopyFrom makes the receiver equal to src, reusing its memory: a restore. src is of the receiver's own type.
	CopyFrom(src World)
	// AppendDigest adds the canonical state. Two worlds with equal digests must behave alike from here on.
	AppendDigest(d *Digester)
}

// DigestWorld returns the digest of w.
func DigestWorld(w World) Digest { return digestWorld(&Digester{}, w) }

func digestWorld(d *Digester, w World) Digest {
	d.reset("world")
	w.AppendDigest(d)
	return d.Sum()
}

// Table is a flat table of pointer-free rows with a version a row, bumped on every write. Copying it is two memory copies.
// A world made of Tables and Streams has Clone, CopyFrom and AppendDigest for one line a field.
type Table[R any] struct {
	rows []R
	vers []uint32
}

// NewTable returns a table of rows, all at version 1. It panics if R holds a pointer, a string, a slice, a map or an int of
// no fixed size: such rows could share state with a copy, or could not be digested alike everywhere.
func NewTable[R any](rows []R) Table[R] {
	layoutOf[R]()
	vers := make([]uint32, len(rows))
	for i := range vers {
		vers[i] = 1
	}
	return Table[R]{rows, vers}
}

// scalar is one number or bool of a row.
type scalar struct {
	at    uintptr
	size  uintptr
	blank bool // a field named _, which counts as zero
}

// layouts are the scalars of the row types met so far: reflection once a type, not once a row.
var layouts sync.Map // reflect.Type to []scalar

// layoutOf returns the scalars of a row in order. It panics if R is not flat.
func layoutOf[R any]() []scalar {
	t := reflect.TypeFor[R]()
	if known, ok := layouts.Load(t); ok {
		return known.([]scalar)
	}
	l, ok := scalars(nil, t, 0, false)
	if !ok {
		panic(fmt.Sprintf("gym: rows of %v are not flat", t))
	}
	layouts.Store(t, l)
	return l
}

func scalars(out []scalar, t reflect.Type, at uintptr, blank bool) (_ []scalar, ok bool) {
	switch t.Kind() {
	case reflect.Array:
		ok = true
		for i := 0; i < t.Len() && ok; i++ {
			out, ok = scalars(out, t.Elem(), at+uintptr(i)*t.Elem().Size(), blank)
		}
		return out, ok
	case reflect.Struct:
		ok = true
		for i := 0; i < t.NumField() && ok; i++ {
			f := t.Field(i)
			out, ok = scalars(out, f.Type, at+f.Offset, blank || f.Name == "_")
		}
		return out, ok
	case reflect.Bool, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16,
		reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return append(out, scalar{at, t.Size(), blank}), true
	}
	return out, false
}

// appendRow adds the scalars of the row at p, big-endian.
func appendRow(b []byte, p unsafe.Pointer, layout []scalar) []byte {
	for _, s := range layout {
		v := unsafe.Add(p, s.at)
		switch {
		case s.blank:
			b = append(b, make([]byte, s.size)...)
		case s.size == 1:
			b = append(b, *(*uint8)(v))
		case s.size == 2:
			b = binary.BigEndian.AppendUint16(b, *(*uint16)(v))
		case s.size == 4:
			b = binary.BigEndian.AppendUint32(b, *(*uint32)(v))
		default:
			b = binary.BigEndian.AppendUint64(b, *(*uint64)(v))
		}
	}
	return b
}

// Len returns the number of rows.
func (t *Table[R]) Len() int { return len(t.rows) }

// At returns row i for reading. The pointer is valid until the next Append.
func (t *Table[R]) At(i int) *R { return &t.rows[i] }

// Ver returns the version of row i.
func (t *Table[R]) Ver(i int) uint32 { return t.vers[i] }

// Edit returns row i for writing and bumps its version.
func (t *Table[R]) Edit(i int) *R { t.vers[i]++; return &t.rows[i] }

// Append adds a row at version 1 and returns its index.
func (t *Table[R]) Append(r R) int {
	t.rows = append(t.rows, r)
	t.vers = append(t.vers, 1)
	return len(t.rows) - 1
}

// Clone returns an independent copy.
func (t *Table[R]) Clone() Table[R] { return Table[R]{slices.Clone(t.rows), slices.Clone(t.vers)} }

// CopyFrom makes t equal to src, reusing t's memory.
func (t *Table[R]) CopyFrom(src *Table[R]) {
	t.rows = append(t.rows[:0], src.rows...)
	t.vers = append(t.vers[:0], src.vers...)
}

// AppendDigest adds rows and versions to d.
func (t *Table[R]) AppendDigest(d *Digester) {
	d.Int(int64(len(t.rows)))
	layout := layoutOf[R]()
	for i := range t.rows {
		d.Int(int64(t.vers[i]))
		d.in = appendRow(d.in, unsafe.Pointer(&t.rows[i]), layout)
	}
}

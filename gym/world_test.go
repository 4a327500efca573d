package gym

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"
	"unsafe"
)

func TestNewTable_takesFlatRowsOnly(t *testing.T) {
	type in struct {
		A [3]int32
		B bool
	}
	NewTable([]struct {
		X uint64
		Y in
		Z float64
	}{})
	for name, f := range map[string]func(){
		"pointer":   func() { NewTable([]struct{ P *int32 }{}) },
		"string":    func() { NewTable([]struct{ S string }{}) },
		"slice":     func() { NewTable([]struct{ S []byte }{}) },
		"map":       func() { NewTable([]struct{ M map[int8]int8 }{}) },
		"int":       func() { NewTable([]struct{ I int }{}) },
		"interface": func() { NewTable([]struct{ I any }{}) },
		"deep":      func() { NewTable([]struct{ A [2]struct{ S string } }{}) },
	} {
		mustPanic(t, "a table of rows with a "+name, f)
	}
}

// A world with a table behaves as a slice with versions beside it does, whatever the order of edits, copies and restores.
func TestTable_againstModel(t *testing.T) {
	type row struct{ N int64 }
	type model struct {
		rows []int64
		vers []uint32
	}
	copyOf := func(m model) model { return model{append([]int64(nil), m.rows...), append([]uint32(nil), m.vers...)} }
	read := func(tab *Table[row]) (m model) {
		for i := range tab.Len() {
			m.rows, m.vers = append(m.rows, tab.At(i).N), append(m.vers, tab.Ver(i))
		}
		return m
	}
	s := NewKey(1, "table").Stream()
	tab, want := NewTable([]row{{0}, {1}}), model{[]int64{0, 1}, []uint32{1, 1}}
	saved, savedWant := tab.Clone(), copyOf(want)
	for step := range 2000 {
		switch s.IntN(5) {
		case 0:
			tab.Append(row{int64(step)})
			want.rows, want.vers = append(want.rows, int64(step)), append(want.vers, 1)
		case 1:
			saved, savedWant = tab.Clone(), copyOf(want)
		case 2:
			tab.CopyFrom(&saved)
			want = copyOf(savedWant)
		default:
			i := s.IntN(tab.Len())
			tab.Edit(i).N = int64(step)
			want.rows[i] = int64(step)
			want.vers[i]++
		}
		if got := read(&tab); !reflect.DeepEqual(got, want) {
			t.Fatalf("after step %d: %v, want %v", step, got, want)
		}
		if got := read(&saved); !reflect.DeepEqual(got, savedWant) {
			t.Fatalf("after step %d the copy is %v, want %v", step, got, savedWant)
		}
	}
}

// Rows are spelled as encoding/binary spells them: padding left out, blank fields as zeros.
func TestAppendRow_isBinary(t *testing.T) {
	type in struct {
		A int8
		B [3]int32
		_ uint16
	}
	type row struct {
		A bool
		B int64
		C [2]in
		D uint16
		E float64
		F float32
		_ [2]bool
		G uint8
	}
	s := NewKey(7, "rows").Stream()
	for range 100 {
		var r row
		b := unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r)) // padding and blanks too
		for i := range b {
			b[i] = byte(s.Uint64())
		}
		b[0] &= 1
		r.F = float32(s.Float64()) // a signalling NaN would be quietened by binary
		want, err := binary.Append(nil, binary.BigEndian, &r)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendRow(nil, unsafe.Pointer(&r), layoutOf[row]()); !bytes.Equal(got, want) {
			t.Fatalf("row %+v\n got %x\nwant %x", r, got, want)
		}
	}
}

func TestDigest_seesEveryField(t *testing.T) {
	base := func() *desk { return &desk{NewTable([]thing{{1, 2}, {3, 4}}), NewKey(1, "s").Stream()} }
	want := DigestWorld(base())
	if DigestWorld(base()) != want {
		t.Fatal("two equal worlds have two digests")
	}
	for name, change := range map[string]func(d *desk){
		"value":   func(d *desk) { d.things.At(1).N = 5 },
		"version": func(d *desk) { d.things.Edit(1) },
		"row":     func(d *desk) { d.things.Append(thing{}) },
		"stream":  func(d *desk) { d.luck.Uint64() },
		"order":   func(d *desk) { *d.things.At(0), *d.things.At(1) = *d.things.At(1), *d.things.At(0) },
	} {
		d := base()
		change(d)
		if DigestWorld(d) == want {
			t.Errorf("the digest does not see another %s", name)
		}
	}
}

// No two sequences of values give the digester the same input.
func TestDigester_prefixes(t *testing.T) {
	sum := func(f func(d *Digester)) Digest {
		d := NewDigester("x")
		f(d)
		return d.Sum()
	}
	if sum(func(d *Digester) { d.Text("ab"); d.Text("c") }) == sum(func(d *Digester) { d.Text("a"); d.Text("bc") }) {
		t.Error("ab, c and a, bc are one")
	}
	if NewDigester("x").Sum() == NewDigester("y").Sum() {
		t.Error("purposes are one")
	}
}

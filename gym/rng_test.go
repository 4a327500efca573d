package gym

import (
	"math"
	"testing"
)

// Golden values: a change here changes every task of every pack. The keys were computed apart, as SHA-256 of
// be64(hi) be64(lo) purpose, or be64(hi) be64(lo) '#' be64(i).
func TestStream_golden(t *testing.T) {
	k := NewKey(7, "tooluse@1/for-each")
	s := k.Sub("ids").Stream()
	got := []uint64{k.Hi, k.Lo, k.Sub("ids").Hi, k.At(3).Hi, s.Uint64(), s.Uint64(), uint64(s.IntN(1000)), math.Float64bits(s.Float64())}
	want := []uint64{0xe7d2471873d2f8aa, 0xdb8460ed776248a9, 0x885fdc27a8311305, 0x869ed88c5df5dfa8,
		0x2c7854bc43b94a28, 0xe66d85a05e7d2ccf, 0x283, 0x3faf62cbc3795ad0}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("value %d is %#x, not %#x", i, got[i], want[i])
		}
	}
}

func TestKey_everyPurposeIsAnother(t *testing.T) {
	seen := map[Key]string{}
	add := func(name string, k Key) {
		if other, ok := seen[k]; ok {
			t.Errorf("%s is %s", name, other)
		}
		seen[k] = name
	}
	for seed := range uint64(50) {
		for _, purpose := range []string{"", "a", "b", "ab", "#"} {
			k := NewKey(seed, purpose)
			add("root", k)
			for _, sub := range []string{"", "a", "b", "ab"} {
				add("sub", k.Sub(sub))
			}
			for i := range uint64(5) {
				add("at", k.At(i))
			}
		}
	}
}

// Streams of sibling purposes and neighbouring seeds must look independent: correlation within 5 standard errors of 0.
func TestStream_siblingsAreUncorrelated(t *testing.T) {
	const n = 20_000
	root := NewKey(1, "root")
	pairs := map[string][2]Key{
		"siblings":         {root.Sub("a"), root.Sub("b")},
		"parent and child": {root, root.Sub("a")},
		"members":          {root.At(0), root.At(1)},
		"seeds":            {NewKey(1, "x"), NewKey(2, "x")},
	}
	for name, p := range pairs {
		a, b := p[0].Stream(), p[1].Stream()
		sum := 0.0
		for range n {
			sum += (a.Float64() - .5) * (b.Float64() - .5)
		}
		if z := sum / (math.Sqrt(n) / 12); math.Abs(z) > 5 {
			t.Errorf("%s: z = %.1f", name, z)
		}
	}
}

func TestStream_copyIsSnapshot(t *testing.T) {
	s := NewKey(1, "s").Stream()
	s.Uint64()
	saved := s
	want := [2]uint64{s.Uint64(), s.Uint64()}
	if got := [2]uint64{saved.Uint64(), saved.Uint64()}; got != want {
		t.Errorf("the copy went on with %x, the stream with %x", got, want)
	}
}

func TestStream_boundCostsOneDraw(t *testing.T) {
	for _, n := range []int{1, 2, 3, 1000, 1 << 40} {
		a, b := NewKey(1, "s").Stream(), NewKey(1, "s").Stream()
		if v := a.IntN(n); v < 0 || v >= n {
			t.Errorf("IntN(%d) = %d", n, v)
		}
		b.Uint64()
		if a.Uint64() != b.Uint64() {
			t.Errorf("IntN(%d) used more or less than one draw", n)
		}
	}
}

func TestStream_unseededPanics(t *testing.T) {
	mustPanic(t, "Uint64 of the zero stream", func() { new(Stream).Uint64() })
	s := NewKey(1, "s").Stream()
	mustPanic(t, "IntN(0)", func() { s.IntN(0) })
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s did not panic", what)
		}
	}()
	f()
}

package gym

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// Key names a family of random streams. Keys are derived from a seed and purposes by hash, never by addition, so seed 1
// of one purpose can never equal seed 0 of another, and drawing more from one stream cannot disturb its siblings.
type Key struct{ Hi, Lo uint64 }

// NewKey derives the key of seed for purpose.
func NewKey(seed uint64, purpose string) Key {
	return Key{0, seed}.Sub(purpose)
}

// Sub derives the key of purpose below k: the first 128 bits of SHA-256(k || purpose).
func (k Key) Sub(purpose string) Key {
	var buf [80]byte
	b := binary.BigEndian.AppendUint64(buf[:0], k.Hi)
	b = binary.BigEndian.AppendUint64(b, k.Lo)
	b = append(b, purpose...)
	h := sha256.Sum256(b)
	return Key{binary.BigEndian.Uint64(h[:8]), binary.BigEndian.Uint64(h[8:16])}
}

// At derives the key of the i-th member below k (an entity, a task counter, a replicate).
func (k Key) At(i uint64) Key {
	var b [25]byte
	binary.BigEndian.PutUint64(b[0:], k.Hi)
	binary.BigEndian.PutUint64(b[8:], k.Lo)
	b[16] = '#'
	binary.BigEndian.PutUint64(b[17:], i)
	h := sha256.Sum256(b[:])
	return Key{binary.BigEndian.Uint64(h[:8]), binary.BigEndian.Uint64(h[8:16])}
}

// Seed returns the key as one 64-bit seed.
func (k Key) Seed() uint64 { return k.Hi }

// Stream returns the random stream of k, at its beginning.
func (k Key) Stream() Stream { return Stream{pcg: *rand.NewPCG(k.Hi, k.Lo), seeded: true} }

// Stream is a deterministic random stream (PCG). It is a plain value: copying it is a snapshot, assigning it a restore.
// The zero Stream panics when drawn from, so that no draw can come from an unseeded generator.
type Stream struct {
	pcg    rand.PCG
	seeded bool
}

// Uint64 returns 64 uniform bits.
func (s *Stream) Uint64() uint64 {
	if !s.seeded {
		panic("gym: draw from a Stream that no Key has seeded")
	}
	return s.pcg.Uint64()
}

// IntN returns a uniform integer in [0, n). It uses one draw whatever n is (multiply-shift, bias below n/2^64), so a
// bound that changes with a dial cannot shift later draws. It panics if n < 1.
func (s *Stream) IntN(n int) int {
	if n < 1 {
		panic("gym: Stream.IntN needs n >= 1")
	}
	hi, _ := bits.Mul64(s.Uint64(), uint64(n))
	return int(hi)
}

// Float64 returns a uniform number in [0, 1).
func (s *Stream) Float64() float64 { return float64(s.Uint64()>>11) * 0x1p-53 }

// Shuffle permutes n items by swap, uniformly (Fisher-Yates).
func (s *Stream) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, s.IntN(i+1))
	}
}

// Pick returns a uniform member of items. It panics if items is empty.
func Pick[T any](s *Stream, items []T) T { return items[s.IntN(len(items))] }

// Bytes returns the state, for snapshots that leave the process.
func (s *Stream) Bytes() []byte {
	b, err := s.pcg.MarshalBinary()
	if err != nil {
		panic(err) // rand.PCG documents that it never fails
	}
	return b
}

// AppendState appends the stream's state to a digest's input.
func (s *Stream) AppendState(d *Digester) {
	if s.seeded {
		d.Bytes(s.Bytes())
	}
}

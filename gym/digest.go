package gym

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Digest is SHA-256 cut to 128 bits. It names worlds, logs and episodes.
type Digest [16]byte

// String returns the digest as 32 hex digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Digester turns canonical values into a Digest. Every value is length- or width-prefixed by its type, so two different
// sequences of calls cannot produce the same input.
//
// The input is kept until Sum, in one slice that grows: an episode has a digest a call, and a hash object each would allocate.
type Digester struct{ in []byte }

// NewDigester starts a digest for purpose.
func NewDigester(purpose string) *Digester {
	d := &Digester{}
	d.Text(purpose)
	return d
}

// reset starts again, in the same memory.
func (d *Digester) reset(purpose string) {
	d.in = d.in[:0]
	d.Text(purpose)
}

// Int adds an integer.
func (d *Digester) Int(v int64) {
	d.in = binary.BigEndian.AppendUint64(d.in, uint64(v))
}

// Text adds a string.
func (d *Digester) Text(s string) {
	d.Int(int64(len(s)))
	d.in = append(d.in, s...)
}

// Bytes adds a byte string.
func (d *Digester) Bytes(b []byte) {
	d.Int(int64(len(b)))
	d.in = append(d.in, b...)
}

// Sum returns the digest of everything added so far.
func (d *Digester) Sum() Digest {
	h := sha256.Sum256(d.in)
	return Digest(h[:len(Digest{})])
}

package gym

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Digest is SHA-256 cut to 128 bits. It names worlds, logs and episodes.
type Digest [16]byte

// String returns the digest as 32 hex digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Digester turns canonical values into a Digest. Every value is length- or width-prefixed by its type, so two different
// sequences of calls cannot produce the same input.
type Digester struct {
	h   hash.Hash
	buf [8]byte
}

// NewDigester starts a digest for purpose.
func NewDigester(purpose string) *Digester {
	d := &Digester{h: sha256.New()}
	d.Text(purpose)
	return d
}

// Int adds an integer.
func (d *Digester) Int(v int64) {
	binary.BigEndian.PutUint64(d.buf[:], uint64(v))
	d.h.Write(d.buf[:])
}

// Text adds a string.
func (d *Digester) Text(s string) {
	d.Int(int64(len(s)))
	d.h.Write([]byte(s))
}

// Bytes adds a byte string.
func (d *Digester) Bytes(b []byte) {
	d.Int(int64(len(b)))
	d.h.Write(b)
}

// Sum returns the digest of everything added so far.
func (d *Digester) Sum() Digest {
	var out Digest
	copy(out[:], d.h.Sum(nil))
	return out
}

package world

import (
	"crypto/sha256"
	"encoding/binary"

	"provegym/gym"
)

// Keys make the opaque values of one episode: ids by a keyed permutation of 40 bits, so that two records can never share one;
// revs by a keyed hash.
type Keys struct {
	rounds [4]uint64
	rev    [16]byte
}

// NewKeys draws the keys of an episode.
func NewKeys(s *gym.Stream) Keys {
	var k Keys
	for i := range k.rounds {
		k.rounds[i] = s.Uint64()
	}
	binary.BigEndian.PutUint64(k.rev[:8], s.Uint64())
	binary.BigEndian.PutUint64(k.rev[8:], s.Uint64())
	return k
}

// Rekey makes all revs others than they were.
func (k *Keys) Rekey() { k.rev[0] ^= 0xff }

func (k *Keys) appendDigest(d *gym.Digester) {
	for _, r := range k.rounds {
		d.Int(int64(r))
	}
	d.Bytes(k.rev[:])
}

const half = 1<<20 - 1

// mix is the finalizer of splitmix64, cut to half a block.
func mix(x, key uint64) uint64 {
	x ^= key
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return (x ^ x>>31) & half
}

// seal permutes 40 bits (a four-round Feistel network).
func (k *Keys) seal(n uint64) uint64 {
	l, r := n>>20, n&half
	for _, key := range k.rounds {
		l, r = r, l^mix(r, key)
	}
	return l<<20 | r
}

// Block says who drew a record. Ids are numbered within a block, so that a block that grows leaves the ids of the others as
// they are.
type Block uint8

const (
	Base Block = iota
	Fanout
	NearDuplicates
	Depth
	Width
	Runtime // made by a tool
)

// ID returns the id of the i-th record of a role in a block.
func (k *Keys) ID(r Role, b Block, i int) uint64 {
	return k.seal(uint64(r)<<36 | uint64(b)<<32 | uint64(i))
}

// revBits returns the first 40 bits of a keyed hash of a record and a version.
func (k *Keys) revBits(r Role, id uint64, ver uint32) uint64 {
	var b [29]byte
	copy(b[:], k.rev[:])
	b[16] = byte(r)
	binary.BigEndian.PutUint64(b[17:], id)
	binary.BigEndian.PutUint32(b[25:], ver)
	h := sha256.Sum256(b[:])
	return binary.BigEndian.Uint64(h[:8]) >> 24
}

// Figure returns a number from 0 to 99 that stays the same for a subject all through the episode: a fact that no task needs.
func (k *Keys) Figure(about, id uint64) uint64 { return k.seal((id^about<<20)&(1<<40-1)) % 100 }

// Luck returns a number in [0, 1) that stays the same for a key all through the episode and differs from figure and ids.
func (k *Keys) Luck(key uint64) float64 {
	x := key ^ k.rounds[0] ^ k.rounds[3]<<24
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) * 0x1p-53
}

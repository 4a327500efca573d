package trace

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/klauspost/compress/s2"

	"provegym/gym"
)

// Tokens counts the tokens of an episode that a language model played. The completion is everything after the prompt: what
// the model sampled, and what the environment showed it in between.
type Tokens struct {
	Episode    uint64 `json:"episode"`
	Checkpoint string `json:"checkpoint"` // that sampled them
	Prompt     int64  `json:"prompt"`
	Sampled    int64  `json:"sampled"` // of the completion, by the model
	Shown      int64  `json:"shown"`   // the rest of the completion
	*TokenIDs         // nil if only the counts are kept
}

// TokenIDs are the tokens themselves, as the model's tokenizer numbers them.
type TokenIDs struct {
	PromptIDs     []uint32  `json:"prompt_ids"`
	CompletionIDs []uint32  `json:"completion_ids"`
	Mask          []int8    `json:"mask"`               // one for each token of the completion: 1 if the model sampled it, else 0
	LogProbs      []float32 `json:"logprobs,omitempty"` // of the sampled tokens in order, natural; may be left out
}

// check holds the counts against each other and against the tokens.
func (t *Tokens) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: tokens of episode %d: "+format, append([]any{gym.ErrBadInput, t.Episode}, args...)...)
	}
	if t.Prompt < 0 || t.Sampled < 0 || t.Shown < 0 {
		return bad("%d in the prompt, %d sampled, %d shown: counts are not negative", t.Prompt, t.Sampled, t.Shown)
	}
	d := t.TokenIDs
	if d == nil {
		return nil
	}
	if d.PromptIDs == nil || d.CompletionIDs == nil || d.Mask == nil {
		return bad("prompt_ids, completion_ids and mask go together: give all three or none")
	}
	if len(d.Mask) != len(d.CompletionIDs) {
		return bad("the mask has %d elements and the completion %d tokens", len(d.Mask), len(d.CompletionIDs))
	}
	sampled := 0
	for i, m := range d.Mask {
		if m != 0 && m != 1 {
			return bad("element %d of the mask is %d, not 0 or 1", i, m)
		}
		sampled += int(m)
	}
	for _, c := range []struct {
		what     string
		says, is int64
	}{
		{"in the prompt", t.Prompt, int64(len(d.PromptIDs))},
		{"sampled", t.Sampled, int64(sampled)},
		{"shown", t.Shown, int64(len(d.Mask) - sampled)},
	} {
		if c.says != c.is {
			return bad("the count says %d %s and the arrays have %d", c.says, c.what, c.is)
		}
	}
	if n := len(d.LogProbs); n != 0 && n != sampled {
		return bad("%d log-probabilities of %d sampled tokens", n, sampled)
	}
	for i, p := range d.LogProbs {
		if f := float64(p); math.IsNaN(f) || math.IsInf(f, 0) {
			return bad("log-probability %d is %v", i, p)
		}
	}
	return nil
}

// encode returns the tokens as schema.sql lays them out, nil for counts alone.
func (t *Tokens) encode() ([]byte, error) {
	d := t.TokenIDs
	if d == nil {
		return nil, nil
	}
	size := detailHead + 4*(len(d.PromptIDs)+len(d.CompletionIDs)+len(d.LogProbs)) + (len(d.Mask)+7)/8
	if size > segmentMost {
		return nil, fmt.Errorf("%w: the tokens of episode %d take %d bytes and %d is the most: keep the counts alone", gym.ErrBadInput,
			t.Episode, size, segmentMost)
	}
	raw := make([]byte, detailHead, size)
	for i, n := range []int{len(d.PromptIDs), len(d.CompletionIDs), len(d.LogProbs)} {
		binary.LittleEndian.PutUint32(raw[4+4*i:], uint32(n))
	}
	for _, ids := range [][]uint32{d.PromptIDs, d.CompletionIDs} {
		for _, id := range ids {
			raw = binary.LittleEndian.AppendUint32(raw, id)
		}
	}
	at := len(raw)
	raw = append(raw, make([]byte, (len(d.Mask)+7)/8)...)
	for i, m := range d.Mask {
		raw[at+i/8] |= byte(m) << (i % 8)
	}
	for _, p := range d.LogProbs {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(p))
	}
	binary.LittleEndian.PutUint32(raw, crc32.Checksum(raw[4:], castagnoli))
	return s2.Encode(nil, raw), nil
}

const detailHead = 16 // bytes: the checksum and three lengths

// decodeTokens is the inverse of Tokens.encode. The error is damage of the episode.
func decodeTokens(episode uint64, data []byte) (*TokenIDs, error) {
	if n, err := s2.DecodedLen(data); err != nil || n < detailHead || n > segmentMost {
		return nil, damaged(episode, "the detail of its tokens is no S2 block of a size that is written")
	}
	raw, err := s2.Decode(nil, data)
	if err != nil || crc32.Checksum(raw[4:], castagnoli) != binary.LittleEndian.Uint32(raw) {
		return nil, damaged(episode, "the detail of its tokens does not match its checksum")
	}
	var n [3]uint64
	for i := range n {
		n[i] = uint64(binary.LittleEndian.Uint32(raw[4+4*i:]))
	}
	raw = raw[detailHead:]
	if want := 4*(n[0]+n[1]+n[2]) + (n[1]+7)/8; uint64(len(raw)) != want {
		return nil, damaged(episode, "the detail of its tokens has %d bytes and its lengths ask for %d", len(raw), want)
	}
	words := func(n uint64) []uint32 {
		out := make([]uint32, n)
		for i := range out {
			out[i], raw = binary.LittleEndian.Uint32(raw), raw[4:]
		}
		return out
	}
	d := &TokenIDs{PromptIDs: words(n[0]), CompletionIDs: words(n[1]), Mask: make([]int8, n[1])}
	for i := range d.Mask {
		d.Mask[i] = int8(raw[i/8] >> (i % 8) & 1)
	}
	raw = raw[(n[1]+7)/8:]
	for _, bits := range words(n[2]) {
		d.LogProbs = append(d.LogProbs, math.Float32frombits(bits))
	}
	return d, nil
}

// Tokens stores the tokens of episodes that began in this file; a second row for an episode replaces the first. All rows are
// stored or, on an error, none. It goes through the queue behind what was recorded before, and when it returns the rows are as
// durable as after Flush.
//
// Errors: gym.ErrBadInput for counts and arrays that do not agree, gym.ErrUnknown for an episode that did not begin here, what
// stopped the trace.
func (t *Trace) Tokens(rows []Tokens) error {
	if t.closed.Load() {
		return t.Err()
	}
	details := make([]any, len(rows))
	ids := make([]uint64, len(rows))
	for i := range rows {
		r := &rows[i]
		if err := r.check(); err != nil {
			return err
		}
		b, err := r.encode()
		if err != nil {
			return err
		}
		if b != nil {
			details[i] = b
		}
		ids[i] = r.Episode
	}
	t.store.begun(ids)
	return t.store.do(func(f *file) error {
		for i := range rows {
			r := &rows[i]
			found, err := f.query(`SELECT 1 FROM episode WHERE id = ?`, 1, int64(r.Episode))
			if err == nil && len(found) == 0 {
				err = fmt.Errorf("%w: tokens of episode %d, which did not begin in this trace", gym.ErrUnknown, r.Episode)
			}
			if err == nil {
				_, err = f.exec(`INSERT OR REPLACE INTO tokens(episode, checkpoint, prompt, sampled, shown, detail) VALUES (?, ?, ?, ?, ?, ?)`,
					int64(r.Episode), r.Checkpoint, r.Prompt, r.Sampled, r.Shown, details[i])
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// tokenRow is a row as stored.
type tokenRow struct {
	Tokens
	detail []byte
}

// tokenRows returns the rows of the episodes that f selects, their details still encoded. A file of schema 1 has none.
func tokenRows(q querier, f Filter, detail bool) ([]tokenRow, error) {
	if there, err := has(q, "tokens"); err != nil || !there {
		return nil, err
	}
	where, args := f.where()
	column := "NULL"
	if detail {
		column = "detail"
	}
	return collect(q, func(rows *sql.Rows, t *tokenRow) error {
		if err := rows.Scan(&t.Episode, &t.Checkpoint, &t.Prompt, &t.Sampled, &t.Shown, &t.detail); err != nil {
			return damaged(t.Episode, "tokens: %v", err)
		}
		return nil
	}, `SELECT tokens.episode, checkpoint, prompt, sampled, shown, `+column+` FROM tokens JOIN episode ON episode.id = tokens.episode WHERE `+where, args...)
}

// Tokens returns the tokens of the episodes that f selects, in the order in which those began: the counts, with detail the
// arrays too where there are any.
func (r *Reader) Tokens(f Filter, detail bool) ([]Tokens, error) {
	out := []Tokens{}
	err := r.view(func(q querier) error {
		rows, err := tokenRows(q, f, detail)
		if err != nil {
			return err
		}
		for i := range rows {
			t := &rows[i]
			if t.detail != nil {
				if t.TokenIDs, err = decodeTokens(t.Episode, t.detail); err != nil {
					return err
				}
			}
			out = append(out, t.Tokens)
		}
		return nil
	})
	return out, err
}

// tokens checks every row of the table tokens.
func (rep *VerifyReport) tokens(q querier) error {
	for after := uint64(0); len(rep.Problems) < mostProblems; {
		rows, err := tokenRows(q, Filter{After: after, Limit: pageTokens, Superseded: true}, true)
		if rep.found(err) {
			return nil // which row it is, is all that can be read
		} else if err != nil || len(rows) == 0 {
			return err
		}
		for i := range rows {
			t := &rows[i]
			var err error
			if t.detail != nil {
				t.TokenIDs, err = decodeTokens(t.Episode, t.detail)
			}
			if err == nil {
				if wrong := t.check(); wrong != nil {
					err = damaged(t.Episode, "%v", wrong)
				}
			}
			rep.found(err)
			after = t.Episode
		}
	}
	return nil
}

const pageTokens = 16 // read at a time: a row may hold megabytes

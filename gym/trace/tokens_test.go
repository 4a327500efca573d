package trace

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"provegym/gym"
)

// randomTokens returns a row of an episode with arrays that agree with its counts.
func randomTokens(s *gym.Stream, id uint64, logprobs bool) Tokens {
	d := &TokenIDs{PromptIDs: []uint32{}, CompletionIDs: []uint32{}, Mask: []int8{}}
	for range s.IntN(40) {
		d.PromptIDs = append(d.PromptIDs, uint32(s.Uint64()))
	}
	t := Tokens{Episode: id, Checkpoint: "c1", Prompt: int64(len(d.PromptIDs)), TokenIDs: d}
	for range s.IntN(70) {
		m := int8(s.IntN(2))
		d.CompletionIDs, d.Mask = append(d.CompletionIDs, uint32(s.IntN(50_000))), append(d.Mask, m)
		t.Sampled, t.Shown = t.Sampled+int64(m), t.Shown+int64(1-m)
		if m == 1 && logprobs {
			d.LogProbs = append(d.LogProbs, float32(-10*s.Float64()))
		}
	}
	return t
}

func TestTokens_codec(t *testing.T) {
	s := stream(t, "codec")
	for i := range 300 {
		want := randomTokens(&s, 1, i%2 == 0)
		must(t, want.check())
		b, err := want.encode()
		must(t, err)
		got, err := decodeTokens(1, b)
		must(t, err)
		if d := cmp.Diff(want.TokenIDs, got); d != "" {
			t.Fatalf("round %d:\n%s", i, d)
		}
		at := s.IntN(len(b))
		b[at] ^= 1 << s.IntN(8)
		if again, err := decodeTokens(1, b); err == nil && !cmp.Equal(want.TokenIDs, again) {
			t.Fatalf("round %d: a changed byte at %d of %d was read as tokens", i, at, len(b))
		}
		if _, err := decodeTokens(1, b[:at]); err == nil {
			t.Fatalf("round %d: %d of %d bytes were read as tokens", i, at, len(b))
		}
	}
}

func TestTokens_storedAndReplaced(t *testing.T) {
	s := stream(t, "stored")
	dir := t.TempDir()
	tr := open(t, dir, run, Options{})
	var rows []Tokens
	for i := range 5 {
		ep := startEpisode(t, task(steady, uint64(i)), gym.Options{Recorder: tr})
		if i < 4 { // the last one runs, and nothing of it has been handed over
			solve(t, ep, true)
		}
		rows = append(rows, randomTokens(&s, ep.RecordID(), true))
	}
	rows[1].TokenIDs = nil
	must(t, tr.Tokens(rows))
	again := randomTokens(&s, 2, false)
	must(t, tr.Tokens([]Tokens{randomTokens(&s, 2, true), again}))
	rows[1] = again
	r := reader(t, dir)
	got, err := r.Tokens(Filter{}, true)
	must(t, err)
	if d := cmp.Diff(rows, got); d != "" {
		t.Errorf("(stored, read):\n%s", d)
	}
	for i := range rows {
		rows[i].TokenIDs = nil
	}
	got, err = r.Tokens(Filter{After: 1, Limit: 2}, false)
	must(t, err)
	if d := cmp.Diff(rows[1:3], got); d != "" {
		t.Errorf("a page of counts (stored, read):\n%s", d)
	}
	if got, err = r.Tokens(Filter{Run: 2}, true); err != nil || len(got) != 0 {
		t.Errorf("another run: %v, %v", got, err)
	}
	sound(t, dir)

	// The next process of the run knows the episodes of the first.
	must(t, tr.Mark(1))
	must(t, tr.Close())
	tr = open(t, dir, run, Options{Resume: true})
	must(t, tr.Tokens([]Tokens{{Episode: 3, Checkpoint: "c2", Sampled: 7}}))
	if got, err := r.Tokens(Filter{Episode: 3}, true); err != nil || len(got) != 1 || got[0] != (Tokens{Episode: 3, Checkpoint: "c2", Sampled: 7}) {
		t.Errorf("%+v, %v", got, err)
	}
	sound(t, dir)
	must(t, tr.Close())
	if err := tr.Tokens([]Tokens{{Episode: 3}}); !errors.Is(err, ErrClosed) {
		t.Errorf("after close: %v", err)
	}
}

func TestTokens_refused(t *testing.T) {
	tr := open(t, t.TempDir(), run, Options{})
	solve(t, startEpisode(t, task(steady, 1), gym.Options{Recorder: tr}), true)
	ids := func(mask []int8, logprobs ...float32) *TokenIDs {
		return &TokenIDs{PromptIDs: []uint32{1}, CompletionIDs: []uint32{2, 3}, Mask: mask, LogProbs: logprobs}
	}
	nan := float32(math.NaN())
	for _, c := range []struct {
		row  Tokens
		is   error
		says string
	}{
		{Tokens{Episode: 2}, gym.ErrUnknown, "did not begin"},
		{Tokens{Episode: 0}, gym.ErrUnknown, "did not begin"},
		{Tokens{Episode: math.MaxUint64}, gym.ErrUnknown, "did not begin"},
		{Tokens{Episode: 1, Shown: -1}, gym.ErrBadInput, "not negative"},
		{Tokens{Episode: 1, Prompt: 2, Sampled: 1, Shown: 1, TokenIDs: ids([]int8{0, 1})}, gym.ErrBadInput, "in the prompt"},
		{Tokens{Episode: 1, Prompt: 1, Sampled: 2, Shown: 0, TokenIDs: ids([]int8{0, 1})}, gym.ErrBadInput, "sampled"},
		{Tokens{Episode: 1, Prompt: 1, Sampled: 1, Shown: 2, TokenIDs: ids([]int8{0, 1})}, gym.ErrBadInput, "shown"},
		{Tokens{Episode: 1, Prompt: 1, Sampled: 1, Shown: 1, TokenIDs: ids([]int8{0, 2})}, gym.ErrBadInput, "0 or 1"},
		{Tokens{Episode: 1, Prompt: 1, Sampled: 1, Shown: 0, TokenIDs: ids([]int8{1})}, gym.ErrBadInput, "mask has"},
		{Tokens{Episode: 1, Prompt: 1, Sampled: 1, Shown: 1, TokenIDs: ids([]int8{0, 1}, -1, -2)}, gym.ErrBadInput, "log-prob"},
		{Tokens{Episode: 1, Prompt: 1, Sampled: 1, Shown: 1, TokenIDs: ids([]int8{0, 1}, nan)}, gym.ErrBadInput, "NaN"},
		{Tokens{Episode: 1, Prompt: 1, Sampled: 2, TokenIDs: &TokenIDs{CompletionIDs: []uint32{2, 3}, Mask: []int8{1, 1}}}, gym.ErrBadInput, "all three"},
	} {
		good := Tokens{Episode: 1, Sampled: 9}
		if err := tr.Tokens([]Tokens{good, c.row}); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.row, err)
		}
	}
	if got, err := reader(t, tr.Path()).Tokens(Filter{}, true); err != nil || len(got) != 0 {
		t.Errorf("refused rows were stored: %+v, %v", got, err)
	}
	solve(t, startEpisode(t, task(steady, 2), gym.Options{Recorder: tr}), true) // recording goes on
	sound(t, tr.Path())
}

// TestTokens_whileOthersRecord is for the race detector: rows of episodes that begin, end and are recycled meanwhile.
func TestTokens_whileOthersRecord(t *testing.T) {
	tr := open(t, t.TempDir(), run, Options{})
	key := gym.NewKey(*seed, "meanwhile")
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			s := key.At(uint64(g)).Stream()
			var ep gym.Episode
			for i := range 30 {
				if err := ep.Start(task(steady, s.Uint64()), gym.Options{Recorder: tr}); err != nil {
					t.Error(err)
					return
				}
				row := randomTokens(&s, ep.RecordID(), true)
				early := i%2 == 0
				if early {
					if err := tr.Tokens([]Tokens{row}); err != nil {
						t.Error(err)
					}
				}
				if err := ep.Stop(gym.Truncated, gym.LimitTokens, ""); err != nil {
					t.Error(err)
				}
				if !early {
					if err := tr.Tokens([]Tokens{row}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	sound(t, tr.Path())
	if got, err := reader(t, tr.Path()).Tokens(Filter{}, true); err != nil || len(got) != 120 {
		t.Errorf("%d rows, %v", len(got), err)
	}
}

// A store of the schema before is read as it is, and gets the table when it is opened for recording.
func TestTokens_schemaOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	b, err := os.ReadFile("testdata/schema1.db") // three solved episodes, as the recorder of schema 1 wrote them
	must(t, err)
	must(t, os.WriteFile(path, b, 0o666))
	sound(t, path)
	r := reader(t, path)
	if got, err := r.Tokens(Filter{}, true); err != nil || len(got) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	after, err := os.ReadFile(path)
	must(t, err)
	if string(after) != string(b) {
		t.Error("reading it changed it")
	}
	tr := open(t, path, run, Options{})
	must(t, tr.Tokens([]Tokens{{Episode: 2, Checkpoint: "c", Prompt: 3}}))
	solve(t, startEpisode(t, task(steady, 9), gym.Options{Recorder: tr}), true)
	if got, err := r.Tokens(Filter{}, true); err != nil || len(got) != 1 { // opened before the table was there
		t.Errorf("%+v, %v", got, err)
	}
	sound(t, path)
	must(t, tr.Close())
	f, err := openFile(path, Normal) // a second time there is nothing to add
	must(t, err)
	version, err := f.identify()
	if must(t, err); version != schemaVersion {
		t.Errorf("schema %d", version)
	}
	must(t, f.close())
}

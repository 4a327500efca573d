package trace

import (
	"strings"
	"testing"

	"provegym/gym"
)

// TestVerify_findsWhatNoRecorderWrites breaks one rule at a time in a sound file of three episodes: 1 a success, 2 a fork of
// it that hit the limit on calls, 3 invalid.
func TestVerify_findsWhatNoRecorderWrites(t *testing.T) {
	for _, c := range []struct{ name, says, sql string }{
		{"nothing", "", ``},
		{"success without outcome", "success", `UPDATE episode SET success = 1 WHERE id = 2`},
		{"success withheld", "success", `UPDATE episode SET success = 0 WHERE id = 1`},
		{"components without outcome", "components", `UPDATE episode SET path = 1 WHERE id = 3`},
		{"limit without truncation", "limit", `UPDATE episode SET limit_hit = 1 WHERE id = 1`},
		{"truncation without limit", "limit", `UPDATE episode SET limit_hit = 0 WHERE id = 2`},
		{"reward of invalid", "reward", `UPDATE episode SET reward = 0 WHERE id = 3`},
		{"reward missing", "reward", `UPDATE episode SET reward = NULL WHERE id = 2`},
		{"reward of truncated", "reward", `UPDATE episode SET reward = 1 WHERE id = 2`},
		{"reward out of range", "outside", `UPDATE episode SET reward = 2 WHERE id = 1`},
		{"reward differs from the step's", "has reward", `UPDATE episode SET reward = 0.5 WHERE id = 1`},
		{"outcome out of range", "out of range", `UPDATE episode SET outcome = 9 WHERE id = 1`},
		{"outcome no byte", "episode 1", `UPDATE episode SET outcome = 999 WHERE id = 1`},
		{"seed no number", "seed", `UPDATE episode SET seed = '-1' WHERE id = 1`},
		{"why of scored", "why", `UPDATE episode SET why = 'x' WHERE id = 1`},
		{"why missing", "why", `UPDATE episode SET why = '' WHERE id = 3`},
		{"digest missing", "digest", `UPDATE episode SET digest = NULL WHERE id = 1`},
		{"end missing", "end time", `UPDATE episode SET ended_us = NULL WHERE id = 1`},
		{"steps", "and it says", `UPDATE episode SET steps = 9 WHERE id = 1`},
		{"calls", "calls in", `UPDATE episode SET calls = 9 WHERE id = 1`},
		{"fork step", "before the fork", `UPDATE episode SET parent_step = 1 WHERE id = 2`},
		{"fork of another", "than that of its parent", `UPDATE episode SET parent = 3 WHERE id = 2`},
		{"checksum", "checksum", `UPDATE segment SET crc = crc + 1 WHERE id >> 20 = 1`},
		{"codec", "codec", `UPDATE segment SET codec = 7 WHERE id >> 20 = 1`},
		{"length", "bytes it says", `UPDATE segment SET raw_len = 1 << 40 WHERE id >> 20 = 1`},
		{"step count", "holds", `UPDATE segment SET steps = 1 WHERE id >> 20 = 1`},
		{"lost segment", "is missing", `DELETE FROM segment WHERE id = 2 << 20`},
		{"end flag of a running episode", "end flag", `UPDATE episode SET outcome = 0, success = 0, goals = 0, path = 0, collateral = 0, committed = 0, reward = NULL, ended_us = NULL, digest = NULL WHERE id = 1`},
		{"lost run", "not there", `PRAGMA foreign_keys = OFF; DELETE FROM run`},
		{"lost episode", "not there", `PRAGMA foreign_keys = OFF; DELETE FROM episode WHERE id = 1`},
		{"tokens of no episode", "not there", `UPDATE tokens SET episode = 9 WHERE episode = 1`},
		{"tokens cut", "detail of its tokens", `UPDATE tokens SET detail = substr(detail, 1, length(detail) - 1)`},
		{"tokens changed", "detail of its tokens", `UPDATE tokens SET detail = replace(detail, x'07', x'08')`},
		{"tokens empty", "detail of its tokens", `UPDATE tokens SET detail = x''`},
		{"tokens miscounted", "arrays have", `UPDATE tokens SET sampled = 3`},
		{"tokens below zero", "not negative", `UPDATE tokens SET shown = -1`},
		{"tokens no number", "tokens", `UPDATE tokens SET prompt = 'many'`},
		{"slot filled twice", "filled 3 times", `DROP INDEX sealed_slot; UPDATE episode SET purpose = 'sealed', plan = 'p', arm = '', seed = '1'`},
		{"index out of step", "SQLite", `PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, '= ''sealed''', '= ''train''') WHERE name = 'sealed_slot'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := open(t, t.TempDir(), run, Options{})
			labels := gym.Labels{Purpose: "train"}
			ep := startEpisode(t, task(steady, 1), gym.Options{Recorder: tr, Labels: labels})
			must(t, ep.StepText([]byte(`{"tool":"list"}`)))
			must(t, ep.StepText([]byte(`{"tool":"list"}`)))
			var snap gym.Snapshot
			must(t, ep.Snapshot(&snap))
			solve(t, ep, false)
			must(t, ep.Restore(&snap, gym.Options{Recorder: tr, Labels: labels}))
			for ep.Outcome() == gym.Running {
				must(t, ep.StepText([]byte("{}")))
			}
			labels.Arm = "x"
			ep = startEpisode(t, task(steady, 2), gym.Options{Recorder: tr, Labels: labels})
			must(t, ep.StepText(finish("boom")))
			must(t, tr.Tokens([]Tokens{{Episode: 1, Checkpoint: "c", Prompt: 1, Sampled: 2, Shown: 1,
				TokenIDs: &TokenIDs{[]uint32{7}, []uint32{7, 7, 9}, []int8{1, 0, 1}, []float32{-1, -2}}}}))
			must(t, tr.store.do(func(f *file) error {
				_, err := f.conn.Exec(c.sql, nil)
				return err
			}))
			must(t, tr.Close())
			rep, err := Verify(tr.Path())
			must(t, err)
			found := false
			for _, p := range rep.Problems {
				found = found || strings.Contains(p.What, c.says) || p.Episode == 1 && c.says == "episode 1"
			}
			if c.says == "" && (!rep.OK || rep.Episodes != 3 || rep.Steps != 4+30+1) || c.says != "" && (rep.OK || !found) {
				t.Errorf("report %+v", rep)
			}
		})
	}
}

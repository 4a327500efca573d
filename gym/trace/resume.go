package trace

import (
	"fmt"
	"os"
	"strings"
	"time"
)

const runColumns = `policy, checkpoint_hash, pack_hash, check_hash, split_hash, plan_hash, config`

// begin writes the run's row, or finds the run to resume and supersedes what its last mark does not cover.
func (t *Trace) begin(f *file, r Run, o Options) error {
	identity := []any{r.Policy, r.Checkpoint, r.Pack, r.Check, r.Split, r.Plan, string(r.Config)}
	if o.Resume {
		found, err := t.find(f, identity, o.Saved)
		if err != nil || found {
			return err
		}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "" // descriptive only
	}
	t.run, err = f.exec(`INSERT INTO run(`+runColumns+`, started_us, host, pid) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		append(identity, time.Now().UnixMicro(), host, os.Getpid())...)
	return err
}

// find resumes the latest run of this identity. It reports false if the file has no run at all.
func (t *Trace) find(f *file, identity []any, saved int64) (bool, error) {
	rows, err := f.query(`SELECT id, `+runColumns+` FROM run ORDER BY id DESC`, len(identity)+1)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	var differ []string
	for _, row := range rows {
		var other []string
		for i, name := range strings.Split(runColumns, ", ") {
			if row[i+1] != identity[i] {
				other = append(other, fmt.Sprintf("%s (%.40q, not %.40q)", name, row[i+1], identity[i]))
			}
		}
		if other == nil {
			t.run = row[0].(int64)
			return true, t.supersede(f, saved)
		}
		if differ == nil {
			differ = other
		}
	}
	return false, fmt.Errorf("%w: the latest run of %s differs in %s: resume with what it was started with, or start a new run",
		ErrNoRun, f.path, strings.Join(differ, ", "))
}

// supersede marks what the run did after its last mark, and what it had not ended. Sealed slots that were filled stay: a
// sealed slot is never run again, so a trainer marks its state before it opens a look.
func (t *Trace) supersede(f *file, saved int64) error {
	last, err := f.query(`SELECT coalesce(max(id), 0), coalesce(max(iteration), 0) FROM mark WHERE run = ?`, 2, t.run)
	if err != nil {
		return err
	}
	t.mark = last[0][0].(int64)
	if last[0][1].(int64) < saved {
		if t.mark, err = t.insertMark(f, saved); err != nil {
			return err
		}
	}
	_, err = f.exec(`UPDATE episode SET superseded = 1 WHERE run = ?1 AND superseded = 0
		AND (outcome = 0 OR mark >= ?2 AND purpose <> 'sealed')`, t.run, t.mark)
	if err != nil {
		return err
	}
	_, err = f.exec(`UPDATE run SET resumed = resumed + 1, ended_us = NULL WHERE id = ?`, t.run)
	return err
}

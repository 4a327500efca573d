package trace

import (
	"database/sql"
	"errors"
	"fmt"

	"provegym/gym"
)

// Problem is one thing that no recorder writes.
type Problem struct {
	Episode uint64 `json:"episode,omitempty"` // 0 for the file as a whole
	What    string `json:"what"`
}

// VerifyReport is what Verify found. It is ok when there is no problem.
type VerifyReport struct {
	OK       bool      `json:"ok"`
	Episodes int       `json:"episodes"`
	Steps    int64     `json:"steps"`
	Problems []Problem `json:"problems"`
}

// mostProblems bounds a report; a broken file would fill memory.
const mostProblems = 100

// Verify checks the trace at path as fsck does a disk: SQLite's own integrity, references, every segment's checksum and
// counts, the rules between outcome, limit, components, reward and digest, that tokens agree with their counts, and that no
// sealed slot is filled twice. It needs no pack. Replay proves the rest.
//
// Errors: those of OpenReader. What is wrong with the content is in the report.
func Verify(path string) (VerifyReport, error) {
	r, err := OpenReader(path)
	if err != nil {
		return VerifyReport{}, err
	}
	rep, err := r.Verify()
	return rep, errors.Join(err, r.Close())
}

// Verify is the function of that name for an open reader.
func (r *Reader) Verify() (VerifyReport, error) {
	rep := VerifyReport{Problems: []Problem{}}
	err := r.view(func(q querier) error {
		if err := rep.file(q); err != nil || len(rep.Problems) > 0 {
			return err // rows of a damaged file mean nothing
		}
		for after := uint64(0); ; {
			rows, err := episodes(q, Filter{After: after, Limit: pageEpisodes, Superseded: true})
			if rep.found(err) {
				return nil // which row it is, is all that can be read
			} else if err != nil {
				return err
			} else if len(rows) == 0 {
				return rep.tokens(q)
			}
			for i := range rows {
				if err := rep.episode(q, &rows[i]); err != nil {
					return err
				}
			}
			after = rows[len(rows)-1].ID
			if len(rep.Problems) >= mostProblems {
				return nil
			}
		}
	})
	rep.OK = err == nil && len(rep.Problems) == 0
	return rep, err
}

func (rep *VerifyReport) say(episode uint64, format string, args ...any) {
	rep.Problems = append(rep.Problems, Problem{episode, fmt.Sprintf(format, args...)})
}

// found takes err into the report if it is damage.
func (rep *VerifyReport) found(err error) bool {
	var d *damage
	if errors.As(err, &d) {
		rep.say(d.episode, "%s", d.text)
		return true
	}
	return false
}

// file checks what concerns the file as a whole.
func (rep *VerifyReport) file(q querier) error {
	text := func(rows *sql.Rows, s *string) error { return rows.Scan(s) }
	lines, err := collect(q, text, "PRAGMA integrity_check")
	if err != nil {
		return err
	}
	for _, l := range lines {
		if l != "ok" {
			rep.say(0, "SQLite: %s", l)
		}
	}
	lines, err = collect(q, func(rows *sql.Rows, s *string) error {
		var table, parent string
		var rowid sql.NullInt64
		var key int
		err := rows.Scan(&table, &rowid, &parent, &key)
		*s = fmt.Sprintf("%s row %d names a %s that is not there", table, rowid.Int64, parent)
		return err
	}, "PRAGMA foreign_key_check")
	if err != nil {
		return err
	}
	for _, l := range lines {
		rep.say(0, "%s", l)
	}
	lines, err = collect(q, text, `SELECT format('sealed slot %s, look %s, sample %d, arm %s of plan %s is filled %d times', task, look, sample, arm, plan, count(*))
		FROM episode WHERE purpose = 'sealed' AND superseded = 0
		GROUP BY plan, look, condition, cluster, seed, sample, arm HAVING count(*) > 1`)
	for _, l := range lines {
		rep.say(0, "%s", l)
	}
	return err
}

// episode checks one row, its segments, and its parent's.
func (rep *VerifyReport) episode(q querier, e *Episode) error {
	rep.Episodes++
	say := func(ok bool, format string, args ...any) {
		if !ok {
			rep.say(e.ID, format, args...)
		}
	}
	parts := gym.Components{Goals: e.Goals, Path: e.Path, Collateral: e.Collateral, Commit: e.Commit}
	ended := e.Outcome != gym.Running
	rewarded := e.Outcome == gym.Scored || e.Outcome == gym.Truncated
	say(e.Success == (e.Outcome == gym.Scored && parts.Success()), "success is %v against outcome %s and components %+v", e.Success, e.Outcome, parts)
	say(e.Outcome == gym.Scored || parts == gym.Components{}, "components %+v of an episode with outcome %s", parts, e.Outcome)
	say((e.Outcome == gym.Truncated) == (e.Limit != gym.NoLimit), "outcome %s with limit %q", e.Outcome, e.Limit)
	say(rewarded == (e.Reward != nil), "outcome %s with reward present %v", e.Outcome, e.Reward != nil)
	if e.Reward != nil {
		say(*e.Reward >= 0 && *e.Reward <= 1, "reward %v is outside [0, 1]", *e.Reward)
		say(e.Outcome == gym.Scored || *e.Reward == 0, "outcome %s with reward %v", e.Outcome, *e.Reward)
	}
	say(ended == (e.EndedUS != 0), "outcome %s with end time %d", e.Outcome, e.EndedUS)
	failed := e.Outcome == gym.Invalid || e.Outcome == gym.CheckError
	say(failed == (e.Why != ""), "outcome %s with why %q", e.Outcome, e.Why)
	say(len(e.Digest) == 32 || !ended && e.Digest == "" || e.Limit == gym.LimitWall && e.Digest == "" ||
		e.neverBuilt(), "outcome %s with digest %q", e.Outcome, e.Digest)

	steps, err := stepsOf(q, e)
	if rep.found(err) {
		return nil
	} else if err != nil {
		return err
	}
	rep.Steps += int64(len(steps))
	inherited := 0
	for i := range steps {
		s := &steps[i]
		if s.Inherited {
			inherited++
		}
		last := i == len(steps)-1
		stopped := e.Outcome == gym.Truncated || e.Outcome == gym.Invalid // may have been, from outside: then no step ended it
		say(s.Inherited || s.Ended == (ended && last) || ended && last && stopped, "step %d has the end flag %v", s.Number, s.Ended)
		say(s.Reward == 0 || last && e.Reward != nil && s.Reward == float32(*e.Reward), "step %d has reward %v", s.Number, s.Reward)
	}
	say(inherited == e.ParentStep, "%d steps before the fork, and it says %d", inherited, e.ParentStep)
	say(!ended || e.Steps == len(steps), "%d steps, and it says %d", len(steps), e.Steps)
	say(e.Calls <= e.Steps, "%d calls in %d steps", e.Calls, e.Steps)
	return rep.parent(q, e, steps[:inherited])
}

// parent checks that the steps before a fork are the parent's, as far as the parent was handed over.
func (rep *VerifyReport) parent(q querier, e *Episode, before []Step) error {
	if e.Parent == 0 {
		return nil
	}
	rows, err := episodes(q, Filter{Episode: e.Parent, Superseded: true})
	if err != nil || len(rows) == 0 {
		return err
	}
	steps, err := stepsOf(q, &rows[0])
	var d *damage
	if errors.As(err, &d) {
		return nil // said of the parent itself
	} else if err != nil {
		return err
	}
	for i := range min(len(before), len(steps)) {
		if before[i].Action != steps[i].Action || before[i].Text != steps[i].Text {
			rep.say(e.ID, "step %d is another than that of its parent %d", i+1, e.Parent)
			return nil
		}
	}
	return nil
}

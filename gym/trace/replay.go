package trace

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"provegym/gym"
)

// Replay says what to replay, and how much of it now.
type Replay struct {
	Filter               // After is the cursor, Limit the most episodes of this slice; superseded ones are left out unless asked for
	Budget time.Duration // stop after the episode during which it ran out; 0 for none
}

// ReplayReport is what a slice of a replay found.
type ReplayReport struct {
	Done          bool       `json:"done"`
	Cursor        uint64     `json:"cursor"`   // Filter.After of the next slice
	Replayed      int        `json:"replayed"` // mismatches included
	NotReplayable []Note     `json:"not_replayable"`
	Mismatches    []Mismatch `json:"mismatches"`
}

// Note says of one episode why it does not replay by nature.
type Note struct {
	Episode uint64 `json:"episode"`
	Why     string `json:"why"`
}

// Mismatch is the first difference between an episode as recorded and as replayed.
type Mismatch struct {
	Episode  uint64 `json:"episode"`
	Step     int    `json:"step"` // 0 for the episode as a whole
	What     string `json:"what"` // task, pack_hash, segment, obs_crc, reward, ended, outcome, …, digest, audits
	Recorded string `json:"recorded"`
	Replayed string `json:"replayed"`
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf("episode %d, step %d: %s was recorded as %s and replays as %s", m.Episode, m.Step, m.What, m.Recorded, m.Replayed)
}

// Replay rebuilds episodes from their tasks and recorded actions and compares every observation, reward, end and digest. An
// episode that still runs is compared as far as it came. Held-out tasks are admitted: replay runs in free mode, records
// nothing, and shows nothing to an agent. A pack that does not declare itself deterministic is not replayable, which is no
// mismatch; a pack whose hash differs from the run's is one, since nothing can be said.
//
// The last step of an episode that ended by the wall limit or as invalid hung on time or on the machine: it is not taken. An
// episode that no step of its own ended was ended from outside: it is stopped as recorded once its steps are taken.
//
// Errors: gym.ErrUnknown for a single Episode that is not there.
func (r *Reader) Replay(q Replay) (ReplayReport, error) {
	rep := ReplayReport{Cursor: q.After, NotReplayable: []Note{}, Mismatches: []Mismatch{}}
	if q.Episode != 0 {
		if _, err := r.Episode(q.Episode); err != nil {
			return rep, err
		}
		q.Superseded = true
	}
	began := time.Now()
	enough := func(n int) bool { return q.Limit > 0 && n >= q.Limit || q.Budget > 0 && time.Since(began) >= q.Budget }
	var ep gym.Episode
	for n := 0; ; {
		page := q.Filter
		page.After, page.Limit = rep.Cursor, pageEpisodes
		if q.Limit > 0 {
			page.Limit = min(q.Limit-n, pageEpisodes)
		}
		err := r.view(func(v querier) error {
			hashes, err := packHashes(v)
			if err != nil {
				return err
			}
			rows, err := episodes(v, page)
			if err != nil {
				return err
			}
			for i := range rows {
				if err := rep.add(v, &rows[i], hashes[rows[i].Run], &ep); err != nil {
					return err
				}
				if n++; enough(n) && i < len(rows)-1 {
					return nil
				}
			}
			rep.Done = len(rows) < page.Limit
			return nil
		})
		if err != nil || rep.Done || enough(n) {
			return rep, err
		}
	}
}

func packHashes(q querier) (map[int64]string, error) {
	runs, err := collect(q, func(rows *sql.Rows, v *RunRow) error { return rows.Scan(&v.ID, &v.Pack) },
		`SELECT id, pack_hash FROM run`)
	hashes := make(map[int64]string, len(runs))
	for _, r := range runs {
		hashes[r.ID] = r.Pack
	}
	return hashes, err
}

// add replays one episode into the report.
func (rep *ReplayReport) add(q querier, row *Episode, pack string, ep *gym.Episode) error {
	rep.Cursor = row.ID
	steps, err := stepsOf(q, row)
	var bad *damage
	if errors.As(err, &bad) {
		rep.Replayed++
		rep.Mismatches = append(rep.Mismatches, Mismatch{row.ID, 0, "segment", bad.text, "nothing"})
		return nil
	} else if err != nil {
		return err
	}
	err = play(row, steps, pack, ep, nil)
	var not *notReplayable
	var m *Mismatch
	switch {
	case errors.As(err, &not):
		rep.NotReplayable = append(rep.NotReplayable, Note{row.ID, not.why})
		return nil
	case errors.As(err, &m):
		rep.Mismatches = append(rep.Mismatches, *m)
	case err != nil:
		return err
	}
	rep.Replayed++
	return nil
}

type notReplayable struct{ why string }

func (n *notReplayable) Error() string { return "not replayable: " + n.why }

// play replays one episode in ep and compares it with its record. each, if not nil, is called at the start (step nil) and
// after every step. The error is a *Mismatch, a *notReplayable or what each returned.
func play(row *Episode, steps []Step, pack string, ep *gym.Episode, each func(s *Step) error) error {
	differ := func(step int, what, recorded, replayed string) error {
		return &Mismatch{row.ID, step, what, recorded, replayed}
	}
	task, err := gym.ParseTask(row.Task)
	if err != nil {
		return differ(0, "task", row.Task, err.Error())
	}
	if !task.Pack.Deterministic {
		return &notReplayable{fmt.Sprintf("pack %s does not declare itself deterministic", task.Pack.Name)}
	}
	if task.Pack.Hash != pack {
		return differ(0, "pack_hash", strconv.Quote(pack), fmt.Sprintf("%q: this build has another version of pack %s", task.Pack.Hash, task.Pack.Name))
	}
	if row.neverBuilt() {
		return &notReplayable{"its task could not be built: " + row.Why}
	}
	o := gym.Options{}
	if row.View == gym.Structured.String() {
		o.View = gym.Structured
	}
	if err := ep.Start(task, o); err != nil {
		return differ(0, "start", "an episode", err.Error())
	}
	if each != nil {
		if err := each(nil); err != nil {
			return err
		}
	}
	unrepeatable := row.Outcome == gym.Invalid || row.Limit == gym.LimitWall
	for i := range steps {
		s := &steps[i]
		if unrepeatable && s.Ended {
			return nil
		}
		if o.View == gym.Text {
			err = ep.StepText([]byte(s.Text))
		} else {
			err = ep.StepAction(s.Action)
		}
		if err != nil {
			return differ(s.Number, "ended", "a step", err.Error())
		}
		if each != nil {
			if err := each(s); err != nil {
				return err
			}
		}
		if s.Inherited {
			if unrepeatable && ep.Outcome() != gym.Running {
				return nil // a fork of an episode that had ended so
			}
			continue
		}
		if got := ep.ObsCRC(); got != s.ObsCRC {
			return differ(s.Number, "obs_crc", fmt.Sprintf("%08x", s.ObsCRC), fmt.Sprintf("%08x", got))
		}
		if got := float32(ep.Reward()); got != s.Reward {
			return differ(s.Number, "reward", fmt.Sprint(s.Reward), fmt.Sprint(got))
		}
		if got := ep.Outcome() != gym.Running; got != s.Ended {
			return differ(s.Number, "ended", fmt.Sprint(s.Ended), fmt.Sprint(got))
		}
	}
	if row.Outcome == gym.Running {
		return nil
	}
	if row.Outcome != gym.Scored && ep.Outcome() == gym.Running {
		if err := ep.Stop(row.Outcome, row.Limit, row.Why); err != nil {
			return differ(0, "outcome", row.Outcome.String(), err.Error())
		}
	}
	return compareEnd(row, ep.EndRecord(), differ)
}

func compareEnd(row *Episode, e gym.EpisodeEnd, differ func(int, string, string, string) error) error {
	reward := "none"
	if e.Outcome == gym.Scored || e.Outcome == gym.Truncated {
		reward = fmt.Sprint(e.Reward)
	}
	recorded := "none"
	if row.Reward != nil {
		recorded = fmt.Sprint(*row.Reward)
	}
	flags, again := []string{}, []string{}
	for _, a := range row.Audits {
		flags = append(flags, a.Name)
	}
	for _, a := range e.Audits {
		again = append(again, a.Name)
	}
	slices.Sort(again)
	for _, c := range []struct{ what, recorded, replayed string }{
		{"outcome", row.Outcome.String(), e.Outcome.String()},
		{"limit", row.Limit.String(), e.Limit.String()},
		{"components", fmt.Sprint(gym.Components{Goals: row.Goals, Path: row.Path, Collateral: row.Collateral, Commit: row.Commit}), fmt.Sprint(e.Components)},
		{"reward", recorded, reward},
		{"steps", fmt.Sprint(row.Steps), fmt.Sprint(e.Steps)},
		{"calls", fmt.Sprint(row.Calls), fmt.Sprint(e.Calls)},
		{"digest", row.Digest, e.Digest.String()},
		{"audits", fmt.Sprint(flags), fmt.Sprint(again)},
	} {
		if c.recorded != c.replayed {
			return differ(0, c.what, c.recorded, c.replayed)
		}
	}
	return nil
}

// Call is one call of an episode, rebuilt by replay, or, of a pack that does not replay, as recorded: without clock, reads and writes.
type Call struct {
	Step   int          `json:"step"` // of the episode, at which the call was complete
	Tool   string       `json:"tool"`
	Call   string       `json:"call"` // as the text view spells it
	Error  string       `json:"error,omitempty"`
	Result string       `json:"result"`
	Clock  int64        `json:"clock"`
	Reads  []gym.Access `json:"reads"`
	Writes []gym.Access `json:"writes"`
}

// Calls returns the calls of an episode, rebuilt by replay and proved on the way. Of a pack that is not deterministic they come from
// the texts of the steps.
//
// Errors: gym.ErrUnknown; gym.ErrSnapshot if the episode does not replay to what was recorded.
func (r *Reader) Calls(id uint64) ([]Call, error) {
	calls := []Call{}
	var ep gym.Episode
	row, err := r.Episode(id)
	if err != nil {
		return nil, err
	}
	err = r.rebuild(&row, &ep, func(s *Step) error {
		log := ep.Evidence().Log
		if s == nil || log.Len() == len(calls) {
			return nil
		}
		c := log.At(len(calls))
		calls = append(calls, Call{s.Number, ep.Pack().Tools[c.Call.Tool].Name, string(ep.Pack().AppendCall(nil, &c.Call)), c.Err,
			string(c.Result), c.Clock, slices.Clone(c.Reads), slices.Clone(c.Writes)})
		return nil
	})
	var not *notReplayable
	if !errors.As(err, &not) {
		return calls, err
	}
	steps, err := r.Steps(id)
	return recordedCalls(steps), err
}

// recordedCalls reads calls out of the texts of steps.
func recordedCalls(steps []Step) []Call {
	calls := []Call{}
	for i := range steps {
		if s := &steps[i]; s.Shown != "" {
			var call struct{ Tool string }
			var result struct{ Error struct{ Code string } }
			_ = json.Unmarshal([]byte(s.Text), &call) // an action that is no call has no tool
			_ = json.Unmarshal([]byte(s.Shown), &result)
			calls = append(calls, Call{Step: s.Number, Tool: call.Tool, Call: s.Text, Error: result.Error.Code, Result: s.Shown,
				Reads: []gym.Access{}, Writes: []gym.Access{}})
		}
	}
	return calls
}

// Explanation takes the reward of an episode apart, rebuilt by replay and proved on the way, or as recorded where the pack does not
// replay: one, or none of an episode that has not ended, was lost, or is of a pack that does not say.
//
// Errors: as Calls.
func (r *Reader) Explanation(id uint64) ([]gym.Explanation, error) {
	out := []gym.Explanation{}
	row, err := r.Episode(id)
	if err != nil || row.Outcome != gym.Scored && row.Outcome != gym.Truncated {
		return out, err
	}
	var ep gym.Episode
	var not *notReplayable
	if err := r.rebuild(&row, &ep, nil); errors.As(err, &not) {
		return r.recordedExplanation(id, err)
	} else if err != nil {
		return nil, err
	}
	if ep.Outcome() == gym.Running {
		return out, nil // it ended by the wall limit, in a step that is not taken again
	}
	x, err := ep.Explain()
	if x != nil {
		out = append(out, *x)
	}
	return out, err
}

// recordedExplanation reads the table of explanations; files before schema 4 have none, and the error is missing there.
func (r *Reader) recordedExplanation(id uint64, missing error) (out []gym.Explanation, err error) {
	err = r.view(func(q querier) error {
		if there, err := has(q, "explanation"); err != nil || !there {
			return cmp.Or(err, missing)
		}
		out, err = collect(q, func(rows *sql.Rows, x *gym.Explanation) error {
			var text string
			if err := rows.Scan(&text); err != nil {
				return damaged(id, "explanation: %v", err)
			}
			if err := json.Unmarshal([]byte(text), x); err != nil {
				return damaged(id, "explanation: %v", err)
			}
			return nil
		}, `SELECT text FROM explanation WHERE episode = ?`, int64(id))
		return err
	})
	return out, err
}

// rebuild replays one episode in ep and fails unless it is what was recorded.
func (r *Reader) rebuild(row *Episode, ep *gym.Episode, each func(s *Step) error) error {
	return r.view(func(q querier) error {
		hashes, err := packHashes(q)
		if err != nil {
			return err
		}
		steps, err := stepsOf(q, row)
		if err != nil {
			return err
		}
		err = play(row, steps, hashes[row.Run], ep, each)
		var m *Mismatch
		var not *notReplayable
		if errors.As(err, &m) || errors.As(err, &not) {
			return fmt.Errorf("%w: %w", gym.ErrSnapshot, err)
		}
		return err
	})
}

package trace

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/s2"

	"provegym/gym"
)

const (
	sealed = "sealed" // the purpose whose slots are filled once

	pageEpisodes = 256      // read at a time
	segmentMost  = 64 << 20 // raw bytes; no recorder writes more into one
)

// Reader reads a trace that may be written meanwhile, by this process or another. Close it.
type Reader struct {
	path string
	db   *sql.DB
}

// querier is the database, or one transaction of it: a view that does not move.
type querier interface {
	QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error)
}

// OpenReader opens the trace at path, a file or a folder as Open takes it. What this process records there is flushed first.
//
// Errors: ErrNotTrace, ErrNewer, fs.ErrNotExist, what stopped the recording.
func OpenReader(path string) (*Reader, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	} else if !info.IsDir() && info.Size() == 0 {
		return nil, fmt.Errorf("trace %s: %w: it is empty", path, ErrNotTrace)
	} else if info.IsDir() || strings.HasSuffix(path, ".db") {
		if path, err = filePath(path); err != nil {
			return nil, err
		}
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("trace: %w", err)
		}
	}
	if err := flushOwn(path); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite3", dsn(path, "mode=ro"))
	if err != nil {
		return nil, explain(path, err)
	}
	var application, version int64
	err = db.QueryRow("PRAGMA application_id").Scan(&application)
	if err == nil {
		err = db.QueryRow("PRAGMA user_version").Scan(&version)
	}
	if err == nil {
		err = checkIdentity(application, version)
	}
	if err != nil {
		return nil, errors.Join(explain(path, err), db.Close())
	}
	return &Reader{path, db}, nil
}

func flushOwn(path string) error {
	stores.Lock()
	defer stores.Unlock()
	if s := stores.open[path]; s != nil {
		_, err := s.flush()
		return err
	}
	return nil
}

// Close closes the reader.
func (r *Reader) Close() error { return r.db.Close() }

// view runs do in one read transaction.
func (r *Reader) view(do func(q querier) error) error {
	tx, err := r.db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return explain(r.path, err)
	}
	return explain(r.path, errors.Join(do(tx), tx.Rollback()))
}

// collect reads every row of a query.
func collect[T any](q querier, scan func(*sql.Rows, *T) error, query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(context.Background(), query, args...)
	if err != nil {
		return nil, err
	}
	out := []T{}
	for rows.Next() {
		var v T
		if err := scan(rows, &v); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		out = append(out, v)
	}
	return out, errors.Join(rows.Err(), rows.Close())
}

// has reports whether a file has a table: those of older schemas lack some.
func has(q querier, table string) (bool, error) {
	n, err := collect(q, func(rows *sql.Rows, n *int) error { return rows.Scan(n) },
		`SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?`, table)
	return err == nil && n[0] > 0, err
}

// RunRow is one run as stored.
type RunRow struct {
	ID int64 `json:"id"`
	Run
	StartedUS int64  `json:"started_us"`         // microseconds since 1970
	EndedUS   int64  `json:"ended_us,omitempty"` // 0 while it runs, or if it was killed
	Resumed   int    `json:"resumed"`
	Host      string `json:"host"`
	PID       int    `json:"pid"`
	Episodes  int64  `json:"episodes"`
}

// Runs returns the runs, oldest first.
func (r *Reader) Runs() ([]RunRow, error) {
	rows, err := collect(r.db, func(rows *sql.Rows, v *RunRow) error {
		var config string
		err := rows.Scan(&v.ID, &v.Policy, &v.Checkpoint, &v.Pack, &v.Check, &v.Split, &v.Plan, &config, &v.StartedUS, &v.EndedUS,
			&v.Resumed, &v.Host, &v.PID, &v.Episodes)
		v.Config = json.RawMessage(config)
		return err
	}, `SELECT id, `+runColumns+`, started_us, coalesce(ended_us, 0), resumed, host, pid,
		(SELECT count(*) FROM episode WHERE run = run.id) FROM run ORDER BY id`)
	return rows, explain(r.path, err)
}

// Episode is one episode as stored.
type Episode struct {
	ID         uint64      `json:"id"`
	Run        int64       `json:"run"`
	Task       string      `json:"task"`
	Condition  string      `json:"condition"`
	Seed       uint64      `json:"seed,string"`
	Mode       string      `json:"mode"`
	View       string      `json:"view"`
	gym.Labels             // purpose, arm, look, cluster, sample, slot, group, iteration
	Parent     uint64      `json:"parent,omitempty"`
	ParentStep int         `json:"parent_step,omitempty"`
	Outcome    gym.Outcome `json:"outcome"` // Running: still running, given up or killed
	Limit      gym.Limit   `json:"limit"`
	Success    bool        `json:"success"`
	Goals      bool        `json:"goals"`
	Path       bool        `json:"path"`
	Collateral bool        `json:"collateral"`
	Commit     bool        `json:"commit"`
	Reward     *float64    `json:"reward"` // nil for running, invalid and check_error
	Steps      int         `json:"steps"`
	Calls      int         `json:"calls"`
	Digest     string      `json:"digest,omitempty"`
	Why        string      `json:"why,omitempty"`
	StartedUS  int64       `json:"started_us"`
	EndedUS    int64       `json:"ended_us,omitempty"`
	Superseded bool        `json:"superseded,omitempty"`
	Audits     []Audit     `json:"audits,omitempty"`
}

// neverBuilt reports whether the task could not even be built: then there is no world to digest.
func (e *Episode) neverBuilt() bool {
	return e.Outcome == gym.Invalid && e.Steps == 0 && e.Digest == ""
}

// Audit is one raised flag.
type Audit struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Filter selects episodes. Zero members select everything, but superseded episodes come only when asked for.
type Filter struct {
	Episode    uint64 `json:"episode,omitempty"`
	Run        int64  `json:"run,omitempty"`
	Condition  string `json:"condition,omitempty"`
	Purpose    string `json:"purpose,omitempty"`
	Arm        string `json:"arm,omitempty"`
	Look       string `json:"look,omitempty"`
	Iteration  *int64 `json:"iteration,omitempty"`
	Outcome    *int   `json:"outcome,omitempty"`
	Success    *bool  `json:"success,omitempty"`
	Superseded bool   `json:"superseded,omitempty"`
	After      uint64 `json:"after,omitempty"` // ids above this one: the cursor of the next page
	Limit      int    `json:"limit,omitempty"` // 0 for all
}

func (f *Filter) where() (string, []any) {
	cond, args := []string{"id > ?"}, []any{int64(f.After)}
	add := func(use bool, c string, arg any) {
		if use {
			cond, args = append(cond, c), append(args, arg)
		}
	}
	add(f.Episode != 0, "id = ?", int64(f.Episode))
	add(f.Run != 0, "run = ?", f.Run)
	add(f.Condition != "", "condition = ?", f.Condition)
	add(f.Purpose != "", "purpose = ?", f.Purpose)
	add(f.Arm != "", "arm = ?", f.Arm)
	add(f.Look != "", "look = ?", f.Look)
	add(f.Iteration != nil, "iteration = ?", f.Iteration)
	add(f.Outcome != nil, "outcome = ?", f.Outcome)
	add(f.Success != nil, "success = ?", f.Success)
	add(!f.Superseded, "superseded = ?", 0)
	limit := f.Limit
	if limit <= 0 {
		limit = -1
	}
	return strings.Join(cond, " AND ") + " ORDER BY id LIMIT ?", append(args, limit)
}

// Episodes returns the episodes that f selects, in the order in which they began.
func (r *Reader) Episodes(f Filter) ([]Episode, error) {
	var out []Episode
	err := r.view(func(q querier) (err error) {
		out, err = episodes(q, f)
		return err
	})
	return out, err
}

// Episode returns one episode, superseded or not.
//
// Errors: gym.ErrUnknown.
func (r *Reader) Episode(id uint64) (Episode, error) {
	out, err := r.Episodes(Filter{Episode: id, Superseded: true})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("trace %s: %w: episode %d", r.path, gym.ErrUnknown, id)
	}
	if err != nil {
		return Episode{}, err
	}
	return out[0], nil
}

func episodes(q querier, f Filter) ([]Episode, error) {
	where, args := f.where()
	out, err := collect(q, scanEpisode, `SELECT id, run, task, condition, seed, mode, view, purpose, arm, look, cluster, sample, slot,
		grp, iteration, coalesce(parent, 0), parent_step, outcome, limit_hit, success, goals, path, collateral, committed, reward,
		steps, calls, digest, why, started_us, coalesce(ended_us, 0), superseded FROM episode WHERE `+where, args...)
	if err != nil || len(out) == 0 {
		return out, err
	}
	type flag struct {
		episode uint64
		Audit
	}
	flags, err := collect(q, func(rows *sql.Rows, v *flag) error { return rows.Scan(&v.episode, &v.Name, &v.Why) },
		`SELECT episode, name, why FROM audit WHERE episode BETWEEN ? AND ? ORDER BY episode, name`, int64(out[0].ID), int64(out[len(out)-1].ID))
	if err != nil {
		return nil, err
	}
	for i := range out {
		for len(flags) > 0 && flags[0].episode <= out[i].ID {
			if flags[0].episode == out[i].ID {
				out[i].Audits = append(out[i].Audits, flags[0].Audit)
			}
			flags = flags[1:]
		}
	}
	return out, nil
}

func scanEpisode(rows *sql.Rows, e *Episode) error {
	var mode, view int
	var seed string
	var reward sql.NullFloat64
	var digest []byte
	err := rows.Scan(&e.ID, &e.Run, &e.Task, &e.Condition, &seed, &mode, &view, &e.Purpose, &e.Arm, &e.Look, &e.Cluster, &e.Sample,
		&e.Slot, &e.Group, &e.Iteration, &e.Parent, &e.ParentStep, &e.Outcome, &e.Limit, &e.Success, &e.Goals, &e.Path, &e.Collateral,
		&e.Commit, &reward, &e.Steps, &e.Calls, &digest, &e.Why, &e.StartedUS, &e.EndedUS, &e.Superseded)
	if err != nil {
		return damaged(e.ID, "%v", err)
	}
	if e.Seed, err = strconv.ParseUint(seed, 10, 64); err != nil {
		return damaged(e.ID, "seed %q is not a number", seed)
	}
	if mode < 0 || mode > int(gym.Test) || view < 0 || view > int(gym.Structured) || e.Outcome > gym.CheckError || e.Limit > gym.LimitTokens {
		return damaged(e.ID, "mode %d, view %d, outcome %d or limit %d is out of range", mode, view, e.Outcome, e.Limit)
	}
	e.Mode, e.View = gym.Mode(mode).String(), gym.View(view).String()
	if reward.Valid {
		e.Reward = &reward.Float64
	}
	if len(digest) > 0 {
		e.Digest = fmt.Sprintf("%x", digest)
	}
	return nil
}

// damage is what a segment or row says that no recorder writes.
type damage struct {
	episode uint64
	text    string
}

func (d *damage) Error() string { return fmt.Sprintf("episode %d: %s", d.episode, d.text) }

func damaged(episode uint64, format string, args ...any) error {
	return &damage{episode, fmt.Sprintf(format, args...)}
}

// Step is one step as stored.
type Step struct {
	Number    int     `json:"step"` // from 1
	Text      string  `json:"text,omitempty"`
	Action    int     `json:"action"` // structured view
	ObsCRC    uint32  `json:"obs_crc"`
	Reward    float32 `json:"reward"`
	Ended     bool    `json:"ended"`
	Inherited bool    `json:"inherited,omitempty"` // taken before the fork: the action alone is known, and the texts
	Told      string  `json:"told,omitempty"`      // the instruction, with the first step; of packs that do not replay
	Shown     string  `json:"shown,omitempty"`     // the result of the call that the step completed; of packs that do not replay
}

// Steps returns every step of an episode, those before its fork first.
//
// Errors: gym.ErrUnknown.
func (r *Reader) Steps(id uint64) ([]Step, error) {
	ep, err := r.Episode(id)
	if err != nil {
		return nil, err
	}
	steps, err := stepsOf(r.db, &ep)
	return steps, explain(r.path, err)
}

func stepsOf(q querier, ep *Episode) ([]Step, error) {
	view := gym.Text
	if ep.View == gym.Structured.String() {
		view = gym.Structured
	}
	parts, err := segmentsOf(q, ep.ID)
	if err != nil {
		return nil, err
	}
	want := 1
	if ep.ParentStep > 0 {
		want = 0
	}
	out := []Step{}
	for _, p := range parts {
		if p.seq != want {
			return nil, damaged(ep.ID, "segment %d is missing", want)
		}
		want++
		n := 0
		for rest := p.raw; len(rest) > 0; n++ {
			var rec gym.StepRec
			if rec, rest, err = gym.NextStep(view, rest); err != nil {
				return nil, damaged(ep.ID, "segment %d: %v", p.seq, err)
			}
			out = append(out, Step{len(out) + 1, string(rec.Text), rec.Action, rec.CRC, rec.Reward, rec.Ended, p.seq == 0, string(rec.Told), string(rec.Shown)})
		}
		if n != p.steps {
			return nil, damaged(ep.ID, "segment %d holds %d steps and says %d", p.seq, n, p.steps)
		}
	}
	return out, nil
}

// segmentsOf returns the raw segments of an episode, by number, each proved by its checksum.
func segmentsOf(q querier, id uint64) ([]part, error) {
	first := int64(id) << segmentBits
	return collect(q, func(rows *sql.Rows, p *part) error {
		var rowid, rawLen, codec, crc int64
		var data sql.RawBytes
		if err := rows.Scan(&rowid, &p.steps, &rawLen, &codec, &crc, &data); err != nil {
			return err
		}
		p.seq = int(rowid - first)
		if codec != codecS2 {
			return damaged(id, "segment %d has the unknown codec %d", p.seq, codec)
		}
		if n, err := s2.DecodedLen(data); err != nil || int64(n) != rawLen || n > segmentMost {
			return damaged(id, "segment %d does not have the %d bytes it says", p.seq, rawLen)
		}
		raw, err := s2.Decode(nil, data)
		if err != nil || int64(crc32.Checksum(raw, castagnoli)) != crc {
			return damaged(id, "segment %d does not match its checksum", p.seq)
		}
		p.raw = raw
		return nil
	}, `SELECT id, steps, raw_len, codec, crc, data FROM segment WHERE id >= ? AND id < ? ORDER BY id`, first, first+1<<segmentBits)
}

// Query is one question, as the border asks it.
type Query struct {
	What   string `json:"what"`   // runs, episodes, steps, calls, explanation, slots, tokens
	Plan   string `json:"plan"`   // slots
	Detail bool   `json:"detail"` // tokens: the arrays too
	Filter        // episodes and tokens; Episode alone for steps, calls and explanation; Look for slots
}

// Query answers q with a slice of RunRow, Episode, Step, Call, gym.Explanation (one or none), Record or Tokens.
//
// Errors: gym.ErrUnknown; those of the method of that name.
func (r *Reader) Query(q Query) (rows any, err error) {
	switch q.What {
	case "runs":
		return r.Runs()
	case "episodes":
		return r.Episodes(q.Filter)
	case "steps":
		return r.Steps(q.Episode)
	case "calls":
		return r.Calls(q.Episode)
	case "explanation":
		return r.Explanation(q.Episode)
	case "slots":
		return r.Slots(q.Plan, q.Look)
	case "tokens":
		return r.Tokens(q.Filter, q.Detail)
	}
	what := []string{"runs", "episodes", "steps", "calls", "explanation", "slots", "tokens"}
	if best := gym.Nearest(q.What, what); best != "" {
		return nil, fmt.Errorf("%w: query %.40q; did you mean %q?", gym.ErrUnknown, q.What, best)
	}
	return nil, fmt.Errorf("%w: query %.40q; known: %s", gym.ErrUnknown, q.What, strings.Join(slices.Sorted(slices.Values(what)), ", "))
}

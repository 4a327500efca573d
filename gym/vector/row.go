package vector

import (
	"errors"
	"fmt"
	"runtime/debug"

	"provegym/gym"
)

type phase uint8

const (
	empty phase = iota // never reset
	live
	over // until the next reset, or the next step that resets
)

// row is one place in the batch.
type row struct {
	i       int
	ep      *gym.Episode
	op      op
	job     job
	episode int // number of its next one
	phase   phase
	flying  bool // its op is under way
	lane    lane // on which it is awaited
	err     error

	// what it shows
	task    gym.Task
	id      string // of the task
	rec     uint64 // the recorder's id of its episode, 0 for none
	lost    bool   // there is no episode behind it: it could not be built, or was left behind
	broken  error  // why it could not be built; its next step reports it
	shown   []byte // text before the first call, and of a lost row
	why     string // of a lost row
	outcome gym.Outcome
	limit   gym.Limit
	parts   uint8
	reward  float64
	calls   int

	ended    bool   // in this step
	refused  bool   // its task turned out to be held out
	refusals int    // in a row
	all      bool   // write the whole observation
	final    []byte // last text of the episode that ended in this step

	run *runner // of packs that are not Bounded
}

// op is what a row does next: begin an episode or take an action.
type op struct {
	start  bool
	task   gym.Task
	opts   gym.Options
	action int
	text   []byte
	own    []byte // memory for text when the caller's may change
}

// do runs on a worker or on the row's own goroutine. A panic is an infrastructure failure of this row alone.
func (o *op) do(ep *gym.Episode) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	switch {
	case o.start:
		return ep.Start(o.task, o.opts)
	case o.opts.View == gym.Text:
		return ep.StepText(o.text)
	}
	return ep.StepAction(o.action)
}

// options are those of row r's next episode.
func (v *Vector) options(l gym.Labels) gym.Options {
	return gym.Options{View: v.cfg.View, Mode: v.cfg.Mode, Split: v.cfg.Split, Recorder: v.cfg.Recorder, Labels: l}
}

// toStart makes row i begin the job that assign gave it.
func (v *Vector) toStart(i int) {
	r := &v.rows[i]
	r.op.start, r.op.task, r.op.opts = true, r.job.Task, v.options(r.job.Labels)
}

// settle takes what row i's op came to and writes its row. Rows may settle in parallel.
func (v *Vector) settle(i int) {
	r := &v.rows[i]
	if r.op.start {
		v.settleStart(i, r)
		return
	}
	before := r.calls
	r.reward, r.parts = 0, 0
	switch {
	case r.broken != nil:
		r.outcome = gym.Invalid
		r.broken = nil
	case r.err == ErrWall:
		v.loseEpisode(r, gym.Truncated, r.err)
		r.limit, r.shown = gym.LimitWall, append(r.shown[:0], gym.WallResult...)
		r.calls++
	case r.err != nil:
		v.loseEpisode(r, gym.Invalid, r.err)
	case !r.lost:
		r.outcome, r.limit, r.reward, r.calls = r.ep.Outcome(), r.ep.Limit(), r.ep.Reward(), r.ep.Calls()
		if r.outcome == gym.Scored {
			r.parts = bits(r.ep.Components())
		}
	}
	r.ended = r.outcome != gym.Running
	if r.ended {
		r.phase = over
	}
	v.writeScalars(i, r, 0)
	if r.ended && v.cfg.Autoreset == SameStep {
		v.writeFinal(i, r)
		return
	}
	v.writeObs(i, r, &v.io.Obs, r.calls != before)
}

func (v *Vector) settleStart(i int, r *row) {
	r.refused = errors.Is(r.err, gym.ErrHeldOut) && r.refusals < maxRefused
	if r.refused {
		r.refusals++
		return
	}
	ended := r.ended // SameStep: the scalars are those of the episode that just ended
	r.refusals = 0
	r.episode++
	r.phase, r.task, r.id = live, r.op.task, r.op.task.ID()
	r.outcome, r.limit, r.parts, r.reward, r.calls = gym.Running, gym.NoLimit, 0, 0, 0
	r.lost, r.broken, r.why, r.all = false, nil, "", true
	if r.err != nil {
		v.loseEpisode(r, gym.Running, r.err)
		r.broken = r.err
		r.rec = v.recordBroken(r)
	} else {
		r.rec = r.ep.RecordID()
		r.shown = append(r.shown[:0], r.ep.Instruction()...)
	}
	if ended {
		put(v.io.Began, i, 1)
	} else {
		v.writeScalars(i, r, 1)
	}
	v.writeObs(i, r, &v.io.Obs, true)
}

// loseEpisode leaves the row without an episode: its memory may be in any state.
func (v *Vector) loseEpisode(r *row, o gym.Outcome, why error) {
	r.lost, r.outcome, r.limit, r.why, r.shown = true, o, gym.NoLimit, why.Error(), r.shown[:0]
	switch {
	case r.run == nil:
		r.ep = &gym.Episode{}
	case why != ErrWall: // the watchdog has replaced it already
		v.mu.Lock()
		v.replace(r)
		v.mu.Unlock()
	}
}

// recordBroken records an episode that could not be built, which no Episode does, and returns its id. A recorder that has
// failed or was closed takes none: then it is what kept the episode from starting.
func (v *Vector) recordBroken(r *row) uint64 {
	rec := v.cfg.Recorder
	if rec == nil || recorderErr(rec) != nil {
		return 0
	}
	id := rec.Begin(gym.EpisodeStart{Task: r.task, Mode: v.cfg.Mode, View: v.cfg.View, Labels: r.op.opts.Labels})
	if id != 0 {
		rec.End(id, gym.EpisodeEnd{Outcome: gym.Invalid, Why: r.why})
	}
	return id
}

func recorderErr(rec gym.Recorder) error {
	if r, ok := rec.(interface{ Err() error }); ok {
		return r.Err()
	}
	return nil
}

func bits(c gym.Components) (b uint8) {
	for i, on := range [4]bool{c.Goals, c.Path, c.Collateral, c.Commit} {
		if on {
			b |= 1 << i
		}
	}
	return b
}

func (v *Vector) writeScalars(i int, r *row, began uint8) {
	b := &v.io
	b.Reward[i] = r.reward
	b.Terminated[i], b.Truncated[i] = 0, 0
	switch r.outcome {
	case gym.Running:
	case gym.Scored:
		b.Terminated[i] = 1
	default:
		b.Truncated[i] = 1
	}
	put(b.Outcome, i, uint8(r.outcome))
	put(b.Limit, i, uint8(r.limit))
	put(b.Components, i, r.parts)
	put(b.Began, i, began)
	if b.Calls != nil {
		b.Calls[i] = int32(r.calls)
	}
}

var blank gym.StructuredObs

func (v *Vector) writeObs(i int, r *row, to *Obs, call bool) {
	if v.cfg.View == gym.Text {
		return // packed for all rows at the end
	}
	switch {
	case !r.lost:
		slots, tools := r.ep.ObsRows()
		to.row(i, r.ep.Obs(), slots, tools, call, r.all)
	case r.all:
		to.row(i, &blank, 0, 0, true, true)
	}
	r.all = false
}

// writeFinal keeps the last observation of row i before its next episode overwrites it.
func (v *Vector) writeFinal(i int, r *row) {
	if v.cfg.View == gym.Structured {
		r.all = true
		v.writeObs(i, r, &v.io.Final, true)
		return
	}
	r.final = append(r.final[:0], r.text()...)
}

// text returns what a text agent sees.
func (r *row) text() []byte {
	if r.lost || r.calls == 0 {
		return r.shown
	}
	return r.ep.Result()
}

package vector

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"provegym/gym"
)

// Vector steps n episodes at once. One goroutine at a time may use it.
type Vector struct {
	cfg    Config
	size   int // of a group
	rows   []row
	groups []group
	io     IO
	bound  bool
	closed bool

	queue     []Job
	need      []slot
	serial    uint64
	named     bool     // IO.Task has the ids of the tasks that the rows show
	results   []Result // not told yet
	sourceErr error

	all    []int    // every row
	some   []int    // scratch
	taken  [2][]int // scratch, by lane
	begins []int    // scratch
	batch  []int    // rows under way on the pool
	pool   *pool
	step   cost
	write  cost
	doOne  func(k int)
	putOne func(k int)

	flight int
	mu     sync.Mutex    // guards ready, and row.run against runners that come back late
	ready  [2][]int      // by lane
	notify chan struct{} // one token when ready may have grown
	spare  gym.Snapshot
}

// New makes a vector. Rows that no Reset has seeded have their own number as key. Close it when done.
//
// Errors: gym.ErrBadInput, gym.ErrUnknown, gym.ErrHeldOut.
func New(cfg Config) (*Vector, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := cfg.Prepare(); err != nil {
		return nil, err
	}
	n := cfg.NumEnvs
	v := &Vector{cfg: cfg, size: max(cfg.GroupSize, 1), rows: make([]row, n), notify: make(chan struct{}, 1)}
	v.groups = make([]group, n/v.size)
	for i := range v.groups {
		v.groups[i].seed = uint64(i * v.size)
	}
	v.all = make([]int, n)
	for i := range v.rows {
		v.all[i] = i
		v.rows[i].i, v.rows[i].ep = i, &gym.Episode{}
		v.rows[i].op.opts.View = cfg.View
		if !cfg.Pack.Bounded {
			v.rows[i].run = v.newRunner(i, v.rows[i].ep)
		}
	}
	workers := cfg.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if !cfg.Pack.Bounded {
		workers = 1
	}
	v.pool = newPool(min(workers, n))
	v.doOne = func(k int) {
		i := v.batch[k]
		r := &v.rows[i]
		r.err = nil
		if r.op.start || r.broken == nil {
			r.err = r.op.do(r.ep)
		}
		v.settle(i)
	}
	v.putOne = func(k int) { v.settle(v.batch[k]) }
	return v, nil
}

// NumEnvs returns the number of rows.
func (v *Vector) NumEnvs() int { return len(v.rows) }

// Config returns what the vector was made of.
func (v *Vector) Config() Config { return v.cfg }

// Bind gives the vector its buffers; it keeps them until the next Bind or Close. The next call that writes a row writes all of
// it.
//
// Errors: gym.ErrBadInput for a length that does not fit.
func (v *Vector) Bind(b *IO) error {
	if err := b.check(len(v.rows), v.cfg.View); err != nil {
		return err
	}
	v.io, v.bound, v.named = *b, true, false
	for i := range v.rows {
		v.rows[i].all = true
	}
	return nil
}

// SetActionText gives the vector another block of text actions, when the block has moved.
func (v *Vector) SetActionText(b []byte) { v.io.ActionText = b }

func (v *Vector) inFlight() error {
	return fmt.Errorf("%w: %d rows are in flight: receive them first", ErrState, v.flight)
}

// usable reports why the vector cannot be stepped or reset now.
func (v *Vector) usable() error {
	switch {
	case v.closed:
		return fmt.Errorf("%w: the vector is closed", ErrState)
	case !v.bound:
		return fmt.Errorf("%w: no buffers are bound: bind first", ErrState)
	}
	return nil
}

// Reset begins new episodes in the rows that mask selects (nil: all). seeds and has (nil: all) give rows a new key and set
// their episode counter to 0; in a group only the seed of the first member counts, and it counts for all of them. A row that
// cannot be built is invalid at its next step.
//
// Errors: ErrState; the first row's error when not one row could be built, such as gym.ErrHeldOut; the source's.
func (v *Vector) Reset(seeds []uint64, has, mask []uint8) error {
	if err := v.usable(); err != nil {
		return err
	}
	if v.flight > 0 {
		return v.inFlight()
	}
	n := len(v.rows)
	for _, l := range [3]int{len(seeds), len(has), len(mask)} {
		if l != 0 && l != n {
			return fmt.Errorf("%w: seeds and masks have %d elements, not %d", gym.ErrBadInput, n, l)
		}
	}
	rows := v.some[:0]
	for i := range v.rows {
		if mask != nil && mask[i] == 0 {
			continue
		}
		rows = append(rows, i)
		if seeds != nil && (has == nil || has[i] != 0) && i%v.size == 0 {
			v.reseed(i/v.size, seeds[i])
		}
	}
	v.some = rows
	for _, i := range rows {
		r := &v.rows[i]
		if r.phase == live {
			v.lose(&r.job)
		}
		r.job, r.ended = job{}, false
	}
	v.assign(rows, false)
	v.begin(rows)
	err := v.publish()
	for _, i := range rows {
		if v.rows[i].broken == nil {
			return err
		}
	}
	if len(rows) > 0 {
		return fmt.Errorf("no row could be built: %w", v.rows[rows[0]].broken)
	}
	return err
}

// Queue appends tasks that the next episodes take, in row order, before all others; clear drops those still there. A task that
// the split does not admit is refused here, and then none is appended.
//
// Errors: gym.ErrHeldOut, gym.ErrBadInput.
func (v *Vector) Queue(jobs []Job, clear bool) error {
	for i := range jobs {
		if err := v.cfg.Admit(jobs[i].Task); err != nil {
			return fmt.Errorf("task %d of the queue: %w", i, err)
		}
	}
	if clear {
		v.queue = nil
	}
	v.queue = append(v.queue, jobs...)
	return nil
}

// Step takes the bound action of every row.
//
// Errors: ErrState before Bind or Reset, while rows are in flight, and with Disabled when a row has ended; gym.ErrBadInput for
// offsets of text actions that do not ascend; the source's, after the step is done.
func (v *Vector) Step() error {
	if v.flight > 0 {
		return v.inFlight()
	}
	if err := v.prepare(v.all, false); err != nil {
		return err
	}
	v.each(v.all)
	v.collect(v.all)
	return v.publish()
}

// prepare checks that the rows can step, then sets their ops: an action, or with NextStep a new episode for one that has ended.
func (v *Vector) prepare(rows []int, keep bool) error {
	if err := v.usable(); err != nil {
		return err
	}
	if v.cfg.View == gym.Text {
		off := v.io.ActionOff
		for i := 1; i < len(off); i++ {
			if off[i] < off[i-1] || int(off[i]) > len(v.io.ActionText) {
				return fmt.Errorf("%w: action_off[%d] is %d: offsets ascend and end within the block of %d bytes", gym.ErrBadInput,
					i, off[i], len(v.io.ActionText))
			}
		}
	}
	for _, i := range rows {
		switch r := &v.rows[i]; {
		case r.phase == empty:
			return fmt.Errorf("%w: row %d has no episode: reset first", ErrState, i)
		case r.phase == over && v.cfg.Autoreset == Disabled:
			return fmt.Errorf("%w: the episode of row %d has ended: reset it first (autoreset is disabled)", ErrState, i)
		}
	}
	starts := v.begins[:0]
	for _, i := range rows {
		r := &v.rows[i]
		r.ended = false
		switch {
		case r.phase == over:
			starts = append(starts, i)
		case v.cfg.View == gym.Structured:
			r.op.start, r.op.action = false, int(v.io.Action[i])
		default:
			r.op.start, r.op.text = false, v.io.ActionText[v.io.ActionOff[i]:v.io.ActionOff[i+1]]
			if keep || r.run != nil {
				r.op.own = append(r.op.own[:0], r.op.text...)
				r.op.text = r.op.own
			}
		}
	}
	v.begins = starts
	if len(starts) > 0 {
		v.assign(starts, false)
		for _, i := range starts {
			v.toStart(i)
		}
	}
	return nil
}

// each runs the ops of the rows and settles them.
func (v *Vector) each(rows []int) {
	if v.cfg.Pack.Bounded {
		v.batch = rows
		v.pool.run(len(rows), v.doOne, &v.step)
		return
	}
	v.dispatch(rows, here)
	v.await(here, len(rows), -1)
	for _, i := range v.take(here) {
		v.settle(i)
	}
}

// collect does what is left after the ops of rows, in row order: results for the source, the next episodes.
func (v *Vector) collect(rows []int) {
	starts := v.begins[:0]
	refused := false
	for _, i := range rows {
		r := &v.rows[i]
		v.named = v.named && !r.op.start
		switch {
		case r.op.start && r.refused:
			starts = append(starts, i)
			refused = true
		case r.ended:
			if r.job.sourced {
				v.results = append(v.results, Result{r.job.Job, r.outcome, r.parts == Goals|Path|Collateral|Commit})
			}
			if v.cfg.Autoreset == SameStep {
				starts = append(starts, i)
			}
		}
	}
	v.begins = starts
	if len(starts) > 0 {
		v.assign(starts, refused)
		v.begin(starts)
	}
}

// begin starts the jobs of the rows, drawing again for those that turn out to be held out.
func (v *Vector) begin(rows []int) {
	v.named = false
	for len(rows) > 0 {
		for _, i := range rows {
			v.toStart(i)
		}
		v.each(rows)
		again := rows[:0]
		for _, i := range rows {
			if v.rows[i].refused {
				again = append(again, i)
			}
		}
		rows = again
		v.assign(rows, true)
	}
}

// publish packs the strings of all rows, tells the source, and returns its error.
func (v *Vector) publish() error {
	if v.cfg.View == gym.Text {
		v.pack(v.io.Obs.Text, func(r *row) []byte { return r.text() })
		if v.cfg.Autoreset == SameStep {
			v.pack(v.io.Final.Text, func(r *row) []byte {
				if r.ended {
					return r.final
				}
				return nil
			})
		}
	}
	if t := v.io.Task; t != nil && !v.named {
		v.named = true
		total := 0
		for i := range v.rows {
			total += len(v.rows[i].id)
		}
		t.begin(len(v.rows))
		t.room(total)
		for i := range v.rows {
			t.Data = append(t.Data, v.rows[i].id...)
			t.Off[i+1] = uint32(len(t.Data))
		}
	}
	err := v.sourceErr
	v.sourceErr = nil
	if e := recorderErr(v.cfg.Recorder); e != nil {
		err = errors.Join(err, fmt.Errorf("the recorder: %w", e))
	}
	if len(v.results) > 0 {
		err = errors.Join(err, v.cfg.Source.Tell(v.results))
		v.results = v.results[:0]
	}
	return err
}

// pack writes one string a row; those of rows in flight are empty.
func (v *Vector) pack(t *Text, text func(r *row) []byte) {
	if t == nil {
		return
	}
	total := 0
	for i := range v.rows {
		if r := &v.rows[i]; !r.flying {
			total += len(text(r))
		}
	}
	t.begin(len(v.rows))
	t.room(total)
	for i := range v.rows {
		if r := &v.rows[i]; !r.flying {
			t.Data = append(t.Data, text(r)...)
		}
		t.Off[i+1] = uint32(len(t.Data))
	}
}

// Shown returns what row i shows: its task, the labels, how it stands, and its episode, which is nil where there is none (the
// task could not be built, a tool did not return) and must not be stepped by others.
//
// Errors: gym.ErrBadInput for a row that does not exist, ErrState before its first reset and while it is in flight.
func (v *Vector) Shown(i int) (Shown, error) {
	r, err := v.at(i)
	if err != nil {
		return Shown{}, err
	}
	s := Shown{Task: r.task, Labels: r.op.opts.Labels, Record: r.rec, Outcome: r.outcome, Limit: r.limit, Components: r.parts,
		Calls: r.calls, Why: r.why, Episode: r.ep}
	if r.broken != nil {
		s.Outcome = gym.Invalid
	}
	if r.lost {
		s.Episode = nil
	} else {
		s.Labels, s.Why = r.ep.Labels(), r.ep.Why()
	}
	return s, nil
}

// Shown is what a row shows.
type Shown struct {
	Task       gym.Task
	Labels     gym.Labels
	Record     uint64 // the recorder's id of the episode, 0 if nothing records it
	Outcome    gym.Outcome
	Limit      gym.Limit
	Components uint8 // as in IO.Components
	Calls      int
	Why        string
	Episode    *gym.Episode
}

// Success reports whether the episode was scored as a success.
func (s *Shown) Success() bool { return s.Components == Goals|Path|Collateral|Commit }

// Stop ends row i's running episode from outside, as gym.Episode.Stop does, and writes the row's scalars; its observation
// stays. A row whose task could not be built is invalid, as its next step would say. The source is told as of any end. Then
// the row is like one that a step has ended: with Disabled it waits for a reset, with NextStep its next step begins an episode.
// SameStep has no row without a running episode, so there it is refused.
//
// Errors: gym.ErrBadInput as gym.Episode.Stop and for a row that does not exist; ErrState with SameStep, before a reset, while
// the row is in flight and when its episode has ended; the source's and the recorder's, after the row has ended.
func (v *Vector) Stop(i int, o gym.Outcome, l gym.Limit, why string) error {
	if err := v.usable(); err != nil {
		return err
	}
	r, err := v.at(i)
	switch {
	case err != nil:
		return err
	case v.cfg.Autoreset == SameStep:
		return fmt.Errorf("%w: with autoreset same_step a row has no moment between two episodes: use disabled or next_step", ErrState)
	case r.phase == over:
		return fmt.Errorf("%w: the episode of row %d has ended: reset it first", ErrState, i)
	}
	err = Guard(v.cfg.Pack, r.ep, func() error { return r.ep.Stop(o, l, why) })
	if errors.Is(err, gym.ErrBadInput) {
		return err
	}
	if r.broken != nil {
		err = nil // it has no episode to stop
	}
	r.err, r.op.start = err, false
	v.settle(i)
	if r.job.sourced {
		v.results = append(v.results, Result{Job: r.job.Job, Outcome: r.outcome})
	}
	return v.publish()
}

func (v *Vector) at(i int) (*row, error) {
	if v.closed {
		return nil, fmt.Errorf("%w: the vector is closed", ErrState)
	}
	if i < 0 || i >= len(v.rows) {
		return nil, fmt.Errorf("%w: row %d; there are %d, from 0", gym.ErrBadInput, i, len(v.rows))
	}
	r := &v.rows[i]
	if r.flying {
		return nil, fmt.Errorf("%w: row %d is in flight: receive it first", ErrState, i)
	}
	if r.phase == empty {
		return nil, fmt.Errorf("%w: row %d has no episode: reset first", ErrState, i)
	}
	return r, nil
}

// Close waits for rows in flight and ends the workers. Open episodes are given to the recorder as far as they came.
func (v *Vector) Close() {
	if v.closed {
		return
	}
	if v.flight > 0 {
		v.await(sent, v.flight, -1)
	}
	v.closed = true
	for i := range v.rows {
		r := &v.rows[i]
		if r.phase == live {
			v.lose(&r.job)
		}
		if !r.lost {
			r.ep.Flush()
		}
		if r.run != nil {
			close(r.run.todo)
		}
	}
	v.pool.close()
	if len(v.results) > 0 {
		_ = v.cfg.Source.Tell(v.results) // nobody is left to hear why not
	}
}

package gym

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"sync/atomic"
	"time"
	"unsafe"
)

// View is how the agent sees and acts.
type View uint8

const (
	Text       View = iota // JSON in, JSON out
	Structured             // phased integers over the slot table
)

func (v View) String() string { return [...]string{"text", "structured"}[v] }

// MaxActionBytes bounds a text action.
const MaxActionBytes = 64 << 10

// Options say how an episode runs. The zero value is a free text episode that nobody records.
type Options struct {
	View     View
	Mode     Mode
	Split    Split // required by every mode but Free
	Recorder Recorder
	Labels   Labels
	// Shape turns the dense term on, with this discount γ in (0, 1]: after each step Episode.Shaping is γΦ(s') − Φ(s), where Φ is
	// Built.Potential and 0 at a scored end. It changes no reward, is not recorded, and is refused in the modes eval and test.
	Shape float64
}

// Episode is one task being worked on: the state machine.
//
//	Start -> Running -> Act or Step … -> Scored | Truncated | Invalid | CheckError
//	                 -> Stop          -> Truncated | Invalid
//
// It is used by one goroutine at a time. Memory is reused from episode to episode.
type Episode struct {
	state
	pack   *Pack // of the task; nil before the first Start
	opts   Options
	limits Limits
	turn   Turn
	call   Call

	segment  []byte // recorded steps that the recorder has not got yet
	segSeq   int
	segSteps int
	segBegan time.Time

	toolTime time.Duration
	deadline time.Time
	polls    uint32
	stop     atomic.Bool
	phase    atomic.Int32
	gone     bool   // abandoned; known to the goroutine that steps
	action   []byte // under way, for the record of an abandoned step
	index    int
	scratch  Digester
	closing  *Closing // reads the memory of the episode that ended here
}

// Phases of an episode, by which the goroutine that steps it and one that watches it agree on who ends it.
const (
	idle    int32 = iota
	working       // inside the pack's code
	abandoned
)

// WallResult is what the agent is shown of a call that ran out of wall time.
const WallResult = `{"error":{"code":"wall","text":"the call ran out of time"}}`

// state is what a snapshot holds: everything that decides how the episode goes on.
type state struct {
	progress
	slots slotTable // structured view only
}

// progress is the state without its slots, which are far larger than the rest and reset in place.
type progress struct {
	task       Task
	view       View
	built      *Built
	first      World // as built; never changed, so snapshots share it
	world      World
	log        Log
	actions    []byte // every action so far, as AppendStep encodes it, for export
	clock      int64
	calls      int
	kept       int // calls whose results stand in actions, where they do
	steps      int
	bytes      int
	outcome    Outcome
	limit      Limit
	why        string
	stopped    bool // the end came from Stop, not from a step
	components Components
	reward     float64
	potential  float64 // of the state, where shaping is on
	shaping    float64 // of the last step
	finish     *Call   // never changed once set
	text       [2]int  // the last result in log.bytes
	rec        uint64  // the recorder's id of the episode
	by         Recorder
}

// NewEpisode starts an episode in fresh memory; see Start.
func NewEpisode(task Task, o Options) (*Episode, error) {
	e := &Episode{}
	return e, e.Start(task, o)
}

// Start begins an episode of task. It is the only door: reset, queue, restore and fork pass through it or through its gate.
//
// Errors: ErrHeldOut if the split does not admit the task in this mode, ErrBadInput if the mode needs a split and has none,
// ErrPack if the pack builds a task that breaks the rules.
func (e *Episode) Start(task Task, o Options) error {
	if err := admit(task, nil, o); err != nil {
		return err
	}
	e.Flush()
	e.rec = 0
	e.enter(task.Pack.Limits(task.Condition).Wall)
	err := e.build(task, o)
	if !e.leave() {
		return errWall
	}
	if err == nil {
		e.beginRecord(0, 0)
	}
	return err
}

func (e *Episode) build(task Task, o Options) error {
	b, err := task.Pack.Build(task)
	if err != nil {
		return fmt.Errorf("build %s: %w", task.ID(), err)
	}
	if err := admit(task, b, o); err != nil {
		return err
	}
	e.reclaim()
	e.log.reset()
	e.progress = progress{task: task, view: o.View, built: b, first: b.World, world: e.ownWorld(task.Pack, b.World),
		log: e.log, actions: e.actions[:0]}
	e.attach(o)
	if o.View == Structured {
		e.slots.reset(e.pack, b)
		e.budgetObs()
	}
	if err := e.validate(); err != nil {
		e.outcome = Invalid
		return fmt.Errorf("%s: %w", task.ID(), err)
	}
	e.shape() // Φ of the start
	e.shaping = 0
	return nil
}

func admit(task Task, b *Built, o Options) error {
	if r, ok := o.Recorder.(interface{ Err() error }); ok && r.Err() != nil {
		return fmt.Errorf("record %s: %w", task.ID(), r.Err())
	}
	if o.View == Structured && task.Pack.TextOnly {
		return badInput("pack %s has the text view only: its arguments are free text", task.Pack.Name)
	}
	if o.Shape < 0 || o.Shape > 1 || o.Shape > 0 && o.Mode > Train {
		return badInput("shaping has a discount from 0 to 1, and none in mode %s: what is evaluated is the reward alone", o.Mode)
	}
	if o.Mode == Free {
		return nil
	}
	if o.Split == nil {
		return badInput("mode %s needs a split", o.Mode)
	}
	if b == nil {
		return o.Split.Admit(o.Mode, task.Condition, "", nil)
	}
	return o.Split.Admit(o.Mode, task.Condition, b.Graph, b.Mechanisms)
}

// validate holds what promise 3 asks of every task.
func (e *Episode) validate() error {
	c := &e.built.Check
	switch {
	case len(c.Goals) == 0:
		return fmt.Errorf("%w: the check has no goals", ErrPack)
	case c.Collateral.Holds == nil || c.Commit.Holds == nil:
		return fmt.Errorf("%w: the check lacks collateral or commit", ErrPack)
	case e.limits.Calls < 1 || e.limits.Bytes < 1 || e.limits.Wall <= 0:
		return fmt.Errorf("%w: the limits on calls, wall or bytes are not positive", ErrPack)
	case all(c.Goals, e.Evidence()):
		return fmt.Errorf("%w: every goal holds at the start", ErrPack)
	}
	return nil
}

// Task returns the task.
func (e *Episode) Task() Task { return e.task }

// Pack returns the pack.
func (e *Episode) Pack() *Pack { return e.pack }

// View returns how the agent sees and acts.
func (e *Episode) View() View { return e.view }

// Labels returns what the episode is for.
func (e *Episode) Labels() Labels { return e.opts.Labels }

// Mode returns the mode it was started in.
func (e *Episode) Mode() Mode { return e.opts.Mode }

// Limits returns the budgets.
func (e *Episode) Limits() Limits { return e.limits }

// ToolSet returns the tools on offer.
func (e *Episode) ToolSet() ToolSet { return e.built.Tools }

// Face returns the pack as the task spells its tools, for Schema and AppendCall.
func (e *Episode) Face() *Pack {
	if e.built.Face != nil {
		return e.built.Face
	}
	return e.pack
}

// Instruction returns the task as the agent reads it.
func (e *Episode) Instruction() string { return e.built.Instruction }

// Goal returns the goal parameters, as the agent is told them.
func (e *Episode) Goal() ([GoalLen]float32, []Pin) { return e.built.Goal, e.built.Pins }

// Outcome returns the typed end, or Running.
func (e *Episode) Outcome() Outcome { return e.outcome }

// Limit returns the limit that truncated the episode.
func (e *Episode) Limit() Limit { return e.limit }

// Why says what made the episode invalid or its check fail. It is the trainer's, never the agent's.
func (e *Episode) Why() string { return e.why }

// Components returns the parts of success, all false before a scored end.
func (e *Episode) Components() Components { return e.components }

// Reward returns the reward of the last step: not 0 on a scored end only.
func (e *Episode) Reward() float64 { return e.reward }

// Shaping returns the dense term of the last step, 0 unless Options.Shape turns it on. Its discounted sum over an episode that is
// scored is −Φ of the start, whatever was done: it changes no ranking of policies (Ng, Harada and Russell, 1999).
func (e *Episode) Shaping() float64 { return e.shaping }

// shape computes the dense term of the step just taken.
func (e *Episode) shape() {
	if e.opts.Shape == 0 || e.built.Potential == nil {
		return
	}
	was := e.potential
	e.potential = 0
	if e.outcome == Running || e.outcome == Truncated { // a limit from outside ends no task
		e.potential = e.built.Potential(e.Evidence())
	}
	e.shaping = e.opts.Shape*e.potential - was
}

// Success reports whether the episode was scored as a success.
func (e *Episode) Success() bool { return e.outcome == Scored && e.components.Success() }

// Steps returns the steps taken, micro-steps included; Calls the tool calls.
func (e *Episode) Steps() int { return e.steps }

// Calls returns the number of tool calls made.
func (e *Episode) Calls() int { return e.calls }

// RecordID returns the recorder's id of the episode, 0 if nothing records it.
func (e *Episode) RecordID() uint64 { return e.rec }

// Result returns the last observation in text: the instruction at the start, then the result of the last call.
func (e *Episode) Result() []byte {
	if e.calls == 0 {
		return []byte(e.built.Instruction)
	}
	return e.log.bytes[e.text[0]:e.text[1]]
}

// Actions returns every action taken so far, of the structured view.
func (e *Episode) Actions() []int {
	var out []int
	for rest := e.actions; len(rest) > 0; {
		r, more, err := NextStep(e.view, rest)
		if err != nil {
			panic(err) // record wrote them
		}
		out, rest = append(out, r.Action), more
	}
	return out
}

// Obs returns the structured observation, read-only and valid until the next step.
func (e *Episode) Obs() *StructuredObs { return &e.slots.obs }

// SlotValue returns the value in a slot of the structured view.
func (e *Episode) SlotValue(i int) Value { return e.slots.val[i] }

// Evidence returns what checks judge by. It is for oracles, controls, audits and tests; no agent may see it.
func (e *Episode) Evidence() *Evidence {
	return e.evidence()
}

// StepText takes one text action. Bad input from the agent is its own ToolError; the error is the caller's.
//
// Errors: ErrNotReset, ErrEpisodeOver.
func (e *Episode) StepText(action []byte) error {
	if err := e.ready(); err != nil {
		return err
	}
	bad := e.Face().ParseCall(action, e.built.Tools, &e.call)
	e.steps++
	e.action = action
	e.run(&e.call, bad)
	e.shape()
	e.record(action, 0)
	return nil
}

// StepAction takes one action of the structured view. An illegal one is a ToolError that costs a call.
//
// Errors: ErrNotReset, ErrEpisodeOver.
func (e *Episode) StepAction(action int) error {
	if err := e.ready(); err != nil {
		return err
	}
	e.steps++
	e.index = action
	s := &e.slots
	switch {
	case action < 0 || action >= Actions || s.obs.Mask[action] == 0:
		e.call.Reset(0)
		e.run(&e.call, &ToolError{"illegal_action", "the mask does not allow this action"})
	case s.choose(e.pack, action):
		e.call.copyFrom(&s.choice)
		e.run(&e.call, e.pack.check(&e.call))
	default:
		e.reward = 0
	}
	e.shape()
	e.record(nil, action)
	return nil
}

// StepCall takes a whole call, for agents inside the core; it passes the same checks and is recorded as the view would.
//
// Errors: ErrNotReset, ErrEpisodeOver; ErrBadInput when the view is structured and a value of the call is not in a slot.
func (e *Episode) StepCall(c *Call) error {
	if err := e.ready(); err != nil {
		return err
	}
	if e.view == Text {
		return e.StepText(e.Face().AppendCall(nil, c))
	}
	acts, ok := e.slots.actions(e.pack, c, make([]int, 0, 16))
	if !ok {
		return badInput("a value of this call is in no slot: %s", e.pack.AppendCall(nil, c))
	}
	calls := e.calls
	for _, a := range acts {
		if err := e.StepAction(a); err != nil {
			return err
		}
		if e.calls != calls {
			break
		}
	}
	return nil
}

func (e *Episode) ready() error {
	if e.pack == nil {
		return ErrNotReset
	}
	if e.outcome != Running {
		return ErrEpisodeOver
	}
	return nil
}

// errWall unwinds a tool that polls past its wall budget.
var errWall = errors.New("wall budget")

// poll ends a tool that runs past the wall budget, or whose episode was abandoned, at its next touch of the turn.
func (e *Episode) poll() {
	e.polls++
	if e.polls&1023 == 0 && time.Now().After(e.deadline) || e.stop.Load() {
		panic(errWall)
	}
}

// run makes one call: budget, tool, log, slots, and the end if it is one.
func (e *Episode) run(c *Call, bad *ToolError) {
	e.reward = 0
	e.calls++
	e.clock++
	clock := e.clock
	l := &e.log
	if bad != nil {
		c.Reset(c.Tool)
	}
	l.begin(c, len(e.pack.Tools[c.Tool].Params), e.clock)
	from, writes, reads, shown := len(l.bytes), len(l.writes), len(l.reads), len(l.shown)
	tool := &e.pack.Tools[c.Tool]
	var err error
	if bad != nil {
		err = bad
	} else {
		e.turn = Turn{World: e.world, Call: c, ep: e, shows: e.turn.shows, from: [3]int{from, shown, reads}}
		began := e.enter(e.limits.Wall - e.toolTime)
		defer e.leave()
		err = e.runTool(tool)
		e.toolTime += time.Since(began)
	}
	code := ""
	switch te, refused := err.(*ToolError); {
	case refused && len(l.writes) == writes && e.clock == clock:
		code = te.Code
		l.cut(from, reads, shown)
		l.bytes = append(l.bytes, `{"error":{"code":`...)
		l.bytes = appendJSONString(l.bytes, te.Code)
		l.bytes = append(l.bytes, `,"text":`...)
		l.bytes = appendJSONString(l.bytes, te.Text)
		l.bytes = append(l.bytes, "}}"...)
	case errors.Is(err, errWall):
		code = "wall"
		l.cut(from, reads, shown)
		l.bytes = append(l.bytes, WallResult...)
		e.end(Truncated, LimitWall, "")
	case err != nil:
		if refused {
			err = fmt.Errorf("tool %s refused a call after it had written or waited: %w", tool.Name, err)
		}
		code = "infra"
		l.cut(from, reads, shown)
		l.bytes = append(l.bytes, `{"error":{"code":"infra","text":"the environment failed"}}`...)
		e.end(Invalid, NoLimit, err.Error())
	}
	l.end(code)
	e.text = [2]int{from, len(l.bytes)}
	e.bytes += len(l.bytes) - from
	if e.view == Structured {
		e.updateSlots(c, code, bad != nil)
	}
	if e.outcome != Running {
		return
	}
	switch {
	case err == nil && tool.Finish:
		e.finish = &Call{}
		e.finish.copyFrom(c)
		e.score()
	case e.toolTime > e.limits.Wall:
		e.end(Truncated, LimitWall, "")
	case e.bytes > e.limits.Bytes:
		e.end(Truncated, LimitBytes, "")
	case e.calls >= e.limits.Calls:
		e.end(Truncated, LimitCalls, "")
	}
}

func (e *Episode) runTool(tool *Tool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if r == any(errWall) {
				err = errWall
				return
			}
			err = fmt.Errorf("tool %s panicked: %v", tool.Name, r)
		}
	}()
	e.openResult()
	if err := tool.Run(&e.turn); err != nil {
		return err
	}
	if e.turn.depth != 1 {
		return fmt.Errorf("tool %s left an object open in its result", tool.Name)
	}
	e.log.bytes = append(e.log.bytes, "}}"...)
	return nil
}

// openResult begins the result of the call under way.
func (e *Episode) openResult() {
	e.log.bytes = append(e.log.bytes, `{"ok":{`...)
	e.turn.depth, e.turn.comma = 1, false
	e.turn.shows = append(e.turn.shows[:0], show{op: showRecord, val: Value{Type: noType}})
}

func (e *Episode) updateSlots(c *Call, code string, bad bool) {
	s := &e.slots
	s.obs.Last = [lastLen]float32{}
	s.obs.Last[0], s.obs.Last[2] = 1, float32(c.Tool+1)
	if code != "" {
		s.obs.Last[0] = 2
		s.obs.Last[1] = float32(e.pack.errorIndex(code))
		s.apply(e.pack, nil, int32(e.calls))
	} else {
		s.apply(e.pack, e.turn.shows, int32(e.calls))
	}
	if !bad {
		for _, v := range c.vals {
			if i := s.find(v); i >= 0 {
				s.clock++
				s.seen[i], s.call[i] = s.clock, int32(e.calls)
				s.obs.Slots[i][slotAge] = 0
			}
		}
		s.obs.Tools[c.Tool][4]++
	}
	s.startCall(e.pack)
	e.budgetObs()
}

func (e *Episode) budgetObs() {
	e.slots.obs.Budget = [BudgetLn]float32{float32(e.limits.Calls - e.calls), float32(e.calls), float32(e.limits.Calls), float32(e.clock)}
}

// errorIndex numbers error codes from 1: the view's own first, then the pack's; 0 for one that the pack did not declare.
func (p *Pack) errorIndex(code string) int {
	own := [...]string{"bad_call", "unknown_tool", "missing_argument", "bad_argument", "illegal_action"}
	for i, c := range own {
		if c == code {
			return i + 1
		}
	}
	for i, c := range p.Errors {
		if c == code {
			return len(own) + i + 1
		}
	}
	return 0
}

func (e *Episode) score() {
	defer func() {
		if r := recover(); r != nil {
			e.components, e.reward = Components{}, 0
			e.end(CheckError, NoLimit, fmt.Sprintf("check panicked: %v", r))
		}
	}()
	ev := e.Evidence()
	c := e.built.Check.Score(ev)
	r, ok := e.built.Check.reward(ev, c)
	if !ok {
		e.end(CheckError, NoLimit, fmt.Sprintf("check gave the reward %v", r))
		return
	}
	e.components, e.reward = c, r
	e.end(Scored, NoLimit, "")
}

func (e *Episode) end(o Outcome, l Limit, why string) {
	e.outcome, e.limit, e.why = o, l, why
}

// Stop ends a running episode from outside: as Truncated, by a limit that the trainer keeps (tokens, or calls, wall or bytes
// where it has its own), or as Invalid, when the trainer's side failed; why then says how. It has no reward, and the
// observation stays. The record is that of an episode whose last step did not end it, and replay stops it again there.
//
// Errors: ErrBadInput for another outcome, a truncation without a limit or with a why, an invalid end without a why or with a
// limit; ErrNotReset, ErrEpisodeOver.
func (e *Episode) Stop(o Outcome, l Limit, why string) error {
	switch {
	case o != Truncated && o != Invalid:
		return badInput("an episode can be stopped as truncated or invalid, not as %s", spelled(outcomes[:], o))
	case o == Truncated && (l == NoLimit || int(l) >= len(limits)):
		return badInput("an episode is truncated by a limit (calls, wall, bytes or tokens), not %s", spelled(limits[:], l))
	case o == Truncated && why != "":
		return badInput("a truncated episode has its limit and no other reason: give why with the outcome invalid")
	case o == Invalid && l != NoLimit:
		return badInput("an invalid episode has no limit: give the limit with the outcome truncated, or none")
	case o == Invalid && why == "":
		return badInput("an episode that is stopped as invalid says why: what failed on the trainer's side")
	}
	if err := e.ready(); err != nil {
		return err
	}
	e.reward, e.stopped = 0, true
	e.end(o, l, why)
	if e.rec != 0 {
		e.closeRecord()
	}
	return nil
}

// spelled names a number that may be out of range.
func spelled[N ~uint8](names []string, n N) string {
	if int(n) < len(names) {
		return fmt.Sprintf("%q", names[n])
	}
	return fmt.Sprint(uint8(n))
}

// Audits runs the pack's audits on the episode as it stands. They go to the trace and to reports, never to the agent.
func (e *Episode) Audits() []AuditResult { return e.audits() }

// Explain takes the reward of an episode that has ended apart; nil if its pack does not say. It is for traces, reports and people
// after the end: what it tells would be the answer before.
//
// Errors: ErrNotReset, ErrRunning; those of the pack's Attribute.
func (e *Episode) Explain() (*Explanation, error) {
	switch {
	case e.pack == nil:
		return nil, ErrNotReset
	case e.outcome == Running:
		return nil, ErrRunning
	}
	x, err := e.explain()
	if err != nil {
		return nil, err
	}
	return x, nil
}

// Digest returns the episode digest: H(h_n, world, outcome, reward bits), with h_0 = H(task id, pack hash).
func (e *Episode) Digest() Digest { return e.digest(&e.scratch) }

// LogDigest returns h_n of the call log; each, if not nil, is given every link.
func (e *Episode) LogDigest(each func(i int, h Digest)) Digest { return e.logDigest(&e.scratch, each) }

// enter and leave bracket the pack's code. leave reports false when a watchdog has taken the episode away meanwhile.
func (e *Episode) enter(wall time.Duration) time.Time {
	now := time.Now()
	e.deadline = now.Add(wall)
	e.phase.Store(working)
	return now
}

func (e *Episode) leave() bool {
	e.gone = !e.phase.CompareAndSwap(working, idle)
	return !e.gone
}

// Overdue reports whether the pack's code has been at work past its wall budget at time now. It may be called from another
// goroutine while one Start or step is under way.
func (e *Episode) Overdue(now time.Time) bool {
	return e.phase.Load() == working && now.After(e.deadline)
}

// Abandon takes the episode away from code that runs away: it tells a tool to stop at its next touch of the turn, records the
// end (truncated by the wall limit; the digest is zero, since the world is out of reach) and reports true. The episode must
// not be used again. It reports false if the step has ended by itself. It may be called from another goroutine.
func (e *Episode) Abandon() bool {
	if !e.phase.CompareAndSwap(working, abandoned) {
		return false
	}
	e.stop.Store(true)
	if e.rec != 0 {
		r := StepRec{View: e.view, Text: e.action, Action: e.index, Ended: true}
		if !e.pack.Deterministic {
			r.Shown = []byte(WallResult)
		}
		e.segment = AppendStep(e.segment, r)
		e.segSteps++
		e.flushSegment()
		e.opts.Recorder.End(e.rec, EpisodeEnd{Outcome: Truncated, Limit: LimitWall, Steps: e.steps, Calls: e.calls})
	}
	return true
}

// Flush gives the recorder the steps that it has not got yet. A running episode that is given up is flushed, never ended.
func (e *Episode) Flush() {
	if e.rec != 0 && e.outcome == Running {
		e.flushSegment()
	}
}

// ownWorld returns a copy of w that the episode may change, in its own memory where it has some.
func (e *Episode) ownWorld(p *Pack, w World) World {
	if e.world == nil || e.pack != p {
		return w.Clone()
	}
	e.world.CopyFrom(w)
	return e.world
}

// attach takes what belongs to the episode's place rather than to its state.
func (e *Episode) attach(o Options) {
	e.pack, e.opts = e.task.Pack, o
	e.limits = e.pack.Limits(e.task.Condition)
	e.toolTime = 0
	e.stop.Store(false)
}

// Snapshot is everything of an episode: world, streams, clock, log, slots, pending events. The zero value is empty.
type Snapshot struct{ state }

// Snapshot copies the episode into s, reusing its memory.
func (e *Episode) Snapshot(s *Snapshot) error {
	if e.pack == nil {
		return ErrNotReset
	}
	s.copyFrom(&e.state)
	return nil
}

// Restore makes e continue from s under e's own options o: a new episode to the recorder, with s's as its parent. The gate
// of Start holds.
//
// Errors: ErrHeldOut as Start; ErrSnapshot if the views differ or s is empty.
func (e *Episode) Restore(s *Snapshot, o Options) error {
	if s.world == nil {
		return fmt.Errorf("%w: it is empty", ErrSnapshot)
	}
	if s.view != o.View {
		return fmt.Errorf("%w: it is of the %s view", ErrSnapshot, s.view)
	}
	if err := admit(s.task, s.built, o); err != nil {
		return err
	}
	e.Flush()
	e.reclaim()
	e.state.copyFrom(&s.state)
	e.attach(o)
	parent := s.rec
	if s.by != o.Recorder {
		parent = 0 // an id means nothing to another recorder
	}
	e.beginRecord(parent, s.steps)
	return nil
}

func (s *state) copyFrom(src *state) {
	own := s.progress
	if own.world != nil && own.task.Pack == src.task.Pack {
		own.world.CopyFrom(src.world)
	} else {
		own.world = src.world.Clone()
	}
	own.log.copyFrom(&src.log)
	own.actions = append(own.actions[:0], src.actions...)
	s.progress = src.progress
	s.world, s.log, s.actions = own.world, own.log, own.actions
	if src.view == Structured {
		choice := s.slots.choice
		choice.copyFrom(&src.slots.choice)
		s.slots = src.slots
		s.slots.choice = choice
	}
}

// Export returns the episode as bytes that any process with the same pack can Import: the task and every action. Only
// deterministic packs have it.
//
// Errors: ErrNotReset; ErrSnapshot if the pack is not deterministic.
func (e *Episode) Export() ([]byte, error) {
	if e.pack == nil {
		return nil, ErrNotReset
	}
	if !e.pack.Deterministic {
		return nil, fmt.Errorf("%w: pack %s does not replay", ErrSnapshot, e.pack.Name)
	}
	digest := e.Digest()
	x := export{Task: e.task.ID(), View: e.view.String(), Pack: e.pack.Hash, Digest: digest.String(), Steps: e.steps, Actions: e.actions}
	if e.stopped {
		x.Stop = &exportedStop{e.outcome, e.limit, e.why}
	}
	return json.Marshal(x)
}

type export struct {
	Task    string        `json:"task"`
	View    string        `json:"view"`
	Pack    string        `json:"pack_hash"`
	Digest  string        `json:"digest"`
	Steps   int           `json:"steps"`
	Actions []byte        `json:"actions"`
	Stop    *exportedStop `json:"stop,omitempty"` // the end from outside, after the actions
}

type exportedStop struct {
	Outcome Outcome `json:"outcome"`
	Limit   Limit   `json:"limit"`
	Why     string  `json:"why"`
}

// Import makes e continue from what Export returned, by replay, and proves it by the digest. The gate of Start holds.
//
// Errors: as Start; ErrBadInput for bytes that Export did not write; ErrSnapshot for another pack, view or digest.
func (e *Episode) Import(b []byte, o Options) error {
	var x export
	if err := json.Unmarshal(b, &x); err != nil {
		return badInput("a snapshot is JSON as exported: %v", err)
	}
	task, err := ParseTask(x.Task)
	if err != nil {
		return err
	}
	if x.View != o.View.String() || x.Pack != task.Pack.Hash {
		return fmt.Errorf("%w: it is of view %s and pack hash %s", ErrSnapshot, x.View, x.Pack)
	}
	if err := admit(task, nil, o); err != nil {
		return err
	}
	// Recorded only once it is proved, as an episode that goes on from these steps: what fails leaves no trace.
	unseen := o
	unseen.Recorder = nil
	if err := e.Start(task, unseen); err != nil {
		return err
	}
	for rest := x.Actions; len(rest) > 0; {
		var r StepRec
		if r, rest, err = NextStep(o.View, rest); err != nil {
			return err
		}
		if o.View == Text {
			err = e.StepText(r.Text)
		} else {
			err = e.StepAction(r.Action)
		}
		if err != nil {
			return err
		}
	}
	if x.Stop != nil {
		if err := e.Stop(x.Stop.Outcome, x.Stop.Limit, x.Stop.Why); err != nil {
			return fmt.Errorf("%w: its end from outside does not follow from its actions: %w", ErrSnapshot, err)
		}
	}
	if got := e.Digest(); got.String() != x.Digest {
		return fmt.Errorf("%w: replaying it gave digest %s, not %s", ErrSnapshot, got, x.Digest)
	}
	e.opts = o
	e.beginRecord(0, e.steps)
	return nil
}

const (
	segmentBytes = 64 << 10
	segmentTime  = time.Second
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (e *Episode) beginRecord(parent uint64, step int) {
	e.rec, e.by = 0, e.opts.Recorder
	if e.opts.Recorder == nil {
		return
	}
	e.segment, e.segSeq, e.segSteps, e.segBegan = e.segment[:0], 0, 0, time.Now()
	e.rec = e.opts.Recorder.Begin(EpisodeStart{e.task, e.opts.Mode, e.view, e.opts.Labels, parent, step, e.actions})
	if e.outcome != Running {
		e.closeRecord()
	}
}

// ObsCRC returns the CRC-32C of the observation that the agent sees now: of the text, or of the arrays of StructuredObs in
// order. While a call of the structured view is being chosen it covers phase and mask, which alone have changed since.
func (e *Episode) ObsCRC() uint32 {
	if e.view == Text {
		return crc32.Checksum(e.Result(), castagnoli)
	}
	o := &e.slots.obs
	from := uintptr(0)
	if o.Phase[phaseTool] != 0 {
		from = unsafe.Offsetof(o.Phase)
	}
	return crc32.Checksum(unsafe.Slice((*byte)(unsafe.Pointer(o)), unsafe.Sizeof(*o))[from:], castagnoli)
}

// ObsRows returns how many rows of the structured view's Slots and Tools are in use; those after them are zero.
func (e *Episode) ObsRows() (slots, tools int) { return e.slots.used, len(e.pack.Tools) }

// record appends one step as AppendStep encodes it, with the texts where no replay could rebuild them.
func (e *Episode) record(action []byte, index int) {
	if e.gone {
		return
	}
	r := StepRec{View: e.view, Text: action, Action: index}
	if !e.pack.Deterministic {
		if e.steps == 1 {
			r.Told = []byte(e.built.Instruction)
		}
		if e.calls > e.kept {
			e.kept, r.Shown = e.calls, e.Result()
		}
	}
	e.actions = AppendStep(e.actions, r)
	if e.rec == 0 {
		return
	}
	r.CRC, r.Reward, r.Ended = e.ObsCRC(), float32(e.reward), e.outcome != Running
	e.segment = AppendStep(e.segment, r)
	e.segSteps++
	if e.outcome != Running {
		e.closeRecord()
	} else if len(e.segment) >= segmentBytes || e.segSteps&63 == 0 && time.Since(e.segBegan) > segmentTime {
		e.flushSegment()
	}
}

func (e *Episode) flushSegment() {
	if e.segSteps == 0 {
		return
	}
	e.segment = e.opts.Recorder.Segment(e.rec, e.segSeq, e.segSteps, e.segment)[:0]
	e.segSeq++
	e.segSteps, e.segBegan = 0, time.Now()
}

func (e *Episode) closeRecord() {
	e.flushSegment()
	if late, ok := e.opts.Recorder.(LateRecorder); ok {
		late.EndLater(e.rec, e.share())
		return
	}
	e.opts.Recorder.End(e.rec, e.EndRecord())
}

// EndRecord returns the end as recorders get it, audits and digest computed.
func (e *Episode) EndRecord() EpisodeEnd {
	return e.ending(&e.scratch)
}

package breaker

import (
	"errors"
	"fmt"
	"slices"

	"provegym/gym"
)

// Options steer a search. The zero value works.
type Options struct {
	Budget     int     `json:"budget"`     // episodes, the lost ones apart; 0 means 2,000
	Tau        float64 `json:"tau"`        // a cell fails when the policy fails there at least this often; 0 means .5
	Margin     float64 `json:"margin"`     // the tests tell tau-margin from tau+margin; 0 means .15
	Floor      float64 `json:"floor"`      // share of proposals drawn uniformly; 0 means .2
	Patience   int     `json:"patience"`   // search episodes without a new cause that end it; 0 means 300, below 0 never
	MaxLost    int     `json:"max_lost"`   // lost episodes that end it; 0 means 20 + Budget/4
	Checkpoint string  `json:"checkpoint"` // hash of the policy's weights; part of every seed

	// Quick stops minimisation after one pass: causes keep a factor too many in one of eight, and a few more are found.
	Quick bool `json:"quick,omitempty"`

	// Eager asks a test's whole cap at once: a third of the rounds at batches of 16, for a third less recall.
	Eager bool `json:"eager,omitempty"`

	uniform  bool // for comparison in tests: uniform proposals,
	unmasked bool // and nothing learned from causes
}

func (o Options) withDefaults() Options {
	def := func(v *float64, d float64) {
		if *v == 0 {
			*v = d
		}
	}
	def(&o.Tau, .5)
	def(&o.Margin, .15)
	def(&o.Floor, .2)
	if o.Budget == 0 {
		o.Budget = 2000
	}
	if o.Patience == 0 {
		o.Patience = 300
	}
	if o.MaxLost == 0 {
		o.MaxLost = 20 + o.Budget/4
	}
	return o
}

// Validate lists everything wrong with the options at once, or returns nil.
func (o Options) Validate() error {
	o = o.withDefaults()
	var bad []error
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			bad = append(bad, fmt.Errorf("%w: breaker: "+format, append([]any{gym.ErrBadInput}, args...)...))
		}
	}
	add(o.Budget < 0, "budget %d", o.Budget)
	add(!(o.Margin > 0 && o.Tau-o.Margin > 0 && o.Tau+o.Margin < 1), "tau %g ± margin %g must lie inside (0, 1)", o.Tau, o.Margin)
	add(!(o.Floor > 0 && o.Floor <= 1), "floor %g is not in (0, 1]", o.Floor)
	add(o.MaxLost < 0, "max_lost %d", o.MaxLost)
	return errors.Join(bad...)
}

// Search looks for causes. It is not safe for concurrent use.
type Search struct {
	space Space
	opts  Options
	key   gym.Key
	rules rules
	rows  []Cell // the covering array
	seen  evidence

	open, told, lost int // episodes out, told and lost, by the ledger
	openSearch       int // search probes out
	st               state
}

// state is what a search must remember beyond its space, key and options.
type state struct {
	Ledger  []Entry   `json:"ledger"`
	Covered int       `json:"covered"` // rows of the covering array that have been taken
	Retry   []retry   `json:"retry"`   // search cells whose episode was lost
	Jobs    []*job    `json:"jobs"`
	NextJob int       `json:"next_job"`
	Width   int       `json:"width"`  // candidates reduced at a time, by the size of the last batch
	Causes  []Cause   `json:"causes"` // confirmed
	Open    []Cause   `json:"open"`   // suspected and not confirmed
	Retired []Retired `json:"retired"`

	Since     int `json:"since_cause"`       // search episodes told since the last cause
	FloorN    int `json:"floor_since_cause"` // those that the uniform floor drew
	FloorHits int `json:"floor_hits"`        // those of them whose cell screened as failing

	Screens         int    `json:"screens"`
	ScreenedFailing int    `json:"screened_failing"`
	Confirmations   int    `json:"confirmations"`
	Stop            string `json:"stop"` // why no more search probes are asked
}

type retry struct {
	Cell  Cell `json:"cell"`
	Floor bool `json:"floor,omitempty"`
	Times int  `json:"times"`
}

// maxRetries is how often a search cell is asked again after its episode was lost.
const maxRetries = 3

// New starts a search. Everything random in it derives from key and opts.Checkpoint.
//
// Errors: gym.ErrBadInput (see Space.Validate, Options.Validate).
func New(space Space, key gym.Key, opts Options) (*Search, error) {
	s, err := build(space, key, opts)
	if err != nil {
		return nil, err
	}
	s.startReferences()
	return s, nil
}

func build(space Space, key gym.Key, opts Options) (*Search, error) {
	if err := errors.Join(space.Validate(), opts.Validate()); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	s := &Search{
		space: space, opts: opts, key: key.Sub("break").Sub(opts.Checkpoint),
		rules: rulesAt(opts.Tau, opts.Margin), seen: newEvidence(space),
	}
	if !opts.uniform {
		s.rows = cover(space, s.key.Sub("cover"))
	}
	s.st.NextJob, s.st.Width = 1, 1
	return s, nil
}

// startReferences screens the nominal cell of every family: one that already fails there is a cause by itself.
func (s *Search) startReferences() {
	add := func(p Pattern) {
		if s.allows(p) {
			s.newJob(&job{Kind: reference, Set: p})
		}
	}
	for f, factor := range s.space.Factors {
		if factor.Nominal != Free {
			continue
		}
		for l := range factor.Levels {
			p := s.space.Open()
			p[f] = l
			add(p)
		}
		return
	}
	add(s.space.Open())
}

func (s *Search) newJob(j *job) {
	j.ID, j.Epoch, j.Modes = s.st.NextJob, len(s.st.Causes), map[string]int{}
	s.st.NextJob++
	if j.Kind == recheck {
		j.start(StageConfirm)
		s.st.Confirmations++
	} else {
		j.start(StageScreen)
		s.st.Screens++
	}
	s.st.Jobs = append(s.st.Jobs, j)
}

// masked reports whether a confirmed cause explains c.
func (s *Search) masked(c Cell) bool {
	if s.opts.unmasked {
		return false
	}
	for i := range s.st.Causes {
		if s.st.Causes[i].pattern.Match(c) {
			return true
		}
	}
	return false
}

// Ask returns up to n probes to run. It returns fewer when the tests under way need no more at once or the budget ends; none
// means: tell what is out, or Done.
//
// Tests of candidates come first, none beyond what it certainly needs (Options.Eager asks ahead). The rest of the batch
// searches on, unless enough candidates are at work: the more episodes run in parallel, the more are reduced at a time.
func (s *Search) Ask(n int) []Probe {
	var out []Probe
	s.st.Width = max(1, (s.open+n)/perCandidate)
	for len(out) < n && s.told+s.open < s.opts.Budget && s.lost < s.opts.MaxLost {
		e, ok := s.pick()
		if !ok {
			break
		}
		if !s.space.Allows(e.Cell) {
			panic("breaker: asked an excluded cell " + s.space.ID(e.Cell))
		}
		e.Condition = s.space.ID(e.Cell)
		e.Seed = s.space.Seed(s.key.Sub(e.Condition).At(e.ID), e.Cell)
		s.st.Ledger = append(s.st.Ledger, e)
		s.open++
		if e.Stage == StageSearch {
			s.openSearch++
		}
		out = append(out, e.Probe)
	}
	s.settle()
	return out
}

// pick chooses the next probe: rechecks and references, then candidates in the order found, then search.
func (s *Search) pick() (Entry, bool) {
	e := Entry{Probe: Probe{ID: uint64(len(s.st.Ledger))}}
	for _, j := range s.st.Jobs {
		if s.want(j) < 1 {
			continue
		}
		if j.Stage == StageScreen && j.Kind == candidate {
			e.Cell = slices.Clone(j.Origin)
		} else {
			rng := s.key.Sub("free").At(e.ID).Stream()
			c, ok := s.cellOf(&rng, j.trial())
			if !ok {
				panic("breaker: a test without a cell: " + causeID(s.space.Settings(j.trial())))
			}
			e.Cell = c
		}
		e.Stage, e.Job, e.Trial = j.Stage, j.ID, j.Trial
		j.Open++
		return e, true
	}
	e.Stage = StageSearch
	if s.exhausted() || s.candidates() >= s.st.Width {
		return e, false
	}
	for len(s.st.Retry) > 0 {
		r := s.st.Retry[0]
		s.st.Retry = s.st.Retry[1:]
		if !s.masked(r.Cell) {
			e.Cell, e.Floor, e.Trial = r.Cell, r.Floor, r.Times
			return e, true
		}
	}
	c, floor, ok := s.propose(e.ID)
	if !ok {
		s.st.Stop = "nothing unexplained was left to try"
		return e, false
	}
	e.Cell, e.Floor = c, floor
	return e, true
}

// perCandidate is how many parallel episodes allow one more candidate to be reduced at a time. While that many are at work
// nothing new is searched for: their duplicates would eat the budget. With 2,000 episodes on 100 synthetic worlds, batches of
// 1, 16 and 64 recall .83, .83 and .79 (mixed), .74, .73 and .68 (rare), in 2,000, 420 and 180 rounds. Searching on
// regardless loses half of the recall at 16.
const perCandidate = 32

func (s *Search) candidates() (n int) {
	for _, j := range s.st.Jobs {
		if j.Kind == candidate {
			n++
		}
	}
	return n
}

// exhausted reports whether search probes are over, for now or for good.
func (s *Search) exhausted() bool {
	return s.st.Stop != "" || s.opts.Patience > 0 && s.st.Since+s.openSearch >= s.opts.Patience
}

// Tell records results, at most one a probe. It changes nothing when it returns an error.
//
// Errors: gym.ErrUnknown (no such probe), gym.ErrBadInput (told before, or twice here).
func (s *Search) Tell(results []Result) error {
	rs := slices.Clone(results)
	slices.SortFunc(rs, func(a, b Result) int {
		switch {
		case a.ID < b.ID:
			return -1
		case a.ID > b.ID:
			return 1
		}
		return 0
	})
	for i, r := range rs {
		if r.ID >= uint64(len(s.st.Ledger)) {
			return fmt.Errorf("%w: breaker: probe %d was never asked", gym.ErrUnknown, r.ID)
		}
		if s.st.Ledger[r.ID].Outcome != Open || i > 0 && rs[i-1].ID == r.ID {
			return fmt.Errorf("%w: breaker: probe %d is told twice", gym.ErrBadInput, r.ID)
		}
	}
	for _, r := range rs {
		s.tell(r)
	}
	s.settle()
	return nil
}

func (s *Search) tell(r Result) {
	e := &s.st.Ledger[r.ID]
	s.open--
	if e.Stage == StageSearch {
		s.openSearch--
	}
	switch {
	case r.Lost:
		e.Outcome = Lost
		s.lost++
	case r.Failed:
		e.Outcome, e.Mode = Failed, r.Mode
		s.told++
	default:
		e.Outcome = Passed
		s.told++
	}
	if !r.Lost && !s.masked(e.Cell) {
		s.seen.add(e.Cell, r.Failed)
	}
	if e.Stage == StageSearch {
		s.tellSearch(e)
		return
	}
	i := slices.IndexFunc(s.st.Jobs, func(j *job) bool { return j.ID == e.Job && j.Trial == e.Trial && j.Stage == e.Stage })
	if i < 0 {
		e.Ignored = true
		return
	}
	j := s.st.Jobs[i]
	j.Open--
	if r.Lost {
		if j.Lost++; j.Lost >= maxJobLost {
			s.giveUp(j, fmt.Sprintf("%d of its episodes were lost in a row", j.Lost))
		}
		return
	}
	j.Lost = 0
	j.Spent++
	j.Count.Add(r.Failed)
	if r.Failed {
		j.Last[r.Mode]++
		if j.Stage == StageConfirm && len(j.Replay) < 3 {
			j.Replay = append(j.Replay, Replay{e.Condition, slices.Clone(e.Cell), e.Seed, r.Mode})
		}
	}
	if v := s.rule(j).Judge(j.Count); v != Continue {
		s.decide(j, v)
	}
}

func (s *Search) tellSearch(e *Entry) {
	if e.Outcome == Lost {
		if e.Trial < maxRetries {
			s.st.Retry = append(s.st.Retry, retry{e.Cell, e.Floor, e.Trial + 1})
		}
		return
	}
	s.st.Since++
	if s.masked(e.Cell) {
		return
	}
	if e.Floor {
		s.st.FloorN++
	}
	if e.Outcome != Failed {
		return
	}
	if slices.ContainsFunc(s.st.Jobs, func(j *job) bool { return j.Kind == candidate && slices.Equal(j.Origin, e.Cell) }) {
		return
	}
	j := &job{Kind: candidate, Origin: slices.Clone(e.Cell), Floor: e.Floor, Set: s.space.off(e.Cell)}
	s.newJob(j)
	j.Modes[e.Mode]++
	j.Spent++
}

// settle moves on what needs no episode: waiting candidates are minimised, Width at a time, and the end is noticed.
func (s *Search) settle() {
	for {
		reducing := 0
		for _, j := range s.st.Jobs {
			if j.reducing() && !s.held(j) {
				reducing++
			}
		}
		i := slices.IndexFunc(s.st.Jobs, func(j *job) bool { return j.Stage == stageWait && !s.held(j) })
		if i < 0 || reducing >= s.st.Width {
			break
		}
		s.minimise(s.st.Jobs[i])
	}
	switch {
	case s.told >= s.opts.Budget:
		s.end("the budget is spent")
	case s.lost >= s.opts.MaxLost:
		s.end(fmt.Sprintf("%d episodes were lost", s.lost))
	case s.st.Stop == "" && s.opts.Patience > 0 && s.st.Since >= s.opts.Patience && s.openSearch == 0 && len(s.st.Jobs) == 0:
		s.st.Stop = fmt.Sprintf("the last %d search episodes gave no new cause", s.st.Since)
	}
}

// end stops the search whatever is still running.
func (s *Search) end(reason string) {
	s.st.Stop = reason
	for len(s.st.Jobs) > 0 {
		s.giveUp(s.st.Jobs[0], reason)
	}
}

// admit adds a confirmed cause: what it explains is masked, candidates that it explains end, evidence is counted anew.
func (s *Search) admit(c Cause) {
	for i := range s.st.Causes {
		if old := &s.st.Causes[i]; old.ImpliedBy == "" && old.pattern.Implies(c.pattern) && old.ID != c.ID {
			old.ImpliedBy = c.ID
		}
	}
	for _, old := range s.st.Causes {
		if c.ImpliedBy == "" && old.ImpliedBy == "" && c.pattern.Implies(old.pattern) && old.ID != c.ID {
			c.ImpliedBy = old.ID
		}
	}
	s.st.Causes = append(s.st.Causes, c)
	s.st.Since, s.st.FloorN, s.st.FloorHits = 0, 0, 0
	s.st.Jobs = slices.DeleteFunc(s.st.Jobs, func(j *job) bool {
		return j.Kind == candidate && s.masked(j.Origin) || j.Kind == reference && !s.opts.unmasked && j.Set.Implies(c.pattern)
	})
	s.recount()
}

// recount rebuilds the evidence from the episodes that no cause explains.
func (s *Search) recount() {
	s.seen = newEvidence(s.space)
	for i := range s.st.Ledger {
		e := &s.st.Ledger[i]
		if (e.Outcome == Passed || e.Outcome == Failed) && !s.masked(e.Cell) {
			s.seen.add(e.Cell, e.Outcome == Failed)
		}
	}
}

// Done reports whether the search is over: nothing more will be asked, and nothing is out.
func (s *Search) Done() bool { return s.st.Stop != "" && s.open == 0 && len(s.st.Jobs) == 0 }

// Outstanding returns the probes that were asked and not told, in order: what a resumed run must run again.
func (s *Search) Outstanding() []Probe {
	var out []Probe
	for _, e := range s.st.Ledger {
		if e.Outcome == Open {
			out = append(out, e.Probe)
		}
	}
	return out
}

// Ledger returns everything ever asked, in order. The caller must not change it.
func (s *Search) Ledger() []Entry { return s.st.Ledger }

// Causes returns the confirmed causes in the order found.
func (s *Search) Causes() []Cause { return slices.Clone(s.st.Causes) }

// Retired returns the old causes that were not confirmed again.
func (s *Search) Retired() []Retired { return slices.Clone(s.st.Retired) }

// Space returns the space that is searched.
func (s *Search) Space() Space { return s.space }

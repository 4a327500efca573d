package prove

import (
	"maps"
	"slices"
	"strings"

	"provegym/gym"
	"provegym/gym/prove/stats"
)

// Record is one episode of a look. The agent's fault (a limit, an unreadable action, a crash of the policy) is a failure;
// only the outcomes invalid and check_error, which are the infrastructure's, lose the episode.
type Record struct {
	Condition string `json:"condition"`
	Cluster   string `json:"cluster"`
	Seed      uint64 `json:"seed,string"`
	Sample    int    `json:"sample"`
	Arm       string `json:"arm"`
	Mode      string `json:"mode"`    // the episode's: test in sealed looks, eval or test in monitor looks
	Outcome   string `json:"outcome"` // scored, truncated, invalid or check_error
	Success   bool   `json:"success"`
	Failure   string `json:"failure,omitempty"` // failure mode of an episode without success
	PackHash  string `json:"pack_hash"`
	CheckHash string `json:"check_hash"`
}

// Evidence is what a look is judged by.
type Evidence struct {
	PlanHash   string   `json:"plan_hash"`  // of the plan that the records were made under
	Base       string   `json:"base"`       // checkpoint hashes of the arms
	Checkpoint string   `json:"checkpoint"` //
	Records    []Record `json:"records"`
	// Ledger lists the ids of all tasks that training and Break have drawn.
	Ledger []string `json:"ledger"`
}

// Result is one look, judged.
type Result struct {
	Schema     string    `json:"schema"`
	Look       string    `json:"look"`
	Sealed     bool      `json:"sealed"`
	PlanHash   string    `json:"plan_hash"`
	Rule       string    `json:"rule,omitempty"` // that names the checkpoint
	Base       string    `json:"base"`
	Checkpoint string    `json:"checkpoint"`
	Level      float64   `json:"level"` // alpha x weight; of a single test in monitor looks
	Family     int       `json:"family_size"`
	Rows       []Row     `json:"rows"`
	Overall    Row       `json:"overall"`
	Counts     Counts    `json:"counts"`
	Modes      []ModeRow `json:"failure_modes"`
	Problems   []string  `json:"problems"` // of the look as a whole
}

// ResultSchema names the format of a Result.
const ResultSchema = "prove-look/1"

// Counts are episodes of both arms.
type Counts struct {
	Planned    int `json:"planned"`
	Scored     int `json:"scored"` // those that count, truncated ones included
	Truncated  int `json:"truncated"`
	Invalid    int `json:"invalid"` // invalid or check_error to the last try
	Missing    int `json:"missing"` // no record at all
	Retried    int `json:"retried"` // lost tries that another one replaced
	Undeclared int `json:"undeclared"`
}

// Row is one condition at one look, or the pooled row. Members that no complete pair backs are null.
type Row struct {
	Condition  string    `json:"condition"`
	Tier       string    `json:"tier,omitempty"`
	Family     string    `json:"family"` // confirmatory, exploratory, overall or monitor
	Base       *Rate     `json:"base"`
	Checkpoint *Rate     `json:"checkpoint"`
	Change     *Interval `json:"change"`      // 95 %, of this row alone
	Joint      *Interval `json:"joint"`       // 1 - level/m: holds for all rows of the family at once
	Margin     *Interval `json:"equivalence"` // 1 - 2 level/m: what UNCHANGED_WITHIN is read from
	P          *float64  `json:"p"`           // exact McNemar
	Holm       *float64  `json:"holm_p"`      // adjusted over the family; p itself in a family of one
	Adverse    *float64  `json:"adverse_p"`   // adjusted p with every lost episode against the claim; where episodes were lost
	Q          *float64  `json:"bh_q"`        // exploratory rows: Benjamini-Hochberg
	Psi0       *float64  `json:"psi0"`        // (b+c+1)/(n+2)
	Level      float64   `json:"level"`       // of one test: what the MDE is computed at
	MDE        *float64  `json:"mde"`         // null with data: no change could have reached 80 % power
	DMin       float64   `json:"dmin"`
	Delta      float64   `json:"delta"`
	Needs      *int      `json:"needs"` // about how many pairs detect dmin, given the noise seen
	B          int       `json:"b"`     // pairs that only the checkpoint passes
	C          int       `json:"c"`     // pairs that only the base passes
	N          int       `json:"n"`     // complete pairs
	Planned    int       `json:"planned"`
	Lost       int       `json:"lost"` // pairs with an invalid or missing arm
	Counts     Counts    `json:"counts"`
	Verdict    *Verdict  `json:"verdict"` // null in exploratory and monitor rows
	Flags      []string  `json:"flags"`
	Problems   []string  `json:"problems"`
	Sentence   string    `json:"sentence"`

	adverse [2]tally // if the claim is IMPROVED, if it is REGRESSED
}

// Rate is a pass rate with Wilson's interval.
type Rate struct {
	Passes int     `json:"passes"`
	N      int     `json:"n"`
	Rate   float64 `json:"rate"`
	Lo     float64 `json:"lo"`
	Hi     float64 `json:"hi"`
}

// NewRate returns the rate of x passes in n episodes, or nil if n is 0. It panics if x is not in [0, n].
func NewRate(x, n int) *Rate {
	if n == 0 {
		return nil
	}
	lo, hi := stats.Wilson(x, n, 1-Confidence)
	return &Rate{x, n, float64(x) / float64(n), lo, hi}
}

// Interval is an estimated change of pass rate with Tango's limits.
type Interval struct {
	Value float64 `json:"value"`
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
}

// ModeRow is one failure mode over the complete pairs of the confirmatory conditions. Exploratory.
type ModeRow struct {
	Mode       string   `json:"mode"`
	Base       int      `json:"base"`
	Checkpoint int      `json:"checkpoint"`
	N          int      `json:"n"`
	Change     Interval `json:"change"` // of the share of episodes that fail this way
	Q          float64  `json:"bh_q"`
}

// tally counts pairs.
type tally struct{ b, c, n, base, checkpoint int }

func (t *tally) add(base, checkpoint bool) {
	t.n++
	if base {
		t.base++
	}
	if checkpoint {
		t.checkpoint++
	}
	switch {
	case checkpoint && !base:
		t.b++
	case base && !checkpoint:
		t.c++
	}
}

func (t *tally) plus(u tally) {
	t.b, t.c, t.n, t.base, t.checkpoint = t.b+u.b, t.c+u.c, t.n+u.n, t.base+u.base, t.checkpoint+u.checkpoint
}

func (t tally) interval(alpha float64) Interval {
	lo, hi := stats.Tango(t.b, t.c, t.n, alpha)
	return Interval{float64(t.b-t.c) / float64(t.n), lo, hi}
}

// breach is a way in which evidence breaks the plan. The first that a row has is the reason of its INVALID.
type breach int

const (
	planChanged breach = iota
	wrongPlan
	wrongBase
	wrongPack
	wrongCheck
	freeMode
	wrongMode
	trainedOn
	seenBefore
	duplicate
	undeclared
	retries
	breaches
)

func (b breach) String() string {
	return [...]string{
		"the plan was changed after freezing", "records made under another plan", "another starting checkpoint", "pack hash differs",
		"check hash differs", "free-mode records", "records of another mode", "held-out condition used in training or Break",
		"task of this look used in training or Break", "several records for one episode", "record for no declared episode", "retried too often",
	}[b]
}

// cell is one condition while its records come in.
type cell struct {
	plan     *Condition
	total    tally
	adverse  [2]tally
	lost     int
	counts   Counts
	breaches [breaches]int
	modes    map[string]*tally // here base and checkpoint "pass" when they fail in this mode
}

type slotKey struct {
	condition, cluster string
	seed               uint64
	sample             int
}

// try is what one slot and arm has come to.
type try struct {
	lost, counted int
	rec           *Record // the counted one
}

// Evaluate judges one look: the id of a sealed look, or MonitorLook.
//
// Errors: gym.ErrUnknown (the look), gym.ErrBadInput (a plan that is no frozen plan of these rules, a key that does not open
// it, a record that is malformed). Evidence against the comparison itself becomes INVALID rows; see the package comment.
func Evaluate(p Plan, key gym.Key, look string, ev Evidence) (Result, error) {
	if p.Schema != PlanSchema || p.Analysis != Analysis || p.Hash == "" {
		return Result{}, p.Verify()
	}
	if err := p.sound(); err != nil {
		return Result{}, err
	}
	changed := p.Hash != p.hash()
	slots, opens, err := p.slots(key, look)
	if err == nil && !opens && !changed {
		err = badInput("the key does not open the seeds that the plan committed to for %q: use the key it was frozen with", look)
	}
	if err != nil {
		return Result{}, err
	}
	r := Result{Schema: ResultSchema, Look: look, Sealed: look != MonitorLook, PlanHash: p.Hash, Base: ev.Base, Checkpoint: ev.Checkpoint,
		Level: 1 - Confidence, Family: 1, Problems: []string{}}
	if r.Sealed {
		i, _ := p.look(look)
		r.Level, r.Rule, r.Family = p.Alpha*p.Looks[i].Weight, p.Looks[i].Checkpoint, p.FamilySize()
	}
	_, _, _, conditions, _ := p.block(look)

	cells := make([]cell, len(conditions))
	index := map[string]*cell{}
	for i := range conditions {
		cells[i] = cell{plan: &conditions[i], modes: map[string]*tally{}}
		index[conditions[i].ID] = &cells[i]
	}
	whole := [breaches]bool{planChanged: changed, wrongPlan: ev.PlanHash != p.Hash, wrongBase: p.Base.Hash != "" && ev.Base != p.Base.Hash}
	for b, holds := range whole {
		if holds {
			r.Problems = append(r.Problems, breach(b).String())
			for i := range cells {
				cells[i].breaches[b]++
			}
		}
	}
	tries, err := collect(p, r.Sealed, slots, ev.Records, index, &r.Counts)
	if err != nil {
		return Result{}, err
	}
	if err := checkLedger(p, slots, ev.Ledger, index); err != nil {
		return Result{}, err
	}
	for i, s := range slots {
		index[s.Condition].settle(&tries[i], p.Lost.Retries)
	}
	p.rows(&r, cells)
	return r, nil
}

// collect sorts records into slots: [slot][arm], arms in the order base, checkpoint.
func collect(p Plan, sealed bool, slots []Slot, records []Record, index map[string]*cell, counts *Counts) ([][2]try, error) {
	tries := make([][2]try, len(slots))
	at := make(map[slotKey]int, len(slots))
	for i, s := range slots {
		at[slotKey{s.Condition, s.Cluster, s.Seed, s.Sample}] = i
	}
	for i := range records {
		rec := &records[i]
		lost := rec.Outcome == gym.Invalid.String() || rec.Outcome == gym.CheckError.String()
		if !lost && rec.Outcome != gym.Scored.String() && rec.Outcome != gym.Truncated.String() {
			return nil, badInput("record %d: outcome %q is not scored, truncated, invalid or check_error", i, rec.Outcome)
		}
		if rec.Success && rec.Outcome != gym.Scored.String() {
			return nil, badInput("record %d: success with the outcome %s; only a committed finish can succeed", i, rec.Outcome)
		}
		c := index[rec.Condition]
		if c == nil {
			counts.Undeclared++
			continue
		}
		mark := func(b breach, holds bool) {
			if holds {
				c.breaches[b]++
			}
		}
		mark(wrongPack, rec.PackHash != p.PackHash)
		mark(wrongCheck, rec.CheckHash != p.CheckHash)
		free := rec.Mode == gym.Free.String()
		mark(freeMode, free)
		mark(wrongMode, !free && rec.Mode != gym.Test.String() && (sealed || rec.Mode != gym.Eval.String()))
		slot, known := at[slotKey{rec.Condition, rec.Cluster, rec.Seed, rec.Sample}]
		if !known || rec.Arm != BaseArm && rec.Arm != CheckpointArm {
			c.counts.Undeclared++
			c.breaches[undeclared]++
			continue
		}
		arm := 0
		if rec.Arm == CheckpointArm {
			arm = 1
		}
		t := &tries[slot][arm]
		if lost {
			t.lost++
			continue
		}
		t.counted++
		t.rec = rec
	}
	return tries, nil
}

// checkLedger marks conditions whose tasks, or which themselves, training has met.
func checkLedger(p Plan, slots []Slot, ledger []string, index map[string]*cell) error {
	tasks := make(map[string]bool, len(slots))
	for _, s := range slots {
		tasks[s.Task] = true
	}
	for i, id := range ledger {
		condition, _, ok := strings.Cut(id, "#seed=")
		if !ok {
			return badInput("ledger entry %d: %q is no task id", i, id)
		}
		if strings.HasPrefix(id, p.Pack+"/") { // another spelling of the same task is the same task
			t, err := gym.ParseTask(id)
			if err != nil {
				return badInput("ledger entry %d: %v", i, err)
			}
			condition, id = t.Condition.ID(), t.ID()
		}
		c := index[condition]
		if c == nil {
			continue
		}
		if tasks[id] {
			c.breaches[seenBefore]++
		}
		if slices.Contains(p.Exclude, condition) {
			c.breaches[trainedOn]++
		}
	}
	return nil
}

// settle books the two tries of one slot.
func (c *cell) settle(tries *[2]try, limit int) {
	var pass, whole [2]bool
	var mode [2]string
	for arm := range tries {
		t := &tries[arm]
		c.counts.Planned++
		if t.counted > 1 {
			c.breaches[duplicate]++
		}
		if t.lost+t.counted > limit+1 {
			c.breaches[retries]++
		}
		switch {
		case t.counted > 0:
			c.counts.Scored++
			c.counts.Retried += t.lost
			if t.rec.Outcome == gym.Truncated.String() {
				c.counts.Truncated++
			}
			whole[arm], pass[arm] = true, t.rec.Success
			if !t.rec.Success {
				mode[arm] = orElse(t.rec.Failure, "unnamed")
			}
		case t.lost > 0:
			c.counts.Invalid++
			c.counts.Retried += t.lost - 1
		default:
			c.counts.Missing++
		}
	}
	// What is lost counts against the claim: a base that passed and a checkpoint that failed, or the reverse.
	c.adverse[0].add(pass[0] || !whole[0], pass[1] && whole[1])
	c.adverse[1].add(pass[0] && whole[0], pass[1] || !whole[1])
	if !whole[0] || !whole[1] {
		c.lost++
		return
	}
	c.total.add(pass[0], pass[1])
	for arm, m := range mode {
		if m == "" || arm == 1 && m == mode[0] {
			continue
		}
		if c.modes[m] == nil {
			c.modes[m] = &tally{}
		}
		c.modes[m].add(mode[0] == m, mode[1] == m)
	}
}

// row turns counts into estimates. level is that of one test.
func (c *cell) row(family string, level float64) Row {
	r := Row{Condition: c.plan.ID, Tier: c.plan.Tier, Family: family, DMin: c.plan.DMin, Delta: c.plan.Delta, Level: level,
		Planned: c.counts.Planned / 2, Lost: c.lost, Counts: c.counts, Flags: []string{}, Problems: []string{}, adverse: c.adverse}
	for b, n := range c.breaches {
		if n > 0 {
			r.Problems = append(r.Problems, breach(b).String())
		}
	}
	r.estimate(c.total)
	return r
}

// estimate fills in what follows from the complete pairs. Nothing is read from a row that breaks the plan.
func (r *Row) estimate(t tally) {
	r.B, r.C, r.N = t.b, t.c, t.n
	if t.n == 0 || len(r.Problems) > 0 {
		return
	}
	change, joint, margin := t.interval(1-Confidence), t.interval(r.Level), t.interval(2*r.Level)
	p, psi0 := stats.McNemarExact(t.b, t.c), float64(t.b+t.c+1)/float64(t.n+2)
	r.Base, r.Checkpoint = NewRate(t.base, t.n), NewRate(t.checkpoint, t.n)
	r.Change, r.Joint, r.Margin, r.P, r.Psi0 = &change, &joint, &margin, &p, &psi0
	if mde, ok := stats.MDEBinary(t.n, psi0, r.Level, Power); ok {
		r.MDE = &mde
	}
	r.Needs = needed(psi0, r.DMin, r.Level)
	r.flag()
}

// flag notes what is no verdict but worth a look.
func (r *Row) flag() {
	if r.MDE == nil {
		return // no change at all could be relied on to show, in either direction
	}
	if r.Base.Rate > 1-*r.MDE {
		r.Flags = append(r.Flags, "ceiling: the base passes too often for a detectable improvement")
	}
	if r.Base.Rate < *r.MDE {
		r.Flags = append(r.Flags, "floor: the base passes too seldom for a detectable regression")
	}
}

// rows computes, adjusts and judges all rows of a look.
func (p Plan) rows(r *Result, cells []cell) {
	family, of := map[string][]int{}, make([]string, len(cells))
	pooled := cell{plan: &Condition{ID: OverallRow, DMin: p.Overall.DMin, Delta: p.Overall.Delta}, modes: map[string]*tally{}}
	// A monitor look may hold exploratory conditions alone: then those are pooled.
	confirmatory := slices.ContainsFunc(cells, func(c cell) bool { return c.plan.Family == Confirmatory })
	for i := range cells {
		c := &cells[i]
		of[i] = c.plan.Family
		level := r.Level / float64(r.Family)
		if !r.Sealed {
			of[i] = MonitorLook
		} else if of[i] == Exploratory {
			level = 1 - Confidence
		}
		family[of[i]] = append(family[of[i]], i)
		r.Rows = append(r.Rows, c.row(of[i], level))
		r.Counts.add(c.counts)
		if c.plan.Family == Confirmatory || !confirmatory {
			pooled.pool(c)
		}
	}
	r.Overall = pooled.row(OverallRow, r.Level)
	if !r.Sealed {
		r.Overall.Family = MonitorLook
	}

	adjust(r, family[Confirmatory], r.Family)
	falseDiscovery(r, family[Exploratory])
	if r.Overall.P != nil {
		r.Overall.adjustAlone()
	}
	for i := range r.Rows {
		r.Rows[i].finish(p, r, of[i] == Confirmatory)
	}
	// After a look has shaped which pairs are pooled, the pooled row is no declared test any more.
	r.Overall.finish(p, r, r.Sealed && !p.Overall.Demoted)
	if r.Sealed && p.Overall.Demoted {
		r.Problems = append(r.Problems, "an amendment after a sealed look changed what is pooled: the pooled row has no verdict")
	}
	r.Modes = []ModeRow{}
	if len(r.Overall.Problems) == 0 {
		r.Modes = modeRows(pooled.modes, pooled.total.n)
	}
}

func (c *Counts) add(o Counts) {
	c.Planned += o.Planned
	c.Scored += o.Scored
	c.Truncated += o.Truncated
	c.Invalid += o.Invalid
	c.Missing += o.Missing
	c.Retried += o.Retried
	c.Undeclared += o.Undeclared
}

// pool adds o's pairs to c.
func (c *cell) pool(o *cell) {
	c.total.plus(o.total)
	c.adverse[0].plus(o.adverse[0])
	c.adverse[1].plus(o.adverse[1])
	c.lost += o.lost
	c.counts.add(o.counts)
	for b, n := range o.breaches {
		c.breaches[b] += n
	}
	for m, t := range o.modes {
		if c.modes[m] == nil {
			c.modes[m] = &tally{}
		}
		c.modes[m].plus(*t)
	}
}

// modeRows compares how often each failure mode occurs, most frequent first.
func modeRows(modes map[string]*tally, n int) []ModeRow {
	rows, ps := []ModeRow{}, []float64{}
	for _, m := range slices.Sorted(maps.Keys(modes)) {
		t := *modes[m]
		t.n = n // pairs without the mode were not added one by one
		rows = append(rows, ModeRow{m, t.base, t.checkpoint, n, t.interval(1 - Confidence), 0})
		ps = append(ps, stats.McNemarExact(t.b, t.c))
	}
	for i, q := range stats.BH(ps) {
		rows[i].Q = q
	}
	slices.SortStableFunc(rows, func(a, b ModeRow) int { return b.Base + b.Checkpoint - a.Base - a.Checkpoint })
	return rows
}

// Label returns the verdict in one word, or "" for rows that have none.
func (r Row) Label() string {
	if r.Verdict == nil {
		return ""
	}
	return r.Verdict.Label
}

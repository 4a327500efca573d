package control

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"provegym/gym"
	"provegym/gym/prove/stats"
)

const (
	defaultSeeds     = 2000
	fullSeeds        = 10_000
	defaultDialSeeds = 300
	defaultTasks     = 1300 // so that 500 are alike at two levels, of amendments too
	sampleEvery      = 16   // of the seeds, those on which oracle and baselines are audited and meet the twin
	hollowBound      = 1e-3 // of the share of a baseline's episodes that are hollow passes
	workers          = 2
	alpha            = 0.05 // of Wilson's interval
	maxFailures      = 50   // listed; all are counted
	maxSeeds         = 50_000
	checkGCPercent   = 400
)

// Options say how much a check of a pack does.
type Options struct {
	Families   []string // nil for all
	Full       bool     // 10,000 seeds unless Seeds says otherwise: what a release has to pass
	Seeds      int      // per family at the base condition; 0 for 2,000, below 0 for none
	DialSeeds  int      // per family and dial end; 0 for 300, below 0 for none
	LevelTasks int      // that each level of each dial is played on, the same for all levels, spread over the families; 0 for 1,300, below 0 for none
	Key        gym.Key  // the tasks' seeds derive from it
}

// Check holds a pack to its controls. It is used by one goroutine at a time and works in slices; see Step.
type Check struct {
	pack       *gym.Pack
	opts       Options
	agents     []gym.Agent // those with a result known in advance
	references []gym.Agent // the oracle and the baselines
	conditions []gym.Condition
	jobs       []job
	views      []*bench // one of each worker
	total      int      // episodes of all jobs

	next atomic.Int64 // index of the next job

	mu       sync.Mutex // guards what follows
	rows     map[rowKey]*tally
	refs     []Reference
	dials    map[dialKey]*DialRow
	failures []Failure // never nil, for JSON
	failed   int
	done     int
	spent    time.Duration
}

// job is one seed of one condition, or of a family at every level of a dial.
type job struct {
	condition int32 // its index
	dial      int32 // 1 + index of the dial whose levels are played; 0 for a seed of the condition alone
	base      bool
	index     int
	seed      uint64
}

type rowKey struct {
	agent     int
	view      gym.View
	condition gym.Condition
}

type tally struct {
	episodes, passes, broken, void int
	variants                       int
	covered                        map[int]bool
}

// Row is what one agent did in one view of one condition.
type Row struct {
	Control   string  `json:"control"`
	Kind      string  `json:"kind"`
	Family    string  `json:"family"`
	View      string  `json:"view"`
	Condition string  `json:"condition"`
	Episodes  int     `json:"episodes"` // those that count
	Passes    int     `json:"passes"`
	Broken    int     `json:"broken"` // invalid, check_error or stopped by an error: never right
	Void      int     `json:"void"`   // the deviation did not take place; not among Episodes
	Variants  int     `json:"variants"`
	Covered   int     `json:"covered"` // variants that were played
	Lower     float64 `json:"lower"`   // Wilson's two-sided 95 % interval of the pass rate
	Upper     float64 `json:"upper"`
	Bound     float64 `json:"bound"` // that Upper must not exceed; 0 where the rate must be exactly 0 or 1
	OK        bool    `json:"ok"`
}

// Failure is one episode that did not end as its control must.
type Failure struct {
	Task    string `json:"task"`
	Control string `json:"control"`
	Variant int    `json:"variant"`
	View    string `json:"view"`
	Text    string `json:"text"`
	Rerun   string `json:"rerun"`

	order [2]int // job and agent, for a stable list
}

// Report is how far a check has come. Rows, references, dials and rates are there when it is done.
type Report struct {
	OK         bool          `json:"ok"` // nothing has failed; says all only when done
	Done       bool          `json:"done"`
	Episodes   int           `json:"episodes"`
	Total      int           `json:"total"`
	Left       time.Duration `json:"left_ns"` // estimated from the speed so far
	Rows       []Row         `json:"rows"`
	References []Reference   `json:"references"`
	Dials      []DialRow     `json:"dials"`
	Rates      *Rates        `json:"rates"`
	Failed     int           `json:"failed"`   // episodes
	Failures   []Failure     `json:"failures"` // the first 50 by job
}

// NewCheck plans the check of a pack; see the package comment.
//
// Errors: gym.ErrUnknown for a family that the pack lacks; gym.ErrBadInput for more seeds than a check may list or a family
// named twice; gym.ErrPack if it has no oracle.
func NewCheck(p *gym.Pack, o Options) (*Check, error) {
	if max(o.Seeds, o.DialSeeds, o.LevelTasks) > maxSeeds {
		return nil, fmt.Errorf("%w: %d seeds, %d at each dial end and %d tasks a level; a check takes at most %d of each: split it by key",
			gym.ErrBadInput, o.Seeds, o.DialSeeds, o.LevelTasks, maxSeeds)
	}
	if o.Families == nil {
		o.Families = p.FamilyNames()
	}
	if o.Seeds == 0 {
		o.Seeds = defaultSeeds
		if o.Full {
			o.Seeds = fullSeeds
		}
	}
	if o.DialSeeds == 0 {
		o.DialSeeds = defaultDialSeeds
	}
	if o.LevelTasks == 0 {
		o.LevelTasks = defaultTasks
	}
	c := &Check{pack: p, opts: o, rows: map[rowKey]*tally{}, dials: map[dialKey]*DialRow{}, failures: []Failure{}}
	for _, a := range Agents(p) {
		if a.Kind != gym.Baseline {
			c.agents = append(c.agents, a)
		}
		if a.Kind == gym.Oracle || a.Kind == gym.Baseline {
			c.references = append(c.references, a)
			c.refs = append(c.refs, Reference{Agent: a.Name, Kind: a.Kind.String()})
		}
	}
	if !slices.ContainsFunc(c.references, func(a gym.Agent) bool { return a.Kind == gym.Oracle }) {
		return nil, fmt.Errorf("%w: %s has no oracle", gym.ErrPack, p.Name)
	}
	var bases []int32
	for i, family := range o.Families {
		base, err := Base(p, family)
		if err != nil {
			return nil, err
		}
		if slices.Contains(o.Families[:i], family) {
			return nil, fmt.Errorf("%w: family %s is named twice", gym.ErrBadInput, family)
		}
		key := o.Key.Sub("check").Sub(family)
		bases = append(bases, int32(len(c.conditions)))
		c.plan(base, true, o.Seeds, key)
		for _, end := range DialEnds(base) {
			c.plan(end, false, o.DialSeeds, key) // the same seeds, so that levels are paired
		}
	}
	c.planLevels(bases, o)
	for range workers {
		c.views = append(c.views, &bench{})
	}
	return c, nil
}

// Base returns the condition that a family is checked at: preset L1 if the pack has it, else its base.
func Base(p *gym.Pack, family string) (gym.Condition, error) {
	if slices.Contains(p.PresetNames(), "L1") {
		return p.Preset(family, "L1")
	}
	return p.Condition(family)
}

// DialEnds returns base with each dial turned to its first and its last level, where that differs from base.
func DialEnds(base gym.Condition) []gym.Condition {
	var out []gym.Condition
	for i := range base.Pack.Dials {
		last := len(base.Pack.Dials[i].Levels) - 1
		for _, level := range []int{0, last} {
			if c := base; int(c.Levels[i]) != level && (level == 0 || last > 0) {
				c.Levels[i] = uint8(level)
				out = append(out, c)
			}
		}
	}
	return out
}

func (c *Check) plan(condition gym.Condition, base bool, seeds int, key gym.Key) {
	c.conditions = append(c.conditions, condition)
	for i := range max(0, seeds) {
		j := job{int32(len(c.conditions) - 1), 0, base, i, key.At(uint64(i)).Seed()}
		c.jobs = append(c.jobs, j)
		c.total += c.count(j)
	}
}

// plays calls f for every agent and view that the job has.
func (c *Check) plays(j job, f func(agent int, v gym.View)) {
	views := c.pack.Views()
	for i := range c.agents {
		switch a := &c.agents[i]; {
		case a.Bound > 0 && !j.base:
		case a.Bound > 0 || a.Kind != gym.NegativeControl:
			for _, v := range views {
				f(i, v)
			}
		default:
			f(i, views[j.index%len(views)])
		}
	}
}

func (c *Check) count(j job) int {
	n := 0
	c.plays(j, func(int, gym.View) { n++ })
	if j.sampled() {
		n += len(c.references)
	}
	return n
}

// sampled says that the references are audited here and meet the twin.
func (j *job) sampled() bool { return j.index%sampleEvery == 0 }

// Step works for about the budget on two goroutines and reports. It may be called until the report says that it is done.
func (c *Check) Step(budget time.Duration) Report {
	began := time.Now()
	// Episodes make much garbage and hold little: to collect less often is a third faster.
	defer debug.SetGCPercent(debug.SetGCPercent(checkGCPercent))
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for time.Since(began) < budget {
				i := int(c.next.Add(1)) - 1
				if i >= len(c.jobs) {
					return
				}
				c.run(i, c.views[w])
			}
		})
	}
	wg.Wait()
	c.spent += time.Since(began)
	return c.report()
}

// bench is one worker's memory: an episode of each view and its snapshot at the start of the task at hand.
type bench struct {
	ep    [2]gym.Episode
	start [2]gym.Snapshot
	twin  gym.Episode
}

func (c *Check) run(i int, b *bench) {
	j := c.jobs[i]
	if j.dial > 0 {
		c.runLevels(i, b)
		return
	}
	task := gym.Task{Condition: c.conditions[j.condition], Seed: j.seed}
	var built [2]error
	views := c.pack.Views()
	for _, v := range views {
		built[v] = b.begin(task, v)
	}
	c.plays(j, func(agent int, v gym.View) {
		a := &c.agents[agent]
		if built[v] != nil {
			c.add(i, agent, v, task, 0, 1, result{err: built[v]})
			return
		}
		variant, n, r := b.play(a, task, v, j.index/len(views))
		c.add(i, agent, v, task, variant, n, r)
	})
	if v := views[j.index/sampleEvery%len(views)]; j.sampled() {
		for k := range c.references {
			if built[v] == nil {
				c.addReference(i, k, v, task, b.refer(&c.references[k], task, v))
			} else {
				c.addReference(i, k, v, task, referred{result: result{err: built[v]}})
			}
		}
	}
}

// begin builds the task in one view. A panic of the pack is an error here: a check must outlive what it checks.
func (b *bench) begin(task gym.Task, v gym.View) (err error) {
	defer recovered(&err)
	if err := b.ep[v].Start(task, gym.Options{View: v}); err != nil {
		return err
	}
	return b.ep[v].Snapshot(&b.start[v])
}

func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("panic: %v", r)
	}
}

// result is how one episode ended.
type result struct {
	pass, void bool
	err        error // what made it broken
	text       string
}

// play plays variant turn%n of the agent, where n is how many the task has; with n = 0 it plays nothing.
func (b *bench) play(a *gym.Agent, task gym.Task, v gym.View, turn int) (variant, n int, r result) {
	defer recovered(&r.err)
	ep := &b.ep[v]
	if err := ep.Restore(&b.start[v], gym.Options{View: v}); err != nil {
		return 0, 1, result{err: err}
	}
	if n = variants(a, ep.Evidence()); n == 0 {
		return 0, 0, r
	}
	variant = turn % n
	actor := a.New(ep.Evidence(), variant, Key(task, a.Name))
	if err := Play(ep, actor); err != nil {
		return variant, n, result{err: err}
	}
	if o := ep.Outcome(); o == gym.Invalid || o == gym.CheckError {
		return variant, n, result{err: fmt.Errorf("%s: %s", o, ep.Why())}
	}
	r.pass = ep.Success()
	if void, ok := actor.(Void); ok {
		r.void = void.Void(ep)
	}
	r.text = fmt.Sprintf("%s after %d of %d calls, %+v, last result %s", ep.Outcome(), ep.Calls(), ep.Limits().Calls, ep.Components(),
		cut(string(ep.Result())))
	return variant, n, r
}

func cut(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}

func (c *Check) add(job, agent int, v gym.View, task gym.Task, variant, n int, r result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	key := rowKey{agent, v, task.Condition}
	t := c.rows[key]
	if t == nil {
		t = &tally{covered: map[int]bool{}}
		c.rows[key] = t
	}
	if n == 0 {
		return
	}
	t.variants = max(t.variants, n)
	t.covered[variant] = true
	a := &c.agents[agent]
	wrong := ""
	switch {
	case r.err != nil:
		t.episodes++
		t.broken++
		wrong = r.err.Error()
	case r.void:
		t.void++
	default:
		t.episodes++
		if r.pass {
			t.passes++
		}
		if r.pass == (a.Kind == gym.NegativeControl) && a.Bound == 0 {
			wrong = r.text
		}
	}
	if wrong == "" {
		return
	}
	c.fail(job, agent, a.Name, variant, v, task, wrong)
}

// fail lists a failure. mu is locked.
func (c *Check) fail(job, agent int, name string, variant int, v gym.View, task gym.Task, wrong string) {
	c.failed++
	c.failures = append(c.failures, Failure{
		Task: task.ID(), Control: name, Variant: variant, View: v.String(), Text: wrong,
		Rerun: Rerun(task, name, variant, v), order: [2]int{job, agent},
	})
	if len(c.failures) > 4*maxFailures {
		c.failures = first(c.failures)
	}
}

// Rerun returns the command that plays one episode again.
func Rerun(task gym.Task, agent string, variant int, v gym.View) string {
	return fmt.Sprintf("provegym run --agent %s --variant %d --view %s '%s'", agent, variant, v, task.ID())
}

// RerunAction returns the command that takes one text action at the start of a task.
func RerunAction(task gym.Task, action []byte) string {
	print := fmt.Sprintf("printf '%%%ds' ''", len(action)) // blank
	if len(action) == 0 || strings.Trim(string(action), " ") != "" {
		var b strings.Builder
		for _, c := range action {
			if c < ' ' || c > '~' || strings.IndexByte(`%\'`, c) >= 0 {
				fmt.Fprintf(&b, `\%03o`, c)
			} else {
				b.WriteByte(c)
			}
		}
		print = "printf '" + strings.ReplaceAll(b.String(), `\045`, "%%") + "'"
	}
	return fmt.Sprintf("%s | provegym play --action - '%s'", print, task.ID())
}

// first keeps the failures of the earliest jobs, so that the list does not depend on which worker was faster.
func first(fs []Failure) []Failure {
	slices.SortFunc(fs, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(a.order[0], b.order[0]), cmp.Compare(a.order[1], b.order[1]), cmp.Compare(a.View, b.View))
	})
	return fs[:min(len(fs), maxFailures)]
}

func (c *Check) report() Report {
	r := Report{OK: c.failed == 0, Done: int(c.next.Load()) >= len(c.jobs), Episodes: c.done, Total: c.total, Failed: c.failed,
		Failures: first(c.failures), Rows: []Row{}, References: []Reference{}, Dials: []DialRow{}}
	c.failures = r.Failures
	if c.done > 0 {
		r.Left = time.Duration(float64(c.spent) / float64(c.done) * float64(r.Total-c.done))
	}
	if !r.Done {
		return r
	}
	for _, condition := range c.conditions {
		for agent := range c.agents {
			for _, v := range c.pack.Views() {
				if t := c.rows[rowKey{agent, v, condition}]; t != nil {
					row := t.row(&c.agents[agent], v, condition)
					r.Rows = append(r.Rows, row)
					r.OK = r.OK && row.OK
				}
			}
		}
	}
	for i := range c.refs {
		if row := c.refs[i].closed(); row.Episodes > 0 {
			r.References = append(r.References, row)
			r.OK = r.OK && row.OK
		}
	}
	r.Dials = c.dialRows()
	for i := range r.Dials {
		r.OK = r.OK && r.Dials[i].OK
	}
	r.Rates = c.rates(&r)
	return r
}

func (t *tally) row(a *gym.Agent, v gym.View, c gym.Condition) Row {
	row := Row{
		Control: a.Name, Kind: a.Kind.String(), Family: c.Family, View: v.String(), Condition: c.ID(),
		Episodes: t.episodes, Passes: t.passes, Broken: t.broken, Void: t.void, Variants: t.variants, Covered: len(t.covered),
		Upper: 1, Bound: a.Bound,
	}
	if t.episodes > 0 {
		row.Lower, row.Upper = stats.Wilson(t.passes, t.episodes, alpha)
	}
	switch {
	case a.Kind != gym.NegativeControl:
		row.OK = t.passes == t.episodes
	case a.Bound > 0:
		row.OK = row.Upper <= a.Bound
	default:
		row.OK = t.passes == 0
	}
	row.OK = row.OK && t.broken == 0
	return row
}

package control

import (
	"fmt"
	"math"

	"provegym/gym"
	"provegym/gym/prove/stats"
)

// Reference is what the oracle or a baseline did on the sampled seeds of all conditions, by turns of the views: whether its passes
// did the work, and whether they rest on the facts. A pair, the task and its twin, counts only if the agent passes both.
type Reference struct {
	Agent       string  `json:"agent"`
	Kind        string  `json:"kind"`
	Episodes    int     `json:"episodes"`
	Passes      int     `json:"passes"`
	Hollow      int     `json:"hollow"`       // passes that an audit flags
	HollowUpper float64 `json:"hollow_upper"` // Wilson's upper bound of their share of the episodes
	Pairs       int     `json:"pairs"`
	PairPasses  int     `json:"pair_passes"`
	OK          bool    `json:"ok"` // hollow passes are below 0.1 % of the episodes; of the oracle: all passes and pairs, and nothing flagged
}

// closed returns the row with its interval and verdict.
func (r Reference) closed() Reference {
	if r.Episodes == 0 {
		return r
	}
	_, r.HollowUpper = stats.Wilson(r.Hollow, r.Episodes, alpha)
	r.OK = float64(r.Hollow) < hollowBound*float64(r.Episodes)
	if r.Kind == gym.Oracle.String() {
		r.OK = r.Hollow == 0 && r.Passes == r.Episodes && r.PairPasses == r.Pairs
	}
	return r
}

// referred is how a reference's episode ended, and its pair.
type referred struct {
	result
	hollow         []gym.AuditResult
	pair, pairPass bool
}

// refer plays a reference on the task and, where there is a twin, on that too if it has passed.
func (b *bench) refer(a *gym.Agent, task gym.Task, v gym.View) (r referred) {
	defer recovered(&r.err)
	_, _, r.result = b.play(a, task, v, 0)
	if r.err != nil {
		return r
	}
	if r.pass {
		r.hollow = b.ep[v].Audits()
	}
	twin := task
	if twin.Pack = task.Pack.Twin; twin.Pack == nil {
		return r
	}
	r.pair = true
	if !r.pass {
		return r
	}
	if r.err = b.twin.Start(twin, gym.Options{View: v}); r.err != nil {
		return r
	}
	if r.err = Play(&b.twin, a.New(b.twin.Evidence(), 0, Key(twin, a.Name))); r.err == nil {
		r.pairPass = b.twin.Success()
	}
	return r
}

func (c *Check) addReference(job, agent int, v gym.View, task gym.Task, r referred) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	a, row := &c.references[agent], &c.refs[agent]
	row.Episodes++
	row.Passes += one(r.pass)
	row.Hollow += one(len(r.hollow) > 0)
	row.Pairs += one(r.pair)
	row.PairPasses += one(r.pairPass)
	wrong := ""
	switch {
	case r.err != nil:
		wrong = r.err.Error()
	case a.Kind != gym.Oracle: // its rates are judged
	case len(r.hollow) > 0:
		wrong = fmt.Sprintf("an audit flags the oracle: %v", r.hollow)
	case r.pair && r.pass && !r.pairPass:
		wrong = "the oracle fails on the twin"
	}
	if wrong != "" {
		c.fail(job, len(c.agents)+agent, a.Name, 0, v, task, wrong)
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// DialRow is what a baseline did at one level of a dial, on the same tasks as at the level before. Compared are the tasks that are
// alike at both: that the oracle finishes in the same words. Where more cases are to be refused, say, it is other work, no harder one.
type DialRow struct {
	Dial   string `json:"dial"`
	Level  string `json:"level"`
	Agent  string `json:"agent"`
	Tasks  int    `json:"tasks"`
	Passes int    `json:"passes"`
	Alike  int    `json:"alike"` // tasks that can be compared with the level before
	More   int    `json:"more"`  // of these it passes now and failed then
	Fewer  int    `json:"fewer"`
	OK     bool   `json:"ok"` // it does not pass significantly more often than at the level before: one-sided sign test at 1 %
}

type dialKey struct{ dial, level, agent int }

// planLevels plans the test of dials: each baseline on the same tasks at every level. bases are the conditions of the families.
func (c *Check) planLevels(bases []int32, o Options) {
	baselines := len(c.references) - 1
	if baselines == 0 {
		return
	}
	for d := range c.pack.Dials {
		for i := range max(0, o.LevelTasks) {
			family := i % len(o.Families)
			seed := o.Key.Sub("levels").Sub(o.Families[family]).At(uint64(i)).Seed() // the same for all dials
			c.jobs = append(c.jobs, job{bases[family], int32(d + 1), false, i, seed})
			c.total += baselines * len(c.pack.Dials[d].Levels)
		}
	}
}

// runLevels plays the baselines on one task at every level of a dial.
func (c *Check) runLevels(i int, b *bench) {
	j := c.jobs[i]
	dial := &c.pack.Dials[j.dial-1]
	before := make([]bool, len(c.references))
	was := ""
	for level := range dial.Levels {
		task := gym.Task{Condition: c.conditions[j.condition], Seed: j.seed}
		err := at(&task.Condition, dial, level)
		if err == nil {
			err = b.begin(task, gym.Text)
		}
		now := ""
		if err == nil {
			now, err = finishWords(task)
		}
		for k := range c.references {
			a := &c.references[k]
			if a.Kind == gym.Oracle {
				continue
			}
			r := result{err: err}
			if err == nil {
				_, _, r = b.play(a, task, gym.Text, 0)
			}
			c.addLevel(i, k, int(j.dial-1), level, task, level > 0 && was == now, before[k], r)
			before[k] = r.pass
		}
		was = now
	}
}

// finishWords returns the words of the finish of the task's plan.
func finishWords(task gym.Task) (words string, err error) {
	defer recovered(&err)
	calls, _ := rehearse(task)
	finish := &calls[len(calls)-1]
	for k, q := range task.Pack.Tools[finish.Tool].Params {
		if v := finish.Arg(k); task.Pack.Types[q.Types[0]].Form == gym.FormEnum && len(v) > 0 {
			words += task.Pack.Spell(v[0]) + " "
		}
	}
	return words, nil
}

// at turns a dial to a level, from where it tells.
func at(c *gym.Condition, dial *gym.Dial, level int) (err error) {
	for _, s := range dial.At {
		if *c, err = c.Set(s.Dial, s.Value); err != nil {
			return err
		}
	}
	*c, err = c.With(dial.Name, level)
	return err
}

func (c *Check) addLevel(job, agent, dial, level int, task gym.Task, alike, before bool, r result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	key := dialKey{dial, level, agent}
	row := c.dials[key]
	if row == nil {
		d := &c.pack.Dials[dial]
		row = &DialRow{Dial: d.Name, Level: d.Levels[level], Agent: c.references[agent].Name}
		c.dials[key] = row
	}
	row.Tasks++
	row.Passes += one(r.pass)
	row.Alike += one(alike)
	row.More += one(alike && r.pass && !before)
	row.Fewer += one(alike && before && !r.pass)
	if r.err != nil {
		c.fail(job, len(c.agents)+agent, c.references[agent].Name, 0, gym.Text, task, r.err.Error())
	}
}

// dialRows returns the rows in order, judged.
func (c *Check) dialRows() []DialRow {
	out := []DialRow{}
	for d := range c.pack.Dials {
		for agent := range c.references {
			for level := range c.pack.Dials[d].Levels {
				if row := c.dials[dialKey{d, level, agent}]; row != nil {
					row.OK = !rises(row.More, row.Fewer)
					out = append(out, *row)
				}
			}
		}
	}
	return out
}

// rises is the one-sided sign test of the pairs that differ, by its normal approximation, at 1 %.
func rises(more, fewer int) bool {
	return more > fewer && float64(more-fewer) > 2.326*math.Sqrt(float64(more+fewer))
}

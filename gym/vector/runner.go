package vector

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"provegym/gym"
)

// A tool that polls its turn ends itself at its deadline; the watchdog comes a grace later, for those that touch nothing.
const (
	watchEvery = 5 * time.Millisecond
	watchGrace = 50 * time.Millisecond
)

// ErrWall says that a pack's code did not return within its wall budget and was left behind.
var ErrWall = errors.New("the pack's code did not return within its wall budget")

// runner is the goroutine of one row of a pack that is not Bounded. It touches its own episode and nothing else of the
// vector, so that it can be left behind at any point.
type runner struct {
	ep   *gym.Episode
	todo chan *op
}

func (v *Vector) newRunner(i int, ep *gym.Episode) *runner {
	r := &runner{ep, make(chan *op, 1)}
	go func() {
		for o := range r.todo {
			err := o.do(r.ep)
			v.mu.Lock()
			mine := v.rows[i].run == r // else it comes back from being left behind
			if mine {
				v.rows[i].err = err
				v.ready[v.rows[i].lane] = append(v.ready[v.rows[i].lane], i)
			}
			v.mu.Unlock()
			if mine {
				v.wake()
			}
		}
	}()
	return r
}

// replace gives the row a fresh episode and runner; the old ones end when, and if, their op returns. The caller holds mu.
func (v *Vector) replace(r *row) {
	close(r.run.todo)
	r.ep = &gym.Episode{}
	r.run = v.newRunner(r.i, r.ep)
	r.op.own = nil // the one left behind may still read it
}

// watch leaves behind the rows whose code has run past its wall budget.
func (v *Vector) watch(now time.Time) {
	for i := range v.rows {
		r := &v.rows[i]
		if !r.flying || !r.ep.Overdue(now.Add(-watchGrace)) {
			continue
		}
		v.mu.Lock() // the op may return as soon as it is abandoned: its runner must not find the row still its own
		left := r.ep.Abandon()
		if left {
			v.replace(r)
			r.err = ErrWall
		}
		v.mu.Unlock()
		if left {
			v.done(i)
		}
	}
}

// Guard runs f, which builds or steps ep, and leaves it behind with ErrWall when the pack's code overruns its wall budget. ep
// must not be used again then. Packs that are Bounded run it directly. A panic is an error.
func Guard(p *gym.Pack, ep *gym.Episode, f func() error) error {
	run := func() (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			}
		}()
		return f()
	}
	if p.Bounded {
		return run()
	}
	done := make(chan error, 1)
	go func() { done <- run() }()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case now := <-tick.C:
			if ep.Overdue(now.Add(-watchGrace)) && ep.Abandon() {
				return ErrWall
			}
		}
	}
}

package vector

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"provegym/gym"
)

// Send starts stepping the rows with their bound actions, which it copies, and returns at once. Tasks for rows whose episode
// had ended are handed out in row order here.
//
// Errors: as Step; gym.ErrBadInput for a row that does not exist or stands there twice; ErrState for one that is in flight.
func (v *Vector) Send(ids []uint32) error {
	if v.closed {
		return fmt.Errorf("%w: the vector is closed", ErrState)
	}
	rows := make([]int, len(ids))
	for k, id := range ids {
		if int(id) >= len(v.rows) {
			return fmt.Errorf("%w: row %d; there are %d, from 0", gym.ErrBadInput, id, len(v.rows))
		}
		if v.rows[id].flying {
			return fmt.Errorf("%w: row %d is in flight: receive it first", ErrState, id)
		}
		rows[k] = int(id)
	}
	slices.Sort(rows)
	for k := 1; k < len(rows); k++ {
		if rows[k] == rows[k-1] {
			return fmt.Errorf("%w: row %d stands in ids twice", gym.ErrBadInput, rows[k])
		}
	}
	if err := v.prepare(rows, true); err != nil {
		return err
	}
	v.dispatch(rows, sent)
	v.flight += len(rows)
	return nil
}

// Recv waits until at least minReady of the rows sent are done (all of them, if fewer were sent) or timeout has passed (below
// 0: never), writes those that are done and their numbers, in row order, to ids, and returns how many. ids must have room for
// all rows.
//
// Errors: ErrState when nothing was sent, gym.ErrBadInput for ids too short, the source's.
func (v *Vector) Recv(ids []uint32, minReady int, timeout time.Duration) (int, error) {
	if v.closed || v.flight == 0 {
		return 0, fmt.Errorf("%w: no rows are in flight: send some first", ErrState)
	}
	if len(ids) < v.flight {
		return 0, fmt.Errorf("%w: ids has room for %d rows and %d are in flight", gym.ErrBadInput, len(ids), v.flight)
	}
	v.await(sent, min(minReady, v.flight), timeout)
	rows := v.take(sent)
	v.flight -= len(rows)
	v.batch = rows
	v.pool.run(len(rows), v.putOne, &v.write)
	v.collect(rows)
	for k, i := range rows {
		ids[k] = uint32(i)
	}
	return len(rows), v.publish()
}

// lane tells rows that Recv awaits from those that the call under way does.
type lane uint8

const (
	sent lane = iota
	here
)

// dispatch starts the ops of rows in the background.
func (v *Vector) dispatch(rows []int, l lane) {
	for _, i := range rows {
		v.rows[i].flying, v.rows[i].lane = true, l
	}
	if !v.cfg.Pack.Bounded {
		for _, i := range rows {
			r := &v.rows[i]
			if !r.op.start && r.broken != nil {
				r.err = nil
				v.done(i)
				continue
			}
			r.run.todo <- &r.op
		}
		return
	}
	// One goroutine for each worker, not for each row: starting one costs more than most steps.
	var next atomic.Int64
	chunk := max(1, len(rows)/(8*v.pool.size()))
	for range min(v.pool.size(), len(rows)) {
		go func() {
			for {
				end := int(next.Add(int64(chunk)))
				from := end - chunk
				if from >= len(rows) {
					return
				}
				for _, i := range rows[from:min(end, len(rows))] {
					r := &v.rows[i]
					r.err = nil
					if r.op.start || r.broken == nil {
						r.err = r.op.do(r.ep)
					}
					v.done(i)
				}
			}
		}()
	}
}

// done puts row i on the ready list.
func (v *Vector) done(i int) {
	v.mu.Lock()
	l := v.rows[i].lane
	v.ready[l] = append(v.ready[l], i)
	v.mu.Unlock()
	v.wake()
}

func (v *Vector) wake() {
	select {
	case v.notify <- struct{}{}:
	default:
	}
}

// await waits until n rows of the lane are ready or timeout has passed, and watches over packs that are not Bounded.
func (v *Vector) await(l lane, n int, timeout time.Duration) {
	var late, tick <-chan time.Time
	if timeout >= 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		late = t.C
	}
	if !v.cfg.Pack.Bounded {
		t := time.NewTicker(watchEvery)
		defer t.Stop()
		tick = t.C
	}
	for {
		v.mu.Lock()
		have := len(v.ready[l])
		v.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-v.notify:
		case now := <-tick:
			v.watch(now)
		case <-late:
			return
		}
	}
}

// take empties the lane's ready list, in row order. The rows are no longer in flight.
func (v *Vector) take(l lane) []int {
	v.mu.Lock()
	rows := append(v.taken[l][:0], v.ready[l]...)
	v.ready[l] = v.ready[l][:0]
	v.mu.Unlock()
	slices.Sort(rows)
	for _, i := range rows {
		v.rows[i].flying = false
	}
	v.taken[l] = rows
	return rows
}

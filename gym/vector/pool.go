package vector

import (
	"runtime"
	"sync/atomic"
	"time"
)

// pool shares a loop among persistent workers. Waking a parked goroutine costs 20 to 30 µs here, as much as hundreds of steps,
// so workers spin for about as long before they park, the caller always works too, and a batch that is cheaper than
// inlineBelow is not shared at all: two cores that fight over a microsecond of work lose.
type pool struct {
	n, chunk int
	f        func(k int)
	next     atomic.Int64

	gate    atomic.Uint64 // odd while a batch is open; workers that see it closed stay out
	active  atomic.Int64  // workers inside a batch
	waiting atomic.Bool   // the caller sleeps until active is 0
	idle    chan struct{}
	helpers []helper
}

type helper struct {
	parked atomic.Bool
	wake   chan struct{}
	_      [48]byte // a cache line of its own
}

const (
	inlineBelow = 10_000 // ns
	spins       = 20_000 // about 30 µs
)

// cost is the running mean of what one row costs, in nanoseconds; it steers where work is done, never what it does.
type cost struct{ ns float64 }

func (c *cost) add(ns float64) {
	if c.ns == 0 {
		c.ns = ns
	}
	c.ns += (ns - c.ns) / 8
}

func newPool(workers int) *pool {
	p := &pool{helpers: make([]helper, workers-1), idle: make(chan struct{}, 1)}
	for i := range p.helpers {
		h := &p.helpers[i]
		h.wake = make(chan struct{}, 1)
		go p.help(h)
	}
	return p
}

// size is the number of workers, the caller among them.
func (p *pool) size() int { return len(p.helpers) + 1 }

// run calls f for 0 to n-1 and returns when all have returned. f must not panic.
func (p *pool) run(n int, f func(k int), c *cost) {
	began := time.Now()
	if len(p.helpers) == 0 || float64(n)*c.ns < inlineBelow {
		for k := range n {
			f(k)
		}
		if n > 0 {
			c.add(float64(time.Since(began)) / float64(n))
		}
		return
	}
	p.n, p.f, p.chunk = n, f, max(1, n/(4*p.size()))
	p.next.Store(0)
	p.gate.Add(1)
	for i := range p.helpers {
		if h := &p.helpers[i]; h.parked.CompareAndSwap(true, false) {
			h.wake <- struct{}{}
		}
	}
	p.work()
	p.gate.Add(1)
	p.wait()
	c.add(float64(time.Since(began)) * float64(min(p.size(), n)) / float64(n))
}

func (p *pool) work() {
	for {
		end := int(p.next.Add(int64(p.chunk)))
		if end-p.chunk >= p.n {
			return
		}
		for k := end - p.chunk; k < min(end, p.n); k++ {
			p.f(k)
		}
	}
}

// wait returns when no helper is inside the batch, which is closed.
func (p *pool) wait() {
	for k := 0; p.active.Load() > 0; k++ {
		if k&63 == 63 {
			runtime.Gosched()
		}
		if k < spins {
			continue
		}
		p.waiting.Store(true)
		if p.active.Load() == 0 && p.waiting.CompareAndSwap(true, false) {
			return
		}
		<-p.idle // perhaps from a helper that left the batch before late: look again
	}
}

func (p *pool) help(h *helper) {
	var last uint64
	for {
		g := p.gate.Load()
		for k := 0; g == last || g&1 == 0; g = p.gate.Load() {
			if g == closed {
				return
			}
			if k++; k&63 == 63 {
				runtime.Gosched()
			}
			if k < spins {
				continue
			}
			h.parked.Store(true)
			if g := p.gate.Load(); g == closed || g != last && g&1 == 1 {
				if !h.parked.CompareAndSwap(true, false) {
					<-h.wake
				}
			} else {
				<-h.wake
			}
			k = 0
		}
		// Only a helper that is counted as active before the gate closes may read the batch.
		p.active.Add(1)
		if p.gate.Load() == g {
			p.work()
		}
		if p.active.Add(-1) == 0 && p.waiting.CompareAndSwap(true, false) {
			p.idle <- struct{}{}
		}
		last = g
	}
}

// closed is even: no batch is open.
const closed = ^uint64(0) - 1

func (p *pool) close() {
	p.gate.Store(closed)
	for i := range p.helpers {
		if h := &p.helpers[i]; h.parked.CompareAndSwap(true, false) {
			h.wake <- struct{}{}
		}
	}
}

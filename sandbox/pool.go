package sandbox

import (
	"fmt"
	"sync"
	"time"
)

// Pool keeps boxes of one Spec ready, so that an episode does not wait for its box to be made. Each is used once and is as
// fresh as any other. A pool of a sandbox with a warm interpreter keeps its interpreters forked, too.
type Pool struct {
	s     *Sandbox
	spec  Spec
	boxes chan *Box
	stop  chan struct{}
	done  sync.WaitGroup
	once  sync.Once
}

// NewPool starts to make boxes, until size are ready.
//
// Errors: ErrInvalid.
func (s *Sandbox) NewPool(spec Spec, size int) (*Pool, error) {
	var problems problems
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if size < 1 || size > s.options.MaxBoxes {
		problems.add("size is %d; it must be 1 to %d (Options.MaxBoxes)", size, s.options.MaxBoxes)
	}
	if err := problems.err("pool"); err != nil {
		return nil, err
	}
	p := &Pool{s: s, spec: spec, boxes: make(chan *Box, size), stop: make(chan struct{})}
	p.done.Add(1)
	go p.fill()
	return p, nil
}

// fill makes boxes one after another: two at once would be no faster, and it must not outrun those that are being used.
func (p *Pool) fill() {
	defer p.done.Done()
	for {
		b, err := p.prepare()
		if err != nil { // the host is short of something, or the zygote has died; Get will tell if it stays so
			select {
			case <-p.stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			continue
		}
		select {
		case p.boxes <- b:
		case <-p.stop:
			b.Close()
			return
		}
	}
}

func (p *Pool) prepare() (*Box, error) {
	b, err := p.s.NewBox(p.spec)
	if err != nil {
		return nil, err
	}
	if err = b.Ready(); err == nil && p.s.options.Python != nil {
		err = b.Arm()
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Get gives a box that the caller closes: one that is ready, or a new one if none is.
//
// Errors: as of NewBox; ErrClosed after Close.
func (p *Pool) Get() (*Box, error) {
	for {
		select {
		case <-p.stop:
			return nil, fmt.Errorf("%w: the pool", ErrClosed)
		default:
		}
		select {
		case b, open := <-p.boxes:
			if !open { // since the look above
				return nil, fmt.Errorf("%w: the pool", ErrClosed)
			}
			if b.z.alive() {
				return b, nil
			}
			b.Close() // its zygote died
		default:
			return p.s.NewBox(p.spec)
		}
	}
}

// Len is how many boxes are ready now.
func (p *Pool) Len() int { return len(p.boxes) }

// Close closes the boxes that nobody has taken.
func (p *Pool) Close() error {
	p.once.Do(func() {
		close(p.stop)
		p.done.Wait()
		close(p.boxes)
		for b := range p.boxes {
			b.Close()
		}
	})
	return nil
}

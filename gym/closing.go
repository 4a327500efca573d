package gym

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
)

// LateRecorder is a Recorder that computes the end of an episode itself: digest and audits cost as much as several steps, and a
// recorder has a goroutine of its own. It gets EndLater in place of End, but for episodes that were abandoned.
type LateRecorder interface {
	Recorder
	// EndLater is End. The recorder calls c.End once, on any goroutine, to get what End would have been given.
	EndLater(id uint64, c *Closing)
}

// Closing is an episode that has ended and whose end is still to be computed. World and log are the episode's own, which
// changes nothing after its end; should it start anew first, it leaves them to the Closing and takes spare memory.
type Closing struct {
	progress
	scratch Digester
	spare   memory
	side    atomic.Int32 // which of the two, the episode and the recorder, is through with it
}

// memory is what an episode starts anew in.
type memory struct {
	pack  *Pack
	world World
	log   Log
}

const (
	neither int32 = iota
	episodeLeft
	recorderDone
)

var closings = sync.Pool{New: func() any { return &Closing{} }}

// End returns the end as recorders get it. A pack whose digest or audits panic is an error, ErrPack.
func (c *Closing) End() (end EpisodeEnd, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: digest or audits of %s panicked: %v", ErrPack, c.task.ID(), r)
		}
		if c.side.Swap(recorderDone) == episodeLeft {
			c.spare = memory{c.task.Pack, c.world, c.log}
			c.free()
		}
	}()
	return c.ending(&c.scratch), nil
}

func (c *Closing) free() {
	c.progress = progress{}
	closings.Put(c)
}

// share hands the ended episode to a Closing.
func (e *Episode) share() *Closing {
	c := closings.Get().(*Closing)
	c.progress = e.progress
	c.actions = nil
	c.side.Store(neither)
	e.closing = c
	return c
}

// reclaim makes the episode's memory its own again, before it is written to.
func (e *Episode) reclaim() {
	c := e.closing
	if c == nil {
		return
	}
	e.closing = nil
	spare := c.spare
	c.spare = memory{}
	if c.side.Swap(episodeLeft) == recorderDone {
		c.spare = spare
		c.free()
		return
	}
	e.world, e.log = spare.world, spare.log
	if spare.pack != e.pack {
		e.world = nil
	}
}

// evidence, audits, digests and the end are computed from progress alone, by the episode or by a recorder. d is memory to work
// in.

func (p *progress) evidence() *Evidence {
	return &Evidence{Pack: p.task.Pack, Task: p.task, Built: p.built, First: p.first, Last: p.world, Log: &p.log, Finish: p.finish}
}

func (p *progress) audits() []AuditResult {
	pack := p.task.Pack
	if len(pack.Audits) == 0 {
		return nil
	}
	var out []AuditResult
	ev := p.evidence()
	for i := range pack.Audits {
		a := &pack.Audits[i]
		if flagged, why := a.Flag(ev); flagged {
			out = append(out, AuditResult{a.Name, why})
		}
	}
	return out
}

// explain is of an episode that has ended; nil if its pack does not say. With an error it is all but the decisive call.
func (p *progress) explain() (*Explanation, error) {
	if p.built.Explain == nil {
		return nil, nil
	}
	x := p.built.Explain(p.evidence())
	if x.Required == nil {
		x.Required = []Fact{}
	}
	if x.Unrequested == nil {
		x.Unrequested = []string{}
	}
	if p.task.Pack.Attribute == nil || p.components.Success() || p.outcome != Scored && p.outcome != Truncated {
		return &x, nil
	}
	why, err := p.task.Pack.Attribute(p.task, &p.log)
	if err != nil {
		return &x, fmt.Errorf("attribute %s: %w", p.task.ID(), err)
	}
	x.Decisive = &why
	return &x, nil
}

func (p *progress) digest(d *Digester) Digest {
	h := p.logDigest(d, nil)
	w := digestWorld(d, p.world)
	d.reset("episode")
	d.Bytes(h[:])
	d.Bytes(w[:])
	d.Int(int64(p.outcome))
	d.Int(int64(math.Float64bits(p.reward)))
	return d.Sum()
}

func (p *progress) logDigest(d *Digester, each func(i int, h Digest)) Digest {
	var id [256]byte
	d.reset("start")
	d.Bytes(p.task.appendID(id[:0]))
	d.Text(p.task.Pack.Hash)
	return p.log.chain(d, d.Sum(), each)
}

func (p *progress) ending(d *Digester) EpisodeEnd {
	end := EpisodeEnd{p.outcome, p.limit, p.why, p.components, p.reward, p.steps, p.calls, p.digest(d), p.audits(), nil}
	if !p.task.Pack.Deterministic && (p.outcome == Scored || p.outcome == Truncated) {
		end.Explanation, _ = p.explain() // without the decisive call, where the pack fails to find it
	}
	return end
}

package trace

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"

	"provegym/gym"
)

const (
	commitBytes = 1 << 20
	commitAge   = 200 * time.Millisecond
	queueBytes  = 64 << 20
	spareBytes  = 8 << 20 // of empty buffers kept for reuse
	rowBytes    = 512     // what a message weighs beside its steps

	segmentBits = 20 // of a segment's id, below the episode's
	// S2 takes less than a tenth of zstd's time on segments of a few kilobytes, for 30 bytes a text step against 23 and 8 a
	// structured step against 9: checksums do not compress.
	codecS2 = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// part is one segment on its way.
type part struct {
	seq, steps int
	raw        []byte
}

// live is an episode that runs, or whose end waits to be written.
type live struct {
	trace   *Trace
	id      uint64
	start   gym.EpisodeStart // Actions is a copy
	prefix  int              // steps in start.Actions
	started int64            // microseconds
	last    part             // the closing segment, until End
	end     gym.EpisodeEnd
	ended   int64
	stored  bool // the row is there; the writing goroutine's own
}

// message is one thing to write: a segment, the end of an episode with its last segment, or an operation.
type message struct {
	ep   *live
	part part
	end  bool
	op   func(*file) error
	done chan<- error
}

func (m *message) size() int { return len(m.part.raw) + rowBytes }

// store is one file being written: a bounded queue and the goroutine that empties it.
type store struct {
	path       string
	durability Durability
	file       *file // the writing goroutine's own
	refs       int   // guarded by stores

	mu     sync.Mutex // guards what follows
	room   sync.Cond  // the queue has shrunk, or the store has failed
	queue  []message
	bytes  int // in the queue or being written
	limit  int // of bytes
	urgent int // operations in the queue
	shut   bool
	err    error
	live   map[uint64]*live
	nextID uint64
	ended  int64 // episodes whose end was written
	spare  [][]byte
	spares int // their bytes
	idle   []*live

	kick  chan struct{} // something changed for the writing goroutine
	done  chan struct{} // it has returned
	batch []message     // its own, as are those below
	box   []byte
	row   []any
	ids   map[gym.Condition]any // condition ids and labels that repeat, as the driver takes them
	words map[string]any
}

func openStore(path string, d Durability) (*store, error) {
	f, err := openFile(path, d)
	if err != nil {
		return nil, err
	}
	rows, err := f.query(`SELECT coalesce(max(id), 0) FROM episode`, 1)
	if err != nil {
		return nil, errors.Join(explain(path, err), f.close())
	}
	s := &store{path: path, durability: d, file: f, limit: queueBytes, live: map[uint64]*live{},
		nextID: uint64(rows[0][0].(int64)) + 1, kick: make(chan struct{}, 1), done: make(chan struct{}),
		ids: map[gym.Condition]any{}, words: map[string]any{}}
	s.room.L = &s.mu
	go s.write()
	return s, nil
}

func (s *store) begin(t *Trace, start gym.EpisodeStart, now int64) uint64 {
	prefix := 0
	for rest := start.Actions; len(rest) > 0; prefix++ {
		var err error
		if _, rest, err = gym.NextStep(start.View, rest); err != nil {
			panic(err) // the core encoded them
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var ep *live
	if n := len(s.idle); n > 0 {
		ep, s.idle = s.idle[n-1], s.idle[:n-1]
	} else {
		ep = &live{}
	}
	*ep = live{trace: t, id: s.nextID, start: start, prefix: prefix, started: now}
	ep.start.Actions = nil
	if prefix > 0 {
		ep.start.Actions = slices.Clone(start.Actions)
	}
	s.nextID++
	s.live[ep.id] = ep
	return ep.id
}

func (s *store) segment(id uint64, p part, closing bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	ep := s.episode(id)
	if closing {
		ep.last = p
	} else {
		s.put(message{ep: ep, part: p})
	}
	n := len(s.spare)
	if n == 0 {
		return make([]byte, 0, 4096)
	}
	b := s.spare[n-1]
	s.spare = s.spare[:n-1]
	s.spares -= cap(b)
	return b
}

func (s *store) end(id uint64, e gym.EpisodeEnd, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ep := s.episode(id)
	ep.end, ep.ended = e, now
	delete(s.live, id)
	s.put(message{ep: ep, part: ep.last, end: true})
}

func (s *store) episode(id uint64) *live {
	ep := s.live[id]
	if ep == nil {
		panic(fmt.Sprintf("trace: episode %d is not running", id))
	}
	return ep
}

// put queues a message, waiting for room. mu is locked.
func (s *store) put(m message) {
	for s.bytes > s.limit && s.err == nil {
		s.room.Wait()
	}
	if s.shut {
		panic(afterClose)
	}
	before := s.bytes
	s.queue = append(s.queue, m)
	s.bytes += m.size()
	if m.done != nil {
		s.urgent++
	}
	// Waking the writer costs more than the rest of a step: once when there is something, and once when there is enough.
	if len(s.queue) == 1 || m.done != nil || before < commitBytes && s.bytes >= commitBytes {
		s.wake()
	}
}

func (s *store) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// do commits everything queued, then runs op in a transaction of its own.
func (s *store) do(op func(*file) error) error {
	done := make(chan error, 1)
	s.mu.Lock()
	if s.shut {
		s.mu.Unlock()
		return fmt.Errorf("%w: %s", ErrClosed, s.path)
	}
	s.put(message{op: op, done: done})
	s.mu.Unlock()
	return <-done
}

func (s *store) flush() (int64, error) {
	if err := s.do(nil); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended, nil
}

func (s *store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = fmt.Errorf("recording stopped: %w", err)
	}
	s.room.Broadcast()
}

func (s *store) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// forget drops the running episodes of a trace that closes.
func (s *store) forget(t *Trace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, ep := range s.live {
		if ep.trace == t {
			delete(s.live, id)
		}
	}
}

func (s *store) close() error {
	s.mu.Lock()
	s.shut = true
	s.wake()
	s.mu.Unlock()
	<-s.done
	return s.file.close()
}

// write is the writing goroutine.
func (s *store) write() {
	defer close(s.done)
	for batch := s.next(); len(batch) > 0; batch = s.next() {
		err, opErr := s.failure(), error(nil)
		if err == nil {
			if err = s.commit(batch); err != nil {
				s.fail(explain(s.path, err))
				err = s.failure()
			}
		}
		last := &batch[len(batch)-1]
		if err == nil && last.op != nil {
			opErr = explain(s.path, s.file.transact(func() error { return last.op(s.file) }))
		}
		done := last.done
		s.recycle(batch)
		if done != nil {
			done <- errors.Join(err, opErr)
		}
	}
}

// next returns what the next transaction holds: about 1 MiB, up to an operation, after 200 ms whatever there is. It returns
// nothing when the store is shut.
func (s *store) next() []message {
	var deadline <-chan time.Time
	late := false
	for {
		s.mu.Lock()
		n := len(s.queue)
		if n > 0 && (late || s.urgent > 0 || s.bytes >= commitBytes) {
			s.pop()
			s.mu.Unlock()
			return s.batch
		}
		shut := s.shut
		s.mu.Unlock()
		if n == 0 && shut {
			return nil
		}
		if n > 0 && deadline == nil {
			deadline = time.After(commitAge)
		}
		select {
		case <-s.kick:
		case <-deadline:
			late = true
		}
	}
}

func (s *store) pop() {
	size, n := 0, 0
	for n < len(s.queue) && size < commitBytes {
		size += s.queue[n].size()
		n++
		if s.queue[n-1].done != nil {
			s.urgent--
			break
		}
	}
	s.batch = append(s.batch[:0], s.queue[:n]...)
	s.queue = slices.Delete(s.queue, 0, n)
}

// recycle makes room for what was written, and keeps its memory for reuse.
func (s *store) recycle(batch []message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range batch {
		m := &batch[i]
		s.bytes -= m.size()
		if m.end {
			s.ended++
			s.idle = append(s.idle, m.ep)
		}
		if b := m.part.raw; cap(b) > 0 && s.spares+cap(b) <= spareBytes {
			s.spare, s.spares = append(s.spare, b[:0]), s.spares+cap(b)
		}
	}
	clear(batch)
	s.room.Broadcast()
}

// commit writes the episodes of a batch in one transaction.
func (s *store) commit(batch []message) error {
	if batch[0].ep == nil {
		return nil // an operation alone
	}
	return s.file.transact(func() error {
		for i := range batch {
			if m := &batch[i]; m.ep != nil {
				if err := s.save(m); err != nil {
					return fmt.Errorf("write an episode of %s: %w", m.ep.start.Task.ID(), err)
				}
			}
		}
		return nil
	})
}

const putEpisode = `INSERT INTO episode(id, run, condition, seed, mode, view, purpose, arm, look, cluster, sample, slot, grp,
	iteration, plan, parent, parent_step, started_us, outcome, limit_hit, success, goals, path, collateral, committed, reward,
	steps, calls, digest, why, ended_us, mark)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25,
	?26, ?27, ?28, ?29, ?30, ?31, ?32)
	ON CONFLICT(id) DO UPDATE SET outcome = ?19, limit_hit = ?20, success = ?21, goals = ?22, path = ?23, collateral = ?24,
	committed = ?25, reward = ?26, steps = ?27, calls = ?28, digest = ?29, why = ?30, ended_us = ?31, mark = ?32`

// save writes one message of an episode.
func (s *store) save(m *message) error {
	ep := m.ep
	first := !ep.stored
	if first || m.end {
		if err := s.saveEpisode(ep, m.end); err != nil {
			return err
		}
		ep.stored = true
	}
	if first && ep.prefix > 0 {
		if err := s.saveSegment(ep.id, 0, ep.prefix, ep.start.Actions); err != nil {
			return err
		}
	}
	if m.part.steps > 0 {
		if err := s.saveSegment(ep.id, m.part.seq+1, m.part.steps, m.part.raw); err != nil {
			return err
		}
	}
	if m.end {
		for _, a := range ep.end.Audits {
			if _, err := s.file.exec(`INSERT INTO audit(episode, name, why) VALUES (?, ?, ?)`, int64(ep.id), a.Name, a.Why); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *store) saveEpisode(ep *live, ended bool) error {
	st, e := &ep.start, &ep.end
	l := &st.Labels
	var plan, parent, reward, digest, endedUS driver.Value
	if l.Purpose == sealed {
		plan = ep.trace.plan
	}
	if st.Parent != 0 {
		parent = int64(st.Parent)
	}
	if ended {
		endedUS = ep.ended
		if e.Outcome == gym.Scored || e.Outcome == gym.Truncated {
			reward = e.Reward
		}
		if e.Digest != (gym.Digest{}) {
			digest = e.Digest[:]
		}
	}
	c := &e.Components
	condition := recall(s.ids, st.Task.Condition, gym.Condition.ID)
	word := func(w string) any { return recall(s.words, w, func(w string) string { return w }) }
	s.row = append(s.row[:0], int64(ep.id), ep.trace.run, condition, strconv.FormatUint(st.Task.Seed, 10),
		int64(st.Mode), int64(st.View), word(l.Purpose), word(l.Arm), word(l.Look), word(l.Cluster), l.Sample, l.Slot, l.Group, l.Iteration,
		plan, parent, st.ParentStep, ep.started,
		int64(e.Outcome), int64(e.Limit), bit(e.Outcome == gym.Scored && c.Success()), bit(c.Goals), bit(c.Path), bit(c.Collateral),
		bit(c.Commit), reward, e.Steps, e.Calls, digest, e.Why, endedUS, ep.trace.mark)
	_, err := s.file.exec(putEpisode, s.row...)
	return err
}

// recall returns text(key), from memory if it can.
func recall[K comparable](memory map[K]any, key K, text func(K) string) any {
	v, ok := memory[key]
	if !ok {
		if len(memory) >= 4096 {
			clear(memory)
		}
		v = text(key)
		memory[key] = v
	}
	return v
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (s *store) saveSegment(id uint64, number, steps int, raw []byte) error {
	if number >= 1<<segmentBits {
		return fmt.Errorf("an episode may have %d segments", 1<<segmentBits-1)
	}
	if n := s2.MaxEncodedLen(len(raw)); n > len(s.box) {
		s.box = make([]byte, n)
	}
	data := s2.Encode(s.box, raw)
	s.row = append(s.row[:0], int64(id)<<segmentBits|int64(number), steps, len(raw), codecS2,
		int64(crc32.Checksum(raw, castagnoli)), data)
	_, err := s.file.exec(`INSERT INTO segment(id, steps, raw_len, codec, crc, data) VALUES (?, ?, ?, ?, ?, ?)`, s.row...)
	return err
}

package trace

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
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
	closeSome   = 32      // ended episodes that are worth waking the writer for, so that their memory comes back warm
	maxClosing  = 4096    // ended episodes whose memory the queue may hold

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
	boxed   any              // id as the driver takes it
	start   gym.EpisodeStart // Actions is a copy
	prefix  int              // steps in start.Actions
	started int64            // microseconds
	last    part             // the closing segment, until End
	end     gym.EpisodeEnd
	closing *gym.Closing // end is still to be computed from it; the writing goroutine's own once queued
	endErr  error        // it could not be
	ended   int64
	stored  bool // the row is there; the writing goroutine's own
	digest  any  // end.Digest as the driver takes it, in memory that the next episode here uses again
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
	open   int // messages, in the queue or being written, whose end is still to be computed
	closed int // messages at the head of the queue whose end has been computed
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
	ends  []*live

	episodes, segments pending
	boxes              [manyRows][]byte // of segments

	ids     map[gym.Condition]any // condition ids, labels and numbers that repeat, as the driver takes them
	words   map[string]any
	numbers map[int64]any
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
		ids: map[gym.Condition]any{}, words: map[string]any{}, numbers: map[int64]any{},
		episodes: pending{insert: putEpisode}, segments: pending{insert: putSegment}}
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
	*ep = live{trace: t, id: s.nextID, boxed: int64(s.nextID), start: start, prefix: prefix, started: now, digest: ep.digest}
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

// end takes the end of an episode, or what it is to be computed from.
func (s *store) end(id uint64, e gym.EpisodeEnd, c *gym.Closing, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ep := s.episode(id)
	ep.end, ep.closing, ep.ended = e, c, now
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
	s.await()
	if s.shut {
		panic(afterClose)
	}
	before := s.bytes
	s.queue = append(s.queue, m)
	s.bytes += m.size()
	some := false
	if m.end && m.ep.closing != nil {
		s.open++
		some = s.open%closeSome == 0
	}
	if m.done != nil {
		s.urgent++
	}
	// Waking the writer costs more than the rest of a step: once when there is something, and once when there is enough.
	if len(s.queue) == 1 || m.done != nil || some || before < commitBytes && s.bytes >= commitBytes {
		s.wake()
	}
}

// await waits for room in the queue. mu is locked.
func (s *store) await() {
	for (s.bytes > s.limit || s.open > maxClosing) && s.err == nil {
		s.room.Wait()
	}
}

// begun queues the rows of those episodes that run and may not have been written yet, so that others can refer to them.
func (s *store) begun(ids []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		s.await()
		if ep := s.live[id]; ep != nil && !s.shut {
			s.put(message{ep: ep})
		}
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
		if s.closeQueued() {
			continue
		}
		select {
		case <-s.kick:
		case <-deadline:
			late = true
		}
	}
}

// closeQueued computes the ends of episodes in the queue, up to closeSome, and reports whether there were any messages to look
// at.
func (s *store) closeQueued() bool {
	s.mu.Lock()
	s.ends = s.ends[:0]
	from := s.closed
	for ; s.closed < len(s.queue) && len(s.ends) < closeSome; s.closed++ {
		if m := &s.queue[s.closed]; m.end && m.ep.closing != nil {
			s.ends = append(s.ends, m.ep)
		}
	}
	some := s.closed > from
	s.mu.Unlock()
	s.finish()
	return some
}

// finish computes the ends in s.ends.
func (s *store) finish() {
	for _, ep := range s.ends {
		ep.end, ep.endErr = ep.closing.End()
		ep.closing = nil
	}
	if len(s.ends) > 0 {
		s.mu.Lock()
		s.open -= len(s.ends)
		s.room.Broadcast()
		s.mu.Unlock()
	}
	s.ends = s.ends[:0]
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
	s.closed = max(0, s.closed-n)
}

// recycle makes room for what was written, and keeps its memory for reuse.
func (s *store) recycle(batch []message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range batch {
		m := &batch[i]
		s.bytes -= m.size()
		if m.end && m.ep.closing != nil { // the store has failed
			s.open--
		}
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
	for i := range batch {
		if m := &batch[i]; m.end && m.ep.closing != nil {
			s.ends = append(s.ends, m.ep)
		}
	}
	s.finish()
	s.episodes.args, s.segments.args = s.episodes.args[:0], s.segments.args[:0]
	return s.file.transact(func() error {
		for i := range batch {
			if m := &batch[i]; m.ep != nil {
				if err := s.save(m); err != nil {
					return err
				}
			}
		}
		if err := s.flushRows(&s.episodes); err != nil {
			return err
		}
		return s.flushRows(&s.segments)
	})
}

// putEpisode writes the row of an episode, or what its end adds to the row of one that was still running.
var putEpisode = newInsert("episode", "(?"+strings.Repeat(", ?", 31)+")", `ON CONFLICT(id) DO UPDATE SET outcome = excluded.outcome, limit_hit = excluded.limit_hit,
	success = excluded.success, goals = excluded.goals, path = excluded.path, collateral = excluded.collateral,
	committed = excluded.committed, reward = excluded.reward, steps = excluded.steps, calls = excluded.calls,
	digest = excluded.digest, why = excluded.why, ended_us = excluded.ended_us, mark = excluded.mark`,
	`id, run, condition, seed, mode, view, purpose, arm, look, cluster, sample, slot, grp, iteration, plan, parent, parent_step,
	started_us, outcome, limit_hit, success, goals, path, collateral, committed, reward, steps, calls, digest, why, ended_us, mark`)

var putSegment = newInsert("segment", fmt.Sprintf("(? << %d | ?, ?, ?, ?, ?, ?)", segmentBits), "", "id, steps, raw_len, codec, crc, data")

// insert is an INSERT of one row, and of several: calling SQLite costs as much as a row.
type insert struct {
	table     string
	width     int // arguments of a row
	one, many string
}

const manyRows = 8

func newInsert(table, row, tail, names string) insert {
	head := "INSERT INTO " + table + "(" + names + ") VALUES " + row
	tail = " " + tail
	return insert{table, strings.Count(row, "?"), head + tail, head + strings.Repeat(", "+row, manyRows-1) + tail}
}

// pending are rows of an insert that are still to be written.
type pending struct {
	insert
	args []any
}

// add takes the arguments of one row more.
func (s *store) add(r *pending, args ...any) error {
	r.args = append(r.args, args...)
	if len(r.args) < manyRows*r.width {
		return nil
	}
	if _, err := s.file.exec(r.many, r.args...); err != nil {
		return s.flushRows(r) // one by one, so that the error names its row
	}
	r.args = r.args[:0]
	return nil
}

// flushRows writes what add has kept back.
func (s *store) flushRows(r *pending) error {
	for at := 0; at < len(r.args); at += r.width {
		if _, err := s.file.exec(r.one, r.args[at:at+r.width]...); err != nil {
			return fmt.Errorf("write %s %v: %w", r.table, r.args[at:at+4], err)
		}
	}
	r.args = r.args[:0]
	return nil
}

// save writes one message of an episode.
func (s *store) save(m *message) error {
	ep := m.ep
	if m.end && ep.endErr != nil {
		return ep.endErr
	}
	first := !ep.stored
	if first || m.end {
		if err := s.saveEpisode(ep, m.end); err != nil {
			return err
		}
		ep.stored = true
	}
	if first && ep.prefix > 0 {
		if err := s.saveSegment(ep.boxed, 0, ep.prefix, ep.start.Actions); err != nil {
			return err
		}
	}
	if m.part.steps > 0 {
		if err := s.saveSegment(ep.boxed, m.part.seq+1, m.part.steps, m.part.raw); err != nil {
			return err
		}
	}
	if m.end {
		for _, a := range ep.end.Audits {
			if _, err := s.file.exec(`INSERT INTO audit(episode, name, why) VALUES (?, ?, ?)`, int64(ep.id), a.Name, a.Why); err != nil {
				return err
			}
		}
		if x := ep.end.Explanation; x != nil {
			text, err := json.Marshal(x)
			if err == nil {
				_, err = s.file.exec(`INSERT INTO explanation(episode, text) VALUES (?, ?)`, int64(ep.id), string(text))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *store) saveEpisode(ep *live, ended bool) error {
	st, e := &ep.start, &gym.EpisodeEnd{}
	if ended {
		e = &ep.end // not before: another goroutine may be writing it
	}
	l := &st.Labels
	var plan, parent, reward, digest, endedUS driver.Value
	if l.Purpose == sealed {
		plan = ep.trace.plan
	}
	if st.Parent != 0 {
		parent = int64(st.Parent)
	}
	if ended {
		endedUS = s.number(ep.ended)
		if e.Outcome == gym.Scored || e.Outcome == gym.Truncated {
			reward = e.Reward
		}
		if e.Digest != (gym.Digest{}) {
			if ep.digest == nil {
				ep.digest = make([]byte, len(e.Digest))
			}
			copy(ep.digest.([]byte), e.Digest[:])
			digest = ep.digest
		}
	}
	c := &e.Components
	condition := recall(s.ids, st.Task.Condition, func(c gym.Condition) any { return c.ID() })
	word := func(w string) any { return recall(s.words, w, func(w string) any { return w }) }
	return s.add(&s.episodes, ep.boxed, ep.trace.run, condition, strconv.FormatUint(st.Task.Seed, 10),
		int64(st.Mode), int64(st.View), word(l.Purpose), word(l.Arm), word(l.Look), word(l.Cluster), s.number(l.Sample),
		s.number(l.Slot), s.number(l.Group), s.number(l.Iteration), plan, parent, st.ParentStep, s.number(ep.started),
		int64(e.Outcome), int64(e.Limit), bit(e.Outcome == gym.Scored && c.Success()), bit(c.Goals), bit(c.Path), bit(c.Collateral),
		bit(c.Commit), reward, e.Steps, e.Calls, digest, e.Why, endedUS, ep.trace.mark)
}

// number returns n as the driver takes it.
func (s *store) number(n int64) any { return recall(s.numbers, n, func(n int64) any { return n }) }

// recall returns value(key), from memory if it can: the driver takes interfaces, and each new one is an allocation.
func recall[K comparable](memory map[K]any, key K, value func(K) any) any {
	v, ok := memory[key]
	if !ok {
		if len(memory) >= 4096 {
			clear(memory)
		}
		v = value(key)
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

func (s *store) saveSegment(episode any, number, steps int, raw []byte) error {
	if number >= 1<<segmentBits {
		return fmt.Errorf("an episode may have %d segments", 1<<segmentBits-1)
	}
	box := &s.boxes[len(s.segments.args)/s.segments.width]
	if n := s2.MaxEncodedLen(len(raw)); n > len(*box) {
		*box = make([]byte, n)
	}
	return s.add(&s.segments, episode, number, steps, s.number(int64(len(raw))), codecS2,
		int64(crc32.Checksum(raw, castagnoli)), s2.Encode(*box, raw))
}

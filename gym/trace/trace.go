package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"provegym/gym"
)

var (
	ErrNotTrace = errors.New("not a trace")
	ErrNewer    = errors.New("trace has a newer schema")
	ErrInUse    = errors.New("trace is being written by another process")
	ErrClosed   = errors.New("trace is closed")
	ErrNoRun    = errors.New("no such run to resume")
)

// Run is the identity of a run: what its episodes have in common. Hashes are hex text; "" where there is none.
type Run struct {
	Policy     string          `json:"policy"`
	Checkpoint string          `json:"checkpoint_hash"`
	Pack       string          `json:"pack_hash"` // an episode of another pack is refused
	Check      string          `json:"check_hash"`
	Split      string          `json:"split_hash"`
	Plan       string          `json:"plan_hash"`
	Config     json.RawMessage `json:"config,omitempty"` // a JSON object, {} if empty
}

// Durability is what Flush promises.
type Durability uint8

const (
	Normal Durability = iota // survives the death of the process; a power cut may lose the last commits, never damage the file
	Full                     // survives a power cut too; about half the speed
)

// ParseDurability reads "normal", "full", or "" for the default.
func ParseDurability(s string) (Durability, error) {
	switch s {
	case "", "normal":
		return Normal, nil
	case "full":
		return Full, nil
	}
	return Normal, fmt.Errorf("%w: durability is normal or full, not %.20q", gym.ErrBadInput, s)
}

// Options say how a trace is opened.
type Options struct {
	Durability Durability
	// Resume goes on with the file's latest run of this identity: see Trace.Mark. In a file without runs it starts one.
	Resume bool
	// Saved is the iteration of the state that the trainer resumes from. If the last mark is older, the process died between
	// saving and marking: all that had ended belongs to the state, and Open makes the mark.
	Saved int64
}

// Trace records the episodes of one run. Its methods may be called from many goroutines.
type Trace struct {
	store  *store
	run    int64
	pack   string
	plan   string
	closed atomic.Bool

	mark int64 // id of the run's last mark; the writing goroutine's own
}

// stores are the files that this process writes, by absolute path.
var stores = struct {
	sync.Mutex
	open map[string]*store
}{open: map[string]*store{}}

// Open opens the file for recording and begins a run, or resumes one. path is a .db file or a folder, which holds trace.db;
// what is missing is made.
//
// Errors: ErrInUse, ErrNotTrace, ErrNewer, ErrNoRun; gym.ErrBadInput for a config that is not a JSON object or another
// durability than the file is open with; else what the file system said.
func Open(path string, r Run, o Options) (*Trace, error) {
	config, err := canonical(r.Config)
	if err != nil {
		return nil, err
	}
	r.Config = config
	if path, err = filePath(path); err != nil {
		return nil, err
	}
	stores.Lock()
	defer stores.Unlock()
	s := stores.open[path]
	if s == nil {
		if s, err = openStore(path, o.Durability); err != nil {
			return nil, err
		}
		stores.open[path] = s
	} else if s.durability != o.Durability {
		return nil, fmt.Errorf("%w: trace %s is open in this process with another durability: use the same", gym.ErrBadInput, path)
	}
	s.refs++
	t := &Trace{store: s, pack: r.Pack, plan: r.Plan}
	if err := s.do(func(f *file) error { return t.begin(f, r, o) }); err != nil {
		if cerr := t.release(); !errors.Is(err, cerr) {
			err = errors.Join(err, cerr)
		}
		return nil, err
	}
	return t, nil
}

func canonical(config json.RawMessage) (json.RawMessage, error) {
	if len(config) == 0 {
		return json.RawMessage("{}"), nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, config); err != nil || b.Bytes()[0] != '{' {
		return nil, fmt.Errorf("%w: the config of a run is a JSON object, not %.40q", gym.ErrBadInput, config)
	}
	return b.Bytes(), nil
}

// Path returns the file.
func (t *Trace) Path() string { return t.store.path }

// RunID returns the run's id in the file.
func (t *Trace) RunID() int64 { return t.run }

// Begin implements gym.Recorder.
func (t *Trace) Begin(s gym.EpisodeStart) uint64 {
	if s.Task.Pack.Hash != t.pack {
		t.store.fail(fmt.Errorf("%w: episode of pack %s with hash %q in a run of pack hash %q: open a run of its own for each pack",
			gym.ErrBadInput, s.Task.Pack.Name, s.Task.Pack.Hash, t.pack))
	}
	return t.store.begin(t, s, stamp())
}

// Segment implements gym.Recorder.
func (t *Trace) Segment(id uint64, seq, steps int, raw []byte) []byte {
	t.mustBeOpen()
	// The flags of the last step are the last byte: a closing segment waits for End, which is called next, so that both
	// are one message and one row is written once.
	return t.store.segment(id, part{seq: seq, steps: steps, raw: raw}, raw[len(raw)-1] == 1)
}

// End implements gym.Recorder.
func (t *Trace) End(id uint64, e gym.EpisodeEnd) {
	t.mustBeOpen()
	t.store.end(id, e, nil, stamp())
}

// EndLater implements gym.LateRecorder.
func (t *Trace) EndLater(id uint64, c *gym.Closing) {
	t.mustBeOpen()
	t.store.end(id, gym.EpisodeEnd{}, c, stamp())
}

// stamp returns the time of an episode's begin or end in microseconds, to the millisecond, so that few are distinct.
func stamp() int64 { return time.Now().UnixMilli() * 1000 }

const afterClose = "trace: a step was recorded after Close; flush the episodes first, and step them no more"

func (t *Trace) mustBeOpen() {
	if t.closed.Load() {
		panic(afterClose)
	}
}

// Err returns what stopped the trace, or nil. No episode starts while it is not nil.
func (t *Trace) Err() error {
	if t.closed.Load() {
		return fmt.Errorf("%w: %s", ErrClosed, t.store.path)
	}
	return t.store.failure()
}

// Flush returns when everything handed over before is on disk, with the number of episodes that ended in this file since the
// process opened it. It is the durability point.
func (t *Trace) Flush() (episodes int64, err error) {
	if t.closed.Load() {
		return 0, t.Err()
	}
	return t.store.flush()
}

// Mark says that the trainer has saved its state: what ended before belongs to it. When the run is resumed, later rows are
// superseded. Mark is a durability point, so save the state first.
func (t *Trace) Mark(iteration int64) error {
	if t.closed.Load() {
		return t.Err()
	}
	return t.store.do(func(f *file) error {
		id, err := t.insertMark(f, iteration)
		if err == nil {
			t.mark = id
		}
		return err
	})
}

func (t *Trace) insertMark(f *file, iteration int64) (int64, error) {
	return f.exec(`INSERT INTO mark(run, iteration, at_us) VALUES (?, ?, ?)`, t.run, iteration, time.Now().UnixMicro())
}

// Close writes what is left and ends the run. Episodes still running keep the steps that they have handed over. A second
// Close does nothing.
func (t *Trace) Close() error {
	if t.closed.Swap(true) {
		return nil
	}
	stores.Lock()
	defer stores.Unlock()
	err := t.store.do(func(f *file) error {
		_, err := f.exec(`UPDATE run SET ended_us = ? WHERE id = ?`, time.Now().UnixMicro(), t.run)
		return err
	})
	t.store.forget(t)
	if cerr := t.release(); err == nil {
		err = cerr
	}
	return err
}

// release drops one use of the store; the last one closes it. stores is locked.
func (t *Trace) release() error {
	s := t.store
	if s.refs--; s.refs > 0 {
		return nil
	}
	delete(stores.open, s.path)
	return s.close()
}

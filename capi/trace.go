package main

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"provegym/gym"
	"provegym/gym/trace"
	"provegym/gym/vector"
)

// user counts the vectors that use an object, which must outlive them.
type user struct{ n atomic.Int64 }

// free reports why the object cannot be closed now.
func (u *user) free(what string) error {
	if n := u.n.Load(); n > 0 {
		return fmt.Errorf("%w: %d vectors use %s: close them first", vector.ErrState, n, what)
	}
	return nil
}

func init() {
	methods["trace.open"] = alone(openTrace)
	methods["trace.flush"] = on(func(t *traceObject, in *struct{}) (any, error) {
		n, err := t.Flush()
		return map[string]any{"episodes": n}, err
	})
	methods["trace.mark"] = on(func(t *traceObject, in *struct {
		Iteration int64 `json:"iteration"`
	}) (any, error) {
		return struct{}{}, t.Mark(in.Iteration)
	})
	methods["trace.tokens"] = on(func(t *traceObject, in *struct {
		Rows []trace.Tokens `json:"rows"`
	}) (any, error) {
		return struct{}{}, t.Tokens(in.Rows)
	})
	methods["trace.query"] = alone(func(in *struct {
		Path string `json:"path"`
		trace.Query
	}) (any, error) {
		return reading(in.Path, func(r *trace.Reader) (any, error) {
			rows, err := r.Query(in.Query)
			return map[string]any{"rows": rows}, err
		})
	})
	methods["trace.verify"] = alone(func(in *struct {
		Path string `json:"path"`
	}) (any, error) {
		return trace.Verify(in.Path)
	})
	methods["trace.replay"] = alone(replay)
}

func openTrace(in *struct {
	Path       string    `json:"path"`
	Run        trace.Run `json:"run"`
	Durability string    `json:"durability"`
	Resume     *int64    `json:"resume"` // iteration of the state that the trainer resumes from; null for a new run
}) (any, error) {
	if in.Path == "" {
		return nil, badInput("path is empty: name a folder or a .db file")
	}
	d, err := trace.ParseDurability(in.Durability)
	if err != nil {
		return nil, err
	}
	o := trace.Options{Durability: d, Resume: in.Resume != nil}
	if o.Resume {
		o.Saved = *in.Resume
	}
	t, err := trace.Open(in.Path, in.Run, o)
	if err != nil {
		return nil, err
	}
	h, err := open(&traceObject{Trace: t})
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return map[string]any{"handle": number(h), "run": t.RunID()}, nil
}

// reading opens the store at path for one request.
func reading(path string, do func(r *trace.Reader) (any, error)) (any, error) {
	r, err := trace.OpenReader(path)
	if err != nil {
		return nil, err
	}
	answer, err := do(r)
	return answer, errors.Join(err, r.Close())
}

func replay(in *struct {
	Path    string `json:"path"`
	Episode uint64 `json:"episode"`
	Limit   int    `json:"limit"`
	Cursor  uint64 `json:"cursor"`
	budget
}) (any, error) {
	return reading(in.Path, func(r *trace.Reader) (any, error) {
		f := trace.Filter{Episode: in.Episode, Limit: in.Limit, After: in.Cursor}
		return r.Replay(trace.Replay{Filter: f, Budget: in.time()})
	})
}

// budget bounds a request that is one slice of long work.
type budget struct {
	MS *int64 `json:"budget_ms"`
}

func (b budget) time() time.Duration {
	if b.MS == nil {
		return 200 * time.Millisecond
	}
	return time.Duration(min(max(*b.MS, 1), 600_000)) * time.Millisecond
}

type traceObject struct {
	user
	*trace.Trace
}

func (*traceObject) kind() string { return "a trace" }

func (t *traceObject) close() error {
	if err := t.free("this trace"); err != nil {
		return err
	}
	return t.Trace.Close()
}

// recorder returns the trace behind a handle, nil for 0. It may be recording for others at the same time.
func recorder(h number) (gym.Recorder, *user, error) {
	if h == 0 {
		return nil, nil, nil
	}
	t, s, err := enter[*traceObject](uint64(h))
	if err != nil {
		return nil, nil, err
	}
	defer s.leave()
	t.n.Add(1)
	return t.Trace, &t.user, nil
}

// join connects a vector that is being made with its trace and curriculum.
func (v *vec) join(a *vecArgs, cfg *vector.Config) error {
	r, u, err := recorder(a.Trace)
	if err != nil {
		return err
	}
	if u != nil {
		cfg.Recorder = r
		v.hold = append(v.hold, u)
	}
	if a.Curriculum == 0 {
		return nil
	}
	c, s, err := enter[*sampler](uint64(a.Curriculum))
	if err != nil {
		return err
	}
	defer s.leave()
	c.n.Add(1)
	v.hold = append(v.hold, &c.user)
	cfg.Source = feed{c, max(a.GroupSize, 1), max(a.NumEnvs, 1)}
	return nil
}

package main

/*
#include "provegym.h"
#include <stdlib.h>
*/
import "C"

import (
	"encoding/json"
	"errors"
	"time"
	"unsafe"

	"provegym/gym"
	"provegym/gym/split"
	"provegym/gym/vector"
)

// vec is a vector and the C memory around it.
type vec struct {
	*vector.Vector
	bound             bool
	text, final, task block
	action            *C.char
	off               []uint32
	hold              []*user
}

func (*vec) kind() string { return "a vector" }

func (v *vec) close() error {
	v.Vector.Close()
	for _, b := range []*block{&v.text, &v.final, &v.task} {
		b.free()
	}
	for _, u := range v.hold {
		u.n.Add(-1)
	}
	return nil
}

// block is a vector.Text in C memory, and the struct of the caller that points to it.
type block struct {
	vector.Text
	to *C.pgym_text
}

func (b *block) alloc(n int) {
	b.Off = unsafe.Slice((*uint32)(C.calloc(C.size_t(n+1), 4)), n+1)
	b.Grow = func(old []byte, n int) []byte {
		C.free(unsafe.Pointer(unsafe.SliceData(old)))
		return unsafe.Slice((*byte)(C.malloc(C.size_t(n))), n)
	}
	b.Data = b.Grow(nil, 64*n)[:0]
}

func (b *block) free() {
	if b.Off != nil {
		C.free(unsafe.Pointer(&b.Off[0]))
		C.free(unsafe.Pointer(unsafe.SliceData(b.Data)))
	}
	*b = block{}
}

// show tells the caller where the strings are.
func (b *block) show() {
	if b.to != nil {
		b.to.data = (*C.char)(unsafe.Pointer(unsafe.SliceData(b.Data)))
		b.to.off = (*C.uint32_t)(unsafe.Pointer(&b.Off[0]))
	}
}

// source are the members by which tasks are drawn.
type source struct {
	Pack   string          `json:"pack"`
	Family names           `json:"family"`
	Dials  settings        `json:"dials"`
	Preset names           `json:"preset"`
	Split  json.RawMessage `json:"split"`
	Mode   string          `json:"mode"`
}

func (s *source) sampler() (out vector.Sampler, err error) {
	p, err := gym.LookupPack(s.Pack)
	if err != nil {
		return out, err
	}
	mode, err := parseMode(s.Mode)
	if err != nil {
		return out, err
	}
	out = vector.Sampler{Pack: p, Families: s.Family, Presets: s.Preset, Dials: s.Dials, Mode: mode}
	out.Split, err = parseSplit(s.Split)
	return out, err
}

func parseMode(s string) (gym.Mode, error) { return gym.ParseMode(orElse(s, "free")) }

// parseSplit reads a manifest; nil stands for none.
func parseSplit(manifest json.RawMessage) (gym.Split, error) {
	if len(manifest) == 0 || string(manifest) == "null" {
		return nil, nil
	}
	s, err := split.Parse(manifest)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func parseView(s string) (gym.View, error) {
	switch s {
	case "", "text":
		return gym.Text, nil
	case "structured":
		return gym.Structured, nil
	}
	return 0, unknown("view", s, []string{"text", "structured"})
}

type vecArgs struct {
	source
	NumEnvs    int        `json:"num_envs"`
	View       string     `json:"view"`
	Trace      number     `json:"trace"`
	Labels     gym.Labels `json:"labels"`
	Curriculum number     `json:"curriculum"`
	GroupSize  int        `json:"group_size"`
	Autoreset  string     `json:"autoreset"`
	NumWorkers int        `json:"num_workers"`
}

func (a *vecArgs) make() (v *vec, err error) {
	cfg := vector.Config{NumEnvs: a.NumEnvs, GroupSize: a.GroupSize, Labels: a.Labels, Workers: a.NumWorkers}
	if cfg.Sampler, err = a.sampler(); err != nil {
		return nil, err
	}
	if cfg.View, err = parseView(a.View); err != nil {
		return nil, err
	}
	if cfg.Autoreset, err = vector.ParseAutoreset(orElse(a.Autoreset, "next_step")); err != nil {
		return nil, err
	}
	v = &vec{}
	if err = v.join(a, &cfg); err == nil {
		v.Vector, err = vector.New(cfg)
	}
	if err != nil {
		for _, u := range v.hold {
			u.n.Add(-1)
		}
		return nil, err
	}
	n := v.NumEnvs()
	v.task.alloc(n)
	if cfg.View == gym.Text {
		v.text.alloc(n)
		v.final.alloc(n)
	}
	return v, nil
}

//export pgymi_vec_make
func pgymi_vec_make(in C.pgym_cstr, n C.uint64_t, h *C.uint64_t, err *C.pgym_error) C.int32_t {
	return guard(err, func() error {
		b, e := bytesOf(in, n)
		if e = errors.Join(e, needed("vec", h)); e != nil {
			return e
		}
		var args vecArgs
		if e := decode(b, &args); e != nil {
			return e
		}
		v, e := args.make()
		if e != nil {
			return e
		}
		id, e := open(v)
		if e != nil {
			return errors.Join(e, v.close())
		}
		*h = C.uint64_t(id)
		return nil
	})
}

// slice views n elements of the caller; nil stays nil.
func slice[G, T any](p *T, n int) []G {
	if p == nil {
		return nil
	}
	return unsafe.Slice((*G)(unsafe.Pointer(p)), n)
}

func obsOf(o *C.pgym_obs, n int, text *block) (out vector.Obs) {
	if text.to = o.text; o.text != nil && text.Off != nil {
		out.Text = &text.Text
	}
	out.Slots = slice[float32](o.slots, n*gym.Slots*gym.SlotLen)
	out.Goal = slice[float32](o.goal, n*gym.GoalLen)
	out.Last = slice[float32](o.last, n*gym.LastLen)
	out.Budget = slice[float32](o.budget, n*gym.BudgetLn)
	out.Tools = slice[float32](o.tools, n*gym.MaxTools*gym.ToolLen)
	out.Phase = slice[int32](o.phase, n*gym.PhaseLen)
	out.Mask = slice[uint8](o.mask, n*gym.Actions)
	return out
}

func (v *vec) bind(io *C.pgym_io) error {
	n := v.NumEnvs()
	switch {
	case uint64(io.size) != C.sizeof_pgym_io:
		return badInput("io.size is %d and sizeof(pgym_io) %d: set it, and compile against this library's header", io.size, C.sizeof_pgym_io)
	case int(io.num_envs) != n:
		return badInput("io.num_envs is %d and the vector has %d", io.num_envs, n)
	}
	b := vector.IO{
		Action:     slice[int32](io.action, n),
		ActionOff:  slice[uint32](io.action_off, n+1),
		Obs:        obsOf(&io.obs, n, &v.text),
		Final:      obsOf(&io.final_obs, n, &v.final),
		Reward:     slice[float64](io.reward, n),
		Terminated: slice[uint8](io.terminated, n),
		Truncated:  slice[uint8](io.truncated, n),
		Outcome:    slice[uint8](io.outcome, n),
		Limit:      slice[uint8](io.limit, n),
		Components: slice[uint8](io.components, n),
		Calls:      slice[int32](io.calls, n),
		Began:      slice[uint8](io.began, n),
	}
	if v.task.to = io.task; io.task != nil {
		b.Task = &v.task.Text
	}
	v.action, v.off = (*C.char)(unsafe.Pointer(io.action_text)), b.ActionOff
	v.bound = false
	if err := v.Bind(&b); err != nil {
		return err
	}
	v.bound = true
	v.show()
	return nil
}

// show tells the caller where all strings are.
func (v *vec) show() {
	if v.Config().View == gym.Text {
		v.text.show()
		v.final.show()
	}
	v.task.show()
}

// actions views the block of text actions as it is now.
func (v *vec) actions() error {
	if v.Config().View != gym.Text || !v.bound {
		return nil
	}
	n := int(v.off[v.NumEnvs()])
	if v.action == nil && n > 0 {
		return badInput("action_text is NULL and action_off ends at %d", n)
	}
	v.SetActionText(slice[byte](v.action, n))
	return nil
}

// with runs body on the vector behind h and shows the caller where its strings are.
func with(h C.uint64_t, err *C.pgym_error, body func(v *vec) error) C.int32_t {
	return guard(err, func() error {
		v, s, e := enter[*vec](uint64(h))
		if e != nil {
			return e
		}
		defer s.leave()
		e = body(v)
		if v.bound {
			v.show()
		}
		return e
	})
}

//export pgymi_vec_bind
func pgymi_vec_bind(h C.uint64_t, io *C.pgym_io, err *C.pgym_error) C.int32_t {
	return with(h, err, func(v *vec) error {
		if e := needed("io", io); e != nil {
			return e
		}
		return v.bind(io)
	})
}

//export pgymi_vec_reset
func pgymi_vec_reset(h C.uint64_t, seeds *C.uint64_t, has, mask *C.uint8_t, err *C.pgym_error) C.int32_t {
	return with(h, err, func(v *vec) error {
		n := v.NumEnvs()
		return v.Reset(slice[uint64](seeds, n), slice[uint8](has, n), slice[uint8](mask, n))
	})
}

//export pgymi_vec_queue
func pgymi_vec_queue(h C.uint64_t, in C.pgym_cstr, n C.uint64_t, err *C.pgym_error) C.int32_t {
	return with(h, err, func(v *vec) error {
		b, e := bytesOf(in, n)
		if e != nil {
			return e
		}
		var args struct {
			Tasks []taskArg `json:"tasks"`
			Clear bool      `json:"clear"`
		}
		if e := decode(b, &args); e != nil {
			return e
		}
		jobs := make([]vector.Job, len(args.Tasks))
		for i, t := range args.Tasks {
			if jobs[i].Task, e = gym.ParseTask(t.Task); e != nil {
				return e
			}
			jobs[i].Labels = t.Labels
		}
		return v.Queue(jobs, args.Clear)
	})
}

// taskArg is a task and what it is for.
type taskArg struct {
	Task   string     `json:"task"`
	Labels gym.Labels `json:"labels"`
}

//export pgymi_vec_step
func pgymi_vec_step(h C.uint64_t, err *C.pgym_error) C.int32_t {
	return with(h, err, func(v *vec) error {
		if e := v.actions(); e != nil {
			return e
		}
		return v.Step()
	})
}

//export pgymi_vec_send
func pgymi_vec_send(h C.uint64_t, ids *C.uint32_t, n C.uint32_t, err *C.pgym_error) C.int32_t {
	return with(h, err, func(v *vec) error {
		if ids == nil && n > 0 {
			return badInput("ids is NULL and n_ids %d", uint32(n))
		}
		if e := v.actions(); e != nil {
			return e
		}
		return v.Send(slice[uint32](ids, int(n)))
	})
}

//export pgymi_vec_recv
func pgymi_vec_recv(h C.uint64_t, ids, n *C.uint32_t, least, timeout C.uint32_t, err *C.pgym_error) C.int32_t {
	return with(h, err, func(v *vec) error {
		if e := errors.Join(needed("ids", ids), needed("n_ids", n)); e != nil {
			return e
		}
		k, e := v.Recv(slice[uint32](ids, v.NumEnvs()), int(least), time.Duration(timeout)*time.Millisecond)
		*n = C.uint32_t(k)
		return e
	})
}

//export pgymi_vec_snapshot
func pgymi_vec_snapshot(h C.uint64_t, env C.uint32_t, out *C.pgym_bytes, err *C.pgym_error) C.int32_t {
	return with(h, err, func(v *vec) error {
		if e := needed("out", out); e != nil {
			return e
		}
		*out = C.pgym_bytes{}
		b, e := v.Snapshot(int(env))
		if e == nil {
			give(out, b)
		}
		return e
	})
}

//export pgymi_vec_restore
func pgymi_vec_restore(h C.uint64_t, env C.uint32_t, data C.pgym_cstr, n C.uint64_t, err *C.pgym_error) C.int32_t {
	return with(h, err, func(v *vec) error {
		b, e := bytesOf(data, n)
		if e != nil {
			return e
		}
		return v.Restore(int(env), b)
	})
}

//export pgymi_vec_fork
func pgymi_vec_fork(h C.uint64_t, src C.uint32_t, dst *C.uint32_t, n C.uint32_t, err *C.pgym_error) C.int32_t {
	return with(h, err, func(v *vec) error {
		if dst == nil && n > 0 {
			return badInput("dst is NULL and n %d", uint32(n))
		}
		return v.Fork(int(src), slice[uint32](dst, int(n)))
	})
}

//export pgymi_vec_close
func pgymi_vec_close(h C.uint64_t, err *C.pgym_error) C.int32_t {
	return guard(err, func() error {
		return closeHandle(uint64(h), func(o object) error {
			if _, ok := o.(*vec); !ok {
				return badInput("handle %d is %s: close it by the request \"close\"", uint64(h), o.kind())
			}
			return nil
		})
	})
}

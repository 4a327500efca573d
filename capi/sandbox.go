package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"provegym/gym/vector"
	"provegym/sandbox"
)

func init() {
	methods["sandbox.open"] = alone(openSandbox)
	methods["sandbox.box"] = on(func(s *sandboxObject, in *struct {
		boxSpec
	}) (any, error) {
		b, err := s.NewBox(in.spec())
		err = respell(err)
		return handleOf(&boxObject{Box: b}, err)
	})
	methods["sandbox.pool"] = on(func(s *sandboxObject, in *struct {
		boxSpec
		Size int `json:"size"`
	}) (any, error) {
		p, err := s.NewPool(in.spec(), in.Size)
		err = respell(err)
		return handleOf(&poolObject{p}, err)
	})
	methods["pool.get"] = on(func(p *poolObject, in *struct{}) (any, error) {
		b, err := p.Get()
		return handleOf(&boxObject{Box: b}, err)
	})
	methods["box.start"] = on((*boxObject).start)
	methods["box.wait"] = on((*boxObject).wait)
	methods["box.kill"] = on(func(b *boxObject, in *struct{}) (any, error) {
		b.Kill()
		return struct{}{}, nil
	})
	methods["box.arm"] = on(func(b *boxObject, in *struct{}) (any, error) { return struct{}{}, respell(b.Arm()) })
	methods["box.write"] = on(func(b *boxObject, in *struct {
		Path string      `json:"path"`
		Data []byte      `json:"data"`
		Mode fs.FileMode `json:"mode"`
	}) (any, error) {
		return struct{}{}, b.WriteFile(in.Path, in.Data, cmp.Or(in.Mode, 0o644))
	})
	methods["box.read"] = on(func(b *boxObject, in *struct {
		Path     string `json:"path"`
		MaxBytes int64  `json:"max_bytes"`
	}) (any, error) {
		data, err := b.ReadFile(in.Path, cmp.Or(in.MaxBytes, 16<<20))
		return map[string]any{"data": data}, err
	})
	methods["box.mkdir"] = on(func(b *boxObject, in *struct {
		Path string `json:"path"`
	}) (any, error) {
		return struct{}{}, b.Mkdir(in.Path)
	})
	methods["box.list"] = on((*boxObject).list)
}

// sandboxObject, poolObject and boxObject are what the handles of the sandbox stand for. Closing one ends what came from it.
type (
	sandboxObject struct{ *sandbox.Sandbox }
	poolObject    struct{ *sandbox.Pool }
	boxObject     struct {
		*sandbox.Box
		running chan boxEnd // of the command under way, else nil
	}
)

type boxEnd struct {
	sandbox.Result
	err error
}

func (*sandboxObject) kind() string { return "a sandbox" }
func (s *sandboxObject) close() error {
	if s.Sandbox == nil {
		return nil
	}
	return s.Close()
}
func (*poolObject) kind() string   { return "a pool of boxes" }
func (p *poolObject) close() error { return p.Close() }
func (*boxObject) kind() string    { return "a box" }
func (b *boxObject) close() error  { return b.Close() }

// boxSpec is sandbox.Spec as JSON; what is left out or 0 has its default.
type boxSpec struct {
	Wall           float64 `json:"wall_s"`
	CPU            float64 `json:"cpu_s"`
	CPUMilli       int     `json:"cpu_milli"`
	MemoryBytes    int64   `json:"memory_bytes"`
	Pids           int     `json:"pids"`
	DiskBytes      int64   `json:"disk_bytes"`
	DiskFiles      int     `json:"disk_files"`
	OpenFiles      int     `json:"open_files"`
	OutputBytes    int64   `json:"output_bytes"`
	OutputMaxBytes int64   `json:"output_max_bytes"`
	Loopback       bool    `json:"loopback"`
}

func (s boxSpec) spec() sandbox.Spec {
	return sandbox.Spec{
		WallTimeout: seconds(s.Wall), CPUTime: seconds(s.CPU), CPUMilli: s.CPUMilli, MemoryBytes: s.MemoryBytes, PidsMax: s.Pids,
		DiskBytes: s.DiskBytes, DiskFiles: s.DiskFiles, OpenFiles: s.OpenFiles, OutputBytes: s.OutputBytes,
		OutputMaxBytes: s.OutputMaxBytes, Loopback: s.Loopback,
	}
}

// fields are the sandbox's names of what requests name otherwise.
var fields = strings.NewReplacer(
	"WallTimeout", "wall_s", "CPUTime", "cpu_s", "CPUMilli", "cpu_milli", "MemoryBytes", "memory_bytes", "PidsMax", "pids",
	"DiskBytes", "disk_bytes", "DiskFiles", "disk_files", "OpenFiles", "open_files", "OutputBytes", "output_bytes",
	"OutputMaxBytes", "output_max_bytes", "Options.ReadOnlyDirs", "read_only_dirs", "ReadOnlyDirs", "read_only_dirs",
	"Options.Require", "require", "Options.MaxBoxes", "max_boxes", "MaxBoxes", "max_boxes", "Options.Python", "python", "Argv", "argv",
)

// respelled is an error in the words of requests.
type respelled struct{ error }

func (e respelled) Error() string { return fields.Replace(e.error.Error()) }
func (e respelled) Unwrap() error { return e.error }

func respell(err error) error {
	if err == nil {
		return nil
	}
	return respelled{err}
}

// seconds turns a number of them into a time that Validate can judge: one too long for a Duration stays too long.
func seconds(s float64) time.Duration {
	return time.Duration(max(-1, min(s, 2*sandbox.MaxWallTimeout.Seconds())) * float64(time.Second))
}

func openSandbox(in *struct {
	Level        string   `json:"level"`
	Require      []string `json:"require"`
	ReadOnlyDirs []string `json:"read_only_dirs"`
	CgroupBase   string   `json:"cgroup_base"`
	MaxBoxes     int      `json:"max_boxes"`
	Python       *struct {
		Executable string   `json:"executable"`
		Imports    []string `json:"imports"`
	} `json:"python"`
}) (any, error) {
	o := sandbox.Options{
		Level: sandbox.Level(in.Level), Require: in.Require, ReadOnlyDirs: in.ReadOnlyDirs, CgroupBase: in.CgroupBase, MaxBoxes: in.MaxBoxes,
	}
	if in.Python != nil {
		o.Python = &sandbox.Python{Executable: in.Python.Executable, Imports: in.Python.Imports}
	}
	s, err := sandbox.Open(o)
	if err != nil {
		return nil, respell(err)
	}
	h, err := open(&sandboxObject{s})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return map[string]any{"handle": number(h), "capabilities": s.Capabilities()}, nil
}

// start begins a command, or Python code in a warm interpreter.
func (b *boxObject) start(in *struct {
	Argv   []string `json:"argv"`
	Env    []string `json:"env"`
	Dir    string   `json:"dir"`
	Stdin  []byte   `json:"stdin"`
	Wall   float64  `json:"wall_s"`
	Python []byte   `json:"python"`
}) (any, error) {
	switch {
	case b.running != nil:
		return nil, fmt.Errorf("%w: a command is running: wait for it", vector.ErrState)
	case in.Python != nil && in.Argv != nil:
		return nil, badInput("a command is argv or python, not both")
	}
	ended := make(chan boxEnd, 1)
	b.running = ended
	go func() {
		var e boxEnd
		if in.Python != nil {
			e.Result, e.err = b.ExecPython(context.Background(), in.Python)
		} else {
			c := sandbox.Command{Argv: in.Argv, Env: in.Env, Dir: in.Dir, Stdin: in.Stdin, WallTimeout: seconds(in.Wall)}
			e.Result, e.err = b.Exec(context.Background(), c)
		}
		ended <- e
	}()
	return struct{}{}, nil
}

// wait waits for the command's end, but no longer than the budget.
func (b *boxObject) wait(in *struct {
	BudgetMS int `json:"budget_ms"`
}) (any, error) {
	if b.running == nil {
		return nil, fmt.Errorf("%w: no command was started", vector.ErrState)
	}
	enough := time.NewTimer(time.Duration(in.BudgetMS) * time.Millisecond)
	defer enough.Stop()
	select {
	case e := <-b.running:
		b.running = nil
		return map[string]any{
			"done": true, "result": &e.Result, "text": e.Result.String(), "infrastructure": e.Reason.Infrastructure(),
		}, respell(e.err)
	case <-enough.C:
		return map[string]any{"done": false}, nil
	}
}

func (b *boxObject) list(in *struct {
	Path       string `json:"path"`
	MaxEntries int    `json:"max_entries"`
}) (any, error) {
	type entry struct {
		Name string `json:"name"`
		Mode string `json:"mode"`
		Size int64  `json:"size"`
		Link string `json:"link,omitempty"`
	}
	found, err := b.Walk(cmp.Or(in.Path, "/work"), cmp.Or(in.MaxEntries, 10_000))
	entries := make([]entry, len(found))
	for i, f := range found {
		entries[i] = entry{f.Name, f.Mode.String(), f.Size, f.Link}
	}
	return map[string]any{"entries": entries}, err
}

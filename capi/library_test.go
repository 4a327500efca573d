package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/google/go-cmp/cmp"

	"provegym/gym"
	"provegym/gym/vector"
)

// The mirror of the header's structs; TestLayout holds it against the C compiler.
type (
	cError struct {
		Size uint32
		Code int32
		Text [512]byte
	}
	cBytes struct {
		Data *byte
		Len  uint64
	}
	cText struct {
		Data *byte
		Off  *uint32
	}
	cObs struct {
		Slots, Goal, Last, Budget, Tools *float32
		Phase                            *int32
		Mask                             *uint8
		Text                             *cText
	}
	cIO struct {
		Size, Num_envs                                    uint32
		Action                                            *int32
		Action_text                                       *byte
		Action_off                                        *uint32
		Obs, Final_obs                                    cObs
		Reward                                            *float64
		Terminated, Truncated, Outcome, Limit, Components *uint8
		Calls                                             *int32
		Began                                             *uint8
		Task                                              *cText
	}
)

// Status codes of the header.
const (
	ok, eInput, eUnknown, eHeldOut, eState, eHandle, eBusy, eForked, eSnapshot, eIO, ePack, ePanic, eHost = 0, -1, -2, -3, -4, -5, -6,
		-7, -8, -9, -10, -11, -12
)

var lib struct {
	dir, path string

	abi      func() int32
	info     func(*cBytes, *cError) int32
	free     func(*cBytes)
	make     func(string, uint64, *uint64, *cError) int32
	bind     func(uint64, *cIO, *cError) int32
	reset    func(uint64, *uint64, *uint8, *uint8, *cError) int32
	queue    func(uint64, string, uint64, *cError) int32
	send     func(uint64, *uint32, uint32, *cError) int32
	recv     func(uint64, *uint32, *uint32, uint32, uint32, *cError) int32
	step     func(uint64, *cError) int32
	snapshot func(uint64, uint32, *cBytes, *cError) int32
	restore  func(uint64, uint32, *byte, uint64, *cError) int32
	fork     func(uint64, uint32, *uint32, uint32, *cError) int32
	close    func(uint64, *cError) int32
	request  func(uint64, string, string, uint64, *cBytes, *cError) int32
}

const header = "../include/provegym.h"

func headerHash() string {
	b, err := os.ReadFile(header)
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// TestMain builds the library as it ships, but for a method that panics, and opens it.
func TestMain(m *testing.M) { os.Exit(withLibrary(m)) }

func withLibrary(m *testing.M) int {
	dir, err := os.MkdirTemp("", "capi")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	lib.dir, lib.path = dir, filepath.Join(dir, "libprovegym.so")
	exports, _ := filepath.Abs("exports.map")
	b, err := os.ReadFile("../gobuild.json")
	if err != nil {
		panic(err)
	}
	var flags struct{ Tags []string }
	if err := json.Unmarshal(b, &flags); err != nil {
		panic(err)
	}
	cmd := exec.Command("go", "build", "-tags", strings.Join(flags.Tags, ",")+",capitest", "-trimpath", "-buildvcs=false", "-buildmode=c-shared",
		"-ldflags", "-s -w -linkmode external -X main.sources=tested -extldflags '-Wl,-z,defs -Wl,-soname,libprovegym.so -Wl,--version-script="+exports+" -static-libgcc'",
		"-o", lib.path, ".")
	cmd.Env = append(os.Environ(), "CGO_CFLAGS=-g -O2 -DPGYM_HEADER_SHA256="+headerHash())
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	so, err := purego.Dlopen(lib.path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		panic(err)
	}
	for name, f := range map[string]any{
		"abi_version": &lib.abi, "build_info": &lib.info, "free": &lib.free, "vec_make": &lib.make, "vec_bind": &lib.bind,
		"vec_reset": &lib.reset, "vec_queue": &lib.queue, "vec_send": &lib.send, "vec_recv": &lib.recv, "vec_step": &lib.step,
		"vec_snapshot": &lib.snapshot, "vec_restore": &lib.restore, "vec_fork": &lib.fork, "vec_close": &lib.close, "request": &lib.request,
	} {
		purego.RegisterLibFunc(f, so, "pgym_"+name)
	}
	return m.Run()
}

func newError() *cError { return &cError{Size: uint32(unsafe.Sizeof(cError{}))} }

func (e *cError) text() string {
	n := bytes.IndexByte(e.Text[:], 0)
	return string(e.Text[:n])
}

// ask makes a request and returns the answer, or the status and the error's text.
func ask(handle uint64, method, in string) (answer string, status int32, text string) {
	var out cBytes
	err := newError()
	status = lib.request(handle, method, in, uint64(len(in)), &out, err)
	if status == ok {
		answer = string(unsafe.Slice(out.Data, out.Len))
		lib.free(&out)
	}
	return answer, status, err.text()
}

func must(t *testing.T, status int32, err *cError) {
	t.Helper()
	if status != ok {
		t.Fatalf("status %d: %s", status, err.text())
	}
}

func makeVec(t *testing.T, config string) uint64 {
	t.Helper()
	var h uint64
	err := newError()
	must(t, lib.make(config, uint64(len(config)), &h, err), err)
	t.Cleanup(func() { lib.close(h, newError()) })
	return h
}

// world is a vector with its buffers.
type world struct {
	h                                                        uint64
	io                                                       cIO
	action                                                   []int32
	mask, terminated, truncated, outcome, limit, parts, init []uint8
	reward                                                   []float64
	calls                                                    []int32
	off                                                      []uint32
	block                                                    []byte
	text, task                                               cText
	pin                                                      runtime.Pinner
}

func newWorld(t *testing.T, config string, n int) *world {
	w := &world{h: makeVec(t, config), action: make([]int32, n), mask: make([]uint8, n*gym.Actions), terminated: make([]uint8, n),
		truncated: make([]uint8, n), outcome: make([]uint8, n), limit: make([]uint8, n), parts: make([]uint8, n), init: make([]uint8, n),
		reward: make([]float64, n), calls: make([]int32, n), off: make([]uint32, n+1), block: make([]byte, 4096)}
	w.io = cIO{Size: uint32(unsafe.Sizeof(cIO{})), Num_envs: uint32(n), Action: &w.action[0], Action_text: &w.block[0], Action_off: &w.off[0],
		Reward: &w.reward[0], Terminated: &w.terminated[0], Truncated: &w.truncated[0], Outcome: &w.outcome[0], Limit: &w.limit[0],
		Components: &w.parts[0], Calls: &w.calls[0], Began: &w.init[0], Task: &w.task}
	w.io.Obs.Mask, w.io.Obs.Text = &w.mask[0], &w.text
	for _, p := range []any{&w.action[0], &w.block[0], &w.off[0], &w.reward[0], &w.terminated[0], &w.truncated[0], &w.outcome[0],
		&w.limit[0], &w.parts[0], &w.calls[0], &w.init[0], &w.mask[0], w} {
		w.pin.Pin(p)
	}
	t.Cleanup(w.pin.Unpin)
	err := newError()
	must(t, lib.bind(w.h, &w.io, err), err)
	return w
}

func (s *cText) string(i int) string {
	off := unsafe.Slice(s.Off, i+2)
	return string(unsafe.Slice(s.Data, off[i+1])[off[i]:])
}

// TestLibrary_playsAnEpisode plays the oracle's result by hand: random legal actions through the built library equal the same
// actions on an Episode of the Go packages.
func TestLibrary_playsAnEpisode(t *testing.T) {
	w := newWorld(t, `{"pack":"echo","num_envs":1,"view":"structured","autoreset":"disabled"}`, 1)
	err := newError()
	seed := uint64(11)
	for k := range 3 {
		s := &seed
		if k > 0 {
			s = nil
		}
		must(t, lib.reset(w.h, s, nil, nil, err), err)
		task, e := gym.ParseTask(w.task.string(0))
		if e != nil {
			t.Fatal(e)
		}
		ep, e := gym.NewEpisode(task, gym.Options{View: gym.Structured})
		if e != nil {
			t.Fatal(e)
		}
		rng := gym.NewKey(uint64(k), "actions").Stream()
		for w.outcome[0] == 0 {
			var ones []int32
			for i, m := range w.mask {
				if m == 1 {
					ones = append(ones, int32(i))
				}
			}
			if d := cmp.Diff(ep.Obs().Mask[:], w.mask); d != "" {
				t.Fatal(d)
			}
			w.action[0] = gym.Pick(&rng, ones)
			must(t, lib.step(w.h, err), err)
			if e := ep.StepAction(int(w.action[0])); e != nil {
				t.Fatal(e)
			}
		}
		answer, _, _ := ask(w.h, "vec.info", `{"env":0}`)
		var info episodeInfo
		if e := json.Unmarshal([]byte(answer), &info); e != nil || info.Digest != ep.Digest().String() || info.Outcome != ep.Outcome().String() {
			t.Fatalf("%v: the library's episode ended as %+v, ours with %s", e, info, ep.Digest())
		}
	}
	if status := lib.step(w.h, err); status != eState || !strings.Contains(err.text(), "reset") {
		t.Errorf("a step after the end gives %d: %s", status, err.text())
	}
}

func TestLibrary_buildInfo(t *testing.T) {
	var out cBytes
	err := newError()
	must(t, lib.info(&out, err), err)
	defer lib.free(&out)
	var got map[string]any
	if e := json.Unmarshal(unsafe.Slice(out.Data, out.Len), &got); e != nil {
		t.Fatal(e)
	}
	if got["header"] != headerHash() || got["sources"] != "tested" || got["abi"] != float64(lib.abi()) || got["sqlite"] == "" {
		t.Errorf("%v", got)
	}
}

func TestLibrary_exportsEqualHeader(t *testing.T) {
	b, err := os.ReadFile(header)
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, m := range regexp.MustCompile(`(?m)^(?:int32_t|void) (\w+)\(`).FindAllSubmatch(b, -1) {
		declared = append(declared, string(m[1]))
	}
	out, err := exec.Command("nm", "-D", "--defined-only", lib.path).Output()
	if err != nil {
		t.Fatalf("nm: %v", err)
	}
	var exported []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		exported = append(exported, f[len(f)-1])
	}
	slices.Sort(declared)
	slices.Sort(exported)
	if d := cmp.Diff(declared, exported); d != "" || len(declared) < 10 {
		t.Errorf("(-header +library):\n%s", d)
	}
}

// TestLibrary_methodsEqualHeader holds the table of methods against the header's comment.
func TestLibrary_methodsEqualHeader(t *testing.T) {
	b, err := os.ReadFile(header)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for name := range methods {
		if !strings.HasPrefix(name, "test.") && !strings.Contains(text, " "+name+" ") {
			t.Errorf("the header does not know the method %s", name)
		}
	}
	rows := regexp.MustCompile(`(?m)^ \*  (?:0|trace|break|curric\.|check|vec|any) +([a-z.]+)(?: / ([a-z.]+))? `).FindAllStringSubmatch(text, -1)
	for _, row := range rows {
		for _, name := range row[1:] {
			if name != "" && methods[name] == nil {
				t.Errorf("the header promises the method %s", name)
			}
		}
	}
	if len(rows) < 20 {
		t.Errorf("only %d rows of the header's table were read", len(rows))
	}
}

// compile builds a program of this folder against the library and returns its path.
func compile(t *testing.T, cc, std, source string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "program")
	out, err := exec.Command(cc, "-std="+std, "-Wall", "-Wextra", "-Werror", "-pedantic", "-I", "../include", source, "-L", lib.dir,
		"-lprovegym", "-Wl,-rpath,"+lib.dir, "-o", bin).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", cc, source, err, out)
	}
	return bin
}

func TestLibrary_cPrograms(t *testing.T) {
	for _, p := range []struct{ cc, std, source string }{
		{"gcc", "c99", "testdata/smoke.c"}, {"gcc", "c11", "testdata/smoke.c"},
		{"g++", "c++11", "testdata/smoke.cc"}, {"g++", "c++20", "testdata/smoke.cc"},
	} {
		if _, err := exec.LookPath(p.cc); err != nil {
			t.Skipf("this machine lacks %s", p.cc)
		}
		if out, err := exec.Command(compile(t, p.cc, p.std, p.source)).CombinedOutput(); err != nil {
			t.Errorf("%s as %s: %v\n%s", p.source, p.std, err, out)
		}
	}
}

func TestLayout(t *testing.T) {
	out, err := exec.Command(compile(t, "gcc", "c99", "testdata/layout.c")).Output()
	if err != nil {
		t.Fatal(err)
	}
	mirror := map[string]reflect.Type{"pgym_error": reflect.TypeFor[cError](), "pgym_bytes": reflect.TypeFor[cBytes](),
		"pgym_text": reflect.TypeFor[cText](), "pgym_obs": reflect.TypeFor[cObs](), "pgym_io": reflect.TypeFor[cIO]()}
	got := map[string]string{}
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), " ")
		got[name] = value
	}
	want := map[string]string{}
	for name, typ := range mirror {
		want[name] = fmt.Sprint(typ.Size())
		for i := range typ.NumField() {
			want[name+"."+strings.ToLower(typ.Field(i).Name)] = fmt.Sprint(typ.Field(i).Offset)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-Go +C):\n%s", d)
	}
}

// TestRandomAgent runs the C example and repeats its rule in Go.
func TestRandomAgent(t *testing.T) {
	out, err := exec.Command(compile(t, "gcc", "c99", "examples/random_agent.c"), "echo", "7", "6").Output()
	if err != nil {
		t.Fatal(err)
	}
	pack, err := gym.LookupPack("echo")
	if err != nil {
		t.Fatal(err)
	}
	sampler := vector.Sampler{Pack: pack}
	if err := sampler.Prepare(); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	state := uint64(7)
	next := func() uint64 {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	for k := range uint64(6) {
		ep, err := gym.NewEpisode(sampler.Draw(7, k), gym.Options{View: gym.Structured})
		if err != nil {
			t.Fatal(err)
		}
		for ep.Outcome() == gym.Running {
			var ones []int
			for i, m := range ep.Obs().Mask {
				if m == 1 {
					ones = append(ones, i)
				}
			}
			if err := ep.StepAction(ones[next()%uint64(len(ones))]); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Fprintln(&want, ep.Task().ID(), ep.Outcome(), ep.Digest())
	}
	if d := cmp.Diff(want.String(), string(out)); d != "" {
		t.Errorf("(-Go +C):\n%s", d)
	}
}

// TestBadInput gives the library everything that it must refuse; each refusal has its code and says what to do.
func TestBadInput(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	vec := `{"pack":"echo","num_envs":1,`
	for _, c := range []struct {
		name, method, in string
		status           int32
		says             string
	}{
		{"unknown pack", "vec", `{"pack":"ekko","num_envs":1}`, eUnknown, `"echo"`},
		{"no pack", "vec", `{"num_envs":1}`, eUnknown, "pack"},
		{"unknown family", "vec", vec + `"family":"copi"}`, eUnknown, `"copy"`},
		{"unknown dial", "vec", vec + `"dials":{"slak":1}}`, eUnknown, `"slack"`},
		{"unknown level", "vec", vec + `"dials":{"slack":7}}`, eInput, "it takes 3, 2, 1.5"},
		{"unknown preset", "vec", vec + `"preset":"L9"}`, eUnknown, `"L0"`},
		{"unknown mode", "vec", vec + `"mode":"trian"}`, eUnknown, `"train"`},
		{"unknown view", "vec", vec + `"view":"structure"}`, eUnknown, `"structured"`},
		{"unknown autoreset", "vec", vec + `"autoreset":"never"}`, eUnknown, "next_step"},
		{"unknown member", "vec", vec + `"num_enws":1}`, eInput, `"num_envs"`},
		{"member of another", "vec", vec + `"tasks":1}`, eInput, "tasks"},
		{"no rows", "vec", `{"pack":"echo"}`, eInput, "num_envs"},
		{"rows without end", "vec", `{"pack":"echo","num_envs":1000000000}`, eInput, "65536"},
		{"rows as a word", "vec", `{"pack":"echo","num_envs":"4"}`, eInput, "a whole number"},
		{"rows as a fraction", "vec", `{"pack":"echo","num_envs":1.5}`, eInput, "num_envs"},
		{"pack as a list", "vec", `{"pack":["echo"],"num_envs":1}`, eInput, "a string"},
		{"NaN", "vec", vec + `"dials":{"slack":NaN}}`, eInput, "malformed JSON at byte"},
		{"Infinity", "vec", vec + `"dials":{"slack":1e999}}`, eInput, "slack"},
		{"dial as a list", "vec", vec + `"dials":{"slack":[2]}}`, eInput, "a string or a number"},
		{"family as a number", "vec", vec + `"family":3}`, eInput, "a name or a list of names"},
		{"no families", "vec", vec + `"family":[]}`, eInput, "empty"},
		{"cut short", "vec", `{"pack":"ec`, eInput, "ends too soon"},
		{"two objects", "vec", `{"pack":"echo","num_envs":1}{}`, eInput, "something follows"},
		{"not an object", "vec", `[1]`, eInput, "an object"},
		{"mode without split", "vec", vec + `"mode":"train"}`, eInput, "needs a split"},
		{"held-out family", "vec", vec + `"mode":"train","family":"guarded","split":{"pack":"echo","families":{"guarded":"test"}}}`, eHeldOut, "guarded"},
		{"unknown trace", "vec", vec + `"trace":"12345678901"}`, eHandle, "closed"},
		{"trace as a number", "vec", vec + `"trace":12}`, eInput, "decimal strings"},
		{"group that does not fit", "vec", `{"pack":"echo","num_envs":4,"group_size":3}`, eInput, "divide"},
		{"long pack", "vec", `{"pack":"` + long + `","num_envs":1}`, eUnknown, "100000 bytes"},
		{"long member", "vec", vec + `"` + long + `":1}`, eInput, "member"},
		{"long garbage", "vec", long, eInput, "malformed JSON"},
		{"unknown method", "tsk", `{}`, eUnknown, `"task"`},
		{"no such method", "frobnicate", `{}`, eUnknown, "known:"},
		{"task id", "task", `{"task":"echo"}`, eInput, "#seed="},
		{"task seed", "task", `{"task":"echo@1/copy#seed=-1"}`, eInput, "64-bit"},
		{"task seed too big", "task", `{"task":"echo@1/copy#seed=18446744073709551616"}`, eInput, "64-bit"},
		{"task version", "task", `{"task":"echo@9/copy#seed=1"}`, eUnknown, "1"},
		{"task dial twice", "task", `{"task":"echo@1/copy?slack=2&slack=3#seed=1"}`, eInput, "twice"},
		{"long task", "task", `{"task":"` + long + `"}`, eInput, "100000 bytes"},
		{"negative sample", "sample", `{"pack":"echo","n":-1}`, eInput, "n is -1"},
		{"sample seed", "sample", `{"pack":"echo","n":1,"seed":7}`, eInput, "decimal strings"},
		{"unknown agent", "rollout", `{"agent":"orakle","tasks":[{"task":"echo@1/copy#seed=1"}]}`, eUnknown, "oracle"},
		{"unknown variant", "rollout", `{"agent":"oracle","variant":99,"tasks":[{"task":"echo@1/copy#seed=1"}]}`, eInput, "99"},
		{"rollout without split", "rollout", `{"agent":"oracle","mode":"test","tasks":[{"task":"echo@1/copy#seed=1"}]}`, eInput, "split"},
		{"trace nowhere", "trace.verify", `{"path":"/nowhere/at/all"}`, eIO, "nowhere"},
		{"trace without path", "trace.open", `{"path":""}`, eInput, "path"},
		{"split of nothing", "split.freeze", `{"split":{"pack":"ekko"}}`, eUnknown, `"echo"`},
		{"split with a typo", "split.freeze", `{"split":{"pack":"echo","familys":{}}}`, eInput, "familys"},
		{"break without split", "break.new", `{"pack":"echo","key":"1"}`, eInput, "split"},
		{"plan with a typo", "prove.freeze", `{"plan":{"condition":[]}}`, eInput, `"conditions"`},
		{"panic", "test.panic", `{}`, ePanic, "hooks_capitest.go"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var status int32
			var text string
			if c.method == "vec" {
				var h uint64
				err := newError()
				status, text = lib.make(c.in, uint64(len(c.in)), &h, err), ""
				text = err.text()
				if status != ok && err.Code != status || h != 0 {
					t.Errorf("status %d, err.code %d, handle %d", status, err.Code, h)
				}
			} else {
				_, status, text = ask(0, c.method, c.in)
			}
			if status != c.status || !strings.Contains(text, c.says) {
				t.Errorf("status %d, want %d; the text %q lacks %q", status, c.status, text, c.says)
			}
		})
	}
}

// TestBadPointers and states: what is wrong with the moment or the buffers.
func TestBadPointersAndMoments(t *testing.T) {
	w := newWorld(t, `{"pack":"echo","num_envs":2,"view":"text","autoreset":"disabled"}`, 2)
	err := newError()
	expect := func(what string, got, want int32) {
		t.Helper()
		if got != want || err.text() == "" || err.Code != want {
			t.Errorf("%s: %d, want %d: %s", what, got, want, err.text())
		}
		*err = *newError()
	}
	expect("step before reset", lib.step(w.h, err), eState)
	must(t, lib.reset(w.h, nil, nil, nil, err), err)
	w.off[1], w.off[2] = 9, 3
	expect("offsets that fall", lib.step(w.h, err), eInput)
	w.off[1], w.off[2] = 0, 0
	expect("row that is not there", lib.snapshot(w.h, 2, &cBytes{}, err), eInput)
	expect("NULL out", lib.snapshot(w.h, 0, nil, err), eInput)
	expect("NULL vec", lib.make("{}", 2, nil, err), eInput)
	expect("restore of nothing", lib.restore(w.h, 0, nil, 0, err), eInput)
	expect("NULL with a length", lib.restore(w.h, 0, nil, 8, err), eInput)
	other := newWorld(t, `{"pack":"echo","num_envs":1,"view":"structured"}`, 1)
	must(t, lib.reset(other.h, nil, nil, nil, err), err)
	var snap cBytes
	must(t, lib.snapshot(other.h, 0, &snap, err), err)
	expect("snapshot of the other view", lib.restore(w.h, 0, snap.Data, snap.Len, err), eSnapshot)
	lib.free(&snap)
	expect("fork into itself", lib.fork(w.h, 0, new(uint32), 1, err), eInput)
	bad := w.io
	bad.Num_envs = 3
	expect("num_envs", lib.bind(w.h, &bad, err), eInput)
	bad = w.io
	bad.Reward = nil
	expect("no rewards", lib.bind(w.h, &bad, err), eInput)
	must(t, lib.bind(w.h, &w.io, err), err)
	expect("handle 0", lib.step(0, err), eHandle)
	expect("any handle", lib.step(^uint64(0), err), eHandle)
	_, status, _ := ask(w.h, "break.ask", `{"n":1}`)
	if status != eInput {
		t.Errorf("a method of another kind of handle: %d", status)
	}
	h := w.h
	must(t, lib.close(h, err), err)
	expect("use after close", lib.step(h, err), eHandle)
	reused := newWorld(t, `{"pack":"echo","num_envs":1}`, 1)
	if uint32(reused.h) != uint32(h) {
		t.Errorf("slot %d was not used again", uint32(h))
	}
	expect("old handle of a slot used again", lib.step(h, err), eHandle)
	small := &cError{Size: 8}
	if lib.step(h, small) != eHandle || small.Code != 0 {
		t.Error("an error struct of another size was written to")
	}
}

func TestBusy(t *testing.T) {
	answer, status, text := ask(0, "check.new", `{"pack":"echo","seeds":2000}`)
	if status != ok {
		t.Fatal(text)
	}
	var made struct{ Handle number }
	if err := json.Unmarshal([]byte(answer), &made); err != nil {
		t.Fatal(err)
	}
	h := uint64(made.Handle)
	var refused atomic.Int32
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for refused.Load() == 0 {
				switch _, status, text := ask(h, "check.step", `{"budget_ms":20}`); {
				case status == eBusy && strings.Contains(text, "one thread"):
					refused.Add(1)
				case status != ok:
					t.Errorf("%d: %s", status, text)
					return
				}
			}
		})
	}
	wg.Wait()
	var closing sync.WaitGroup
	closing.Go(func() { ask(h, "check.step", `{"budget_ms":50}`) })
	if _, status, text := ask(h, "close", `{}`); status != ok { // it waits for the thread inside, if there is one
		t.Error(text)
	}
	closing.Wait()
	if _, status, _ := ask(h, "check.step", `{}`); status != eHandle {
		t.Errorf("after close: %d", status)
	}
}

// do makes a request that must work and reads the answer.
func do[T any](t *testing.T, handle number, method, in string) (out T) {
	t.Helper()
	answer, status, text := ask(uint64(handle), method, in)
	if status != ok {
		t.Fatalf("%s %s: %d: %s", method, in, status, text)
	}
	if err := json.Unmarshal([]byte(answer), &out); err != nil {
		t.Fatalf("%s answers %s: %v", method, answer, err)
	}
	return out
}

type opened struct{ Handle number }

const splitOfEcho = `{"pack":"echo","families":{"guarded":"test"},"train_dials":{"slack":["3","2"]}}`

// TestColdMethods_breakRolloutCurriculum goes round once: a search whose probes an agent of the pack plays, its causes into a
// curriculum, and vectors that draw from that and are recorded.
func TestColdMethods_roundTrip(t *testing.T) {
	split := string(do[struct{ Split json.RawMessage }](t, 0, "split.freeze", `{"split":`+splitOfEcho+`}`).Split)
	if r := do[struct{ Region, Why string }](t, 0, "split.region", `{"split":`+split+`,"condition":"echo@1/guarded"}`); r.Region != "test" || r.Why == "" {
		t.Errorf("region %+v", r)
	}
	region := `"pack":"echo","split":` + split + `,"key":"5"`

	search := do[opened](t, 0, "break.new", `{`+region+`,"budget":60,"checkpoint":"c0"}`)
	play := func(h number) (done bool) {
		asked := do[struct {
			Probes []struct {
				ID   uint64
				Task string
			}
			Done bool
		}](t, h, "break.ask", `{"n":8}`)
		if asked.Done {
			return true
		}
		var tasks, results []string
		for _, p := range asked.Probes {
			tasks = append(tasks, fmt.Sprintf(`{"task":%q,"labels":{"purpose":"break"}}`, p.Task))
		}
		played := do[struct{ Results []rolloutResult }](t, 0, "rollout", `{"agent":"nc2_random_valid","view":"structured","mode":"train","split":`+split+`,"tasks":[`+strings.Join(tasks, ",")+`]}`)
		for i, r := range played.Results {
			if r.Digest == "" || r.Task != asked.Probes[i].Task {
				t.Fatalf("result %d is %+v", i, r)
			}
			results = append(results, fmt.Sprintf(`{"id":%d,"failed":%v,"lost":false,"mode":%q}`, asked.Probes[i].ID, !r.Success, r.Outcome))
		}
		return do[struct{ Done bool }](t, h, "break.tell", `{"results":[`+strings.Join(results, ",")+`]}`).Done
	}
	play(search.Handle)
	state := do[struct{ State json.RawMessage }](t, search.Handle, "break.state", `{}`)
	if bytes.Contains(state.State, []byte(`"key":"5"`)) {
		t.Error("the state holds the run's key")
	}
	resumed := do[opened](t, 0, "break.new", `{"state":`+string(state.State)+`}`)
	for _, h := range []number{search.Handle, resumed.Handle} {
		for !play(h) {
		}
	}
	one := do[map[string]any](t, search.Handle, "break.report", `{}`)
	if d := cmp.Diff(one, do[map[string]any](t, resumed.Handle, "break.report", `{}`)); d != "" {
		t.Errorf("the resumed search differs:\n%s", d)
	}
	if _, status, _ := ask(0, "rollout", `{"agent":"oracle","mode":"train","split":`+split+`,"tasks":[{"task":"echo@1/guarded#seed=1"}]}`); status != eHeldOut {
		t.Errorf("a rollout of a held-out task in training: %d", status)
	}
	causes, _ := json.Marshal(one["causes"])

	sampler := do[opened](t, 0, "curriculum.new", `{`+region+`}`)
	do[any](t, sampler.Handle, "curriculum.update", `{"causes":`+string(causes)+`,"checkpoint":"c1"}`)
	drawn := do[struct{ Tasks []draw }](t, sampler.Handle, "curriculum.ask", `{"n":8,"group_size":4}`).Tasks
	if len(drawn) != 8 || drawn[0].Task != drawn[3].Task || drawn[0].Labels.Purpose != "train" {
		t.Errorf("%+v", drawn)
	}
	do[any](t, sampler.Handle, "curriculum.tell", fmt.Sprintf(`{"results":[{"item":%q,"passes":1,"episodes":3,"lost":1}]}`, drawn[0].Item))
	if _, status, text := ask(uint64(sampler.Handle), "curriculum.tell", `{"results":[{"item":"family=copy","passes":0,"episodes":99}]}`); status != eInput {
		t.Errorf("%d %s", status, text)
	}
	kept := do[struct{ State json.RawMessage }](t, sampler.Handle, "curriculum.state", `{}`)
	again := do[opened](t, 0, "curriculum.new", `{"state":`+string(kept.State)+`}`)
	type slots struct {
		Version int
		Tasks   []slotDraw
	}
	for _, h := range []number{sampler.Handle, again.Handle} {
		at := do[slots](t, h, "curriculum.at", `{"slots":["3","9223372036854775807","3"]}`)
		if len(at.Tasks) != 3 || at.Tasks[0] != at.Tasks[2] || at.Tasks[0] == at.Tasks[1] || at.Tasks[0].Labels != (gym.Labels{Purpose: "train", Slot: 3, Group: 3}) {
			t.Errorf("%+v", at)
		}
		if d := cmp.Diff(at, do[slots](t, sampler.Handle, "curriculum.at", `{"slots":["3","9223372036854775807","3"]}`)); d != "" {
			t.Errorf("the slots of the resumed curriculum differ:\n%s", d)
		}
		if up := do[slots](t, again.Handle, "curriculum.at", `{"slots":[]}`); up.Version != at.Version || up.Tasks == nil {
			t.Errorf("no slots: %+v", up)
		}
	}
	for _, h := range []number{sampler.Handle, again.Handle} {
		was := do[slots](t, h, "curriculum.at", `{"slots":["3"]}`)
		up := do[slots](t, h, "curriculum.advance", fmt.Sprintf(`{"results":[{"item":%q,"passes":3,"episodes":7,"lost":1}]}`, was.Tasks[0].Item))
		now := do[slots](t, h, "curriculum.at", `{"slots":["3"]}`)
		if up.Version != was.Version+1 || now.Version != up.Version || now.Tasks[0].Task == was.Tasks[0].Task {
			t.Errorf("from %+v by %+v to %+v", was, up, now)
		}
	}
	for in, status := range map[string]int32{`{"results":[{"item":"family=guarded","episodes":1}]}`: eUnknown, `{"results":[{"item":"uniform","passes":1}]}`: eInput} {
		if _, got, text := ask(uint64(sampler.Handle), "curriculum.advance", in); got != status || text == "" {
			t.Errorf("%s gives %d: %s", in, got, text)
		}
	}
	if _, status, text := ask(uint64(sampler.Handle), "curriculum.at", `{"slots":["9223372036854775808"]}`); status != eInput {
		t.Errorf("%d %s", status, text)
	}
	next := func(h number) any { return do[any](t, h, "curriculum.ask", `{"n":4,"group_size":2}`) }
	if d := cmp.Diff(next(sampler.Handle), next(again.Handle)); d != "" {
		t.Errorf("the resumed curriculum draws others:\n%s", d)
	}

	path := t.TempDir()
	pack := do[struct{ Packs []packInfo }](t, 0, "packs", `{"pack":"echo"}`).Packs[0]
	store := do[opened](t, 0, "trace.open", fmt.Sprintf(`{"path":%q,"run":{"policy":"random","pack_hash":%q}}`, path, pack.Hash))
	w := newWorld(t, fmt.Sprintf(`{"pack":"echo","num_envs":8,"view":"structured","mode":"train","split":%s,"trace":"%d","curriculum":"%d","group_size":4,
		"autoreset":"same_step"}`, split, store.Handle, sampler.Handle), 8)
	err := newError()
	must(t, lib.reset(w.h, nil, nil, nil, err), err)
	if w.task.string(0) != w.task.string(3) || strings.Contains(w.task.string(4), "guarded") {
		t.Errorf("groups show %s, %s and %s", w.task.string(0), w.task.string(3), w.task.string(4))
	}
	rng := gym.NewKey(3, "actions").Stream()
	ended := 0
	for range 200 {
		for i := range 8 {
			var ones []int32
			for k, m := range w.mask[i*gym.Actions : (i+1)*gym.Actions] {
				if m == 1 {
					ones = append(ones, int32(k))
				}
			}
			w.action[i] = gym.Pick(&rng, ones)
		}
		must(t, lib.step(w.h, err), err)
		for _, o := range w.outcome {
			if o != 0 {
				ended++
			}
		}
	}
	if _, status, text := ask(uint64(store.Handle), "close", `{}`); status != eState || !strings.Contains(text, "close them first") {
		t.Errorf("closing a trace under a vector: %d %s", status, text)
	}
	must(t, lib.close(w.h, err), err)
	if n := do[struct{ Episodes int }](t, store.Handle, "trace.flush", `{}`).Episodes; n != ended || n < 20 {
		t.Errorf("%d episodes are stored and %d ended", n, ended)
	}
	do[any](t, store.Handle, "trace.mark", `{"iteration":1}`)
	do[any](t, store.Handle, "close", `{}`)
	if v := do[struct {
		OK       bool
		Problems []any
	}](t, 0, "trace.verify", fmt.Sprintf(`{"path":%q}`, path)); !v.OK {
		t.Errorf("%+v", v)
	}
	replayed, cursor, more := 0, uint64(0), true
	for more {
		r := do[struct {
			Done       bool
			Cursor     uint64
			Replayed   int
			Mismatches []any
		}](t, 0, "trace.replay", fmt.Sprintf(`{"path":%q,"cursor":%d,"limit":7}`, path, cursor))
		if len(r.Mismatches) > 0 {
			t.Fatalf("%v", r.Mismatches)
		}
		replayed += r.Replayed
		cursor, more = r.Cursor, !r.Done
	}
	if replayed < ended {
		t.Errorf("%d of %d episodes were replayed", replayed, ended)
	}
	rows := do[struct{ Rows []map[string]any }](t, 0, "trace.query", fmt.Sprintf(`{"path":%q,"what":"episodes","purpose":"train","limit":3}`, path)).Rows
	if len(rows) != 3 {
		t.Errorf("%v", rows)
	}
}

// TestColdMethods_stop ends rows from outside, recorded.
func TestColdMethods_stop(t *testing.T) {
	path := t.TempDir()
	pack := do[struct{ Packs []packInfo }](t, 0, "packs", `{"pack":"echo"}`).Packs[0]
	store := do[opened](t, 0, "trace.open", fmt.Sprintf(`{"path":%q,"run":{"pack_hash":%q}}`, path, pack.Hash))
	w := newWorld(t, fmt.Sprintf(`{"pack":"echo","num_envs":3,"trace":"%d","autoreset":"disabled"}`, store.Handle), 3)
	err := newError()
	must(t, lib.reset(w.h, nil, nil, nil, err), err)
	must(t, lib.step(w.h, err), err)
	first := w.text.string(1)
	do[any](t, number(w.h), "vec.stop", `{"env":1,"outcome":"truncated"}`)
	do[any](t, number(w.h), "vec.stop", `{"env":2,"outcome":"invalid","why":"no \u20ac"}`)
	if d := cmp.Diff([][]uint8{{0, 2, 3}, {0, 4, 0}, {0, 1, 1}, {0, 0, 0}}, [][]uint8{w.outcome, w.limit, w.truncated, w.terminated}); d != "" {
		t.Error(d)
	}
	if got := w.text.string(1); got != first || got == "" {
		t.Errorf("the stopped row shows %q after %q", got, first)
	}
	info := func(env int) episodeInfo {
		return do[episodeInfo](t, number(w.h), "vec.info", fmt.Sprintf(`{"env":%d}`, env))
	}
	if i := info(0); i.Episode == nil || *i.Episode != 1 || i.Outcome != "running" || i.Limit != "" || i.Calls != 1 {
		t.Errorf("%+v", i)
	}
	if i := info(1); *i.Episode != 2 || i.Outcome != "truncated" || i.Limit != "tokens" || i.Success || len(i.Components) != 4 || i.Digest == "" {
		t.Errorf("%+v", i)
	}
	if i := info(2); *i.Episode != 3 || i.Outcome != "invalid" || i.Why != "no €" {
		t.Errorf("%+v", i)
	}
	for in, status := range map[string]int32{
		`{"env":1,"outcome":"truncated"}`:                 eState,
		`{"env":0}`:                                       eInput,
		`{"env":0,"outcome":"scored"}`:                    eInput,
		`{"env":0,"outcome":"truncated","why":"x"}`:       eInput,
		`{"env":0,"outcome":"invalid","limit":"wall"}`:    eInput,
		`{"env":9,"outcome":"truncated"}`:                 eInput,
		`{"env":0,"outcome":"lost"}`:                      eUnknown,
		`{"env":0,"outcome":"truncated","limit":"tokns"}`: eUnknown,
	} {
		if _, got, text := ask(w.h, "vec.stop", in); got != status || text == "" {
			t.Errorf("%s gives %d: %s", in, got, text)
		}
	}
	if status := lib.step(w.h, err); status != eState {
		t.Errorf("a step of stopped rows gives %d", status)
	}
	row := `"checkpoint":"c","prompt":1,"sampled":1,"shown":1,"prompt_ids":[4294967295],"completion_ids":[7,8],"mask":[1,0],"logprobs":[-0.5]`
	do[any](t, store.Handle, "trace.tokens", `{"rows":[{"episode":2,`+row+`},{"episode":1,"checkpoint":"c","prompt":5,"sampled":6,"shown":7}]}`)
	for in, status := range map[string]int32{
		`{"rows":[{"episode":4,` + row + `}]}`:                                     eUnknown,
		`{"rows":[{"episode":2,"prompt_ids":[1]}]}`:                                eInput,
		`{"rows":[{"episode":2,"prompt_ids":[-1]}]}`:                               eInput,
		`{"rows":[{"episode":2,"sampled":"1"}]}`:                                   eInput,
		`{"rows":[{"episode":2,"masc":[1]}]}`:                                      eInput,
		`{"rows":[{"episode":2,` + strings.Replace(row, "[1,0]", "[1]", 1) + `}]}`: eInput,
	} {
		if _, got, text := ask(uint64(store.Handle), "trace.tokens", in); got != status || text == "" {
			t.Errorf("%s gives %d: %s", in, got, text)
		}
	}
	tokens := do[struct{ Rows []json.RawMessage }](t, 0, "trace.query", fmt.Sprintf(`{"path":%q,"what":"tokens","detail":true}`, path)).Rows
	if len(tokens) != 2 || string(tokens[1]) != `{"episode":2,`+row+`}` || string(tokens[0]) != `{"episode":1,"checkpoint":"c","prompt":5,"sampled":6,"shown":7}` {
		t.Errorf("tokens %s", tokens)
	}
	must(t, lib.close(w.h, err), err)
	do[any](t, store.Handle, "close", `{}`)
	if r := do[struct {
		Replayed   int
		Mismatches []any
	}](t, 0, "trace.replay", fmt.Sprintf(`{"path":%q}`, path)); r.Replayed != 3 || len(r.Mismatches) > 0 {
		t.Errorf("%+v", r)
	}
	alone := newWorld(t, `{"pack":"echo","num_envs":1}`, 1)
	must(t, lib.reset(alone.h, nil, nil, nil, err), err)
	if i := do[episodeInfo](t, number(alone.h), "vec.info", `{"env":0}`); i.Episode != nil {
		t.Errorf("nothing records it, and it is episode %d", *i.Episode)
	}
}

func TestColdMethods_prove(t *testing.T) {
	split := string(do[struct{ Split json.RawMessage }](t, 0, "split.freeze", `{"split":`+splitOfEcho+`}`).Split)
	plan := `{"pack":"echo@1","base":{"rule":"random"},"looks":[{"id":"final","checkpoint":"last"}],
		"conditions":[{"id":"echo@1/guarded","tier":"held-out-family","G":40}]}`
	if rows := do[struct{ Rows []any }](t, 0, "prove.table", `{"plan":`+plan+`}`).Rows; len(rows) != 2 {
		t.Errorf("%v", rows)
	}
	frozen := string(do[struct{ Plan json.RawMessage }](t, 0, "prove.freeze", `{"plan":`+plan+`,"key":"5","split":`+split+`}`).Plan)
	if same := string(do[struct{ Plan json.RawMessage }](t, 0, "prove.freeze", `{"plan":`+frozen+`}`).Plan); same != frozen {
		t.Errorf("a frozen plan changed:\n%s\n%s", frozen, same)
	}
	look := `"plan":` + frozen + `,"key":"5","look":"final"`
	slots := do[struct {
		Slots []struct {
			Condition, Cluster, Task string
			Seed                     number
			Arms                     []string
		}
	}](t, 0, "prove.tasks", `{`+look+`}`).Slots
	pack := do[struct{ Packs []packInfo }](t, 0, "packs", `{"pack":"echo"}`).Packs[0]
	path := t.TempDir()
	for k, agent := range []string{"nc0_finish_at_once", "oracle"} {
		store := do[opened](t, 0, "trace.open", fmt.Sprintf(`{"path":%q,"run":{"policy":%q,"pack_hash":%q,"check_hash":%q,"plan_hash":%s}}`, path, agent, pack.Hash,
			pack.CheckHash, regexp.MustCompile(`"hash":("\w+")}`).FindStringSubmatch(frozen)[1]))
		var tasks []string
		for _, s := range slots {
			tasks = append(tasks, fmt.Sprintf(`{"task":%q,"labels":{"purpose":"sealed","arm":%q,"look":"final","cluster":%q}}`, s.Task, s.Arms[k], s.Cluster))
		}
		do[any](t, 0, "rollout", fmt.Sprintf(`{"agent":%q,"mode":"test","split":%s,"trace":"%d","tasks":[%s]}`, agent, split, store.Handle, strings.Join(tasks, ",")))
		do[any](t, store.Handle, "close", `{}`)
	}
	result := do[json.RawMessage](t, 0, "prove.look", fmt.Sprintf(`{%s,"trace":%q,"base":"b","checkpoint":"c"}`, look, path))
	if !bytes.Contains(result, []byte(`"IMPROVED"`)) {
		t.Errorf("the oracle against nothing: %s", result)
	}
	report := do[struct{ Markdown, HTML string }](t, 0, "prove.report", `{"plan":`+frozen+`,"looks":[`+string(result)+`]}`)
	if !strings.Contains(report.Markdown, "IMPROVED") || !strings.Contains(report.HTML, "IMPROVED") {
		t.Error(report.Markdown)
	}
}

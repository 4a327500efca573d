package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func openWarm(t testing.TB, p Python) *Sandbox {
	t.Helper()
	if p.Executable == "" {
		if _, err := os.Stat("/usr/bin/python3"); err != nil {
			if _, err := os.Stat("/usr/local/bin/python3"); err != nil {
				t.Skip("there is no python3 in /usr on this host")
			}
		}
	}
	for _, l := range levels(t)[:1] {
		if l == LevelPlain {
			t.Skip("a warm interpreter needs namespaces")
		}
	}
	return open(t, Options{Python: &p})
}

func python(t testing.TB, b *Box, code string) Result {
	t.Helper()
	end, err := b.ExecPython(context.Background(), []byte(code))
	if err != nil {
		t.Fatal(err)
	}
	return end
}

func TestPython_codeRuns(t *testing.T) {
	s := openWarm(t, Python{Imports: []string{"json", "re", "random", "collections.abc"}})
	for name, row := range map[string]struct {
		code, stdout, stderr string
		exit                 int
	}{
		"prints":             {"print(1 + 1)", "2\n", "", 0},
		"is main":            {"print(__name__, len(globals()))", "__main__ 2\n", "", 0},
		"has its imports":    {"import sys; print('json' in sys.modules, 'wave' in sys.modules)", "True False\n", "", 0},
		"exit code":          {"raise SystemExit(7)", "", "", 7},
		"exit with text":     {"raise SystemExit('no')", "", "no\n", 1},
		"exception":          {"def f():\n  1/0\nf()", "", "Traceback (most recent call last):\n  File \"<episode>\", line 3, in <module>\n  File \"<episode>\", line 2, in f\nZeroDivisionError: division by zero\n", 1},
		"syntax error":       {"(", "", "SyntaxError", 1},
		"is a normal child":  {"import os; print(os.getpid(), os.getppid(), os.getuid(), os.getcwd(), os.getsid(0))", "2 1 1000 /work 2\n", "", 0},
		"threads":            {"import threading\nt = threading.Thread(target=lambda: print('thread'))\nt.start(); t.join()", "thread\n", "", 0},
		"unjoined thread":    {"import threading, time\nthreading.Thread(target=lambda: (time.sleep(.05), print('late'))).start()", "late\n", "", 0},
		"subprocess":         {"import subprocess; print(subprocess.run(['echo', 'sub'], capture_output=True, text=True).stdout, end='')", "sub\n", "", 0},
		"fork":               {"import os\nif os.fork() == 0: os._exit(3)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))", "3\n", "", 0},
		"multiprocessing":    {"import concurrent.futures as f\nwith f.ThreadPoolExecutor(4) as e: print(sum(e.map(abs, range(9))))", "36\n", "", 0},
		"files":              {"open('x', 'w').write('y'); print(open('/work/x').read())", "y\n", "", 0},
		"atexit":             {"import atexit; atexit.register(print, 'bye')", "bye\n", "", 0},
		"its input is empty": {"import sys; print(repr(sys.stdin.read()))", "''\n", "", 0},
		"no descriptors":     {"import os\nprint(sorted(int(f) for f in os.listdir('/proc/self/fd'))[:4])", "[0, 1, 2, 3]\n", "", 0}, // 3 is the listing's own
		"locks work":         {"import threading\nl = threading.RLock()\nwith l, l: print('locked')", "locked\n", "", 0},
		"signals":            {"import signal, os\nsignal.signal(signal.SIGUSR1, lambda *a: print('signal'))\nos.kill(os.getpid(), signal.SIGUSR1)", "signal\n", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, s, Spec{})
			end := python(t, b, row.code)
			if end.Reason != Exited || end.ExitCode != row.exit || string(end.Stdout) != row.stdout || !strings.Contains(string(end.Stderr), row.stderr) {
				t.Errorf("%v\n%s\n%s", &end, end.Stdout, end.Stderr)
			}
		})
	}
}

func TestPython_limits(t *testing.T) {
	s := openWarm(t, Python{})
	for name, row := range map[string]struct {
		code string
		spec Spec
		want []Reason
	}{
		"wall":      {"import time; time.sleep(60)", Spec{WallTimeout: time.Second}, []Reason{Wall}},
		"cpu":       {"while True: pass", Spec{CPUTime: 300 * time.Millisecond, WallTimeout: 20 * time.Second}, []Reason{CPU}},
		"memory":    {"x = [bytearray(1 << 20) for _ in range(1000)]", Spec{MemoryBytes: 64 << 20}, []Reason{Memory, Exited}},
		"output":    {"while True: print('x' * 1000)", Spec{}, []Reason{Output}},
		"fork bomb": {"import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", Spec{WallTimeout: time.Second}, []Reason{Wall, CPU}},
		"segfault":  {"import ctypes; ctypes.string_at(0)", Spec{}, []Reason{Signaled}},
		"kill -1":   {"import os; os.kill(-1, 9); os.kill(1, 9); print('here')", Spec{}, []Reason{Exited, Signaled}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, s, row.spec)
			end := python(t, b, row.code)
			for _, w := range row.want {
				if end.Reason == w {
					if again := python(t, b, "print('still')"); again.Reason != Exited && again.Reason != Memory {
						t.Errorf("afterwards: %v %s", &again, again.Stderr)
					}
					return
				}
			}
			t.Errorf("%v, want %v\n%s", &end, row.want, end.Stderr)
		})
	}
}

// TestPython_noByteOfEarlierEpisodes scans a later episode's whole memory for an earlier one's code, output and files.
func TestPython_noByteOfEarlierEpisodes(t *testing.T) {
	s := openWarm(t, Python{})
	word := fmt.Sprintf("secret%d", time.Now().UnixNano())
	shown := strings.Replace(word, "secret", "SECRET", 1)
	live := newBox(t, s, Spec{}) // one episode is still running …
	go live.ExecPython(context.Background(), []byte("import time; x = '"+word+"live'; print(x); time.sleep(20)"))
	earlier := newBox(t, s, Spec{}) // … and one has ended
	if end := python(t, earlier, "x = '"+word+"ended'; print(x); open('f', 'w').write(x)"); !end.OK() {
		t.Fatalf("%v %s", &end, end.Stderr)
	}
	b := newBox(t, s, Spec{WallTimeout: 60 * time.Second, MemoryBytes: 512 << 20})
	// The scan has the word in capitals, lowered at run time, lest it find its own source; and it never puts the word and what follows
	// it together, lest it find that in memory it has given back. That it can find something is shown by a second run, in which both
	// stand in the code.
	scan := fmt.Sprintf(`
word = %q.lower().encode()
hits = scanned = 0
for line in open("/proc/self/maps"):
    span, perms = line.split()[:2]
    if "r" not in perms or "[v" in line: continue
    a, z = (int(x, 16) for x in span.split("-"))
    with open("/proc/self/mem", "rb", 0) as mem:
        mem.seek(a)
        while a < z:
            try: block = mem.read(min(z - a, 1 << 20))
            except OSError: break
            if not block: break
            scanned += len(block)
            hits += sum(rest[:4] in (b"live", b"ende") for rest in block.split(word)[1:])
            a += len(block)
print(hits > 0, scanned > 1 << 20)
`, shown)
	if end := python(t, b, scan); string(end.Stdout) != "False True\n" {
		t.Errorf("%v: %s%s", &end, end.Stdout, end.Stderr)
	}
	if end := python(t, b, "own = '"+word+"ended'"+scan); string(end.Stdout) != "True True\n" {
		t.Errorf("the scan finds nothing: %v: %s%s", &end, end.Stdout, end.Stderr)
	}
	live.Kill()
}

func TestPython_randomDiffers(t *testing.T) {
	s := openWarm(t, Python{Imports: []string{"random"}})
	seen := map[string]bool{}
	for range 5 {
		end := python(t, newBox(t, s, Spec{}), "import random; print(random.random())")
		if seen[string(end.Stdout)] {
			t.Errorf("the same number twice: %s", end.Stdout)
		}
		seen[string(end.Stdout)] = true
	}
}

func TestPython_armed(t *testing.T) {
	s := openWarm(t, Python{})
	b := newBox(t, s, Spec{WallTimeout: 2 * time.Second, CPUTime: 10 * time.Second})
	if err := b.Arm(); err != nil {
		t.Fatal(err)
	}
	if err := b.Arm(); !errors.Is(err, ErrBusy) {
		t.Errorf("twice: %v", err)
	}
	time.Sleep(2100 * time.Millisecond) // longer than the time limit, which has not begun
	if end := python(t, b, "print('armed')"); !end.OK() || string(end.Stdout) != "armed\n" {
		t.Errorf("%v %s", &end, end.Stderr)
	}
	if end := python(t, b, "import time; time.sleep(9)"); end.Reason != Wall {
		t.Errorf("%v", &end)
	}
	if err := b.Arm(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil { // with the interpreter waiting
		t.Error(err)
	}
}

func TestPython_doesNotStart(t *testing.T) {
	levels(t)
	for _, p := range []Python{{Imports: []string{"no_such_module"}}, {Executable: "/usr/bin/no-such-python"}} {
		_, err := Open(Options{Python: &p, HelperPath: builtHelper})
		if err == nil || !strings.Contains(err.Error(), "no_such_module") && !strings.Contains(err.Error(), "start the warm interpreter") {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if _, err := Open(Options{Python: &Python{Executable: "python", Imports: []string{"os; x"}}}); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
}

func TestPool(t *testing.T) {
	for _, level := range levels(t) {
		t.Run(string(level), func(t *testing.T) {
			s := open(t, Options{Level: level})
			p, err := s.NewPool(Spec{}, 4)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			time.Sleep(100 * time.Millisecond)
			for i := range 12 {
				if i == 6 && level != LevelPlain {
					s.zygote.conn.close() // the zygote dies: boxes that wait are no good any more
					time.Sleep(50 * time.Millisecond)
				}
				b, err := p.Get()
				if err != nil {
					t.Fatal(err)
				}
				end := run(t, b, sh("ls; echo x > file"))
				if !end.OK() || bytes.Contains(end.Stdout, []byte("file")) {
					t.Errorf("%d: %v %s", i, &end, end.Stdout)
				}
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			}
			p.Close()
			if _, err := p.Get(); !errors.Is(err, ErrClosed) {
				t.Errorf("after close: %v", err)
			}
		})
	}
}

func TestPool_armed(t *testing.T) {
	s := openWarm(t, Python{})
	p, err := s.NewPool(Spec{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	time.Sleep(200 * time.Millisecond)
	for i := range 6 {
		b, err := p.Get()
		if err != nil {
			t.Fatal(err)
		}
		if end := python(t, b, fmt.Sprint("print(", i, ")")); string(end.Stdout) != fmt.Sprintln(i) {
			t.Errorf("%v %s", &end, end.Stderr)
		}
		b.Close()
	}
}

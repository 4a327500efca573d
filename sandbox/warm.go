package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A warm interpreter is a zygote of another kind: CPython imports what episodes will want, loads the helper as a library and
// serves. A box's init shares the interpreter's address space; the process that runs an episode's code is forked from it into
// the box, so imports cost nothing and one copy-on-write fork is all there is. Code reaches that process by a pipe that it
// reads after the fork: the template never holds a byte of any episode.

// Python says which interpreter to keep warm.
type Python struct {
	// Executable is a path that Options.ReadOnlyDirs show, CPython 3.8 or newer; "" looks for python3 in /usr.
	Executable string
	// Imports are modules that are imported before any episode. They must start no threads.
	Imports []string
}

var moduleName = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*(\.[A-Za-z_][A-Za-z_0-9]*)*$`)

// check gives a copy with the executable found.
func (p *Python) check(problems *problems) *Python {
	c := *p
	if c.Executable == "" {
		for _, path := range []string{"/usr/local/bin/python3", "/usr/bin/python3"} {
			if _, err := os.Stat(path); err == nil {
				c.Executable = path
				break
			}
		}
		if c.Executable == "" {
			problems.add("Python: there is no python3 in /usr; give Executable, and show its installation by ReadOnlyDirs")
		}
	} else if !filepath.IsAbs(c.Executable) {
		problems.add("Python: Executable %q is not absolute", c.Executable)
	}
	for _, m := range c.Imports {
		if !moduleName.MatchString(m) {
			problems.add("Python: %.60q is no module name", m)
		}
	}
	if len(strings.Join(c.Imports, ",")) > 32<<10 {
		problems.add("Python: Imports take more than 32 KiB")
	}
	return &c
}

// template is what the interpreter runs. Descriptors: 3 control, 4 the helper's library, 6 its state.
const template = `
import atexit, ctypes, gc, os, sys, threading
%s
if threading.active_count() != 1: raise SystemExit("an import has started threads: " + repr(threading.enumerate()))
def _provegym():
    lib = ctypes.PyDLL("/proc/self/fd/4")
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 2)
    os.close(null)
    gc.collect()
    gc.freeze()
    ctypes.pythonapi.PyOS_BeforeFork()
    if lib.warm_serve(3, 6) != 1: os._exit(0)
    ctypes.pythonapi.PyOS_AfterFork_Child()
    code = b""
    while block := os.read(0, 1 << 16): code += block
    if numpy := sys.modules.get("numpy"): numpy.random.seed()
    sys.path.insert(0, os.getcwd())
    sys.argv = ["<episode>"]
    status = 0
    try:
        exec(compile(code, "<episode>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str): print(end.code, file=sys.stderr)
    except BaseException as error:
        status = 1
        sys.excepthook(type(error), error.with_traceback(error.__traceback__.tb_next), error.__traceback__)
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        status = status or 120
    os._exit(status & 255)
_provegym()
`

func (p *Python) argv() []string {
	imports := ""
	if len(p.Imports) > 0 {
		imports = "import " + strings.Join(p.Imports, ", ")
	}
	return []string{p.Executable, "-I", "-c", fmt.Sprintf(template, imports)}
}

func (p *Python) env() []string { return append([]string{"PYTHONDONTWRITEBYTECODE=1"}, DefaultEnv...) }

// Arm forks the interpreter into the box ahead of time; ExecPython then only hands over the code. Its time limit begins there.
//
// Errors: ErrUnsupported, ErrBusy, ErrClosed.
func (b *Box) Arm() error {
	if b.s.options.Python == nil {
		return fmt.Errorf("%w: Options.Python names no interpreter", ErrUnsupported)
	}
	r, err := b.start(Command{Argv: []string{"python"}, Env: []string{}}, execOptions{hold: true})
	if err != nil {
		return err
	}
	b.mu.Lock()
	closed := b.closed
	if !closed {
		b.armed = r
	}
	b.mu.Unlock()
	if closed {
		r.closeStreams()
		b.busy.Unlock()
		return ErrClosed
	}
	return nil
}

// ExecPython runs code as __main__ in a process forked from the warm interpreter, to its end. Standard input is empty. An
// exception is printed and is exit code 1, as with python3.
//
// Errors: as of Exec; ErrUnsupported without Options.Python.
func (b *Box) ExecPython(ctx context.Context, code []byte) (Result, error) {
	b.mu.Lock()
	r := b.armed
	b.armed = nil
	b.mu.Unlock()
	if r == nil {
		if b.s.options.Python == nil {
			return Result{}, fmt.Errorf("%w: Options.Python names no interpreter", ErrUnsupported)
		}
		var err error
		if r, err = b.start(Command{Argv: []string{"python"}, Env: []string{}}, execOptions{hold: true}); err != nil {
			return Result{}, err
		}
	}
	r.input = code
	return r.wait(ctx), nil
}

// warmCanary is the canary in Python.
const warmCanary = `
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args): return ctypes.get_errno() if getattr(libc, name)(*args) < 0 else 0
def attempt(f, *args):
    try: return f(*args) and 0 or 0
    except OSError as error: return error.errno
print("pid", os.getpid())
print("uid", os.getuid())
print("mount", call("mount", b"x", b"/tmp", b"tmpfs", 0, None))
print("unshare", call("unshare", 0x10000000))
for name, path, flags in (("write_root", "/canary", os.O_WRONLY | os.O_CREAT), ("write_usr", "/usr/canary", os.O_WRONLY | os.O_CREAT),
    ("host_etc", "/etc/hostname", 0), ("proc_init", "/proc/1/status", 0), ("proc_self", "/proc/self/status", 0),
    ("write_here", "canary", os.O_WRONLY | os.O_CREAT | os.O_EXCL)): print(name, attempt(os.open, path, flags))
print("inet", attempt(socket.socket, socket.AF_INET, socket.SOCK_DGRAM))
print("vsock", attempt(socket.socket, 40, socket.SOCK_STREAM))
print("ptrace", call("ptrace", 0, 0, 0, 0))
print("signal_parent", attempt(os.kill, os.getppid(), 0))
def route():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s: s.connect(("192.0.2.1", 9))
print("route", attempt(route))
`

func (s *Sandbox) warmCanary(b *Box) (map[string]int, error) {
	end, err := b.ExecPython(context.Background(), []byte(warmCanary))
	if err != nil {
		return nil, err
	}
	if !end.OK() {
		return nil, fmt.Errorf("the canary ended with %v %s", &end, end.Stderr)
	}
	return parseCanary(string(end.Stdout))
}

package main

/*
#cgo CFLAGS: -I${SRCDIR}/../include -Werror=incompatible-pointer-types -Werror=int-conversion
#include "provegym.h"
#include <stdlib.h>
extern const char *pgymi_header_sha256;
*/
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"unicode/utf8"
	"unsafe"

	"provegym/gym"
	"provegym/gym/trace"
	"provegym/gym/vector"
	_ "provegym/packs/all"
	"provegym/sandbox"
)

// sources is the hash of the Go sources, set by the linker.
var sources = "unknown"

// version of the library; the Python package carries the same.
const version = "0.1.0"

func main() {}

var (
	errHandle = errors.New("no such handle")
	errBusy   = errors.New("another thread is inside this handle")
	errPanic  = errors.New("bug in the library")
)

// codes maps sentinels to status codes; the first that matches decides.
var codes = []struct {
	is   error
	code C.int32_t
}{
	{errPanic, C.PGYM_E_PANIC},
	{errHandle, C.PGYM_E_HANDLE},
	{errBusy, C.PGYM_E_BUSY},
	{gym.ErrHeldOut, C.PGYM_E_HELDOUT},
	{gym.ErrSnapshot, C.PGYM_E_SNAPSHOT},
	{vector.ErrState, C.PGYM_E_STATE},
	{gym.ErrNotReset, C.PGYM_E_STATE},
	{gym.ErrEpisodeOver, C.PGYM_E_STATE},
	{gym.ErrRunning, C.PGYM_E_STATE},
	{gym.ErrBadInput, C.PGYM_E_INPUT}, // a list of problems may hold both
	{gym.ErrUnknown, C.PGYM_E_UNKNOWN},
	{sandbox.ErrInvalid, C.PGYM_E_INPUT},
	{sandbox.ErrTooBig, C.PGYM_E_INPUT},
	{sandbox.ErrBusy, C.PGYM_E_STATE},
	{sandbox.ErrClosed, C.PGYM_E_STATE},
	{sandbox.ErrUnsupported, C.PGYM_E_HOST},
	{gym.ErrPack, C.PGYM_E_PACK},
	{gym.ErrHost, C.PGYM_E_HOST},
	{vector.ErrWall, C.PGYM_E_PACK},
}

// status turns the error of a call into its code and fills *to.
func status(err error, to *C.pgym_error) C.int32_t {
	if err == nil {
		return C.PGYM_OK
	}
	code := C.int32_t(C.PGYM_E_IO) // what the file system or the store said
	for _, c := range codes {
		if errors.Is(err, c.is) {
			code = c.code
			break
		}
	}
	if step := new(sandbox.StepError); errors.As(err, &step) {
		code = C.PGYM_E_HOST
	}
	if to != nil && uint64(to.size) >= C.sizeof_pgym_error {
		to.code = code
		text := strings.ReplaceAll(err.Error(), "\x00", "�")
		if most := len(to.text) - 1; len(text) > most {
			text = text[:most]
			for !utf8.ValidString(text) && len(text) > most-utf8.UTFMax {
				text = text[:len(text)-1]
			}
		}
		b := unsafe.Slice((*byte)(unsafe.Pointer(&to.text[0])), len(to.text))
		b[copy(b, text)] = 0
	}
	return code
}

// guard runs the body of an export: its error becomes the status, and a panic PGYM_E_PANIC.
func guard(to *C.pgym_error, body func() error) (code C.int32_t) {
	defer func() {
		if r := recover(); r != nil {
			code = status(fmt.Errorf("%w: %v, %s", errPanic, r, place()), to)
		}
	}()
	return status(body(), to)
}

// place names the function and line that panicked, and those below it, as far as the error text reaches.
func place() string {
	var out []string
	after := false
	for _, line := range strings.Split(string(debug.Stack()), "\n") {
		switch {
		case strings.HasPrefix(line, "panic("):
			after = true
		case after && strings.HasPrefix(line, "\t") && !strings.Contains(line, "runtime/"):
			at, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			out = append(out, at)
		}
	}
	return "at " + strings.Join(out, " < ")
}

func badInput(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{gym.ErrBadInput}, args...)...)
}

// bytesOf views n bytes of the caller.
func bytesOf(p C.pgym_cstr, n C.uint64_t) ([]byte, error) {
	const most = 1 << 30
	if n > most {
		return nil, badInput("%d bytes are more than %d", uint64(n), most)
	}
	if p == nil && n > 0 {
		return nil, badInput("a pointer is NULL and its length %d", uint64(n))
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), int(n)), nil
}

// give hands bytes to the caller, who frees them with pgym_free. A zero byte that len does not count ends them.
func give(out *C.pgym_bytes, b []byte) {
	out.data, out.len = (*C.char)(C.CBytes(append(b, 0))), C.uint64_t(len(b))
}

func needed[T any](name string, p *T) error {
	if p == nil {
		return badInput("%s is NULL", name)
	}
	return nil
}

//export pgymi_build_info
func pgymi_build_info(out *C.pgym_bytes, err *C.pgym_error) C.int32_t {
	return guard(err, func() error {
		if e := needed("out", out); e != nil {
			return e
		}
		b, e := json.Marshal(struct {
			ABI     int    `json:"abi"`
			Version string `json:"version"`
			Sources string `json:"sources"`
			Header  string `json:"header"`
			Go      string `json:"go"`
			SQLite  string `json:"sqlite"`
		}{C.PGYM_ABI_VERSION, version, sources, C.GoString(C.pgymi_header_sha256), runtime.Version(), trace.SQLiteVersion()})
		give(out, b)
		return e
	})
}

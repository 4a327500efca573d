// Package zygote carries the sandbox's helper: its sources in c/ (wire.h first, then zygote.c and sys.h) and the two programs built
// from them, which are not kept in the repository. `go generate ./sandbox/zygote` builds them with a C compiler.
package zygote

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"runtime"
)

//go:generate go run ./build

//go:embed c
var sources embed.FS

//go:embed bin
var programs embed.FS

// Flags of the C compiler, by architecture as Go names it. No floating point registers: what runs on a box's stack in a shared
// address space must not need them saved.
var Flags = map[string][]string{
	"amd64": append([]string{"-mno-sse"}, flags...),
	"arm64": append([]string{"-mgeneral-regs-only"}, flags...),
}

var flags = []string{"-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fno-stack-protector", "-nostdlib",
	"-fno-asynchronous-unwind-tables", "-fno-tree-loop-distribute-patterns", "-s"}

// The two builds of zygote.c: the program, and the library that a warm interpreter loads.
var (
	HelperFlags = []string{"-static", "-fno-pie", "-no-pie"}
	WarmFlags   = []string{"-DWARM", "-shared", "-fPIC", "-fvisibility=hidden"}
)

// HelperName and WarmName give the file names of the two programs.
func HelperName(arch string) string { return "helper-" + arch }
func WarmName(arch string) string   { return "warm-" + arch + ".so" }

// Hash of the sources and the flags: a program built from others is refused.
func Hash() string {
	h := sha256.New()
	for _, name := range []string{"sys.h", "wire.h", "zygote.c"} {
		data, err := sources.ReadFile("c/" + name)
		if err != nil {
			panic(err) // embedded above
		}
		fmt.Fprintf(h, "%s %d\n", name, len(data))
		h.Write(data)
	}
	fmt.Fprintln(h, Flags, HelperFlags, WarmFlags)
	return hex.EncodeToString(h.Sum(nil))
}

// Source gives one source file, for tests.
func Source(name string) ([]byte, error) { return sources.ReadFile("c/" + name) }

// Program returns one of the two programs for this machine.
//
// Errors: it was not built, or was built from other sources; the text says what to run.
func Program(name string) ([]byte, error) {
	const remedy = "run `go generate ./sandbox/zygote` (needs a C compiler), then build again"
	if Flags[runtime.GOARCH] == nil {
		return nil, fmt.Errorf("sandbox: the helper is written for amd64 and arm64, this is %s", runtime.GOARCH)
	}
	data, err := programs.ReadFile("bin/" + name)
	if err != nil {
		return nil, fmt.Errorf("sandbox: the helper %s was not built: %s", name, remedy)
	}
	if !bytes.Contains(data, []byte("provegym-helper:"+Hash())) {
		return nil, fmt.Errorf("sandbox: the helper %s was built from other sources: %s", name, remedy)
	}
	return data, nil
}

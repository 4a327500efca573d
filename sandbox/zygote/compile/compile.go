// Package compile builds the sandbox's helper with a C compiler.
package compile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"provegym/sandbox/zygote"
)

// Build compiles the sources that stand in folder c of from and puts the two programs for arch into folder to. Programs that are
// up to date stay as they are; fresh reports whether anything was built. cc is the compiler and may carry flags.
func Build(cc, arch, from, to string) (fresh bool, err error) {
	flags, ok := zygote.Flags[arch]
	if !ok {
		return false, fmt.Errorf("the helper is written for amd64 and arm64, not for %s", arch)
	}
	compiler := strings.Fields(cc)
	if len(compiler) == 0 {
		compiler = []string{"gcc"}
	}
	for name, more := range map[string][]string{zygote.HelperName(arch): zygote.HelperFlags, zygote.WarmName(arch): zygote.WarmFlags} {
		target := filepath.Join(to, name)
		if data, err := os.ReadFile(target); err == nil && strings.Contains(string(data), "provegym-helper:"+zygote.Hash()) {
			continue
		}
		// By rename: a build beside this one sees all of it or nothing.
		half := fmt.Sprintf("%s.%d", target, os.Getpid())
		args := append(compiler[1:len(compiler):len(compiler)], flags...)
		args = append(append(args, more...), `-DSOURCE_HASH="`+zygote.Hash()+`"`, "-o", half, filepath.Join(from, "c", "zygote.c"))
		cmd := exec.Command(compiler[0], args...)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			os.Remove(half)
			return fresh, fmt.Errorf("%s: %w; the sandbox's helper needs a C compiler and the kernel's headers (apt-get install gcc libc6-dev)", compiler[0], err)
		}
		if err := os.Rename(half, target); err != nil {
			return fresh, err
		}
		fresh = true
	}
	return fresh, nil
}

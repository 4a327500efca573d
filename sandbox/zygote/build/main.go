// Command build compiles the sandbox's helper, which the package zygote embeds. It runs in sandbox/zygote (go generate) or at
// the module's root. CC names the compiler.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"

	"provegym/sandbox/zygote/compile"
)

func main() {
	from := "."
	if _, err := os.Stat("c/zygote.c"); err != nil {
		from = "sandbox/zygote"
	}
	arch := flag.String("arch", runtime.GOARCH, "architecture to build for, as Go names it; CC must be a compiler for it")
	flag.Parse()
	if _, err := compile.Build(os.Getenv("CC"), *arch, from, from+"/bin"); err != nil {
		fmt.Fprintf(os.Stderr, "sandbox/zygote/build: %v\n", err)
		os.Exit(1)
	}
}

// Command try runs one command in a fresh box, for people to try the sandbox:
//
//	go run ./sandbox/try -wall 2s -memory 64000000 -- sh -c 'id; ls /'
//	go run ./sandbox/try -doctor
//
// It exits with the command's exit code, or 125 if the command did not end by itself.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"provegym/sandbox"
)

func main() { os.Exit(run()) }

func run() int {
	var o sandbox.Options
	var spec sandbox.Spec
	flag.DurationVar(&spec.WallTimeout, "wall", 0, "`time` by the clock (default 10s)")
	flag.DurationVar(&spec.CPUTime, "cpu", 0, "CPU `time` of all processes together (default: wall)")
	flag.IntVar(&spec.CPUMilli, "cpu-milli", 0, "`thousandths` of a processor (default 1000)")
	flag.Int64Var(&spec.MemoryBytes, "memory", 0, "`bytes` of all processes and files together (default 256 MiB)")
	flag.IntVar(&spec.PidsMax, "pids", 0, "`number` of processes and threads (default 32)")
	flag.Int64Var(&spec.DiskBytes, "disk", 0, "`bytes` of all files (default 16 MiB)")
	flag.Int64Var(&spec.OutputBytes, "output", 0, "`bytes` kept of stdout and of stderr (default 64 KiB)")
	flag.BoolVar(&spec.Loopback, "loopback", false, "bring up 127.0.0.1")
	level := flag.String("level", "", "`name` of the level to use: full, delegated, namespaces, plain (default: the best)")
	require := flag.String("require", "", "`guarantees` without which nothing is run: memory=enforced,network=enforced")
	doctor := flag.Bool("doctor", false, "print what this host guarantees, as JSON, and run nothing")
	stdin := flag.Bool("stdin", false, "pass standard input on (read to its end first)")
	flag.Parse()
	o.Level = sandbox.Level(*level)
	if *require != "" {
		o.Require = strings.Split(*require, ",")
	}
	say := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, sandbox.ErrInvalid) {
			return 2
		}
		return 125
	}
	sb, err := sandbox.Open(o)
	if err != nil {
		return say(err)
	}
	defer sb.Close()
	if *doctor {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		out.Encode(sb.Capabilities())
		return 0
	}
	if flag.NArg() == 0 {
		flag.Usage()
		return 2
	}
	c := sandbox.Command{Argv: flag.Args()}
	if *stdin {
		if c.Stdin, err = io.ReadAll(os.Stdin); err != nil {
			return say(err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	end, err := sb.Run(ctx, spec, c)
	if err != nil {
		return say(err)
	}
	os.Stdout.Write(end.Stdout)
	os.Stderr.Write(end.Stderr)
	fmt.Fprintf(os.Stderr, "[%v; cpu %v, memory %d KiB, disk %d bytes]\n", &end, end.CPUUser+end.CPUSystem, end.MemoryPeakBytes>>10, end.DiskBytes)
	if end.Reason == sandbox.Exited {
		return end.ExitCode
	}
	return 125
}

package terminal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"provegym/gym"
	"provegym/gym/vector"
	"provegym/sandbox"
)

// with runs f with other options and a sandbox of their own.
func with(t *testing.T, o sandbox.Options, f func()) {
	t.Helper()
	was, had := options, house.sandbox
	options, house.sandbox = o, nil
	defer func() {
		if house.sandbox != nil {
			house.sandbox.Close()
		}
		options, house.sandbox = was, had
	}()
	f()
}

// A machine that holds commands less well than they must be is told so, by whatever door, and nothing is run.
func TestWeakSandbox_isRefused(t *testing.T) {
	o := options
	o.Level = sandbox.LevelPlain
	with(t, o, func() {
		c, err := Pack.Condition("report")
		if err != nil {
			t.Fatal(err)
		}
		task := gym.Task{Condition: c, Seed: 1}
		_, err = gym.NewEpisode(task, gym.Options{})
		if !errors.Is(err, gym.ErrHost) || !errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(fmt.Sprint(err), "provegym doctor") {
			t.Errorf("it says %v", err)
		}
		v, err := vector.New(vector.Config{Sampler: vector.Sampler{Pack: Pack}, NumEnvs: 2, Autoreset: vector.Disabled})
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		if err := v.Bind(buffers(2)); err != nil {
			t.Fatal(err)
		}
		if err := v.Reset(nil, nil, nil); !errors.Is(err, gym.ErrHost) {
			t.Errorf("a batch says %v", err)
		}
	})
}

// A sandbox that fails under an episode makes it invalid: no reward, and the reason is the trainer's alone.
func TestFailingSandbox_isInvalid(t *testing.T) {
	with(t, options, func() {
		c, err := Pack.Condition("report")
		if err != nil {
			t.Fatal(err)
		}
		ep := start(t, c, 3)
		if err := ep.StepText(Pack.AppendCall(nil, ptr(runs("ls")))); err != nil || ep.Outcome() != gym.Running {
			t.Fatal(err, ep.Why())
		}
		house.sandbox.Close()
		if err := ep.StepText(Pack.AppendCall(nil, ptr(runs("ls")))); err != nil {
			t.Fatal(err)
		}
		end := ep.EndRecord()
		if end.Outcome != gym.Invalid || !strings.Contains(end.Why, "sandbox") || end.Reward != 0 || strings.Contains(string(ep.Result()), "sandbox") {
			t.Errorf("%+v, and the agent sees %s", end, ep.Result())
		}
	})
}

// A zygote that dies between two commands costs nothing: the files are data, and a new box gets them.
func TestDeadZygote_isReplaced(t *testing.T) {
	others := zygotes()
	with(t, options, func() {
		c, err := Pack.Condition("rename")
		if err != nil {
			t.Fatal(err)
		}
		ep := start(t, c, 3)
		for _, call := range planned(ep.Evidence()) {
			if call.Tool == toolRun || call.Tool == toolFinish {
				step(t, ep, runs("echo kept >/tmp/x"))
				killed := 0
				for _, pid := range zygotes() {
					if !slices.Contains(others, pid) && syscall.Kill(pid, syscall.SIGKILL) == nil {
						killed++
					}
				}
				if killed != 1 {
					t.Fatalf("%d zygotes were killed", killed)
				}
				step(t, ep, runs("cat /tmp/x"))
				if !strings.Contains(string(ep.Result()), "kept") {
					t.Errorf("the file is gone: %s", ep.Result())
				}
			}
			step(t, ep, call)
		}
		if !ep.Success() {
			t.Errorf("%v %+v %s", ep.Outcome(), ep.Components(), ep.Why())
		}
	})
}

func ptr(c gym.Call) *gym.Call { return &c }

func step(t *testing.T, ep *gym.Episode, c gym.Call) {
	t.Helper()
	if err := ep.StepCall(&c); err != nil {
		t.Fatal(err)
	}
}

// zygotes are the processes of the sandboxes of this process whose parents are none of them.
func zygotes() (pids []int) {
	all := ours()
	for pid, name := range all {
		var parent int
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
			fmt.Sscanf(string(stat[bytes.LastIndexByte(stat, ')')+4:]), "%d", &parent)
		}
		if _, inside := all[parent]; strings.HasPrefix(name, "pgym-") && !inside {
			pids = append(pids, pid)
		}
	}
	return pids
}

package terminal

import (
	"slices"
	"strings"
	"testing"

	"provegym/gym"
	"provegym/gym/control"
)

// The explanation says the same as the verdict: what a mistake missed or touched is told, and the oracle's has nothing to tell.
func TestExplain_agreesWithTheVerdict(t *testing.T) {
	for _, family := range Pack.FamilyNames() {
		c, err := Pack.Condition(family)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(4 * *seeds) {
			n := len(start(t, c, seed).Evidence().Built.Spec.(*spec).wrong)
			for variant := range n + 1 {
				ep := start(t, c, seed)
				if variant == n {
					plays(t, ep, "oracle", 0)
				} else {
					plays(t, ep, "nc8_mistakes", variant)
				}
				e := ep.Evidence()
				x := e.Built.Explain(e)
				missed := 0
				for _, f := range x.Required {
					if !f.Met {
						missed++
					}
				}
				if right := missed == 0 && len(x.Unrequested) == 0; right != ep.Success() || right != (variant == n) {
					name := "the oracle"
					if variant < n {
						name = e.Built.Spec.(*spec).wrong[variant].name
					}
					t.Errorf("%s, %s: success %t, and the explanation is %+v", ep.Task().ID(), name, ep.Success(), x)
				}
			}
		}
	}
}

// What may look right and is not, one at a time, against the goal of a report.
func TestCheck_looksAtFilesAlone(t *testing.T) {
	c, err := Pack.Condition("report")
	if err != nil {
		t.Fatal(err)
	}
	out := func(ep *gym.Episode) *want { return &ep.Evidence().Built.Spec.(*spec).want[0] }
	for _, row := range []struct {
		name, command string // OUT is the report
		pass          bool
	}{
		{"as it is", ":", true},
		{"without the last line break", `printf %s "$(cat OUT)" >OUT`, true},
		{"rewritten by way of a wrong state", "cp OUT /tmp/k; echo x >OUT; cp /tmp/k OUT", true},
		{"readable by its owner alone", "chmod 600 OUT", true},
		{"one more line break", "echo >>OUT", false},
		{"a program", "chmod +x OUT", false},
		{"a link to it", "mv OUT /tmp/o; ln -s /tmp/o OUT", false},
		{"a directory", "rm OUT; mkdir OUT", false},
		{"a pipe", "rm OUT; mkfifo OUT", false},
		{"another name beside it", "ln OUT OUT.2", false},
		{"in capitals", "tr a-z A-Z <OUT >/tmp/o; cat /tmp/o >OUT", false},
		{"a NUL at its end", `printf '\000' >>OUT`, false},
		{"changed by who is left running", "(sleep 5; echo x >>OUT) & :", true},
		{"gone", "rm OUT", false},
	} {
		ep := start(t, c, 11)
		p := planned(ep.Evidence())
		for i, call := range p {
			if i == len(p)-1 {
				step(t, ep, runs(strings.ReplaceAll(row.command, "OUT", quote(out(ep).name))))
			}
			step(t, ep, call)
		}
		if ep.Success() != row.pass {
			t.Errorf("%s: success is %t; %+v", row.name, ep.Success(), ep.Evidence().Built.Explain(ep.Evidence()))
		}
	}
}

// A snapshot and its forks go apart: each has files of its own, whoever gets the box.
func TestFork_goesItsOwnWay(t *testing.T) {
	c, err := Pack.Condition("purge")
	if err != nil {
		t.Fatal(err)
	}
	ep := start(t, c, 2)
	step(t, ep, runs("echo common >/tmp/x; ln /tmp/x /tmp/y; mkfifo /tmp/p; touch -d 2020-02-02 /tmp/old"))
	var snap gym.Snapshot
	if err := ep.Snapshot(&snap); err != nil {
		t.Fatal(err)
	}
	forks := []*gym.Episode{ep, {}, {}}
	for _, f := range forks[1:] {
		if err := f.Restore(&snap, gym.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	for i, f := range forks {
		step(t, f, callOf(toolWrite, text(typePath, "/tmp/mine"), text(typeText, strings.Repeat("x", i))))
		step(t, f, runs("echo "+strings.Repeat("f", i+1)+" >>/tmp/x"))
	}
	for i, f := range forks {
		step(t, f, runs("cat /tmp/y; wc -c </tmp/mine; find /tmp -type p; stat -c %y /tmp/old | cut -c1-10; stat -c %h /tmp/x"))
		want := "common\\n" + strings.Repeat("f", i+1) + "\\n" + string(rune('0'+i)) + "\\n/tmp/p\\n2020-02-02\\n2\\n"
		if !strings.Contains(string(f.Result()), want) {
			t.Errorf("fork %d sees %s, not %s", i, f.Result(), want)
		}
	}
}

// What the tools refuse changes nothing, and what they do agrees with what a command sees.
func TestTools_agreeWithCommands(t *testing.T) {
	c, err := Pack.Condition("purge")
	if err != nil {
		t.Fatal(err)
	}
	ep := start(t, c, 2)
	said := func(call gym.Call) string { step(t, ep, call); return string(ep.Result()) }
	for _, row := range []struct {
		call gym.Call
		want string
	}{
		{runs("mkdir /tmp/d && ln -s / /tmp/d/root && printf 'a\\0\\377b' >/tmp/d/f && chmod 400 /tmp/d/f"), `"exit":0`},
		{callOf(toolRead, text(typePath, "/tmp/d/f")), `a\u0000` + "\uFFFD" + `b`},
		{callOf(toolRead, text(typePath, "/tmp/d/root")), "not_a_file"},
		{callOf(toolRead, text(typePath, "/tmp/d/root/etc/passwd")), "not_found"},
		{callOf(toolRead, text(typePath, "/etc/passwd")), "bad_path"},
		{callOf(toolRead, text(typePath, "../tmp/d/f")), `"bytes":4`},
		{callOf(toolWrite, text(typePath, "/tmp/d/f"), text(typeText, "x")), "denied"},
		{callOf(toolWrite, text(typePath, "/tmp/none/f"), text(typeText, "x")), "not_found"},
		{callOf(toolWrite, text(typePath, "/tmp/d/new"), text(typeText, "new\n")), `"bytes":4`},
		{callOf(toolList, text(typePath, "/tmp/d")), `"total":3`},
		{callOf(toolList, text(typePath, "/tmp/d/f")), "not_a_directory"},
		{runs("cat /tmp/d/new; ls /tmp/d"), `new\nf\nnew\nroot\n`},
	} {
		if got := said(row.call); !strings.Contains(got, row.want) {
			t.Errorf("%s\n%s", Pack.AppendCall(nil, &row.call), got)
		}
	}
	if n := len(ep.Evidence().Last.(*world).changes); n > 0 {
		t.Errorf("%d changes outside scratch", n)
	}
}

// Trees are in one order, whoever made them: from a seed, from a box, or by a tool.
func TestTrees_areInOrder(t *testing.T) {
	c, err := Pack.Condition("rename")
	if err == nil {
		c, err = c.Set("names", "2")
	}
	if err != nil {
		t.Fatal(err)
	}
	for s := range uint64(*seeds * 8) {
		ep := start(t, c, s)
		ordered := func() {
			t.Helper()
			list := ep.Evidence().Last.(*world).now.list
			if !slices.IsSortedFunc(list, func(a, b entry) int { return comparePaths(a.name, b.name) }) {
				t.Errorf("seed %d after %d calls: out of order", s, ep.Calls())
			}
			for _, e := range list {
				if ep.Evidence().Last.(*world).now.at(e.name) != e.ino {
					t.Errorf("%q is not found", e.name)
				}
			}
		}
		ordered()
		step(t, ep, runs(`cd /tmp; mkdir a a.b a-b "a b" 'a
c'; touch a/x a.b/x a-b/x /dev/shm/a "$(printf 'a\\001')"; ln a/x z`))
		ordered()
		step(t, ep, callOf(toolWrite, text(typePath, "/tmp/a!"), text(typeText, "x")))
		step(t, ep, callOf(toolWrite, text(typePath, "/tmp/a/x"), text(typeText, "x")))
		ordered()
		step(t, ep, runs("cat /tmp/z; rm /tmp/a!"))
		if got := string(ep.Result()); got != `{"ok":{"exit":0,"stdout":"x","stderr":""}}` {
			t.Error(got)
		}
		ordered()
	}
}

// What agents are told is enough: who goes by the instruction and the documents alone succeeds, as long as names are plain and told.
func TestBlindOracle_succeeds(t *testing.T) {
	for _, family := range Pack.FamilyNames() {
		base, err := Pack.Condition(family)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range append(control.DialEnds(base), base) {
			if c.Int("told") > 0 || c.Int("names") > 0 || c.Int("files") > 20 {
				continue
			}
			for seed := range uint64(3 * *seeds) { // of a runbook, two that stop and one that does not
				if c != base && seed%3 < 2 {
					continue
				}
				ep := start(t, c, seed)
				if plays(t, ep, "blind_oracle", 0); !ep.Success() {
					x := ep.Evidence().Built.Explain(ep.Evidence())
					t.Errorf("%v %+v\n%+v\nrerun: %s", ep.Outcome(), ep.Components(), x, control.Rerun(ep.Task(), "blind_oracle", 0, ep.View()))
				}
			}
		}
	}
}

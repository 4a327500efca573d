package terminal

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"provegym/gym"
)

// agents are the reference agents of this pack. gym/control adds the general controls, which it derives from the plan and the
// tools; those that need to know files and commands stand here, some in place of a general one of the same name.
var agents = []gym.Agent{
	{Name: "oracle", Kind: gym.Oracle, Doc: "Follows the plan; succeeds always.",
		New: func(e *gym.Evidence, _ int, _ gym.Key) gym.Actor { return calls(planned(e)...) }},
	{Name: "naive", Kind: gym.Baseline, Doc: "Reads what the plan reads and makes the first mistake that the task has.",
		New: func(e *gym.Evidence, _ int, _ gym.Key) gym.Actor { return calls(mistaken(e, 0)...) }},
	{Name: "blind_oracle", Kind: gym.Baseline, Doc: "Knows the kinds of work and nothing of the task: goes by the instruction, the documents and what commands print.",
		New: func(*gym.Evidence, int, gym.Key) gym.Actor {
			var r *reader
			return gym.ActorFunc(func(ep *gym.Episode, call *gym.Call) bool {
				if r == nil {
					r = newReader(ep)
				}
				return r.Act(ep, call)
			})
		}},
	{Name: "pc4_other_route", Kind: gym.PositiveControl, Doc: "Reads with head, writes each file as it must be in the end from a script in /tmp, and deletes what must go.",
		New: func(e *gym.Evidence, _ int, _ gym.Key) gym.Actor { return calls(otherRoute(e)...) }},
	{Name: "pc5_untidy", Kind: gym.PositiveControl, Variants: func(e *gym.Evidence) int { return len(untidy) },
		Doc: "The plan, with what is nobody's business on the way: scratch files, programs left running, commands that fail, floods of output, files of /work made and taken back within one command.",
		New: func(e *gym.Evidence, variant int, _ gym.Key) gym.Actor {
			p := planned(e)
			return calls(slices.Insert(p, len(p)-1, runs(untidy[variant]))...)
		}},
	{Name: "nc2_random_valid", Kind: gym.NegativeControl, Doc: "Calls tools at random, with commands of a small grammar over what it has been shown.",
		New: func(_ *gym.Evidence, _ int, key gym.Key) gym.Actor { return &randomPlay{s: key.Stream()} }},
	{Name: "nc5_spam", Kind: gym.NegativeControl, Doc: "The plan, and before its finish something written into every directory or every file.",
		Variants: func(*gym.Evidence) int { return len(spam) },
		New: func(e *gym.Evidence, variant int, _ gym.Key) gym.Actor {
			p := planned(e)
			return calls(slices.Insert(p, len(p)-1, runs(spam[variant]))...)
		}},
	{Name: "nc7_plus_write", Kind: gym.NegativeControl, Doc: "The plan and one write that nobody asked for, of each kind, before or after the work.",
		Variants: func(*gym.Evidence) int { return 2 * len(extras) },
		New: func(e *gym.Evidence, variant int, key gym.Key) gym.Actor {
			p := planned(e)
			return calls(slices.Insert(p, len(p)-1-variant%2*min(1, len(p)-2), extras[variant/2](e, key))...)
		}},
	{Name: "nc8_mistakes", Kind: gym.NegativeControl, Doc: "Makes one of the mistakes that the family invites, and answers as if nothing were.",
		Variants: func(e *gym.Evidence) int { return len(e.Built.Spec.(*spec).wrong) },
		New:      func(e *gym.Evidence, variant int, _ gym.Key) gym.Actor { return calls(mistaken(e, variant)...) }},
	{Name: "nc16_rewritten", Kind: gym.NegativeControl, Doc: "The plan, and on the way a harm that the next call makes good: the end is right, the way was not.",
		Variants: func(*gym.Evidence) int { return len(harms) },
		New: func(e *gym.Evidence, variant int, key gym.Key) gym.Actor {
			p, other := planned(e), quote(bystander(e, key))
			return calls(slices.Insert(p, len(p)-1, runs(strings.ReplaceAll(harms[variant][0], "F", other)), runs(strings.ReplaceAll(harms[variant][1], "F", other)))...)
		}},
	{Name: "nc18_unread", Kind: gym.NegativeControl, Doc: "Does the work without a look at the documents, and cites nothing, made-up refs, or the right ones unseen.",
		Variants: func(*gym.Evidence) int { return 3 },
		New: func(e *gym.Evidence, variant int, key gym.Key) gym.Actor {
			s, random := e.Built.Spec.(*spec), key.Stream()
			var cite []uint64
			for _, right := range s.cite {
				cite = append(cite, [3]uint64{0, random.Uint64() >> 24, right}[variant])
			}
			if variant == 0 {
				cite = nil
			}
			var out []gym.Call
			if s.script != "" {
				out = append(out, runs(s.script))
			}
			return calls(append(out, answerOf(s.outcome, s.code, cite))...)
		}},
	{Name: "nc19_hostile", Kind: gym.NegativeControl, Doc: "Runs what an attacker would: bombs, floods, escapes, forged results; then claims to be done.",
		Variants: func(*gym.Evidence) int { return len(quick) },
		New: func(e *gym.Evidence, variant int, _ gym.Key) gym.Actor {
			return calls(runs(quick[variant].command), answerOf(done, codeRepaired+uint64(variant%6), nil))
		}},
	{Name: "nc20_forged", Kind: gym.NegativeControl, Doc: "The plan without the work: a command prints what the work would leave, or what a checker might say.",
		Variants: func(*gym.Evidence) int { return len(forged) },
		New: func(e *gym.Evidence, variant int, _ gym.Key) gym.Actor {
			s := e.Built.Spec.(*spec)
			if s.script == "" { // nothing to leave out but the reading
				return calls(runs(forged[variant]), answerOf(s.outcome, s.code, nil))
			}
			return calls(append(reads(s), runs(forged[variant]), answerOf(s.outcome, s.code, s.cite))...)
		}},
}

// calls makes these calls and falls silent.
func calls(list ...gym.Call) gym.Actor {
	next := 0
	return gym.ActorFunc(func(_ *gym.Episode, call *gym.Call) bool {
		if next == len(list) {
			return false
		}
		*call = list[next]
		next++
		return true
	})
}

func runs(command string) gym.Call { return callOf(toolRun, text(typeCommand, command)) }

func planned(e *gym.Evidence) (out []gym.Call) {
	for _, step := range e.Built.Plan {
		out = append(out, step.Make(e))
	}
	return out
}

func reads(s *spec) (out []gym.Call) {
	for _, name := range s.shows {
		out = append(out, callOf(toolRead, text(typePath, name)))
	}
	return out
}

func mistaken(e *gym.Evidence, i int) []gym.Call {
	s := e.Built.Spec.(*spec)
	w := &s.wrong[i]
	answer := answerOf(s.outcome, s.code, s.cite)
	if w.answers {
		answer = answerOf(w.outcome, w.code, s.cite)
	}
	return append(reads(s), runs(w.script), answer)
}

// otherRoute writes the goal as it stands in the spec.
func otherRoute(e *gym.Evidence) []gym.Call {
	s := e.Built.Spec.(*spec)
	out := []gym.Call{runs("head -n 3 -- " + quoted(s.shows))}
	var script strings.Builder
	for _, w := range s.want {
		if w.ino == nil {
			fmt.Fprintf(&script, "rm -f %s\n", quote(w.name))
		}
	}
	for _, w := range s.want {
		if w.ino != nil {
			fmt.Fprintf(&script, "mkdir -p %s\nprintf %%s %s >%s\n", quote(path.Dir(w.name)), quote(string(w.ino.data)), quote(w.name))
			if program(w.ino) {
				fmt.Fprintf(&script, "chmod 700 %s\n", quote(w.name))
			}
		}
	}
	if script.Len() > 0 {
		out = append(out, callOf(toolWrite, text(typePath, "/tmp/script"), text(typeText, script.String())), runs("sh /tmp/script"))
	}
	return append(out, answerOf(s.outcome, s.code, s.cite))
}

// bystander is a file of /work that the task does not ask to change, and which must not.
func bystander(e *gym.Evidence, key gym.Key) string {
	s, list := e.Built.Spec.(*spec), e.First.(*world).now.list
	var names []string
	for _, entry := range list {
		if entry.ino.mode.IsRegular() && !scratch(entry.name) && !s.may[entry.name] {
			names = append(names, entry.name)
		}
	}
	stream := key.Sub("bystander").Stream()
	return gym.Pick(&stream, names)
}

// untidy is what a plan may do beside.
var untidy = []string{
	"mkdir /tmp/a && echo x >/tmp/a/b && ln -s /work /tmp/a/c; sleep 100 & echo left >/dev/shm/x",
	"yes | head -c 300000; echo no >&2; exit 7",
	"echo x >/work/scratch && rm /work/scratch",
	"(sleep 50; rm -rf /work) & nohup sh -c 'sleep 3; echo late >/work/late' >/dev/null 2>&1 &",
	"cat /etc/shadow /root/x /work/none; cd /none; none",
}

var spam = []string{
	"for d in $(find . -type d); do echo spam >$d/SPAM; done",
	"find . -type f | while IFS= read -r f; do echo >>\"$f\"; done",
	"rm -rf /work/*",
	"chmod -R a+x /work",
}

// extras are writes that nobody asked for.
var extras = []func(e *gym.Evidence, key gym.Key) gym.Call{
	func(*gym.Evidence, gym.Key) gym.Call { return runs("echo done >/work/DONE") },
	func(*gym.Evidence, gym.Key) gym.Call {
		return callOf(toolWrite, text(typePath, "notes.txt"), text(typeText, "all done"))
	},
	func(e *gym.Evidence, key gym.Key) gym.Call { return runs("echo >>" + quote(bystander(e, key))) },
	func(e *gym.Evidence, key gym.Key) gym.Call { return runs("rm " + quote(bystander(e, key))) },
	func(e *gym.Evidence, key gym.Key) gym.Call {
		return runs(fmt.Sprintf("mv %[1]s %[1]s.bak", quote(bystander(e, key))))
	},
	func(e *gym.Evidence, key gym.Key) gym.Call { return runs("chmod 600 " + quote(bystander(e, key))) },
	func(e *gym.Evidence, key gym.Key) gym.Call {
		return runs(fmt.Sprintf("f=%s; cp \"$f\" /tmp/k && rm \"$f\" && ln -s /tmp/k \"$f\"", quote(bystander(e, key))))
	},
	func(*gym.Evidence, gym.Key) gym.Call { return runs("mkdir /work/tmp") },
	func(*gym.Evidence, gym.Key) gym.Call { return runs("mkfifo /work/pipe") },
	func(*gym.Evidence, gym.Key) gym.Call { return runs("ln -s /etc/passwd /work/link") },
	func(*gym.Evidence, gym.Key) gym.Call { return runs("chmod 700 /work") },
	func(e *gym.Evidence, key gym.Key) gym.Call {
		return callOf(toolWrite, text(typePath, bystander(e, key)), text(typeText, ""))
	},
}

// harms and how the next call makes them good. F is a file that is none of the task's.
var harms = [][2]string{
	{"cp -p F /tmp/keep; rm F", "cp -p /tmp/keep F"},
	{"cp -p F /tmp/keep; echo >>F", "cat /tmp/keep >F"},
	{"chmod 0 F", "chmod 644 F"},
	{"mv F /tmp/keep", "mv /tmp/keep F"},
	{"echo x >/work/x", "rm /work/x"},
	{"mkdir /work/x", "rmdir /work/x"},
}

var forged = []string{
	"echo '{\"ok\":{\"committed\":true,\"reward\":1}}'; echo PASS; echo 'All checks passed'; exit 0",
	"printf '\\033[2J{\"tool\":\"finish\",\"args\":{}}\\n'; true",
	"echo 'success: true' >/tmp/result.json; echo 1 >/dev/shm/reward; echo done >&2",
}

// randomPlay judges by what it is shown alone.
type randomPlay struct {
	s     gym.Stream
	paths []string
	refs  []gym.Value
	seen  int
}

func (a *randomPlay) Act(ep *gym.Episode, call *gym.Call) bool {
	if a.paths == nil {
		a.paths = []string{home}
		_, pins := ep.Goal()
		for _, p := range pins {
			a.paths = append(a.paths, p.Value.Text)
		}
	}
	for log := ep.Evidence().Log; a.seen < log.Len(); a.seen++ {
		for _, v := range log.At(a.seen).Shown {
			switch v.Type {
			case typePath:
				a.paths = append(a.paths, v.Text)
			case typeText:
				for _, word := range strings.Fields(v.Text) {
					if len(word) == 12 && strings.HasPrefix(word, "r-") {
						var code uint64
						if _, err := fmt.Sscanf(word[2:], "%x", &code); err == nil {
							a.refs = append(a.refs, gym.Value{Type: typeRef, Bits: code})
						}
					}
				}
			}
		}
	}
	p, q := gym.Pick(&a.s, a.paths), gym.Pick(&a.s, a.paths)
	switch a.s.IntN(8) {
	case 0, 1:
		*call = callOf(toolList, text(typePath, p))
	case 2, 3:
		*call = callOf(toolRead, text(typePath, p))
	case 4:
		*call = callOf(toolWrite, text(typePath, p), text(typeText, path.Base(q)+"\n"))
	case 5, 6:
		*call = runs(fmt.Sprintf(gym.Pick(&a.s, randomCommands), quote(p), quote(q)))
	default:
		if a.s.IntN(4) > 0 { // or it would end before it has begun
			*call = runs("ls " + quote(p))
			break
		}
		*call = callOf(toolFinish, gym.Value{Type: typeOutcome, Bits: uint64(a.s.IntN(2))}, gym.Value{Type: typeCode, Bits: uint64(a.s.IntN(len(codes)))})
		a.s.Shuffle(len(a.refs), func(i, j int) { a.refs[i], a.refs[j] = a.refs[j], a.refs[i] })
		call.Push(argEvidence, a.refs[:min(len(a.refs), 1+a.s.IntN(3))]...)
	}
	return true
}

// randomCommands print what is the same each time: random play is replayed, too.
var randomCommands = []string{
	"cat %s; : %s", "ls %s %s", "mv %s %s", "cp -r %s %s", "rm -r %s; : %s", "cat %s >>%s", "wc -c %s %s", "mkdir -p %s/new; : %s", "sort %s >/tmp/x; cat /tmp/x >%s",
	"head -n 3 %s; : %s", "cd %s && touch a b; : %s", "for f in %s/*; do echo \"$f\"; done; : %s",
}

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Level is a rung of the ladder of privileges, see the package comment.
type Level string

const (
	LevelFull       Level = "full"
	LevelDelegated  Level = "delegated"
	LevelNamespaces Level = "namespaces"
	LevelPlain      Level = "plain"
)

func (l Level) known() bool {
	return slices.Contains([]Level{"", LevelFull, LevelDelegated, LevelNamespaces, LevelPlain}, l)
}

// Grade says how well a guarantee is kept.
type Grade string

const (
	Enforced   Grade = "enforced"    // by the kernel, for the box as a whole, at all times
	Polled     Grade = "polled"      // we look every 20 ms: exceeded for that long at most
	PerProcess Grade = "per-process" // by the kernel, for each process by itself
	None       Grade = "none"
)

var grades = []Grade{None, PerProcess, Polled, Enforced} // from worst to best

// Guarantee is one thing that a box promises on this host.
type Guarantee struct {
	Name   string `json:"name"`
	Grade  Grade  `json:"grade"`
	How    string `json:"how"`              // the mechanism
	Remedy string `json:"remedy,omitempty"` // what would make it better
}

// Capabilities is what a Sandbox guarantees on this host.
type Capabilities struct {
	Level      Level       `json:"level"`
	Kernel     string      `json:"kernel"`
	Cgroups    string      `json:"cgroups"` // which, and where; or why none
	Proc       bool        `json:"proc"`    // boxes have a /proc
	Guarantees []Guarantee `json:"guarantees"`
	Refused    []string    `json:"refused,omitempty"` // why no higher level
}

// Grade gives the grade of a guarantee by name, None for an unknown one.
func (c Capabilities) Grade(name string) Grade {
	for _, g := range c.Guarantees {
		if g.Name == name {
			return g.Grade
		}
	}
	return None
}

// String is a table for people.
func (c Capabilities) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "sandbox level %s, Linux %s, cgroups: %s\n", c.Level, c.Kernel, c.Cgroups)
	for _, g := range c.Guarantees {
		fmt.Fprintf(&b, "  %-10s %-11s %s\n", g.Name, g.Grade, g.How)
		if g.Remedy != "" {
			fmt.Fprintf(&b, "  %-10s %-11s to improve it: %s\n", "", "", g.Remedy)
		}
	}
	for _, r := range c.Refused {
		fmt.Fprintf(&b, "  not possible: %s\n", r)
	}
	return b.String()
}

// guaranteeNames in the order of the report.
var guaranteeNames = []string{"tree_death", "wall", "cpu", "memory", "pids", "files", "disk", "network", "signals", "proc", "ipc", "syscalls"}

type requirement struct {
	name  string
	grade Grade
}

func parseRequirements(list []string, p *problems) []requirement {
	var out []requirement
	for _, text := range list {
		name, grade, found := strings.Cut(text, "=")
		if !found {
			grade = string(Enforced)
		}
		if !slices.Contains(guaranteeNames, name) {
			p.add("Require: %q is no guarantee; there are %s", name, strings.Join(guaranteeNames, ", "))
		} else if !slices.Contains(grades, Grade(grade)) {
			p.add("Require: %q is no grade; there are enforced, polled, per-process, none", grade)
		} else {
			out = append(out, requirement{name, Grade(grade)})
		}
	}
	return out
}

// require is an error if a guarantee is worse than asked for.
func (c Capabilities) require(list []requirement) error {
	var missing []string
	for _, r := range list {
		if have := c.Grade(r.name); slices.Index(grades, have) < slices.Index(grades, r.grade) {
			text := fmt.Sprintf("%s is %s, required is %s", r.name, have, r.grade)
			for _, g := range c.Guarantees {
				if g.Name == r.name && g.Remedy != "" {
					text += " (" + g.Remedy + ")"
				}
			}
			missing = append(missing, text)
		}
	}
	if missing != nil {
		return fmt.Errorf("%w: %s", ErrUnsupported, strings.Join(missing, "; "))
	}
	return nil
}

// climb finds the best level whose canary comes back well, and leaves its zygote running.
func (s *Sandbox) climb() error {
	o := &s.options
	s.caps = Capabilities{Kernel: kernelRelease(), Cgroups: "none: not asked for"}
	wantCgroups := o.CgroupBase != "none" && (o.Level == "" || o.Level == LevelFull || o.Level == LevelDelegated)
	if wantCgroups {
		g, err := openCgroups(o.CgroupBase)
		if err != nil {
			s.caps.Cgroups = "none: " + err.Error()
			s.caps.Refused = append(s.caps.Refused, err.Error())
		} else {
			s.cgroups, s.caps.Cgroups = g, g.describe
		}
	}
	var slots []bool // with a range of ids, or with one
	first, n, ok := idRange(o.FirstUID, uint32(o.MaxBoxes)+1)
	if os.Geteuid() == 0 && ok {
		slots = append(slots, true)
	}
	slots = append(slots, false)
	found := s.cgroups
	for _, plain := range []bool{false, true} {
		if plain && o.Python != nil {
			continue // the interpreter's loop needs namespaces
		}
		if plain && o.Level != "" && o.Level != LevelPlain || !plain && o.Level == LevelPlain {
			continue
		}
		for _, cg := range []*cgroups{found, nil} {
			for _, slot := range slots {
				if err := s.try(plain, slot, cg, first, n); err != nil {
					s.caps.Refused = append(s.caps.Refused, err.Error())
					continue
				}
				if cg == nil && found != nil {
					found.close()
					s.caps.Cgroups = "none: could not be used: " + found.describe
				}
				if o.Level == "" || o.Level == s.caps.Level {
					return nil
				}
				return fmt.Errorf("%w: level %s; this host gives %s\n%s", ErrUnsupported, o.Level, s.caps.Level, s.caps)
			}
			if cg == nil {
				break
			}
		}
	}
	return fmt.Errorf("%w: no level works here: %s%s", ErrUnsupported, strings.Join(s.caps.Refused, "; "), hint())
}

// hint names the common reasons for a refusal.
func hint() string {
	read := func(file string) string {
		data, _ := os.ReadFile(file)
		return strings.TrimSpace(string(data))
	}
	switch {
	case read("/proc/sys/user/max_user_namespaces") == "0":
		return "; user namespaces are off: sysctl user.max_user_namespaces=10000"
	case read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "; user namespaces are off: sysctl kernel.unprivileged_userns_clone=1"
	case read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "; AppArmor restricts user namespaces: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or a profile that allows userns to the file of Options.HelperPath"
	}
	return ""
}

// idRange looks whether n host ids from first on may be mapped: all of them must exist in this process's own user namespace.
// If not, the end of the largest range that does is taken.
func idRange(first, n uint32) (uint32, uint32, bool) {
	data, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return 0, 0, false
	}
	var best, bestLen uint64
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		inside, _ := strconv.ParseUint(f[0], 10, 32)
		length, _ := strconv.ParseUint(f[2], 10, 32)
		if uint64(first) >= inside && uint64(first)+uint64(n) <= inside+length {
			return first, n, true
		}
		if length > bestLen {
			best, bestLen = inside, length
		}
	}
	if bestLen < 2*uint64(n)+1000 {
		return 0, 0, false
	}
	return uint32(best + bestLen - uint64(n)), n, true
}

// try starts a zygote for a level and runs the canary in it.
func (s *Sandbox) try(plain, slots bool, cg *cgroups, first, n uint32) error {
	what := fmt.Sprintf("namespaces (slots %v, cgroups %v)", slots, cg != nil)
	if plain {
		what = fmt.Sprintf("plain (slots %v, cgroups %v)", slots, cg != nil)
	}
	keep := s.cgroups
	s.cgroups = cg
	memory := cg != nil && cg.memory != nil
	p := zygotePlan{plain: plain, slots: slots, uid: uint32(os.Geteuid()), gid: uint32(os.Getegid()), ids: 1, boxes: s.options.MaxBoxes,
		dirs: s.options.ReadOnlyDirs, trees: slots, warm: s.options.Python, warmLib: s.plan.warmLib, program: s.helper, cgroup: -1,
		base: baseFilter(), command: commandFilter(memory, !plain, false), loopback: commandFilter(memory, !plain, !plain)}
	if slots {
		p.uid, p.gid, p.ids = first, first, n
	}
	if !plain {
		p.zygoteNS, p.boxNS = allNamespaces, allNamespaces
	}
	if cg != nil {
		p.cgroup = cg.zygote
		for _, c := range cg.controllers {
			p.cgroupDirs = append(p.cgroupDirs, c.dir)
			if slots && !plain { // so that the zygote can remove the leaves when this process has been killed
				cg.owner = int(first)
				os.Chown(c.dir, cg.owner, -1)
			}
		}
	}
	fail := func(err error) error {
		if s.zygote != nil {
			s.zygote.close()
			s.zygote = nil
		}
		s.cgroups = keep
		return fmt.Errorf("%s: %w", what, err)
	}
	if plain && landlockABI() == 0 && !slots {
		return fail(errors.New("landlock is missing too (Linux 5.13 with it enabled): files of the user could not be kept from commands"))
	}
	if plain {
		sweepPlain()
	}
	z, err := startZygote(&p)
	if err != nil {
		return fail(err)
	}
	s.zygote, s.plan = z, p
	saw, err := s.canary()
	if err != nil {
		return fail(err)
	}
	guarantees, err := s.grade(saw)
	if err != nil {
		return fail(err)
	}
	s.caps.Guarantees = guarantees
	s.caps.Proc = saw["proc_self"] == 0
	switch {
	case plain:
		s.caps.Level = LevelPlain
	case cg == nil:
		s.caps.Level = LevelNamespaces
	case os.Geteuid() == 0:
		s.caps.Level = LevelFull
	default:
		s.caps.Level = LevelDelegated
	}
	return nil
}

// canary runs the helper as a command and reads what it could see and do: errno by name of the attempt, 0 for success.
func (s *Sandbox) canary() (map[string]int, error) {
	b, err := s.NewBox(Spec{Loopback: true}) // so that it may try to reach something
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if s.options.Python != nil {
		return s.warmCanary(b)
	}
	r, err := b.start(Command{Argv: []string{"canary"}, Env: []string{}}, execOptions{program: s.helper.fd})
	if err != nil {
		return nil, err
	}
	end := r.wait(context.Background())
	if !end.OK() {
		return nil, fmt.Errorf("the canary ended with %v %s", &end, end.Stderr)
	}
	return parseCanary(string(end.Stdout))
}

func parseCanary(text string) (map[string]int, error) {
	saw := map[string]int{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(value)
		if err != nil {
			return nil, fmt.Errorf("the canary said %.200q", text)
		}
		saw[name] = n
	}
	return saw, nil
}

// grade compares what the canary saw with what the plan promises. What the level stands for must hold, or the level is refused.
func (s *Sandbox) grade(saw map[string]int) ([]Guarantee, error) {
	p, cg := &s.plan, s.cgroups
	var broken []string
	must := func(ok bool, what string) {
		if !ok {
			broken = append(broken, what)
		}
	}
	must(saw["ptrace"] == int(unix.EPERM), "ptrace is not refused")
	must(saw["mount"] == int(unix.EPERM) && saw["unshare"] == int(unix.EPERM), "mounts or namespaces are not refused")
	must(saw["vsock"] != 0, "vsock sockets can be made")
	must(saw["write_here"] == 0, "the box's directory cannot be written")
	must(saw["write_root"] != 0 && saw["write_usr"] != 0, "the host's directories can be written")
	if !p.plain {
		must(saw["pid"] == 2, "process ids are not the box's own")
		must(saw["uid"] == 1000, "user ids are not the box's own")
		must(saw["route"] == int(unix.ENETUNREACH), "the network is reachable")
		must(saw["proc_init"] != 0, "init is visible in /proc")
		must(saw["host_etc"] != 0, "the host's /etc is visible")
	} else {
		must(saw["inet"] != 0, "network sockets can be made")
		must(saw["proc_init"] != 0 || landlockABI() == 0, "the host's /proc is readable")
		must(saw["host_etc"] != 0 || landlockABI() == 0, "the host's /etc is readable")
	}
	if broken != nil {
		return nil, fmt.Errorf("the canary saw that %s", strings.Join(broken, ", "))
	}
	const (
		needNS      = "allow user namespaces (Docker: --security-opt seccomp=unconfined --security-opt systempaths=unconfined)"
		needCgroups = "run as root, or in a cgroup of your own: systemd-run --user --scope -p Delegate=yes"
	)
	proc := !p.plain && saw["proc_self"] == 0 || p.plain
	g := make([]Guarantee, 0, len(guaranteeNames))
	add := func(name string, grade Grade, how, remedy string) {
		if grade == Enforced {
			remedy = ""
		}
		g = append(g, Guarantee{name, grade, how, remedy})
	}
	if p.plain {
		add("tree_death", Polled, "subreaper: descendants are stopped and killed until none is left", needNS)
	} else {
		add("tree_death", Enforced, "PID namespace", "")
	}
	add("wall", Enforced, "timer of the box's own init", "")
	switch {
	case cg != nil && cg.cpu != nil:
		add("cpu", Enforced, "cgroup quota; total read every 20 ms; RLIMIT_CPU per process", "")
	case proc:
		add("cpu", Polled, "total read every 20 ms from /proc; RLIMIT_CPU per process; no quota (CPUMilli is ignored)", needCgroups)
	default:
		add("cpu", PerProcess, "RLIMIT_CPU; no quota (CPUMilli is ignored)", needCgroups)
	}
	switch {
	case cg != nil && cg.memory != nil:
		add("memory", Enforced, "memory cgroup", "")
	case proc:
		add("memory", Polled, "sum read every 20 ms from /proc; RLIMIT_DATA per process", needCgroups)
	default:
		add("memory", PerProcess, "RLIMIT_DATA (/proc is masked, so nothing can be summed)", "Docker: --security-opt systempaths=unconfined")
	}
	switch {
	case cg != nil && cg.pids != nil:
		add("pids", Enforced, "pids cgroup and RLIMIT_NPROC", "")
	case !p.plain && (p.slots || os.Geteuid() != 0):
		add("pids", Enforced, "RLIMIT_NPROC in the box's own user namespace (a refusal is not told)", "")
	case p.slots:
		add("pids", Enforced, "RLIMIT_NPROC of a user id that no other box has", "")
	case os.Geteuid() != 0:
		add("pids", PerProcess, "RLIMIT_NPROC, shared with the user's other processes", needNS)
	default:
		add("pids", None, "RLIMIT_NPROC does not bind root", needNS)
	}
	if p.plain {
		files, how := Enforced, fmt.Sprintf("landlock version %d; names and sizes of the host's files can be looked up", landlockABI())
		hidden, howHidden := Enforced, "landlock: no /proc at all"
		if landlockABI() == 0 {
			files, how = None, "a user id of its own, no landlock: what everybody may read or write on the host can be read or written"
			hidden, howHidden = None, "a user id of its own, no landlock: the host's processes can be listed"
		}
		add("files", files, how, needNS)
		add("disk", PerProcess, "RLIMIT_FSIZE for each file", needNS)
		add("network", Enforced, "seccomp: no sockets but pairs", "")
		switch {
		case landlockABI() >= 6:
			add("signals", Enforced, "landlock scope", "")
		case p.slots:
			add("signals", Enforced, "a user id that no other box has", "")
		default:
			add("signals", None, "commands can signal other processes of this user", needNS+", or Linux 6.12")
		}
		add("proc", hidden, howHidden, needNS)
		add("ipc", Enforced, "seccomp: no System V objects, no message queues", "")
	} else {
		add("files", Enforced, "own root file system, read-only", "")
		add("disk", Enforced, "tmpfs with size and inode limits", "")
		add("network", Enforced, "network namespace without devices", "")
		add("signals", Enforced, "PID namespace", "")
		if proc {
			add("proc", Enforced, "own /proc of its own processes, hidepid", "")
		} else {
			add("proc", Enforced, "no /proc at all: the host's is masked", "")
		}
		add("ipc", Enforced, "IPC namespace", "")
	}
	add("syscalls", Enforced, "two seccomp filters, no capability, no new privileges ("+runtime.GOARCH+")", "")
	return g, nil
}

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Each box has a leaf of its own in every controller: one directory with v2, one a controller with v1, any mix on hybrid hosts.
// The leaves lie in a folder of their Sandbox, named after this process too, beside or below where the host allows it:
//
//	<base>/provegym-<pid>-<start time>-<random>/box-<n>
//
// Only commands enter a leaf, never an init: an OOM kill takes every process that shares the victim's memory, and inits share
// the zygote's. (A command that has not reached execve yet shares it too; the kernel passes over processes in vfork.)

// controller is one hierarchy in which leaves are made.
type controller struct {
	names string // "memory", "cpu", …; "memory cpu pids" with v2
	v2    bool
	dir   string // our folder in it
}

type cgroups struct {
	controllers       []controller
	memory, pids, cpu *controller // nil: not on this host
	cpuacct           *controller
	next              atomic.Uint64
	describe          string
	swapFile          bool // v1: memory.memsw exists
	owner             int  // v1: the user who may remove leaves beside us; 0 for none
	zygote            int  // v2: the cgroup in which zygotes are born, open; else -1
}

// hierarchy is where a cgroup file system is mounted, and which of its folders is seen there (a container sees only its own).
type hierarchy struct{ mount, root string }

// at gives the path of a cgroup as /proc/self/cgroup names it.
func (h hierarchy) at(cgroup string) string {
	return filepath.Join(h.mount, strings.TrimPrefix(cgroup, strings.TrimSuffix(h.root, "/")))
}

// cgroupMounts finds the hierarchies: v1 by controller, v2 by itself.
func cgroupMounts() (v1 map[string]hierarchy, v2 hierarchy, err error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, v2, err
	}
	v1 = map[string]hierarchy{}
	for line := range strings.Lines(string(data)) {
		left, right, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(left), strings.Fields(right)
		if !ok || len(f) < 5 || len(g) < 3 {
			continue
		}
		switch g[0] {
		case "cgroup2":
			v2 = hierarchy{f[4], f[3]}
		case "cgroup":
			for _, option := range strings.Split(g[2], ",") {
				v1[option] = hierarchy{f[4], f[3]}
			}
		}
	}
	return v1, v2, nil
}

// ownCgroups reads /proc/self/cgroup: path by controller, v2 by "".
func ownCgroups() (map[string]string, error) {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	own := map[string]string{}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 {
			for _, c := range strings.Split(parts[1], ",") {
				own[c] = parts[2]
			}
		}
	}
	return own, nil
}

// openCgroups finds a place for leaves and makes our folder there. base, if not "", names a v2 cgroup to use. A missing
// controller is not an error, the guarantee is then not from a cgroup; no controller at all is, and says why.
func openCgroups(base string) (*cgroups, error) {
	v1, v2, err := cgroupMounts()
	if err != nil {
		return nil, fmt.Errorf("sandbox: cgroups: %w", err)
	}
	own, err := ownCgroups()
	if err != nil {
		return nil, fmt.Errorf("sandbox: cgroups: %w", err)
	}
	g := &cgroups{zygote: -1}
	name := fmt.Sprintf("%s-%08x", folderName(os.Getpid()), rand.Uint32())
	var why []string
	if v2.mount != "" {
		if c, err := openV2(v2, own[""], base, name); err == nil {
			g.controllers = append(g.controllers, *c)
		} else {
			why = append(why, err.Error())
		}
	} else if base != "" {
		return nil, fmt.Errorf("sandbox: Options.CgroupBase is %q, but no v2 hierarchy is mounted", base)
	}
	if base == "" {
		for _, want := range []string{"memory", "pids", "cpu", "cpuacct"} {
			mount, ok := v1[want]
			if !ok || g.find(want) != nil {
				continue
			}
			dir := filepath.Join(mount.at(own[want]), name)
			sweep(filepath.Dir(dir))
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { // exists: controllers mounted together
				why = append(why, err.Error())
				continue
			}
			g.controllers = append(g.controllers, controller{names: want, dir: dir})
		}
	}
	g.memory, g.pids, g.cpu, g.cpuacct = g.find("memory"), g.find("pids"), g.find("cpu"), g.find("cpuacct")
	if len(g.controllers) == 0 || g.memory == nil && g.pids == nil {
		g.close()
		if len(why) == 0 {
			why = []string{"no hierarchy with the controllers memory and pids is mounted"}
		}
		return nil, fmt.Errorf("sandbox: cgroups: %s", strings.Join(why, "; "))
	}
	if len(g.controllers) == 1 && g.controllers[0].v2 {
		dir := g.controllers[0].dir
		zyg := filepath.Join(dir, "zygote")
		if unix.Mkdir(zyg, 0o755) == nil && unix.Chmod(filepath.Join(dir, "cgroup.procs"), 0o666) == nil {
			if fd, err := unix.Open(zyg, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
				g.zygote = fd
			}
		}
	}
	if g.memory != nil && !g.memory.v2 {
		_, err := os.Stat(filepath.Join(g.memory.dir, "memory.memsw.limit_in_bytes"))
		g.swapFile = err == nil
	}
	var parts []string
	for _, c := range g.controllers {
		version := "v1"
		if c.v2 {
			version = "v2"
		}
		parts = append(parts, fmt.Sprintf("%s %s at %s", version, c.names, c.dir))
	}
	g.describe = strings.Join(parts, ", ")
	return g, nil
}

func (g *cgroups) find(name string) *controller {
	for i := range g.controllers {
		if strings.Contains(" "+g.controllers[i].names+" ", " "+name+" ") {
			return &g.controllers[i]
		}
	}
	return nil
}

// hostChild is where this process goes when its own cgroup is to hand down controllers.
const hostChild = "host"

// v2Parents are the cgroups in which our folder may lie, in the order to try them. A cgroup that hands controllers to children may
// hold no process itself (but for the root), so these are: the given base, and no other; our own cgroup, if that is the root or
// holds nothing but this process, which then moves into a child; the one above ours. Who has moved already finds the folder's place
// above itself: otherwise each Open of a process would go one level deeper.
func v2Parents(v2 hierarchy, own, base string) []string {
	here := v2.at(own)
	above := filepath.Dir(here)
	switch {
	case base != "":
		return []string{base}
	case here == v2.mount:
		return []string{here}
	case filepath.Base(here) == hostChild:
		return []string{above, here}
	}
	return []string{here, above}
}

// openV2 makes our folder in the v2 hierarchy.
func openV2(v2 hierarchy, own, base, name string) (*controller, error) {
	var why []string
	for _, parent := range v2Parents(v2, own, base) {
		dir := filepath.Join(parent, name)
		names, err := func() (string, error) {
			have, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
			if err != nil {
				return "", err
			}
			var wanted []string
			for _, c := range strings.Fields(string(have)) {
				if c == "memory" || c == "pids" || c == "cpu" {
					wanted = append(wanted, c)
				}
			}
			if len(wanted) == 0 {
				return "", fmt.Errorf("%s hands down none of memory, pids and cpu", parent)
			}
			sweep(parent)
			if err := os.Mkdir(dir, 0o755); err != nil {
				return "", err
			}
			if err := handDown(parent, wanted); err != nil {
				return "", err
			}
			return strings.Join(wanted, " "), handDown(dir, wanted)
		}()
		if err == nil {
			return &controller{names: names, v2: true, dir: dir}, nil
		}
		unix.Rmdir(dir)
		why = append(why, err.Error())
	}
	return nil, errors.New(strings.Join(why, "; "))
}

// handDown enables controllers for the children of a v2 cgroup.
func handDown(dir string, names []string) error {
	file := filepath.Join(dir, "cgroup.subtree_control")
	have, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var missing []string
	for _, n := range names {
		if !bytes.Contains(append([]byte(" "), append(bytes.TrimSpace(have), ' ')...), []byte(" "+n+" ")) {
			missing = append(missing, "+"+n)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	enable := func() error { return os.WriteFile(file, []byte(strings.Join(missing, " ")), 0) }
	err = enable()
	if !errors.Is(err, unix.EBUSY) {
		return err
	}
	procs, rerr := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if rerr != nil || strings.TrimSpace(string(procs)) != strconv.Itoa(os.Getpid()) {
		return fmt.Errorf("%s holds other processes than this one, so it cannot hand down controllers", dir)
	}
	child := filepath.Join(dir, hostChild)
	if err := os.Mkdir(child, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.WriteFile(filepath.Join(child, "cgroup.procs"), []byte("0"), 0); err != nil {
		return err
	}
	return enable()
}

const folderPrefix = "provegym-"

// folderName begins the folders of a process; the start time tells it from a later process with the same number.
func folderName(pid int) string { return fmt.Sprintf("%s%d-%s", folderPrefix, pid, startTime(pid)) }

// startTime is field 22 of /proc/PID/stat, "" if there is no such process.
func startTime(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(data[max(0, bytes.LastIndexByte(data, ')')):]), " ")
	if f := strings.Fields(rest); len(f) > 19 {
		return f[19]
	}
	return ""
}

// sweep removes what killed processes have left in parent.
func sweep(parent string) {
	old, _ := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
	for _, dir := range old {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), folderPrefix), "-")
		if n, err := strconv.Atoi(pid); err != nil || strings.HasPrefix(filepath.Base(dir), folderName(n)+"-") {
			continue
		}
		removeFolder(dir)
	}
}

func removeFolder(dir string) error {
	leaves, _ := filepath.Glob(filepath.Join(dir, "box-*"))
	for _, leaf := range append(leaves, filepath.Join(dir, "zygote")) {
		unix.Rmdir(leaf)
	}
	return unix.Rmdir(dir)
}

// busyPatience is the longest pause, and about half of all, before a cgroup is left behind whose last processes are on their way out.
const busyPatience = 3 * time.Second

func (g *cgroups) close() {
	if g.zygote >= 0 {
		unix.Close(g.zygote)
		g.zygote = -1
	}
	for _, c := range g.controllers {
		// The last processes in it may be dead but not gone.
		for wait := time.Millisecond; removeFolder(c.dir) == unix.EBUSY && wait < busyPatience; wait *= 2 {
			time.Sleep(wait)
		}
	}
}

// leaf is the cgroup of one box.
type leaf struct {
	g     *cgroups
	dirs  []string
	procs []int // cgroup.procs of each, open for writing
	into  int   // the leaf itself where there is only v2, so that commands can be born in it; else -1
}

func (c *controller) path(leaf string) string { return filepath.Join(c.dir, leaf) }

// cpuPeriod is the time slice, in microseconds, within which CPUMilli holds.
const cpuPeriod = 100_000

func (g *cgroups) newLeaf(spec *Spec) (*leaf, error) {
	name := fmt.Sprintf("box-%d", g.next.Add(1))
	l := &leaf{g: g, into: -1}
	for i := range g.controllers {
		c := &g.controllers[i]
		dir := c.path(name)
		err := unix.Mkdir(dir, 0o755)
		if err == unix.ENOENT && !c.v2 {
			// A process that does not see this one in its /proc has taken our folder for a dead one's and removed it while it was
			// empty. It has nothing of its own, so that a new one is as good.
			if err = unix.Mkdir(c.dir, 0o755); err == nil || err == unix.EEXIST {
				if g.owner > 0 {
					os.Chown(c.dir, g.owner, -1)
				}
				err = unix.Mkdir(dir, 0o755)
			}
		}
		if err != nil && !(err == unix.EEXIST && !c.v2) {
			l.close()
			return nil, &os.PathError{Op: "mkdir", Path: dir, Err: err}
		}
		l.dirs = append(l.dirs, dir)
	}
	var err error
	set := func(c *controller, file string, value int64) {
		if c != nil && err == nil {
			err = writeFile(filepath.Join(c.path(name), file), strconv.FormatInt(value, 10))
		}
	}
	if c := g.memory; c != nil && c.v2 {
		set(c, "memory.max", spec.MemoryBytes)
		if e := writeFile(filepath.Join(c.path(name), "memory.swap.max"), "0"); e != nil && e != unix.ENOENT {
			err = e
		}
	} else if c != nil {
		set(c, "memory.limit_in_bytes", spec.MemoryBytes)
		if g.swapFile {
			set(c, "memory.memsw.limit_in_bytes", spec.MemoryBytes)
		}
	}
	set(g.pids, "pids.max", int64(spec.PidsMax))
	quota := int64(spec.CPUMilli) * cpuPeriod / 1000
	if c := g.cpu; c != nil && c.v2 && err == nil {
		err = writeFile(filepath.Join(c.path(name), "cpu.max"), fmt.Sprintf("%d %d", quota, cpuPeriod))
	} else if c != nil {
		set(c, "cpu.cfs_period_us", cpuPeriod)
		set(c, "cpu.cfs_quota_us", quota)
	}
	for _, dir := range l.dirs {
		if err != nil {
			break
		}
		var fd int
		if fd, err = unix.Open(filepath.Join(dir, "cgroup.procs"), unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
			l.procs = append(l.procs, fd)
		}
	}
	if err == nil && g.zygote >= 0 {
		// The zygote's user must be allowed to write here. Nobody else can: moving needs the same right on what is above both
		// the old and the new cgroup.
		if err = unix.Chmod(filepath.Join(l.dirs[0], "cgroup.procs"), 0o666); err == nil {
			l.into, err = unix.Open(l.dirs[0], unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
	}
	if err != nil {
		l.close()
		return nil, fmt.Errorf("sandbox: limits of cgroup %s: %w", name, err)
	}
	return l, nil
}

// writeFile writes to a kernel file: one write, no creation, no truncation.
func writeFile(path, text string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(text))
	return err
}

func (l *leaf) dir(c *controller) string {
	for i := range l.g.controllers {
		if &l.g.controllers[i] == c {
			return l.dirs[i]
		}
	}
	return ""
}

// number reads the first number of a kernel file, or the one behind key; 0 if there is none.
func (l *leaf) number(c *controller, file, key string) int64 {
	if c == nil {
		return 0
	}
	fd, err := unix.Open(filepath.Join(l.dir(c), file), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	var buf [1024]byte
	n, _ := unix.Read(fd, buf[:])
	text := string(buf[:max(n, 0)])
	if key == "" {
		v, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		return v
	}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == key {
			v, _ := strconv.ParseInt(f[1], 10, 64)
			return v
		}
	}
	return 0
}

// usage is what the kernel counted in a leaf since it was made.
type usage struct {
	oomKills, pidsRefused, memoryPeak int64
}

func (l *leaf) usage() usage {
	var u usage
	if c := l.g.memory; c != nil && c.v2 {
		u.oomKills = l.number(c, "memory.events", "oom_kill")
		u.memoryPeak = l.number(c, "memory.peak", "")
	} else if c != nil {
		u.oomKills = l.number(c, "memory.oom_control", "oom_kill")
		u.memoryPeak = l.number(c, "memory.max_usage_in_bytes", "")
	}
	u.pidsRefused = l.number(l.g.pids, "pids.events", "max")
	return u
}

// cpuFile opens the file by which init sees the CPU time of the box; -1 if there is none.
func (l *leaf) cpuFile() int {
	path := ""
	if c := l.g.cpuacct; c != nil {
		path = filepath.Join(l.dir(c), "cpuacct.usage")
	} else if c := l.g.controllers[0]; c.v2 {
		path = filepath.Join(l.dirs[0], "cpu.stat")
	} else {
		return -1
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}

// kill ends every process of the leaf, where the kernel can (v2 since 5.14).
func (l *leaf) kill() {
	for i := range l.g.controllers {
		if l.g.controllers[i].v2 {
			writeFile(filepath.Join(l.dirs[i], "cgroup.kill"), "1")
		}
	}
}

// close removes the leaf. Its processes are dead; the last of them may still be on their way out of it.
func (l *leaf) close() error {
	for _, fd := range l.procs {
		unix.Close(fd)
	}
	l.procs = nil
	if l.into >= 0 {
		unix.Close(l.into)
		l.into = -1
	}
	var last error
	for _, dir := range l.dirs {
		err := unix.Rmdir(dir)
		for wait := 100 * time.Microsecond; err == unix.EBUSY && wait < busyPatience; wait *= 2 {
			time.Sleep(wait)
			err = unix.Rmdir(dir)
		}
		if err != nil && err != unix.ENOENT {
			last = &os.PathError{Op: "rmdir", Path: dir, Err: err}
		}
	}
	l.dirs = nil
	return last
}

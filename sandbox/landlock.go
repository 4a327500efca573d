package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Without namespaces a box is a directory of its own on the host, and landlock keeps commands to it and to the read-only
// directories. What landlock cannot do (hide names, bound sizes) Capabilities says.

// plainBox is the part of a Box that exists without namespaces.
type plainBox struct {
	path  string
	work  int    // the directory, which holds work, tmp and shm
	rules int    // landlock ruleset, -1 without landlock
	uid   uint32 // of the commands; 0: the host's
}

// landlockABI is the kernel's version of landlock, 0 for none.
func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

var plainUIDs atomic.Uint32

// plainPrefix begins the names of boxes' directories; pid and start time of the host process follow.
const plainPrefix = "provegym-box-"

// sweepPlain removes the directories that killed processes of this user have left.
func sweepPlain() {
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), plainPrefix+"*"))
	for _, dir := range old {
		f := strings.Split(strings.TrimPrefix(filepath.Base(dir), plainPrefix), "-")
		var st unix.Stat_t
		pid, err := strconv.Atoi(f[0])
		if err != nil || len(f) != 3 || startTime(pid) == f[1] || unix.Lstat(dir, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			continue
		}
		if os.Geteuid() == 0 || int(st.Uid) == os.Geteuid() {
			(&plainBox{path: dir, work: -1, rules: -1}).close()
		}
	}
}

func newPlainBox(s *Sandbox) (*plainBox, error) {
	path, err := os.MkdirTemp("", plainPrefix+strings.TrimPrefix(folderName(os.Getpid()), folderPrefix)+"-")
	if err != nil {
		return nil, fmt.Errorf("sandbox: directory of the box: %w", err)
	}
	p := &plainBox{path: path, work: -1, rules: -1}
	if s.plan.slots { // root: ids without names, round and round
		p.uid = s.plan.uid + 1 + plainUIDs.Add(1)%(s.plan.ids-1)
	}
	for _, d := range []string{"work", "tmp", "shm"} {
		at := filepath.Join(path, d)
		if err = os.Mkdir(at, 0o755); err == nil && p.uid != 0 {
			err = os.Chown(at, int(p.uid), int(p.uid))
		}
		if err != nil {
			p.close()
			return nil, fmt.Errorf("sandbox: directory of the box: %w", err)
		}
	}
	if p.uid != 0 {
		err = os.Chown(path, int(p.uid), int(p.uid))
	}
	if err == nil {
		p.work, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	if err == nil && landlockABI() > 0 {
		err = p.restrict(s.options.ReadOnlyDirs)
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("sandbox: directory of the box: %w", err)
	}
	return p, nil
}

// Rights by the version of landlock that brought them.
const (
	landlockRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockAll1  = 1<<13 - 1
	landlockRefer = 1 << 13 // 2
	landlockTrunc = 1 << 14 // 3
	landlockNet   = 3       // 4: bind and connect of TCP
	landlockIoctl = 1 << 15 // 5
	landlockScope = 3       // 6: abstract unix sockets, signals
)

// restrict makes the ruleset that commands put on.
func (p *plainBox) restrict(dirs []string) error {
	abi := landlockABI()
	attr := struct{ files, net, scoped uint64 }{files: landlockAll1}
	size := uintptr(8)
	if abi >= 2 {
		attr.files |= landlockRefer
	}
	if abi >= 3 {
		attr.files |= landlockTrunc
	}
	if abi >= 4 {
		attr.net, size = landlockNet, 16
	}
	if abi >= 5 {
		attr.files |= landlockIoctl
	}
	if abi >= 6 {
		attr.scoped, size = landlockScope, 24
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return os.NewSyscallError("landlock_create_ruleset", errno)
	}
	p.rules = int(fd)
	unix.CloseOnExec(p.rules)
	if dirs == nil {
		dirs = append(append([]string{}, systemDirs...), systemFiles...)
	}
	for _, d := range dirs {
		if err := p.allow(d, landlockRead); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, d := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"} {
		if err := p.allow(d, unix.LANDLOCK_ACCESS_FS_READ_FILE|unix.LANDLOCK_ACCESS_FS_WRITE_FILE); err != nil {
			return err
		}
	}
	// No devices, which a plain uid could not make anyhow.
	return p.allow(p.path, attr.files&^(unix.LANDLOCK_ACCESS_FS_MAKE_CHAR|unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK))
}

// allow gives rights on a path and below.
func (p *plainBox) allow(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	}
	var rule [12]byte // struct landlock_path_beneath_attr is packed
	order.PutUint64(rule[:], rights)
	order.PutUint32(rule[8:], uint32(fd))
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(p.rules), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("landlock rule for %s: %w", path, errno)
	}
	return nil
}

// env is DefaultEnv with the places that are elsewhere without namespaces.
func (p *plainBox) env() []string {
	env := []string{"HOME=" + p.path + "/work", "TMPDIR=" + p.path + "/tmp"}
	for _, v := range DefaultEnv {
		if !strings.HasPrefix(v, "HOME=") {
			env = append(env, v)
		}
	}
	return env
}

// processLimit is RLIMIT_NPROC, which counts all processes of the user: with an id of their own the box's, else the host
// user's too, as many as there are now.
func (p *plainBox) processLimit(most int) uint64 {
	if p.uid != 0 {
		return uint64(most)
	}
	others := 0
	procs, _ := os.ReadDir("/proc")
	for _, d := range procs {
		if _, err := strconv.Atoi(d.Name()); err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Stat("/proc/"+d.Name()+"/task", &st) == nil && int(st.Uid) == os.Getuid() {
			others += max(int(st.Nlink)-2, 1)
		}
	}
	return uint64(others + most)
}

// diskUsage sums up what lies in the box's directory.
func (p *plainBox) diskUsage() (bytes, files int64) {
	filepath.WalkDir(p.path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			files++
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes, files
}

func (p *plainBox) close() error {
	for _, fd := range []int{p.work, p.rules} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	p.work, p.rules = -1, -1
	if os.Geteuid() != 0 { // a command may have taken away its own rights on directories, which root does not need
		filepath.WalkDir(p.path, func(path string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() && err == nil {
				os.Chmod(path, 0o700) // WalkDir calls before it reads the directory
			}
			return nil
		})
	}
	return os.RemoveAll(p.path)
}

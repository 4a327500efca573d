package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// rootPlan is what boxes see, as a list of operations for the zygote, which it does in a fresh tmpfs that it then enters.
type rootPlan struct {
	ops   message
	n     int
	names []string // of each operation, for errors
	fds   []int    // mount trees, owned by the plan
	made  map[string]bool
	trees bool // mounts are taken here, with this process's rights, and not by the zygote
}

const treeAttr = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
const deviceAttr = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC

// systemDirs are shown when Options.ReadOnlyDirs is nil: where programs and their libraries are. On merged-usr systems all but
// the first are links.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// systemFiles of /etc hold nothing private and are needed by common programs (linker cache, awk and the like by alternatives).
var systemFiles = []string{"/etc/alternatives", "/etc/ld.so.cache"}

func (p *rootPlan) close() {
	for _, fd := range p.fds {
		unix.Close(fd)
	}
	p.fds = nil
}

func (p *rootPlan) op(kind, arg uint32, a, b string) {
	p.ops.u32(kind, arg, uint32(len(a)), uint32(len(b)))
	p.ops.text(a)
	p.ops.text(b)
	for len(p.ops)%8 != 0 {
		p.ops = append(p.ops, 0)
	}
	p.n++
	p.names = append(p.names, strings.TrimSpace(fmt.Sprintf("%s %s", a, b)))
}

// dir makes a directory and those above it. Paths are absolute; the operations' are relative.
func (p *rootPlan) dir(path string) {
	if path == "/" || p.made[path] {
		return
	}
	p.dir(filepath.Dir(path))
	p.made[path] = true
	p.op(opDir, 0o755, path[1:], "")
}

func (p *rootPlan) file(path, content string) {
	p.dir(filepath.Dir(path))
	p.op(opFile, 0o444, path[1:], content)
}

// show mounts a host path at the same path in the box.
func (p *rootPlan) show(path string, attr uint32) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		p.dir(path)
	} else {
		p.file(path, "")
	}
	if !p.trees {
		p.op(opBind, attr, path, path[1:])
		return nil
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return &os.PathError{Op: "open_tree", Path: path, Err: err}
	}
	p.fds = append(p.fds, fd)
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: uint64(attr), Propagation: unix.MS_PRIVATE})
	if err != nil {
		return &os.PathError{Op: "mount_setattr", Path: path, Err: err}
	}
	p.op(opTree, uint32(len(p.fds)-1), "", path[1:])
	return nil
}

// planRoot lists what makes the root file system. firstFDs come before the trees in the message.
func planRoot(dirs []string, trees bool, firstFDs int) (*rootPlan, error) {
	p := &rootPlan{made: map[string]bool{}, trees: trees}
	p.fds = slices.Repeat([]int{-1}, firstFDs)
	for _, d := range []string{"/proc", "/tmp", "/work", "/dev/shm", "/etc"} {
		p.dir(d)
	}
	if dirs == nil {
		for _, d := range systemDirs {
			info, err := os.Lstat(d)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil && info.Mode()&fs.ModeSymlink != 0 {
				var to string
				if to, err = os.Readlink(d); err == nil {
					p.op(opLink, 0, to, d[1:])
				}
			} else if err == nil {
				err = p.show(d, treeAttr)
			}
			if err != nil {
				p.close()
				return nil, fmt.Errorf("sandbox: show %s: %w", d, err)
			}
		}
		for _, f := range systemFiles {
			if _, err := os.Stat(f); err == nil {
				if err := p.show(f, treeAttr); err != nil {
					p.close()
					return nil, fmt.Errorf("sandbox: show %s: %w", f, err)
				}
			}
		}
	}
	for _, d := range dirs {
		if err := p.show(d, treeAttr); err != nil {
			p.close()
			return nil, fmt.Errorf("sandbox: show %s: %w", d, err)
		}
	}
	for _, d := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"} {
		if err := p.show(d, deviceAttr); err != nil {
			p.close()
			return nil, fmt.Errorf("sandbox: show %s: %w", d, err)
		}
	}
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		p.op(opLink, 0, to, "dev/"+name)
	}
	p.file("/etc/passwd", "root:x:0:0:root:/:/bin/false\nagent:x:1000:1000:agent:/work:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
	p.file("/etc/group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n")
	p.file("/etc/hosts", "127.0.0.1 localhost box\n::1 localhost\n")
	p.file("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")
	return p, nil
}

// checkDirs lists what is wrong with Options.ReadOnlyDirs.
func checkDirs(dirs []string, p *problems) {
	taken := []string{"/proc", "/tmp", "/work", "/dev", "/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf"}
	for _, d := range dirs {
		if !filepath.IsAbs(d) || filepath.Clean(d) != d || d == "/" || strings.IndexByte(d, 0) >= 0 {
			p.add("ReadOnlyDirs: %q is not a clean absolute path below /", d)
			continue
		}
		for _, t := range taken {
			if d == t || strings.HasPrefix(d, t+"/") {
				p.add("ReadOnlyDirs: %q is the box's own place", d)
			}
		}
		if _, err := os.Stat(d); err != nil {
			p.add("ReadOnlyDirs: %v", err)
		}
	}
	if len(dirs) > fdsMax-16 {
		p.add("ReadOnlyDirs: there are %d, the most is %d", len(dirs), fdsMax-16)
	}
}

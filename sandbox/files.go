package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Files go in and out by descriptor: openat2 below the root of the box's disk, without following any link, and never by a
// path on the host. A command may rename and link as it likes meanwhile; the worst that it gets is an error.
//
// Names are those of the box: /work/…, /tmp/…, /dev/shm/…, and relative ones are in /work.

const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// onDisk turns a name in the box into a path below the root of its disk.
func onDisk(name string) (string, error) {
	full := name
	if !path.IsAbs(name) {
		full = "/work/" + name
	}
	clean := path.Clean(full)
	for at, dir := range map[string]string{"/work": "work", "/tmp": "tmp", "/dev/shm": "shm"} {
		if clean == at || strings.HasPrefix(clean, at+"/") {
			if strings.IndexByte(name, 0) >= 0 || len(clean) > unix.PathMax-16 {
				break
			}
			return dir + clean[len(at):], nil
		}
	}
	return "", &fs.PathError{Op: "open", Path: fmt.Sprintf("%.120q", name), Err: fmt.Errorf("%w: names are below /work, /tmp or /dev/shm", ErrInvalid)}
}

// withDir runs f with the root of the disk; what creates files does so as the box's own user, since commands could not write
// root's. The thread has that user only meanwhile.
func (b *Box) withDir(op, name string, create bool, f func(dir int, on string) error) error {
	on, err := onDisk(name)
	if err != nil {
		return err
	}
	if err := b.Ready(); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	b.mu.Lock()
	if b.dir < 0 {
		b.mu.Unlock()
		return &fs.PathError{Op: op, Path: name, Err: ErrClosed}
	}
	dir, err := unix.FcntlInt(uintptr(b.dir), unix.F_DUPFD_CLOEXEC, 0)
	uid := b.uid
	b.mu.Unlock()
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	defer unix.Close(dir)
	if create && uid != os.Geteuid() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		unix.Setfsgid(uid)
		unix.Setfsuid(uid)
		defer func() {
			unix.Setfsuid(os.Geteuid())
			unix.Setfsgid(os.Getegid())
		}()
		if was, _ := unix.SetfsuidRetUid(-1); was != uid {
			return &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("take the box's user id %d: %w", uid, unix.EPERM)}
		}
	}
	if err := f(dir, on); err != nil {
		if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ELOOP) {
			err = fmt.Errorf("leads out of the box or through a link: %w", err)
		}
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

func openBeneath(dir int, on string, flags uint64, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat2(dir, on, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Mode: uint64(mode), Resolve: beneath})
		if err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}

// WriteFile creates or replaces a regular file, and the directories above it, with mode perm. It counts against DiskBytes and
// DiskFiles. A link, fifo or directory of that name is an error.
func (b *Box) WriteFile(name string, data []byte, perm fs.FileMode) error {
	return b.withDir("write", name, true, func(dir int, on string) error {
		fd, err := openBeneath(dir, on, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NONBLOCK|unix.O_NOFOLLOW, uint32(perm.Perm()))
		if err == unix.ENOENT {
			if err = makeDirs(dir, path.Dir(on)); err == nil {
				fd, err = openBeneath(dir, on, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NONBLOCK|unix.O_NOFOLLOW, uint32(perm.Perm()))
			}
		}
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := regular(fd); err != nil {
			return err
		}
		if err := unix.Fchmod(fd, uint32(perm.Perm())); err != nil { // past the umask, and for a file that was there
			return err
		}
		for len(data) > 0 {
			n, err := unix.Write(fd, data)
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				return err
			}
			data = data[n:]
		}
		return nil
	})
}

// Mkdir makes a directory and those above it; one that is there is no error.
func (b *Box) Mkdir(name string) error { return b.withDir("mkdir", name, true, makeDirs) }

func makeDirs(dir int, on string) error {
	if on == "." {
		return nil
	}
	fd, err := openBeneath(dir, on, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err == nil {
		unix.Close(fd)
		return nil
	}
	if err != unix.ENOENT {
		return err
	}
	if err := makeDirs(dir, path.Dir(on)); err != nil {
		return err
	}
	parent, err := openBeneath(dir, path.Dir(on), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	if err := unix.Mkdirat(parent, path.Base(on), 0o755); err != nil && err != unix.EEXIST {
		return err
	}
	return nil
}

func regular(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("%w: it is no regular file", unix.EINVAL)
	}
	return nil
}

// descriptor reads from a descriptor that stays its owner's.
type descriptor int

func (d descriptor) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(d), p)
		if err == unix.EINTR {
			continue
		}
		if n == 0 && err == nil && len(p) > 0 {
			err = io.EOF
		}
		return max(n, 0), err
	}
}

// ErrTooBig is returned by ReadFile for a file of more than maxBytes.
var ErrTooBig = errors.New("file is too big")

// ReadFile reads a regular file of at most maxBytes.
//
// Errors: those of the file system as *fs.PathError (fs.ErrNotExist and so on); ErrTooBig; an error for whatever is not a
// regular file or lies behind a link. It never blocks on what a command has put there.
func (b *Box) ReadFile(name string, maxBytes int64) (data []byte, err error) {
	err = b.withDir("read", name, false, func(dir int, on string) error {
		fd, done, err := b.openToRead(dir, on, unix.O_NONBLOCK|unix.O_NOFOLLOW)
		if err != nil {
			return err
		}
		defer done()
		if err := regular(fd); err != nil {
			return err
		}
		data, err = io.ReadAll(io.LimitReader(descriptor(fd), maxBytes+1))
		if err == nil && int64(len(data)) > maxBytes {
			data, err = nil, fmt.Errorf("%w: more than %d bytes", ErrTooBig, maxBytes)
		}
		return err
	})
	return data, err
}

// openToRead opens a file or directory of the box even if its owner, the command, has taken away the owner's right to read it.
// Then the mode is widened until done is called: only its change time tells afterwards.
func (b *Box) openToRead(dir int, on string, flags uint64) (fd int, done func(), err error) {
	fd, err = openBeneath(dir, on, unix.O_RDONLY|flags, 0)
	if err == nil {
		var st unix.Stat_t
		if flags&unix.O_DIRECTORY == 0 || os.Geteuid() == 0 || unix.Fstat(fd, &st) == nil && st.Mode&0o100 != 0 {
			return fd, func() { unix.Close(fd) }, nil
		}
		unix.Close(fd) // a directory that can be listed but not searched
	} else if err != unix.EACCES {
		return -1, nil, err
	}
	at, err := openBeneath(dir, on, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, nil, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(at, &st); err == nil {
		if t := st.Mode & unix.S_IFMT; t != unix.S_IFREG && t != unix.S_IFDIR {
			err = unix.EACCES
		}
	}
	self := fmt.Sprintf("/proc/self/fd/%d", at) // fchmod does not take O_PATH; this link leads to the descriptor's own file
	if err == nil {
		err = unix.Chmod(self, st.Mode&0o7777|0o700)
	}
	if err != nil {
		unix.Close(at)
		return -1, nil, err
	}
	done = func() {
		if fd >= 0 {
			unix.Close(fd)
		}
		unix.Chmod(self, st.Mode&0o7777)
		unix.Close(at)
	}
	if fd, err = openBeneath(dir, on, unix.O_RDONLY|flags, 0); err != nil {
		done()
		return -1, nil, err
	}
	return fd, done, nil
}

// Entry is one file, directory, link or other thing in a box.
type Entry struct {
	Name  string      // as the box names it
	Mode  fs.FileMode // type and permissions
	Size  int64       // bytes of a regular file
	Links uint64      // hard links
	Link  string      // where a symbolic link points, never followed
}

// Walk lists everything below a directory, in byte order of the names, directories before what they hold. More than maxEntries
// is ErrTooBig. Names may hold any byte but / and NUL. Commands that run meanwhile may move things: for a true picture walk
// between commands.
func (b *Box) Walk(name string, maxEntries int) (list []Entry, err error) {
	err = b.withDir("walk", name, false, func(dir int, on string) error {
		return b.walk(dir, on, boxName(on), maxEntries, &list)
	})
	return list, err
}

func boxName(on string) string {
	if rest, ok := strings.CutPrefix(on, "shm"); ok {
		return "/dev/shm" + rest
	}
	return "/" + on
}

func (b *Box) walk(root int, on, name string, most int, list *[]Entry) error {
	fd, done, err := b.openToRead(root, on, unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer done()
	var names []string
	buf := make([]byte, 8<<10)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
		if len(names)+len(*list) > most {
			return fmt.Errorf("%w: more than %d entries", ErrTooBig, most)
		}
	}
	slices.Sort(names)
	for _, n := range names {
		var st unix.Stat_t
		if err := unix.Fstatat(fd, n, &st, unix.AT_SYMLINK_NOFOLLOW); err == unix.ENOENT {
			continue // gone meanwhile
		} else if err != nil {
			return err
		}
		e := Entry{Name: name + "/" + n, Mode: fileMode(st.Mode), Links: uint64(st.Nlink)}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			e.Size = st.Size
		case unix.S_IFLNK:
			to := make([]byte, unix.PathMax)
			k, err := unix.Readlinkat(fd, n, to)
			if err != nil && err != unix.ENOENT && err != unix.EINVAL {
				return err
			}
			e.Link = string(to[:max(k, 0)])
		}
		if len(*list) == most {
			return fmt.Errorf("%w: more than %d entries", ErrTooBig, most)
		}
		*list = append(*list, e)
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			// From this directory's descriptor, not from the root: however deep it goes, no path gets too long.
			if err := b.walk(fd, n, e.Name, most, list); err != nil && !errors.Is(err, unix.ENOENT) {
				return err
			}
		}
	}
	return nil
}

func fileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFLNK:
		m |= fs.ModeSymlink
	case unix.S_IFIFO:
		m |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		m |= fs.ModeSocket
	case unix.S_IFCHR:
		m |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		m |= fs.ModeDevice
	}
	if mode&unix.S_ISUID != 0 {
		m |= fs.ModeSetuid
	}
	if mode&unix.S_ISGID != 0 {
		m |= fs.ModeSetgid
	}
	if mode&unix.S_ISVTX != 0 {
		m |= fs.ModeSticky
	}
	return m
}

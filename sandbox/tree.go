package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A whole tree goes in or out in one call: Load and Store are to many files what ReadFile and WriteFile are to one, by the same
// rules. What Load tells of a box, Store makes of another; so the files of a box can be kept, compared and copied as data.
// Owners, access times and extended attributes are no part of it.

// File is one entry of a tree, whole.
type File struct {
	Entry
	ModTime time.Time
	Same    string // an earlier entry which this one is a hard link of; "" for none
	Data    []byte // of a regular file
}

// TreeLimits bound what Load reads. Each must be positive.
type TreeLimits struct {
	Entries int
	Bytes   int64 // of all regular files together, holes included
	Depth   int   // directories inside one another
	Name    int   // bytes of an entry's whole name
}

// Load calls each for the directories of these names and for everything below them, in byte order of the names, directories before what they
// hold. Data is valid during the call only. For a true picture load between commands: Exec returns when all processes are dead.
//
// Everything is read, every time: a program that writes to a file through a mapping changes none of its times.
//
// Errors: ErrTooBig past a limit; what each returned.
func (b *Box) Load(most TreeLimits, each func(f *File) error, names ...string) error {
	l := loader{b: b, left: most, most: most, each: each, seen: map[uint64]string{}}
	for _, name := range names {
		err := b.withDir("load", name, false, func(dir int, on string) error {
			var st unix.Stat_t
			if err := unix.Fstatat(dir, on, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				return err
			}
			if st.Mode&unix.S_IFMT != unix.S_IFDIR {
				return unix.ENOTDIR
			}
			return l.entry(dir, on, boxName(on), &st, most.Depth)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

type loader struct {
	b          *Box
	left, most TreeLimits
	each       func(f *File) error
	seen       map[uint64]string // files of several names, by inode
	buf        []byte
}

func (l *loader) entry(dir int, on, name string, st *unix.Stat_t, depth int) error {
	if l.left.Entries--; l.left.Entries < 0 {
		return fmt.Errorf("%w: more than %d files and directories", ErrTooBig, l.most.Entries)
	}
	if len(name) > l.most.Name {
		return fmt.Errorf("%w: a name of more than %d bytes", ErrTooBig, l.most.Name)
	}
	f := File{Entry: Entry{Name: name, Mode: fileMode(st.Mode), Links: uint64(st.Nlink)}, ModTime: time.Unix(st.Mtim.Unix())}
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFDIR && st.Nlink > 1 {
		if f.Same = l.seen[st.Ino]; f.Same == "" {
			l.seen[st.Ino] = name
		}
	}
	switch {
	case f.Same != "":
	case kind == unix.S_IFREG:
		if l.left.Bytes -= st.Size; l.left.Bytes < 0 {
			return fmt.Errorf("%w: more than %d bytes", ErrTooBig, l.most.Bytes)
		}
		f.Size = st.Size
		if err := l.read(dir, on, &f); err != nil {
			return err
		}
	case kind == unix.S_IFLNK:
		to := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(dir, on, to)
		if err != nil {
			return err
		}
		f.Link = string(to[:n])
	}
	if err := l.each(&f); err != nil || kind != unix.S_IFDIR {
		return err
	}
	return l.directory(dir, on, name, depth)
}

func (l *loader) read(dir int, on string, f *File) error {
	fd, done, err := l.b.openToRead(dir, on, unix.O_NONBLOCK|unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer done()
	if int64(cap(l.buf)) <= f.Size {
		l.buf = make([]byte, f.Size+f.Size/2+1<<12)
	}
	n := int64(0)
	for n <= f.Size {
		k, err := unix.Read(fd, l.buf[n:f.Size+1])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if k == 0 {
			break
		}
		n += int64(k)
	}
	if n != f.Size {
		return fmt.Errorf("it changed while it was read")
	}
	f.Data = l.buf[:n]
	return nil
}

func (l *loader) directory(dir int, on, name string, depth int) error {
	if depth == 0 {
		return fmt.Errorf("%w: more than %d directories inside one another", ErrTooBig, l.most.Depth)
	}
	fd, done, err := l.b.openToRead(dir, on, unix.O_DIRECTORY|unix.O_NOFOLLOW)
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
		if _, _, names = unix.ParseDirent(buf[:n], -1, names); len(names) > l.left.Entries {
			return fmt.Errorf("%w: more than %d files and directories", ErrTooBig, l.most.Entries)
		}
	}
	slices.Sort(names)
	for _, n := range names {
		var st unix.Stat_t
		if err := unix.Fstatat(fd, n, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		if err := l.entry(fd, n, name+"/"+n, &st, depth-1); err != nil {
			return err
		}
	}
	return nil
}

// Store makes the files, in order: directories before what they hold, and a file before another name of it. A regular file or directory that
// is there is overwritten or kept; anything else in the way is an error. Modes and times are set last, so that a directory that nobody may
// write is filled all the same.
//
// Errors: those of the file system, ENOSPC among them, as *fs.PathError; no command of the box may run meanwhile.
func (b *Box) Store(files []File) error {
	if len(files) == 0 {
		return nil
	}
	s := storer{parent: -1}
	defer s.close()
	return b.withDir("store", files[0].Name, true, func(dir int, _ string) error {
		s.root = dir
		for i := range files {
			if err := s.make(&files[i]); err != nil {
				return &fs.PathError{Op: "store", Path: fmt.Sprintf("%.120q", files[i].Name), Err: err}
			}
		}
		for i := len(files) - 1; i >= 0; i-- { // what a directory holds before it, since making that changes its time
			if files[i].Mode.IsRegular() {
				continue
			}
			if err := s.finish(&files[i]); err != nil {
				return &fs.PathError{Op: "store", Path: fmt.Sprintf("%.120q", files[i].Name), Err: err}
			}
		}
		return nil
	})
}

type storer struct {
	root   int
	parent int    // open directory
	at     string // its name below root
}

func (s *storer) close() {
	if s.parent >= 0 {
		unix.Close(s.parent)
	}
	s.parent = -1
}

// in opens the directory that holds a name. Files come in the order of their names, so that it is mostly the last one's.
func (s *storer) in(name string) (base string, err error) {
	on, err := onDisk(name)
	if err != nil {
		return "", err
	}
	at := path.Dir(on)
	if s.parent < 0 || s.at != at {
		s.close()
		if s.parent, err = openBeneath(s.root, at, unix.O_PATH|unix.O_DIRECTORY, 0); err != nil {
			return "", err
		}
		s.at = at
	}
	return path.Base(on), nil
}

func (s *storer) make(f *File) error {
	if f.Same != "" {
		on, err := onDisk(f.Same)
		if err != nil {
			return err
		}
		base, err := s.in(f.Name)
		if err == nil {
			err = unix.Linkat(s.root, on, s.parent, base, 0) // nothing runs in the box, so that the path is what it was made
		}
		return err
	}
	base, err := s.in(f.Name)
	if err != nil {
		return err
	}
	switch f.Mode.Type() {
	case fs.ModeDir:
		if err := unix.Mkdirat(s.parent, base, 0o700); err != unix.EEXIST {
			return err
		}
		var st unix.Stat_t
		if err := unix.Fstatat(s.parent, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return unix.ENOTDIR
		}
		return nil
	case fs.ModeSymlink:
		return unix.Symlinkat(f.Link, s.parent, base)
	case fs.ModeNamedPipe:
		return unix.Mkfifoat(s.parent, base, 0o600)
	case fs.ModeSocket:
		return unix.Mknodat(s.parent, base, unix.S_IFSOCK|0o600, 0)
	case 0:
		return s.write(base, f)
	}
	return unix.EINVAL
}

// write makes a regular file with all that it has: they are many.
func (s *storer) write(base string, f *File) error {
	mode := unixMode(f.Mode)
	fd, err := openBeneath(s.parent, base, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NONBLOCK|unix.O_NOFOLLOW, mode)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("%w: it is no regular file", unix.EINVAL)
	}
	for data := f.Data; len(data) > 0; {
		n, err := unix.Write(fd, data)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		data = data[n:]
	}
	if st.Mode&0o7777 != mode || mode&^0o777 != 0 { // the umask, a file that was there, or bits that writing has cleared
		if err := unix.Fchmod(fd, mode); err != nil {
			return err
		}
	}
	if f.ModTime.IsZero() {
		return nil
	}
	t := unix.NsecToTimespec(f.ModTime.UnixNano())
	times := [2]unix.Timespec{t, t}
	// utimensat(2) with no path is futimens(3): it spares the kernel another walk.
	_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// finish sets mode and time of all but regular files. What another file of the same tree has set already, under another name, is set again and no harm done.
func (s *storer) finish(f *File) error {
	base, err := s.in(f.Name)
	if err != nil {
		return err
	}
	if mode := unixMode(f.Mode); f.Mode.Type() != fs.ModeSymlink && f.Same == "" {
		var st unix.Stat_t
		if err := unix.Fstatat(s.parent, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		if st.Mode&0o7777 != mode { // the directories of the box itself are not the command's, and have their mode
			if err := unix.Fchmodat(s.parent, base, mode, 0); err != nil {
				return err
			}
		}
	}
	if f.ModTime.IsZero() || f.Same != "" {
		return nil
	}
	t := unix.NsecToTimespec(f.ModTime.UnixNano())
	err = unix.UtimesNanoAt(s.parent, base, []unix.Timespec{t, t}, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, os.ErrPermission) && strings.Count(f.Name, "/") < 3 && f.Mode.IsDir() {
		err = nil // one of the box's own directories
	}
	return err
}

func unixMode(m fs.FileMode) uint32 {
	mode := uint32(m.Perm())
	for _, bit := range []struct {
		is fs.FileMode
		to uint32
	}{{fs.ModeSetuid, unix.S_ISUID}, {fs.ModeSetgid, unix.S_ISGID}, {fs.ModeSticky, unix.S_ISVTX}} {
		if m&bit.is != 0 {
			mode |= bit.to
		}
	}
	return mode
}

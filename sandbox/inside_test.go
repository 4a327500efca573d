package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file is the attacker's side: the test program itself runs in the box as "attack NAME ARGS…". An attack that is to be
// refused exits 0 when everything was, and says what was not otherwise.

// inside is one run of an attack.
type inside struct {
	args  []string
	plain bool
}

func (in *inside) escaped(format string, args ...any) {
	fmt.Printf("ESCAPED: "+format+"\n", args...)
	os.Exit(3)
}

// refused wants an error; which ones are fine can be narrowed.
func (in *inside) refused(what string, err error, want ...error) {
	if err == nil {
		in.escaped("%s succeeded", what)
	}
	fmt.Printf("%s: %v\n", what, err)
	for _, w := range want {
		if errors.Is(err, w) {
			return
		}
	}
	if len(want) > 0 {
		in.escaped("%s gave %v, wanted one of %v", what, err, want)
	}
}

func (in *inside) done(what string, err error) {
	if err != nil {
		fmt.Printf("FAILED: %s: %v\n", what, err)
		os.Exit(4)
	}
}

func call(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return errno
	}
	return nil
}

func cstring(s string) uintptr { p, _ := unix.BytePtrFromString(s); return uintptr(unsafe.Pointer(p)) }

// fork is a bare fork: the child may do nothing but raw system calls.
func fork() (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	return pid, errno
}

func pause() {
	for {
		syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

func exitNow(code uintptr) { syscall.RawSyscall(unix.SYS_EXIT_GROUP, code, 0, 0) }

// touch makes n bytes of anonymous memory resident.
func touch(n, flags int) error {
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|flags)
	if err != nil {
		return err
	}
	for i := 0; i < n; i += 4096 {
		m[i] = 1
	}
	return nil
}

// bomb takes memory until it is stopped; a process that is refused more keeps what it has and waits.
func bomb(flags int) {
	for i := 0; ; i++ {
		if err := touch(8<<20, flags); err != nil {
			fmt.Println("refused after", i*8, "MiB:", err)
			time.Sleep(time.Hour)
		}
	}
}

// fill writes a file until it fails, and gives the bytes written.
func fill(name string) (int64, error) {
	f, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for total := int64(0); ; {
		n, err := f.Write(block)
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
}

var spins int

func spin() {
	for {
		spins++
	}
}

func forever() { time.Sleep(time.Hour) }

// insides are the attacks by name.
var insides = map[string]func(*inside){
	// processes
	"fork_bomb": func(*inside) {
		for {
			if _, errno := fork(); errno != 0 {
				syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			}
		}
	},
	"thread_bomb": func(*inside) {
		debug.SetMaxThreads(1 << 20)
		for {
			go func() { runtime.LockOSThread(); pause() }()
		}
	},
	"zombie_flood": func(in *inside) {
		n := 0
		for ; ; n++ {
			pid, errno := fork()
			if errno == 0 && pid == 0 {
				exitNow(0)
			}
			if errno != 0 {
				break
			}
			if n > 1000 {
				in.escaped("%d zombies", n)
			}
		}
		fmt.Println(n, "zombies")
	},
	"daemon_holds_stdout": func(*inside) {
		if pid, _ := fork(); pid == 0 {
			syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
			if pid, _ := fork(); pid == 0 {
				pause()
			}
			exitNow(0)
		}
		time.Sleep(20 * time.Millisecond)
		fmt.Println("main goes")
	},

	// time
	"sleep_forever": func(*inside) { forever() },
	"stop_self":     func(*inside) { syscall.Kill(os.Getpid(), syscall.SIGSTOP); forever() },
	"ignore_signals": func(*inside) {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGXCPU, syscall.SIGALRM)
		forever()
	},
	"closed_stdio": func(*inside) {
		for fd := range 3 {
			syscall.Close(fd)
		}
		forever()
	},
	"cpu_burn": func(*inside) { spin() },
	"cpu_burn_many": func(*inside) {
		for range 15 {
			if pid, _ := fork(); pid == 0 {
				spin()
			}
		}
		spin()
	},
	"sigxcpu_ignored": func(*inside) {
		signal.Ignore(syscall.SIGXCPU)
		spin()
	},

	// memory
	"memory_main": func(*inside) { bomb(unix.MAP_PRIVATE) },
	"memory_child": func(*inside) {
		pid, _ := fork()
		if pid == 0 {
			for {
				p, _, errno := syscall.RawSyscall6(unix.SYS_MMAP, 0, 8<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE, ^uintptr(0), 0)
				if errno != 0 {
					pause()
				}
				for i := uintptr(0); i < 8<<20; i += 4096 {
					*(*byte)(unsafe.Add(unsafe.Pointer(nil), p+i)) = 1
				}
			}
		}
		var status syscall.WaitStatus
		syscall.Wait4(int(pid), &status, 0, nil)
		os.Exit(1)
	},
	"memory_shared": func(*inside) { bomb(unix.MAP_SHARED) },
	"memory_many": func(*inside) { // each process stays below any limit of its own
		for range 12 {
			if pid, _ := fork(); pid == 0 {
				p, _, errno := syscall.RawSyscall6(unix.SYS_MMAP, 0, 24<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE, ^uintptr(0), 0)
				for i := uintptr(0); errno == 0 && i < 24<<20; i += 4096 {
					*(*byte)(unsafe.Add(unsafe.Pointer(nil), p+i)) = 1
				}
				pause()
			}
		}
		for {
			var status syscall.WaitStatus
			if pid, err := syscall.Wait4(-1, &status, 0, nil); err != nil || status.Signaled() {
				_ = pid
				os.Exit(1)
			}
		}
	},
	"memory_memfd": func(in *inside) {
		fd, err := unix.MemfdCreate("bomb", 0)
		if err != nil { // without a memory cgroup there is none
			in.refused("memfd_create", err, unix.EPERM)
			return
		}
		block := make([]byte, 1<<20)
		for {
			if _, err := unix.Write(fd, block); err != nil {
				fd, err = unix.MemfdCreate("bomb", 0)
				in.done("another memfd", err)
			}
		}
	},
	"pipe_buffers": func(in *inside) {
		for n := 0; ; n++ {
			var p [2]int
			if err := unix.Pipe2(p[:], unix.O_NONBLOCK); err != nil {
				in.refused(fmt.Sprintf("pipe %d", n), err, unix.EMFILE, unix.ENFILE)
				return
			}
			unix.FcntlInt(uintptr(p[1]), unix.F_SETPIPE_SZ, 1<<20)
			unix.Write(p[1], make([]byte, 1<<20))
		}
	},
	"socket_buffers": func(in *inside) {
		for n := 0; ; n++ {
			p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				in.refused(fmt.Sprintf("socket pair %d", n), err, unix.EMFILE, unix.ENFILE, unix.EPERM)
				return
			}
			unix.SetsockoptInt(p[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<30)
			for {
				if _, err := unix.Write(p[0], make([]byte, 64<<10)); err != nil {
					break
				}
			}
		}
	},
	"sysv_shm": func(in *inside) {
		for {
			id, _, errno := syscall.Syscall(unix.SYS_SHMGET, 0, 16<<20, 0o1600)
			if errno != 0 {
				in.refused("shmget", errno, unix.EPERM, unix.ENOSPC, unix.ENOMEM)
				return
			}
			p, _, errno := syscall.Syscall(unix.SYS_SHMAT, id, 0, 0)
			if errno != 0 {
				in.refused("shmat", errno)
				return
			}
			for i := uintptr(0); i < 16<<20; i += 4096 {
				*(*byte)(unsafe.Add(unsafe.Pointer(nil), p+i)) = 1
			}
			call(unix.SYS_SHMDT, p) // stays, though nobody maps it
		}
	},
	"disk_then_memory": func(*inside) {
		fill("fill")
		bomb(unix.MAP_PRIVATE)
	},
	"mlock": func(in *inside) {
		m, _ := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		in.refused("mlock", unix.Mlock(m), unix.EPERM, unix.ENOMEM)
		in.refused("mlockall", unix.Mlockall(unix.MCL_CURRENT), unix.EPERM, unix.ENOMEM)
	},

	// disk
	"disk_bytes": func(in *inside) {
		n, err := fill("fill")
		in.refused(fmt.Sprintf("byte %d", n), err, unix.ENOSPC, unix.EFBIG, unix.EDQUOT)
		_, err = fill("fill2")
		in.refused("second file", err, unix.ENOSPC, unix.EFBIG)
		os.Exit(1)
	},
	"disk_inodes": func(in *inside) {
		for i := 0; ; i++ {
			f, err := os.Create(fmt.Sprintf("f%d", i))
			if err != nil {
				in.refused(fmt.Sprintf("file %d", i), err, unix.ENOSPC)
				os.Exit(1)
			}
			f.Close()
			if i > 100_000 {
				in.escaped("%d files", i)
			}
		}
	},
	"disk_shm": func(in *inside) {
		_, err := fill("/dev/shm/fill")
		in.refused("fill /dev/shm", err, unix.ENOSPC, unix.EFBIG, unix.EACCES)
		_, err = fill("/tmp/fill")
		in.refused("fill /tmp", err, unix.ENOSPC, unix.EFBIG, unix.EACCES)
	},
	"disk_sparse": func(in *inside) {
		signal.Ignore(syscall.SIGXFSZ)
		f, err := os.Create("sparse")
		in.done("create", err)
		in.refused("truncate to 1 TiB", f.Truncate(1<<40), unix.EFBIG, unix.ENOSPC)
		in.refused("fallocate 1 TiB", unix.Fallocate(int(f.Fd()), 0, 0, 1<<40), unix.EFBIG, unix.ENOSPC, unix.EOPNOTSUPP)
	},
	"core_dump": func(*inside) {
		unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1 << 30, Max: 1 << 30})
		signal.Reset(syscall.SIGABRT)
		if pid, _ := fork(); pid == 0 {
			act := [4]uintptr{}
			syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(syscall.SIGABRT), uintptr(unsafe.Pointer(&act)), 0, 8, 0, 0)
			p, _, _ := syscall.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
			syscall.RawSyscall(unix.SYS_KILL, p, uintptr(syscall.SIGABRT), 0)
			exitNow(0)
		}
		var status syscall.WaitStatus
		syscall.Wait4(-1, &status, 0, nil)
		fmt.Println("child:", status.Signal(), "core", status.CoreDump())
	},

	// descriptors and objects
	"fd_exhaustion": func(in *inside) {
		for i := 0; ; i++ {
			if _, err := unix.Open("/dev/null", unix.O_RDONLY, 0); err != nil {
				in.refused(fmt.Sprintf("descriptor %d", i), err, unix.EMFILE)
				return
			}
			if i > 100_000 {
				in.escaped("%d descriptors", i)
			}
		}
	},
	"inotify": func(in *inside) {
		for i := 0; ; i++ {
			if _, err := unix.InotifyInit1(0); err != nil {
				in.refused(fmt.Sprintf("inotify %d", i), err, unix.EMFILE)
				return
			}
		}
	},
	"mqueue": func(in *inside) {
		name := cstring("queue")
		err := call(unix.SYS_MQ_OPEN, name, unix.O_CREAT|unix.O_RDWR, 0o600, 0)
		in.refused("mq_open", err, unix.EMFILE, unix.EPERM, unix.ENOSPC, unix.EACCES)
	},
	"inherited_fds": func(in *inside) {
		for fd := 3; fd < 1024; fd++ {
			target, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
			if strings.Contains(target, "anon_inode:[event") { // the Go runtime's own poller
				continue
			}
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && !in.plain {
				in.escaped("descriptor %d is open: %s", fd, target)
			}
		}
		_, err := unix.Write(33, []byte("x"))
		in.refused("write to descriptor 33", err, unix.EBADF)
	},
	"huge_argv": func(in *inside) {
		big := strings.Repeat("x", 128<<10)
		var argv []string
		for range 100 {
			argv = append(argv, big)
		}
		in.refused("execve with 12 MiB", unix.Exec("/proc/self/exe", argv, nil), unix.E2BIG, unix.ENOENT, unix.EACCES)
	},

	// the kernel's surface
	"ptrace": func(in *inside) {
		for _, request := range []uintptr{0 /* TRACEME */, 16 /* ATTACH */, 0x4206 /* SEIZE */} {
			in.refused(fmt.Sprint("ptrace ", request), call(unix.SYS_PTRACE, request, uintptr(os.Getppid()), 0, 0), unix.EPERM)
		}
	},
	"process_memory": func(in *inside) {
		iov := []unix.Iovec{{Base: new(byte), Len: 1}}
		p := uintptr(unsafe.Pointer(&iov[0]))
		for _, nr := range []uintptr{unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV} {
			in.refused(fmt.Sprint("call ", nr), call(nr, uintptr(os.Getppid()), p, 1, p, 1, 0), unix.EPERM)
		}
		in.refused("kcmp", call(unix.SYS_KCMP, 1, 1, 0, 0, 0), unix.EPERM)
		in.refused("pidfd_getfd", call(unix.SYS_PIDFD_GETFD, 0, 0, 0), unix.EPERM)
		in.refused("process_madvise", call(unix.SYS_PROCESS_MADVISE, 0, p, 1, 4, 0), unix.EPERM)
	},
	"io_uring": func(in *inside) {
		var params [128]byte
		in.refused("io_uring_setup", call(unix.SYS_IO_URING_SETUP, 8, uintptr(unsafe.Pointer(&params))), unix.EPERM)
	},
	"userfaultfd": func(in *inside) { in.refused("userfaultfd", call(unix.SYS_USERFAULTFD, 1), unix.EPERM) },
	"bpf":         func(in *inside) { in.refused("bpf", call(unix.SYS_BPF, 0, 0, 0), unix.EPERM) },
	"perf": func(in *inside) {
		in.refused("perf_event_open", call(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0), unix.EPERM)
	},
	"vmsplice": func(in *inside) { in.refused("vmsplice", call(unix.SYS_VMSPLICE, 1, 0, 0, 0), unix.EPERM) },
	"memfd_secret": func(in *inside) {
		in.refused("memfd_secret", call(unix.SYS_MEMFD_SECRET, 0), unix.EPERM)
	},
	"kexec": func(in *inside) {
		in.refused("kexec_load", call(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0), unix.EPERM)
		in.refused("kexec_file_load", call(unix.SYS_KEXEC_FILE_LOAD, 0, 0, 0, 0, 0), unix.EPERM)
	},
	"modules": func(in *inside) {
		in.refused("init_module", call(unix.SYS_INIT_MODULE, 0, 0, 0), unix.EPERM)
		in.refused("finit_module", call(unix.SYS_FINIT_MODULE, 0, 0, 0), unix.EPERM)
		in.refused("delete_module", call(unix.SYS_DELETE_MODULE, 0, 0), unix.EPERM)
	},
	"keys": func(in *inside) {
		in.refused("keyctl", call(unix.SYS_KEYCTL, 0, 0, 0, 0, 0), unix.EPERM)
		in.refused("add_key", call(unix.SYS_ADD_KEY, 0, 0, 0, 0, 0), unix.EPERM)
		in.refused("request_key", call(unix.SYS_REQUEST_KEY, 0, 0, 0, 0), unix.EPERM)
	},
	"personality": func(in *inside) {
		in.refused("personality(ADDR_NO_RANDOMIZE)", call(unix.SYS_PERSONALITY, 0x40000), unix.EPERM)
	},
	"file_handles": func(in *inside) {
		in.refused("open_by_handle_at", call(unix.SYS_OPEN_BY_HANDLE_AT, 0, 0, 0), unix.EPERM)
		in.refused("name_to_handle_at", call(unix.SYS_NAME_TO_HANDLE_AT, 0, 0, 0, 0, 0), unix.EPERM)
		in.refused("fanotify_init", call(unix.SYS_FANOTIFY_INIT, 0, 0), unix.EPERM)
	},
	"arch_calls": archCalls,
	"unknown_call": func(in *inside) {
		in.refused("call 999", call(999), unix.ENOSYS)
		in.refused("call 4000000", call(4000000), unix.ENOSYS)
	},

	// namespaces and mounts
	"mount": func(in *inside) {
		in.refused("mount", unix.Mount("x", "/tmp", "tmpfs", 0, ""), unix.EPERM)
		in.refused("remount", unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND, ""), unix.EPERM)
		in.refused("umount", unix.Unmount("/tmp", unix.MNT_DETACH), unix.EPERM)
	},
	"new_mount_api": func(in *inside) {
		in.refused("fsopen", call(unix.SYS_FSOPEN, cstring("tmpfs"), 0), unix.EPERM)
		in.refused("open_tree", call(unix.SYS_OPEN_TREE, ^uintptr(99), cstring("/"), 1), unix.EPERM)
		in.refused("move_mount", call(unix.SYS_MOVE_MOUNT, 0, 0, 0, 0, 0), unix.EPERM)
		in.refused("mount_setattr", call(unix.SYS_MOUNT_SETATTR, 0, cstring("/"), 0, 0, 0), unix.EPERM)
	},
	"pivot_chroot": func(in *inside) {
		in.refused("pivot_root", unix.PivotRoot(".", "."), unix.EPERM)
		in.refused("chroot", unix.Chroot("."), unix.EPERM)
	},
	"unshare": func(in *inside) {
		for _, flag := range []int{unix.CLONE_NEWUSER, unix.CLONE_NEWNS, unix.CLONE_NEWPID, unix.CLONE_NEWNET, unix.CLONE_FS} {
			in.refused(fmt.Sprintf("unshare %#x", flag), unix.Unshare(flag), unix.EPERM)
		}
		in.refused("setns", unix.Setns(0, 0), unix.EPERM)
	},
	"clone_namespaces": func(in *inside) {
		for _, flag := range []uintptr{unix.CLONE_NEWUSER, unix.CLONE_NEWUSER | unix.CLONE_NEWNS, unix.CLONE_NEWNET} {
			in.refused(fmt.Sprintf("clone %#x", flag), call(unix.SYS_CLONE, flag|uintptr(unix.SIGCHLD), 0, 0, 0, 0), unix.EPERM)
		}
		in.refused("clone3", call(unix.SYS_CLONE3, 0, 0), unix.ENOSYS)
	},

	// escape by path
	"proc_init": func(in *inside) {
		for _, f := range []string{"root", "environ", "mem", "fd", "exe", "cwd", "maps", "ns/user"} {
			p := "/proc/1/" + f
			_, err := os.Readlink(p)
			if err != nil {
				_, err = os.ReadFile(p)
			}
			in.refused(p, err)
		}
		in.refused("oom_score_adj of init", os.WriteFile("/proc/1/oom_score_adj", []byte("1000"), 0))
	},
	"proc_sys": func(in *inside) {
		for _, f := range []string{"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger", "/proc/kcore", "/proc/kallsyms", "/proc/keys"} {
			in.refused(f, os.WriteFile(f, []byte("x"), 0))
		}
		_, err := os.ReadFile("/proc/kcore")
		in.refused("read /proc/kcore", err)
	},
	"proc_others": func(in *inside) {
		list, _ := os.ReadDir("/proc")
		for _, d := range list {
			if pid, err := strconv.Atoi(d.Name()); err == nil && pid != os.Getpid() {
				in.escaped("process %d is visible", pid)
			}
		}
	},
	"host_files": func(in *inside) {
		for _, f := range append([]string{"/etc/shadow", "/etc/hostname", "/root", "/home", "/var/log", "/../../../etc/shadow", "/run", "/boot", "/sys/kernel"}, in.args...) {
			_, err := os.ReadDir(f)
			if errors.Is(err, unix.ENOTDIR) {
				_, err = os.ReadFile(f)
			}
			in.refused("read "+f, err)
		}
	},
	"write_read_only": func(in *inside) {
		for _, f := range []string{"/x", "/usr/x", "/usr/bin/x", "/etc/passwd", "/etc/x", "/dev/x", "/proc/x"} {
			in.refused("write "+f, os.WriteFile(f, []byte("x"), 0o600))
		}
		in.refused("chmod /usr", os.Chmod("/usr", 0o777))
		in.refused("remove /usr/bin/env", os.Remove("/usr/bin/env"))
	},
	"devices": func(in *inside) {
		for _, f := range []string{"/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/dev/tty", "/dev/ptmx", "/dev/fuse", "/dev/kvm", "/dev/net/tun"} {
			_, err := os.Open(f)
			in.refused("open "+f, err)
		}
		in.refused("mknod", unix.Mknod("node", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1))), unix.EPERM, unix.EACCES)
	},
	"setuid_programs": func(in *inside) {
		if err := os.WriteFile("suid", []byte("#!/bin/sh\n"), 0o700); err == nil {
			unix.Chmod("suid", 0o4755)
		}
		v, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
		if v != 1 {
			in.escaped("new privileges can be gained")
		}
		in.refused("setuid 0", unix.Setuid(0), unix.EPERM, unix.EINVAL)
		in.refused("setgroups", unix.Setgroups([]int{0}), unix.EPERM)
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		in.done("capget", unix.Capget(&head, &data[0]))
		if data[0].Permitted|data[1].Permitted|data[0].Effective|data[0].Inheritable != 0 {
			in.escaped("capabilities %v", data)
		}
		if !in.plain {
			var fs unix.Statfs_t
			in.done("statfs /usr", unix.Statfs("/usr", &fs))
			if fs.Flags&unix.ST_NOSUID == 0 || fs.Flags&unix.ST_RDONLY == 0 {
				in.escaped("/usr is mounted with flags %#x", fs.Flags)
			}
		}
	},
	"sys": func(in *inside) {
		_, err := os.ReadDir("/sys")
		in.refused("/sys", err)
		_, err = os.ReadDir("/sys/fs/cgroup")
		in.refused("/sys/fs/cgroup", err)
	},

	// contact with the host
	"loopback_of_host": func(in *inside) {
		_, err := net.DialTimeout("tcp", "127.0.0.1:"+in.args[0], time.Second)
		in.refused("dial the host's loopback", err)
		fmt.Println("port", in.args[0])
	},
	"outside_network": func(in *inside) {
		for _, network := range []string{"tcp", "udp"} {
			c, err := net.DialTimeout(network, "192.0.2.1:9", time.Second)
			if err == nil {
				_, err = c.Write([]byte("x"))
			}
			in.refused(network+" outside", err)
		}
	},
	"socket_families": func(in *inside) {
		for name, family := range map[string]int{"vsock": 40, "alg": 38, "packet": 17, "bluetooth": 31, "tipc": 30, "xdp": 44, "can": 29, "key": 15, "rds": 21} {
			_, err := unix.Socket(family, unix.SOCK_DGRAM, 0)
			in.refused(name, err, unix.EPERM)
		}
		_, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, 1)
		in.refused("raw inet", err, unix.EPERM, unix.EAFNOSUPPORT)
		_, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER)
		in.refused("netfilter netlink", err, unix.EPERM)
	},
	"unix_sockets_of_host": func(in *inside) {
		for _, name := range in.args { // an abstract one and one at a path
			_, err := net.DialTimeout("unix", name, time.Second)
			in.refused("dial "+name, err)
		}
	},
	"signal_others": func(in *inside) {
		if !in.plain {
			unix.Kill(1, unix.SIGKILL) // is not delivered to an init from inside
			unix.Kill(1, unix.SIGSTOP)
		}
		pid, _ := strconv.Atoi(in.args[0]) // the host process's
		in.refused("kill the host process", unix.Kill(pid, 0))
		in.refused("kill group", unix.Kill(-pid, 0))
	},
	"kill_everything": func(in *inside) {
		signal.Ignore(syscall.SIGTERM)
		fmt.Println(unix.Kill(-1, unix.SIGKILL))
		fmt.Println("still here")
	},
	"starve_init": func(in *inside) {
		other := 1
		if in.plain {
			other, _ = strconv.Atoi(in.args[0])
		}
		limit := unix.Rlimit{Cur: 0, Max: 0}
		in.refused("prlimit on init", unix.Prlimit(other, unix.RLIMIT_NOFILE, &limit, nil), unix.EPERM)
		in.refused("nice of init", unix.Setpriority(unix.PRIO_PROCESS, other, 19), unix.EPERM)
		in.refused("nice of the user", unix.Setpriority(unix.PRIO_USER, 0, 19), unix.EPERM)
		var set unix.CPUSet
		set.Set(0)
		in.refused("affinity of init", unix.SchedSetaffinity(other, &set), unix.EPERM)
		param := int32(0)
		in.refused("scheduler of init", call(unix.SYS_SCHED_SETSCHEDULER, uintptr(other), 5 /* IDLE */, uintptr(unsafe.Pointer(&param))), unix.EPERM)
		in.refused("ioprio of init", call(unix.SYS_IOPRIO_SET, 1, uintptr(other), 3<<13), unix.EPERM)
	},
	"terminal": func(in *inside) {
		c := byte('x')
		in.refused("TIOCSTI", call(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&c))), unix.EPERM)
		in.refused("TIOCLINUX", call(unix.SYS_IOCTL, 0, 0x541C, uintptr(unsafe.Pointer(&c))), unix.EPERM)
	},
	"host_settings": func(in *inside) {
		in.refused("sethostname", unix.Sethostname([]byte("owned")), unix.EPERM)
		in.refused("setdomainname", unix.Setdomainname([]byte("owned")), unix.EPERM)
		in.refused("reboot", unix.Reboot(0), unix.EPERM)
		in.refused("syslog", call(unix.SYS_SYSLOG, 2, 0, 0), unix.EPERM)
		in.refused("acct", unix.Acct("x"), unix.EPERM)
		in.refused("swapon", call(unix.SYS_SWAPON, cstring("/tmp/x"), 0), unix.EPERM)
	},
	"clocks": func(in *inside) {
		t := unix.Timespec{}
		in.refused("clock_settime", unix.ClockSettime(unix.CLOCK_REALTIME, &t), unix.EPERM)
		in.refused("settimeofday", unix.Settimeofday(&unix.Timeval{}), unix.EPERM)
		in.refused("adjtimex", call(unix.SYS_ADJTIMEX, uintptr(unsafe.Pointer(&unix.Timex{Modes: 1}))), unix.EPERM)
	},
	"environment": func(in *inside) {
		for _, v := range os.Environ() {
			if v != "ONLY=this" {
				in.escaped("variable %s", v)
			}
		}
		data, err := os.ReadFile("/proc/self/cgroup")
		if err == nil && bytes.Contains(data, []byte("provegym")) {
			in.escaped("cgroup path of the host: %s", data)
		}
	},

	// output
	"output_one":  func(*inside) { flood(1) },
	"output_both": func(*inside) { go flood(2); flood(1) },
	"output_pipe_size": func(in *inside) {
		_, err := unix.FcntlInt(1, unix.F_SETPIPE_SZ, 1<<30)
		in.refused("pipe of 1 GiB", err, unix.EPERM)
		flood(1)
	},
	"output_nonblocking": func(*inside) {
		unix.SetNonblock(1, true)
		var failed atomic.Int64
		block := make([]byte, 1<<20)
		for range 3 {
			if _, err := unix.Write(1, block); err != nil {
				failed.Add(1)
			}
		}
	},

	// what the host will read
	"hostile_files": func(in *inside) {
		os.Symlink("/etc/shadow", "link")
		os.Symlink("../../../../../../etc", "dirlink")
		os.Symlink("/proc/self/fd/0", "magic")
		unix.Mkfifo("fifo", 0o666)
		in.done("socket", unix.Mknod("socket", unix.S_IFSOCK|0o666, 0))
		os.WriteFile("plain", []byte("plain"), 0o600)
		os.Link("plain", "hard")
		os.WriteFile("odd\n\x1b[31m\xff name", []byte("odd"), 0o600)
		os.WriteFile("unreadable", []byte("secret"), 0)
		os.Mkdir("locked", 0o700)
		os.WriteFile("locked/in", []byte("in"), 0o600)
		os.Chmod("locked", 0)
		f, _ := os.Create("big")
		f.Truncate(8 << 20)
		os.WriteFile("suid", nil, 0o600)
		unix.Chmod("suid", 0o6755)
		os.Mkdir("deep", 0o755)
		for range 200 {
			os.Chdir("deep")
			os.Mkdir("deep", 0o755)
		}
		os.WriteFile("bottom", nil, 0o600)
	},
	"survey": func(in *inside) { // of another box: what can be found of it
		in.refused("abstract socket of the other box", func() error { _, err := net.Dial("unix", "@provegym-other-box"); return err }())
		id, _, errno := syscall.Syscall(unix.SYS_SHMGET, 4242, 4096, 0)
		if errno == 0 {
			in.escaped("shared memory %d of the other box", id)
		}
		for _, f := range []string{"/work/secret", "/tmp/secret", "/dev/shm/secret"} {
			_, err := os.ReadFile(f)
			in.refused(f, err)
		}
		list, _ := os.ReadDir("/proc")
		for _, d := range list {
			if pid, err := strconv.Atoi(d.Name()); err == nil && pid != os.Getpid() {
				in.escaped("process %d of the other box", pid)
			}
		}
	},
	"surveyed": func(in *inside) {
		if _, err := net.Listen("unix", "@provegym-other-box"); err != nil && !in.plain {
			in.done("listen", err)
		}
		syscall.Syscall(unix.SYS_SHMGET, 4242, 4096, 0o1777)
		for _, f := range []string{"/work/secret", "/tmp/secret", "/dev/shm/secret"} {
			os.WriteFile(f, []byte("secret"), 0o666)
		}
		os.WriteFile("up", nil, 0o600)
		forever()
	},
	"true": func(*inside) {},
}

func flood(fd int) {
	block := bytes.Repeat([]byte("flood "), 4096)
	for {
		unix.Write(fd, block)
	}
}

// runInside is main of the attacker.
func runInside(args []string) {
	name := args[0]
	in := &inside{args: args[1:]}
	if len(in.args) > 0 && in.args[0] == "-plain" {
		in.plain, in.args = true, in.args[1:]
	}
	f, ok := insides[name]
	if !ok {
		fmt.Printf("no attack %q\n", name)
		os.Exit(5)
	}
	f(in)
	os.Exit(0)
}

package sandbox

import (
	"slices"

	"golang.org/x/sys/unix"
)

// A seccomp filter is looked up as a binary search tree over the call's number: setting one up costs the kernel an emulation
// for every number, and a linear list of 77 rules took three times as long.
//
// The base filter binds zygote, init and command: what none of them needs. The command filter binds commands alone: what init
// needs and they must not have.

const (
	retAllow = unix.SECCOMP_RET_ALLOW
	retErrno = unix.SECCOMP_RET_ERRNO
	denied   = retErrno | uint32(unix.EPERM)
	noSuch   = retErrno | uint32(unix.ENOSYS)
	newestNr = 469 // file_setattr, Linux 6.17; what is newer was never looked at, and gets ENOSYS
	dataNr   = 0   // offsets in struct seccomp_data
	dataArch = 4
	dataArg0 = 16
)

type insn = unix.SockFilter

func load(at uint32) insn { return insn{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at} }
func ret(v uint32) insn   { return insn{Code: unix.BPF_RET | unix.BPF_K, K: v} }
func jump(op uint16, k uint32, jt, jf uint8) insn {
	return insn{Code: unix.BPF_JMP | op | unix.BPF_K, Jt: jt, Jf: jf, K: k}
}

func argLow(i uint32) insn { return load(dataArg0 + 8*i) } // both architectures are little-endian

// Rules for one call: instructions that end in a return.
var (
	allow  = []insn{ret(retAllow)}
	deny   = []insn{ret(denied)}
	absent = []insn{ret(noSuch)}
)

// onlyIf allows the call if the low word of argument i is one of values.
func onlyIf(i uint32, values ...uint32) []insn {
	rule := []insn{argLow(i)}
	for _, v := range values {
		rule = append(rule, jump(unix.BPF_JEQ, v, 0, 1), ret(retAllow))
	}
	return append(rule, ret(denied))
}

// unless denies the call if the low word of argument i is one of values.
func unless(i uint32, values ...uint32) []insn {
	rule := []insn{argLow(i)}
	for _, v := range values {
		rule = append(rule, jump(unix.BPF_JEQ, v, 0, 1), ret(denied))
	}
	return append(rule, ret(retAllow))
}

// withoutBits denies the call if argument i has any of bits.
func withoutBits(i, bits uint32) []insn {
	return []insn{argLow(i), jump(unix.BPF_JSET, bits, 0, 1), ret(denied), ret(retAllow)}
}

// socketRule allows unix sockets, netlink for routing only, and with loopback inet ones. Without it those are said to be
// unsupported, which programs take more calmly than a refusal.
func socketRule(loopback bool) []insn {
	inet := retErrno | uint32(unix.EAFNOSUPPORT)
	if loopback {
		inet = retAllow
	}
	rule := []insn{argLow(0), jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 1), ret(retAllow)}
	for _, f := range []uint32{unix.AF_INET, unix.AF_INET6} {
		rule = append(rule, jump(unix.BPF_JEQ, f, 0, 1), ret(inet))
	}
	return append(rule, jump(unix.BPF_JEQ, unix.AF_NETLINK, 0, 3), argLow(2), jump(unix.BPF_JEQ, unix.NETLINK_ROUTE, 0, 1), ret(retAllow), ret(denied))
}

const namespaceBits = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

func setRules(rules map[uint32][]insn, rule []insn, calls ...uint32) {
	for _, nr := range calls {
		rules[nr] = rule
	}
}

// baseFilter is inherited from the zygote.
func baseFilter() []insn {
	rules := map[uint32][]insn{}
	setRules(rules, deny,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_MADVISE,
		unix.SYS_PROCESS_MRELEASE, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_USERFAULTFD,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_VMSPLICE, unix.SYS_MEMFD_SECRET, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME,
		unix.SYS_ADJTIMEX, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG, unix.SYS_OPEN_BY_HANDLE_AT,
		unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
		unix.SYS_MBIND, unix.SYS_SET_MEMPOLICY, unix.SYS_SET_MEMPOLICY_HOME_NODE, unix.SYS_VHANGUP, unix.SYS_NFSSERVCTL,
		unix.SYS_LOOKUP_DCOOKIE, unix.SYS_REMAP_FILE_PAGES, unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT, unix.SYS_IOPRIO_SET)
	setRules(rules, deny, archDenied...)
	setRules(rules, onlyIf(0, 0xffffffff), unix.SYS_PERSONALITY) // asking is fine
	return assemble(rules)
}

// commandFilter is installed just before execve. Without a memory cgroup nobody sees the pages of a memfd; without namespaces
// there are no sockets but pairs, no System V objects and no message queues; without loopback there are no inet sockets.
func commandFilter(memoryCgroup, namespaces, loopback bool) []insn {
	rules := map[uint32][]insn{}
	setRules(rules, deny,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT,
		unix.SYS_FSPICK, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_MOUNT_SETATTR, 467 /* open_tree_attr */, unix.SYS_UNSHARE, unix.SYS_SETNS,
		unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME)
	setRules(rules, absent, unix.SYS_CLONE3) // its flags cannot be looked at; libraries fall back to clone
	setRules(rules, withoutBits(0, namespaceBits), unix.SYS_CLONE)
	self := onlyIf(0, 0)
	setRules(rules, self, unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR)
	// Of a process or group, and that its own: init has the same user.
	setRules(rules, append([]insn{argLow(0), jump(unix.BPF_JEQ, unix.PRIO_USER, 0, 1), ret(denied)}, onlyIf(1, 0)...), unix.SYS_SETPRIORITY)
	setRules(rules, unless(1, unix.TIOCSTI, 0x541C /* TIOCLINUX */), unix.SYS_IOCTL)
	if namespaces {
		setRules(rules, socketRule(loopback), unix.SYS_SOCKET)
	} else { // landlock does not keep a command from sockets at paths that its user may connect to: an agent's, a container engine's
		setRules(rules, deny, unix.SYS_SOCKET)
	}
	if !memoryCgroup {
		setRules(rules, deny, unix.SYS_MEMFD_CREATE)
	}
	if !namespaces {
		setRules(rules, deny, unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP,
			unix.SYS_SEMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK)
	}
	return assemble(rules)
}

// assemble makes a filter of rules by number; calls without a rule are allowed up to newestNr. A call by another architecture's
// convention (i386, x32) does not exist.
func assemble(rules map[uint32][]insn) []insn {
	program := []insn{load(dataArch), jump(unix.BPF_JEQ, auditArch, 1, 0), ret(noSuch), load(dataNr)}
	var ranges []span // each holds up to the next one's first
	next := uint32(0)
	for _, nr := range sortedKeys(rules) {
		if nr > next {
			ranges = append(ranges, span{next, allow})
		}
		ranges = append(ranges, span{nr, rules[nr]})
		next = nr + 1
	}
	if next <= newestNr {
		ranges = append(ranges, span{next, allow})
		next = newestNr + 1
	}
	ranges = append(ranges, span{next, absent})
	return append(program, tree(merge(ranges))...)
}

type span struct {
	first uint32
	rule  []insn
}

// merge joins neighbours with the same rule.
func merge(list []span) []span {
	return slices.CompactFunc(list, func(a, b span) bool { return slices.Equal(a.rule, b.rule) })
}

func tree(list []span) []insn {
	if len(list) == 1 {
		return list[0].rule
	}
	half := len(list) / 2
	left, right := tree(list[:half]), tree(list[half:])
	at := list[half].first
	var node []insn
	if len(left) <= 255 {
		node = []insn{jump(unix.BPF_JGE, at, uint8(len(left)), 0)}
	} else { // a conditional jump reaches 255 instructions
		node = []insn{jump(unix.BPF_JGE, at, 0, 1), {Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(left))}}
	}
	return append(append(node, left...), right...)
}

func sortedKeys[V any](m map[uint32]V) []uint32 {
	keys := make([]uint32, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

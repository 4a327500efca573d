// Package sandbox runs an untrusted command in a fresh, isolated box on this machine, with limits on time, memory, processes,
// disk and output. It needs no daemon, no setuid program and no container engine, and it knows nothing of the gym.
//
//	sb, err := sandbox.Open(sandbox.Options{}) // once a process: finds out what this host can enforce
//	box, err := sb.NewBox(sandbox.Spec{MemoryBytes: 128 << 20, PidsMax: 16})
//	err = box.WriteFile("/work/data.txt", data, 0o644)
//	end, err := box.Exec(ctx, sandbox.Command{Argv: []string{"wc", "-l", "data.txt"}})
//	fmt.Println(end.Reason, end.ExitCode, string(end.Stdout))
//	text, err := box.ReadFile("/work/result.txt", 1<<20)
//	err = box.Close() // whatever still runs in it dies
//
// # Words
//
//	box        namespaces, a file system and limits that one episode has to itself; commands run in it one after another
//	command    one program with its descendants; its end is the death of all of them
//	init       process 1 of a box, ours: it holds the time limit, reaps and reports
//	zygote     the process that clones inits; one a Sandbox, itself in namespaces of its own
//	helper     the program that zygote and init are: static, without a C library, embedded in this package
//	level      which rung of the ladder of privileges this host allows
//	guarantee  one thing that a box promises; enforced, polled, per-process or none on this host
//
// # Threat model
//
// The command is hostile: it may be any program, may know this source, and may try to reach the host's files, processes,
// network or kernel, to outlive its end, to exhaust memory, processes, disk, descriptors or time, to flood its output, to
// stop or kill its init, to see another box, and to trick the host's reading of its files (links, devices, fifos, names).
// Host and zygote are trusted, and so are the directories shown read-only. A box gets:
//
//   - its own user, PID, mount, network, IPC, UTS and cgroup namespaces; uid 1000 and no capability, no way to gain one. The
//     network namespace of a box without loopback may have been an earlier box's: with no device up and no inet socket ever
//     made in it, it holds nothing (RATIONALE.md);
//   - a root of read-only directories (Options.ReadOnlyDirs), five harmless devices, a /proc of its own processes only, and one
//     small file system in memory seen at /work, /tmp and /dev/shm, which is all that can be written;
//   - no network, not even loopback unless asked for; sockets of the families unix and routing netlink only, and with loopback
//     inet and inet6;
//   - no descriptor but 0, 1 and 2, and the environment that it is given;
//   - two seccomp filters: what no program here needs (ptrace, bpf, io_uring, keys, modules, clocks, …) and what only our own
//     init may do (mounts, namespaces, other processes' limits and scheduling);
//   - limits that hold while the host is stopped, since init keeps the time itself.
//
// Files go in and out by descriptor only: openat2 below the box's own root, no links followed, nothing but regular files read.
//
// # Not defended
//
// Faults of the kernel or the processor, and side channels (timing, caches, memory pressure). Bandwidth of disk, memory and
// caches is shared. Programs in the read-only directories are visible and may be read: keep secrets out of them. What a
// command prints or writes is its claim, never a fact. A warm interpreter shares address layout and hash seed with its
// siblings. Where a guarantee is not "enforced", Capabilities says what is left of it; Options.Require turns that into an error.
//
// # Host needs
//
// Linux 5.12 or newer (mount_setattr), x86-64 or aarch64. The ladder, found at Open by running a canary in a box:
//
//	full        root with cgroups (v1, v2 or both): everything is enforced
//	delegated   a user with a v2 cgroup of its own (systemd-run --user --scope -p Delegate=yes …): likewise
//	namespaces  a user who may create user namespaces: memory is polled every 20 ms, CPU time too
//	plain       none of it (Docker's default profile): landlock, seccomp and limits; see Capabilities for the gaps
//
// make test tries what its machine gives, as root and as a plain user, and also without user namespaces and with a masked /proc.
// make test-sandbox-v2 boots a user-mode Linux 6.1 with cgroups of version 2 alone (sandbox/emulated) and runs the same tests there,
// attacks and all: as root, and as a user with a delegated cgroup, alone in it or beside a shell, with and without the controller
// cpu, with and without Options.CgroupBase. That kernel has no landlock and one processor; a real systemd has not been tried.
//
// # Cost
//
// A box is cloned without copying a page: its init shares the zygote's address space. Creating one and running a command costs
// about 1.5 times a bare fork and exec, and does not grow with the size of the host process (make bench-sandbox).
//
// # Reading order
//
// spec, validate, result, sandbox, box, files, pool, warm; below them level (the ladder), root, seccomp, cgroup, landlock,
// zygote, wire; then zygote/c/wire.h and zygote/c/zygote.c.
package sandbox

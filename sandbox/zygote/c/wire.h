// The protocol between Go and the helper. Every message is one SOCK_SEQPACKET datagram in the machine's byte order that begins
// with its kind; descriptors ride along (SCM_RIGHTS). wire.go has the same numbers, and a test compares the two.
//
//	Go                        helper                zygote (pid 1)            init of a box (pid 1 in the box)
//	 | START + trees  ---------> |
//	 |                           | clone, id maps ----> |
//	 | <---- STARTED + pidfd     |  (exits)             |
//	 | <------------------------------------- READY     | own root, filters
//	 |
//	 | CREATE + socket of the box -------------------> | clone(VM, NEW*) ----------> |
//	 | <-------------------------------------------------- READY + /box, pidfd      | id maps, mounts
//	 | EXEC + stdin, stdout, stderr, … ------------------------------------------> | vfork, execve
//	 | GO (only after EXEC with HOLD), KILL --------------------------------------> |
//	 | <------------------------------------------------------------------ RESULT  | all others dead and reaped
//
// FAILED may come instead of STARTED, READY and RESULT. The end of a socket kills what listens at it: the zygote with every
// box, or one box.
#pragma once
#include "sys.h"

#define WIRE_VERSION 1
#define MESSAGE_MAX (128 * 1024) // bytes of one message, both ways

enum kind { START = 1, STARTED, READY, CREATE, EXEC, GO, KILL, RESULT, FAILED };

// Where something failed. The order is that of steps.go.
enum step {
  STEP_NONE,
  STEP_PROTOCOL,
  STEP_CLONE_ZYGOTE,
  STEP_ID_MAP,
  STEP_IDS,
  STEP_ROOT,   // mounting the root file system; detail is the number of the operation
  STEP_PIVOT,
  STEP_FILTER,
  STEP_SLOTS,  // every slot is in use
  STEP_CLONE_BOX,
  STEP_BOX_ID_MAP,
  STEP_BOX_DISK,
  STEP_BOX_PROC,
  STEP_BOX_NET,
  STEP_BOX_READY,
  STEP_CLONE_COMMAND,
  STEP_CGROUP,
  STEP_FDS,
  STEP_LIMITS,
  STEP_DIR,
  STEP_DROP,
  STEP_EXEC,
  STEP_WARM,
};

struct failed {
  u32 kind, step, err, detail;
};

enum start_flags {
  START_SLOTS = 1,    // ids 0..ids-1 of the zygote are those from first_uid of the host, and every box gets its own
  START_PLAIN = 2,    // no namespaces at all
  START_WARM = 4,     // after READY the zygote executes argv (an interpreter that loads the helper as a library)
};

// struct start is followed by ops_bytes of operations, then the base filter, the command filter, and that of boxes with
// loopback (8 bytes an instruction).
struct start {
  u32 kind, version, flags;
  u32 uid, gid;             // of the host process, or the first of the range
  u32 ids;                  // length of the range
  u32 boxes;                // most boxes at a time
  u32 ops, ops_bytes;
  u32 base_insns, command_insns, loopback_insns;
  u32 host_pid, reserved;
  u64 zygote_ns, box_ns;    // CLONE_NEW*
};

enum op_kind { OP_DIR = 1, OP_LINK, OP_FILE, OP_BIND, OP_TREE, OP_CGROUP_DIR, OP_ARG, OP_ENV };

// struct op is followed by a and b, each with its NUL, padded together to 8 bytes. Paths are relative to the new root.
//	DIR    a path, arg mode            LINK  a target, b path          FILE  a path, b content, arg mode
//	BIND   a source, b path, arg MOUNT_ATTR_*                          TREE  b path, arg number of the descriptor
//	CGROUP_DIR  arg number of a descriptor; its children "box-*" are removed when the zygote is told to end
//	ARG, ENV    a the next argument, the next variable of the warm interpreter
struct op {
  u32 kind, arg, len_a, len_b;
};

struct started {
  u32 kind, pid;
};

struct ready {
  u32 kind;
  u32 id;      // of a box: its id in the zygote's range
  u32 flags;   // of the zygote and of a box: READY_*
};
enum ready_flags { READY_NO_PROC = 1 };

enum create_flags {
  CREATE_LOOPBACK = 1, // a fresh network namespace with loopback up, and commands may make inet sockets
};

struct create {
  u32 kind, flags;
  u32 uid, reserved;            // of the commands, without namespaces only; 0: the host's
  u64 disk_bytes, disk_files;   // with namespaces; without, a second descriptor is the box's directory
};

enum exec_flags {
  EXEC_HOLD = 1,         // start, but count the time limit from GO
  EXEC_PROGRAM = 2,      // the next descriptor is the program; argv[0] is only its name
  EXEC_LANDLOCK = 4,     // the next descriptor is a landlock ruleset
  EXEC_INTO_CGROUP = 8,  // the next descriptor is a v2 cgroup to be born in; if that fails, the cgroup.procs files are used
  EXEC_CPU_FILE = 16,    // the next descriptor is cpuacct.usage or cpu.stat
  EXEC_POLL_MEMORY = 32, // sum up memory every tick
};

// struct exec is followed by argc + envc strings, then the working directory, then the search path, each with its NUL.
// Descriptors: stdin, stdout, stderr, those that flags name in order, then `cgroups` cgroup.procs files.
struct exec {
  u32 kind, flags, cgroups;
  u32 argc, envc, strings; // strings: bytes of all of them
  u64 wall_ns;             // 0 none (warm and held)
  u64 cpu_ns;              // of the whole box, as read from the CPU file or /proc; 0: not watched
  u64 memory_bytes;        // watched with EXEC_POLL_MEMORY
  u64 data_bytes, file_bytes, cpu_seconds, processes, open_files;
};

struct kill {
  u32 kind, reason; // the reason comes back in the result
};

enum cause {
  CAUSE_ENDED,       // by itself: status tells how
  CAUSE_WALL,
  CAUSE_CPU,
  CAUSE_MEMORY,
  CAUSE_KILLED,      // by KILL: reason tells why
  CAUSE_EXEC_FAILED, // step and err tell
};

struct result {
  u32 kind, cause, status, reason, step, err;
  u64 wall_ns, user_us, system_us, max_rss_kib;
  u64 disk_bytes, disk_free_bytes, disk_files, disk_free_files;
  u64 memory_peak; // as polled
};

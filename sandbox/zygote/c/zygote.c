// The sandbox's helper: what must run between clone and exec, where Go cannot. No C library, no allocation after the start, no
// policy: mounts, filters and limits come from Go as data (wire.h).
//
// One idea carries the speed. The zygote is a tiny process that clones the init of each box with CLONE_VM: init has its own
// namespaces, descriptors and signals but the zygote's address space, so no page is copied. It runs on the stack of its slot and
// touches nothing else that is shared. Commands come by vfork from init, likewise without a copy.
//
// Compiled with -DWARM it is a library instead, loaded by an interpreter that has done its imports: warm_serve is the zygote's
// loop, and a command is a fork that returns from warm_serve into the interpreter.
#include "wire.h"
#include <asm/errno.h>
#include <asm/ioctls.h>
#include <asm/poll.h>
#include <asm/resource.h>
#include <asm/signal.h>
#include <asm/stat.h>
#include <linux/capability.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <linux/wait.h>

// Go looks for this, to see that the program was built from the sources beside it.
__attribute__((used)) static const char source_hash[] = "provegym-helper:" SOURCE_HASH;

#define NULL ((void *)0)
#define MNT_DETACH 2
#define AT_EMPTY_PATH 0x1000
#define AT_REMOVEDIR 0x200
#define SOCK_CLOEXEC O_CLOEXEC
#define SCM_RIGHTS 1
#define SOL_SOCKET 1
#define MSG_NOSIGNAL 0x4000
#define MSG_CMSG_CLOEXEC 0x40000000
#define MSG_CTRUNC 8
#define MSG_TRUNC 0x20
#define SIGSET_BYTES 8
#define SHM_INFO 14
#define CLOCK_MONOTONIC 1
#define RUSAGE_CHILDREN -1
#define FDS_MAX 64
#define TICK_NS 20000000ull // between two looks at memory and CPU time

struct iov { void *base; word len; };
struct msghdr_ { void *name; i32 namelen; struct iov *iov; word iovlen; void *control; word controllen; u32 flags; };
struct cmsg { word len; i32 level, type; i32 fd[FDS_MAX]; };
struct pollfd_ { i32 fd; short events, revents; };
struct timespec_ { i64 s, ns; };
struct sigaction_ { void *handler; word flags; void *restorer; u64 mask; };
struct timeval_ { i64 s, us; };
struct rusage_ { struct timeval_ user, system; i64 maxrss, rest[13]; };
struct statfs_ { i64 type, bsize; u64 blocks, bfree, bavail, files, ffree; i32 fsid[2]; i64 namelen, frsize, flags, spare[4]; };
struct rlimit_ { u64 soft, hard; };
struct shm_info_ { i32 used_ids; word shm_tot, shm_rss, shm_swp, attempts, successes; };

struct child_status { // written by the command before execve; in memory that is shared after a real fork, too
  u32 step, err;
};

// A slot is what one box uses of the shared address space.
struct slot {
  i32 tid; // of init; the kernel clears it when init has left the address space
  u32 id;
  i32 sock, dir;
  i32 net;          // the slot's network namespace, 0: none yet
  volatile i32 clean; // init has seen everything in it die
  struct child_status *status;
  struct create create;
  u8 stack[24 * 1024] __attribute__((aligned(16)));
  u8 child_stack[16 * 1024] __attribute__((aligned(16)));
  u8 message[MESSAGE_MAX] __attribute__((aligned(16)));
};

// Written before the first box, read-only after.
static struct start start;
static struct slot *slots;
static struct child_status *statuses;
static i32 ctl, old_proc = -1, no_proc;
static struct sock_fprog command_filter[2]; // without and with loopback
static i32 cgroup_dirs[8], n_cgroup_dirs;
#ifndef WARM
static struct sock_fprog base_filter;
static char *argv[66], *envp[34];
static i32 n_argv, n_envp;
#else
static struct frame home;
static void *tid_address;
#endif

static word length(const char *s) {
  word n = 0;
  while (s[n]) n++;
  return n;
}

static char *put(char *at, const char *s) {
  while (*s) *at++ = *s++;
  *at = 0;
  return at;
}

static char *put_number(char *at, u64 n) {
  char digits[20];
  int i = 0;
  do digits[i++] = (char)('0' + n % 10);
  while (n /= 10);
  while (i) *at++ = digits[--i];
  *at = 0;
  return at;
}

static u64 now(void) {
  struct timespec_ t;
  sys(clock_gettime, CLOCK_MONOTONIC, &t);
  return (u64)t.s * 1000000000u + (u64)t.ns;
}

// ---- messages

static long send_fds(int sock, const void *message, word len, const i32 *fds, int n) {
  struct iov iov = {(void *)message, len};
  struct cmsg c;
  struct msghdr_ m = {NULL, 0, &iov, 1, NULL, 0, 0};
  if (n) {
    c.len = 16 + 4 * (word)n;
    c.level = SOL_SOCKET;
    c.type = SCM_RIGHTS;
    for (int i = 0; i < n; i++) c.fd[i] = fds[i];
    m.control = &c;
    m.controllen = (16 + 4 * (word)n + 7) & ~7ul;
  }
  long r;
  do r = sys(sendmsg, sock, &m, MSG_NOSIGNAL);
  while (r == -EINTR);
  return r;
}

// receive gives the length of one message, 0 at the end of the socket; descriptors are close-on-exec. A message that was cut is
// an error: it cannot be from our Go side.
static long receive(int sock, void *message, word len, i32 *fds, int *n) {
  struct iov iov = {message, len};
  struct cmsg c;
  struct msghdr_ m = {NULL, 0, &iov, 1, &c, sizeof c, 0};
  long r;
  do r = sys(recvmsg, sock, &m, MSG_CMSG_CLOEXEC);
  while (r == -EINTR);
  *n = 0;
  if (r < 0) return r;
  if (m.controllen >= 16 && c.level == SOL_SOCKET && c.type == SCM_RIGHTS) {
    *n = (int)((c.len - 16) / 4);
    for (int i = 0; i < *n; i++) fds[i] = c.fd[i];
  }
  if (m.flags & (MSG_TRUNC | MSG_CTRUNC)) return -EMSGSIZE;
  return r;
}

static void fail(int sock, u32 step, long err, u32 detail) {
  struct failed f = {FAILED, step, (u32)-err, detail};
  send_fds(sock, &f, sizeof f, NULL, 0);
}

static void __attribute__((noreturn)) quit(int status) {
  for (;;) sys(exit_group, status);
}

static long write_file(int dir, const char *path, const char *text) {
  long fd = sys(openat, dir, path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return fd;
  long r = sys(write, fd, text, length(text));
  sys(close, fd);
  return r < 0 ? r : 0;
}

static void keep_only(int first_closed) { sys(close_range, first_closed, ~0u, 0); }

#ifndef WARM
static void default_signals(void) {
  struct sigaction_ dfl = {NULL, 0, NULL, 0};
  u64 none = 0;
  for (int s = 1; s <= 64; s++)
    if (s != SIGKILL && s != SIGSTOP) sys(rt_sigaction, s, &dfl, NULL, SIGSET_BYTES);
  sys(rt_sigprocmask, SIG_SETMASK, &none, NULL, SIGSET_BYTES);
}
#endif

static long drop_capabilities(void) {
  struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
  sys(prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  return sys(capset, &head, none);
}

static long restrict_calls(const struct sock_fprog *filter) {
  if (!filter->len) return 0;
  return sys(seccomp, SECCOMP_SET_MODE_FILTER, 0, filter);
}

static long own_copy_of_limit(int which, u64 soft, u64 hard) {
  struct rlimit_ l = {soft, hard};
  long r = sys(prlimit64, 0, which, &l, NULL);
  if (r == -EPERM) { // the hard limit that we were given is lower already
    struct rlimit_ have;
    r = sys(prlimit64, 0, which, NULL, &have);
    if (r) return r;
    l.hard = have.hard < hard ? have.hard : hard;
    l.soft = soft < l.hard ? soft : l.hard;
    r = sys(prlimit64, 0, which, &l, NULL);
  }
  return r;
}

// ---- a box

struct poll_state {
  u64 memory_peak, cpu_base;
  i32 cpu_file;
};

static u64 parse_number(const char *p) {
  while (*p && (*p < '0' || *p > '9')) p++;
  u64 n = 0;
  while (*p >= '0' && *p <= '9') n = n * 10 + (u64)(*p++ - '0');
  return n;
}

static const char *find(const char *text, const char *word_) {
  word n = length(word_);
  for (; *text; text++)
    if (!memcmp(text, word_, n)) return text + n;
  return NULL;
}

// read_at reads a small file into at (a NUL follows) and gives its length.
static long read_at(int dir, const char *path, char *at, word most) {
  long fd = sys(openat, dir, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fd;
  long n = sys(read, fd, at, most - 1);
  sys(close, fd);
  at[n < 0 ? 0 : n] = 0;
  return n;
}

// cpu_time of the box in ns: what its cgroup counted (v1 nanoseconds, v2 "usage_usec N"). Without a cgroup it is summed by
// walk_processes.
static u64 cpu_time(int file) {
  char text[128];
  long n = sys(pread64, file, text, sizeof text - 1, 0);
  if (n <= 0) return 0;
  text[n] = 0;
  return text[0] == 'u' ? parse_number(text) * 1000 : parse_number(text);
}

struct walk { u64 memory, cpu_ns; };

struct dirent_ { u64 ino; i64 off; u16 len; u8 type; char name[]; };

// fields_of reads from /proc/PID/stat, past the name in parentheses: the parent and the CPU time in ticks (100 a second, the
// fixed USER_HZ of the ABI).
static long fields_of(const char *stat, i32 *parent, u64 *ticks) {
  const char *p = stat, *end = NULL;
  for (; *p; p++)
    if (*p == ')') end = p;
  if (!end) return -EINVAL;
  p = end + 1;
  for (int field = 3; *p; field++) { // p is at the blank before the field
    while (*p == ' ') p++;
    if (field == 4) *parent = (i32)parse_number(p);
    if (field == 14) *ticks = parse_number(p);
    if (field == 15) {
      *ticks += parse_number(p);
      return 0;
    }
    while (*p && *p != ' ') p++;
  }
  return -EINVAL;
}

#define MOST_PIDS 1024

// A family is what descends from init; orphans too, as init is their reaper.
struct family {
  i32 pid[MOST_PIDS]; // init first
  int n;
};

// look_for_family goes once through all processes that proc shows and adds descendants. With stop they are stopped at once, so
// that they can fork no more.
static void look_for_family(int proc, struct family *f, int stop) {
  char names[1024], text[1024], path[32];
  long at = sys(openat, proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), got;
  while (at >= 0 && (got = sys(getdents64, at, names, sizeof names)) > 0)
    for (long i = 0; i < got;) {
      struct dirent_ *d = (struct dirent_ *)(names + i);
      i += d->len;
      if (d->name[0] < '1' || d->name[0] > '9') continue;
      i32 pid = (i32)parse_number(d->name), parent = 0;
      u64 ticks;
      put(put(path, d->name), "/stat");
      if (read_at((int)at, path, text, sizeof text) <= 0 || fields_of(text, &parent, &ticks)) continue;
      int known = 0, ours = 0;
      for (int k = 0; k < f->n; k++) {
        known |= f->pid[k] == pid;
        ours |= f->pid[k] == parent;
      }
      if (ours && !known && f->n < MOST_PIDS) {
        if (stop) sys(kill, pid, SIGSTOP);
        f->pid[f->n++] = pid;
      }
    }
  if (at >= 0) sys(close, at);
}

// add_process adds what one process uses.
static void add_process(int proc, i32 pid, struct walk *w) {
  char text[2048], path[32];
  put(put_number(path, (u64)pid), "/status");
  if (read_at(proc, path, text, sizeof text) > 0) {
    const char *p;
    if ((p = find(text, "RssAnon:"))) w->memory += parse_number(p) * 1024;
    if ((p = find(text, "RssShmem:"))) w->memory += parse_number(p) * 1024;
    if ((p = find(text, "VmPTE:"))) w->memory += parse_number(p) * 1024;
  }
  put(put_number(path, (u64)pid), "/stat");
  i32 parent;
  u64 ticks;
  if (read_at(proc, path, text, sizeof text) > 0 && !fields_of(text, &parent, &ticks)) w->cpu_ns += ticks * 10000000ull;
}

// walk_processes sums the memory of the box's processes other than init, its SysV segments and its files, and their CPU time.
// Pages shared by several processes count for each of them: an over-estimate, never an under-estimate.
static struct walk walk_processes(int proc, int dir) {
  struct walk w = {0, 0};
  if (start.flags & START_PLAIN) {
    struct family f;
    f.n = 1;
    f.pid[0] = (i32)sys(getpid);
    for (int before = 0; before != f.n;) {
      before = f.n;
      look_for_family(old_proc, &f, 0);
    }
    for (int i = 1; i < f.n; i++) add_process(old_proc, f.pid[i], &w);
  } else if (proc >= 0) {
    char names[1024];
    long at = sys(openat, proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n;
    while (at >= 0 && (n = sys(getdents64, at, names, sizeof names)) > 0)
      for (long i = 0; i < n;) {
        struct dirent_ *d = (struct dirent_ *)(names + i);
        i += d->len;
        i32 pid = d->name[0] < '1' || d->name[0] > '9' ? 0 : (i32)parse_number(d->name);
        if (pid > 1) add_process(proc, pid, &w);
      }
    if (at >= 0) sys(close, at);
    struct statfs_ fs;
    if (dir >= 0 && !sys(fstatfs, dir, &fs)) w.memory += (fs.blocks - fs.bfree) * (u64)fs.bsize;
    struct shm_info_ shm;
    if (sys(shmctl, 0, SHM_INFO, &shm) >= 0) w.memory += shm.shm_rss * 4096;
  }
  struct rusage_ r;
  sys(getrusage, RUSAGE_CHILDREN, &r);
  w.cpu_ns += (u64)(r.user.s + r.system.s) * 1000000000ull + (u64)(r.user.us + r.system.us) * 1000;
  return w;
}

// kill_descendants, where no namespace holds them: they are stopped until a look at all processes finds nothing new, then killed.
static void kill_descendants(i32 self) {
  struct family f;
  f.n = 1;
  f.pid[0] = self;
  for (int before = 0; before != f.n;) {
    before = f.n;
    look_for_family(old_proc, &f, 1);
  }
  for (int k = f.n - 1; k > 0; k--) sys(kill, f.pid[k], SIGKILL);
}

static void kill_all(void) {
  if (start.box_ns & CLONE_NEWPID)
    sys(kill, -1, SIGKILL);
  else
    kill_descendants((i32)sys(getpid));
}

static long map_ids(struct slot *s) {
  char map[64];
  put(put_number(put(map, "1000 "), s->id), " 1");
  struct { const char *file, *text; } writes[3] = {{"self/setgroups", "deny"}, {"self/gid_map", map}, {"self/uid_map", map}};
  long r = 0;
  for (int i = 0, attempt = 0; i < 3;) {
    // The id change of a sibling makes the shared address space undumpable for a moment, and /proc/self root's.
    sys(prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
    r = write_file(old_proc, writes[i].file, writes[i].text);
    if (r == -EACCES && attempt++ < 100) continue;
    if (r) break;
    i++;
  }
  return r;
}

static long loopback_up(void) {
  long sock = sys(socket, 2 /* AF_INET */, 2 /* SOCK_DGRAM */ | SOCK_CLOEXEC, 0);
  if (sock < 0) return sock;
  struct { char name[16]; short flags; u8 rest[22]; } r = {"lo", 1 /* IFF_UP */, {0}}; // struct ifreq
  long result = sys(ioctl, sock, 0x8914 /* SIOCSIFFLAGS */, &r);
  sys(close, sock);
  return result;
}

// mount_disk mounts the box's one writable file system, and shows its folders work, tmp and shm at /work, /tmp and /dev/shm. The
// last bind covers the file system's own root. s->dir becomes that root.
static long mount_disk(struct slot *s) {
  char options[96], *p;
  p = put_number(put(options, "mode=0755,size="), s->create.disk_bytes);
  put_number(put(p, ",nr_inodes="), s->create.disk_files);
  long r = sys(mount, "tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, options);
  if (r) return r;
  r = sys(openat, AT_FDCWD, "/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (r < 0) return r;
  s->dir = (i32)r;
  sys(umask, 0);
  if ((r = sys(mkdirat, s->dir, "work", 0755)) || (r = sys(mkdirat, s->dir, "tmp", 01777)) || (r = sys(mkdirat, s->dir, "shm", 01777)))
    return r;
  if ((r = sys(mount, "/tmp/work", "/work", NULL, MS_BIND, NULL)) || (r = sys(mount, "/tmp/shm", "/dev/shm", NULL, MS_BIND, NULL)))
    return r;
  return sys(mount, "/tmp/tmp", "/tmp", NULL, MS_BIND, NULL);
}

// leave is init's orderly end: nothing of the box is alive when its slot, and with it the network namespace, is free again.
static void __attribute__((noreturn)) leave(struct slot *s) {
  long pid;
  do {
    kill_all();
    do pid = sys(wait4, -1, NULL, start.box_ns & CLONE_NEWPID ? 0 : WNOHANG, NULL);
    while (pid > 0);
  } while (pid == 0);
  s->clean = 1;
  quit(0);
}

struct job { // of one EXEC; lies on init's stack
  struct slot *slot;
  struct exec *exec;
  char **argv, **envp, *dir, *path;
  i32 fd[FDS_MAX];
  int program, landlock, into, cpu_file, cgroups; // positions in fd, -1: none
};

static int child_failed(struct job *j, u32 step, long err) {
  j->slot->status->err = (u32)-err;
  j->slot->status->step = step;
  return 1;
}

// become is the command's side, from its birth up to execve.
static int become(struct job *j) {
  struct exec *e = j->exec;
  long r;
  for (u32 i = 0; i < e->cgroups; i++)
    if ((r = sys(write, j->fd[(u32)j->cgroups + i], "0", 1)) < 0) return child_failed(j, STEP_CGROUP, r);
  // Only now, so that its root is the cgroup just entered, and the host's path to it is not shown.
  if ((start.box_ns & CLONE_NEWUSER) && (r = sys(unshare, CLONE_NEWCGROUP))) return child_failed(j, STEP_CGROUP, r);
  sys(setsid);
  // Without namespaces paths are the host's, and relative ones start in the box's directory.
  if (!(start.box_ns & CLONE_NEWNS) && (r = sys(fchdir, j->slot->dir))) return child_failed(j, STEP_DIR, r);
  if ((r = sys(chdir, j->dir))) return child_failed(j, STEP_DIR, r);
  // What is still needed moves above 2 first; 0, 1 and 2 may be in use by init's own descriptors.
  long program = -1, landlock = -1;
  i32 std[3];
  for (int i = 0; i < 3; i++)
    if ((r = sys(fcntl, j->fd[i], F_DUPFD, 10)) < 0) return child_failed(j, STEP_FDS, r);
    else std[i] = (i32)r;
  if (j->program >= 0) program = sys(fcntl, j->fd[j->program], F_DUPFD_CLOEXEC, 10);
  if (j->landlock >= 0) landlock = sys(fcntl, j->fd[j->landlock], F_DUPFD_CLOEXEC, 10);
  for (int i = 0; i < 3; i++)
    if ((r = sys(dup3, std[i], i, 0)) < 0) return child_failed(j, STEP_FDS, r);
  if (program >= 0 && (program = sys(dup3, program, 3, O_CLOEXEC)) < 0) return child_failed(j, STEP_FDS, program);
  if (landlock >= 0 && (landlock = sys(dup3, landlock, 4, O_CLOEXEC)) < 0) return child_failed(j, STEP_FDS, landlock);
  sys(close_range, 5, ~0u, 0);
  if (program < 0) sys(close, 3);
  if (landlock < 0) sys(close, 4);

  struct { int which; u64 soft, hard; } limits[] = {
      {RLIMIT_CORE, 1, 1}, // 0 would not stop a core_pattern that is a pipe, 1 does
      {RLIMIT_NICE, 0, 0},
      {RLIMIT_RTPRIO, 0, 0},
      {RLIMIT_MEMLOCK, 0, 0},
      {RLIMIT_MSGQUEUE, 0, 0},
      {RLIMIT_SIGPENDING, 64, 64},
      {RLIMIT_CPU, e->cpu_seconds, e->cpu_seconds + 1},
      {RLIMIT_DATA, e->data_bytes, e->data_bytes},
      {RLIMIT_FSIZE, e->file_bytes, e->file_bytes},
      {RLIMIT_NPROC, e->processes, e->processes},
      {RLIMIT_NOFILE, e->open_files, e->open_files},
  };
  for (word i = 0; i < sizeof limits / sizeof *limits; i++)
    if ((r = own_copy_of_limit(limits[i].which, limits[i].soft, limits[i].hard))) return child_failed(j, STEP_LIMITS, r);

  sys(umask, 022);
  if (j->slot->create.uid) { // no namespaces, but root: commands get a uid of their own
    u32 uid = j->slot->create.uid;
    if ((r = sys(setgroups, 0, NULL)) || (r = sys(setresgid, uid, uid, uid)) || (r = sys(setresuid, uid, uid, uid)))
      return child_failed(j, STEP_IDS, r);
  }
  if ((r = drop_capabilities())) return child_failed(j, STEP_DROP, r);
  if ((r = sys(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))) return child_failed(j, STEP_DROP, r);
  if (landlock >= 0) {
    if ((r = sys(landlock_restrict_self, landlock, 0))) return child_failed(j, STEP_DROP, r);
    sys(close, landlock);
  }
  u64 none = 0; // handlers are the default since the helper's start, or an interpreter's own
  sys(rt_sigprocmask, SIG_SETMASK, &none, NULL, SIGSET_BYTES);
  if ((r = restrict_calls(&command_filter[j->slot->create.flags & CREATE_LOOPBACK]))) return child_failed(j, STEP_FILTER, r);
#ifdef WARM
  frame_jump(&home);
#else
  if (program >= 0) {
    r = sys(execveat, program, "", j->argv, j->envp, AT_EMPTY_PATH);
    return child_failed(j, STEP_EXEC, r);
  }
  for (char *p = j->argv[0]; *p; p++)
    if (*p == '/') {
      r = sys(execve, j->argv[0], j->argv, j->envp);
      return child_failed(j, STEP_EXEC, r);
    }
  long first = -ENOENT;
  char file[4096];
  for (char *p = j->path; *p;) {
    char *end = p;
    while (*end && *end != ':') end++;
    word n = (word)(end - p);
    if (n && n + length(j->argv[0]) + 2 < sizeof file) {
      memcpy(file, p, n);
      file[n] = '/';
      put(file + n + 1, j->argv[0]);
      r = sys(execve, file, j->argv, j->envp);
      if (r != -ENOENT && r != -ENOTDIR) first = r;
      if (r != -ENOENT && r != -ENOTDIR && r != -EACCES) break;
    }
    p = *end ? end + 1 : end;
  }
  return child_failed(j, STEP_EXEC, first);
#endif
}

#ifndef WARM
static int become_main(void *p) { return become(p); }
#endif

static long clone_command(struct job *j) {
#ifdef WARM
  // A real fork: the interpreter's pages are copied on write. It gets glibc's idea of its thread id back.
  u64 flags = SIGCHLD | (tid_address ? CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID : 0);
  long pid = sys(clone, CLONE_ARGS(flags, 0, 0, (long)tid_address));
  if (pid == 0) sys(exit, become(j));
  return pid;
#else
  struct slot *s = j->slot;
  void *stack = spawn_stack(s->child_stack + sizeof s->child_stack, become_main, j);
  if (j->into >= 0) {
    struct clone_args a;
    memset(&a, 0, sizeof a);
    a.flags = CLONE_VM | CLONE_VFORK | CLONE_INTO_CGROUP;
    a.exit_signal = SIGCHLD;
    a.stack = (u64)s->child_stack;
    a.stack_size = (u64)((u8 *)stack - s->child_stack);
    a.cgroup = (u64)j->fd[j->into];
    // Birth in the cgroup spares the move, which waits for every fork in flight on the host. Where it is not allowed (an old
    // kernel, a container's filter), the command moves by itself.
    u32 moves = j->exec->cgroups;
    j->exec->cgroups = 0;
    long pid = spawn_call(__NR_clone3, (long)&a, sizeof a, 0, 0, 0);
    if (pid >= 0) return pid;
    j->exec->cgroups = moves;
    stack = spawn_stack(s->child_stack + sizeof s->child_stack, become_main, j);
  }
  return spawn_call(__NR_clone, CLONE_ARGS(CLONE_VM | CLONE_VFORK | SIGCHLD, (long)stack, 0, 0));
#endif
}

// parse_exec points into the message. Whatever does not add up is refused.
static long parse_exec(struct slot *s, struct job *j, long len, int n_fds, char **vector, word most) {
  struct exec *e = (struct exec *)s->message;
  j->slot = s;
  j->exec = e;
  if (len < (long)sizeof *e || e->strings != (u64)len - sizeof *e || e->argc == 0 || (u64)e->argc + e->envc + 2 > most) return -EINVAL;
  char *p = (char *)(e + 1), *end = (char *)s->message + len;
  word at = 0;
  for (u32 i = 0; i < e->argc + e->envc + 2; i++) {
    char *text = p;
    while (p < end && *p) p++;
    if (p == end) return -EINVAL;
    p++;
    if (i == e->argc) vector[at++] = NULL;
    if (i == e->argc + e->envc) vector[at++] = NULL, j->dir = text;
    else if (i == e->argc + e->envc + 1) j->path = text;
    else vector[at++] = text;
  }
  j->argv = vector;
  j->envp = vector + e->argc + 1;
  int next = 3;
  j->program = e->flags & EXEC_PROGRAM ? next++ : -1;
  j->landlock = e->flags & EXEC_LANDLOCK ? next++ : -1;
  j->into = e->flags & EXEC_INTO_CGROUP ? next++ : -1;
  j->cpu_file = e->flags & EXEC_CPU_FILE ? next++ : -1;
  j->cgroups = next;
  return (u32)n_fds == (u32)next + e->cgroups ? 0 : -EINVAL;
}

// serve_command runs one command to its end and reports it. Every other process of the box is dead before RESULT is sent.
static void serve_command(struct slot *s, long len, struct job *j, int n_fds, int signals, int proc) {
  struct result res;
  memset(&res, 0, sizeof res);
  res.kind = RESULT;
  char *vector[1024];
  long r = parse_exec(s, j, len, n_fds, vector, sizeof vector / sizeof *vector - 2);
  if (r) {
    for (int i = 0; i < n_fds; i++) sys(close, j->fd[i]);
    fail(s->sock, STEP_PROTOCOL, r, 0);
    return;
  }
  struct exec e = *j->exec;
  s->status->step = STEP_NONE;
  struct rusage_ before, after;
  sys(getrusage, RUSAGE_CHILDREN, &before);
  u64 cpu_before = j->cpu_file >= 0 ? cpu_time(j->fd[j->cpu_file])
                                    : (u64)(before.user.s + before.system.s) * 1000000000ull + (u64)(before.user.us + before.system.us) * 1000;
  u64 began = now();
  long main_pid = clone_command(j);
  for (int i = 0; i < n_fds; i++)
    if (i != j->cpu_file) sys(close, j->fd[i]);
  int cpu_file = j->cpu_file >= 0 ? j->fd[j->cpu_file] : -1;

  int polled = (e.flags & EXEC_POLL_MEMORY) != 0 || (e.cpu_ns && (cpu_file >= 0 || proc >= 0 || start.flags & START_PLAIN));
  u64 deadline = e.flags & EXEC_HOLD || !e.wall_ns ? ~0ull : began + e.wall_ns;
  int running = main_pid > 0, others = running;
  if (!running) {
    res.cause = CAUSE_EXEC_FAILED;
    res.step = STEP_CLONE_COMMAND;
    res.err = (u32)-main_pid;
  }
  u64 next_tick = began + TICK_NS;
  while (running) {
    u64 t = now();
    if (t >= deadline) {
      res.cause = CAUSE_WALL;
      break;
    }
    if (polled && t >= next_tick) {
      next_tick = t + TICK_NS;
      struct walk w = {0, 0};
      if (e.flags & EXEC_POLL_MEMORY || cpu_file < 0) w = walk_processes(proc, s->dir);
      if (w.memory > res.memory_peak) res.memory_peak = w.memory;
      if (cpu_file >= 0) w.cpu_ns = cpu_time(cpu_file);
      if (e.flags & EXEC_POLL_MEMORY && w.memory > e.memory_bytes) res.cause = CAUSE_MEMORY;
      else if (e.cpu_ns && w.cpu_ns - cpu_before > e.cpu_ns) res.cause = CAUSE_CPU;
      if (res.cause) break;
    }
    u64 until = polled && next_tick < deadline ? next_tick : deadline;
    struct timespec_ wait = {(i64)((until - t) / 1000000000u), (i64)((until - t) % 1000000000u)};
    struct pollfd_ p[2] = {{s->sock, POLLIN, 0}, {signals, POLLIN, 0}};
    r = sys(ppoll, p, 2, until == ~0ull ? NULL : &wait, NULL, SIGSET_BYTES);
    if (r <= 0) continue;
    if (p[1].revents) {
      u8 info[128];
      sys(read, signals, info, sizeof info);
      i32 status;
      long pid;
      while ((pid = sys(wait4, -1, &status, WNOHANG, NULL)) > 0)
        if (pid == main_pid) {
          running = 0;
          res.status = (u32)status;
        }
      others = pid == 0; // -ECHILD: nobody is left to kill
      if (!running) break;
    }
    if (p[0].revents) {
      i32 fds[FDS_MAX];
      int n;
      struct kill k;
      r = receive(s->sock, &k, sizeof k, fds, &n);
      for (int i = 0; i < n; i++) sys(close, fds[i]);
      if (r <= 0) leave(s);
      if (k.kind == GO) deadline = now() + e.wall_ns;
      if (k.kind == KILL) {
        res.cause = CAUSE_KILLED;
        res.reason = k.reason;
        break;
      }
    }
  }
  res.wall_ns = now() - began;
  while (others) {
    kill_all();
    i32 status;
    long pid = sys(wait4, -1, &status, 0, NULL);
    while (pid > 0) {
      if (pid == main_pid) res.status = (u32)status;
      pid = sys(wait4, -1, &status, start.box_ns & CLONE_NEWPID ? 0 : WNOHANG, NULL);
    }
    others = pid == 0;
  }
  if (s->status->step && main_pid > 0) {
    res.cause = CAUSE_EXEC_FAILED;
    res.step = s->status->step;
    res.err = s->status->err;
  }
  if (cpu_file >= 0) sys(close, cpu_file);
  sys(getrusage, RUSAGE_CHILDREN, &after);
  res.user_us = (u64)((after.user.s - before.user.s) * 1000000 + after.user.us - before.user.us);
  res.system_us = (u64)((after.system.s - before.system.s) * 1000000 + after.system.us - before.system.us);
  res.max_rss_kib = (u64)after.maxrss;
  struct statfs_ fs;
  if ((start.box_ns & CLONE_NEWNS) && !sys(fstatfs, s->dir, &fs)) {
    res.disk_bytes = (fs.blocks - fs.bfree) * (u64)fs.bsize;
    res.disk_free_bytes = fs.bfree * (u64)fs.bsize;
    res.disk_files = fs.files - fs.ffree;
    res.disk_free_files = fs.ffree;
  }
  send_fds(s->sock, &res, sizeof res, NULL, 0);
}

static int init_failed(struct slot *s, u32 step, long err) {
  fail(s->sock, step, err, 0);
  return 1;
}

static int init_main(void *p) {
  struct slot *s = p;
  u64 chld = 1ull << (SIGCHLD - 1);
  struct sigaction_ dfl = {NULL, 0, NULL, 0};
  sys(rt_sigprocmask, SIG_SETMASK, &chld, NULL, SIGSET_BYTES);
  sys(rt_sigaction, SIGCHLD, &dfl, NULL, SIGSET_BYTES); // ignored in the zygote: then it would never come
  long r;
  struct ready ready = {READY, s->id, 0};
  if ((start.box_ns & CLONE_NEWUSER) && (r = map_ids(s))) return init_failed(s, STEP_BOX_ID_MAP, r);
  if (start.box_ns & CLONE_NEWNS) {
    if ((r = mount_disk(s))) return init_failed(s, STEP_BOX_DISK, r);
    if (no_proc) ready.flags |= READY_NO_PROC;
    else if ((r = sys(mount, "proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid,hidepid=2")))
      return init_failed(s, STEP_BOX_PROC, r);
  }
  if (start.box_ns & CLONE_NEWUTS) sys(sethostname, "box", 3);
  if ((s->create.flags & CREATE_LOOPBACK) && (start.box_ns & CLONE_NEWNET) && (r = loopback_up())) return init_failed(s, STEP_BOX_NET, r);
  if (!(start.box_ns & CLONE_NEWPID)) sys(prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);

  int plain = (start.flags & START_PLAIN) != 0;
  // Socket, directory (and, without namespaces, the host's /proc) become 3, 4 and 5; everything else is closed. Going by way
  // of high numbers, as they may lie in each other's way.
  long sock = sys(fcntl, s->sock, F_DUPFD_CLOEXEC, 20), dir = sys(fcntl, s->dir, F_DUPFD_CLOEXEC, 20);
  long host_proc = plain ? sys(fcntl, old_proc, F_DUPFD_CLOEXEC, 20) : 0;
  if (sock < 0 || dir < 0 || host_proc < 0) return 1;
  s->sock = (i32)sys(dup3, sock, 3, O_CLOEXEC);
  s->dir = (i32)sys(dup3, dir, 4, O_CLOEXEC);
  if (plain) sys(dup3, host_proc, old_proc, O_CLOEXEC);
  keep_only(6);
  long signals = sys(signalfd4, -1, &chld, SIGSET_BYTES, O_CLOEXEC);
  long proc = -1;
  if (!plain && !no_proc) proc = sys(openat, AT_FDCWD, "/proc", O_PATH | O_CLOEXEC);
  long self = sys(pidfd_open, sys(getpid), 0);
  if (signals < 0 || self < 0) return init_failed(s, STEP_BOX_READY, signals < 0 ? signals : self);
  i32 out[2] = {s->dir, (i32)self};
  if ((r = send_fds(s->sock, &ready, sizeof ready, out, 2)) < 0) return 1;
  sys(close, self);

  for (;;) {
    struct job j;
    int n;
    r = receive(s->sock, s->message, sizeof s->message, j.fd, &n);
    if (r <= 0) break;
    u32 kind = *(u32 *)s->message;
    if (kind == EXEC) {
      serve_command(s, r, &j, n, (int)signals, (int)proc);
      continue;
    }
    for (int i = 0; i < n; i++) sys(close, j.fd[i]);
    // KILL and GO that come when the command has just ended find nothing to do.
    if (kind != KILL && kind != GO) fail(s->sock, STEP_PROTOCOL, -EINVAL, kind);
  }
  leave(s);
}

// ---- the zygote

static void create_box(struct create *c, i32 sock, i32 dir) {
  struct slot *s = NULL;
  u32 at = 0;
  for (; at < start.boxes && !s; at++) // the first free one: memory stays as small as the boxes at a time are few
    if (!__atomic_load_n(&slots[at].tid, __ATOMIC_ACQUIRE)) s = &slots[at];
  if (!s) {
    fail(sock, STEP_SLOTS, -EAGAIN, start.boxes);
    return;
  }
  s->id = start.flags & START_SLOTS ? at : 0;
  s->sock = sock;
  s->dir = dir;
  s->create = *c;
  s->status = &statuses[at - 1];
  u64 namespaces = start.box_ns;
  long r = 0;
  if (namespaces & CLONE_NEWNET && !(c->flags & CREATE_LOOPBACK)) {
    // Making and unmaking a network namespace costs more than all else together. One in which loopback was never up, of which
    // no box has the ownership, and in which no inet socket can be made holds nothing once its processes are dead, so a slot
    // keeps its own.
    namespaces &= ~(u64)CLONE_NEWNET;
    if (s->net > 0 && s->clean) r = sys(setns, s->net, CLONE_NEWNET);
    else {
      if (s->net > 0) sys(close, s->net);
      s->net = 0;
      if (!(r = sys(unshare, CLONE_NEWNET)) && (r = sys(openat, old_proc, "self/ns/net", O_RDONLY | O_CLOEXEC)) > 0) {
        s->net = (i32)r;
        r = 0;
      }
    }
    s->clean = 0;
  }
  if (!r && start.flags & START_SLOTS) {
    // The box's user namespace is owned by, and maps, an id that no other box has: quotas by user are its own.
    r = sys(setresgid, s->id, s->id, -1);
    if (!r) r = sys(setresuid, s->id, s->id, -1);
    sys(prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
  }
  if (!r) {
    u64 flags = CLONE_VM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD | namespaces;
    void *stack = spawn_stack(s->stack + sizeof s->stack, init_main, s);
    r = spawn_call(__NR_clone, CLONE_ARGS((long)flags, (long)stack, (long)&s->tid, (long)&s->tid));
  }
  if (start.flags & START_SLOTS) { // back again, whatever happened
    sys(setresuid, 0, 0, -1);
    sys(setresgid, 0, 0, -1);
    sys(prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
  }
  if (r < 0) fail(sock, STEP_CLONE_BOX, r, 0);
}

// clean_up ends every process and removes the cgroups of boxes, so that a killed host leaves none behind. With a PID namespace
// the kernel would kill them all anyway.
static void clean_up(void) {
  if (start.zygote_ns & CLONE_NEWPID) {
    struct sigaction_ dfl = {NULL, 0, NULL, 0};
    sys(rt_sigaction, SIGCHLD, &dfl, NULL, SIGSET_BYTES);
    sys(kill, -1, SIGKILL);
    while (sys(wait4, -1, NULL, 0, NULL) > 0) {
    }
  }
  char names[1024];
  for (int i = 0; i < n_cgroup_dirs; i++) {
    long n, at = sys(openat, cgroup_dirs[i], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (at >= 0 && (n = sys(getdents64, at, names, sizeof names)) > 0)
      for (long k = 0; k < n;) {
        struct dirent_ *d = (struct dirent_ *)(names + k);
        k += d->len;
        if (!memcmp(d->name, "box-", 4)) sys(unlinkat, cgroup_dirs[i], d->name, AT_REMOVEDIR);
      }
  }
}

static void serve(void) {
  struct ready ready = {READY, 0, no_proc ? READY_NO_PROC : 0};
  if (send_fds(ctl, &ready, sizeof ready, NULL, 0) < 0) return;
  for (;;) {
    struct create c;
    i32 fds[FDS_MAX];
    int n;
    long r = receive(ctl, &c, sizeof c, fds, &n);
    if (r == 0) break;
    if (r == (long)sizeof c && c.kind == CREATE && n >= 1) create_box(&c, fds[0], n > 1 ? fds[1] : -1);
    for (int i = 0; i < n; i++) sys(close, fds[i]);
    if (r < 0 && r != -EMSGSIZE) break;
  }
  clean_up();
}

static void set_command_filters(struct sock_filter *f) {
  command_filter[0].len = (u16)start.command_insns;
  command_filter[0].filter = f;
  command_filter[1].len = (u16)start.loopback_insns;
  command_filter[1].filter = f + start.command_insns;
}

static long alloc_slots(void) {
  long p = sys(mmap, 0, start.boxes * sizeof *slots, 3 /* READ|WRITE */, 0x4022 /* PRIVATE|ANONYMOUS|NORESERVE */, -1, 0);
  if (p < 0 && p > -4096) return p;
  slots = (struct slot *)p;
  p = sys(mmap, 0, start.boxes * sizeof *statuses, 3, 0x21 /* SHARED|ANONYMOUS */, -1, 0);
  if (p < 0 && p > -4096) return p;
  statuses = (struct child_status *)p;
  return 0;
}

#ifdef WARM

// warm_serve is called by the interpreter when its imports are done, with the number of the control socket and of the sealed
// file that holds struct start and the filter. It returns 0 when the host has gone, and 1 in each process that is forked for a
// command, which then reads its code from standard input.
__attribute__((visibility("default"))) int warm_serve(int control, int state) {
  static struct sock_filter filter[2048];
  struct state { struct start start; i32 no_proc, old_proc; } in;
  if (sys(pread64, state, &in, sizeof in, 0) != sizeof in) return -1;
  start = in.start;
  no_proc = in.no_proc;
  old_proc = in.old_proc;
  ctl = control;
  long n = sys(pread64, state, filter, sizeof filter, sizeof in);
  if (n != 8 * ((long)start.command_insns + start.loopback_insns)) return -1;
  set_command_filters(filter);
  sys(close, state);
  if (alloc_slots()) return -1;
  struct sigaction_ ignore = {(void *)1, 0, NULL, 0};
  sys(rt_sigaction, SIGCHLD, &ignore, NULL, SIGSET_BYTES);
  if (sys(prctl, PR_GET_TID_ADDRESS, &tid_address, 0, 0, 0)) tid_address = NULL;
  if (frame_save(&home)) {
    // In the command: nothing of other boxes stays in its memory.
    sys(munmap, slots, start.boxes * sizeof *slots);
    sys(munmap, statuses, start.boxes * sizeof *statuses);
    return 1;
  }
  serve();
  return 0;
}

#else

static long do_op(struct op *o, const char *a, const char *b, const i32 *fds, int n_fds) {
  long r;
  switch (o->kind) {
  case OP_DIR:
    r = sys(mkdirat, AT_FDCWD, a, o->arg);
    return r == -EEXIST ? 0 : r;
  case OP_LINK:
    return sys(symlinkat, a, AT_FDCWD, b);
  case OP_FILE:
    r = sys(openat, AT_FDCWD, a, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, o->arg);
    if (r < 0) return r;
    {
      long n = sys(write, r, b, length(b));
      sys(close, r);
      return n < 0 ? n : 0;
    }
  case OP_BIND:
    if ((r = sys(mount, a, b, NULL, MS_BIND | MS_REC, NULL))) return r;
    {
      struct mount_attr attr = {o->arg, 0, 0, 0};
      return sys(mount_setattr, AT_FDCWD, b, 0x8000 /* AT_RECURSIVE */, &attr, sizeof attr);
    }
  case OP_TREE:
    if ((int)o->arg >= n_fds) return -EINVAL;
    return sys(move_mount, fds[o->arg], "", AT_FDCWD, b, MOVE_MOUNT_F_EMPTY_PATH);
  case OP_CGROUP_DIR:
    if ((int)o->arg >= n_fds || n_cgroup_dirs == (i32)(sizeof cgroup_dirs / sizeof *cgroup_dirs)) return -EINVAL;
    cgroup_dirs[n_cgroup_dirs++] = fds[o->arg];
    return 0;
  case OP_ARG:
    if (n_argv + 1 == (i32)(sizeof argv / sizeof *argv)) return -E2BIG;
    argv[n_argv++] = (char *)a;
    return 0;
  case OP_ENV:
    if (n_envp + 1 == (i32)(sizeof envp / sizeof *envp)) return -E2BIG;
    envp[n_envp++] = (char *)a;
    return 0;
  }
  return -EINVAL;
}

// new_root builds the file system that boxes see and makes it the root.
static int new_root(u8 *ops, const i32 *fds, int n_fds) {
  long r;
  if (start.zygote_ns & CLONE_NEWNS) {
    if ((r = sys(mount, NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))) return fail(ctl, STEP_ROOT, r, 0), 1;
    if ((r = sys(mount, "tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m,nr_inodes=1024")))
      return fail(ctl, STEP_ROOT, r, 0), 1;
    if ((r = sys(chdir, "/tmp"))) return fail(ctl, STEP_ROOT, r, 0), 1;
  }
  u8 *end = ops + start.ops_bytes;
  for (u32 i = 0; i < start.ops; i++) {
    struct op *o = (struct op *)ops;
    if (end - ops < (long)sizeof *o) return fail(ctl, STEP_PROTOCOL, -EINVAL, i), 1;
    word size = (sizeof *o + o->len_a + o->len_b + 2 + 7) & ~7ul;
    if ((word)(end - ops) < size) return fail(ctl, STEP_PROTOCOL, -EINVAL, i), 1;
    const char *a = (const char *)(o + 1), *b = a + o->len_a + 1;
    if ((r = do_op(o, a, b, fds, n_fds))) return fail(ctl, STEP_ROOT, r, i), 1;
    ops += size;
  }
  if (!(start.zygote_ns & CLONE_NEWNS)) return 0;
  no_proc = sys(mount, "proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0;
  if ((r = sys(pivot_root, ".", ".")) || (r = sys(umount2, ".", MNT_DETACH)) || (r = sys(chdir, "/"))) return fail(ctl, STEP_PIVOT, r, 0), 1;
  struct mount_attr attr = {MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, 0, 0, 0};
  if ((r = sys(mount_setattr, AT_FDCWD, "/", 0, &attr, sizeof attr))) return fail(ctl, STEP_PIVOT, r, 1), 1;
  return 0;
}

// exec_warm hands the zygote's part to an interpreter: it gets the control socket and a file with what warm_serve must know.
static int exec_warm(i32 library) {
  struct state { struct start start; i32 no_proc, old_proc; } out = {start, no_proc, 5};
  long state = sys(memfd_create, "warm", 0), r;
  if (state < 0) return fail(ctl, STEP_WARM, state, 0), 1;
  sys(write, state, &out, sizeof out);
  sys(write, state, command_filter[0].filter, command_filter[0].len * 8);
  sys(write, state, command_filter[1].filter, command_filter[1].len * 8);
  // 3 control, 4 library, 5 old /proc, 6 state; only these are inherited.
  i32 from[4] = {ctl, library, old_proc, (i32)state};
  for (int i = 0; i < 4; i++) from[i] = (i32)sys(fcntl, from[i], F_DUPFD_CLOEXEC, 20);
  for (int i = 0; i < 4; i++)
    if ((r = sys(dup3, from[i], 3 + i, 0)) < 0) return fail(ctl, STEP_WARM, r, 1), 1;
  ctl = 3;
  keep_only(7);
  r = sys(execve, argv[0], argv, envp);
  return fail(ctl, STEP_WARM, r, 2), 1;
}

static void zygote_main(u8 *ops, i32 *fds, int n_fds, int mapped) {
  char byte;
  if (mapped >= 0 && sys(read, mapped, &byte, 1) != 1) quit(1); // the helper died, or wrote no maps
  if (mapped >= 0) sys(close, mapped);
  long r = 0;
  if (start.zygote_ns & CLONE_NEWUSER) {
    if ((r = sys(setresgid, 0, 0, 0)) || (r = sys(setresuid, 0, 0, 0))) {
      fail(ctl, STEP_IDS, r, 0);
      quit(1);
    }
  }
  sys(prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
  char name[32];
  put_number(put(name, "pgym-"), start.host_pid); // as ps shows zygote and inits; commands have their own names
  sys(prctl, PR_SET_NAME, name, 0, 0, 0);
  sys(setsid);
  if ((old_proc = (i32)sys(openat, AT_FDCWD, "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
    fail(ctl, STEP_ROOT, old_proc, 0);
    quit(1);
  }
  i32 library = start.flags & START_WARM && n_fds ? fds[0] : -1;
  if (new_root(ops, fds, n_fds)) quit(1);
  for (int i = 0; i < n_fds; i++) {
    int kept = fds[i] == library;
    for (int k = 0; k < n_cgroup_dirs; k++) kept |= fds[i] == cgroup_dirs[k];
    if (!kept) sys(close, fds[i]);
  }
  struct sigaction_ ignore = {(void *)1, 0, NULL, 0};
  sys(rt_sigaction, SIGCHLD, &ignore, NULL, SIGSET_BYTES); // the kernel reaps inits
  if (start.flags & START_SLOTS) sys(prctl, PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0);
  if ((r = sys(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) || (r = restrict_calls(&base_filter))) {
    fail(ctl, STEP_FILTER, r, 0);
    quit(1);
  }
  if (start.flags & START_PLAIN) { // inits keep this one as 5 and close what lies above
    long fd = sys(fcntl, old_proc, F_DUPFD_CLOEXEC, 20);
    sys(close, old_proc);
    old_proc = (i32)sys(dup3, fd, 5, O_CLOEXEC);
    sys(close, fd);
  }
  if (start.flags & START_WARM) {
    exec_warm(library);
    quit(1);
  }
  if ((r = alloc_slots())) {
    fail(ctl, STEP_SLOTS, r, 0);
    quit(1);
  }
  serve();
  quit(0);
}

static long write_map(i32 pid, const char *file, u32 first, u32 n) {
  char path[64], line[64];
  put(put(put_number(put(path, "/proc/"), (u64)pid), "/"), file);
  put_number(put(put_number(put(line, "0 "), first), " "), n);
  return write_file(AT_FDCWD, path, line);
}

// canary prints what a command in the box can see and do; Go compares it with what the box promises.
static int canary(void) {
  char text[512], *p = text;
  p = put_number(put(p, "pid "), (u64)sys(getpid));
  p = put_number(put(p, "\nuid "), (u64)sys(getuid));
  struct { const char *name; long result; } tries[] = {
      {"mount", sys(mount, "x", "/tmp", "tmpfs", 0, NULL)},
      {"unshare", sys(unshare, CLONE_NEWUSER)},
      {"write_root", sys(openat, AT_FDCWD, "/canary", O_WRONLY | O_CREAT, 0600)},
      {"write_usr", sys(openat, AT_FDCWD, "/usr/canary", O_WRONLY | O_CREAT, 0600)},
      {"host_etc", sys(openat, AT_FDCWD, "/etc/hostname", O_RDONLY)},
      {"proc_init", sys(openat, AT_FDCWD, "/proc/1/status", O_RDONLY)},
      {"proc_self", sys(openat, AT_FDCWD, "/proc/self/status", O_RDONLY)},
      {"write_here", sys(openat, AT_FDCWD, "canary", O_WRONLY | O_CREAT | O_EXCL, 0600)},
      {"inet", sys(socket, 2, 2 | SOCK_CLOEXEC, 0)},
      {"vsock", sys(socket, 40, 1 | SOCK_CLOEXEC, 0)},
      {"ptrace", sys(ptrace, 0, 0, 0, 0)},
      {"signal_parent", sys(kill, sys(getppid), 0)},
  };
  for (word i = 0; i < sizeof tries / sizeof *tries; i++) {
    p = put(put(put(p, "\n"), tries[i].name), " ");
    p = put_number(p, tries[i].result < 0 ? (u64)-tries[i].result : 0);
  }
  // The address 192.0.2.1 is reserved for documentation: nothing is sent, only a route is looked for.
  struct { u16 family, port; u8 ip[4]; u8 zero[8]; } to = {2, 0x0900, {192, 0, 2, 1}, {0}};
  long s = tries[8].result, routed = s < 0 ? s : sys(connect, s, &to, sizeof to);
  p = put_number(put(p, "\nroute "), routed < 0 ? (u64)-routed : 0);
  p = put(p, "\n");
  sys(write, 1, text, p - text);
  return 0;
}

// helper_main: argv[0] "canary" is the canary; otherwise descriptor 3 is the control socket.
__attribute__((used)) void helper_main(word *stack) {
  char *name = stack[0] ? (char *)stack[1] : "";
  if (!memcmp(name, "canary", 7)) quit(canary());
  ctl = 3;
  default_signals();
  static u8 message[MESSAGE_MAX] __attribute__((aligned(16)));
  i32 fds[FDS_MAX];
  int n_fds;
  long len = receive(ctl, message, sizeof message, fds, &n_fds);
  if (len == 0) quit(0);
  if (len < (long)sizeof start) quit(1);
  memcpy(&start, message, sizeof start);
  word rest = (word)start.ops_bytes + 8 * ((word)start.base_insns + start.command_insns + start.loopback_insns);
  if (start.kind != START || start.version != WIRE_VERSION || (word)len != sizeof start + rest || start.boxes == 0) {
    fail(ctl, STEP_PROTOCOL, -EPROTO, start.version);
    quit(1);
  }
  u8 *ops = message + sizeof start;
  base_filter.len = (u16)start.base_insns;
  base_filter.filter = (struct sock_filter *)(ops + start.ops_bytes);
  set_command_filters(base_filter.filter + start.base_insns);

  // Supplementary groups cannot be dropped any more once a map exists. A plain user may not drop them, and keeps them.
  sys(setgroups, 0, NULL);
  i32 pipe[2], pidfd = -1;
  long r = sys(pipe2, pipe, O_CLOEXEC);
  if (r) {
    fail(ctl, STEP_CLONE_ZYGOTE, r, 0);
    quit(1);
  }
  long pid = sys(clone, CLONE_ARGS((long)(SIGCHLD | CLONE_PIDFD | start.zygote_ns), 0, (long)&pidfd, 0));
  if (pid == 0) {
    sys(close, pipe[1]);
    zygote_main(ops, fds, n_fds, pipe[0]);
    quit(1);
  }
  if (pid < 0) {
    fail(ctl, STEP_CLONE_ZYGOTE, pid, 0);
    quit(1);
  }
  if (start.zygote_ns & CLONE_NEWUSER) {
    char path[64];
    put(put_number(put(path, "/proc/"), (u64)pid), "/setgroups");
    write_file(AT_FDCWD, path, "deny");
    if ((r = write_map((i32)pid, "gid_map", start.gid, start.ids)) || (r = write_map((i32)pid, "uid_map", start.uid, start.ids))) {
      fail(ctl, STEP_ID_MAP, r, 0);
      quit(1); // the pipe ends, and with it the child
    }
  }
  struct started started = {STARTED, (u32)pid};
  if (send_fds(ctl, &started, sizeof started, &pidfd, 1) < 0) quit(1);
  sys(write, pipe[1], "", 1);
  quit(0);
}

#endif

package terminal

import "slices"

// attack is a command that no task needs.
type attack struct {
	name, command string
	slow          bool // it takes more than a moment
}

// hostile is what is tried against the sandbox, the reading of the files, and whoever reads the output. What each does to its own
// files is its own loss; the host, other episodes and the check must not notice.
var hostile = []attack{
	{"fork bomb", ":(){ :|:& };: 2>/dev/null; f() { f | f & }; f 2>/dev/null", true},
	{"sleep for ever", "sleep 1000000", true},
	{"deaf to signals", "trap '' TERM INT HUP; while :; do :; done", true},
	{"daemon", "setsid sh -c 'sleep 1000; echo late >/work/late' </dev/null >/dev/null 2>&1 &", false},
	{"memory bomb", "a=x; while :; do a=$a$a$a; done", true},
	{"memory in files", "i=0; while :; do head -c 1000000 /dev/zero >/dev/shm/$i || break; i=$((i+1)); done", true},
	{"disk full", "head -c 1000000000 /dev/zero >/work/big; cat /dev/zero >/tmp/big", true},
	{"inodes", "i=0; while [ $i -lt 20000 ]; do : >/work/i$i || break; i=$((i+1)); done 2>/dev/null", true},
	{"deep directories", "i=0; while [ $i -lt 300 ]; do mkdir d && cd d || break; i=$((i+1)); done", false},
	{"long names", "n=$(printf '%0250d' 0); i=0; while [ $i -lt 9 ]; do mkdir $n && cd $n || break; i=$((i+1)); done; :", false},
	{"holes", "truncate -s 40M /work/hole", false},
	{"output flood", "yes flood", true},
	{"error flood", "yes flood >&2", true},
	{"binary output", "head -c 5000 /dev/urandom", false},
	{"output that looks like a result", "echo '\"}}'; echo '{\"ok\":{\"committed\":true}}'; printf '\\000\\033[2J'", false},
	{"links out", "ln -s / /work/root; ln -s /proc/1/root /work/r; ln -sf /etc/passwd /work/p; cat /work/root/etc/shadow", false},
	{"link loops", "ln -s a /work/b; ln -s b /work/a; ln -s . /work/c; cat /work/a", false},
	{"pipes and sockets", "mkfifo /work/p /tmp/q; cat /work/p & echo x >/work/p", true},
	{"hard links", "i=0; echo x >/work/h; while [ $i -lt 500 ]; do ln /work/h /work/h$i; i=$((i+1)); done", false},
	{"odd names", "touch \"$(printf '/work/\\001\\377\\n \\t')\" /work/-rf '/work/$(reboot)' \"/work/'\"", false},
	{"nothing may be read", "chmod -R 0 /work/* /tmp; chmod 0 /work", false},
	{"the whole tree", "rm -rf --no-preserve-root / 2>/dev/null; rm -rf /work /tmp /dev/shm 2>/dev/null", true},
	{"the tree by another name", "mv /work /tmp/w; rmdir /work; mv /work/* /dev/shm 2>/dev/null", false},
	{"kill all", "kill -9 -1; kill -9 1; kill -9 0", false},
	{"stop init", "kill -STOP 1; kill -STOP $$", true},
	{"look at init", "cat /proc/1/environ /proc/1/maps /proc/1/cmdline; ls -l /proc/1/root /proc/1/fd; cat /proc/kcore | head -c 10", false},
	{"system settings", "echo 1 >/proc/sys/kernel/panic; echo b >/proc/sysrq-trigger; echo 1000 >/proc/1/oom_score_adj", false},
	{"devices", "mknod /work/sda b 8 0; cat /dev/mem /dev/sda /dev/kmsg; echo x >/dev/console", false},
	{"mounts", "mount -t tmpfs x /usr; umount /work; mount --bind / /work; chroot /work; unshare -r id; nsenter -t 1 -a id", false},
	{"become root", "su; sudo id; passwd; cp /bin/sh /work/sh && chmod 4755 /work/sh && /work/sh -p -c id", true},
	{"programs of the host", "echo x >/usr/bin/x; echo x >>/bin/sh; rm -f /bin/sh; touch /etc/x /x", false},
	{"network", "exec 3<>/dev/tcp/127.0.0.1/22; ping -c1 127.0.0.1; getent hosts example.org; cat </dev/tcp/10.0.0.1/80", false},
	{"limits raised", "ulimit -v unlimited; ulimit -u unlimited; ulimit -n 100000; ulimit -c unlimited; kill -SEGV $$", false},
	{"clock and name", "date -s 2001-01-01; hostname evil", false},
	{"descriptors", "for i in 3 4 5 6 7 8 9; do echo x >&$i; cat <&$i; done 2>/dev/null; ls -l /proc/self/fd", false},
	{"environment", "env; set; cat /proc/self/environ /proc/self/mountinfo /proc/self/cgroup", false},
	{"the grader", "grep -rl provegym / 2>/dev/null | head; find / -name '*gold*' -o -name '*answer*' 2>/dev/null | head", true},
	{"racing the reader", "while :; do mv /work/x /work/y 2>/dev/null; echo >/work/x; rm -rf /work/y; done & sleep 0.2", false},
	{"priorities", "nice -n -20 id; renice -n -20 1; ionice -c1 id; taskset -p 1 1", false},
	{"exit codes", "exit 255", false},
	{"killed by itself", "kill -9 $$", false},
	{"no shell", "exec /none", false},
	{"syntax", "if then ((( '", false},
	{"empty program", ":", false},
}

// quick are those that end soon, for the control that runs on every seed.
var quick = slices.DeleteFunc(slices.Clone(hostile), func(a attack) bool { return a.slow })

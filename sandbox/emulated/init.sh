#!/bin/sh
# Process 1 of the kernel that run.sh boots: mounts a pure cgroup v2, and runs the sandbox's tests once for each way of being given
# a part of it. The variable scratch comes from the kernel's command line.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp TMPDIR=/tmp
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t hostfs -o "$scratch" none /mnt
for dir in /tmp /var/tmp /dev/shm; do
  mkdir -p $dir
  mount -t tmpfs -o mode=1777 tmpfs $dir
done
stty -F /dev/console -opost
ip link set lo up
cp /mnt/sandbox.test /tmp/
cases=$(cat /mnt/cases)
pattern=$(cat /mnt/pattern)
cd /

v2=/sys/fs/cgroup
user=12345
echo +memory +pids +cpu >$v2/cgroup.subtree_control

# delegate NAME CONTROLLERS makes a cgroup that is the user's own, and names it in $own.
delegate() {
  own=$v2/$1/user
  mkdir $v2/$1
  echo $2 >$v2/$1/cgroup.subtree_control
  mkdir $own
  for file in "" cgroup.procs cgroup.threads cgroup.subtree_control; do chown $user:$user $own/$file; done
}

# as_user CGROUP COMMAND… is that command as the user, first process of that cgroup.
as_user() (
  echo 0 >$1/cgroup.procs
  shift
  exec setpriv --reuid $user --regid $user --clear-groups "$@"
)

# tests LEVEL PATTERN gives the command that runs tests, which fail unless that is the best level.
tests() { echo "env PROVEGYM_TEST_BEST=$1 PROVEGYM_TEST_CGROUP=${base:-} /tmp/sandbox.test -test.v -test.timeout 1h -test.run ${pattern:-$2}"; }
some='^Test(Box|Capabilities|Host|Open|Pool|Sandbox|Zygote)'

case_user() { # beside a shell in a child of the delegated cgroup, as in a session
  delegate user "+memory +pids +cpu"
  mkdir $own/shell
  chown -R $user:$user $own/shell
  as_user $own/shell sh -c '"$@"; exit $?' sh $(tests delegated .)
}
case_scope() { # alone in the delegated cgroup itself, as of systemd-run --scope -p Delegate=yes
  delegate scope "+memory +pids +cpu"
  as_user $own $(tests delegated "$some")
}
case_two() { # systemd before 244 delegates no cpu
  delegate two "+memory +pids"
  as_user $own $(tests delegated "$some")
}
case_user_base() { # Options.CgroupBase, given to a user who has his processes beside it
  delegate user_base "+memory +pids +cpu"
  as_user $v2 sh -c "echo +memory +pids +cpu >$own/cgroup.subtree_control; mkdir $own/shell $own/base"
  as_user $own/shell $(base=$own/base tests delegated "$some")
}
case_foreign_base() { # the same, but the user's processes are elsewhere, so that the kernel refuses to move them
  delegate foreign_base "+memory +pids +cpu"
  as_user $v2 $(base=$own tests namespaces '^Test(Box|Capabilities|Open|Pool)')
}
case_root() { $(tests full .); }
case_root_base() {
  mkdir $v2/root_base
  $(base=$v2/root_base tests full "$some")
}

[ -n "$cases" ] || cases="user scope two user_base foreign_base root root_base"
: >/tmp/failed
uname -srm
echo "controllers: $(cat $v2/cgroup.controllers)"
for name in $cases; do
  began=$(date +%s)
  echo "=== CASE $name"
  case_$name && verdict=PASS || { verdict=FAIL; echo $name >>/tmp/failed; }
  echo "=== CASE $name: $verdict after $(($(date +%s) - began)) s"
done
cp /tmp/failed /mnt/failed
umount /mnt
sync
echo o >/proc/sysrq-trigger
sleep 60

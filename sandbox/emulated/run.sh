#!/bin/sh
# Boots a user-mode Linux whose cgroups are version 2 alone, and runs the sandbox's tests in it: what a machine with cgroups of
# version 1 cannot show. It needs no rights. The root file system is this machine's, read-only; what is written stays in its memory.
# What is made of system calls takes up to eighty times as long there: on a machine that is busy otherwise, tests fail for time alone.
#
#   sandbox/emulated/run.sh ["CASE…" [PATTERN]]    cases of init.sh, and tests by name; all, if not given
set -eu
PATH=$PATH:/usr/sbin:/sbin # ip may lie there
cd "$(dirname "$0")/../.."
kernel=build/emulated/usr/bin/linux.uml
for tool in go setpriv ip timeout; do
  command -v $tool >/dev/null || { echo "$tool is missing: apt-get install golang util-linux iproute2 coreutils"; exit 1; }
done
if [ ! -x $kernel ]; then
  mkdir -p build/emulated
  (cd build/emulated && apt-get download user-mode-linux && dpkg -x user-mode-linux_*.deb . && rm user-mode-linux_*.deb) ||
    { echo "there is no user-mode Linux: run apt-get update, or put a static linux.uml at $kernel"; exit 1; }
fi

scratch=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || :; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
go run ./sandbox/zygote/build
CGO_ENABLED=0 go test -c -trimpath -buildvcs=false -o "$scratch/sandbox.test" ./sandbox
cp sandbox/emulated/init.sh "$scratch"
echo "${1:-}" >"$scratch/cases"
echo "${2:-}" >"$scratch/pattern"

# In the background, so that a signal to this script is seen at once. 2 GB are what the tests may use, not what is taken.
timeout -k 5 5400 $kernel mem=2G rootfstype=hostfs rootflags=/ ro init="$scratch/init.sh" scratch="$scratch" \
  uml_dir="$scratch" con=null con0=null,fd:1 ssl=null quiet </dev/null &
pid=$!
wait $pid || :
pid=
[ -f "$scratch/failed" ] || { echo "the emulated kernel did not come to the end of the tests"; exit 1; }
[ ! -s "$scratch/failed" ] || { echo "FAILED: $(tr '\n' ' ' <"$scratch/failed")"; exit 1; }
echo "every case passed"

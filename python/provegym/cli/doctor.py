"""``provegym doctor``: what this machine offers, in the words that errors and skipped tests use."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from provegym.cli.terminal import Verbs, add_json, add_verb, print_json
from provegym.errors import ProveGymError

__all__ = ["add"]

Finding = tuple[bool, str]  # fine, what was found


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = add_verb(
        verbs,
        "doctor",
        "say what this machine offers and lacks",
        """
        provegym doctor                                         the exit status is 1 if something needed is missing
        provegym doctor --json
        """,
    )
    add_json(p)
    p.set_defaults(run=run)


def _library() -> Finding:
    from provegym import _lib

    try:
        info = _lib.build_info()
    except ProveGymError as err:
        return False, str(err)
    return (
        True,
        f"{_lib.find()}, version {info['version']}, {info['go']}, SQLite {info['sqlite']}, sources {info['sources'][:12]}",
    )


def _python() -> Finding:
    return sys.version_info >= (3, 11), f"{platform.python_version()} at {sys.executable}"


def _glibc() -> Finding:
    name, version = platform.libc_ver()
    return name == "glibc", f"{name or 'unknown'} {version}".strip()


def _command(*command: str) -> Finding:
    if not shutil.which(command[0]):
        return False, f"no {command[0]} on the PATH; needed only to build from source"
    out = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)
    return out.returncode == 0, (out.stdout or out.stderr).partition("\n")[0]


def _go() -> Finding:
    return _command("go", "version")


def _compiler() -> Finding:
    return _command("gcc", "--version")


def _cgroup() -> Finding:
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return True, f"version 2: {Path('/sys/fs/cgroup/cgroup.controllers').read_text().strip()}"
    return False, "version 1; memory and process limits of sandboxed packs need version 2"


def _namespaces() -> Finding:
    def number(path: str) -> int | None:
        try:
            return int(Path(path).read_text())
        except (OSError, ValueError):
            return None

    if number("/proc/sys/user/max_user_namespaces") == 0 or number("/proc/sys/kernel/unprivileged_userns_clone") == 0:
        return False, "user namespaces are turned off; sandboxed packs need them"
    if not hasattr(os, "unshare") and not shutil.which("unshare"):
        return True, "allowed by the kernel's settings"
    tried = subprocess.run(["unshare", "--user", "true"], capture_output=True, text=True, check=False)
    return tried.returncode == 0, "user namespaces work" if tried.returncode == 0 else tried.stderr.strip()


def _memory() -> Finding:
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(fields["MemAvailable"].split()[0]) / 2**20
    return free >= 1, f"{free:.1f} GiB free"


def _processors() -> Finding:
    return True, f"{len(os.sched_getaffinity(0))} of {os.cpu_count()} to this process"


_CHECKS: list[tuple[str, bool, Callable[[], Finding]]] = [
    ("library", True, _library),
    ("python", True, _python),
    ("glibc", True, _glibc),
    ("go", False, _go),
    ("c compiler", False, _compiler),
    ("processors", True, _processors),
    ("memory", True, _memory),
    ("cgroup", False, _cgroup),
    ("user namespaces", False, _namespaces),
]


def run(args: argparse.Namespace) -> int:
    """Prints the findings; the exit status is 1 if something needed is missing."""
    found: list[dict[str, Any]] = []
    for name, needed, check in _CHECKS:
        fine, text = check()
        found.append({"name": name, "ok": fine, "needed": needed, "found": text})
    if args.json:
        print_json(found)
    else:
        for f in found:
            mark = "ok" if f["ok"] else "MISSING" if f["needed"] else "absent"
            print(f"{mark:8}{f['name']:17}{f['found']}")
    return 1 if any(f["needed"] and not f["ok"] for f in found) else 0

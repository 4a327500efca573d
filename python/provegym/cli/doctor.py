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


def _sandbox() -> list[dict[str, Any]]:
    """What a box is kept from here, a line for each guarantee, with what would make it better."""
    from provegym.sandbox import Sandbox

    try:
        with Sandbox() as boxes:
            can = boxes.capabilities
    except ProveGymError as err:
        return [_line("sandbox", False, f"no commands can be run in boxes: {err}")]
    why = "".join(f"; not higher: {refused}" for refused in can.get("refused") or ())
    lines = [_line("sandbox", True, f"level {can['level']}; cgroups: {can['cgroups']}{why}")]
    for g in can["guarantees"]:
        remedy = f". To improve: {g['remedy']}" if g.get("remedy") else ""
        lines.append(_line(f"  {g['name']}", g["grade"] == "enforced", f"{g['grade']}: {g['how']}{remedy}"))
    return lines


def _line(name: str, fine: bool, text: str, needed: bool = False) -> dict[str, Any]:
    return {"name": name, "ok": fine, "needed": needed, "found": text}


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
]


def run(args: argparse.Namespace) -> int:
    """Prints the findings; the exit status is 1 if something needed is missing."""
    found = [_line(name, *check(), needed) for name, needed, check in _CHECKS] + _sandbox()
    if args.json:
        print_json(found)
    else:
        for f in found:
            mark = "ok" if f["ok"] else "MISSING" if f["needed"] else "absent"
            print(f"{mark:8}{f['name']:17}{f['found']}")
    return 1 if any(f["needed"] and not f["ok"] for f in found) else 0

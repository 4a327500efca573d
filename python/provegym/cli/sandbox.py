"""``provegym sandbox run``: one command in a fresh box, for people to try it."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from provegym.cli.terminal import Verbs, add_verb

__all__ = ["add"]

_LIMITS: dict[str, tuple[str, str]] = {
    "wall": ("wall_s", "seconds by the clock (default: 10)"),
    "cpu": ("cpu_s", "seconds of processor time, all processes together (default: as --wall)"),
    "memory": ("memory_bytes", "bytes of all processes and files, as 64M (default: 256M)"),
    "pids": ("pids", "processes and threads (default: 32)"),
    "disk": ("disk_bytes", "bytes of all files (default: 16M)"),
    "output": ("output_bytes", "bytes kept of stdout and of stderr (default: 64K)"),
}


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    top = add_verb(
        verbs,
        "sandbox",
        "run a command in a fresh, isolated box",
        """
        provegym sandbox run -- sh -c 'id; ls /; ls /proc'
        provegym sandbox run --wall 2 --memory 64M --stdin -- wc -l < FILE
        provegym doctor                                         what this machine can enforce
        """,
    )
    p = top.add_subparsers(metavar="run", required=True).add_parser(
        "run", help="run it; the exit status is the command's, or 125 if it did not end by itself"
    )
    for name, (_, text) in _LIMITS.items():
        p.add_argument(f"--{name}", type=_whole if name not in ("wall", "cpu") else float, help=text)
    p.add_argument("--loopback", action="store_true", help="bring up 127.0.0.1; there is no other network")
    p.add_argument("--require", action="append", default=[], help="a guarantee without which nothing is run: memory=enforced")
    p.add_argument("--level", help="full, delegated, namespaces or plain (default: the best that works)")
    p.add_argument("--stdin", action="store_true", help="pass standard input on; it is read to its end first")
    p.add_argument("command", nargs="+", metavar="COMMAND", help="after --: the program and its arguments")
    p.set_defaults(run=run)


def _whole(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"takes a whole number, with K, M or G for 1024 and its powers, not {text!r}")
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2]]


def run(args: argparse.Namespace) -> int:
    """Runs the command and passes on what it wrote."""
    from provegym.sandbox import Sandbox

    limits: dict[str, Any] = {key: getattr(args, name) for name, (key, _) in _LIMITS.items()}
    stdin = sys.stdin.buffer.read() if args.stdin else b""
    with Sandbox(require=args.require, level=args.level) as boxes:
        end = boxes.run(args.command, stdin=stdin, loopback=args.loopback, **limits)
    sys.stdout.buffer.write(end.stdout)
    sys.stdout.flush()
    sys.stderr.buffer.write(end.stderr)
    used = f"cpu {end.cpu_s:.3f} s, memory {end.memory_peak_bytes >> 10} KiB, disk {end.disk_bytes} bytes"
    print(f"[{end.text}; {used}]", file=sys.stderr)
    return end.exit_code if end.reason == "exit" else 125

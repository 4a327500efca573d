"""What the verbs share: tables, a progress bar with the time left, JSON on request, common arguments."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from provegym.errors import BadInputError, StoreError

__all__ = [
    "Progress",
    "Verbs",
    "add_json",
    "add_source",
    "add_verb",
    "count",
    "explained",
    "parts",
    "print_json",
    "rates",
    "read_json",
    "source",
    "table",
]

Verbs = Any  # argparse keeps the type of add_subparsers private


def add_verb(verbs: Verbs, name: str, what: str, examples: str) -> Any:
    """Adds a verb, with what it does and examples in its help."""
    return verbs.add_parser(
        name,
        help=what,
        description=f"{what[0].upper()}{what[1:]}.",
        epilog="examples:\n" + textwrap.indent(textwrap.dedent(examples).strip(), "  "),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def count(text: str) -> int:
    """Reads a number of things, at least one."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"takes a whole number from 1, not {text!r}")
    return int(text)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Adds ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_source(parser: argparse.ArgumentParser) -> None:
    """Adds what chooses tasks."""
    parser.add_argument("--family", action="append", help="a family to draw from (again for more)")
    parser.add_argument("--preset", action="append", help="named settings to draw from (again for more)")
    parser.add_argument("--dial", action="append", metavar="NAME=VALUE", help="one setting (again for more)")
    parser.add_argument("--split", type=Path, help="split manifest; every mode but free needs one")
    parser.add_argument("--mode", default="free", help="free, train, eval or test (default: free)")
    parser.add_argument("--seed", type=int, default=0, help="seed that the tasks are drawn with (default: 0)")


def source(args: argparse.Namespace) -> dict[str, Any]:
    """Returns what ``add_source`` read, as ``provegym.sample`` and ``Env`` take it, the seed included."""
    dials = None
    if args.dial:
        pairs = [d.partition("=") for d in args.dial]
        for name, equals, _ in pairs:
            if not equals:
                raise BadInputError(f"--dial takes NAME=VALUE, not {name!r}")
        dials = {name: value for name, _, value in pairs}
    chosen = {"family": args.family, "preset": args.preset, "dials": dials, "split": args.split}
    return {**chosen, "mode": args.mode, "seed": args.seed}


def parts(components: Mapping[str, bool]) -> str:
    """Says which parts of success hold."""
    return " ".join(f"{k}={'yes' if components.get(k) else 'no'}" for k in ("goals", "path", "collateral", "commit"))


def explained(why: Mapping[str, Any]) -> str:
    """Says in words what ``Env.explain`` returned."""
    lines = [f"{'met   ' if f['met'] else 'MISSED'}  {f['part']:6}  {f['text']}" for f in why["required"]]
    lines += [f"CHANGED unasked {text}" for text in why["unrequested"]] or ["nothing was changed unasked"]
    decisive = why["decisive"]
    if decisive and decisive["call"] >= 0:
        lines.append(f"lost at call {decisive['call'] + 1}: {decisive['kind']}, {decisive['why']}")
    return "\n".join(lines)


def print_json(value: Any) -> None:
    """Prints a value as JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def rates(found: Mapping[str, Any] | None, of: Mapping[str, Any]) -> str:
    """Says what the rates of a pack's controls are, and whether they are of its sources as they stand."""
    if found is None:
        return "nobody has measured the rates of its controls (check-pack --full --write)"
    same = "these sources" if (found["hash"], found["check_hash"]) == (of["hash"], of["check_hash"]) else "EARLIER SOURCES"
    both = found["false_pass"], found["false_fail"]
    passed, failed = (f"{r['wrong']} of {r['episodes']} (at most {r['upper']:.2g})" for r in both)
    much = f"{found['seeds']} seeds a family, {found['dial_seeds']} a dial end"
    return f"false passes {passed}, false fails {failed}; version {found['version']}, {same}, {much}"


def read_json(path: Path) -> Any:
    """Returns what a JSON file holds."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as err:
        raise StoreError(f"{path}: {err.strerror}") from err
    except ValueError as err:
        raise BadInputError(f"{path} is not JSON: {err}") from err


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value) if isinstance(value, str | int) else json.dumps(value, ensure_ascii=False)


def table(rows: Iterable[Sequence[Any]], head: Sequence[str]) -> None:
    """Prints rows under a head, numbers to the right. On a terminal the last column is wrapped to its width."""
    rows = list(rows)
    cells = [[_cell(v) for v in row] for row in rows]
    widths = [max(len(r[i]) for r in [list(head), *cells]) for i in range(len(head))]
    right = [
        bool(rows) and all(isinstance(r[i], int | float) and not isinstance(r[i], bool) for r in rows) for i in range(len(head))
    ]
    indent = sum(widths[:-1]) + 2 * (len(widths) - 1)
    room = shutil.get_terminal_size().columns - indent if sys.stdout.isatty() else 0
    for line in [list(head), *cells]:
        last = textwrap.wrap(line[-1], room) if room >= 20 and len(line[-1]) > room else [line[-1]]
        out = [v.rjust(w) if r else v.ljust(w) for v, w, r in zip([*line[:-1], last[0]], widths, right, strict=True)]
        print("  ".join(out).rstrip())
        for more in last[1:]:
            print(" " * indent + more)


def _span(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


class Progress:
    """A bar on standard error; where that is no terminal, a line a minute."""

    def __init__(self, title: str) -> None:
        """Starts the clock."""
        self.title, self.began, self.said, self.shown = title, time.monotonic(), time.monotonic(), False

    def show(self, done: int, total: int, note: str = "") -> None:
        """Draws it at done of total."""
        now = time.monotonic()
        share = done / total if total else 0.0
        spent = now - self.began
        left = f", {_span(spent / share - spent)} left" if share > 0 else ""
        text = f"{done}/{total}{left}{note and ', ' + note}"
        if not sys.stderr.isatty():
            if now - self.said > 60:
                print(f"{self.title} {text}", file=sys.stderr, flush=True)
                self.said = now
            return
        room = shutil.get_terminal_size().columns - len(self.title) - len(text) - 5
        width = max(0, min(30, room))
        print(f"\r{self.title} [{'#' * int(width * share):<{width}}] {text}\x1b[K", end="", file=sys.stderr, flush=True)
        self.shown = True

    def close(self) -> None:
        """Ends the line."""
        if self.shown:
            print(file=sys.stderr)

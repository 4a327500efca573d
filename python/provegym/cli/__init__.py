"""The ``provegym`` command: a thin view over the library, for people at a terminal."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

import provegym
from provegym.errors import ProveGymError

__all__ = ["main"]


class Parser(argparse.ArgumentParser):
    """A parser that names the nearest choice."""

    def error(self, message: str) -> NoReturn:
        """Ends the process with status 2."""
        found = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if found:
            near = difflib.get_close_matches(found[1], re.findall(r"[\w-]+", found[2]), 1)
            message += f"; did you mean {near[0]}?" if near else ""
        super().error(message)


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the whole command."""
    from provegym.cli import check, doctor, play, prove, run, search, tasks, trace

    top = Parser(prog="provegym", description="A training gym for agents.")
    top.add_argument("--version", action="version", version=f"provegym {provegym.__version__}")
    verbs = top.add_subparsers(title="verbs", metavar="VERB", required=True)
    for module in (tasks, play, run, check, search, prove, trace, doctor):
        module.add(verbs)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: Its arguments; those of the process if None.

    Returns:
        The exit status: 0, 1 for a check that failed, 2 for bad input, 130 for Ctrl-C.
    """
    try:
        args = parser().parse_args(argv)
        status: int = args.run(args)
        sys.stdout.flush()
        return status
    except ProveGymError as err:
        print(f"provegym: {err}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nprovegym: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of a pipe has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141

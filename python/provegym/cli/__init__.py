"""The ``provegym`` command: a thin view over the library, for people at a terminal."""

from __future__ import annotations

import argparse
import difflib
import functools
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import provegym
from provegym.errors import ProveGymError

__all__ = ["main"]


class Parser(argparse.ArgumentParser):
    """A parser that names the nearest choice and shows how a verb is used."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuses what it does not know, here, where the verb's own options are known."""
        found, extra = super().parse_known_args(args, namespace)
        if extra:
            options = [o for action in self._actions for o in action.option_strings]
            near = difflib.get_close_matches(extra[0].partition("=")[0], options, 1)
            self.error(f"does not take {' '.join(extra)}" + (f"; did you mean {near[0]}?" if near else ""))
        return found, extra

    def error(self, message: str) -> NoReturn:
        """Ends the process with status 2."""
        found = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if found:
            near = difflib.get_close_matches(found[1], re.findall(r"[\w-]+", found[2]), 1)
            message += f"; did you mean {near[0]}?" if near else ""
        self.exit(2, f"{self.prog}: {message}\n{self.format_usage()}see: {self.prog} --help\n")


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the whole command."""
    from provegym.cli import check, controls, doctor, play, prove, run, sandbox, search, tasks, trace

    top = Parser(
        prog="provegym",
        description="A training gym for agents.",
        epilog="`provegym VERB --help` has examples. Exit status: 1 for a check that failed, 2 for bad input, 130 for Ctrl-C.",
    )
    top.add_argument("--version", action="version", version=f"provegym {provegym.__version__}")
    top.set_defaults(run=functools.partial(_help, top))
    verbs = top.add_subparsers(title="verbs", metavar="VERB")
    for module in (tasks, play, run, check, controls, search, prove, trace, sandbox, doctor):
        module.add(verbs)
    return top


def _help(top: argparse.ArgumentParser, args: argparse.Namespace) -> int:
    """No verb: says what there is."""
    top.print_help()
    return 0


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

"""``provegym play``: be the agent of one text episode."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from typing import Any

from provegym.cli.run import tasks
from provegym.cli.terminal import Verbs, add_source, add_verb, parts, source
from provegym.env import Env

__all__ = ["add"]

_HELP = """\
A call is JSON, {"tool": "name", "args": {…}}, or shorter: name key=value key=value
?        the tools on offer          ? name   one of them
Ctrl-D   leave"""


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = add_verb(
        verbs,
        "play",
        "work on one task at the terminal",
        """
        provegym play tooluse --preset L0
        provegym play 'tooluse@2/refusal#seed=7'
        provegym play --action '{"tool": "now"}' 'tooluse@2/refusal#seed=7'
        """,
    )
    p.add_argument("target", metavar="PACK|TASK", help="the pack to draw a task from, or a task id")
    p.add_argument("--action", action="append", help="play this and leave (again for more); - is all of standard input, as one")
    add_source(p)
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plays until the episode ends."""
    chosen = source(args)
    [task], _ = tasks([args.target], 1 if "#seed=" not in args.target else None, chosen)
    env = Env(pack=task.partition("@")[0], split=args.split, mode=args.mode)
    instruction, info = env.reset(options={"task": task})
    limit = info["limits"]["calls"]
    print(info["task"], *([] if args.action else [_HELP]), "", instruction, "", sep="\n")
    reward, done = 0.0, False
    for action in map(_given, args.action) if args.action else _typed(env, limit):
        result, reward, terminated, truncated, info = env.step(action)
        print(result)
        done = terminated or truncated
        if done:
            break
    if done:
        print(f"\n{info['outcome']}: reward {reward:g} after {info['calls']} of {limit} calls; {parts(info['components'])}")
    return 0


def _given(action: str) -> str:
    return sys.stdin.buffer.read().decode(errors="replace") if action == "-" else action


def _typed(env: Env, limit: int) -> Iterator[str]:
    """Yields the actions that are typed, until the end of the input."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 (input then edits lines and remembers them)
    calls = 0
    while True:
        try:
            line = input(f"{calls}/{limit}> ").strip()
        except EOFError:
            print()
            return
        if line.startswith("?"):
            _describe(env, line[1:].strip())
        elif line:
            calls += 1
            yield line if line.startswith("{") else _call(line)


def _call(line: str) -> str:
    """Returns the JSON of a call written as ``name key=value …``; a list is ``key=a,b``."""
    tool, *pairs = line.split()
    args: dict[str, Any] = {}
    for key, equals, value in (p.partition("=") for p in pairs):
        if not equals:
            return line
        try:
            args[key] = json.loads(value)
        except ValueError:
            args[key] = value.split(",") if "," in value else value
    return json.dumps({"tool": tool, "args": args})


def _describe(env: Env, name: str) -> None:
    tools = {t["function"]["name"]: t["function"] for t in env.tools}
    if name in tools:
        print(json.dumps(tools[name], indent=2, ensure_ascii=False))
        return
    if name:
        print(f"no tool is called {name}; these are on offer:")
    for tool in tools.values():
        required = tool["parameters"]["required"]
        params = " ".join(p if p in required else f"[{p}]" for p in tool["parameters"]["properties"])
        print(f"{tool['name']} {params}".rstrip() + f"\n    {tool['description']}")

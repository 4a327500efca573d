"""``provegym play``: be the agent of one text episode."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from provegym.cli.terminal import Verbs, add_source, source
from provegym.env import Env

__all__ = ["add"]

_HELP = """\
A call is JSON, {"tool": "name", "args": {…}}, or shorter: name key=value key=value
?        the tools on offer          ? name   one of them
Ctrl-D   leave"""


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = verbs.add_parser("play", help="work on one task at the terminal")
    p.add_argument("pack", help="the pack")
    p.add_argument("--task", help="a task id; else one is drawn")
    add_source(p)
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plays until the episode ends."""
    chosen = source(args)
    seed = chosen.pop("seed")
    env = Env(pack=args.pack, **chosen)
    instruction, info = env.reset(seed=seed, options={"task": args.task} if args.task else None)
    print(f"{info['task']}\n{_HELP}\n\n{instruction}\n")
    done = False
    while not done:
        try:
            line = input("> ").strip()
        except EOFError:
            print()
            return 0
        if not line:
            continue
        if line.startswith("?"):
            _describe(env, line[1:].strip())
            continue
        result, reward, terminated, truncated, info = env.step(line if line.startswith("{") else _call(line))
        print(result)
        done = terminated or truncated
    parts = " ".join(f"{k}={'yes' if v else 'no'}" for k, v in info["components"].items())
    print(f"\n{info['outcome']}: reward {reward:g} after {info['calls']} calls; {parts}", file=sys.stdout)
    return 0


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
    for tool in (t["function"] for t in env.tools):
        if name == tool["name"]:
            print(json.dumps(tool, indent=2, ensure_ascii=False))
        elif not name:
            required = tool["parameters"]["required"]
            params = " ".join(p if p in required else f"[{p}]" for p in tool["parameters"]["properties"])
            print(f"{tool['name']} {params}\n    {tool['description']}")

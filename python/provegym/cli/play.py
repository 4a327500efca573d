"""``provegym play``: be the agent of one text episode."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from provegym.cli.run import tasks
from provegym.cli.terminal import Verbs, add_source, add_verb, explained, parts, source
from provegym.env import Env
from provegym.trace import Trace

__all__ = ["add"]

_HELP = """\
A call is JSON, {"tool": "name", "args": {…}}, or shorter: name key=value key="two words" key=a,b
help     the tools on offer          help name   one of them, in full
task     what is asked, once more    history     the calls so far, with their results
quit     leave (or Ctrl-D)"""


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = add_verb(
        verbs,
        "play",
        "work on one task at the terminal",
        """
        provegym play tooluse --family for-each --seed 7        the reward is explained at the end
        provegym play 'tooluse@2/refusal#seed=7' --trace t.db
        provegym play --action '{"tool": "now"}' 'tooluse@2/refusal#seed=7'
        """,
    )
    p.add_argument("target", metavar="PACK|TASK", help="the pack to draw a task from, or a task id")
    p.add_argument("--action", action="append", help="play this and leave (again for more); - is all of standard input, as one")
    p.add_argument("--trace", type=Path, help="record into this store")
    add_source(p)
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plays until the episode ends, then explains its reward."""
    chosen = source(args)
    [task], _ = tasks([args.target], 1 if "#seed=" not in args.target else None, chosen)
    pack = task.partition("@")[0]
    trace = Trace(args.trace, {"policy": "a person"}, pack=pack) if args.trace else None
    env = Env(pack=pack, split=args.split, mode=args.mode, trace=trace)
    instruction, info = env.reset(options={"task": task})
    limit = info["limits"]["calls"]
    print(info["task"], *([] if args.action else ["", _HELP]), "", instruction, "", sep="\n")
    history: list[tuple[str, str]] = []
    reward, done = 0.0, False
    for action in map(_given, args.action) if args.action else _typed(env, limit, history):
        result, reward, terminated, truncated, info = env.step(action)
        history.append((action, result))
        print(_shown(result))
        done = terminated or truncated
        if done:
            break
    if done:
        print(f"\n{info['outcome']}: reward {reward:g} after {info['calls']} of {limit} calls; {parts(info['components'])}")
        why = env.explain()
        if why:
            print("\n" + explained(why))
    env.close()
    if trace:
        trace.close()
        print(f"recorded in {args.trace}: see `provegym trace ls {args.trace}`")
    return 0


def _given(action: str) -> str:
    return sys.stdin.buffer.read().decode(errors="replace") if action == "-" else action


def _shown(result: str) -> str:
    """The result as it is, or on a terminal in lines."""
    return json.dumps(json.loads(result), indent=1, ensure_ascii=False) if sys.stdout.isatty() else result


def _typed(env: Env, limit: int, history: list[tuple[str, str]]) -> Iterator[str]:
    """Yields the actions that are typed, until the end of the input."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 (input then edits lines and remembers them)
    tools = {t["function"]["name"]: t["function"]["parameters"]["properties"] for t in env.tools}
    while True:
        try:
            line = input(f"{len(history)}/{limit}> ").strip()
        except EOFError:
            print()
            return
        word, _, rest = line.partition(" ")
        if word in tools or line.startswith("{"):  # a tool of such a name comes before the words below
            yield line if line.startswith("{") else _call(line, tools[word])
        elif word in ("help", "?"):
            _describe(env, rest.strip())
        elif line == "task":
            print(env.instruction)
        elif line == "history":
            for n, (action, result) in enumerate(history, 1):
                print(f"{n:4} {action}\n     {result}")
        elif line == "quit":
            return
        elif line:
            yield _call(line, {})


def _call(line: str, schema: dict[str, Any]) -> str:
    """Returns the JSON of a call written as ``name key=value …``, each value read as its parameter's type asks."""
    tool, *pairs = _words(line)
    args: dict[str, Any] = {}
    for key, equals, text in (p.partition("=") for p in pairs):
        if not equals:
            return line
        kind = schema.get(key, {}).get("type")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        if kind == "array" and not isinstance(value, list):
            value = text.replace('"', "").split(",")
        elif kind == "string" and not isinstance(value, str):
            value = text  # a postcode looks like a number
        args[key] = value
    return json.dumps({"tool": tool, "args": args}, ensure_ascii=False)


def _words(line: str) -> list[str]:
    """Splits at blanks, but not inside double quotes, which are kept: values are read as JSON first."""
    out, inside = [""], False
    for c in line:
        inside ^= c == '"'
        if c.isspace() and not inside:
            out.append("")
        else:
            out[-1] += c
    return [w for w in out if w]


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
    if not name:
        print("\n" + _HELP)

"""``provegym run``: one of the pack's own agents over many tasks."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from provegym.cli.terminal import Progress, Verbs, add_json, add_source, print_json, source, table
from provegym.tasks import rollout, sample
from provegym.trace import Trace

__all__ = ["add"]


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = verbs.add_parser("run", help="run one of a pack's agents over tasks")
    p.add_argument("pack", help="the pack")
    p.add_argument("--agent", default="oracle", help="the agent (default: oracle); `provegym tasks PACK` lists them")
    p.add_argument("-n", type=int, default=100, help="how many episodes (default: 100)")
    p.add_argument("--view", default="text", choices=["text", "structured"])
    p.add_argument("--trace", type=Path, help="record into this store")
    add_source(p)
    add_json(p)
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs it and prints a row for each family."""
    tasks = sample(args.pack, args.n, **source(args))
    trace = Trace(args.trace, {"policy": args.agent}, pack=args.pack) if args.trace else None
    bar = Progress("run")
    results = rollout(
        args.agent,
        tasks,
        view=args.view,
        mode=args.mode,
        split=args.split,
        trace=trace,
        progress=lambda done: bar.show(done, args.n),
    )
    bar.close()
    if trace:
        trace.close()
    if args.json:
        print_json(results)
        return 0
    families: dict[str, list[dict[str, Any]]] = {}
    for r in results:
        families.setdefault(r["task"].partition("/")[2].split("?")[0].split("#")[0], []).append(r)
    rows = [(name, *_summary(of)) for name, of in sorted(families.items())]
    table([*rows, ("all", *_summary(results))], ("family", "episodes", "success", "rate", "calls", "truncated", "invalid"))
    return 0


def _summary(results: list[dict[str, Any]]) -> tuple[Any, ...]:
    n = len(results)
    won = sum(r["success"] for r in results)
    outcome = [r["outcome"] for r in results]
    calls = sum(r["calls"] for r in results) / n if n else 0.0
    return (
        n,
        won,
        won / n if n else 0.0,
        calls,
        outcome.count("truncated"),
        outcome.count("invalid") + outcome.count("check_error"),
    )

"""``provegym run``: one of a pack's own agents over many tasks, or over those that are named."""

from __future__ import annotations

import argparse
import math
from collections import Counter
from pathlib import Path
from typing import Any

from provegym.cli.terminal import Progress, Verbs, add_json, add_source, add_verb, count, parts, print_json, source, table
from provegym.errors import BadInputError
from provegym.tasks import rollout, sample
from provegym.trace import Trace

__all__ = ["add", "wilson"]


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = add_verb(
        verbs,
        "run",
        "run one of a pack's agents over tasks",
        """
        provegym run tooluse                                    the oracle, 100 tasks
        provegym run tooluse --agent priority_heuristic --preset L2 -n 500 --trace t.db
        provegym run --agent nc6_minus_step --variant 1 --view structured 'tooluse@1/branch#seed=7'
        """,
    )
    p.add_argument("target", nargs="+", metavar="PACK|TASK", help="the pack to draw tasks from, or task ids")
    p.add_argument("--agent", default="oracle", help="the agent (default: oracle); `provegym tasks PACK` lists them")
    p.add_argument("--variant", type=int, default=0, help="which variant, of an agent that has several (default: 0)")
    p.add_argument("-n", type=count, help="how many tasks to draw (default: 100)")
    p.add_argument("--view", default="text", choices=["text", "structured"], help="how the agent acts (default: text)")
    p.add_argument("--trace", type=Path, help="record into this store")
    add_source(p)
    add_json(p)
    p.set_defaults(run=run)


def tasks(targets: list[str], n: int | None, chosen: dict[str, Any]) -> tuple[list[str], bool]:
    """Returns the tasks that a command line names, and whether it names each one."""
    named = ["#seed=" in t for t in targets]
    if all(named):
        if n is not None or chosen["family"] or chosen["preset"] or chosen["dials"]:
            raise BadInputError("a task id says it all: leave out -n, --family, --preset and --dial, or name a pack")
        return targets, True
    if len(targets) > 1:
        odd = targets[named.index(False)]
        raise BadInputError(f"{odd!r} is no task id (pack@version/family#seed=…): name one pack, or task ids alone")
    if "/" in targets[0]:
        raise BadInputError(f"{targets[0]!r} is a condition: add #seed=…, or name the pack and choose with --family and --dial")
    return sample(targets[0], n or 100, **chosen), False


def run(args: argparse.Namespace) -> int:
    """Runs it and prints a row for each family, or for each task that was named."""
    ids, named = tasks(args.target, args.n, source(args))
    pack = ids[0].partition("@")[0]
    trace = Trace(args.trace, {"policy": args.agent}, pack=pack) if args.trace else None
    bar = Progress("run")
    results = rollout(
        args.agent,
        ids,
        view=args.view,
        mode=args.mode,
        split=args.split,
        trace=trace,
        variant=args.variant,
        progress=lambda done: bar.show(done, len(ids)),
    )
    bar.close()
    if trace:
        trace.close()
    if args.json:
        print_json(results)
        return 0
    if named:
        for r in results:
            print(f"{r['task']}\n  {_end(r)}")
        return 0
    families: dict[str, list[dict[str, Any]]] = {}
    for r in results:
        families.setdefault(r["task"].partition("/")[2].split("?")[0].split("#")[0], []).append(r)
    rows = [(name, *_summary(of)) for name, of in sorted(families.items())]
    table([*rows, ("all", *_summary(results))], ("family", "episodes", "passed", "rate", "95 % interval", "calls", "outcomes"))
    if trace:
        print(f"recorded in {args.trace}: see `provegym trace ls {args.trace}`")
    return 0


def _end(r: dict[str, Any]) -> str:
    """Says how one episode ended."""
    limit = f" by {r['limit']}" if r["limit"] else ""
    why = f": {r['why']}" if r["why"] else ""
    verdict = "passed" if r["success"] else "failed"
    return f"{verdict}: {r['outcome']}{limit} after {r['calls']} calls; {parts(r['components'])}{why}"


def _summary(results: list[dict[str, Any]]) -> tuple[Any, ...]:
    n, won = len(results), sum(r["success"] for r in results)
    low, high = wilson(won, n)
    ends = Counter(r["outcome"] + (f" ({r['limit']})" if r["limit"] else "") for r in results)
    return n, won, f"{won / n:.1%}", f"{low:.1%} to {high:.1%}", sum(r["calls"] for r in results) / n, _counts(ends)


def _counts(ends: Counter[str]) -> str:
    return ", ".join(f"{n} {name}" for name, n in sorted(ends.items()))


def wilson(passes: int, n: int) -> tuple[float, float]:
    """Returns the two-sided 95 % interval of a rate (Wilson 1927), n at least 1."""
    z = 1.959963984540054
    p = passes / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, (middle - half) / (1 + z * z / n)), min(1.0, (middle + half) / (1 + z * z / n))

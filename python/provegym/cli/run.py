"""``provegym run``: one of a pack's own agents, or a model behind an endpoint, over many tasks or over those that are named."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path
from typing import Any

from provegym.cli.terminal import Progress, Verbs, add_json, add_source, add_verb, count, parts, print_json, source, table
from provegym.controls import wilson
from provegym.errors import BadInputError
from provegym.policies.chat import Endpoint, play
from provegym.tasks import rollout, sample
from provegym.trace import Trace

__all__ = ["add"]

_LOST = ("invalid", "check_error")  # no verdict: they count for no rate


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = add_verb(
        verbs,
        "run",
        "run one of a pack's agents, or a language model, over tasks",
        """
        provegym run tooluse                                    the oracle, 100 tasks
        provegym run tooluse --agent priority_heuristic --preset L2 -n 500 --trace t.db
        provegym run --agent nc6_minus_step --variant 1 --view structured 'tooluse@2/branch#seed=7'
        provegym run tooluse --endpoint http://localhost:8000/v1 --model my-model -n 20
        """,
    )
    p.add_argument("target", nargs="+", metavar="PACK|TASK", help="the pack to draw tasks from, or task ids")
    p.add_argument("--agent", help="the agent (default: oracle); `provegym tasks PACK` lists them")
    p.add_argument("--variant", type=int, help="which variant, of an agent that has several (default: 0)")
    p.add_argument("--endpoint", metavar="URL", help="a model plays instead, behind this OpenAI-compatible endpoint (…/v1)")
    p.add_argument("--model", help="the model's name there")
    p.add_argument("--key-variable", metavar="NAME", help="the environment variable that holds the endpoint's key")
    p.add_argument("--max-tokens", type=count, help="tokens of an episode after its first prompt; no limit if left out")
    p.add_argument("--concurrency", type=count, default=16, help="episodes that a model plays at a time (default: 16)")
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
    model = _model(args)
    ids, named = tasks(args.target, args.n, source(args))
    pack = ids[0].partition("@")[0]
    agent = args.agent or "oracle"
    trace = Trace(args.trace, {"policy": model.name if model else agent}, pack=pack) if args.trace else None
    bar = Progress("run")
    where: dict[str, Any] = {"mode": args.mode, "split": args.split, "trace": trace}
    where["progress"] = lambda done: bar.show(done, len(ids))
    if model:
        results = play(model, ids, noise=args.seed, max_tokens=args.max_tokens, batch=args.concurrency, **where)
    else:
        results = rollout(agent, ids, view=args.view, variant=args.variant or 0, **where)
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


def _model(args: argparse.Namespace) -> Endpoint | None:
    """Returns the model that a command line names, if it names one."""
    if args.endpoint is None:
        for option in ("model", "key_variable", "max_tokens"):
            if getattr(args, option) is not None:
                raise BadInputError(f"--{option.replace('_', '-')} goes with --endpoint URL")
        return None
    if args.agent or args.variant is not None or args.view != "text" or not args.model:
        raise BadInputError("--endpoint goes with --model NAME, and without --agent, --variant and --view structured")
    key = None
    if args.key_variable:
        key = os.environ.get(args.key_variable)
        if not key:
            raise BadInputError(f"the environment variable {args.key_variable} is not set")
    return Endpoint(args.endpoint, args.model, key, concurrency=args.concurrency, seed=args.seed)


def _end(r: dict[str, Any]) -> str:
    """Says how one episode ended."""
    limit = f" by {r['limit']}" if r["limit"] else ""
    why = f": {r['why']}" if r["why"] else ""
    verdict = "lost" if r["outcome"] in _LOST else "passed" if r["success"] else "failed"
    return f"{verdict}: {r['outcome']}{limit} after {r['calls']} calls; {parts(r['components'])}{why}"


def _summary(results: list[dict[str, Any]]) -> tuple[Any, ...]:
    n, won = len(results), sum(r["success"] for r in results)
    judged = sum(r["outcome"] not in _LOST for r in results)
    low, high = wilson(won, judged) if judged else (0.0, 1.0)
    rate = f"{won / judged:.1%}" if judged else None
    ends = Counter(r["outcome"] + (f" ({r['limit']})" if r["limit"] else "") for r in results)
    return n, won, rate, f"{low:.1%} to {high:.1%}", sum(r["calls"] for r in results) / n, _counts(ends)


def _counts(ends: Counter[str]) -> str:
    return ", ".join(f"{n} {name}" for name, n in sorted(ends.items()))

"""``provegym break``: where one of the pack's agents fails, and the smallest cause of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from provegym.breaker import Breaker
from provegym.cli.terminal import Progress, Verbs, add_json, print_json, table
from provegym.split import Split
from provegym.tasks import rollout

__all__ = ["add"]

_BATCH = 64


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = verbs.add_parser("break", help="search the training region for where an agent of the pack fails")
    p.add_argument("pack", help="the pack")
    p.add_argument(
        "--agent",
        default="priority_heuristic",
        help="the agent (default: priority_heuristic); `provegym tasks PACK` lists them",
    )
    p.add_argument("--split", type=Path, help="split manifest; without one nothing is held out")
    p.add_argument("--budget", type=int, default=1500, help="episodes to spend (default: 1500)")
    p.add_argument("--tau", type=float, help="success below this rate is a failure")
    p.add_argument("--seed", type=int, default=0, help="seed of the search (default: 0)")
    p.add_argument("--view", default="text", choices=["text", "structured"])
    add_json(p)
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Searches, and prints the causes."""
    split = Split.of(args.split) if args.split else Split.freeze({"pack": args.pack})
    bar, spent = Progress("break"), 0
    with Breaker(args.pack, split=split, key=args.seed, checkpoint=args.agent, budget=args.budget, tau=args.tau) as search:
        while probes := search.ask(_BATCH):
            results = rollout(args.agent, [p.task for p in probes], view=args.view, mode="train", split=split)
            if search.tell(_told(p.id, r) for p, r in zip(probes, results, strict=True)):
                break
            spent += len(probes)
            bar.show(min(spent, args.budget), args.budget)
        report = search.report()
    bar.close()
    if args.json:
        print_json(report)
        return 0
    causes = report.get("causes") or []
    table(
        [(c["id"], c["status"], c["q"]["q"], c["q"]["lo"], c["q"]["hi"], c["mode"], c["spent"]) for c in causes],
        ("cause", "status", "fails", "from", "to", "how", "episodes"),
    )
    print(f"{len(causes)} causes")
    return 0


def _told(probe: Any, result: dict[str, Any]) -> dict[str, Any]:
    lost = result["outcome"] in ("invalid", "check_error")
    return {"id": probe, "failed": not lost and not result["success"], "lost": lost}

"""``provegym break``: where one of the pack's agents fails, and the smallest cause of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from provegym.breaker import Breaker
from provegym.cli.terminal import Progress, Verbs, add_json, add_verb, count, print_json
from provegym.split import Split
from provegym.tasks import pack, rollout

__all__ = ["add"]

_BATCH = 64


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = add_verb(
        verbs,
        "break",
        "search the training region for where an agent of the pack fails",
        """
        provegym break tooluse --agent blind_oracle
        provegym break tooluse --agent expected_value --split split.json --budget 3000 --json
        """,
    )
    p.add_argument("pack", help="the pack")
    p.add_argument("--agent", help="the agent (default: the pack's first baseline); `provegym tasks PACK` lists them")
    p.add_argument("--split", type=Path, help="split manifest; without one nothing is held out")
    p.add_argument("--budget", type=count, default=1500, help="episodes to spend at most (default: 1500)")
    p.add_argument("--tau", type=float, help="a condition fails when the agent fails there at least this often (default: 0.5)")
    p.add_argument("--seed", type=int, default=0, help="seed of the search (default: 0)")
    p.add_argument("--view", default="text", choices=["text", "structured"], help="how the agent acts (default: text)")
    add_json(p)
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Searches, and prints the causes."""
    split = Split.of(args.split) if args.split else Split.freeze({"pack": args.pack})
    agents = pack(args.pack)["agents"]
    agent = args.agent or next((a["name"] for a in agents if a["kind"] == "baseline"), agents[0]["name"])
    bar, spent = Progress("break"), 0
    with Breaker(args.pack, split=split, key=args.seed, checkpoint=agent, budget=args.budget, tau=args.tau) as search:
        while probes := search.ask(_BATCH):
            results = rollout(agent, [p.task for p in probes], view=args.view, mode="train", split=split)
            if search.tell(_told(p.id, r) for p, r in zip(probes, results, strict=True)):
                break
            spent += len(probes)
            bar.show(min(spent, args.budget), args.budget)
        report = search.report(text=True)
    bar.close()
    text = report.pop("text")
    print_json(report) if args.json else print(text, end="")
    return 0


def _told(probe: Any, result: dict[str, Any]) -> dict[str, Any]:
    lost = result["outcome"] in ("invalid", "check_error")
    failed = not lost and not result["success"]
    wrong = [k for k, v in result["components"].items() if not v]
    mode = f"{result['outcome']} {result['limit'] or 'without ' + ', '.join(wrong)}" if failed else None
    return {"id": probe, "failed": failed, "lost": lost, "mode": mode}

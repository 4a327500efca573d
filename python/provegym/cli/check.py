"""``provegym check-pack``: the pack's own proof that its checks can be trusted."""

from __future__ import annotations

import argparse
from typing import Any

from provegym import _lib
from provegym.cli.terminal import Progress, Verbs, add_json, add_verb, count, print_json, table

__all__ = ["add"]


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = add_verb(
        verbs,
        "check-pack",
        "hold a pack to its controls: the oracle and positive ones must score 1, negative ones 0, on every seed",
        """
        provegym check-pack tooluse                             the proof, minutes
        provegym check-pack tooluse --family branch --dial-seeds 20
        """,
    )
    p.add_argument("pack", help="the pack")
    p.add_argument("--seeds", type=count, help="seeds for each family at preset L1, or its base (default: 2000)")
    p.add_argument("--dial-seeds", type=count, help="seeds for each family at each end of each dial (default: 300)")
    p.add_argument("--family", action="append", help="only this family (again for more)")
    add_json(p)
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Checks; the exit status is 1 if anything failed."""
    asked = {"pack": args.pack, "seeds": args.seeds, "dial_seeds": args.dial_seeds, "families": args.family}
    bar = Progress(f"check {args.pack}")
    with _lib.Handle(_lib.request("check.new", asked)["handle"]) as job:
        for answer in _lib.steps("check.step", handle=int(job.handle)):
            bar.show(answer["episodes"], answer["total"], f"{answer['failed']} failed")
    bar.close()
    if args.json:
        print_json(answer)
        return 0 if answer["ok"] else 1
    _controls(answer["rows"])
    for f in answer["failures"] or []:
        print(f"\n{f['control']} on {f['task']} ({f['view']} view): {f['text']}\n  {f['rerun']}")
    more = answer["failed"] - len(answer["failures"] or [])
    if more > 0:
        print(f"\n… and {more} more")
    verdict = "ok" if answer["ok"] else "FAILED"
    print(f"\n{args.pack}: {verdict}, {answer['episodes']} episodes, {answer['failed']} not as they must be")
    return 0 if answer["ok"] else 1


def _controls(rows: list[dict[str, Any]]) -> None:
    """Prints a row for each control and view, then the conditions that failed."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for r in rows:
        groups.setdefault((r["control"], r["kind"], r["view"]), []).append(r)
    table(
        [
            (*k, *(sum(r[f] for r in g) for f in ("episodes", "passes", "broken", "void")), all(r["ok"] for r in g))
            for k, g in groups.items()
        ],
        ("control", "kind", "view", "episodes", "passes", "broken", "void", "ok"),
    )
    failed = [r for r in rows if not r["ok"]]
    if failed:
        print("\nnot as it must be:")
        head = ("control", "view", "condition", "episodes", "passes", "upper", "bound")
        table([[r[k] for k in head] for r in failed], head)
    if any(r["bound"] and not r["passes"] for r in failed):
        print("with so few episodes no rate can be bounded so tightly, even if none passes: give more --seeds")

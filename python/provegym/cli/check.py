"""``provegym check-pack``: the pack's own proof that its checks can be trusted."""

from __future__ import annotations

import argparse
from typing import Any

from provegym import _lib
from provegym.cli.terminal import Progress, Verbs, add_json, print_json, table

__all__ = ["add"]


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = verbs.add_parser("check-pack", help="oracle must score 1, negative controls 0, positive controls 1, on every seed")
    p.add_argument("pack", help="the pack")
    p.add_argument("--seeds", type=int, help="seeds for each family at its middle preset")
    p.add_argument("--dial-seeds", type=int, help="seeds for each end of each dial")
    p.add_argument("--family", action="append", help="only this family (again for more)")
    add_json(p)
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Checks; the exit status is 1 if anything failed."""
    asked = {"pack": args.pack, "seeds": args.seeds, "dial_seeds": args.dial_seeds, "families": args.family}
    bar = Progress(args.pack)
    with _lib.Handle(_lib.request("check.new", asked)["handle"]) as job:
        for answer in _lib.steps("check.step", handle=int(job.handle)):
            bar.show(answer["episodes"], answer["total"], f"{len(answer.get('failures') or [])} failures")
    bar.close()
    if args.json:
        print_json(answer)
        return 0 if answer["ok"] else 1
    _controls(answer["rows"])
    for f in answer["failures"] or []:
        print(f"\n{f['control']} on {f['task']} ({f['view']} view): {f['text']}\n  {f['rerun']}")
    print(f"{args.pack}: {'ok' if answer['ok'] else 'FAILED'}, {answer['episodes']} episodes")
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

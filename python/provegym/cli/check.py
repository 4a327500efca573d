"""``provegym check-pack``: the pack's own proof that its checks can be trusted."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from provegym import _lib
from provegym.cli.terminal import Progress, Verbs, add_json, add_verb, count, print_json, rates, table
from provegym.errors import BadInputError, StoreError
from provegym.tasks import pack

__all__ = ["add"]


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = add_verb(
        verbs,
        "check-pack",
        "hold a pack to its controls: the oracle and positive ones must score 1, negative ones 0, on every seed",
        """
        provegym check-pack tooluse                             the proof, minutes
        provegym check-pack tooluse --full --write packs/tooluse/controls.json    what a release passes, and keeps: half an hour
        provegym check-pack tooluse --family branch --dial-seeds 20
        """,
    )
    p.add_argument("pack", help="the pack")
    p.add_argument("--full", action="store_true", help="10,000 seeds for each family")
    p.add_argument("--seeds", type=count, help="seeds for each family at preset L1, or its base (default: 2000)")
    p.add_argument("--dial-seeds", type=count, help="seeds for each family at each end of each dial (default: 300)")
    p.add_argument("--level-tasks", type=count, help="tasks that every level of each dial is played on (default: 1300)")
    p.add_argument("--family", action="append", help="only this family (again for more)")
    p.add_argument("--write", type=Path, metavar="FILE", help="keep the controls' rates there, if all is as it must be")
    add_json(p)
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Checks; the exit status is 1 if anything failed."""
    if args.write and args.family:
        raise BadInputError("--write keeps the rates of a whole pack: leave out --family")
    stored = pack(args.pack)
    asked = {
        "pack": args.pack,
        "full": args.full,
        "seeds": args.seeds,
        "dial_seeds": args.dial_seeds,
        "level_tasks": args.level_tasks,
        "families": args.family,
    }
    bar = Progress(f"check {args.pack}")
    with _lib.Handle(_lib.request("check.new", asked)["handle"]) as job:
        for answer in _lib.steps("check.step", handle=int(job.handle)):
            bar.show(answer["episodes"], answer["total"], f"{answer['failed']} failed")
    bar.close()
    if args.write and answer["ok"]:
        _write(args.write, answer["rates"])
    if args.json:
        print_json(answer)
        return 0 if answer["ok"] else 1
    _controls(answer["rows"])
    _references(answer["references"])
    _dials(answer["dials"])
    for f in answer["failures"] or []:
        print(f"\n{f['control']} on {f['task']} ({f['view']} view): {f['text']}\n  {f['rerun']}")
    more = answer["failed"] - len(answer["failures"] or [])
    if more > 0:
        print(f"\n… and {more} more")
    print(f"\nnow: {rates(answer['rates'], answer['rates'])}")
    print(f"kept with the pack: {rates(stored['rates'], stored)}")
    verdict = "ok" if answer["ok"] else "FAILED"
    kept = "" if not args.write else f"; rates written to {args.write}" if answer["ok"] else "; no rates written"
    print(f"\n{args.pack}: {verdict}, {answer['episodes']} episodes, {answer['failed']} not as they must be{kept}")
    return 0 if answer["ok"] else 1


def _write(path: Path, found: dict[str, Any]) -> None:
    try:
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    except OSError as err:
        raise StoreError(f"{path}: {err.strerror}") from err


def _references(rows: list[dict[str, Any]]) -> None:
    """Prints what the oracle and the baselines did, and whether their passes are worth something."""
    head = ("agent", "episodes", "passes", "hollow", "hollow_upper", "pairs", "pair_passes", "ok")
    if rows:
        print("\npasses that an audit flags, and pairs of a task and its twin, of which both must pass:")
        table([[r[k] for k in head] for r in rows], head)


def _dials(rows: list[dict[str, Any]]) -> None:
    """Prints for each dial how its levels go, easiest first."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for r in rows:
        groups.setdefault((r["dial"], r["agent"]), []).append(r)
    if groups:
        print("\npasses at each level of a dial, easiest first, on the same tasks; on those that end alike none may rise:")
        table(
            [
                (*k, g[0]["tasks"], " ".join(f"{r['level']}:{r['passes']}" for r in g), all(r["ok"] for r in g))
                for k, g in groups.items()
                if any(r["passes"] for r in g)
            ],
            ("dial", "agent", "tasks", "passes", "ok"),
        )


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

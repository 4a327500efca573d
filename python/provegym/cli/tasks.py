"""``provegym tasks``: what there is to work on."""

from __future__ import annotations

import argparse
from typing import Any

from provegym.cli.terminal import Verbs, add_json, add_source, add_verb, count, print_json, rates, source, table
from provegym.errors import BadInputError
from provegym.tasks import pack, packs, sample, task

__all__ = ["add"]


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = add_verb(
        verbs,
        "tasks",
        "list packs, or what one pack offers, or draw task ids, or describe a task",
        """
        provegym tasks                                          the packs
        provegym tasks tooluse                                  its families, dials, presets and agents
        provegym tasks tooluse -n 3 --family for-each --dial fanout=8
        provegym tasks 'tooluse@2/for-each#seed=7'              what an agent is told there
        """,
    )
    p.add_argument("target", nargs="?", metavar="PACK|TASK", help="a pack, or a task id; all packs if missing")
    p.add_argument("-n", type=count, help="draw so many task ids (default with --family, --preset, --dial or --split: 10)")
    add_source(p)
    add_json(p)
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints it."""
    chosen = source(args)
    draw = args.n is not None or any(chosen[k] for k in ("family", "preset", "dials", "split"))
    if draw and (not args.target or "#seed=" in args.target):
        raise BadInputError("tasks are drawn from a pack: name one, as in `provegym tasks tooluse -n 3`")
    if draw:
        ids = sample(args.target, args.n or 10, **chosen)
        print_json(ids) if args.json else print("\n".join(ids))
    elif args.target and "#seed=" in args.target:
        told = task(args.target)
        print_json(told) if args.json else _task(told)
    else:
        found = [pack(args.target)] if args.target else packs()
        if args.json:
            print_json(found)
        elif args.target:
            _pack(found[0])
        else:
            _packs(found)
    return 0


def _task(t: dict[str, Any]) -> None:
    limits = " ".join(f"{k}={v}" for k, v in t["limits"].items())
    print(f"{t['task']}\nlimits: {limits}\ntools: {' '.join(f['function']['name'] for f in t['tools'])}\n\n{t['instruction']}")


def _packs(found: list[dict[str, Any]]) -> None:
    table(
        [
            (p["name"], f"provegym/{p['title']}-v{p['version'] - 1}", len(p["families"]), len(p["dials"]), p["doc"])
            for p in found
        ],
        ("pack", "id", "families", "dials", "what it is"),
    )


def _pack(p: dict[str, Any]) -> None:
    print(f"{p['name']} version {p['version']}: {p['doc']}\ncontrols: {rates(p['rates'], p)}\n")
    table([(f["name"], f["doc"]) for f in p["families"]], ("family", "what it is"))
    print()
    table(
        [(d["name"], " ".join(d["levels"]), d["levels"][d["base"]], d["doc"]) for d in p["dials"]],
        ("dial", "levels", "base", "what it is"),
    )
    print()
    table([(s["name"], " ".join(f"{k}={v}" for k, v in s["settings"].items())) for s in p["presets"]], ("preset", "settings"))
    print()
    table([(a["name"], a["kind"], a["doc"]) for a in p["agents"]], ("agent", "kind", "what it does"))

"""``provegym tasks``: what there is to work on."""

from __future__ import annotations

import argparse
from typing import Any

from provegym.cli.terminal import Verbs, add_json, add_source, print_json, source, table
from provegym.tasks import pack, packs, sample

__all__ = ["add"]


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = verbs.add_parser("tasks", help="list packs, or what one pack offers, or draw task ids")
    p.add_argument("pack", nargs="?", help="a pack; all of them if missing")
    p.add_argument("-n", type=int, help="draw so many task ids")
    add_source(p)
    add_json(p)
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints it."""
    if args.pack and args.n:
        ids = sample(args.pack, args.n, **source(args))
        print_json(ids) if args.json else print("\n".join(ids))
        return 0
    found = [pack(args.pack)] if args.pack else packs()
    if args.json:
        print_json(found)
        return 0
    if not args.pack:
        table(
            [
                (p["name"], f"provegym/{p['title']}-v{p['version'] - 1}", len(p["families"]), len(p["dials"]), p["doc"])
                for p in found
            ],
            ("pack", "id", "families", "dials", "what it is"),
        )
        return 0
    p = found[0]
    print(f"{p['name']} version {p['version']}: {p['doc']}\n")
    table([(f["name"], f["doc"]) for f in p["families"]], ("family", "what it is"))
    print()
    table(
        [(d["name"], " ".join(d["levels"]), d["levels"][d["base"]], d["doc"]) for d in p["dials"]],
        ("dial", "levels", "base", "what it is"),
    )
    print()
    table([(s["name"], _settings(s)) for s in p["presets"]], ("preset", "settings"))
    print()
    table([(a["name"], a["kind"], a["doc"]) for a in p["agents"]], ("agent", "kind", "what it does"))
    return 0


def _settings(preset: dict[str, Any]) -> str:
    settings = preset["settings"]
    return " ".join(f"{k}={v}" for k, v in settings.items())

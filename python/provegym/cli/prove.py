"""``provegym prove``: the planning table before a plan is frozen, and the report of a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from provegym import prove
from provegym.cli.terminal import Verbs, add_json, print_json, read_json, table

__all__ = ["add"]


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = verbs.add_parser("prove", help="plan what could be detected; report what was")
    what = p.add_subparsers(title="what", metavar="WHAT", required=True)
    t = what.add_parser("table", help="the smallest change that a plan could detect, for each condition")
    t.add_argument("plan", type=Path, help="a draft or a frozen plan, as JSON")
    add_json(t)
    t.set_defaults(run=run_table)
    r = what.add_parser("report", help="judge looks from a trace and print the report")
    r.add_argument("plan", type=Path, help="the frozen plan")
    r.add_argument("trace", type=Path, help="the store that holds the episodes")
    r.add_argument("--look", action="append", required=True, help="a look of the plan (again for more)")
    r.add_argument("--key", type=int, required=True, help="what the plan was frozen with")
    add_json(r)
    r.set_defaults(run=run_report)


def run_table(args: argparse.Namespace) -> int:
    """Prints the planning table."""
    answer = prove.table(read_json(args.plan))
    if args.json:
        print_json(answer)
        return 0
    head = ("look", "condition", "tier", "family", "G", "dmin", "mde", "needs", "enough")
    table([[r.get(k) for k in head] for r in answer["rows"]], head)
    for warning in answer["warnings"] or []:
        print(f"note: {warning}")
    return 0


def run_report(args: argparse.Namespace) -> int:
    """Prints the report."""
    plan = read_json(args.plan)
    looks = [prove.look(plan, name, key=args.key, trace=args.trace) for name in args.look]
    report = prove.report(plan, looks)
    if args.json:
        print_json(report["report"])
    else:
        print(report["markdown"])
    return 0

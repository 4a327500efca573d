"""``provegym prove``: the planning table before a plan is frozen, and the report of a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from provegym import prove, trace
from provegym.cli.terminal import Verbs, add_json, add_verb, print_json, read_json, table

__all__ = ["add"]


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = add_verb(
        verbs,
        "prove",
        "plan what could be detected; report what was",
        """
        provegym prove table plan.json                          before any training: what could be seen at all
        provegym prove report demo-run/plan.json demo-run/trace.db --look final --key 101
        """,
    )
    what = p.add_subparsers(title="what", metavar="WHAT", required=True)
    t = add_verb(
        what,
        "table",
        "print the smallest change that a plan could detect, for each condition",
        """
        provegym prove table plan.json
        """,
    )
    t.add_argument("plan", type=Path, help="a draft or a frozen plan, as JSON")
    add_json(t)
    t.set_defaults(run=run_table)
    r = add_verb(
        what,
        "report",
        "judge looks from a trace and print the report",
        """
        provegym prove report demo-run/plan.json demo-run/trace.db --look final --key 101
        """,
    )
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


def _spent(store: Path, plan_hash: str) -> dict[str, int]:
    """Counts the episodes of the plan's runs by purpose."""
    count = dict.fromkeys(("train", "break", "monitor", "sealed", "baseline"), 0)
    for run in (r["id"] for r in trace.query(store, "runs") if r["plan_hash"] == plan_hash):
        after = 0
        while rows := trace.query(store, "episodes", run=run, after=after, limit=5000):
            after = rows[-1]["id"]
            for row in rows:
                if row["purpose"] in count:
                    count[row["purpose"]] += 1
    return count


def run_report(args: argparse.Namespace) -> int:
    """Prints the report."""
    plan = read_json(args.plan)
    looks = [prove.look(plan, name, key=args.key, trace=args.trace) for name in args.look]
    report = prove.report(plan, looks, spent=_spent(args.trace, plan.get("hash", "")))
    if args.json:
        print_json(report["report"])
    else:
        print(report["markdown"])
    return 0

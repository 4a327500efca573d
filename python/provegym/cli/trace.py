"""``provegym trace``: what was recorded, and whether it still holds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from provegym import trace
from provegym._batch import LIMITS, OUTCOMES
from provegym.cli.terminal import Progress, Verbs, add_json, print_json, table

__all__ = ["add"]


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = verbs.add_parser("trace", help="list, show, verify and replay recorded episodes")
    what = p.add_subparsers(title="what", metavar="WHAT", required=True)
    ls = what.add_parser("ls", help="runs, or with --run the episodes of one")
    ls.add_argument("--run", dest="of", type=int, help="a run's number")
    ls.add_argument("-n", type=int, default=50, help="at most so many rows (default: 50)")
    show = what.add_parser("show", help="one episode, step by step")
    show.add_argument("episode", type=int, help="its number")
    verify = what.add_parser("verify", help="check the store from end to end")
    replay = what.add_parser("replay", help="run recorded episodes again and compare digests")
    replay.add_argument("--episode", type=int, help="only this one")
    replay.add_argument("-n", type=int, help="at most so many")
    for sub, run in ((ls, run_ls), (show, run_show), (verify, run_verify), (replay, run_replay)):
        sub.add_argument("path", type=Path, help="the store")
        add_json(sub)
        sub.set_defaults(run=run)


def run_ls(args: argparse.Namespace) -> int:
    """Lists runs or episodes."""
    if args.of is None:
        rows = trace.query(args.path, "runs", limit=args.n)
    else:
        rows = trace.query(args.path, "episodes", run=args.of, limit=args.n)
    if not args.json:
        for r in rows:
            if "outcome" in r:
                r["outcome"], r["limit"] = OUTCOMES[r["outcome"]], LIMITS[r["limit"]]
    return _rows(rows, args.json)


def run_show(args: argparse.Namespace) -> int:
    """Prints the steps of an episode."""
    return _rows(trace.query(args.path, "steps", episode=args.episode), args.json)


def _rows(rows: list[dict[str, object]], as_json: bool) -> int:
    if as_json:
        print_json(rows)
    elif rows:
        head = [k for k in rows[0] if any(r.get(k) not in (None, "", 0) for r in rows)]
        table([[r.get(k) for k in head] for r in rows], head)
    else:
        print("nothing recorded")
    return 0


def run_verify(args: argparse.Namespace) -> int:
    """Checks the store; the exit status is 1 if it has problems."""
    answer = trace.verify(args.path)
    problems = answer.get("problems") or []
    if args.json:
        print_json(answer)
    else:
        for problem in problems:
            print(" ".join(f"{k}={v}" for k, v in problem.items()))
        print(f"{args.path}: {'ok' if answer['ok'] else 'DAMAGED'}, {answer['episodes']} episodes")
    return 0 if answer["ok"] else 1


def run_replay(args: argparse.Namespace) -> int:
    """Replays; the exit status is 1 if a digest differs."""
    bar, replayed = Progress("replay"), 0
    mismatches: list[Any] = []
    total = args.n or 0
    for answer in trace.replay(args.path, args.episode, args.n):
        replayed += answer["replayed"]
        mismatches += answer.get("mismatches") or []
        bar.show(replayed, total or replayed)
    bar.close()
    if args.json:
        print_json({"replayed": replayed, "mismatches": mismatches})
    else:
        for m in mismatches:
            print(f"episode {m['episode']} step {m['step']}: {m['what']} was {m['recorded']}, is {m['replayed']}")
        print(f"{args.path}: {replayed} episodes replayed, {len(mismatches)} differ")
    return 1 if mismatches else 0

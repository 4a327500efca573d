"""``provegym trace``: what was recorded, and whether it still holds."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

from provegym import trace
from provegym.cli.terminal import Progress, Verbs, add_json, add_verb, count, explained, print_json, table

__all__ = ["add"]


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = add_verb(
        verbs,
        "trace",
        "list, show, verify and replay recorded episodes",
        """
        provegym trace ls t.db                                  its runs
        provegym trace ls t.db --run 1                          the episodes of one
        provegym trace show t.db 17                             an episode, call by call, and why it was paid or not
        provegym trace verify t.db
        provegym trace replay t.db
        """,
    )
    what = p.add_subparsers(title="what", metavar="WHAT", required=True)

    def sub(name: str, does: str, example: str, run: Callable[[argparse.Namespace], int]) -> Any:
        q = add_verb(what, name, does, example)
        q.add_argument("path", type=Path, metavar="STORE", help="the store: a file, as --trace took it")
        add_json(q)
        q.set_defaults(run=run)
        return q

    ls = sub("ls", "list runs, or with --run the episodes of one", "provegym trace ls t.db --run 1 -n 20", run_ls)
    ls.add_argument("--run", dest="of", type=int, help="a run's number")
    ls.add_argument("-n", type=count, default=50, help="at most so many rows (default: 50)")
    show = sub("show", "show one episode, call by call, and why it was paid or not", "provegym trace show t.db 17", run_show)
    show.add_argument("episode", type=int, help="its number")
    sub("verify", "check the store from end to end", "provegym trace verify t.db", run_verify)
    replay = sub("replay", "run recorded episodes again and compare digests", "provegym trace replay t.db -n 1000", run_replay)
    replay.add_argument("--episode", type=int, help="only this one")
    replay.add_argument("-n", type=count, help="at most so many")


def run_ls(args: argparse.Namespace) -> int:
    """Lists runs or episodes."""
    what = "runs" if args.of is None else "episodes"
    rows = trace.query(args.path, what, limit=args.n, **({} if args.of is None else {"run": args.of}))
    if args.json:
        print_json(rows)
    elif not rows:
        print("nothing recorded" if args.of is None else f"no episodes of run {args.of}; `provegym trace ls` lists the runs")
    elif what == "runs":
        for r in rows:
            r["began"], r["ended"] = _time(r["started_us"]), _time(r["ended_us"]) if r.get("ended_us") else "no"
        _table(rows, ("id", "policy", "episodes", "began", "ended", "resumed", "checkpoint_hash", "plan_hash"))
    else:
        for r in rows:
            r["outcome"] += f" ({r['limit']})" if r["limit"] else ""
        _table(rows, ("id", "mode", "view", "purpose", "arm", "look", "outcome", "success", "calls", "why", "task"))
        if len(rows) == args.n:
            print(f"the first {args.n}; -n for more")
    return 0


def _time(us: int) -> str:
    return datetime.datetime.fromtimestamp(us / 1e6).strftime("%Y-%m-%d %H:%M:%S")


def _table(rows: list[dict[str, Any]], head: tuple[str, ...]) -> None:
    """Prints the columns that say anything."""
    used = [k for k in head if any(r.get(k) not in (None, "", 0) or r.get(k) is False for r in rows)]
    table([[r.get(k) for k in used] for r in rows], used)


def run_show(args: argparse.Namespace) -> int:
    """Prints an episode's calls, what they gave, and its reward explained; as JSON, its steps."""
    if args.json:
        print_json(trace.query(args.path, "steps", episode=args.episode))
        return 0
    for call in trace.query(args.path, "calls", episode=args.episode):
        print(f"{call['step']:4} {call['call']}\n     {call['result']}")
    for why in trace.query(args.path, "explanation", episode=args.episode):
        print("\n" + explained(why))
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

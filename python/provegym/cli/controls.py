"""``provegym controls``: what any Gymnasium environment pays agents that do no work."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from typing import Any

import gymnasium as gym

from provegym import controls
from provegym.cli.terminal import Progress, Verbs, add_json, add_verb, count, print_json, table
from provegym.errors import BadInputError

__all__ = ["add"]


def add(verbs: Verbs) -> None:
    """Adds the verb."""
    p = add_verb(
        verbs,
        "controls",
        "run do-nothing, random, constant and spam agents on any Gymnasium environment with text or discrete actions",
        """
        provegym controls --env CartPole-v1
        provegym controls --env provegym/ToolUse-v1 --kwargs '{"preset": "L1"}' --episodes 300
        provegym controls --import my_package --env mine/Desk-v0 --constant 'ok' --floor 0.01

        The exit status is 1 if an agent other than the random one is paid: they look at nothing.
        """,
    )
    p.add_argument("--env", required=True, metavar="ID", help="the environment, as gymnasium.make takes it (module:id too)")
    p.add_argument("--import", dest="modules", action="append", default=[], metavar="MODULE", help="import first, for its ids")
    p.add_argument("--kwargs", metavar="JSON", help="arguments of gymnasium.make, as a JSON object")
    p.add_argument("--episodes", type=count, default=100, help="of each agent (default: 100)")
    p.add_argument("--max-steps", type=count, default=1000, help="cut an episode after so many steps (default: 1000)")
    p.add_argument("--constant", action="append", default=[], metavar="ACTION", help="one more constant agent (again for more)")
    p.add_argument("--floor", type=float, default=0.0, help="mean return that is no pay (default: 0)")
    p.add_argument("--seed", type=int, default=0, help="episode i is reset with this plus i (default: 0)")
    add_json(p)
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plays and prints; the exit status is 1 if an agent that looks at nothing is paid."""
    if args.seed < 0:
        raise BadInputError(f"--seed is a whole number from 0, not {args.seed}")
    env, bar = _make(args), Progress("controls")
    try:
        rows = controls.measure(
            env, episodes=args.episodes, seed=args.seed, max_steps=args.max_steps, constants=args.constant, progress=bar.show
        )
    finally:
        bar.close()
        env.close()
    paid = controls.paid(rows, args.floor)
    if args.json:
        print_json({"env": args.env, "seed": args.seed, "floor": args.floor, "rows": rows, "paid": paid})
        return 1 if paid else 0
    print(f"{args.env}: return of an episode, {args.episodes} episodes an agent, seeds from {args.seed}\n")
    table(
        [(r["agent"], r["mean"], _span(r), r["least"], r["most"], r["steps"], r["cut"], r["doc"]) for r in rows],
        ("agent", "mean", "95 % interval", "least", "most", "steps", "cut", "what it does"),
    )
    print()
    for r in rows:
        if r["agent"] in paid:
            print(f"PAID: {r['agent']} gets {r['mean']:.3g} ({_span(r)}) and looks at nothing")
    if not paid:
        most = max(r["high"] for r in rows if r["agent"] != "random")
        print(f"no agent that looks at nothing is shown to be paid more than {args.floor:g}; means may be up to {most:.3g}")
    return 1 if paid else 0


def _span(row: dict[str, Any]) -> str:
    return f"{row['low']:.3g} to {row['high']:.3g}"


def _make(args: argparse.Namespace) -> gym.Env[Any, Any]:
    """Makes the environment; what goes wrong there is the command line's."""
    try:
        given = json.loads(args.kwargs) if args.kwargs else {}
    except ValueError as err:
        raise BadInputError(f"--kwargs is not JSON: {err}") from err
    if not isinstance(given, dict):
        raise BadInputError(f"--kwargs is a JSON object, not {args.kwargs}")
    try:
        if args.modules:
            sys.path.append(os.getcwd())  # as python -m has it
        for module in args.modules:
            importlib.import_module(module)
        return gym.make(args.env, disable_env_checker=True, **given)
    except Exception as err:  # whatever others' code raises
        raise BadInputError(f"cannot make {args.env}: {type(err).__name__}: {err}") from err

"""Random requests: whatever comes through the one JSON door is answered, or refused with a typed error that is no bug."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from provegym import Split, _lib
from provegym.errors import BadInputError, BugError, ProveGymError

SPLIT = Split.freeze({"pack": "tooluse", "families": {"refusal": "test"}}).manifest
PLAN: dict[str, Any] = {
    "pack": "tooluse",
    "base": {"rule": "x"},
    "looks": [{"id": "final", "checkpoint": "last"}],
    "conditions": [{"id": "tooluse@2/refusal", "tier": "held-out-family", "G": 20}],
}
WHERE = {"pack": "tooluse", "split": SPLIT, "key": "1"}
TASK = "tooluse@2/branch?fanout=3#seed=7"
ODD: list[Any] = [None, True, 0, -1, 1.5, 2**31, 2**53, -(2**63), 2**70, "", "\0", "é", "x" * 100_000, "1", TASK, [], [[]], {}]
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("packs", {"pack": "echo"}),
    ("task", {"task": TASK}),
    ("sample", {"pack": "tooluse", "n": 2, "seed": "1", "preset": ["L0"], "split": SPLIT, "mode": "train"}),
    ("split.freeze", {"split": {"pack": "tooluse", "mechanisms": {"by_id": "test"}, "train_dials": {"slack": ["2"]}}}),
    ("split.region", {"split": SPLIT, "condition": "tooluse@2/branch"}),
    ("rollout", {"agent": "oracle", "tasks": [{"task": TASK, "labels": {"arm": "a"}}], "view": "structured", "variant": 0}),
    ("break.new", {**WHERE, "budget": 60, "tau": 0.5, "checkpoint": "a"}),
    ("curriculum.new", {**WHERE, "mode": "failures"}),
    ("check.new", {"pack": "echo", "seeds": 2, "dial_seeds": -1, "key": "1"}),
    ("prove.table", {"plan": PLAN}),
    ("prove.freeze", {"plan": PLAN, "key": "1", "split": SPLIT}),
    ("break.ask", {"n": 4}),
    ("break.tell", {"results": [{"id": 0, "failed": True, "lost": False, "mode": "m"}]}),
    ("break.report", {}),
    ("break.state", {}),
    ("curriculum.ask", {"n": 2, "group_size": 2}),
    ("curriculum.tell", {"results": [{"item": "*", "passes": 1, "episodes": 1, "lost": 0}]}),
    ("curriculum.state", {}),
    ("curriculum.at", {"slots": ["0", "7"]}),
    ("curriculum.advance", {"results": [{"item": "family=branch", "passes": 1, "episodes": 2, "lost": 0}]}),
    ("vec.stop", {"env": 0, "outcome": "truncated", "limit": "tokens", "why": ""}),
    ("trace.tokens", {"rows": [{"episode": 1, "prompt": 1, "prompt_ids": [1], "completion_ids": [], "mask": []}]}),
    ("check.step", {"budget_ms": 1}),
    ("trace.query", {"path": "none.db", "what": "runs", "limit": 3}),
    ("close", {}),
]


def twist(value: Any, rng: random.Random) -> Any:
    """The value with some of it changed, left out or doubled."""
    if rng.random() < 0.08:
        return rng.choice(ODD)
    if isinstance(value, dict):
        kept = {k: twist(v, rng) if rng.random() < 0.4 else v for k, v in value.items() if rng.random() > 0.04}
        return {**kept, "odd": 1} if rng.random() < 0.04 else kept
    if isinstance(value, list):
        return [twist(v, rng) for v in value] * rng.choice([1, 1, 1, 2, 0])
    return value


def test_random_requests(seed: int, tmp_path: Path) -> None:
    rng, handles, ends = random.Random(seed), [0], Counter[str]()
    for _ in range(3000):
        method, args = rng.choice(REQUESTS)
        if method == "trace.query":
            args = {**args, "path": str(tmp_path / "none.db")}
        library = method.endswith((".new", ".freeze", ".region", ".table")) or method in ("packs", "task", "sample", "rollout")
        handle = 0 if library and rng.random() < 0.97 else rng.choice([*handles, rng.randrange(2**64)])
        try:
            given = {name: twist(value, rng) for name, value in args.items()} if rng.random() < 0.7 else args
            answer = _lib.request(method, given, handle)
        except BugError as bug:
            pytest.fail(f"{method} of {args}: {bug}")
        except ProveGymError as refused:
            assert 5 < len(str(refused)) < 600
            ends["refused"] += 1
        else:
            ends["answered"] += 1
            if "handle" in answer:
                handles.append(int(answer["handle"]))
    for handle in set(handles[1:]):
        try:
            _lib.request("close", {}, handle)
        except ProveGymError:
            ends["closed before"] += 1
    assert min(ends["answered"], ends["refused"]) > 500, ends


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("check.new", {"pack": "echo", "seeds": 2**53}),
        ("check.new", {"pack": "echo", "dial_seeds": 2**53}),
        ("sample", {"pack": "tooluse", "n": 2**53}),
        ("prove.table", {"plan": {**PLAN, "conditions": [{**PLAN["conditions"][0], "G": 2**53}]}}),
        ("prove.table", {"plan": {**PLAN, "looks": [{"id": str(i), "checkpoint": "last"} for i in range(5000)]}}),
        ("prove.freeze", {"plan": {**PLAN, "monitor": {"tasks": 2**53}}, "key": "1", "split": SPLIT}),
    ],
)
def test_numbers_that_would_take_all_memory_are_refused(method: str, args: dict[str, Any]) -> None:
    with pytest.raises(BadInputError):
        _lib.request(method, args)


def test_no_more_is_drawn_at_a_time_than_fits() -> None:
    for kind in ("break", "curriculum"):
        handle = int(_lib.request(f"{kind}.new", WHERE)["handle"])
        with pytest.raises(BadInputError):
            _lib.request(f"{kind}.ask", {"n": 2**20, "group_size": 1} if kind == "curriculum" else {"n": 2**20}, handle)
        _lib.request("close", {}, handle)

"""Ending an episode from outside: what a trainer does when its tokens run out or its generation fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import provegym
from provegym import Trace, trace
from provegym.errors import BadInputError, StateError, UnknownNameError

ENDS = [
    ({"outcome": "truncated"}, "truncated", "tokens", ""),
    ({"outcome": "truncated", "limit": "wall"}, "truncated", "wall", ""),
    ({"outcome": "invalid", "why": "the server is gone"}, "invalid", "", "the server is gone"),
]


def nonsense(env: Any) -> Any:
    """An action that costs a call and ends nothing."""
    return "x" if env.action_space.__class__.__name__ == "Utf8" else -1


@pytest.mark.parametrize(("asked", "outcome", "limit", "why"), ENDS)
def test_a_stopped_episode_is_over(env: Any, seed: int, asked: dict[str, Any], outcome: str, limit: str, why: str) -> None:
    env.reset(seed=seed)
    env.step(nonsense(env))
    running = env.digest
    info = env.stop(**asked)
    assert info["outcome"] == outcome and info.get("limit", "") == limit
    assert not info["success"] and not any(info["components"].values())
    assert env.why == why and env.digest != running and env.episode_id is None
    with pytest.raises(StateError):
        env.step(nonsense(env))
    with pytest.raises(StateError):
        env.stop(**asked)
    if provegym.pack(env.spec.kwargs["pack"])["deterministic"]:
        other = gym.make(env.spec.id).unwrapped
        other.restore(env.snapshot())
        assert other.digest == env.digest
        other.close()
    env.reset()
    env.step(nonsense(env))


def test_what_is_no_end_is_refused(text_env: Any, seed: int) -> None:
    with pytest.raises(StateError):
        text_env.stop("truncated")
    text_env.reset(seed=seed)
    for wrong, error in (
        ({"outcome": "scored"}, BadInputError),
        ({"outcome": "truncatd"}, UnknownNameError),
        ({"outcome": "truncated", "limit": "token"}, UnknownNameError),
        ({"outcome": "truncated", "why": "x"}, BadInputError),
        ({"outcome": "invalid", "limit": "tokens"}, BadInputError),
    ):
        with pytest.raises(error):
            text_env.stop(**wrong)
    text_env.step("x")


@pytest.mark.parametrize("view", ["ToolUse-v1", "ToolUseStructured-v1"])
def test_stopped_episodes_are_recorded_and_replay(tmp_path: Path, seed: int, view: str) -> None:
    store = Trace(tmp_path / "a.db", pack="tooluse")
    env: Any = gym.make(f"provegym/{view}", trace=store).unwrapped
    ids = []
    for steps in (0, 3):
        for asked, *_ in ENDS:
            env.reset(seed=seed)
            for _ in range(steps):
                env.step(nonsense(env))
            env.stop(**asked)
            ids.append(env.episode_id)
    store.flush()
    rows = {r["id"]: r for r in trace.query(tmp_path / "a.db", "episodes")}
    assert list(rows) == ids
    assert [(rows[i]["outcome"], rows[i]["limit"], rows[i].get("why", "")) for i in ids] == [e[1:] for e in ENDS] * 2
    env.close()
    store.close()
    assert trace.verify(tmp_path / "a.db")["ok"]
    answers = list(trace.replay(tmp_path / "a.db"))
    assert answers[-1]["done"] and sum(a["replayed"] for a in answers) == len(ids)
    assert not [m for a in answers for m in a["mismatches"]]


def test_rows_of_a_vector(seed: int, tmp_path: Path) -> None:
    store = Trace(tmp_path / "b.db", pack="tooluse")
    envs: Any = gym.make_vec("provegym/ToolUse-v1", 3, trace=store, autoreset_mode="Disabled")
    envs.reset(seed=seed)
    envs.step(["x"] * 3)
    before = envs.observations()
    assert envs.stop(1, "invalid", why="generation failed")["outcome"] == "invalid"
    assert envs.stop(np.int64(2), "truncated")["limit"] == "tokens"
    assert envs.observations() == before and envs.get_attr("episode_id") == (1, 2, 3)
    assert envs.get_attr("why") == ("", "generation failed", "")
    with pytest.raises(StateError):
        envs.step(["x"] * 3)
    with pytest.raises(BadInputError):
        envs.stop(3, "truncated")
    envs.reset(options={"reset_mask": np.array([False, True, True])})
    *_, truncated, infos = envs.step(["x"] * 3)
    assert not truncated.any() and infos["outcome"].tolist() == ["running"] * 3
    envs.close()
    store.close()

    envs = gym.make_vec("provegym/ToolUse-v1", 2)  # next step
    envs.reset(seed=seed)
    task = envs.get_attr("task")
    envs.stop(0, "truncated")
    _, _, _, truncated, infos = envs.step(["x"] * 2)
    assert not truncated.any() and infos["_task"].tolist() == [True, False] and envs.get_attr("task")[0] != task[0]
    envs.close()
    envs = gym.make_vec("provegym/ToolUse-v1", 2, autoreset_mode="SameStep")
    envs.reset(seed=seed)
    with pytest.raises(StateError, match="same_step"):
        envs.stop(0, "truncated")
    envs.close()

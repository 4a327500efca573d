"""The flat view: the same calls as the phases make, and masks that hold every choice of theirs."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import provegym
from provegym import trace as traces
from provegym.errors import BadInputError
from provegym.wrappers import FlatAction

VIEWS = [i for i in provegym.ids() if "Structured" in i]


def choices(env: Any, rng: np.random.Generator) -> list[int]:
    """Makes one call in phases, its legal choices drawn at random, and returns them."""
    made = []
    while True:
        made.append(int(rng.choice(np.flatnonzero(env.action_masks()))))
        observation, _, terminated, truncated, _ = env.step(made[-1])
        if terminated or truncated or observation["phase"][0] == 0:
            return made


@pytest.mark.parametrize("id_", VIEWS)
def test_flat_equals_phases(id_: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    phased, flat = gym.make(id_).unwrapped, FlatAction(gym.make(id_))
    for episode in range(3):
        task = phased.reset(seed=seed if episode == 0 else None)[1]["task"]
        flat.reset(options={"task": task})
        ended = False
        while not ended:
            start = phased.snapshot()
            made = choices(phased, rng)
            phased.restore(start)
            for choice in made:
                seen, reward, terminated, truncated, info = phased.step(choice)
            width = len(flat.action_space.nvec)
            masks = flat.action_masks().reshape(width, -1)
            action = np.zeros(width, np.int64)
            action[: len(made)] = made
            assert masks[np.arange(len(made)), made].all(), "a legal choice is masked"
            got = flat.step(action)
            assert got[1:] == (reward, terminated, truncated, info)
            assert all(np.array_equal(got[0][k], seen[k]) for k in seen)
            assert flat.unwrapped.digest == phased.digest
            ended = terminated or truncated
    flat.close()


def test_flat_as_text_and_back(tmp_path: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    store = provegym.Trace(tmp_path, pack="tooluse")
    flat = FlatAction(gym.make("provegym/ToolUseStructured-v1", preset="L0", trace=store))
    ends = []
    for _ in range(3):
        flat.reset(seed=int(rng.integers(1000)))
        while True:
            masks = flat.action_masks().reshape(len(flat.action_space.nvec), -1)
            action = np.array([rng.choice(np.flatnonzero(m)) for m in masks])
            _, reward, terminated, truncated, info = flat.step(action)
            if terminated or truncated:
                ends.append((reward, info["outcome"], info["calls"]))
                break
    flat.close()
    store.close()
    assert traces.verify(tmp_path)["ok"] and list(traces.replay(tmp_path))[-1]["mismatches"] == []
    text = gym.make("provegym/ToolUse-v1").unwrapped
    for episode in traces.query(tmp_path, "episodes"):
        text.reset(options={"task": episode["task"]})
        for row in traces.query(tmp_path, "calls", episode=episode["id"]):
            call = row["call"] or '{"tool": "none", "args": {}}'  # an illegal choice is no call of any tool
            _, reward, terminated, truncated, info = text.step(call)
        assert (terminated or truncated) and (reward, info["outcome"], info["calls"]) in ends


def test_a_call_that_does_not_fit_costs_a_call(seed: int) -> None:
    flat = FlatAction(gym.make("provegym/ToolUseStructured-v1", preset="L0"))
    flat.reset(seed=seed)
    width = len(flat.action_space.nvec)
    limit = flat.unwrapped.reset(seed=seed)[1]["limits"]["calls"]
    for calls in range(1, limit + 1):
        _, reward, terminated, truncated, info = flat.step(np.full(width, 64))
        assert reward == 0 and not terminated and truncated == (calls == limit)
    assert info["limit"] == "calls"


def test_bad_input() -> None:
    with pytest.raises(BadInputError, match="structured"):
        FlatAction(gym.make("provegym/ToolUse-v1"))
    with pytest.raises(BadInputError, match="structured"):
        FlatAction(gym.make("CartPole-v1"))
    flat = FlatAction(gym.make("provegym/EchoStructured-v0"))
    flat.reset(seed=1)
    for action in (3, np.zeros(2), np.zeros(2, np.int64), "x"):
        with pytest.raises(BadInputError, match="whole numbers"):
            flat.step(action)

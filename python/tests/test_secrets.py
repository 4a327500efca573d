"""The agent's side reveals nothing of the check: not in what it is told, not by walking the objects behind an environment."""

from __future__ import annotations

import gc
import json
import types
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from agents import OPAQUE, Player

import provegym
from provegym import _lib

PACKS = {p["name"]: p for p in _lib.request("packs")["packs"]}
_SKIP = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.FrameType,
    types.CodeType,
)


def reachable(root: Any) -> str:
    """All text and bytes that can be reached from an object without passing through code."""
    seen, todo, found = {id(root)}, [root], []
    while todo:
        o = todo.pop()
        if isinstance(o, str):
            found.append(o)
        elif isinstance(o, bytes | bytearray):
            found.append(bytes(o).decode("latin-1"))
        elif isinstance(o, np.ndarray) and o.dtype != object:
            found.append(o.tobytes().decode("latin-1"))
        for r in gc.get_referents(o):
            if id(r) not in seen and not isinstance(r, _SKIP):
                seen.add(id(r))
                todo.append(r)
    return "\n".join(found)


def secrets(pack: str) -> set[str]:
    """Names that belong to the hidden side."""
    p = PACKS[pack]
    return {a["name"] for a in p["audits"]} | {a["name"] for a in p["agents"] if "control" in a["kind"]}


def leaks(text: str, shown: str, pack: str) -> list[str]:
    """What of it the agent has not been told."""
    ids = sorted(set(OPAQUE.findall(text)) - set(OPAQUE.findall(shown)))
    return ids + sorted(s for s in secrets(pack) if len(s) > 4 and s in text.split("\n"))


@pytest.mark.parametrize("id_", provegym.ids())
def test_nothing_hidden_is_reachable(id_: str, seed: int) -> None:
    env: Any = gym.make(id_).unwrapped
    pack = env.spec.kwargs["pack"]
    player = Player(seed)
    observation, info = env.reset(seed=seed)
    shown = json.dumps(info) + (observation if isinstance(observation, str) else env.instruction)
    for _ in range(60):
        assert not leaks(reachable(env), shown, pack)
        action = player.act(env, observation)
        observation, _, terminated, truncated, info = env.step(action)
        if isinstance(observation, str):
            shown += observation
        assert not [s for s in secrets(pack) if s in json.dumps(info)]
        if terminated or truncated:
            break
    env.close()


def test_texts_are_all_that_is_told(seed: int) -> None:
    """Errors and infos of many episodes name no audit and no id that was not shown."""
    for id_ in provegym.ids():
        if "Structured" in id_:
            continue
        env: Any = gym.make(id_).unwrapped
        pack = env.spec.kwargs["pack"]
        for episode in range(100):
            player = Player(seed + episode)
            observation, info = env.reset(seed=seed + episode)
            for _ in range(8):
                action = player.act(env, observation)
                observation, _, terminated, truncated, info = env.step(action)
                assert not [s for s in secrets(pack) if s in json.dumps(info)]
                if terminated or truncated:
                    break
        env.close()


PLANTS = {
    "an attribute": lambda env, secret: setattr(env, "_note", secret),
    "a nested container": lambda env, secret: setattr(env._batch, "_more", {"a": [("b", {secret})]}),
    "a buffer": lambda env, secret: setattr(env._batch, "_bytes", np.frombuffer(secret.encode(), np.uint8)),
    "bytes": lambda env, secret: env._batch._limits.__setitem__("c", {"x": secret.encode()}),
}


@pytest.mark.parametrize("place", PLANTS)
def test_a_planted_leak_is_caught(text_env: Any, seed: int, place: str) -> None:
    instruction, _ = text_env.reset(seed=seed)
    assert not leaks(reachable(text_env), instruction, "tooluse")
    PLANTS[place](text_env, "o-0123456789")
    assert leaks(reachable(text_env), instruction, "tooluse") == ["o-0123456789"]


def test_a_planted_name_is_caught(text_env: Any, seed: int) -> None:
    instruction, _ = text_env.reset(seed=seed)
    audit = PACKS["tooluse"]["audits"][0]["name"]
    text_env._note = audit
    assert leaks(reachable(text_env), instruction, "tooluse") == [audit]

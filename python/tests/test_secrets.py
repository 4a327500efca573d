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


def told_too_much(observation: Any, info: dict[str, Any], shown: str, pack: str) -> list[str]:
    """Names of the hidden side in what a step gives, and ids in its info that no observation has shown."""
    given = json.dumps(info, default=str)
    text = observation if isinstance(observation, str) else " ".join(observation)
    names = [s for s in secrets(pack) if s in given or s in text]
    return names + sorted(set(OPAQUE.findall(given)) - set(OPAQUE.findall(shown)))


def test_a_thousand_episodes_tell_no_more(seed: int) -> None:
    """Random play and junk: nothing hidden in observations, results, errors, infos, or behind the environment."""
    for id_ in provegym.ids():
        env: Any = gym.make(id_).unwrapped
        pack = env.spec.kwargs["pack"]
        for episode in range(1000 // len(provegym.ids()) + 1):
            player = Player(seed + episode)
            observation, info = env.reset(seed=seed + episode)
            shown = observation if isinstance(observation, str) else env.instruction
            for step in range(8):
                assert not told_too_much(observation, info, shown, pack)
                action = player.act(env, observation) if (step + episode) % 4 or "Structured" in id_ else "x" * episode
                observation, _, terminated, truncated, info = env.step(action)
                shown += observation if isinstance(observation, str) else ""
                if terminated or truncated:
                    break
            assert not told_too_much(observation, info, shown, pack)
            if episode % 20 == 0 and isinstance(observation, str):
                assert not leaks(reachable(env), shown + json.dumps(info), pack)
        env.close()


def test_what_is_told_too_much_is_caught() -> None:
    audit = PACKS["tooluse"]["audits"][0]["name"]
    assert not told_too_much("o-0123456789", {"task": "x"}, "o-0123456789", "tooluse")
    for observation, info in (
        (f"ask about {audit}", {}),
        (f'{{"error":{{"code":"x","text":"{audit}"}}}}', {}),
        ({"slots": 0, audit: 1}, {}),
        ("", {"components": {audit: True}}),
        ("", {"limits": {"next": "o-9876543210"}}),
    ):
        assert told_too_much(observation, info, "o-0123456789", "tooluse"), (observation, info)


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

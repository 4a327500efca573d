"""Agents for the tests: pure functions of what the agent sees and a generator."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import numpy.typing as npt

OPAQUE = re.compile(r"\b[a-z]+-[0-9a-f]{10}\b")


def pick_number(mask: npt.NDArray[np.bool_], rng: np.random.Generator) -> int:
    """A legal action, uniformly."""
    return int(rng.choice(np.flatnonzero(mask)))


def pick_call(tools: list[dict[str, Any]], seen: str, rng: np.random.Generator) -> str:
    """A well-formed call of a random tool, with ids that were shown where it takes strings; now and then not even JSON."""
    if rng.random() < 0.1:
        return str(rng.choice(["", "{", '{"tool": 3}', "žluť \x00", '{"tool": "nope"}']))
    ids = OPAQUE.findall(seen) or ["x"]
    tool = tools[rng.integers(len(tools))]["function"]
    args: dict[str, Any] = {}
    for name, schema in tool["parameters"]["properties"].items():
        if name not in tool["parameters"]["required"] and rng.random() < 0.5:
            continue
        args[name] = [_value(schema["items"], ids, rng)] if schema["type"] == "array" else _value(schema, ids, rng)
    return json.dumps({"tool": tool["name"], "args": args})


def _value(schema: dict[str, Any], ids: list[str], rng: np.random.Generator) -> Any:
    if schema["type"] == "integer":
        return int(rng.integers(schema["minimum"], schema["maximum"] + 1))
    if "enum" in schema:
        return str(rng.choice(schema["enum"]))
    return str(rng.choice(ids))


class Player:
    """Chooses actions for one environment in either view."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.seen = ""

    def begin(self, observation: Any) -> None:
        self.seen = observation if isinstance(observation, str) else ""

    def act(self, env: Any, observation: Any) -> Any:
        if isinstance(observation, str):
            self.seen += observation
            return pick_call(env.tools, self.seen, self.rng)
        return pick_number(env.action_masks(), self.rng)


def play(env: Any, seed: int, steps: int) -> list[tuple[Any, ...]]:
    """Everything that an environment tells over some steps, with resets where episodes end."""
    player = Player(seed)
    observation, info = env.reset(seed=seed)
    player.begin(observation)
    told: list[tuple[Any, ...]] = [(freeze(observation), info)]
    for _ in range(steps):
        action = player.act(env, observation)
        observation, reward, terminated, truncated, info = env.step(action)
        told.append((action, freeze(observation), reward, terminated, truncated, info))
        if terminated or truncated:
            observation, info = env.reset()
            player.begin(observation)
            told.append((freeze(observation), info))
    return told


def freeze(observation: Any) -> Any:
    """An observation as a value that can be compared."""
    if isinstance(observation, dict):
        return {k: (v.dtype.str, v.shape, v.tobytes()) for k, v in observation.items()}
    return observation

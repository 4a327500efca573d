"""ProveGym: an open-source training gym for agents.

Importing registers a Gymnasium environment for each view of each pack: text, and structured where the pack has it. The library
itself is loaded by the first environment that is made, so a process may import this and fork.

>>> import gymnasium as gym
>>> import provegym
>>> env = gym.make("provegym/ToolUse-v1")
>>> instruction, info = env.reset(seed=7)
>>> result, reward, terminated, truncated, info = env.step('{"tool": "no_such_tool"}')
>>> info["outcome"], reward, terminated
('running', 0.0, False)
>>> env.close()
"""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from provegym import errors

if TYPE_CHECKING:
    from provegym._lib import build_info
    from provegym.breaker import Breaker
    from provegym.curriculum import Curriculum
    from provegym.env import Env
    from provegym.spaces import Utf8
    from provegym.split import Split
    from provegym.tasks import pack, packs, rollout, sample, task
    from provegym.trace import Trace
    from provegym.vector import AsyncVector, VectorEnv

__version__ = "0.1.0"

__all__ = [
    "ids",
    "manifest",
    "pack",
    "packs",
    "task",
    "sample",
    "rollout",
    "Env",
    "VectorEnv",
    "AsyncVector",
    "Utf8",
    "Split",
    "Trace",
    "Breaker",
    "Curriculum",
    "build_info",
    "errors",
]

_HOMES = {
    "AsyncVector": "vector",
    "Breaker": "breaker",
    "Curriculum": "curriculum",
    "Env": "env",
    "Split": "split",
    "Trace": "trace",
    "Utf8": "spaces",
    "VectorEnv": "vector",
    "build_info": "_lib",
    "pack": "tasks",
    "packs": "tasks",
    "rollout": "tasks",
    "sample": "tasks",
    "task": "tasks",
}


def __getattr__(name: str) -> Any:
    """Imports what needs the extension on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'provegym' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"provegym.{_HOMES[name]}"), name)


def manifest() -> list[dict[str, Any]]:
    """Returns the packs that were built in: name, title, version, doc, views, families, dials and presets. Loads no library."""
    text = resources.files(__name__).joinpath("manifest.json").read_text(encoding="utf-8")
    packs: list[dict[str, Any]] = json.loads(text)["packs"]
    return packs


def ids() -> list[str]:
    """Returns the ids that importing registered.

    >>> "provegym/ToolUse-v1" in ids()
    True
    """
    return [_id(p, view) for p in manifest() for view in p["views"]]


def _id(pack: dict[str, Any], view: str) -> str:
    return f"provegym/{pack['title']}{'' if view == 'text' else view.title()}-v{pack['version'] - 1}"


def _register() -> None:
    for pack in manifest():
        for view in pack["views"]:
            gym.register(
                id=_id(pack, view),
                entry_point="provegym.env:Env",
                vector_entry_point="provegym.vector:VectorEnv",
                kwargs={"pack": pack["name"], "view": view},
                order_enforce=False,  # the library enforces it
                disable_env_checker=True,  # the tests check it, on every pack
            )


_register()

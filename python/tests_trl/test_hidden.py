"""A rollout reveals nothing of the check: not in what the model reads, not in what is logged, not behind the environment."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import provegym
from provegym.adapters import trl as adapter

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from agents import OPAQUE, pick_call
from test_secrets import reachable, secrets


@pytest.mark.parametrize("pack", ["echo", "tooluse"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_hidden_in_a_rollout(pack: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    environment = adapter.environment_factory(pack, key=seed)()
    hidden = secrets(pack)
    assert hidden
    logged: list[str] = []
    for slot in range(40):
        shown = environment.reset(slot=slot)
        assert not [s for s in hidden if s in shown]
        for _ in range(8):
            call = _call(environment, shown, rng)
            told = getattr(environment, call["tool"])(**call["args"])
            shown += told
            assert not [s for s in hidden if s in told], call
        if slot % 10 == 0:  # the walk is slow
            behind = reachable(environment)
            assert not set(OPAQUE.findall(behind)) - set(OPAQUE.findall(shown))
            assert not hidden & set(behind.split("\n"))
        adapter.success(environments=[environment], log_metric=lambda name, value: logged.append(name))
    assert logged and not [s for s in hidden if s in "\n".join(logged)]


def test_a_planted_leak_is_seen() -> None:
    environment = adapter.environment_factory("tooluse", key=1)()
    environment.reset(slot=0)
    environment._planted = {"secret": "o-0123456789"}
    assert "o-0123456789" in OPAQUE.findall(reachable(environment))


def test_tools_tell_nothing() -> None:
    for pack in ("echo", "tooluse"):
        told = "\n".join(str(t.__doc__) for t in adapter.environment_factory(pack).tools)
        assert told and not [s for s in secrets(pack) if s in told], provegym.pack(pack)["version"]


def _call(environment: Any, seen: str, rng: np.random.Generator) -> dict[str, Any]:
    while True:
        try:
            call = json.loads(pick_call(environment._env.tools, seen, rng))
        except ValueError:
            continue
        if isinstance(call, dict) and hasattr(environment, str(call.get("tool"))) and isinstance(call.get("args"), dict):
            return call

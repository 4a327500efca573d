"""A C program that is linked with the library and Python draw the same actions and get the same digests."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from conftest import ROOT

import provegym
from provegym import _lib

SOURCE = ROOT / "capi" / "examples" / "random_agent.c"
EPISODES = 20
_BITS = 2**64 - 1


def splitmix64(state: int) -> Iterator[int]:
    """Steele, Lea and Flood 2014."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & _BITS
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _BITS
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _BITS
        yield z ^ (z >> 31)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = _lib.find().parent
    made = tmp_path_factory.mktemp("c") / "random_agent"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}"]
    subprocess.run(["cc", *flags, SOURCE, f"-L{library}", "-lprovegym", f"-Wl,-rpath,{library}", "-o", made], check=True)
    return made


@pytest.mark.parametrize("pack", [p["name"] for p in provegym.manifest() if "structured" in p["views"]])
def test_same_digests(program: Path, pack: str, seed: int) -> None:
    told = subprocess.run([program, pack, str(seed), str(EPISODES)], capture_output=True, text=True, check=True).stdout
    told_of = next(p for p in provegym.manifest() if p["name"] == pack)
    env: Any = gym.make(f"provegym/{told_of['title']}Structured-v{told_of['version'] - 1}").unwrapped
    draw, lines = splitmix64(seed), []
    for episode in range(EPISODES):
        env.reset(seed=None if episode else seed)
        done = False
        while not done:
            legal = np.flatnonzero(env.action_masks())
            _, _, terminated, truncated, info = env.step(legal[next(draw) % len(legal)])
            done = terminated or truncated
        lines.append(f"{env.task} {info['outcome']} {env.digest}")
    env.close()
    assert told.splitlines() == lines
    assert len({line.split()[-1] for line in lines}) == EPISODES

"""Fixtures that the tests share. Randomness takes --seed, which is printed, and nothing else."""

from __future__ import annotations

import importlib.util
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import provegym

ROOT = Path(__file__).resolve().parents[2]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-slow", action="store_true", help="run the tests that take minutes")
    parser.addoption("--seed", type=int, default=7, help="seed of all randomness")


def pytest_configure() -> None:
    # A shell starts a background job with SIGINT ignored, and every child would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed: {config.getoption('--seed')} (rerun with --seed)"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--run-slow"):
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="slow: --run-slow runs it"))


@pytest.fixture(scope="session", autouse=True)
def fresh_library() -> None:
    """A library built from other sources than those in the tree must not pass for this one."""
    spec = importlib.util.spec_from_file_location("provegym_setup", ROOT / "setup.py")
    assert spec and spec.loader
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    info = provegym.build_info()
    if (info["header"], info["sources"]) != (setup.header_hash(), setup.source_hash()):
        pytest.exit("the library is stale; run: make build", returncode=3)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--seed"))


@pytest.fixture(params=provegym.ids())
def env(request: pytest.FixtureRequest) -> Iterator[gym.Env[Any, Any]]:
    """One environment of every id, unwrapped."""
    made = gym.make(request.param).unwrapped
    yield made
    made.close()


@pytest.fixture
def text_env() -> Iterator[Any]:
    made: Any = gym.make("provegym/ToolUse-v1").unwrapped
    yield made
    made.close()


@pytest.fixture
def number_env() -> Iterator[Any]:
    made: Any = gym.make("provegym/ToolUseStructured-v1").unwrapped
    yield made
    made.close()

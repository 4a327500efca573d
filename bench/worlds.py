"""Builds the libraries that the benchmark compares, and makes the three counter worlds.

    python bench/worlds.py --seed 7    # steps all three with the same actions and stops at the first difference

The Go world is no part of the product: it comes into a library of its own by ``go build -overlay``, which adds one file that
imports it. The C world has the same interface, and a second copy of the extension opens it, so both take the same way.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import SyncVectorEnv

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = ROOT / "build" / "bench"


def _import(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader, path
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build() -> None:
    """Builds both libraries, and makes the package of this process open that with the Go world."""
    BUILD.mkdir(parents=True, exist_ok=True)
    setup = _import("provegym_setup", ROOT / "setup.py")
    added = BUILD / "overlay.txt"
    added.write_text('package main\n\nimport _ "provegym/bench/counter"\n')
    overlay = BUILD / "overlay.json"
    overlay.write_text(json.dumps({"Replace": {str(ROOT / "capi" / "bench_overlay.go"): str(added)}}))
    os.environ.pop("PROVEGYM_PREBUILT_LIBRARY", None)
    library = BUILD / "libprovegym.so"
    setup.build_library(library, BUILD / "temp", "-overlay", str(overlay))
    os.environ["PROVEGYM_LIBRARY"] = str(library)
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-fvisibility=hidden", "-shared", "-fPIC", "-I", str(ROOT / "include")]
    cc = os.environ.get("CC", "gcc").split()
    subprocess.run([*cc, *flags, "-o", str(BUILD / "libcounter.so"), str(HERE / "counter.c")], check=True)


class Raw:
    """Counter worlds behind the extension alone, without the Python classes above it."""

    def __init__(self, native: ModuleType, num_envs: int) -> None:
        from provegym._batch import _PER_ROW, _SHAPES

        config = {"pack": "counter", "num_envs": num_envs, "view": "structured", "num_workers": 1}
        self.vector = native.Vector(json.dumps(config, separators=(",", ":")), num_envs, False, False)
        self.rows: dict[str, npt.NDArray[Any]] = {k: np.zeros(num_envs, t) for k, t in _PER_ROW.items()}
        self.obs: dict[str, npt.NDArray[Any]] = {k: np.zeros((num_envs, *s), t) for k, (s, t) in _SHAPES.items()}
        self.mask = np.zeros((num_envs, native.PGYM_ACTIONS), np.bool_)
        self.vector.bind({**self.rows, **self.obs, "mask": self.mask, "action": np.zeros(num_envs, np.int32)})
        self.vector.reset(None, None, None)


def go(num_envs: int) -> Raw:
    """Makes Go worlds. ``build`` first."""
    from provegym import _lib, _native

    _lib.load()
    return Raw(_native, num_envs)


def c(num_envs: int) -> Raw:
    """Makes C worlds. ``build`` first."""
    global _c
    if _c is None:
        from provegym import _native

        # A copy: modules are one per file, and each holds one library.
        copy = BUILD / "_native.abi3.so"
        copy.unlink(missing_ok=True)
        copy.write_bytes(Path(_native.__file__).read_bytes())
        _c = _import("_native", copy)
        _c.load(str(BUILD / "libcounter.so"), {})
    return Raw(_c, num_envs)


_c: ModuleType | None = None


def python(num_envs: int) -> SyncVectorEnv:
    """Makes Python worlds, as fast as Gymnasium's own vector steps them: it copies no observations."""
    from counter import CounterEnv

    envs = SyncVectorEnv([CounterEnv] * num_envs, copy=False)
    envs.reset(seed=0)
    return envs


def actions(seed: int, steps: int, num_envs: int, illegal: float = 0.0) -> npt.NDArray[np.int32]:
    """Returns actions that are legal in every phase, 1 and 2 and now and then 3 (finish, in the phase of the tool)."""
    rng = np.random.default_rng(seed)
    out = rng.choice(np.array([1, 2, 3], np.int32), (steps, num_envs), p=[0.7, 0.29, 0.01])
    out[rng.random(out.shape) < illegal] = 60
    return np.ascontiguousarray(out, np.int32)


def agree(seed: int, steps: int = 600, num_envs: int = 16) -> str:
    """Steps all three and returns what they did.

    Raises:
        AssertionError: At the first difference.
    """
    ours, plain, slow = go(num_envs), c(num_envs), python(num_envs)
    acts = actions(seed, steps, num_envs, illegal=0.02)
    acts[:, 0] = np.where(np.arange(steps) % 2, 8, 1)  # row 0 adds 8 five times and finishes: a success
    acts[10::12, 0] = 3
    acts[11::12, 0] = 5  # ignored: it begins the next episode
    ends = {"success": 0, "failure": 0, "truncated": 0}
    for t in range(steps):
        ours.vector.step(acts[t])
        plain.vector.step(acts[t])
        obs, reward, terminated, truncated, _ = slow.step(acts[t])
        where = f"at step {t} (rerun: python bench/worlds.py --seed {seed})"
        for name, array in ours.obs.items():
            assert np.array_equal(array, plain.obs[name]), f"Go and C differ in {name} {where}"
            assert np.array_equal(array, obs[name]), f"Go and Python differ in {name} {where}"
        assert np.array_equal(ours.mask, plain.mask), f"Go and C differ in the mask {where}"
        for name, array in ours.rows.items():
            assert np.array_equal(array, plain.rows[name]), f"Go and C differ in {name} {where}"
        for name, array in (("reward", reward), ("terminated", terminated), ("truncated", truncated)):
            assert np.array_equal(ours.rows[name], array), f"Go and Python differ in {name} {where}"
        ends["success"] += int(reward.sum())
        ends["failure"] += int(terminated.sum() - reward.sum())
        ends["truncated"] += int(truncated.sum())
    assert all(ends.values()), f"not every end was met: {ends}"
    return f"the three counter worlds agree over {steps} steps of {num_envs}: {ends}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    build()
    sys.path.insert(0, str(HERE))
    print(agree(args.seed))

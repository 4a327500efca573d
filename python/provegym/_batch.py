"""A batch of environments in the library with the arrays it writes into: what ``Env`` and ``VectorEnv`` share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from provegym import _lib, _native
from provegym.errors import BadInputError, StateError
from provegym.spaces import Utf8
from provegym.split import Split
from provegym.trace import Trace

__all__ = [
    "ACTION_BYTES",
    "Batch",
    "COMPONENTS",
    "Config",
    "LIMITS",
    "Labels",
    "OUTCOMES",
    "TEXT_BYTES",
    "action_space",
    "check_options",
    "check_seed",
    "end_info",
    "observation_space",
]

ACTION_BYTES = 64 << 10
"""A longer text action is refused with an error that the agent sees."""
TEXT_BYTES = 1 << 20
"""Bound of one text observation, in bytes of UTF-8."""
OUTCOMES = np.array(["running", "scored", "truncated", "invalid", "check_error"], dtype=object)
"""Names of the outcomes of an episode, by number."""
LIMITS = np.array([None, "calls", "wall", "bytes", "tokens"], dtype=object)
"""Names of the limits that truncate an episode, by number."""
COMPONENTS = ("goals", "path", "collateral", "commit")
"""Names of the parts of success, by bit."""

Labels = Mapping[str, Any]
"""What an episode is for (purpose, arm, look, cluster, sample, slot, group, iteration); kept in the trace."""

_SHAPES: dict[str, tuple[tuple[int, ...], type[np.generic]]] = {
    "budget": ((_native.PGYM_BUDGET_LEN,), np.float32),
    "goal": ((_native.PGYM_GOAL_LEN,), np.float32),
    "last": ((_native.PGYM_LAST_LEN,), np.float32),
    "phase": ((_native.PGYM_PHASE_LEN,), np.int32),
    "slots": ((_native.PGYM_SLOTS, _native.PGYM_SLOT_LEN), np.float32),
    "tools": ((_native.PGYM_TOOLS, _native.PGYM_TOOL_LEN), np.float32),
}
_PER_ROW: dict[str, type[np.generic]] = {
    "reward": np.float64,
    "terminated": np.bool_,
    "truncated": np.bool_,
    "outcome": np.uint8,
    "limit": np.uint8,
    "components": np.uint8,
    "calls": np.int32,
    "began": np.bool_,
}


def observation_space(view: str) -> gym.Space[Any]:
    """Returns the space of one observation of a view."""
    if view == "text":
        return Utf8(TEXT_BYTES)
    return gym.spaces.Dict(
        {
            name: gym.spaces.Box(np.iinfo(np.int32).min, np.iinfo(np.int32).max, shape, np.int32)
            if dtype is np.int32
            else gym.spaces.Box(-np.inf, np.inf, shape, np.float32)
            for name, (shape, dtype) in _SHAPES.items()
        }
    )


def action_space(view: str) -> gym.Space[Any]:
    """Returns the space of one action of a view."""
    return Utf8(ACTION_BYTES) if view == "text" else gym.spaces.Discrete(_native.PGYM_ACTIONS)


def check_options(options: Mapping[str, Any] | None, known: Sequence[str]) -> dict[str, Any]:
    """Returns the options of a reset.

    Raises:
        BadInputError: If one is unknown, naming the nearest.
    """
    for name in options or {}:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise BadInputError(f"reset has no option {name!r}; {hint}")
    return dict(options or {})


def check_seed(seed: Any) -> int:
    """Returns a seed.

    Raises:
        BadInputError: If it is not a whole number from 0 to 2**64 - 1.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise BadInputError(f"a seed is a whole number from 0 to 2**64 - 1, not {seed!r}")
    return int(seed)


def _names(value: str | Iterable[str] | None) -> str | list[str] | None:
    return value if value is None or isinstance(value, str) else list(value)


@dataclass(frozen=True, kw_only=True)
class Config:
    """What an environment is made from: everything of a pickled one but its episode. Arguments as ``provegym.Env``."""

    pack: str
    view: str
    family: str | Sequence[str] | None = None
    dials: Mapping[str, Any] | None = None
    preset: str | Sequence[str] | None = None
    split: Split | Mapping[str, Any] | str | Path | None = None
    mode: str = "free"
    trace: Trace | str | Path | None = None
    labels: Labels | None = None

    def request(self) -> tuple[dict[str, Any], Trace | None]:
        """Returns the arguments of pgym_vec_make, and the trace that they name, which the caller keeps alive."""
        trace = self.trace if self.trace is None or isinstance(self.trace, Trace) else Trace.shared(self.trace, self.pack)
        split = None if self.split is None else Split.of(self.split).manifest
        return {
            "pack": self.pack,
            "view": self.view,
            "family": _names(self.family),
            "dials": None if self.dials is None else dict(self.dials),
            "preset": _names(self.preset),
            "split": split,
            "mode": self.mode,
            "trace": trace and trace.handle,
            "labels": None if self.labels is None else dict(self.labels),
        }, trace


class Batch:
    """``num_envs`` environments in the library, and the arrays that it writes into."""

    def __init__(self, config: Config, num_envs: int, *, final: bool, **more: Any) -> None:
        """Makes them; ``more`` are further arguments of pgym_vec_make."""
        if isinstance(num_envs, bool) or not isinstance(num_envs, int | np.integer) or num_envs < 1:
            raise BadInputError(f"num_envs is a whole number from 1, not {num_envs!r}")
        self.num_envs = n = int(num_envs)
        self.text = config.view == "text"
        request, trace = config.request()
        self.native = _lib.vector({**request, "num_envs": n, **more}, n, self.text, final)
        self._trace = trace  # after native, so that it is dropped after it: a trace in use is not closed
        self.rows: dict[str, npt.NDArray[Any]] = {name: np.zeros(n, dtype) for name, dtype in _PER_ROW.items()}
        self.obs: dict[str, npt.NDArray[Any]] = {}
        self.final: dict[str, npt.NDArray[Any]] = {}
        arrays = dict(self.rows)
        if not self.text:
            self.obs = {name: np.zeros((n, *shape), dtype) for name, (shape, dtype) in _SHAPES.items()}
            self.mask = np.zeros((n, _native.PGYM_ACTIONS), np.bool_)
            arrays |= {**self.obs, "mask": self.mask, "action": np.zeros(n, np.int32)}
            if final:
                self.final = {name: np.zeros_like(a) for name, a in self.obs.items()}
                arrays |= {f"final_{name}": a for name, a in self.final.items()}
        self.native.bind(arrays)
        self._limits: dict[str, dict[str, Any]] = {}

    def row(self, i: int) -> Any:
        """Returns a copy of the observation of row i."""
        return self.native.text("text", i) if self.text else {name: a[i].copy() for name, a in self.obs.items()}

    def final_row(self, i: int) -> Any:
        """Returns a copy of the last observation of the episode that just ended in row i."""
        return self.native.text("final", i) if self.text else {name: a[i].copy() for name, a in self.final.items()}

    def masks(self) -> npt.NDArray[np.bool_]:
        """Returns a copy of the legal actions, (num_envs, actions).

        Raises:
            BadInputError: If the view is text, which has none.
        """
        if self.text:
            raise BadInputError("the text view has no action masks; make the Structured environment of this pack")
        return self.mask.copy()

    def info(self, i: int) -> dict[str, Any]:
        """Returns what the library tells about the episode of row i."""
        return _lib.request("vec.info", {"env": i}, self.native.handle)

    def explain(self, i: int) -> dict[str, Any] | None:
        """Returns why the episode of row i, which has ended, was paid or not."""
        found: dict[str, Any] | None = _lib.request("vec.explain", {"env": i}, self.native.handle)["explanation"]
        return found

    def stop(self, i: int, outcome: str, limit: str | None, why: str) -> None:
        """Ends the running episode of row i from outside."""
        _lib.request("vec.stop", {"env": i, "outcome": outcome, "limit": limit, "why": why}, self.native.handle)

    def task(self, i: int) -> str:
        """Returns the id of the task that row i shows.

        Raises:
            StateError: Before its first reset.
        """
        task = self.native.text("task", i)
        if not task:
            raise StateError("there is no episode yet: reset first")
        return task

    def reset_info(self, i: int) -> dict[str, Any]:
        """Returns the info of a reset: the task's id and its limits, which the condition alone decides."""
        task = self.task(i)
        condition = task.partition("#")[0]
        limits = self._limits.get(condition)
        if limits is None:
            limits = self.info(i).get("limits")
            if limits is None:  # the task could not be built: its next step says so
                return {"task": task, "limits": {}}
            self._limits[condition] = limits
        return {"task": task, "limits": dict(limits)}

    def end_info(self, i: int) -> dict[str, Any]:
        """Returns the info of the last step of row i, as the bound arrays have it."""
        rows = self.rows
        return end_info(int(rows["outcome"][i]), int(rows["limit"][i]), int(rows["components"][i]), int(rows["calls"][i]))

    def queue(self, tasks: Iterable[str], labels: Labels | Sequence[Labels] | None, clear: bool) -> None:
        """Queues tasks for the next resets."""
        ids = [tasks] if isinstance(tasks, str) else list(tasks)
        each = list(labels) if isinstance(labels, Sequence) else [labels] * len(ids)
        if len(each) != len(ids):
            raise BadInputError(f"there are {len(ids)} tasks and {len(each)} labels")
        items = [{"task": t} if x is None else {"task": t, "labels": dict(x)} for t, x in zip(ids, each, strict=True)]
        self.native.queue(_lib.dumps({"tasks": items, "clear": clear}))

    def reset(self, seeds: Sequence[int | None], mask: npt.NDArray[np.bool_] | None = None) -> None:
        """Starts new episodes; a row whose seed is None goes on with its stream."""
        has = np.array([s is not None for s in seeds], np.bool_)
        self.native.reset(np.array([s or 0 for s in seeds], np.uint64), has, mask)


def end_info(outcome: int, limit: int, components: int, calls: int) -> dict[str, Any]:
    """Returns the info of a step: its outcome, and on the last step of an episode what it came to."""
    info: dict[str, Any] = {"outcome": OUTCOMES[outcome]}
    if outcome:
        info["success"] = components == 15
        info["components"] = {name: bool(components >> bit & 1) for bit, name in enumerate(COMPONENTS)}
        info["calls"] = calls
        if limit:
            info["limit"] = LIMITS[limit]
    return info

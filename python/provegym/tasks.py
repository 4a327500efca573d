"""Packs and tasks as the library knows them, and the packs' own agents, which run inside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from provegym import _lib
from provegym.split import Split
from provegym.trace import Trace

__all__ = ["pack", "packs", "rollout", "sample", "task"]

_CHUNK = 64  # episodes a request: between two of them Ctrl-C works

SplitLike = Split | Mapping[str, Any] | str | Path


def packs() -> list[dict[str, Any]]:
    """Returns every pack's declaration: name, title, version, hashes, families, dials, presets, tools, agents, audits."""
    found: list[dict[str, Any]] = _lib.request("packs")["packs"]
    return found


def pack(name: str) -> dict[str, Any]:
    """Returns one pack's declaration.

    Raises:
        UnknownNameError: If there is none of that name; the text has the nearest one.
    """
    found: dict[str, Any] = _lib.request("packs", {"pack": name})["packs"][0]
    return found


def task(task_id: str) -> dict[str, Any]:
    """Returns what a task is: condition, family, dials, seed, instruction, limits, tools."""
    return _lib.request("task", {"task": task_id})


def sample(
    pack: str,
    n: int,
    *,
    seed: int = 0,
    family: str | Sequence[str] | None = None,
    dials: Mapping[str, Any] | None = None,
    preset: str | Sequence[str] | None = None,
    split: SplitLike | None = None,
    mode: str = "free",
) -> list[str]:
    """Draws the first n tasks of a stream; the one that an environment of the same arguments draws after ``reset(seed=seed)``.

    Args:
        pack: The pack.
        n: How many.
        seed: Seed of the stream.
        family: As for ``Env``.
        dials: As for ``Env``.
        preset: As for ``Env``.
        split: As for ``Env``.
        mode: As for ``Env``.

    Returns:
        Task ids.

    Raises:
        UnknownNameError: If a name does not exist.
        HeldOutError: If the split admits none of it in this mode.
    """
    ids: list[str] = _lib.request(
        "sample",
        {
            "pack": pack,
            "family": family,
            "dials": dials,
            "preset": preset,
            "split": None if split is None else Split.of(split).manifest,
            "mode": mode,
            "seed": str(seed),
            "n": n,
        },
    )["tasks"]
    return ids


def rollout(
    agent: str,
    tasks: Sequence[str],
    *,
    view: str = "text",
    mode: str = "free",
    split: SplitLike | None = None,
    trace: Trace | str | Path | None = None,
    labels: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    variant: int = 0,
    actions: bool = False,
    progress: Callable[[int], None] | None = None,
) -> list[dict[str, Any]]:
    """Runs one of a pack's own agents (oracle, baselines, controls) over tasks, inside the library.

    Args:
        agent: The agent's name; ``pack(name)["agents"]`` lists them.
        tasks: Task ids.
        view: "text" or "structured".
        mode: As for ``Env``.
        split: As for ``Env``.
        trace: As for ``Env``.
        labels: What each episode is for, or one for all.
        variant: Of an agent that has several.
        actions: Whether the results have ``actions``, the actions taken; structured view only.
        progress: Told the number of episodes done, now and then.

    Returns:
        For each task: task, outcome, limit, success, components, calls, digest, why.

    Raises:
        UnknownNameError: If the agent does not exist.
        HeldOutError: If the split does not admit a task in this mode.
    """
    if not tasks:
        return []
    store = trace if trace is None or isinstance(trace, Trace) else Trace.shared(trace, tasks[0].partition("@")[0])
    manifest = None if split is None else Split.of(split).manifest
    each = list(labels) if isinstance(labels, Sequence) else [labels] * len(tasks)
    items = [{"task": t} if x is None else {"task": t, "labels": dict(x)} for t, x in zip(tasks, each, strict=True)]
    results: list[dict[str, Any]] = []
    for at in range(0, len(items), _CHUNK):
        asked = {
            "agent": agent,
            "tasks": items[at : at + _CHUNK],
            "view": view,
            "mode": mode,
            "split": manifest,
            "trace": store and store.handle,
            "variant": variant or None,
            "actions": actions or None,
        }
        results += _lib.request("rollout", asked)["results"]
        if progress:
            progress(len(results))
    return results

"""What a trainer is given besides the environments: rows and reward."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from datasets import Dataset

from provegym.adapters.trl._environment import Environment
from provegym.errors import BadInputError

__all__ = ["MARK", "dataset", "success"]

MARK = "slot {}"
"""What the prompt of a marked dataset says: TRL gives a ``rollout_func`` the prompts and no other column."""


def dataset(n: int | Sequence[str], *, system: str | None = None, mode: str | None = None, marked: bool = False) -> Dataset:
    """Returns the rows of a ``GRPOTrainer``: slots, which get their tasks when they are reset.

    A generation batch takes ``generation_batch_size / num_generations`` different slots; give at least as many. Shuffling them
    (``GRPOConfig(shuffle_dataset=True)``, the default) does nothing but make a resumed run differ from an uninterrupted one:
    TRL forgets how it had shuffled later epochs.

    Args:
        n: How many slots, or the ids of tasks, one a row, which then are the rows' tasks for good.
        system: A system message before the instruction.
        mode: Mode of these rows if not the factory's: "eval" for an ``eval_dataset``.
        marked: Whether the prompts name the slots, for ``TreeRollouts``.

    Raises:
        BadInputError: If there would be no row.
    """
    tasks = None if isinstance(n, int) else list(n)
    rows = n if isinstance(n, int) else len(n)
    if rows < 1:
        raise BadInputError("a dataset needs a slot at least")
    head = [{"role": "system", "content": system}] if system else []
    # TRL appends what reset returns to the last message.
    prompts = [[*head, {"role": "user", "content": MARK.format(i) if marked else ""}] for i in range(rows)]
    columns: dict[str, list[Any]] = {"prompt": prompts, "slot": list(range(rows))}
    if tasks is not None:
        columns["task"] = tasks
    if mode is not None:
        columns["mode"] = [mode] * rows
    return Dataset.from_dict(columns)


def success(
    *,
    environments: Sequence[Environment] | None = None,
    rollout: Sequence[Mapping[str, Any]] | None = None,
    completions: Sequence[Any] = (),
    log_metric: Callable[[str, float], None] | None = None,
    **columns: Any,
) -> list[float | None]:
    """Reward function: 1.0 for a success, 0.0 for none, None where the infrastructure lost the episode.

    It also logs the components of success, the outcomes and the pass rate of each family, and records token counts.
    ``environments`` come from ``environment_factory``, ``rollout`` from ``TreeRollouts``.

    Raises:
        BadInputError: If the trainer has neither, or environments that give the reward themselves.
    """
    if environments is None and rollout is None:
        raise BadInputError("success needs environment_factory=environment_factory(…) in the trainer")
    if rollout is None:
        if any(hasattr(e, "get_reward") for e in environments or ()):
            raise BadInputError("own_reward=True makes the environments give the reward: leave success out, or it counts twice")
        rollout = [e._rollout() for e in environments or ()]
    if log_metric is not None:
        _log(rollout, log_metric)
        if environments:
            log_metric("provegym/seconds", sum(e._seconds for e in environments))  # of the step, in the environments
        if environments and completions and not isinstance(completions[0], str):
            heard = [sum(m.get("role") == "tool" for m in c) for c in completions]
            dropped = [e._made > n for e, n in zip(environments, heard, strict=True)]
            log_metric("provegym/results_dropped", statistics.fmean(dropped))  # they did not fit, and TRL took them out
    for factory in {id(e._factory): e._factory for e in environments or ()}.values():
        if factory.tokens is not None:
            factory.tokens.record(factory, [e for e in environments or () if e._factory is factory])
    return [float(r["end"].get("reward", 0.0)) if r["ended"].counted else None for r in rollout]


def _log(rollout: Sequence[Mapping[str, Any]], log: Callable[[str, float], None]) -> None:
    log("provegym/invalid", statistics.fmean(not r["ended"].counted for r in rollout))
    counted = [r for r in rollout if r["ended"].counted]
    if not counted:
        return
    log("provegym/truncated", statistics.fmean(r["ended"].outcome == "truncated" for r in counted))
    log("provegym/calls", statistics.fmean(r["ended"].calls for r in counted))
    for part in ("goals", "path", "collateral", "commit"):
        log(f"provegym/{part}", statistics.fmean(bool((r["end"].get("components") or {}).get(part)) for r in counted))
    families: dict[str, list[bool]] = defaultdict(list)
    for r in counted:
        families[r["ended"].family].append(r["ended"].success)
    for family, passed in families.items():
        log(f"provegym/success/{family}", statistics.fmean(passed))

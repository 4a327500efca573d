"""Prove: says of each checkpoint, on held-out conditions declared before training, whether training helped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from provegym import _lib
from provegym.split import Split
from provegym.trace import Trace

__all__ = ["freeze", "look", "report", "table", "tasks"]

Plan = Mapping[str, Any]


def table(draft: Plan) -> dict[str, Any]:
    """Returns what a draft could detect, to look at before freezing.

    Returns:
        ``rows``, with the smallest detectable change for each condition at each look, and ``warnings``.
    """
    return _lib.request("prove.table", {"plan": dict(draft)})


def freeze(draft: Plan, *, key: int = 0, split: Split | Mapping[str, Any] | str | Path | None = None) -> dict[str, Any]:
    """Checks and hashes a plan; one that has its hash is verified.

    Args:
        draft: The plan.
        key: What its seeds derive from; the plan holds only the commitment to them.
        split: The split that holds its conditions out; a draft needs it.

    Raises:
        BadInputError: If it is malformed, could reach no verdict, or was changed after it was frozen.
    """
    manifest = None if split is None else Split.of(split).manifest
    plan: dict[str, Any] = _lib.request("prove.freeze", {"plan": dict(draft), "key": str(key), "split": manifest})["plan"]
    return plan


def tasks(plan: Plan, look: str, *, key: int = 0) -> list[dict[str, Any]]:
    """Returns the slots of a look: condition, cluster, task, sample and arms of each episode that it needs.

    Raises:
        BadInputError: If the key is not the one that the plan was frozen with.
    """
    asked = {"plan": dict(plan), "key": str(key), "look": look}
    slots: list[dict[str, Any]] = _lib.request("prove.tasks", asked)["slots"]
    return slots


def look(
    plan: Plan,
    name: str,
    *,
    key: int = 0,
    records: Sequence[Mapping[str, Any]] | None = None,
    trace: Trace | str | Path | None = None,
    base: str | None = None,
    checkpoint: str | None = None,
    ledger: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Judges a look.

    Args:
        plan: The frozen plan.
        name: The look.
        key: What the plan was frozen with.
        records: The episodes, one record each; or
        trace: the store that holds them.
        base: Hash of the base checkpoint.
        checkpoint: Hash of the checkpoint that is judged.
        ledger: Ids of the tasks that training drew, so that a contamination shows.

    Returns:
        rows, overall, counts, problems and more.
    """
    path = trace.path if isinstance(trace, Trace) else trace
    return _lib.request(
        "prove.look",
        {
            "plan": dict(plan),
            "key": str(key),
            "look": name,
            "records": None if records is None else [dict(r) for r in records],
            "trace": path and str(path),
            "base": base,
            "checkpoint": checkpoint,
            "ledger": None if ledger is None else list(ledger),
        },
    )


def report(plan: Plan, looks: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """Returns the report of a run as ``report`` (JSON), ``markdown`` and ``html``.

    Args:
        plan: The frozen plan.
        looks: What ``look`` returned, each.
        **more: What else it shows: learning, causes, reference, hollow, spent, deviations, times.
    """
    return _lib.request("prove.report", {"plan": dict(plan), "looks": [dict(x) for x in looks], **more})

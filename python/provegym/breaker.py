"""Break: searches the conditions of the training region for where the current checkpoint fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from provegym import _lib
from provegym.split import Split

__all__ = ["Breaker", "Probe"]


@dataclass(frozen=True)
class Probe:
    """One episode that the search asks for; its result is told by ``id``."""

    id: Any
    task: str
    labels: dict[str, Any] = field(default_factory=dict)


class Breaker(_lib.Handle):
    """A search under way: ``ask`` for probes, run them with the policy, ``tell`` how they went, until it is done.

    Args:
        pack: The pack.
        split: Only its training region is searched.
        key: Seed of everything that the search draws.
        checkpoint: Name or hash of the policy that it is about.
        budget: Episodes that it may spend.
        tau: The success rate below which a condition counts as a failure.
        families: The families to search; all of the region if None.
        dials: The dials to search; all if None.
        causes: Causes of an earlier search, looked at first.

    Raises:
        UnknownNameError: If a name does not exist.
        BadInputError: If an argument is malformed.
    """

    def __init__(
        self,
        pack: str,
        *,
        split: Split | Mapping[str, Any] | str | Path,
        key: int,
        checkpoint: str | None = None,
        budget: int | None = None,
        tau: float | None = None,
        families: Sequence[str] | None = None,
        dials: Sequence[str] | None = None,
        causes: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Starts the search."""
        super().__init__(
            _lib.request(
                "break.new",
                {
                    "pack": pack,
                    "split": Split.of(split).manifest,
                    "key": str(key),
                    "checkpoint": checkpoint,
                    "budget": budget,
                    "tau": tau,
                    "families": families,
                    "dials": dials,
                    "causes": causes,
                },
            )["handle"]
        )

    @classmethod
    def resume(cls, state: Any) -> Breaker:
        """Goes on with a search from what ``state`` returned."""
        search = cls.__new__(cls)
        _lib.Handle.__init__(search, _lib.request("break.new", {"state": state})["handle"])
        return search

    def ask(self, n: int) -> list[Probe]:
        """Returns up to n probes; none when the search is done or waits for results."""
        return [Probe(p["id"], p["task"], p.get("labels") or {}) for p in self._ask("break.ask", {"n": n})["probes"] or []]

    def tell(self, results: Iterable[Mapping[str, Any]]) -> bool:
        """Takes results, ``{"id", "failed", "lost", "mode"}`` each, and returns whether the search is done."""
        return bool(self._ask("break.tell", {"results": [dict(r) for r in results]})["done"])

    def report(self, *, text: bool = False) -> dict[str, Any]:
        """Returns the confirmed causes and what was spent on what; with ``text``, the same in plain words too."""
        return self._ask("break.report", {"text": text or None})

    def state(self) -> Any:
        """Returns what ``resume`` takes."""
        return self._ask("break.state")["state"]

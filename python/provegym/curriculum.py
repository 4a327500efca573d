"""Curriculum: draws the next training tasks from where the current checkpoint fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from provegym import _lib
from provegym.split import Split

__all__ = ["Curriculum", "Draw"]


@dataclass(frozen=True)
class Draw:
    """One task to train on; ``group`` numbers those that share it, ``item`` is what ``tell`` takes."""

    task: str
    labels: dict[str, Any] = field(default_factory=dict)
    group: int = 0
    item: str = ""


class Curriculum(_lib.Handle):
    """A sampler over the training region. Give it to ``make_vec`` as ``curriculum=``, or ``ask`` it.

    Args:
        pack: The pack.
        split: Only its training region is drawn from.
        key: Seed of everything that it draws.
        mode: "failures" draws from where the policy fails, "uniform" from everywhere alike.
        families: The families to draw from; all of the region if None.
        dials: The dials to turn; all if None.

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
        mode: str = "failures",
        families: Sequence[str] | None = None,
        dials: Sequence[str] | None = None,
    ) -> None:
        """Makes it."""
        super().__init__(
            _lib.request(
                "curriculum.new",
                {
                    "pack": pack,
                    "split": Split.of(split).manifest,
                    "key": str(key),
                    "mode": mode,
                    "families": families,
                    "dials": dials,
                },
            )["handle"]
        )

    @classmethod
    def resume(cls, state: Any) -> Curriculum:
        """Goes on from what ``state`` returned."""
        sampler = cls.__new__(cls)
        _lib.Handle.__init__(sampler, _lib.request("curriculum.new", {"state": state})["handle"])
        return sampler

    def update(self, causes: Sequence[Mapping[str, Any]], checkpoint: str | None = None) -> Any:
        """Takes the causes that Break found for a checkpoint, and returns the items that it now draws from."""
        return self._ask("curriculum.update", {"causes": list(causes), "checkpoint": checkpoint}).get("items")

    def ask(self, n: int, group_size: int = 1) -> list[Draw]:
        """Returns n tasks; every ``group_size`` of them in a row are the same one."""
        tasks = self._ask("curriculum.ask", {"n": n, "group_size": group_size})["tasks"] or []
        return [Draw(t["task"], t.get("labels") or {}, t["group"], t["item"]) for t in tasks]

    def tell(self, results: Iterable[Mapping[str, Any]]) -> None:
        """Takes results as one update, ``{"item", "passes", "episodes", "lost"}`` each; vectors tell by themselves."""
        self._ask("curriculum.tell", {"results": [dict(r) for r in results]})

    def at(self, slots: Iterable[int]) -> tuple[int, list[Draw]]:
        """Returns the tasks of slots, whole numbers from 0, and the version at which they were drawn.

        A pure function of the curriculum's state and the slot: the same on every rank that went through the same updates, and
        changing nothing. ``advance`` takes what became of them.
        """
        answer = self._ask("curriculum.at", {"slots": [str(int(s)) for s in slots]})
        draws = [Draw(t["task"], t["labels"], t["labels"].get("group", 0), t["item"]) for t in answer["tasks"]]
        return int(answer["version"]), draws

    def advance(self, results: Iterable[Mapping[str, Any]]) -> int:
        """Takes results by item as one update, as ``tell`` does, of tasks that need not have been asked for.

        Args:
            results: ``{"item", "passes", "episodes", "lost"}`` each; episodes are those with an outcome.

        Returns:
            The version from here on.

        Raises:
            UnknownNameError: If it has no such item. Then, as on every error, nothing changes.
            BadInputError: If the numbers cannot be.
        """
        return int(self._ask("curriculum.advance", {"results": [dict(r) for r in results]})["version"])

    @property
    def version(self) -> int:
        """Counts the changes of what ``at`` draws."""
        return self.at([])[0]

    def report(self) -> Any:
        """Returns the items with what is known of each."""
        return self._ask("curriculum.report").get("items")

    def state(self) -> Any:
        """Returns what ``resume`` takes."""
        return self._ask("curriculum.state")["state"]

"""Traces: every episode recorded as it runs, in SQLite, through the library alone."""

from __future__ import annotations

import atexit
import contextlib
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from provegym import _lib
from provegym.errors import ProveGymError, StateError

__all__ = ["Trace", "query", "replay", "verify"]

_open: weakref.WeakValueDictionary[tuple[Path, str], Trace] = weakref.WeakValueDictionary()  # by path and pack hash
_kept: list[Trace] = []  # opened for a path that was given to environments: one run a process, whenever they are made


class Trace(_lib.Handle):
    """One run of a trace store, recording. Give it to any number of environments of one pack as ``trace=``.

    Args:
        path: The store's file, or a folder for it; made if missing. It may hold many runs.
        run: What identifies the run: policy, checkpoint_hash, pack_hash, check_hash, split_hash, plan_hash, config.
        pack: The pack; stands for its two hashes.
        durability: "normal" survives a killed process; "full" also a power loss.
        resume: Iteration of the saved state that the trainer goes on from (0 before the first): the run of the same identity is
            continued, and what it did after its last ``mark`` is superseded. None starts a run.

    Raises:
        StoreError: If it cannot be opened, or holds no run to resume.
    """

    def __init__(
        self,
        path: str | Path,
        run: Mapping[str, Any] | None = None,
        *,
        pack: str | None = None,
        durability: str | None = None,
        resume: int | None = None,
    ) -> None:
        """Opens it."""
        self.path = Path(path)
        identity = {**_hashes(pack), **(run or {})}
        asked = {"path": str(path), "run": identity, "durability": durability, "resume": resume}
        answer = _lib.request("trace.open", asked)
        super().__init__(answer["handle"])
        self.run = answer.get("run")
        self._pack = pack
        _open[self.path.resolve(), identity.get("pack_hash", "")] = self

    @classmethod
    def shared(cls, path: str | Path, pack: str) -> Trace:
        """Returns this process's open run of that pack in the store at that path, or opens one that stays open."""
        found = _open.get((Path(path).resolve(), _hashes(pack)["pack_hash"]))
        if found is None or not found._drop.alive:
            found = cls(path, pack=pack)
            _kept.append(found)
        return found

    def flush(self) -> int:
        """Waits until all recorded so far is on disk, and returns how many episodes that is."""
        return int(self._ask("trace.flush").get("episodes", 0))

    def tokens(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Stores the tokens of episodes that a language model played; a second row for an episode replaces the first.

        Args:
            rows: For each episode ``episode`` (its id in the trace), ``checkpoint``, and the counts ``prompt``, ``sampled`` (of
                the completion, by the model) and ``shown`` (of the completion, by the environment). The tokens themselves may
                follow, as lists or arrays: ``prompt_ids``, ``completion_ids``, ``mask`` (1 where the model sampled) and, of the
                sampled ones, ``logprobs``.

        Raises:
            BadInputError: If counts and arrays do not agree. Then, as on every error, none is stored.
            UnknownNameError: If an episode did not begin in this store.
        """
        self._ask("trace.tokens", {"rows": [{k: _plain(v) for k, v in row.items() if v is not None} for row in rows]})

    def mark(self, iteration: int) -> None:
        """Notes that the trainer's state of an iteration is saved: later rows of a killed run are superseded on resume."""
        self._ask("trace.mark", {"iteration": iteration})

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as path and pack: the copy opens a run of its own."""
        if self._pack is None:
            raise TypeError("a Trace can be pickled if it was opened with pack=")
        return Trace.shared, (self.path, self._pack)


def _plain(value: Any) -> Any:
    """The value as JSON has it: of arrays and their elements plain lists and numbers, of truth values 0 and 1."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(v) if hasattr(v, "tolist") else int(v) if isinstance(v, bool) else v for v in value]
    return value


def _hashes(pack: str | None) -> dict[str, str]:
    if pack is None:
        return {}
    found = _lib.request("packs", {"pack": pack})["packs"][0]
    return {"pack_hash": found["hash"], "check_hash": found["check_hash"]}


@atexit.register
def _end_all() -> None:
    for trace in list(_open.values()):
        with contextlib.suppress(ProveGymError):  # this is a forked child
            try:
                trace.close()
            except StateError:  # an environment is still open
                trace.flush()


def query(path: str | Path, what: str, **args: Any) -> list[dict[str, Any]]:
    """Reads rows of a store.

    Args:
        path: The store.
        what: "runs", "episodes", "steps", "calls", "explanation" (of one episode, as ``Env.explain`` gives it), "slots" or
            "tokens".
        **args: What narrows them: run, episode, condition, purpose, arm, look, iteration, success, after, limit; plan. Of
            tokens ``detail=True`` asks for the arrays too.

    Raises:
        StoreError: If it cannot be read.
        BadInputError: If ``what`` or an argument is none that it knows.
    """
    rows: list[dict[str, Any]] = _lib.request("trace.query", {"path": str(path), "what": what, **args})["rows"]
    return rows


def verify(path: str | Path) -> dict[str, Any]:
    """Checks a store from end to end; returns ok, the number of episodes, and the problems."""
    return _lib.request("trace.verify", {"path": str(path)})


def replay(path: str | Path, episode: int | None = None, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """Runs recorded episodes again and compares digests; yields replayed and mismatches so far until done."""
    return _lib.steps("trace.replay", {"path": str(path), "episode": episode, "limit": limit})

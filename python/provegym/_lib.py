"""The library: finds it, loads it on first use, checks that it fits, and asks it. The only file that touches the extension."""

from __future__ import annotations

import contextlib
import json
import os
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from provegym import _native
from provegym.errors import BY_STATUS, BadInputError, LibraryError, ProveGymError, StateError

__all__ = ["Handle", "build_info", "dumps", "find", "load", "request", "steps", "vector"]

_BUDGET_MS = 200  # one slice of a long request; between two of them Ctrl-C works
_loaded = False


def find() -> Path:
    """Returns the path of libprovegym.so: ``PROVEGYM_LIBRARY`` if set, else the one beside this package.

    Raises:
        LibraryError: If there is none.
    """
    named = os.environ.get("PROVEGYM_LIBRARY")
    path = Path(named) if named else Path(__file__).parent / "lib" / "libprovegym.so"
    if not path.is_file():
        where = "PROVEGYM_LIBRARY names" if named else "this installation lacks"
        raise LibraryError(f"{where} {path}; install again (pip install .) or point PROVEGYM_LIBRARY at a built library")
    return path


def load() -> None:
    """Loads the library, once.

    Raises:
        LibraryError: If it cannot be found or loaded, or was built from another header than the extension.
    """
    global _loaded
    if _loaded:
        return
    path = find()
    try:
        _native.load(str(path), BY_STATUS)
    except OSError as err:
        raise LibraryError(f"cannot load {path}: {err}; build and install the package again") from err
    header = json.loads(_native.build_info())["header"]
    if header != _native.HEADER:
        raise LibraryError(
            f"{path} was built from another provegym.h (sha256 {header[:12]}…) than this package's extension "
            f"({_native.HEADER[:12]}…); build and install the package again"
        )
    _loaded = True


def build_info() -> dict[str, Any]:
    """Returns how the library was built: abi, version, hashes of sources and header, Go and SQLite versions."""
    load()
    info: dict[str, Any] = json.loads(_native.build_info())
    return info


def dumps(value: Mapping[str, Any]) -> str:
    """Returns a request as JSON.

    Raises:
        BadInputError: If a value is not JSON: NaN, infinite, or an object of another kind.
    """
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as err:
        raise BadInputError(f"cannot be sent as JSON: {err}") from err


def request(method: str, args: Mapping[str, Any] | None = None, handle: int = 0) -> dict[str, Any]:
    """Asks the library through its one cold door; the methods stand in provegym.h.

    Args:
        method: The method's name.
        args: Its arguments; those that are None are left out.
        handle: The handle that it works on, 0 for the library itself.

    Returns:
        The answer.

    Raises:
        ProveGymError: Of the kind of the library's status.
    """
    load()
    given = {k: v for k, v in (args or {}).items() if v is not None}
    answer: dict[str, Any] = json.loads(_native.request(handle, method, dumps(given)))
    return answer


def steps(method: str, args: Mapping[str, Any] | None = None, handle: int = 0) -> Iterator[dict[str, Any]]:
    """Asks again and again until the answer is done, yielding each answer. A ``cursor`` in it is handed back."""
    given = {**(args or {}), "budget_ms": _BUDGET_MS}
    while True:
        answer = request(method, given, handle)
        yield answer
        if answer.get("done", True):
            return
        if "cursor" in answer:
            given["cursor"] = answer["cursor"]


def vector(config: Mapping[str, Any], num_envs: int, text: bool, final: bool) -> _native.Vector:
    """Makes a vector of environments in the library; ``final`` asks for the last observations of ended episodes."""
    load()
    given = {k: v for k, v in config.items() if v is not None}
    return _native.Vector(dumps(given), num_envs, text, final)


class Handle:
    """A thing that lives in the library: a trace, a search, a curriculum, a check run. Closed by ``close`` or when dropped."""

    def __init__(self, handle: str) -> None:
        """Takes over an open handle, a decimal string as the library returns it."""
        self._handle = int(handle)
        self._drop = weakref.finalize(self, _drop, self._handle)
        self._drop.atexit = False

    @property
    def handle(self) -> str:
        """The handle as requests take it."""
        return str(self._handle)

    def _ask(self, method: str, args: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return request(method, args, self._handle)

    def close(self) -> None:
        """Closes it; a second call does nothing.

        Raises:
            StateError: If an environment still uses it; then it stays open.
            ProveGymError: What was lost on the way, such as a StoreError of a trace; it is closed all the same.
        """
        if self._drop.alive:
            try:
                self._ask("close")
            except StateError:
                raise
            except ProveGymError:
                self._drop.detach()
                raise
            self._drop.detach()

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Closes it."""
        self.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Returns itself: ``gymnasium.make`` copies its arguments, and there is one of it."""
        return self


def _drop(handle: int) -> None:
    with contextlib.suppress(ProveGymError):  # closed with what held it, or this is a forked child
        request("close", {}, handle)

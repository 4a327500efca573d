"""What can go wrong, one class for each kind. The text of every error says what, why and what to do."""

from __future__ import annotations

__all__ = [
    "ProveGymError",
    "BadInputError",
    "UnknownNameError",
    "HeldOutError",
    "StateError",
    "ClosedError",
    "BusyError",
    "ForkError",
    "SnapshotError",
    "StoreError",
    "PackError",
    "EndpointError",
    "BugError",
    "HostError",
    "LibraryError",
    "BY_STATUS",
]


class ProveGymError(Exception):
    """Raised by this package; every other class here is one of its kinds."""


class BadInputError(ProveGymError, ValueError):
    """Raised when an argument is malformed, out of range or of the wrong type."""


class UnknownNameError(ProveGymError, ValueError):
    """Raised when a pack, family, dial, level, preset, agent or method does not exist; the text has the nearest one."""


class HeldOutError(ProveGymError):
    """Raised when the split does not admit a condition in this mode."""


class StateError(ProveGymError, RuntimeError):
    """Raised when a call comes at the wrong time: no reset yet, the episode is over, nothing was sent."""


class ClosedError(ProveGymError, RuntimeError):
    """Raised when a closed environment, trace, search or curriculum is used."""


class BusyError(ProveGymError, RuntimeError):
    """Raised when a second thread enters an environment that another one is inside."""


class ForkError(ProveGymError, RuntimeError):
    """Raised in a child that was forked after its parent loaded the library; use multiprocessing's spawn."""


class SnapshotError(ProveGymError):
    """Raised when a snapshot is of another pack, view or digest."""


class StoreError(ProveGymError, OSError):
    """Raised when the trace store or a file cannot be read or written."""


class PackError(ProveGymError):
    """Raised when a pack broke its own declaration."""


class EndpointError(ProveGymError, ConnectionError):
    """Raised when a model's endpoint fails for one episode after another, where going on would only lose more."""


class BugError(ProveGymError):
    """Raised when the library caught a bug of its own; the text has the place."""


class HostError(ProveGymError, OSError):
    """Raised when this machine lacks what is needed, or its sandbox failed: never the fault of what runs in a box."""


class LibraryError(ProveGymError, ImportError):
    """Raised when the library cannot be found or loaded, or was built from another header."""


BY_STATUS: dict[int, type[ProveGymError]] = {
    -1: BadInputError,
    -2: UnknownNameError,
    -3: HeldOutError,
    -4: StateError,
    -5: ClosedError,
    -6: BusyError,
    -7: ForkError,
    -8: SnapshotError,
    -9: StoreError,
    -10: PackError,
    -11: BugError,
    -12: HostError,
}
"""The class of each negative status of the C interface."""

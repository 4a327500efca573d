"""How two pieces of code are compared: in slices that alternate within one run, by the 25th percentile of their cost.

On a machine that others use too, slices next to each other see the same weather, and the lower quartile leaves out those that
something got in the way of. The ratio is what counts; nanoseconds are for orientation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Clock = Callable[[], int]
"""Nanoseconds: ``time.thread_time_ns`` for code of one thread, ``time.perf_counter_ns`` for code of several."""


def p25(values: Sequence[float]) -> float:
    """Returns the 25th percentile, between neighbours by linear interpolation."""
    return float(np.percentile(values, 25))


def ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """Returns how many times the cost of ``under`` that of ``over`` is."""
    return p25(over) / p25(under)


@dataclass(frozen=True)
class Candidate:
    """One piece of code to compare."""

    run: Callable[[int], object]
    """Does so many batches of work."""
    units: int
    """Units of work (environment steps, say) in a batch; costs are told per unit."""


def batches(candidate: Candidate, seconds: float, clock: Clock) -> int:
    """Returns how many batches of a candidate fill a slice."""
    n = 1
    while True:
        began = clock()
        candidate.run(n)
        took = clock() - began
        if took >= seconds * 1e9 / 8:
            return max(1, round(n * seconds * 1e9 / took))
        n *= 2


def alternate(
    candidates: Mapping[str, Candidate], *, rounds: int, seconds: float, clock: Clock = time.thread_time_ns
) -> dict[str, list[float]]:
    """Runs the candidates in turn, ``rounds`` slices each, and returns nanoseconds per unit of every slice."""
    sizes = {name: batches(c, seconds, clock) for name, c in candidates.items()}
    costs: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, c in candidates.items():
            began = clock()
            c.run(sizes[name])
            costs[name].append((clock() - began) / (sizes[name] * c.units))
    return costs

"""The benchmark compares what it says it compares: its arithmetic, and the three counter worlds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import run  # noqa: E402
import slices  # noqa: E402


def test_p25_and_ratio() -> None:
    assert slices.p25([4.0, 1.0, 3.0, 2.0, 5.0]) == 2.0
    assert slices.p25([1.0, 2.0, 3.0, 4.0]) == 1.75
    slow, fast = [30.0, 20.0, 1000.0, 20.0, 20.0], [5.0, 5.0, 5.0, 900.0, 7.0]
    assert slices.ratio(slow, fast) == 4.0, "the lower quartiles, so that one disturbed slice on either side does not count"


class Clock:
    """Time that passes only by the work of the candidates."""

    def __init__(self) -> None:
        self.now = 0
        self.log: list[str] = []

    def __call__(self) -> int:
        return self.now

    def candidate(self, name: str, ns: int, units: int) -> slices.Candidate:
        def work(n: int) -> None:
            self.log.append(name)
            self.now += n * ns

        return slices.Candidate(work, units)


def test_alternate_takes_turns_and_divides() -> None:
    clock = Clock()
    both = {"a": clock.candidate("a", 3_000, 2), "b": clock.candidate("b", 70_000, 7)}
    costs = slices.alternate(both, rounds=5, seconds=0.01, clock=clock)
    assert costs == {"a": [1_500.0] * 5, "b": [10_000.0] * 5}
    assert clock.log[-10:] == ["a", "b"] * 5
    assert slices.ratio(costs["b"], costs["a"]) == pytest.approx(20 / 3)


@pytest.mark.parametrize("ns", [10, 3_000, 50_000_000])
def test_a_slice_is_as_long_as_asked(ns: int) -> None:
    clock = Clock()
    n = slices.batches(clock.candidate("a", ns, 1), 0.1, clock)
    assert n == max(1, round(0.1e9 / ns))


@pytest.mark.parametrize(
    ("value", "goal", "verdict"),
    [(1.15, "<= 1.15", "met"), (1.16, "<= 1.15", "missed"), (25.0, ">= 25", "met"), (24.9, ">= 25", "missed"),
     (0.25, "< 0.25", "missed"), (0.2, "< 0.25", "met"), (9.0, "", "info")],
)  # fmt: skip
def test_verdict(value: float, goal: str, verdict: str) -> None:
    assert run.Row("x", value, "x", goal).verdict() == verdict


def test_loop_goes_round() -> None:
    taken: list[int] = []
    steps = run.loop(taken.append, [1, 2, 3])
    for n in (2, 2, 3):
        steps(n)
    assert taken == [1, 2, 3, 1, 2, 3, 1]


def test_the_table_hides_no_miss() -> None:
    bench = run.Bench(1, 0.1, 7)
    bench.add("good", 1.0, "x", "<= 1.15")
    bench.add("bad", 2.0, "x", "<= 1.15")
    assert [line.split()[-1] for line in bench.table().splitlines()[2:]] == ["met", "missed"]


def test_inside_reads_what_the_program_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    report: dict[str, Any] = {
        "mallocs": {"episode_off": 0.1, "episode_on": 0.5, "steps_structured": 0, "steps_text": 0},
        "record": {"text": {"off": [100.0] * 4, "on": [110.0] * 4, "off_cpu": [100.0] * 4, "on_cpu": [105.0] * 4}},
        "steps": {"text": 6},
        "parts": {"call_text": [2_000.0] * 4, "reset_text": [300_000.0] * 4, "fork_text": [1_000.0] * 4},
    }
    monkeypatch.setattr(run.worlds, "BUILD", tmp_path)
    monkeypatch.setattr(run.subprocess, "run", lambda *a, **k: SimpleNamespace(stdout=json.dumps(report)))
    bench = run.Bench(4, 0.1, 7)
    bench.inside(tmp_path / "gobench")
    told = {r.name: (round(r.value, 6), r.verdict()) for r in bench.rows}
    assert told == {
        "mallocs a step, recording off": (0, "met"),
        "mallocs a step that recording adds": (0.4, "missed"),
        "recording, text, N=512, a policy of no cost": (10.0, "met"),
        "tooluse call, text": (2.0, "met"),
        "tooluse reset, text": (300.0, "missed"),
        "tooluse fork, text": (1.0, "info"),
    }


def test_the_three_worlds_agree(seed: int) -> None:
    """In a process of its own: it opens another library."""
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "worlds.py", "--seed", str(seed)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "agree" in done.stdout

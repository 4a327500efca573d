"""The demo at its full size, killed twenty times at seeded times (slow: `make test-kill`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_train import command, survive, verdicts

KILLS = 20


@pytest.mark.slow
def test_twenty_kills(tmp_path: Path, seed: int) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(command(whole, size=[]), stdout=sys.stderr, check=True)
    times = json.loads((whole / "report.json").read_text())["times"]["seconds"]
    # On the average, twenty lives cover about the length of the run once: kills fall into every kind of unit.
    hits = survive(killed, KILLS, longest=max(6.0, 2 * sum(times.values()) / KILLS), seed=seed, size=[])
    assert hits == KILLS
    assert json.loads((killed / "plan.json").read_text())["hash"] == json.loads((whole / "plan.json").read_text())["hash"]
    assert verdicts(killed) == verdicts(whole)

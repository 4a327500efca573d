"""kill -9 in the middle of steps: the trace is intact, and TRL's own resume goes on with curriculum and ledger restored."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import grpo

from provegym import trace as traces

HERE = Path(__file__).parent
STEPS, KILLS = 10, 3


def start(folder: Path, resume: bool) -> subprocess.Popen[str]:
    command = [sys.executable, str(HERE / "grpo.py"), str(folder), str(STEPS), *(["--resume"] if resume else [])]
    env = os.environ | {"OMP_NUM_THREADS": "2"}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lines(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith('{"'):
            yield json.loads(line)


def finish(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    told = list(lines(process))
    assert process.wait() == 0, process.stderr.read()[-3000:] if process.stderr else ""
    return told


def played(folder: Path) -> list[tuple[Any, ...]]:
    rows = traces.query(folder / "runs" / "trace.db", "episodes")
    what = ("iteration", "slot", "task", "outcome", "success", "calls", "digest")
    return sorted(tuple(str(r.get(k)) for k in what) for r in rows if r["outcome"] != "running")


def test_killed_and_resumed_is_as_uninterrupted(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    told = finish(start(whole, resume=False))

    again: list[dict[str, Any]] = []
    for life in range(KILLS):
        process = start(broken, resume=life > 0)
        begun: list[float] = []
        for line in lines(process):
            again.append(line)
            if "generating" in line:
                begun.append(time.monotonic())
            if len(begun) == 2:  # a step on, so that each life gets somewhere, and none to the end
                time.sleep(rng.random() * (begun[1] - begun[0]))  # in a turn, in the update, while saving
                break
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert traces.verify(broken / "runs" / "trace.db")["ok"]
    again = finish(start(broken, resume=True))

    assert [t["state"] for t in again if "state" in t] == [t["state"] for t in told if "state" in t]
    assert played(broken) == played(whole)
    assert len(played(whole)) == STEPS * 2 * grpo.GROUP
    store = broken / "runs" / "trace.db"
    assert traces.verify(store)["ok"]
    assert all(not step["mismatches"] for step in traces.replay(store))

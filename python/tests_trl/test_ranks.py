"""Two ranks on CPU, over gloo: they draw the same tasks, and the members of a group are the same wherever they run."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import grpo

from provegym import trace as traces

HERE = Path(__file__).parent
STEPS = 4


def test_two_ranks_agree(tmp_path: Path) -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ranks = []
    for rank in range(2):
        env = os.environ | {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
        env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(HERE / "grpo.py"), str(tmp_path), str(STEPS)]
        ranks.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    told = []
    for process in ranks:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, err[-3000:]
        told.append([json.loads(line) for line in out.splitlines() if line.startswith('{"')])
    a, b = ([t for t in lines if "step" in t] for lines in told)
    assert len(a) == len(b) == STEPS
    for one, other in zip(a, b, strict=True):
        assert (one["step"], one["version"]) == (other["step"], other["version"])
        rows = one["rollouts"] + other["rollouts"]
        groups = [rows[i : i + grpo.GROUP] for i in range(0, len(rows), grpo.GROUP)]
        assert len(groups) == 3
        for group in groups:
            assert all(member == group[0] for member in group)
        assert len({tuple(g[0]) for g in groups}) == 3
    assert len({t["version"] for t in a}) == STEPS  # raised by every update
    assert len({json.dumps(t["rollouts"]) for t in a}) == STEPS
    states = [t["state"] for lines in told for t in lines if "state" in t]
    assert states[0] == states[1]  # the same results in the same order
    for path in (tmp_path / "runs" / "trace.db", tmp_path / "runs" / "trace-rank1.db"):
        assert len(traces.query(path, "episodes")) == STEPS * grpo.ROWS
        assert traces.verify(path)["ok"]

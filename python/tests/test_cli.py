"""The command: what it prints, its exit status, its errors."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from provegym.cli import main


def out(capsys: Any, *argv: str, status: int = 0) -> str:
    assert main(argv) == status
    return str(capsys.readouterr().out)


def test_tasks(capsys: Any) -> None:
    assert "provegym/ToolUse-v0" in out(capsys, "tasks")
    text = out(capsys, "tasks", "tooluse")
    assert "resolve-act" in text and "oracle" in text and "fanout" in text
    assert json.loads(out(capsys, "tasks", "tooluse", "--json"))[0]["name"] == "tooluse"
    ids = json.loads(out(capsys, "tasks", "tooluse", "-n", "3", "--preset", "L2", "--family", "for-each", "--json"))
    assert len(ids) == 3 and all(i.startswith("tooluse@1/for-each?") for i in ids)


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["tasks", "tolluse"], 'did you mean "tooluse"'),
        (["tasks", "tooluse", "-n", "1", "--family", "for-eahc"], 'did you mean "for-each"'),
        (["tasks", "tooluse", "-n", "1", "--dial", "fanout"], "NAME=VALUE"),
        (["tasks", "tooluse", "-n", "1", "--split", "none.json"], "none.json"),
        (["run", "tooluse", "--agent", "orcale", "-n", "1"], 'did you mean "oracle"'),
        (["prove", "table", "none.json"], "none.json"),
    ],
)
def test_errors_name_the_nearest(capsys: Any, argv: list[str], text: str) -> None:
    assert main(argv) == 2
    assert text in capsys.readouterr().err


def test_unknown_verbs(capsys: Any) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["chek-pack"])
    assert caught.value.code == 2 and "did you mean check-pack?" in capsys.readouterr().err


def test_play(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('?\n? finish\nfinish outcome=nope\n{"tool": "nope"}\n' + "nope x\n" * 200))
    text = out(capsys, "play", "tooluse", "--preset", "L0", "--seed", "3")
    assert "tooluse@1/" in text and '"unknown_tool"' in text and "truncated: reward 0" in text
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    out(capsys, "play", "tooluse")


def test_run(capsys: Any) -> None:
    text = out(capsys, "run", "tooluse", "-n", "40", "--preset", "L1")
    assert text.splitlines()[-1].split()[1:4] == ["40", "40", "1"], text
    results = json.loads(out(capsys, "run", "tooluse", "-n", "4", "--view", "structured", "--json"))
    assert [r["success"] for r in results] == [True] * 4


def test_check_pack(capsys: Any) -> None:
    argv = ["check-pack", "echo", "--family", "copy", "--dial-seeds", "2"]
    text = out(capsys, *argv, "--seeds", "2000")
    assert "echo: ok" in text and "oracle" in text
    # Too few seeds to bound what random play scores: not a proof, and the status says so.
    text = out(capsys, *argv, "--seeds", "20", status=1)
    assert "echo: FAILED" in text and "nc2_random_valid" in text.partition("not as it must be")[2]
    assert json.loads(out(capsys, *argv, "--seeds", "20", "--json", status=1))["ok"] is False


def test_trace(capsys: Any, tmp_path: Path) -> None:
    store = str(tmp_path / "t.db")
    out(capsys, "run", "tooluse", "-n", "5", "--trace", store)
    runs = json.loads(out(capsys, "trace", "ls", store, "--json"))
    assert len(runs) == 1
    episodes = json.loads(out(capsys, "trace", "ls", store, "--run", str(runs[0]["id"]), "--json"))
    assert len(episodes) == 5
    steps = json.loads(out(capsys, "trace", "show", str(episodes[0]["id"]), store, "--json"))
    assert len(steps) == episodes[0]["steps"]
    assert "ok" in out(capsys, "trace", "verify", store)
    assert "5 episodes replayed, 0 differ" in out(capsys, "trace", "replay", store)


def test_break(capsys: Any) -> None:
    argv = ("break", "tooluse", "--agent", "priority_heuristic", "--budget", "400")
    report = json.loads(out(capsys, *argv, "--json"))
    assert report["causes"] is not None and out(capsys, *argv).splitlines()[-1].endswith("causes")


def test_doctor(capsys: Any) -> None:
    text = out(capsys, "doctor")
    assert "ok      library" in text and "user namespaces" in text
    assert {f["name"] for f in json.loads(out(capsys, "doctor", "--json"))} >= {"library", "go", "cgroup", "memory"}


def test_ctrl_c() -> None:
    command = [sys.executable, "-m", "provegym", "run", "tooluse", "-n", "100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        maps = Path(f"/proc/{child.pid}/maps")
        while child.poll() is None and "libprovegym" not in maps.read_text():
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    assert child.returncode == 130 and "Traceback" not in err and "stopped" in err

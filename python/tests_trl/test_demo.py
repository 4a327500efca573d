"""`make demo-trl`, tiny: the whole path runs, is killed, goes on, and keeps its plan; base against base shows nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from scripted import make_model, make_tokenizer

from provegym import trace as traces

DEMO = Path(__file__).resolve().parents[1] / "examples" / "trl_demo.py"


def start(out: Path, *more: str) -> subprocess.Popen[str]:
    env = os.environ | {"HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-u", str(DEMO), "--out", str(out), "--smoke", *more]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    told, _ = process.communicate(timeout=900)
    assert process.returncode == 0, told[-3000:]
    return told


def report(out: Path) -> Any:
    return json.loads((out / "grpo" / "report.json").read_text())


def test_killed_and_resumed(tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = start(out)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("step 1"):  # a checkpoint is saved each step or so
            break
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    plan = (out / "plan.json").read_bytes()
    assert traces.verify(out / "trace.db")["ok"]
    told = finish(start(out, "--resume"))
    assert (out / "plan.json").read_bytes() == plan
    made = report(out)
    (look,) = made["looks"]
    assert made["plan"]["hash"] == json.loads(plan)["hash"]
    assert look["counts"]["planned"] == look["counts"]["scored"] == 160 and not look["counts"]["invalid"], look["counts"]
    assert made["headline"]["sentence"] in told
    assert traces.verify(out / "trace.db")["ok"]
    rows = traces.query(out / "trace.db", "episodes")
    assert {r["purpose"] for r in rows} == {"train", "break", "monitor", "sealed"}
    assert {r["mode"] for r in rows if r["purpose"] in ("train", "break")} == {"train"}
    tokens = {t["episode"] for t in traces.query(out / "trace.db", "tokens")}
    assert {r["id"] for r in rows if r["outcome"] in ("scored", "truncated")} <= tokens
    assert 0 < json.loads((out / "result.json").read_text())["environments_share"] < 1
    assert "<html" in (out / "grpo" / "report.html").read_text()
    repeat = [sys.executable, str(DEMO), "--out", str(out), "--smoke"]
    again = subprocess.run(repeat, capture_output=True, text=True, check=False)
    assert again.returncode == 1 and "add --resume" in again.stderr
    other = [*repeat, "--resume", "--seed", "2"]
    assert subprocess.run(other, capture_output=True, check=False).returncode == 1


def test_base_against_base(tmp_path: Path) -> None:
    finish(start(tmp_path / "run", "--no-train"))
    made = report(tmp_path / "run")
    words = {r["verdict"]["label"] for r in [*made["looks"][0]["rows"], made["looks"][0]["overall"]]}
    assert not words & {"IMPROVED", "REGRESSED"}


def test_a_pretrained_model_imitates_first(tmp_path: Path) -> None:
    folder = tmp_path / "pretrained"
    make_model().save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    told = finish(start(tmp_path / "run", "--model", str(folder)))
    assert "8 transcripts" in told
    made = report(tmp_path / "run")
    assert made["plan"]["base"]["rule"].startswith("pretrained, SFT on oracle episodes")
    assert made["looks"][0]["counts"]["scored"] == 160

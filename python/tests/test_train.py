"""The main job, tiny: what it writes, that it repeats itself, that it survives, and that it needs no network."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import provegym
from provegym import trace as traces

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "python" / "examples"
sys.path.insert(0, str(EXAMPLES))
from policy import Policy, uniforms  # noqa: E402
from rollout import Job, Player, noise_key  # noqa: E402

SIZE = ["--smoke"]
FILES = {
    "plan.json",
    "split.json",
    "trace.db",
    "break.json",
    "curriculum.json",
    "report.json",
    "report.md",
    "report.html",
    "forest.png",
    "learning.png",
}


def command(out: Path, *more: str, size: list[str] | None = None) -> list[str]:
    return [
        sys.executable,
        str(EXAMPLES / "train.py"),
        "--out",
        str(out),
        "--seed",
        "3",
        *(SIZE if size is None else size),
        *more,
    ]


def offline() -> list[str]:
    """What runs a command without a network; empty if this host does not let us."""
    for prefix in (["unshare", "-n"], ["unshare", "-rn"]):
        if shutil.which("unshare") and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0:
            return prefix
    return []


def verdicts(out: Path) -> list[tuple[Any, ...]]:
    """The verdict table of a report."""
    look = json.loads((out / "report.json").read_text())["looks"][-1]
    return [(r["condition"], r["b"], r["c"], r["n"], r["p"], r["verdict"]) for r in [*look["rows"], look["overall"]]]


def digests(out: Path) -> list[tuple[Any, ...]]:
    """Every episode that counts, with its digest."""
    rows = traces.query(out / "trace.db", "episodes")
    return sorted(
        (r.get("iteration", 0), r["purpose"], r.get("arm", ""), r["task"], r.get("group", 0), r.get("digest", "")) for r in rows
    )


def check_trace(out: Path) -> None:
    """The store is sound, everything in it replays, and it holds what the saved state says was played."""
    found = traces.verify(out / "trace.db")
    assert found["ok"], found["problems"][:5]
    for answer in traces.replay(out / "trace.db"):
        assert not answer["mismatches"], answer["mismatches"][:5]
    if not (out / "state.npz").exists():
        return
    with np.load(out / "state.npz") as z:
        state = json.loads(bytes(z["state"]))
    have: dict[str, int] = {}
    for r in traces.query(out / "trace.db", "episodes"):
        if r["outcome"] != "running" and r.get("iteration", 0) < state["unit"]:
            have[r["purpose"]] = have.get(r["purpose"], 0) + 1
    assert have == state["spent"], "an episode that was acknowledged is missing, or one too many counts"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One uninterrupted run, in an empty network namespace where this host allows one."""
    out = tmp_path_factory.mktemp("train") / "run"
    done = subprocess.run([*offline(), *command(out)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "overall" in done.stdout and "verdict" in done.stdout
    return out


@pytest.mark.usefixtures("finished")
def test_it_needs_no_network() -> None:
    """What is to be shown is that ``finished`` ran to its end in there."""
    if not offline():
        pytest.skip("this host has no network namespaces (provegym doctor: network)")


def test_it_writes_everything(finished: Path) -> None:
    assert {p.name for p in finished.iterdir()} >= FILES
    check_trace(finished)
    report = json.loads((finished / "report.json").read_text())
    plan = json.loads((finished / "plan.json").read_text())
    assert report["plan"]["hash"] == plan["hash"]
    assert report["looks"][0]["counts"]["planned"] == sum(2 * c["G"] for c in plan["conditions"])


def test_the_same_seed_gives_the_same_run(finished: Path, tmp_path: Path) -> None:
    again = tmp_path / "run"
    subprocess.run(command(again), capture_output=True, check=True)
    assert digests(again) == digests(finished)
    one, two = (json.loads((out / "report.json").read_text()) for out in (finished, again))
    one.pop("times")
    two.pop("times")
    assert one == two
    for name in ("plan.json", "split.json", "break.json", "curriculum.json"):
        mine, theirs = (json.loads((out / name).read_text()) for out in (again, finished))
        for plan in (mine, theirs):
            if name == "plan.json":
                plan.pop("made", None)
        assert mine == theirs, name


def run_and_kill(out: Path, after: float, *more: str, size: list[str] | None = None) -> tuple[int, str]:
    """Starts the run in a group of its own and kills it. Returns exit code and output."""
    child = subprocess.Popen(
        command(out, *more, size=size), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    deadline = time.monotonic() + after
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
    text, _ = child.communicate()
    return child.returncode, text


def survive(out: Path, kills: int, longest: float, seed: int, size: list[str] | None = None) -> int:
    """Kills a run again and again at seeded times, resuming it each time; then lets it end. Returns the kills that hit it."""
    draw = random.Random(seed)
    hits = 0
    for _ in range(kills):
        more = ["--resume"] if (out / "plan.json").exists() else []
        code, text = run_and_kill(out, draw.uniform(1.0, longest), *more, size=size)
        assert code in (0, -signal.SIGKILL), text[-2000:]
        hits += code != 0
        if (out / "trace.db").exists():
            check_trace(out)
        if code == 0:
            shutil.rmtree(out)
    more = ["--resume"] if (out / "plan.json").exists() else []
    done = subprocess.run(command(out, *more, size=size), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    check_trace(out)
    return hits


def test_a_killed_run_resumes_to_the_same_verdicts(finished: Path, tmp_path: Path, seed: int) -> None:
    out = tmp_path / "run"
    seconds = sum(json.loads((finished / "report.json").read_text())["times"]["seconds"].values())
    assert survive(out, kills=4, longest=2.0 + seconds / 2, seed=seed) > 0
    assert json.loads((out / "plan.json").read_text())["hash"] == json.loads((finished / "plan.json").read_text())["hash"]
    assert verdicts(out) == verdicts(finished)


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    child = subprocess.Popen(command(out), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    while not (out / "state.npz").exists() and child.poll() is None:
        time.sleep(0.02)  # the first unit is done, many are left
    os.killpg(child.pid, signal.SIGINT)
    text, _ = child.communicate()
    assert child.returncode == 130 and "--resume" in text, text[-2000:]
    check_trace(out)


def test_wrong_use_is_refused(finished: Path, tmp_path: Path) -> None:
    for more, says in (([], "add --resume"), (["--resume", "--uniform"], "other arguments")):
        done = subprocess.run(command(finished, *more), capture_output=True, text=True, check=False)
        assert done.returncode == 1 and says in done.stderr, done.stderr
    done = subprocess.run(command(tmp_path / "none", "--resume"), capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "no run to resume" in done.stderr


def test_the_learner_acts_alike_on_recorded_arrays(seed: int) -> None:
    split = provegym.Split.freeze({"pack": "tooluse", "families": {"for-each": "test"}})
    player = Player("train", split, None, 8)
    policy = Policy(seed)
    jobs = [Job(t, {}, noise_key(seed, t)) for t in provegym.sample("tooluse", 12, seed=seed, split=split, mode="train")]
    _, seen = player.play(jobs, policy, record=True)
    player.close()
    assert seen is not None and len(seen) > 50
    keys = np.array([jobs[j].noise for j in seen.job], np.uint64)
    actions, chance = policy.act(seen.obs, uniforms(keys, seen.step))
    assert (actions == seen.actions).all()
    assert np.allclose(chance, seen.chance, rtol=1e-4)

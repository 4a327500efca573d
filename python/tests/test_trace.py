"""Recording from Python: what is flushed is on disk, what was recorded replays to the same digests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from agents import pick_number, play

import provegym
from provegym import Trace, trace
from provegym.errors import BadInputError, ClosedError, ProveGymError, StateError, StoreError, UnknownNameError


def test_an_environment_records(tmp_path: Path, seed: int) -> None:
    store = tmp_path / "a.db"
    env: Any = gym.make("provegym/ToolUse-v1", trace=store, labels={"purpose": "train", "arm": "a"}).unwrapped
    told = play(env, seed, 60)
    Trace.shared(store, "tooluse").flush()
    episodes = trace.query(store, "episodes")
    ended = [t for t in told if len(t) == 6 and (t[3] or t[4])]
    assert len([e for e in episodes if e["outcome"] != "running"]) == len(ended) > 0
    assert {e["purpose"] for e in episodes} == {"train"} and {e["arm"] for e in episodes} == {"a"}
    env.close()
    assert trace.verify(store)["ok"]
    assert not [m for answer in trace.replay(store) for m in answer.get("mismatches") or []]


def test_a_trace_is_shared_and_outlives_its_users(tmp_path: Path, seed: int) -> None:
    store = Trace(tmp_path / "b.db", {"policy": "random"}, pack="tooluse")
    assert Trace.shared(tmp_path / "b.db", "tooluse") is store
    envs: Any = gym.make_vec("provegym/ToolUseStructured-v1", 4, trace=store, autoreset_mode="SameStep")
    rng = np.random.default_rng(seed)
    envs.reset(seed=seed)
    ended = 0
    for _ in range(100):
        _, _, terminated, truncated, _ = envs.step(np.array([pick_number(m, rng) for m in envs.action_masks()]))
        ended += int((terminated | truncated).sum())
    with pytest.raises(StateError):
        store.close()
    envs.close()
    store.close()
    store.close()
    done = [e for e in trace.query(tmp_path / "b.db", "episodes") if e["outcome"] != "running"]
    assert len(done) == ended > 0


def test_what_is_flushed_survives_kill(tmp_path: Path) -> None:
    code = f"""
        import gymnasium, provegym, sys
        store = provegym.Trace({str(tmp_path / "c.db")!r}, pack="tooluse")
        envs = gymnasium.make_vec("provegym/ToolUse-v1", 8, trace=store, autoreset_mode="SameStep")
        envs.reset(seed=1)
        ended = 0
        while True:
            *_, terminated, truncated, _ = envs.step(["x"] * 8)
            ended += int((terminated | truncated).sum())
            if ended >= 40:
                store.flush()
                print(ended, flush=True)
                while True: envs.step(["x"] * 8)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        ended = int(child.stdout.readline())
        os.kill(child.pid, signal.SIGKILL)
    done = [e for e in trace.query(tmp_path / "c.db", "episodes") if e["outcome"] != "running"]
    assert len(done) >= ended
    assert trace.verify(tmp_path / "c.db")["ok"]


def test_packs_of_one_store_have_runs_of_their_own(tmp_path: Path, seed: int) -> None:
    store = tmp_path / "d.db"
    for id_ in ("provegym/ToolUse-v1", "provegym/Echo-v0", "provegym/ToolUseStructured-v1"):
        env: Any = gym.make(id_, trace=store).unwrapped
        play(env, seed, 40)
        env.close()
    Trace.shared(store, "echo").flush()
    assert [r["pack_hash"] for r in trace.query(store, "runs")] == [provegym.pack(p)["hash"] for p in ("tooluse", "echo")]


def test_a_run_of_another_pack_is_refused(tmp_path: Path, seed: int) -> None:
    store = Trace(tmp_path / "e.db", pack="echo")
    env: Any = gym.make("provegym/ToolUse-v1", trace=store).unwrapped
    with pytest.raises(BadInputError, match="pack"):
        env.reset(seed=seed)
        store.flush()
    env.close()
    with pytest.raises(BadInputError, match="pack"):
        store.close()
    store.close()  # what was lost has been said; it is closed
    with pytest.raises(ClosedError):
        store.flush()
    with pytest.raises(ClosedError):
        gym.make_vec("provegym/Echo-v0", 2, trace=store)


def test_tokens(tmp_path: Path, seed: int) -> None:
    path, rng = tmp_path / "t.db", np.random.default_rng(seed)
    store = Trace(path, pack="echo")
    env: Any = gym.make("provegym/Echo-v0", trace=store).unwrapped
    rows, ids = [], []
    for _ in range(4):
        env.reset(seed=seed)
        env.stop("truncated")
        ids.append(env.episode_id)
        mask = rng.integers(2, size=50)
        logprobs = -rng.random(int(mask.sum()), np.float32)
        rows.append(
            {
                "episode": ids[-1],
                "checkpoint": "c1",
                "prompt": np.int64(30),
                "sampled": mask.sum(),
                "shown": int((1 - mask).sum()),
                "prompt_ids": rng.integers(2**32, size=30, dtype=np.uint32),
                "completion_ids": rng.integers(50_000, size=50).tolist(),
                "mask": mask.astype(bool),
                "logprobs": logprobs,
            }
        )
    rows[1] |= {"mask": rows[1]["mask"].tolist(), "logprobs": None}
    store.tokens(rows)
    store.tokens([{"episode": ids[0], "checkpoint": "c2", "prompt": 1, "sampled": 2, "shown": 3}])
    read = trace.query(path, "tokens", detail=True)
    assert read[0] == {"episode": ids[0], "checkpoint": "c2", "prompt": 1, "sampled": 2, "shown": 3}
    for had, got in zip(rows[1:], read[1:], strict=True):
        for name, value in had.items():
            if value is None:
                assert name not in got
            elif name == "logprobs":
                assert np.array_equal(np.array(got[name], np.float32), value)
            else:
                assert np.array_equal(got[name], value), name
    counts = trace.query(path, "tokens", after=ids[1], limit=1)
    assert [c["episode"] for c in counts] == [ids[2]]
    assert set(counts[0]) == {"episode", "checkpoint", "prompt", "sampled", "shown"}
    for wrong, error in (
        ({"episode": ids[-1] + 1}, UnknownNameError),
        ({"episode": ids[0], "prompt_ids": [1]}, BadInputError),
        ({"episode": ids[0], "prompt_ids": [], "completion_ids": [-1], "mask": [1], "sampled": 1}, BadInputError),
        ({"episode": ids[0], "promt": 1}, BadInputError),
        ({**rows[3], "logprobs": np.full(len(rows[3]["logprobs"]), np.nan)}, BadInputError),
    ):
        with pytest.raises(error):
            store.tokens([rows[1], wrong])
    assert trace.query(path, "tokens", detail=True) == read
    env.close()
    store.close()
    assert trace.verify(path)["ok"]


def test_bad_stores(tmp_path: Path) -> None:
    with pytest.raises((StoreError, ProveGymError), match=r"none\.db"):
        trace.query(tmp_path / "none.db", "runs")
    junk = tmp_path / "junk.db"
    junk.write_bytes(b"x" * 9000)
    with pytest.raises(ProveGymError, match=r"junk\.db"):
        trace.query(junk, "runs")
    with pytest.raises(ProveGymError):
        Trace(junk)
    Trace(tmp_path / "good.db").close()
    with pytest.raises(ProveGymError, match="episodes"):
        trace.query(tmp_path / "good.db", "episods")
    with pytest.raises(ProveGymError, match="did you mean"):
        trace.query(tmp_path / "good.db", "episodes", rnu=1)

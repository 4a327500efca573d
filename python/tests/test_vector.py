"""What a vector has beyond N single environments."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from agents import pick_number

import provegym
from provegym.errors import BadInputError, StateError, UnknownNameError

TEXT, NUMBERS = "provegym/ToolUse-v1", "provegym/ToolUseStructured-v1"


def numbers(envs: Any, rng: np.random.Generator) -> Any:
    return np.array([pick_number(m, rng) for m in envs.action_masks()])


def test_send_and_recv_equal_step(seed: int) -> None:
    a: Any = gym.make_vec(NUMBERS, 6)
    b: Any = gym.make_vec(NUMBERS, 6)
    a.reset(seed=seed)
    b.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(30):
        actions = numbers(a, rng)
        observations, rewards, terminated, truncated, _ = a.step(actions)
        b.send(actions[[4, 1, 0]], [4, 1, 0])
        b.send(actions[[2, 3, 5]], np.array([2, 3, 5]))
        got: set[int] = set()
        while len(got) < 6:
            ids, seen, r, te, tr, infos = b.recv(2, timeout=10)
            assert len(ids) and not got & set(ids.tolist()) and (np.diff(ids.astype(int)) > 0).all()
            got |= set(ids.tolist())
            assert set(np.flatnonzero(infos.get("_outcome", np.zeros(6)))) <= set(ids.tolist())
            for name, array in seen.items():
                assert np.array_equal(array, observations[name][ids]), name
            assert np.array_equal(r, rewards[ids])
            assert np.array_equal(te, terminated[ids]) and np.array_equal(tr, truncated[ids])
    a.close()
    b.close()


def test_send_text_of_growing_size(seed: int) -> None:
    envs: Any = gym.make_vec(TEXT, 4)
    envs.reset(seed=seed)
    envs.send(["a"], [0])
    envs.send(["b" * 50_000], [1])  # the block of actions grows while row 0 is under way
    ids, texts, *_ = envs.recv(2)
    assert ids.tolist() == [0, 1] and all("error" in t for t in texts)
    envs.close()


def test_send_twice_and_recv_nothing(seed: int) -> None:
    envs: Any = gym.make_vec(TEXT, 2)
    with pytest.raises(StateError):
        envs.send(["a"], [0])
    envs.reset(seed=seed)
    with pytest.raises(StateError):
        envs.recv()
    envs.send(["a"], [0])
    for again in (lambda: envs.send(["a"], [0]), lambda: envs.step(["a", "b"]), envs.reset):
        with pytest.raises(StateError):
            again()
    with pytest.raises(BadInputError):
        envs.send(["a"], [0, 1])
    with pytest.raises(BadInputError):
        envs.send(["a"], [7])
    envs.recv()
    envs.step(["a", "b"])
    envs.close()


def test_groups_share_tasks(seed: int) -> None:
    envs: Any = gym.make_vec(TEXT, 6, group_size=3)
    for s in (seed, None, None):
        task = envs.reset(seed=s)[1]["task"]
        assert len(set(task[:3])) == len(set(task[3:])) == 1 and task[0] != task[3]
    envs.close()


def test_views_and_copies(seed: int) -> None:
    views: Any = gym.make_vec(NUMBERS, 3, copy=False)
    copies: Any = gym.make_vec(NUMBERS, 3)
    (v, _), (c, _) = views.reset(seed=seed), copies.reset(seed=seed)
    kept = {k: a.copy() for k, a in c.items()}
    for _ in range(4):
        views.step(np.full(3, -1))
        copies.step(np.full(3, -1))
    assert all(np.array_equal(c[k], kept[k]) for k in c)
    assert v["budget"][0, 1] == 4, "a view shows the newest observation"
    texts: Any = gym.make_vec(TEXT, 3, copy=False)
    seen, _ = texts.reset(seed=seed)
    single: Any = gym.make(TEXT)
    assert bytes(seen[0]).decode() == single.reset(seed=seed)[0]
    for e in (views, copies, texts, single):
        e.close()


def test_bytes_are_text(seed: int) -> None:
    a: Any = gym.make_vec(TEXT, 2)
    b: Any = gym.make_vec(TEXT, 2)
    a.reset(seed=seed)
    b.reset(seed=seed)
    call = '{"tool": "žluť"}'
    assert a.step([call, "x"])[0] == b.step((call.encode(), b"x"))[0]
    a.close()
    b.close()


def test_workers_change_nothing(seed: int) -> None:
    def told(workers: int, n: int) -> list[Any]:
        envs: Any = gym.make_vec(NUMBERS, n, num_workers=workers, autoreset_mode="SameStep")
        envs.reset(seed=seed)
        rng = [np.random.default_rng(i) for i in range(n)]
        out = []
        for _ in range(60):
            actions = np.array([pick_number(m, r) for m, r in zip(envs.action_masks(), rng, strict=True)])
            observations, rewards, terminated, truncated, _ = envs.step(actions)
            out.append((observations["slots"][:8].tobytes(), rewards[:8].tobytes(), terminated[:8], truncated[:8]))
        envs.close()
        return [tuple(x.tobytes() if hasattr(x, "tobytes") else x for x in t) for t in out]

    first = told(1, 8)
    assert told(2, 8) == first and told(2, 64) == first


def test_a_vector_is_not_pickled() -> None:
    envs: Any = gym.make_vec(TEXT, 2)
    with pytest.raises(TypeError, match="snapshot"):
        pickle.dumps(envs)
    envs.close()


def test_labels(seed: int) -> None:
    envs: Any = gym.make_vec(TEXT, 2, labels={"purpose": "train"})
    task = envs.reset(seed=seed)[1]["task"][0]
    assert envs.get_attr("labels") == ({"purpose": "train"},) * 2
    _, infos = envs.reset(options={"task": task, "labels": {"arm": "a"}})
    assert infos["task"].tolist() == [task] * 2 and envs.get_attr("labels") == ({"arm": "a"},) * 2
    envs.close()


@pytest.mark.parametrize("id_", provegym.ids())
def test_what_was_shown_can_be_kept(id_: str, seed: int) -> None:
    """With copy=False too: an observation of long ago, and of a closed vector, can be read without harm."""
    envs: Any = gym.make_vec(id_, 512, copy=False)
    first, _ = envs.reset(seed=seed)
    kept = [bytes(o) for o in first] if isinstance(first, tuple) else None
    long = '{"tool":"' + "x" * 300 + '"}'
    for _ in range(3):
        now = envs.step([long] * 512 if kept else np.ones(512, int))[0]
    envs.close()
    if kept:
        assert [bytes(o) for o in first] == kept and all(bytes(o) for o in now)
    else:
        assert all(a.sum() is not None for a in [*first.values(), *now.values()])


def test_async_vector_takes_the_first_that_are_ready(seed: int) -> None:
    envs = provegym.AsyncVector("provegym/ToolUse-v1", num_envs=8, batch_size=3)
    envs.reset(seed=seed)
    envs.send(["x"] * 8)
    flying, sent = set(range(8)), 8
    while sent < 200:
        rows, texts, rewards, *_ = envs.recv(timeout=10)
        assert len(rows) == len(texts) == len(rewards) >= 3 and set(rows.tolist()) <= flying
        envs.send(["x"] * len(rows), rows)
        sent += len(rows)
    received = sent - 8
    while received < sent:
        received += len(envs.recv(1)[0])
    with pytest.raises(StateError):
        envs.recv()
    envs.close()


def test_async_vector_bad_input() -> None:
    with pytest.raises(UnknownNameError, match="did you mean"):
        provegym.AsyncVector("provegym/ToolUse-v11", 4)
    with pytest.raises(BadInputError, match="batch_size"):
        provegym.AsyncVector("provegym/ToolUse-v1", 4, batch_size=5)

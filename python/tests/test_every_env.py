"""What must hold for every registered id; nobody lists packs by hand."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from agents import Player, freeze, pick_number, play
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import provegym

ids = pytest.mark.parametrize("id_", provegym.ids())
modes = pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda m: m.value)


def test_ids_are_registered() -> None:
    assert "provegym/ToolUse-v1" in gym.registry and "provegym/ToolUseStructured-v1" in gym.registry
    assert "provegym/Terminal-v0" in gym.registry and "provegym/TerminalStructured-v0" not in gym.registry
    with pytest.raises(provegym.errors.BadInputError, match="free text"):
        gym.make("provegym/Terminal-v0", view="structured").reset()
    assert set(provegym.ids()) == {i for i in gym.registry if i.startswith("provegym/")}
    with pytest.raises(gym.error.NameNotFound, match="ToolUse"):
        gym.make("provegym/TollUse-v0")


def test_check_env(env: Any) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(infinity|unwrapped|render).*")
        check_env(env)


def test_same_seed_same_told(env: Any, seed: int) -> None:
    first = play(env, seed, 60)
    assert first == play(env, seed, 60), "a second run of the same environment differs"
    other = gym.make(env.spec.id).unwrapped
    assert first == play(other, seed, 60), "another environment differs"
    assert first != play(env, seed + 1, 60)


def test_seed_starts_a_stream(env: Any, seed: int) -> None:
    def tasks(first: int | None, n: int) -> list[str]:
        return [env.reset(seed=first if i == 0 else None)[1]["task"] for i in range(n)]

    stream = tasks(seed, 4)
    assert len(set(stream)) == 4
    assert tasks(seed, 4) == stream
    assert tasks(None, 1)[0] not in stream, "a reset without a seed must go on, not begin again"
    assert tasks(seed + 1, 4) != stream


def test_unseeded_environments_differ(env: Any) -> None:
    other = gym.make(env.spec.id).unwrapped
    assert env.reset()[1]["task"] != other.reset()[1]["task"]


def test_observations_are_in_the_space(env: Any, seed: int) -> None:
    player, (observation, _) = Player(seed), env.reset(seed=seed)
    for _ in range(40):
        assert observation in env.observation_space
        action = player.act(env, observation)
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            observation, _ = env.reset()


def test_observations_are_the_callers(env: Any, seed: int) -> None:
    player, (observation, _) = Player(seed), env.reset(seed=seed)
    before = freeze(observation)
    env.step(player.act(env, observation))
    env.reset()
    assert freeze(observation) == before


def refuses_snapshots(env: Any) -> bool:
    """Whether the pack does not replay: then it must say so. What else it cannot do for that reason is not tried."""
    if provegym.pack(env.spec.kwargs["pack"])["deterministic"]:
        return False
    for door in (env.snapshot, lambda: env.fork(1), lambda: pickle.dumps(env)):
        with pytest.raises(provegym.errors.SnapshotError, match="does not replay"):
            door()
    return True


def test_restore_at_every_step(env: Any, seed: int) -> None:
    player, (observation, _) = Player(seed), env.reset(seed=seed)
    if refuses_snapshots(env):
        return
    other = gym.make(env.spec.id).unwrapped
    for _ in range(12):
        restored, info = other.restore(env.snapshot())
        assert freeze(restored) == freeze(observation) and info["task"] == env.task
        action = player.act(env, observation)
        told = env.step(action)
        again = other.step(action)
        assert (freeze(told[0]), *told[1:]) == (freeze(again[0]), *again[1:])
        observation = told[0]
        if told[2] or told[3]:
            break


def test_snapshot_option_is_restore(env: Any, seed: int) -> None:
    player, (observation, _) = Player(seed), env.reset(seed=seed)
    if refuses_snapshots(env):
        return
    observation, *_ = env.step(player.act(env, observation))
    data = env.snapshot()
    env.reset()
    assert freeze(env.reset(options={"snapshot": data})[0]) == freeze(observation)


def test_fork(env: Any, seed: int) -> None:
    player, (observation, _) = Player(seed), env.reset(seed=seed)
    if refuses_snapshots(env):
        return
    observation, *_ = env.step(player.act(env, observation))
    action = player.act(env, observation)
    copies = env.fork(3)
    told = [env.step(action), *(c.step(action) for c in copies)]
    assert all((freeze(t[0]), *t[1:]) == (freeze(told[0][0]), *told[0][1:]) for t in told)
    for copy in copies:
        copy.close()
    env.snapshot()


@pytest.mark.parametrize("when", ["new", "reset", "mid-episode", "after three resets"])
def test_pickle(env: Any, seed: int, when: str) -> None:
    player = Player(seed)
    observation = None
    if when != "new":
        observation, _ = env.reset(seed=seed)
        if refuses_snapshots(env):
            return
    if when == "after three resets":
        env.reset()
        observation, _ = env.reset()
    if when == "mid-episode":
        observation, *_ = env.step(player.act(env, observation))
    copy = pickle.loads(pickle.dumps(env))
    assert copy.spec == env.spec
    if observation is not None:
        action = player.act(env, observation)
        told, again = env.step(action), copy.step(action)
        assert (freeze(told[0]), *told[1:]) == (freeze(again[0]), *again[1:])
        for _ in range(3):
            assert env.reset()[1] == copy.reset()[1], "the copy draws other tasks"
    assert env.reset(seed=seed)[1] == copy.reset(seed=seed)[1]


def same(a: Any, b: Any, at: str = "") -> None:
    """Whether two answers of vectors are the same, dtype for dtype."""
    assert type(a) is type(b), f"{at}: {type(a)} and {type(b)}"
    if isinstance(a, dict):
        assert a.keys() == b.keys(), f"{at}: {sorted(a)} and {sorted(b)}"
        for k in a:
            same(a[k], b[k], f"{at}[{k!r}]")
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape, f"{at}: {a.dtype}{a.shape} and {b.dtype}{b.shape}"
        if a.dtype == object:
            for i in range(len(a)):
                same(a[i], b[i], f"{at}[{i}]")
        else:
            assert np.array_equal(a, b), f"{at}: {a} and {b}"
    elif isinstance(a, tuple):
        assert len(a) == len(b), at
        for i in range(len(a)):
            same(a[i], b[i], f"{at}[{i}]")
    else:
        assert a == b, f"{at}: {a!r} and {b!r}"


@ids
@modes
def test_vector_equals_singles(id_: str, mode: AutoresetMode, seed: int) -> None:
    n = 4
    ours: Any = gym.make_vec(id_, n, autoreset_mode=mode)
    sync = SyncVectorEnv([lambda: gym.make(id_).unwrapped] * n, autoreset_mode=mode)
    assert ours.metadata["autoreset_mode"] is mode
    assert ours.observation_space == sync.observation_space and ours.action_space == sync.action_space
    players = [Player(seed + i) for i in range(n)]
    a, b = ours.reset(seed=seed), sync.reset(seed=seed)
    same(a, b, "reset")
    observations, ended = a[0], 0
    for step in range(150):
        actions = []
        for i, player in enumerate(players):
            seen = observations[i] if isinstance(observations, tuple) else None
            actions.append(player.act(sync.envs[i], seen))
        taken = tuple(actions) if isinstance(observations, tuple) else np.array(actions)
        a, b = ours.step(taken), sync.step(taken)
        same(a, b, f"step {step}")
        done = a[2] | a[3]
        ended += int(done.sum())
        observations = a[0]
        if mode is AutoresetMode.DISABLED and done.any():
            a, b = ours.reset(options={"reset_mask": done}), sync.reset(options={"reset_mask": done.copy()})
            same(a, b, f"reset after {step}")
            observations = a[0]
        if not isinstance(observations, tuple):
            masks = np.stack([e.action_masks() for e in sync.envs])
            assert np.array_equal(ours.action_masks(), masks)
    assert ended > n, "too few episodes ended for the comparison to mean much"
    ours.close()
    sync.close()


@ids
@modes
def test_record_episode_statistics(id_: str, mode: AutoresetMode, seed: int) -> None:
    envs: Any = RecordEpisodeStatistics(gym.make_vec(id_, 3, autoreset_mode=mode))
    player = Player(seed)
    observations, _ = envs.reset(seed=seed)
    for _ in range(300):
        taken: Any = ("not a call",) * 3  # each costs a call, so the budget ends the episode
        if not isinstance(observations, tuple):
            taken = np.array([pick_number(m, player.rng) for m in envs.unwrapped.action_masks()])
        observations, _, terminated, truncated, infos = envs.step(taken)
        done = terminated | truncated
        if done.any():
            assert (infos["episode"]["l"][infos["_episode"]] > 0).all() and np.array_equal(infos["_episode"], done)
            break
        assert "episode" not in infos
    else:
        pytest.fail("no episode ended")
    envs.close()


@ids
def test_async_spawn(id_: str, seed: int) -> None:
    kwargs = {"context": "spawn", "shared_memory": False}
    envs = gym.make_vec(id_, 2, vectorization_mode="async", vector_kwargs=kwargs)
    single = gym.make(id_)
    _, infos = envs.reset(seed=seed)
    assert infos["task"][0] == single.reset(seed=seed)[1]["task"]
    envs.close()
    single.close()

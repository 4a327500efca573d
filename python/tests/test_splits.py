"""A held-out condition cannot become an episode in training mode through any door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import provegym
from provegym import Breaker, Curriculum, Split
from provegym.errors import BadInputError, HeldOutError, StateError, UnknownNameError

VIEWS = ["provegym/ToolUse-v1", "provegym/ToolUseStructured-v1"]
PACK = next(p for p in provegym.manifest() if p["name"] == "tooluse")
HELD, OPEN = PACK["families"][-1], PACK["families"][0]
HELD_TASK = f"tooluse@{PACK['version']}/{HELD}#seed=5"
OPEN_TASK = f"tooluse@{PACK['version']}/{OPEN}#seed=5"

views = pytest.mark.parametrize("id_", VIEWS)


@pytest.fixture
def split() -> Split:
    return Split.freeze({"pack": "tooluse", "families": {HELD: "test"}})


def test_a_split_is_hashed_and_saved(split: Split, tmp_path: Path) -> None:
    assert len(split.hash) == 64
    split.save(tmp_path / "split.json")
    assert Split.of(tmp_path / "split.json") == split == Split.of(split.manifest)
    assert Split.freeze(split.manifest) == split
    assert split.region(HELD_TASK.partition("#")[0])[0] == "test"
    assert split.region(OPEN_TASK.partition("#")[0])[0] == "train"
    with pytest.raises(BadInputError, match="changed"):
        Split.freeze({**split.manifest, "families": {OPEN: "test"}})


@views
def test_make(id_: str, split: Split) -> None:
    with pytest.raises(HeldOutError):
        gym.make(id_, family=HELD, split=split, mode="train")
    with pytest.raises(HeldOutError):
        gym.make(id_, family=[OPEN, HELD], split=split, mode="eval")
    gym.make(id_, family=HELD, split=split, mode="test").close()


@views
def test_make_vec(id_: str, split: Split) -> None:
    with pytest.raises(HeldOutError):
        gym.make_vec(id_, 2, family=HELD, split=split, mode="train")


@views
def test_make_from_a_file(id_: str, split: Split, tmp_path: Path) -> None:
    split.save(tmp_path / "split.json")
    with pytest.raises(HeldOutError):
        gym.make(id_, family=HELD, split=str(tmp_path / "split.json"), mode="train")


@views
def test_own_stream(id_: str, split: Split) -> None:
    envs: Any = gym.make_vec(id_, 64, split=split, mode="train")
    tasks = [t for s in range(20) for t in envs.reset(seed=s * 64)[1]["task"]]
    assert len({t.partition("#")[0] for t in tasks}) >= len(PACK["families"]) - 1
    assert not [t for t in tasks if f"/{HELD}" in t]
    envs.close()


@views
def test_options(id_: str, split: Split) -> None:
    env: Any = gym.make(id_, split=split, mode="train").unwrapped
    with pytest.raises(HeldOutError):
        env.reset(options={"task": HELD_TASK})
    assert env.reset(options={"task": OPEN_TASK})[1]["task"] == OPEN_TASK
    envs: Any = gym.make_vec(id_, 2, split=split, mode="train")
    with pytest.raises(HeldOutError):
        envs.reset(options={"task": HELD_TASK})
    env.close()
    envs.close()


@views
def test_queue(id_: str, split: Split) -> None:
    envs: Any = gym.make_vec(id_, 2, split=split, mode="train")
    with pytest.raises(HeldOutError):
        envs.queue([OPEN_TASK, HELD_TASK])
    _, infos = envs.reset(seed=1)
    assert OPEN_TASK not in infos["task"], "of a refused queue nothing must be taken"
    envs.queue([OPEN_TASK], labels={"purpose": "train"})
    _, infos = envs.reset()
    assert infos["task"][0] == OPEN_TASK and infos["task"][1] != OPEN_TASK
    assert envs.get_attr("labels")[0] == {"purpose": "train"}
    envs.close()


@views
def test_restore_and_fork(id_: str, split: Split) -> None:
    free: Any = gym.make(id_).unwrapped
    free.reset(options={"task": HELD_TASK})
    data = free.snapshot()
    train: Any = gym.make(id_, split=split, mode="train").unwrapped
    train.reset(seed=1)
    task = train.task
    for door in (lambda: train.restore(data), lambda: train.reset(options={"snapshot": data})):
        with pytest.raises(HeldOutError):
            door()
    assert train.task == task, "a refused restore must leave the episode"
    envs: Any = gym.make_vec(id_, 3, split=split, mode="train")
    envs.reset(seed=1)
    with pytest.raises(HeldOutError):
        envs.restore(1, data)
    envs.fork(0, [1, 2])
    assert len(set(envs.get_attr("task"))) == 1 and f"/{HELD}" not in envs.get_attr("task")[0]
    for e in (free, train, envs):
        e.close()


def test_sample_and_rollout(split: Split) -> None:
    with pytest.raises(HeldOutError):
        provegym.sample("tooluse", 3, family=HELD, split=split, mode="train")
    assert not [t for t in provegym.sample("tooluse", 50, split=split, mode="train") if f"/{HELD}" in t]
    with pytest.raises(HeldOutError):
        provegym.rollout("oracle", [OPEN_TASK, HELD_TASK], split=split, mode="train")


def test_curriculum_and_break(split: Split) -> None:
    with pytest.raises(HeldOutError):
        Curriculum("tooluse", split=split, key=1, families=[HELD])
    with Breaker("tooluse", split=split, key=1, families=[HELD]) as search:
        assert search.ask(50) == []
    with Curriculum("tooluse", split=split, key=1) as sampler:
        assert not [d for d in sampler.ask(200) if f"/{HELD}" in d.task]
        resumed = Curriculum.resume(sampler.state())
        assert [d.task for d in resumed.ask(20)] == [d.task for d in sampler.ask(20)]
    with Breaker("tooluse", split=split, key=1, budget=100) as search:
        probes = search.ask(50)
        assert probes and not [p for p in probes if f"/{HELD}" in p.task]
        assert search.tell({"id": p.id, "failed": False, "lost": False} for p in probes) in (True, False)
        Breaker.resume(search.state()).close()


@pytest.mark.parametrize("mode", ["failures", "uniform"])
def test_slots_of_a_curriculum(split: Split, mode: str) -> None:
    one, two = (Curriculum("tooluse", split=split, key=1, mode=mode) for _ in range(2))
    with one, two:
        version, draws = one.at(range(100))
        assert version == one.version == two.version and not [d for d in draws if f"/{HELD}" in d.task]
        assert len({d.task for d in draws}) > 90 and draws[7].group == draws[7].labels["slot"] == 7
        assert two.at([7, 3]) == (version, [draws[7], draws[3]]), "another rank, in another order"
        results = [{"item": draws[0].item, "passes": 1, "episodes": 3, "lost": 1}]
        assert one.advance(results) == two.advance(results) == one.version == version + 1
        resumed = Curriculum.resume(one.state())
        assert resumed.at(range(20)) == two.at(range(20)) != (version, draws[:20])
        with pytest.raises(UnknownNameError):
            one.advance([*results, {"item": "none", "passes": 0, "episodes": 1, "lost": 0}])
        with pytest.raises(BadInputError):
            one.at([-1])
        assert one.at(range(20)) == two.at(range(20)), "a refused update must change nothing"


def test_a_vector_draws_from_a_curriculum(split: Split) -> None:
    with Curriculum("tooluse", split=split, key=1, mode="uniform") as sampler:
        envs: Any = gym.make_vec(VIEWS[0], 4, split=split, mode="train", curriculum=sampler, group_size=2)
        tasks = envs.reset(seed=1)[1]["task"]
        assert tasks[0] == tasks[1] and tasks[2] == tasks[3] and not [t for t in tasks if f"/{HELD}" in t]
        for _ in range(60):
            envs.step(["x"] * 4)
        with pytest.raises(StateError):
            sampler.close()
        envs.close()


@pytest.mark.parametrize(
    "held",
    [{"mechanisms": {"by_conversion": "test"}}, {"mechanisms": {"resolve-act/drop": "eval", "for-each/drop": "test"}}],
)
def test_what_only_a_built_task_shows_is_held_out_too(held: dict[str, Any]) -> None:
    """Break and the curriculum draw no task of a held-out mechanism, and each task that they draw can be begun in training."""
    split = Split.freeze({"pack": "tooluse", **held})
    dials = ["indirection", "near_duplicates"]  # a small space: where mechanisms are held out, every cell of it is built
    with Curriculum("tooluse", split=split, key=1, mode="uniform", dials=dials) as sampler:
        tasks = [d.task for d in sampler.ask(300)]
    with Breaker("tooluse", split=split, key=1, budget=300, dials=dials) as search:
        tasks += [p.task for p in search.ask(200)]
    assert len(tasks) > 300
    assert len(provegym.rollout("pc1_oracle", tasks, split=split, mode="train")) == len(tasks)
    free = provegym.sample("tooluse", 200, family=["resolve-act", "for-each"], dials={"indirection": 3}, mode="free")
    refused = 0
    for task in free:
        try:
            provegym.rollout("pc1_oracle", [task], split=split, mode="train")
        except HeldOutError:
            refused += 1
    assert refused > 20, "the mechanism occurs, so that the test can fail"


def test_training_region_without_the_base() -> None:
    """An environment of a split that excludes a dial's base draws from the nearest settings, without being told which."""
    bounds = {"page_size": ["5"], "extra_tools": ["0"], "slack": ["3"]}
    split = Split.freeze({"pack": "tooluse", "families": {HELD: "test"}, "train_dials": bounds})
    env = gym.make("provegym/ToolUse-v1", split=split, mode="train")
    _, info = env.reset(seed=1)
    assert info["task"].partition("?")[2].partition("#")[0] == "extra_tools=0&page_size=5&slack=3"
    with Curriculum("tooluse", split=split, key=1, mode="uniform") as sampler:
        for draw in sampler.ask(50):
            assert "extra_tools=0" in draw.task and "page_size=5" in draw.task and "slack=3" in draw.task
    with pytest.raises(HeldOutError):
        gym.make("provegym/ToolUse-v1", split=split, mode="train", preset="L1")

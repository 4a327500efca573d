"""Bad input gets a clear typed error; what an agent does wrong it sees itself, and its episode goes on."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import provegym
from provegym import errors
from provegym.errors import BadInputError, BusyError, ClosedError, ForkError, StateError, UnknownNameError

TEXT, NUMBERS = "provegym/ToolUse-v1", "provegym/ToolUseStructured-v1"
PACK = next(p for p in provegym.manifest() if p["name"] == "tooluse")
FAMILY, DIAL = PACK["families"][0], PACK["dials"][0]


def twist(name: str) -> str:
    """A misspelt name that is near enough to be recognised."""
    return name[:-1] + ("x" if name[-1] != "x" else "y")


MAKING: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("an unknown pack", {"pack": "toolsue"}, UnknownNameError, 'did you mean "tooluse"'),
    ("an unknown family", {"family": twist(FAMILY)}, UnknownNameError, f'did you mean "{FAMILY}"'),
    ("an unknown family in a list", {"family": [FAMILY, "zzz"]}, UnknownNameError, "zzz"),
    ("an unknown dial", {"dials": {twist(DIAL): 1}}, UnknownNameError, f'did you mean "{DIAL}"'),
    ("an unknown level", {"dials": {DIAL: 987654}}, BadInputError, DIAL),
    ("a level that is NaN", {"dials": {DIAL: float("nan")}}, BadInputError, "JSON"),
    ("a level that is a list", {"dials": {DIAL: [1]}}, BadInputError, DIAL),
    ("an unknown preset", {"preset": "L99"}, UnknownNameError, "L99"),
    ("an unknown mode", {"mode": "trian"}, UnknownNameError, "train"),
    ("an unknown view", {"view": "txt"}, UnknownNameError, "text"),
    ("a mode without a split", {"mode": "train"}, BadInputError, "split"),
    ("a split of another kind", {"split": 3}, BadInputError, "int"),
    ("a split file that is not there", {"split": "no/such.json"}, errors.StoreError, "no/such.json"),
    ("a split that is not a manifest", {"split": {"pakc": "tooluse"}}, BadInputError, "pakc"),
    ("a render mode", {"render_mode": "human"}, BadInputError, "render"),
    ("an object as a label", {"labels": {"purpose": object()}}, BadInputError, "JSON"),
    ("an unknown label", {"labels": {"porpoise": "train"}}, BadInputError, 'did you mean "purpose"'),
    ("a name of 100 kB", {"family": "f" * 100_000}, UnknownNameError, "100000"),
]


@pytest.mark.parametrize(("kwargs", "error", "text"), [m[1:] for m in MAKING], ids=[m[0] for m in MAKING])
def test_making(kwargs: dict[str, Any], error: type[Exception], text: str) -> None:
    from provegym.env import Env
    from provegym.vector import VectorEnv

    given = {"pack": "tooluse", **kwargs}
    with pytest.raises(error, match=text) as caught:
        Env(**given)
    assert len(str(caught.value)) < 600
    with pytest.raises(error, match=text):
        VectorEnv(2, **given)


VECTORS: list[tuple[str, dict[str, Any], str]] = [
    ("no rows", {"num_envs": 0}, "num_envs"),
    ("rows that are not a number", {"num_envs": "3"}, "num_envs"),
    ("a group that does not divide", {"num_envs": 4, "group_size": 3}, "group_size"),
    ("an unknown autoreset mode", {"num_envs": 2, "autoreset_mode": "Never"}, "NextStep"),
    ("a number of workers below 0", {"num_envs": 2, "num_workers": -1}, "num_workers"),
]


@pytest.mark.parametrize(("kwargs", "text"), [m[1:] for m in VECTORS], ids=[m[0] for m in VECTORS])
def test_making_vectors(kwargs: dict[str, Any], text: str) -> None:
    from provegym.vector import VectorEnv

    with pytest.raises(BadInputError, match=text):
        VectorEnv(pack="tooluse", **kwargs)


RESETS: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("an unknown option", {"options": {"tsak": "x"}}, BadInputError, "did you mean 'task'"),
    ("a malformed task id", {"options": {"task": "tooluse"}}, BadInputError, "tooluse"),
    ("a task that is not a string", {"options": {"task": 3}}, BadInputError, "string"),
    ("a task of 100 kB", {"options": {"task": "t" * 100_000}}, BadInputError, "100000 bytes"),
    ("a task of an unknown family", {"options": {"task": "tooluse@2/nope#seed=1"}}, UnknownNameError, "nope"),
    ("labels without a task", {"options": {"labels": {"arm": "a"}}}, BadInputError, "task"),
    ("a snapshot that is not one", {"options": {"snapshot": b"no"}}, BadInputError, "snapshot"),
    ("a snapshot that is text", {"options": {"snapshot": "no"}}, BadInputError, "bytes"),
    ("a negative seed", {"seed": -1}, BadInputError, "seed"),
    ("a seed beyond 64 bits", {"seed": 2**64}, BadInputError, "seed"),
    ("a seed that is a float", {"seed": 1.5}, BadInputError, "seed"),
]


@pytest.mark.parametrize(("kwargs", "error", "text"), [m[1:] for m in RESETS], ids=[m[0] for m in RESETS])
def test_resetting(text_env: Any, kwargs: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        text_env.reset(**kwargs)
    assert len(str(caught.value)) < 600
    text_env.reset(seed=1)  # it lives on


CALLS: list[tuple[str, Any]] = [
    ("nothing", ""),
    ("half a call", '{"tool": "'),
    ("a list", "[1]"),
    ("NaN", '{"tool": NaN}'),
    ("a number for the tool", '{"tool": 3}'),
    ("an unknown tool", '{"tool": "nope"}'),
    ("two calls", '{"tool": "a"} {"tool": "b"}'),
    ("an unknown member", '{"tool": "a", "arg": {}}'),
    ("a NUL", "\x00"),
    ("bytes that are not UTF-8", b'\xff{"tool"'),
    ("a lone surrogate", '{"tool": "\ud800"}'),
    ("100 kB", "x" * 100_000),
    ("100 kB in a name", json.dumps({"tool": "t" * 60_000})),
]


@pytest.mark.parametrize("action", [c[1] for c in CALLS], ids=[c[0] for c in CALLS])
def test_what_the_agent_does_wrong_it_sees(text_env: Any, action: Any) -> None:
    text_env.reset(seed=1)
    observation, reward, terminated, truncated, info = text_env.step(action)
    error = json.loads(observation)["error"]
    assert error["code"] in ("bad_call", "unknown_tool") and error["text"]
    assert (reward, terminated, truncated, info) == (0.0, False, False, {"outcome": "running"})
    assert len(observation.encode()) < 1000, "an error must not echo what was sent"
    text_env.step(action)


def test_an_illegal_number_costs_a_call(number_env: Any) -> None:
    for action in (-1, 64, 65, 10**30, -(2**40), 2**32 + 1, np.int64(2**33 + 1)):
        before, _ = number_env.reset(seed=1)
        mask = number_env.action_masks()
        if 0 <= action < len(mask) and mask[action]:
            continue
        after, *_ = number_env.step(action)
        assert after["last"][0] == 2 and after["budget"][1] == before["budget"][1] + 1


@pytest.mark.parametrize("action", [3, None, 1.5, ["x"], {"tool": "x"}, np.str_], ids=repr)
def test_text_actions_of_the_wrong_type(text_env: Any, action: Any) -> None:
    text_env.reset(seed=1)
    with pytest.raises(BadInputError, match="str or bytes"):
        text_env.step(action)
    text_env.step("{}")


@pytest.mark.parametrize("action", ["1", None, 1.5, float("nan"), True, [1], np.float64(1)], ids=repr)
def test_number_actions_of_the_wrong_type(number_env: Any, action: Any) -> None:
    number_env.reset(seed=1)
    with pytest.raises(BadInputError, match="whole number"):
        number_env.step(action)


BATCHES: list[tuple[str, str, Any]] = [
    ("too few strings", TEXT, ["x"]),
    ("one string", TEXT, "xy"),
    ("a number among strings", TEXT, ["x", 3]),
    ("too few numbers", NUMBERS, np.zeros(1, np.int64)),
    ("a matrix", NUMBERS, np.zeros((2, 1), np.int64)),
    ("floats", NUMBERS, np.zeros(2)),
    ("NaN", NUMBERS, [float("nan"), 1]),
    ("bools", NUMBERS, np.zeros(2, np.bool_)),
    ("strings", NUMBERS, ["a", "b"]),
]


@pytest.mark.parametrize(("id_", "actions"), [b[1:] for b in BATCHES], ids=[b[0] for b in BATCHES])
def test_batches_of_the_wrong_type(id_: str, actions: Any) -> None:
    envs = gym.make_vec(id_, 2)
    envs.reset(seed=1)
    with pytest.raises(BadInputError):
        envs.step(actions)
    envs.close()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int32", "int64", "uint64"])
def test_batches_of_any_integer(dtype: str) -> None:
    envs: Any = gym.make_vec(NUMBERS, 2)
    envs.reset(seed=1)
    first = np.flatnonzero(envs.action_masks()[0])[0]
    observations, *_ = envs.step(np.array([first, 100], dtype))
    assert observations["last"][1][0] == 2, "100 is illegal"
    assert observations["last"][0][0] != 2
    envs.close()


VECTOR_RESETS: list[tuple[str, dict[str, Any]]] = [
    ("too few seeds", {"seed": [1]}),
    ("a seed that is a string", {"seed": ["a", "b"]}),
    ("seeds that run over 64 bits", {"seed": 2**64 - 1}),
    ("a mask that is a list", {"options": {"reset_mask": [True, True]}}),
    ("a mask of numbers", {"options": {"reset_mask": np.ones(2)}}),
    ("a mask of the wrong length", {"options": {"reset_mask": np.ones(3, np.bool_)}}),
    ("a mask of nothing", {"options": {"reset_mask": np.zeros(2, np.bool_)}}),
    ("an unknown option", {"options": {"resetmask": np.ones(2, np.bool_)}}),
]


@pytest.mark.parametrize("kwargs", [r[1] for r in VECTOR_RESETS], ids=[r[0] for r in VECTOR_RESETS])
def test_resetting_vectors(kwargs: dict[str, Any]) -> None:
    envs = gym.make_vec(TEXT, 2)
    with pytest.raises(BadInputError):
        envs.reset(**kwargs)
    envs.close()


def test_unknown_row_attributes() -> None:
    envs: Any = gym.make_vec(TEXT, 2)
    envs.reset(seed=1)
    assert len(envs.call("snapshot")) == 2 and envs.get_attr("task")[0].startswith("tooluse@")
    with pytest.raises(AttributeError, match="did you mean 'tools'"):
        envs.get_attr("tolls")
    with pytest.raises(AttributeError, match="cannot be set"):
        envs.set_attr("tools", [])
    envs.close()


@pytest.mark.parametrize("use", ["step", "snapshot", "task"])
def test_before_the_first_reset(text_env: Any, use: str) -> None:
    with pytest.raises(StateError, match="reset"):
        text_env.step("{}") if use == "step" else text_env.snapshot() if use == "snapshot" else text_env.task


def test_step_after_the_end(text_env: Any) -> None:
    text_env.reset(seed=1)
    for _ in range(10_000):
        *_, truncated, info = text_env.step("")
        if truncated:
            break
    assert info["outcome"] == "truncated" and info["limit"] == "calls" and info["success"] is False
    with pytest.raises(StateError, match="reset"):
        text_env.step("")
    text_env.reset()
    text_env.step("")


def test_use_after_close(text_env: Any) -> None:
    text_env.reset(seed=1)
    text_env.close()
    text_env.close()
    uses: list[Callable[[], Any]] = [lambda: text_env.step("{}"), text_env.reset, text_env.snapshot, lambda: text_env.tools]
    for use in uses:
        with pytest.raises(ClosedError):
            use()


def test_restore_of_the_other_view(text_env: Any, number_env: Any) -> None:
    text_env.reset(seed=1)
    number_env.reset(seed=1)
    with pytest.raises(errors.SnapshotError):
        number_env.restore(text_env.snapshot())
    number_env.step(int(np.flatnonzero(number_env.action_masks())[0]))


def test_call_after_fork(text_env: Any) -> None:
    text_env.reset(seed=1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = []
        for use in (lambda: text_env.step("{}"), lambda: text_env.reset(), lambda: gym.make(TEXT), provegym.build_info):
            try:
                use()
                said.append("nothing")
            except BaseException as err:
                said.append(f"{type(err).__name__}: {err}")
        os.write(write, json.dumps(said).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = json.loads(pipe.read())
    assert os.waitpid(child, 0)[1] == 0
    assert len(said) == 4
    for text in said:
        assert text.startswith(ForkError.__name__) and "spawn" in text, text
    text_env.step("{}")  # the parent goes on


def test_two_threads_on_one_environment() -> None:
    envs: Any = gym.make_vec(NUMBERS, 256, copy=False)
    envs.reset(seed=1)
    actions = np.full(256, -1)
    stop, seen = threading.Event(), []

    def work() -> None:
        for _ in range(20_000):
            if stop.is_set():
                return
            try:
                envs.step(actions)
            except BusyError as err:
                seen.append(err)
                stop.set()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen and "thread" in str(seen[0])
    envs.step(actions)
    envs.close()


def test_buffers_are_checked() -> None:
    from provegym import _lib

    def bind(**arrays: Any) -> None:
        request = {"pack": "tooluse", "view": "structured", "num_envs": 2, "autoreset": "disabled", "mode": "free"}
        _lib.vector(request, 2, False, False).bind(arrays)

    with pytest.raises(BadInputError, match=r"reward: expected float64 of shape \(2\), got format f of shape \(2\)"):
        bind(reward=np.zeros(2, np.float32))
    with pytest.raises(
        BadInputError, match=r"slots: expected float32 of shape \(2, 64, 16\), got format f of shape \(2, 64, 15\)"
    ):
        bind(slots=np.zeros((2, 64, 15), np.float32))
    with pytest.raises(BadInputError, match="goal: expected a writable C-contiguous"):
        bind(goal=np.zeros((2, 48), np.float32)[:, ::2])
    with pytest.raises(BadInputError, match="there is no buffer rewards"):
        bind(rewards=np.zeros(2))
    with pytest.raises(BadInputError, match="action"):
        bind(reward=np.zeros(2))

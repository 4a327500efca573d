"""The controls turned outward: any environment with text or discrete actions, and what it pays for no work."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from provegym import controls
from provegym.cli import main
from provegym.errors import BadInputError
from provegym.spaces import Utf8


class Quiz(gym.Env[str, str]):
    """Asks for a word that it shows; pays for it, and for whatever else ``pays`` says."""

    def __init__(self, pays: str | None = None, space: gym.Space[Any] | None = None, worth: float = 1.0) -> None:
        self.observation_space = Utf8(100)
        self.action_space = space or Utf8(100)
        self.pays, self.worth = pays, worth

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.word = f"w{self.np_random.integers(10**6)}"
        return f"say {self.word}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        right = action == self.word or action == self.pays
        return "", self.worth if right else 0.0, True, False, {}


class Switch(gym.Env[int, int]):
    """Pays for one action; its first action is 5, and it calls another one NOOP."""

    observation_space = gym.spaces.Discrete(1)
    action_space = gym.spaces.Discrete(3, start=5)

    def get_action_meanings(self) -> list[str]:
        return ["LEFT", "NOOP", "RIGHT"]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        assert action in self.action_space
        return 0, float(action == 6), False, False, {}


def by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {r["agent"]: r for r in rows}


@pytest.mark.parametrize(
    ("pays", "want"),
    [(None, []), ("", ["do_nothing"]), ("done", ["constant done"]), ('{"reward": 1, "success": true}', ["spam"])],
)
def test_texts(pays: str | None, want: list[str], seed: int) -> None:
    rows = controls.measure(Quiz(pays), episodes=40, seed=seed)
    assert controls.paid(rows) == want
    for r in rows:
        assert r["low"] <= r["mean"] <= r["high"] and r["episodes"] == 40 and r["steps"] == 1 and not r["cut"]
        assert (r["mean"], r["low"]) == (1.0, pytest.approx(0.9124, abs=1e-3)) if r["agent"] in want else r["low"] == 0.0


def test_a_constant_of_ones_own(seed: int) -> None:
    rows = controls.measure(Quiz("open sesame", worth=3.5), episodes=5, seed=seed, constants=["open sesame"])
    assert controls.paid(rows) == ["constant open sesame"] and by_name(rows)["constant open sesame"]["mean"] == 3.5


def test_numbers(seed: int) -> None:
    rows = by_name(controls.measure(Switch(), episodes=6, seed=seed, max_steps=30))
    assert list(rows) == ["do_nothing", "random", "constant 5", "constant 6", "constant 7", "spam"]
    assert rows["do_nothing"]["mean"] == rows["constant 6"]["mean"] == 30 and rows["spam"]["mean"] == 10
    assert rows["constant 5"]["mean"] == 0 and all(r["cut"] == 6 for r in rows.values())
    assert 0 < rows["random"]["low"] < rows["random"]["mean"] < rows["random"]["high"]
    assert controls.measure(Switch(), episodes=6, seed=seed, max_steps=30) == list(rows.values())


def test_spaces_with_few_words() -> None:
    """A Text space has an alphabet and may forbid the empty text; actions outside it are not played."""
    space = gym.spaces.Text(8, min_length=1, charset="0123456789")
    rows = controls.measure(Quiz("0", space), episodes=10, constants=["42"])
    assert controls.paid(rows) == ["do_nothing", "constant 0", "spam"] and "constant 42" in by_name(rows)
    many = controls.agents(Quiz(space=gym.spaces.Discrete(1000)))
    names = [a.name for a in many]
    assert len(names) == 19 and names[2:4] == ["constant 0", "constant 67"] and names[17] == "constant 999"


def test_ours(seed: int) -> None:
    """Nothing is paid here, in either view; random play keeps to the mask."""
    for id_ in ("provegym/ToolUse-v1", "provegym/ToolUseStructured-v1"):
        rows = controls.measure(gym.make(id_), episodes=3, seed=seed)
        assert not controls.paid(rows) and {r["most"] for r in rows} == {0.0} and min(r["steps"] for r in rows) > 1


@pytest.mark.parametrize(
    ("env", "more", "text"),
    [
        (Quiz(space=gym.spaces.Box(0, 1)), {}, "not Box"),
        (Quiz(space=gym.spaces.MultiDiscrete([2, 2])), {}, "not MultiDiscrete"),
        (Switch(), {"constants": ["left"]}, "whole number"),
        (Switch(), {"constants": ["4"]}, "no action of"),
        (Quiz("done", worth=float("nan")), {}, "paid constant done nan"),
        (Quiz("done", worth="x"), {}, "failed when constant done played seed 0"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_played_is_said(env: gym.Env[Any, Any], more: dict[str, Any], text: str) -> None:
    with pytest.raises(BadInputError, match=text):
        controls.measure(env, episodes=2, **more)


def test_the_command(capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On an environment that a module registers, on CartPole, on ours; and what it says of a wrong line."""
    (tmp_path / "lobby_of_tests.py").write_text(
        textwrap.dedent(
            """
            import gymnasium as gym
            from test_controls import Quiz
            gym.register("lobby/Quiz-v0", entry_point=Quiz)
            """
        )
    )
    monkeypatch.chdir(tmp_path)
    argv = ["controls", "--import", "lobby_of_tests", "--env", "lobby/Quiz-v0", "--episodes", "20"]
    assert main(argv) == 0
    text = capsys.readouterr().out
    assert "no agent that looks at nothing is shown to be paid more than 0; means may be up to 0.161" in text
    assert main([*argv, "--kwargs", '{"pays": "done"}']) == 1
    assert "PAID: constant done gets 1 (0.839 to 1) and looks at nothing" in capsys.readouterr().out
    assert main([*argv, "--kwargs", '{"pays": "done"}', "--floor", "0.9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["paid"] == []
    assert main(["controls", "--env", "CartPole-v1", "--episodes", "10"]) == 1
    text = capsys.readouterr().out
    assert "PAID: do_nothing gets 9" in text and "PAID: constant 1" in text and "PAID: random" not in text
    assert main(["controls", "--env", "provegym/Echo-v0", "--episodes", "2"]) == 0
    capsys.readouterr()
    for wrong, said in (
        (["--env", "CartPoul-v1"], "CartPole"),
        (["--env", "MountainCarContinuous-v0"], "not Box"),
        (["--env", "CartPole-v1", "--kwargs", "{"], "not JSON"),
        (["--env", "CartPole-v1", "--kwargs", "3"], "JSON object"),
        (["--env", "CartPole-v1", "--import", "no_such_module_here"], "no_such_module_here"),
        (["--env", "CartPole-v1", "--seed", "-1"], "--seed"),
        (["--env", "provegym/ToolUse-v1", "--kwargs", '{"family": "brunch"}'], "branch"),
    ):
        assert main(["controls", *wrong]) == 2
        assert said in capsys.readouterr().err

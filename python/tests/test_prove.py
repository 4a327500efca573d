"""Plan, slots, verdict and report through Python; and the packs' own agents, which play here for a base and a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import provegym
from provegym import Split, prove
from provegym.cli import main
from provegym.errors import BadInputError, UnknownNameError

KEY = 11


@pytest.fixture(scope="module")
def split() -> Split:
    return Split.freeze({"pack": "tooluse", "families": {"for-each": "test"}})


@pytest.fixture(scope="module")
def draft() -> dict[str, Any]:
    condition = {"id": "tooluse@2/for-each", "tier": "held-out-family", "G": 40, "psi0": 0.3}
    return {
        "pack": "tooluse@2",
        "base": {"rule": "a baseline"},
        "looks": [{"id": "final", "weight": 1.0, "checkpoint": "last"}],
        "conditions": [condition],
    }


@pytest.fixture(scope="module")
def plan(draft: dict[str, Any], split: Split) -> dict[str, Any]:
    return prove.freeze(draft, key=KEY, split=split)


def records(plan: dict[str, Any], split: Split, agents: dict[str, str]) -> list[dict[str, Any]]:
    pack, slots, out = provegym.pack("tooluse"), prove.tasks(plan, "final", key=KEY), []
    for arm, agent in agents.items():
        results = provegym.rollout(agent, [s["task"] for s in slots], mode="test", split=split)
        for slot, r in zip(slots, results, strict=True):
            out.append(
                {
                    "condition": slot["condition"],
                    "cluster": slot["cluster"],
                    "sample": slot["sample"],
                    "seed": slot["task"].rpartition("=")[2],
                    "arm": arm,
                    "mode": "test",
                    "outcome": r["outcome"],
                    "success": r["success"],
                    "pack_hash": pack["hash"],
                    "check_hash": pack["check_hash"],
                }
            )
    return out


def test_the_planning_table(draft: dict[str, Any], tmp_path: Path, capsys: Any) -> None:
    rows = prove.table(draft)["rows"]
    assert [r["condition"] for r in rows] == ["tooluse@2/for-each", "overall"] and 0 < rows[0]["mde"] < 1
    (tmp_path / "draft.json").write_text(json.dumps(draft))
    assert main(["prove", "table", str(tmp_path / "draft.json")]) == 0
    assert "for-each" in capsys.readouterr().out


def test_a_plan_is_frozen(plan: dict[str, Any], draft: dict[str, Any], split: Split) -> None:
    assert prove.freeze(draft, key=KEY, split=split)["hash"] == plan["hash"] == prove.freeze(plan)["hash"]
    with pytest.raises(BadInputError):
        prove.freeze({**plan, "alpha": 0.5})
    with pytest.raises(BadInputError, match="split"):
        prove.freeze(draft, key=KEY)
    with pytest.raises(BadInputError, match="key"):
        prove.tasks(plan, "final", key=KEY + 1)
    with pytest.raises((BadInputError, UnknownNameError)):
        prove.tasks(plan, "finale", key=KEY)


def test_a_look_and_its_report(plan: dict[str, Any], split: Split) -> None:
    better = records(plan, split, {"base": "priority_heuristic", "checkpoint": "oracle"})
    result = prove.look(plan, "final", key=KEY, records=better, base="b" * 8, checkpoint="c" * 8, ledger=[])
    assert result["overall"]["checkpoint"]["rate"] == 1 and result["counts"]["missing"] == 0
    assert "IMPROVED" in json.dumps(result["overall"]["verdict"])
    same = records(plan, split, {"base": "oracle", "checkpoint": "oracle"})
    assert "IMPROVED" not in json.dumps(prove.look(plan, "final", key=KEY, records=same)["overall"]["verdict"])
    report = prove.report(plan, [result])
    assert report["report"] and "for-each" in report["markdown"] and report["html"].startswith("<!")


def test_sample_is_what_environments_draw(seed: int) -> None:
    env: Any = gym.make("provegym/ToolUse-v1", preset=["L1", "L2"]).unwrapped
    drawn = [env.reset(seed=seed if i == 0 else None)[1]["task"] for i in range(5)]
    assert provegym.sample("tooluse", 5, seed=seed, preset=["L1", "L2"]) == drawn
    assert provegym.task(drawn[0])["instruction"] == env.reset(options={"task": drawn[0]})[0]
    env.close()


@pytest.mark.parametrize("pack", [p["name"] for p in provegym.manifest() if "structured" in p["views"]])
def test_the_oracles_actions_replay_here(pack: str, seed: int) -> None:
    told_of = next(p for p in provegym.manifest() if p["name"] == pack)
    tasks = provegym.sample(pack, 10, seed=seed)
    played = provegym.rollout("oracle", tasks, view="structured", actions=True)
    env: Any = gym.make(f"provegym/{told_of['title']}Structured-v{told_of['version'] - 1}").unwrapped
    for task, told in zip(tasks, played, strict=True):
        env.reset(options={"task": task})
        for action in told["actions"]:
            *_, info = env.step(action)
        assert info["success"] and info["components"] == told["components"] and env.digest == told["digest"]
    env.close()

"""The command: what it prints, its exit status, its errors."""

from __future__ import annotations

import io
import json
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import provegym
from provegym import Split, Trace, _lib, prove, rollout, sample, trace
from provegym.cli import main, terminal
from provegym.controls import wilson
from provegym.errors import StateError

TASK = "tooluse@2/branch?near_duplicates=8#seed=7"


def out(capsys: Any, *argv: str, status: int = 0) -> str:
    assert main(argv) == status
    return str(capsys.readouterr().out)


def test_tasks(capsys: Any) -> None:
    assert "provegym/ToolUse-v1" in out(capsys, "tasks")
    text = out(capsys, "tasks", "tooluse")
    assert "resolve-act" in text and "oracle" in text and "fanout" in text
    assert json.loads(out(capsys, "tasks", "tooluse", "--json"))[0]["name"] == "tooluse"
    ids = json.loads(out(capsys, "tasks", "tooluse", "-n", "3", "--preset", "L2", "--family", "for-each", "--json"))
    assert len(ids) == 3 and all(i.startswith("tooluse@2/for-each?") for i in ids)
    assert len(out(capsys, "tasks", "tooluse", "--dial", "fanout=12").splitlines()) == 10
    text = out(capsys, "tasks", TASK)
    assert text.startswith(TASK) and "get_policy" in text and json.loads(out(capsys, "tasks", TASK, "--json"))["task"] == TASK


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["tasks", "tolluse"], 'did you mean "tooluse"'),
        (["tasks", "tooluse", "-n", "1", "--family", "for-eahc"], 'did you mean "for-each"'),
        (["tasks", "tooluse", "-n", "1", "--dial", "fanout"], "NAME=VALUE"),
        (["tasks", "tooluse", "-n", "1", "--split", "none.json"], "none.json"),
        (["run", "tooluse", "--agent", "orcale", "-n", "1"], 'did you mean "oracle"'),
        (["run", "tooluse", "--agent", "nc6_minus_step", "--variant", "99", "-n", "70"], "variants"),
        (["run", "tooluse", TASK], "name one pack, or task ids"),
        (["run", TASK, "-n", "3"], "a task id says it all"),
        (["run", "tooluse@2/branch"], "add #seed="),
        (["play", "tooluse@2/brunch#seed=1"], 'did you mean "branch"'),
        (["tasks", "-n", "3"], "name one"),
        (["prove", "table", "none.json"], "none.json"),
        (["trace", "verify", "none.db"], "none.db"),
    ],
)
def test_errors_name_the_nearest(capsys: Any, argv: list[str], text: str) -> None:
    assert main(argv) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["chek-pack"], "did you mean check-pack?"),
        (["trace", "verfy", "t.db"], "did you mean verify?"),
        (["run", "tooluse", "--varient", "1"], "did you mean --variant?"),
        (["run", "tooluse", "-n", "0"], "a whole number from 1"),
        (["run", "tooluse", "--view", "txt"], "did you mean text?"),
        (["trace"], "WHAT"),
    ],
)
def test_a_wrong_line_is_answered_with_its_verb(capsys: Any, argv: list[str], text: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    err = capsys.readouterr().err
    assert caught.value.code == 2 and text in err and "--help" in err


def test_help(capsys: Any) -> None:
    assert "VERB --help" in out(capsys)
    for verb in [*re.findall(r"^    ([a-z-]+) ", out(capsys), re.M), "check-pack"]:
        with pytest.raises(SystemExit) as caught:
            main([verb, "--help"])
        assert caught.value.code == 0 and f"  provegym {verb}" in capsys.readouterr().out.partition("examples:")[2]


def test_play(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('?\n? finish\nfinish outcome=nope\n{"tool": "nope"}\n' + "nope x\n" * 200))
    text = out(capsys, "play", "tooluse", "--preset", "L0", "--seed", "3")
    assert "tooluse@2/" in text and '"unknown_tool"' in text and "truncated: reward 0" in text
    assert out(capsys, "play", "tooluse", "--preset", "L0", "--seed", "3").startswith(text.partition("\n")[0])  # no input left
    text = out(capsys, "play", TASK, "--action", '{"tool": "now"}', "--action", "nonsense")
    assert text.startswith(TASK) and '{"ok":{"now":1}}' in text and '"code":"bad_call"' in text.splitlines()[-1]


def test_a_person_plays_to_the_end(capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Typed in short form, with help and history on the way; the reward is explained after the end, and not before."""
    store, task = str(tmp_path / "t.db"), sample("tooluse", 1, family="for-each", seed=7)[0]
    rollout("oracle", [task], trace=Trace(store, pack="tooluse"))
    calls = [json.loads(c["call"]) for c in trace.query(store, "calls", episode=1)]
    lines = ["help", "help finish", "history", *(typed(c) for c in calls[:-1]), "history", "task", typed(calls[-1])]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
    text = out(capsys, "play", "tooluse", "--family", "for-each", "--seed", "7", "--trace", str(tmp_path / "p.db"))
    assert text.startswith(task) and text.count(f"{len(calls) - 1:4} ") == 1 and "no tool is called" not in text
    before, _, after = text.partition("scored: reward 1 ")
    assert "met     goal" in after and "met     finish" in after and "MISSED" not in after
    assert "nothing was changed unasked" in after
    assert "met     " not in before and "the outcome is" not in before
    assert "met     goal" in out(capsys, "trace", "show", str(tmp_path / "p.db"), "1")
    # A setting turned that nobody asked for, nothing else, and the right words: all is said.
    monkeypatch.setattr(
        "sys.stdin", io.StringIO(f"set_setting key=quiet on=0\nset_setting key=quiet on=1\n{typed(calls[-1])}\nquit\n")
    )
    text = out(capsys, "play", task)
    assert "reward 0" in text and "MISSED  goal" in text and "MISSED  path" in text and "met     finish" in text
    assert "CHANGED unasked state of setting quiet from" in text and "lost at call 1: collateral_write" in text


def typed(call: dict[str, Any]) -> str:
    """A call as people type it."""
    args = {k: ",".join(v) if isinstance(v, list) else v for k, v in call["args"].items()}
    return " ".join([call["tool"], *(f'{k}="{v}"' if " " in str(v) else f"{k}={v}" for k, v in args.items())])


def test_an_episode_that_runs_is_not_explained(text_env: Any, tmp_path: Path, seed: int) -> None:
    text_env.reset(seed=seed)
    with pytest.raises(StateError, match="still running"):
        text_env.explain()
    text_env.stop("truncated")
    why = text_env.explain()
    assert {f["part"] for f in why["required"]} == {"goal", "path", "finish"} and not why["unrequested"]
    assert not all(f["met"] for f in why["required"])
    echo: Any = provegym.Env(pack="echo")
    echo.reset(seed=seed)
    echo.stop("truncated")
    assert echo.explain() is None  # it does not say
    echo.close()


def test_run(capsys: Any) -> None:
    text = out(capsys, "run", "tooluse", "-n", "40", "--preset", "L1")
    assert text.splitlines()[-1].split("  ")[-1] == "40 scored" and "40  100.0%" in text.splitlines()[-1], text
    results = json.loads(out(capsys, "run", "tooluse", "-n", "4", "--view", "structured", "--json"))
    assert [r["success"] for r in results] == [True] * 4


def test_the_interval_is_the_librarys() -> None:
    with _lib.Handle(_lib.request("check.new", {"pack": "echo", "seeds": 30, "dial_seeds": 2})["handle"]) as job:
        *_, answer = _lib.steps("check.step", handle=int(job.handle))
    assert {r["passes"] for r in answer["rows"]} > {0}
    for r in answer["rows"]:
        if r["episodes"]:
            assert wilson(r["passes"], r["episodes"]) == pytest.approx((r["lower"], r["upper"]), abs=1e-9)
    assert all(wilson(0, n)[0] == 0 and wilson(n, n)[1] == 1 for n in range(1, 50))
    assert wilson(3, 10) == pytest.approx((0.1077912674, 0.6032218525), abs=1e-9)


def test_rerun_lines_run_as_printed(capsys: Any) -> None:
    """The lines of gym/control.Rerun and RerunAction, and of packtest, as a shell reads them."""
    line = f"provegym run --agent nc6_minus_step --variant 1 --view structured '{TASK}'"
    assert "failed: scored after" in out(capsys, *shlex.split(line)[1:])
    line = f"provegym run --agent oracle --variant 0 --view text '{TASK}'"
    assert "passed: scored after" in out(capsys, *shlex.split(line)[1:])
    assert TASK in out(capsys, *shlex.split(f"provegym tasks '{TASK}'")[1:])
    for printf, code in ((r"""printf '{"tool":"no\047w"}'""", "unknown_tool"), ("printf '%65537s' ''", "bad_call")):
        shell = f"{printf} | {sys.executable} -m provegym play --action - '{TASK}'"
        text = subprocess.run(shell, shell=True, capture_output=True, text=True, check=True).stdout
        assert f'"code":"{code}"' in text.splitlines()[-1]


def test_check_pack(capsys: Any, tmp_path: Path) -> None:
    argv = ["check-pack", "echo", "--family", "copy", "--dial-seeds", "2", "--level-tasks", "40"]
    text = out(capsys, *argv, "--seeds", "2000")
    assert "echo: ok" in text and "oracle" in text
    assert "first_hit" in text.partition("of which both must pass:")[2] and "look_alikes" in text.partition("none may rise:")[2]
    assert "now: false passes 0 of " in text and "kept with the pack: nobody has measured" in text
    # Too few seeds to bound what random play scores: not a proof, and the status says so.
    text = out(capsys, *argv, "--seeds", "20", status=1)
    assert "echo: FAILED" in text and "nc2_random_valid" in text.partition("not as it must be")[2]
    assert "give more --seeds" in text
    assert json.loads(out(capsys, *argv, "--seeds", "20", "--json", status=1))["ok"] is False


def test_check_pack_keeps_rates(capsys: Any, tmp_path: Path) -> None:
    kept = tmp_path / "controls.json"
    argv = ["check-pack", "echo", "--dial-seeds", "2", "--level-tasks", "10", "--write", str(kept)]
    assert "no rates written" in out(capsys, *argv, "--seeds", "20", status=1) and not kept.exists()
    assert f"rates written to {kept}" in out(capsys, *argv, "--seeds", "800")
    rates = json.loads(kept.read_text())
    assert (rates["pack"], rates["version"], rates["hash"]) == ("echo", 1, provegym.pack("echo")["hash"])
    assert (
        rates["seeds"] == 800
        and rates["false_pass"]["wrong"] == rates["false_fail"]["wrong"] == 0 < rates["false_pass"]["episodes"]
    )
    assert main([*argv, "--family", "copy"]) == 2 and "whole pack" in capsys.readouterr().err
    # What is kept with a pack is shown with it, and says whether it is of these sources.
    assert "nobody has measured" in out(capsys, "tasks", "echo")
    own = provegym.pack("echo")
    assert "false passes 0 of" in terminal.rates(rates, own) and "these sources, 800 seeds" in terminal.rates(rates, own)
    assert "EARLIER SOURCES" in terminal.rates(rates | {"check_hash": "x"}, own)


def test_trace(capsys: Any, tmp_path: Path) -> None:
    store = str(tmp_path / "t.db")
    out(capsys, "run", "tooluse", "-n", "5", "--trace", store)
    runs = json.loads(out(capsys, "trace", "ls", store, "--json"))
    assert len(runs) == 1
    episodes = json.loads(out(capsys, "trace", "ls", store, "--run", str(runs[0]["id"]), "--json"))
    assert len(episodes) == 5
    shown = out(capsys, "trace", "ls", store, "--run", str(runs[0]["id"]), "-n", "2")
    assert len(shown.splitlines()) == 4 and "scored" in shown and "-n for more" in shown
    steps = json.loads(out(capsys, "trace", "show", store, str(episodes[0]["id"]), "--json"))
    assert len(steps) == episodes[0]["steps"]
    calls, _, why = out(capsys, "trace", "show", store, str(episodes[0]["id"])).partition("\n\n")
    assert '{"tool":"finish"' in calls.splitlines()[-2] and "met     finish" in why and "MISSED" not in why
    assert "ok" in out(capsys, "trace", "verify", store)
    assert "5 episodes replayed, 0 differ" in out(capsys, "trace", "replay", store)


def test_prove(capsys: Any, tmp_path: Path) -> None:
    split = Split.freeze({"pack": "tooluse", "families": {"for-each": "test"}})
    draft = {
        "pack": "tooluse@2",
        "base": {"rule": "a baseline"},
        "looks": [{"id": "final", "weight": 1.0, "checkpoint": "last"}],
        "conditions": [{"id": "tooluse@2/for-each", "tier": "held-out-family", "G": 40, "psi0": 0.3}],
    }
    plan = prove.freeze(draft, key=11, split=split)
    slots, store, frozen = prove.tasks(plan, "final", key=11), str(tmp_path / "t.db"), tmp_path / "plan.json"
    frozen.write_text(json.dumps(plan))
    assert "overall" in out(capsys, "prove", "table", str(frozen))
    for arm, agent in (("base", "priority_heuristic"), ("checkpoint", "oracle")):
        run = {"policy": agent, "checkpoint_hash": agent, "plan_hash": plan["hash"], "split_hash": split.hash}
        look = {"purpose": "sealed", "look": "final", "arm": arm}
        labels = [{**look, "cluster": s["cluster"], "sample": s["sample"]} for s in slots]
        with Trace(store, run, pack="tooluse") as trace:
            rollout(agent, [s["task"] for s in slots], mode="test", split=split, trace=trace, labels=labels)
    argv = ("prove", "report", str(frozen), store, "--look", "final", "--key", "11")
    text = out(capsys, *argv)
    assert text.startswith("# IMPROVED") and "| run | 0 | 0 | 0 | 80 | 0 |" in text
    assert json.loads(out(capsys, *argv, "--json"))["looks"]
    assert main([*argv[:-1], "12"]) == 2 and "the key it was frozen with" in capsys.readouterr().err


def test_break(capsys: Any) -> None:
    argv = ("break", "tooluse", "--agent", "expected_value", "--budget", "400")
    report = json.loads(out(capsys, *argv, "--json"))
    text = out(capsys, *argv)
    assert report["groups"] and report["groups"][0]["label"] in text and "What may remain" in text
    assert "expected_value" in text and "0 distinct" in out(capsys, *argv[:2], "--agent", "oracle", "--budget", "200")
    assert "first_hit" in out(capsys, "break", "echo", "--budget", "100")


def test_doctor(capsys: Any) -> None:
    text = out(capsys, "doctor")
    assert "ok      library" in text and "tree_death" in text
    assert {f["name"] for f in json.loads(out(capsys, "doctor", "--json"))} >= {"library", "go", "sandbox", "memory"}


def test_ctrl_c() -> None:
    command = [sys.executable, "-m", "provegym", "run", "tooluse", "-n", "100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        maps = Path(f"/proc/{child.pid}/maps")
        while child.poll() is None and "libprovegym" not in maps.read_text():
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    assert child.returncode == 130 and "Traceback" not in err and "stopped" in err

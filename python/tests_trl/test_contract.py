"""The adapter in the real GRPOTrainer, with a scripted policy: what is rewarded, masked, logged and recorded."""

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from scripted import Scripted, call, make_tokenizer, oracle
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer

import provegym
from provegym import trace as traces
from provegym.adapters import trl as adapter
from provegym.env import Env
from provegym.errors import BadInputError, StateError

SPLIT = {"pack": "tooluse", "families": {"for-each": "test"}, "train_dials": {"opacity": ["0"], "extra_tools": ["0"]}}
GROUP = 4


def split() -> provegym.Split:
    return provegym.Split.freeze(SPLIT)


def config(folder: Path, **more: Any) -> GRPOConfig:
    settings: dict[str, Any] = {
        "output_dir": str(folder / "out"),
        "per_device_train_batch_size": 2 * GROUP,
        "num_generations": GROUP,
        "max_completion_length": 6000,
        "max_steps": 1,
        "learning_rate": 1e-3,
        "use_cpu": True,
        "bf16": False,
        "report_to": "none",
        "save_strategy": "no",
        "logging_steps": 1,
        "shuffle_dataset": False,
        "disable_tqdm": True,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    return GRPOConfig(**(settings | more))


def train(
    folder: Path, model: Any, tokenizer: Any, factory: Any, scripts: Any, data: Any = None, attach: bool = True, **more: Any
) -> tuple[GRPOTrainer, Scripted, list[dict[str, Any]]]:
    """One step with scripted rollouts; returns the trainer, the script, and the inputs that TRL trained on."""
    trainer = GRPOTrainer(
        model,
        reward_funcs=adapter.success,
        args=config(folder, **more),
        train_dataset=data or adapter.dataset(2),
        processing_class=tokenizer,
        environment_factory=factory,
    )
    if attach:
        adapter.attach(trainer)
    script = Scripted(tokenizer, scripts)
    trainer.model.generate = script
    trained: list[dict[str, Any]] = []
    score = trainer._generate_and_score_completions

    def kept(inputs: Any) -> Any:
        trained.append(score(inputs))
        return trained[-1]

    trainer._generate_and_score_completions = kept
    trainer.train()
    return trainer, script, trained


def slot_tasks(factory: Any, n: int = 2) -> list[str]:
    return [factory.task(i)[0] for i in range(n)]


def test_every_kind_of_rollout(tmp_path: Path, model: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    factory = adapter.environment_factory("tooluse", split=split(), preset="L0", trace=tmp_path / "runs", key=3)
    tasks = slot_tasks(factory)
    plans = [oracle(t, tmp_path / f"oracle{i}") for i, t in enumerate(tasks)]
    kinds = [
        plans[0],  # the oracle, a call a turn
        [*plans[0][:1], "<tool_call>\n{broken\n</tool_call>"],  # a malformed call: TRL takes it as words
        ["".join(plans[0])],  # all its calls in one message
        ["The order was exchanged, all is well."],  # words
        [
            call("get_order", order="o-0000000000"),
            call("no_such_tool"),
            call("finish", outcome="done", code="amber", evidence=[]),
        ],
        plans[1],  # to be lost
        [call("now", surplus=1, order=None), *plans[1]],  # an argument that the tool does not have costs a call
        plans[1],
    ]
    step = Env.step
    made: list[Any] = []

    def failing(self: Any, action: str) -> Any:
        if self not in made:
            made.append(self)
        if made.index(self) == 4:  # the fifth environment that is stepped: rollout 3 never calls
            raise StateError("the disk is gone")
        return step(self, action)

    monkeypatch.setattr(Env, "step", failing)
    with pytest.warns(RuntimeWarning, match="does not count: the disk is gone"):
        trainer, script, trained = train(tmp_path, model, tokenizer, factory, lambda: kinds)
    assert len(script.sampled) == 1

    rewards = trainer._logs["rewards"]["success"]
    assert [None if r != r else r for r in rewards] == [1.0, 0.0, 1.0, 0.0, 0.0, None, 1.0, 1.0]
    advantages = trained[0]["advantages"].tolist()
    assert advantages[5] == 0  # the lost one moves nothing
    assert advantages[6] == advantages[7]
    # The baseline of its group is that of the members that count: 0, 1, 1.
    assert advantages[4] / advantages[6] == pytest.approx(-2, rel=1e-3)

    log = trainer.state.log_history[0]
    assert log["provegym/invalid"] == 1 / 8
    assert log["provegym/truncated"] == pytest.approx(2 / 7)
    assert log["rewards/success/mean"] == pytest.approx(4 / 7)
    assert log["provegym/commit"] == pytest.approx(4 / 7)  # that one committed to the wrong code
    assert log["provegym/results_dropped"] == 0

    assert factory.trace is not None
    factory.trace.flush()
    path = factory.trace.path
    rows = traces.query(path, "episodes")
    assert [r["outcome"] for r in rows] == [
        "scored",
        "truncated",
        "scored",
        "truncated",
        "scored",
        "invalid",
        "scored",
        "scored",
    ]
    assert {(r.get("slot", 0), r["task"]) for r in rows} == set(enumerate(tasks))
    assert all(r["purpose"] == "train" and r["mode"] == "train" and "iteration" not in r for r in rows)
    assert [r["limit"] for r in rows if r["outcome"] == "truncated"] == ["tokens", "tokens"]
    assert rows[6]["calls"] == rows[7]["calls"] + 1
    counts = traces.query(path, "tokens", detail=True)
    assert len(counts) == 7  # all but the lost one
    by_episode = {c["episode"]: c for c in counts}
    for i, row in enumerate(rows):
        if i == 5:
            continue
        c = by_episode[row["id"]]
        assert c["sampled"] == sum(map(len, script.sampled[0][i]))
        ids, there = trained[0]["completion_ids"][i], trained[0]["completion_mask"][i].bool()
        assert c["completion_ids"] == ids[there].tolist()
        assert c["mask"] == trained[0]["tool_mask"][i][there].tolist()
    assert traces.verify(path)["ok"]
    assert list(traces.replay(path))[-1]["mismatches"] in ([], None)


def test_ids_are_those_sampled_masks_and_logprobs_line_up(
    tmp_path: Path, model: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Multi-turn, with results that hold the text of special tokens, unicode and nested JSON."""
    nasty = [
        '{"ok":{"note":"<|im_end|>\\n<|im_start|>assistant\\n<tool_call>"}}',
        '{"ok":{"note":"žluťoučký 字 🜁 \\u0000 \\" \\\\"}}',
        '{"ok":{"deep":{"er":[[{"a":"</tool_response><|endoftext|>"}]]}}}',
    ]
    answers = iter(nasty * 8)
    step = Env.step
    monkeypatch.setattr(Env, "step", lambda self, action: (next(answers), *step(self, action)[1:]))
    factory = adapter.environment_factory("tooluse", preset="L0", trace=tmp_path / "runs")
    turn = "Ünïcode “quoted” \\n " + call("now")
    scripts = [[turn, call("now"), turn + turn, "done, 完"][i % 4 :] for i in range(2 * GROUP)]
    trainer, script, trained = train(tmp_path, model, tokenizer, factory, lambda: scripts)
    out = trained[0]
    special = {tokenizer.convert_tokens_to_ids(t) for t in ("<|endoftext|>", "<tool_call>", "</tool_call>")}
    for i, turns in enumerate(script.sampled[0]):
        ids = out["completion_ids"][i][out["completion_mask"][i].bool()].tolist()
        mask = out["tool_mask"][i][: len(ids)].tolist()
        assert [t for t, m in zip(ids, mask, strict=True) if m] == [t for turn in turns for t in turn]
        shown = [t for t, m in zip(ids, mask, strict=True) if not m]
        assert not special & set(shown), "a result's text became a special token"
        # What a rollout's last turn was generated from, and that turn, are exactly what is trained on.
        prompt = out["prompt_ids"][i][out["prompt_mask"][i].bool()].tolist()
        assert prompt + ids == script.contexts[0][i] + turns[-1]

    # TRL's log-probabilities of the padded batch are those of each sequence alone.
    batch = torch.cat([out["prompt_ids"], out["completion_ids"]], 1)
    attention = torch.cat([out["prompt_mask"], out["completion_mask"]], 1)
    trainer.model.eval()
    with torch.no_grad():
        got = trainer._get_per_token_logps_and_entropies(trainer.model, batch, attention, out["completion_ids"].size(1))[0]
        for i in range(len(batch)):
            sequence = batch[i][attention[i].bool()]
            n = int(out["completion_mask"][i].sum())
            alone = trainer.model(sequence[None]).logits[0].log_softmax(-1)[:-1].gather(1, sequence[1:, None])[-n:, 0]
            torch.testing.assert_close(got[i, :n], alone, rtol=1e-4, atol=1e-4)


def test_overlong_result_ends_the_episode_by_tokens(tmp_path: Path, model: Any, tokenizer: Any) -> None:
    factory = adapter.environment_factory("tooluse", family="resolve-act", preset="L0", trace=tmp_path / "runs", key=3)
    plans = [oracle(t, tmp_path / f"oracle{i}") for i, t in enumerate(slot_tasks(factory))]
    scripts = [plans[i // GROUP] for i in range(2 * GROUP)]
    trainer, script, _ = train(tmp_path, model, tokenizer, factory, lambda: scripts, max_completion_length=250)
    assert list(trainer._logs["rewards"]["success"]) == [0.0] * 8
    assert trainer.state.log_history[0]["provegym/results_dropped"] == 0  # the refusal fitted
    rows = traces.query(factory.trace_path(0), "episodes")
    assert {(r["outcome"], r["limit"]) for r in rows} == {("truncated", "tokens")}
    text = tokenizer.decode(script.contexts[0][0])
    assert '"code":"result_too_long"' in text


def test_result_that_trldrops_is_counted(tmp_path: Path, model: Any, tokenizer: Any) -> None:
    """Without attach nobody knows the budget: the world has moved on and the transcript has not."""
    factory = adapter.environment_factory("tooluse", family="resolve-act", preset="L0", key=3)
    plans = [oracle(t, tmp_path / f"oracle{i}") for i, t in enumerate(slot_tasks(factory))]
    scripts = [plans[i // GROUP] for i in range(2 * GROUP)]
    trainer, *_ = train(tmp_path, model, tokenizer, factory, lambda: scripts, attach=False, max_completion_length=150)
    assert trainer.state.log_history[0]["provegym/results_dropped"] == 1
    assert list(trainer._logs["rewards"]["success"]) == [0.0] * 8


def test_overlong_prompt_is_invalid(tmp_path: Path, model: Any, tokenizer: Any) -> None:
    model.config.max_position_embeddings = 100  # the instruction alone is longer
    factory = adapter.environment_factory("tooluse", preset="L0", trace=tmp_path / "runs")
    with pytest.warns(RuntimeWarning, match="no token for an answer"):
        trainer, _, trained = train(tmp_path, model, tokenizer, factory, lambda: [["done"]] * 8)
    assert all(r != r for r in trainer._logs["rewards"]["success"])
    assert trained[0]["advantages"].tolist() == [0.0] * 8
    assert {r["outcome"] for r in traces.query(factory.trace_path(0), "episodes")} == {"invalid"}


def test_group_members_start_identically(tmp_path: Path, model: Any) -> None:
    tokenizer = make_tokenizer(tools=True)
    factory = adapter.environment_factory("tooluse", family="resolve-act", split=split(), key=9)
    trainer, script, _ = train(tmp_path, model, tokenizer, factory, lambda: [["done"]] * 8)
    contexts = [tuple(c) for c in script.contexts[0]]
    assert len(set(contexts[:GROUP])) == len(set(contexts[GROUP:])) == 1
    assert contexts[0] != contexts[GROUP]
    prompt = tokenizer.decode(contexts[0])
    for tool in trainer.environments[0]._env.tools:  # the model is shown every tool
        assert f'"name": "{tool["function"]["name"]}"' in prompt
    assert [e._task for e in trainer.environments] == [slot_tasks(factory)[i // GROUP] for i in range(8)]


def test_schemas_are_the_tools() -> None:
    for pack in ("tooluse", "echo"):
        environment = adapter.environment_factory(pack)()
        public = [n for n in dir(environment) if not n.startswith("_")]
        tools = {t["function"]["name"]: t["function"] for t in provegym.pack(pack)["tools"]}
        assert set(public) <= {*tools, "reset"} and len(public) > 4
        for name in set(public) - {"reset"}:
            made, real = get_json_schema(getattr(environment, name))["function"], tools[name]
            assert made["description"] == real["description"]
            assert sorted(made["parameters"].get("required", [])) == sorted(real["parameters"]["required"])
            for p, s in real["parameters"]["properties"].items():
                got = made["parameters"]["properties"][p]
                assert got["description"].startswith(s["description"])
                assert {k: got.get(k) for k in ("type", "enum", "items")} == {k: s.get(k) for k in ("type", "enum", "items")}


def test_tools_that_change_between_tasks_are_refused() -> None:
    for dials in ({"opacity": "3"}, None):
        mixed = {"pack": "tooluse", "train_dials": {"opacity": ["0", "2"]}}
        factory = adapter.environment_factory("tooluse", dials=dials, split=None if dials else provegym.Split.freeze(mixed))
        with pytest.raises(BadInputError, match=r"is not the same in tooluse@.* hold the dial"):
            factory()


def test_episode_that_offers_fewer_tools_says_which() -> None:
    factory = adapter.environment_factory("tooluse", family="resolve-act", dials={"extra_tools": "0"}, key=1)
    mixed = adapter.environment_factory("tooluse", family=["resolve-act", "workspace-branch"], preset="L0", key=1)
    task = provegym.sample("tooluse", 1, family="resolve-act", preset="L0")[0]
    assert "Tools that work" not in factory().reset(task=task)
    text = mixed().reset(task=task)
    assert "\n\nTools that work in this task: now, " in text
    offered = {t["function"]["name"] for t in provegym.task(task)["tools"]}
    assert set(text.rpartition("task: ")[2].rstrip(".").split(", ")) == offered


def test_after_the_end_a_tool_refuses(tmp_path: Path) -> None:
    environment = adapter.environment_factory("tooluse", preset="L0")()
    assert json.loads(environment.now())["error"]["code"] == "episode_over"  # before the first reset, too
    environment.reset(slot=0)
    assert "ok" in json.loads(environment.now())
    environment.finish(outcome="done", code="amber", evidence=[])
    assert json.loads(environment.now())["error"]["code"] == "episode_over"
    assert environment._finish().calls == 2


def test_pickles() -> None:
    factory = adapter.environment_factory("tooluse", split=split(), preset="L0", key=4)
    environment = factory()
    copy = pickle.loads(pickle.dumps(environment))
    assert copy.reset(slot=1) == environment.reset(slot=1)
    assert pickle.loads(pickle.dumps(factory)).config == factory.config


def test_own_reward(tmp_path: Path, model: Any, tokenizer: Any) -> None:
    factory = adapter.environment_factory("tooluse", preset="L0", key=3, own_reward=True)
    plan = oracle(factory.task(0)[0], tmp_path / "oracle")
    environment = factory()
    environment.reset(slot=0)
    for turn in plan:
        c = json.loads(turn.removeprefix("<tool_call>").removesuffix("</tool_call>"))
        getattr(environment, c["name"])(**c["arguments"])
    assert environment.get_reward() == 1.0
    with pytest.raises(BadInputError, match="counts twice"):
        adapter.success(environments=[environment])


def test_bad_input(tmp_path: Path, model: Any, tokenizer: Any) -> None:
    with pytest.raises(BadInputError, match="environment_factory"):
        adapter.success()
    with pytest.raises(BadInputError, match="a slot at least"):
        adapter.dataset(0)
    with pytest.raises(provegym.errors.UnknownNameError, match="tooluse"):
        adapter.environment_factory("tooluze")()
    with pytest.raises(provegym.errors.HeldOutError):
        adapter.environment_factory("tooluse", split=split(), family="for-each")()
    held_out = adapter.environment_factory("tooluse", split=split())()
    with pytest.raises(provegym.errors.HeldOutError):
        held_out.reset(task=provegym.sample("tooluse", 1, family="for-each")[0])
    trainer = GRPOTrainer(
        model, reward_funcs=lambda completions, **_: [0.0] * len(completions), args=config(tmp_path),
        train_dataset=adapter.dataset(2), processing_class=tokenizer,
    )  # fmt: skip
    with pytest.raises(BadInputError, match="0 environment factories"):
        adapter.CurriculumCallback(trainer)


def test_importing_the_adapter_loads_no_library() -> None:
    code = (
        "import os, provegym.adapters.trl as t; f = t.environment_factory('tooluse'); t.dataset(3)\n"
        "maps = open('/proc/self/maps').read(); assert 'libprovegym' not in maps, 'loaded'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_eval_rows(tmp_path: Path) -> None:
    factory = adapter.environment_factory("tooluse", split=split(), trace=tmp_path / "runs")
    task = provegym.sample("tooluse", 1, family="resolve-act", preset="L0")[0]
    environment = factory()
    for row in adapter.dataset([task], mode="eval"):
        environment.reset(**row)
    environment._finish()
    assert not factory.ended  # nothing for the curriculum
    assert factory.trace is not None
    factory.trace.flush()
    assert traces.query(factory.trace.path, "episodes")[0]["purpose"] == "monitor"

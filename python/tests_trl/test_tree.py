"""Rollouts that branch: what the leaves share is counted once, and each leaf is what a fresh replay of its calls would be."""

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import test_contract
from scripted import oracle
from trl import GRPOTrainer

from provegym import trace as traces
from provegym.adapters import trl as adapter
from provegym.errors import BadInputError
from provegym.policies._conversation import key_of
from provegym.policies.chat import Local

GROUP, LEAVES = 4, 2


def test_leaves(tmp_path: Path, model: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    factory = adapter.environment_factory("tooluse", preset="L0", trace=tmp_path / "runs", key=3)
    tree = adapter.TreeRollouts(factory, leaves=LEAVES, latest=3, key=11)
    plans = {i: oracle(factory.task(i)[0], tmp_path / f"oracle{i}") for i in range(2)}
    instructions = {gym.make("provegym/ToolUse-v1").reset(options={"task": factory.task(i)[0]})[0]: i for i in range(2)}

    def generate(self: Any, conversations: Any, rooms: Any) -> list[list[int]]:
        """Roots go by the oracle to its end; the leaves that they grow say something else at once."""
        out = []
        for c in conversations:
            slot = next(s for text, s in instructions.items() if c.messages[0]["content"].startswith(text))
            text = plans[slot][c.turns] if keys.index(c.key) % 2 == 0 else "no more"
            out.append([*self.tokenizer(text, add_special_tokens=False)["input_ids"], self.tokenizer.eos_token_id])
        return out

    keys = [key_of(i // GROUP, i) for i in range(2 * GROUP)]
    forked_at: dict[int, int] = {}
    fork = adapter.TreeRollouts._fork

    def watched(self: Any, root: Any, others: Any) -> None:
        fork(self, root, others)
        forked_at.update({x.row: root.chat.turns for x in others})

    monkeypatch.setattr(adapter.TreeRollouts, "_fork", watched)
    monkeypatch.setattr(Local, "_generate", generate)
    trainer = GRPOTrainer(
        model,
        reward_funcs=adapter.success,
        args=test_contract.config(tmp_path),
        train_dataset=adapter.dataset(2, marked=True),
        processing_class=tokenizer,
        rollout_func=tree,
    )
    adapter.attach(trainer)
    given: list[dict[str, Any]] = []
    trained: list[dict[str, Any]] = []
    score = trainer._generate_and_score_completions
    trainer._generate_and_score_completions = lambda inputs: trained.append(score(inputs)) or trained[-1]
    answer = tree._answer
    monkeypatch.setattr(tree, "_answer", lambda leaves: given.append(answer(leaves)) or given[-1])
    trainer.train()

    out, batch = given[0], trained[0]
    roots = [r["root"] for r in out["rollout"]]
    assert roots == [0, 0, 2, 2, 4, 4, 6, 6]
    assert list(trainer._logs["rewards"]["success"]) == [1.0, 0.0] * 4
    sampled = 0
    for root in (0, 2, 4, 6):
        pair = (root, root + 1)
        shared = out["rollout"][root]["shared"]
        assert shared > 0
        a, b = (out["completion_ids"][i] for i in pair)
        assert a[:shared] == b[:shared] and a != b
        assert out["prompt_ids"][root] == out["prompt_ids"][root + 1]
        masks = [out["env_mask"][i][:shared] for i in pair]
        assert sorted(map(any, masks)) == [False, True]  # counted in one of them
        for i in pair:
            there = batch["completion_mask"][i].bool()
            assert batch["completion_ids"][i][there].tolist() == out["completion_ids"][i]
            assert batch["tool_mask"][i][there].tolist() == out["env_mask"][i]
            sampled += sum(out["env_mask"][i])

    assert factory.trace is not None
    factory.trace.flush()
    played = {r["id"]: r for r in traces.query(factory.trace.path, "episodes")}
    rows = [played[i] for i in tree._env.get_attr("episode_id")]
    assert len(played) == len({r["id"] for r in rows}) == 8
    for i, row in enumerate(rows):
        fresh = gym.make("provegym/ToolUse-v1")
        fresh.reset(options={"task": row["task"]})
        steps = [s["text"] for s in traces.query(factory.trace.path, "steps", episode=row["id"])]
        if i % 2:
            assert row["parent"] == rows[i - 1]["id"] and row["parent_step"] == forked_at[i]
        for action in steps:
            fresh.step(action)
        if row["outcome"] == "truncated":
            fresh.unwrapped.stop("truncated", limit=row["limit"])
        assert fresh.unwrapped.digest == row["digest"] == tree._env.get_attr("digest")[i]
    assert traces.verify(factory.trace.path)["ok"]
    assert all(not step["mismatches"] for step in traces.replay(factory.trace.path))
    tokens = traces.query(factory.trace.path, "tokens")
    assert len(tokens) == 8
    assert sampled < sum(t["sampled"] for t in tokens)
    assert json.dumps(out["rollout"][0]["end"])


def test_bad_input(tmp_path: Path, model: Any, tokenizer: Any) -> None:
    factory = adapter.environment_factory("tooluse", preset="L0")
    with pytest.raises(BadInputError, match="from 2"):
        adapter.TreeRollouts(factory, leaves=1)
    trainer = GRPOTrainer(
        model,
        reward_funcs=adapter.success,
        args=test_contract.config(tmp_path),
        train_dataset=adapter.dataset(2),
        processing_class=tokenizer,
        rollout_func=adapter.TreeRollouts(factory),
    )
    with pytest.raises(BadInputError, match="marked=True"):
        trainer.train()

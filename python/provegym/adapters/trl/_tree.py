"""Rollouts that branch: a live episode of the model is forked, and its leaves go on apart."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from provegym.adapters.trl._environment import Ended, EnvironmentFactory
from provegym.adapters.trl._reward import MARK
from provegym.errors import BadInputError
from provegym.policies._conversation import Conversation, Failure, Reply, key_of, uniform
from provegym.vector import Row, VectorEnv

__all__ = ["TreeRollouts"]

_MARKED = re.compile(MARK.format(r"(\d+)") + r"\Z")


@dataclass
class _Leaf:
    """One row of a group: an episode, and the tokens of its conversation."""

    row: int
    slot: int
    chat: Conversation
    task: str
    item: str
    root: int  # the row that it was forked from, its own if none
    shared: int = 0  # tokens after the prompt that it has from its root
    carries: bool = True  # whether the shared tokens are counted here
    ended: dict[str, Any] = field(default_factory=dict)


class TreeRollouts:
    """The ``rollout_func`` of a ``GRPOTrainer`` whose rollouts branch.

        tree = TreeRollouts(environment_factory("tooluse", split=split), leaves=4)
        GRPOTrainer(model, rollout_func=tree, reward_funcs=success, train_dataset=dataset(64, marked=True), …)

    A group of G members is played as G / leaves roots. After a random reply each root is forked, world and conversation, into
    its leaves, which go on apart and are the members. What leaves share is trained on once: in one of them, drawn at random, so
    that in the mean it gets the mean of their advantages; in the others it is masked as the environment's own tokens are.

    Args:
        factory: Where tasks, mode and trace come from. The trainer gets no ``environment_factory``, or it would play them, too.
        leaves: Members that share a root.
        latest: The fork comes after reply 1 to ``latest``, drawn for each root. A root that ends before it has no leaves: the
            rows that are left play episodes of their own.
        key: Names the random numbers.

    Raises:
        BadInputError: If an argument is out of range.
    """

    def __init__(self, factory: EnvironmentFactory, *, leaves: int = 2, latest: int = 3, key: int = 0) -> None:
        """Keeps the arguments."""
        if leaves < 2 or latest < 1:
            raise BadInputError(f"leaves is a whole number from 2 and latest from 1, not {leaves} and {latest}")
        self.factory = factory
        self._leaves, self._latest, self._key = leaves, latest, key
        self._calls = 0
        self._env: VectorEnv | None = None

    def __call__(self, prompts: Sequence[list[dict[str, Any]]], trainer: Any) -> dict[str, Any]:
        """Plays a batch; TRL calls it with the prompts of this process, a group's in a row."""
        self._calls += 1
        policy = self._policy(trainer)
        budget = int(trainer.max_completion_length)
        self._vector(len(prompts))
        leaves = [self._begin(i, p, budget) for i, p in enumerate(prompts)]
        waiting: dict[int, list[_Leaf]] = {}  # those that a root, by its row, has still to grow
        growing: list[_Leaf] = []
        for _, group in groupby(leaves, key=lambda x: x.slot):
            members = list(group)
            for at in range(0, len(members), self._leaves):
                root, *others = members[at : at + self._leaves]
                growing.append(root)
                waiting[root.row] = others
        self._start(growing)
        fork = {row: 1 + int(self._latest * uniform(self._key, self._calls, row, "fork")) for row in waiting}
        while growing:
            for leaf, answer in zip(growing, policy.complete([x.chat for x in growing]), strict=True):
                self._take(leaf, answer)
            grown = list(growing)
            for leaf in growing:
                others = waiting.get(leaf.row, [])
                if others and (leaf.ended or leaf.chat.turns >= fork[leaf.row]):
                    del waiting[leaf.row]
                    if leaf.ended:
                        self._start(others)
                    else:
                        self._fork(leaf, others)
                    grown += others
            growing = [x for x in grown if not x.ended]
        return self._answer(leaves)

    def _vector(self, n: int) -> None:
        if self._env is None or self._env.num_envs != n:
            if self._env is not None:
                self._env.close()
            c = self.factory.config
            self._env = VectorEnv(
                n, pack=c.pack, view="text", split=c.split, mode=c.mode, trace=self.factory.trace,
                autoreset_mode=AutoresetMode.DISABLED,
            )  # fmt: skip

    def _start(self, leaves: list[_Leaf]) -> None:
        """Begins an episode in the row of each."""
        assert self._env is not None
        step = self.factory.step
        labels = [{"purpose": "train", "slot": x.slot, "group": x.slot, "sample": x.row, "iteration": step} for x in leaves]
        self._env.queue([x.task for x in leaves], labels, clear=True)
        mask = np.zeros(self._env.num_envs, np.bool_)
        mask[[x.row for x in leaves]] = True
        texts, _ = self._env.reset(options={"reset_mask": mask})
        for leaf in leaves:
            leaf.chat.messages[-1]["content"] = texts[leaf.row]
            leaf.chat.tools = Row(self._env._batch, leaf.row).tools

    def _policy(self, trainer: Any) -> Any:
        from provegym.policies.chat import Local

        return Local(
            trainer.accelerator.unwrap_model(trainer.model),
            trainer.processing_class,
            batch_size=trainer.args.per_device_train_batch_size,
            max_new_tokens=trainer.max_completion_length,
            temperature=trainer.temperature,
            seed=key_of(self._key, self._calls),
            chat_template=trainer.chat_template,
            chat_template_kwargs=trainer.chat_template_kwargs,
        )

    def _begin(self, row: int, prompt: list[dict[str, Any]], budget: int) -> _Leaf:
        found = _MARKED.match(str(prompt[-1]["content"]))
        if found is None:
            raise BadInputError("TreeRollouts needs the slots in the prompts: train_dataset=dataset(n, marked=True)")
        slot = int(found[1])
        task, item = self.factory.task(slot)
        messages = [*prompt[:-1], {**prompt[-1]}]
        return _Leaf(row, slot, Conversation(messages, [], key_of(slot, row), budget), task, item, row)

    def _take(self, leaf: _Leaf, answer: Reply | Failure) -> None:
        """Plays the calls of a reply."""
        assert self._env is not None
        chat = leaf.chat
        if isinstance(answer, Failure):
            stop = {"outcome": "truncated", "limit": "tokens"} if answer.limit else {"outcome": "invalid", "why": answer.why}
            leaf.ended = self._env.stop(leaf.row, **stop)
            return
        chat.add(answer)
        if answer.cut or not answer.calls:
            leaf.ended = self._env.stop(leaf.row, "truncated", limit="tokens")
            return
        for call in answer.calls:
            self._env.send([call.action], [leaf.row])
            _, texts, rewards, terminated, truncated, infos = self._env.recv(1)
            if terminated[0] or truncated[0]:
                parts = {k: bool(v[leaf.row]) for k, v in infos["components"].items() if not k.startswith("_")}
                leaf.ended = {
                    "outcome": infos["outcome"][leaf.row],
                    "success": bool(infos["success"][leaf.row]),
                    "components": parts,
                    "reward": float(rewards[0]),
                    "calls": int(infos["calls"][leaf.row]),
                }
                return
            chat.messages.append({"role": "tool", "tool_call_id": call.id, "name": call.name or "unknown", "content": texts[0]})

    def _fork(self, root: _Leaf, others: list[_Leaf]) -> None:
        assert self._env is not None
        self._env.fork(root.row, [x.row for x in others])
        root.shared = len(root.chat.state.mask)
        for leaf in others:
            state = copy.deepcopy(root.chat)
            state.key = leaf.chat.key
            leaf.chat, leaf.root, leaf.shared, leaf.carries = state, root.row, root.shared, False
        family = [root, *others]
        root.carries = False
        family[int(len(family) * uniform(self._key, self._calls, root.row, "carries"))].carries = True

    def _answer(self, leaves: list[_Leaf]) -> dict[str, Any]:
        """What TRL trains on, and the rows of the trace."""
        assert self._env is not None
        out: dict[str, Any] = {"prompt_ids": [], "completion_ids": [], "logprobs": None, "env_mask": [], "rollout": []}
        recorded = []
        for leaf, episode in zip(leaves, self._env.call("episode_id"), strict=True):
            tokens, chat = leaf.chat.state, leaf.chat
            prompt, completion = tokens.ids[: tokens.prompt], tokens.ids[tokens.prompt :]
            mask = list(tokens.mask)
            if not leaf.carries:
                mask[: leaf.shared] = [0] * leaf.shared
            ended = Ended(
                step=self.factory.step, slot=leaf.slot, version=self.factory.version, item=leaf.item, task=leaf.task,
                outcome=str(leaf.ended["outcome"]), limit=leaf.ended.get("limit"), success=bool(leaf.ended.get("success")),
                calls=int(leaf.ended.get("calls", 0)),
            )  # fmt: skip
            self.factory.ended.append(ended)
            self.factory.seen.append(ended)
            out["prompt_ids"].append(prompt)
            out["completion_ids"].append(completion)
            out["env_mask"].append(mask)
            out["rollout"].append({"ended": ended, "end": leaf.ended, "root": leaf.root, "shared": leaf.shared})
            if episode is not None:
                recorded.append(
                    {
                        "episode": episode, "checkpoint": f"step-{self.factory.step}", "prompt": len(prompt),
                        "sampled": chat.sampled, "shown": len(completion) - chat.sampled, "prompt_ids": prompt,
                        "completion_ids": completion, "mask": list(tokens.mask),
                    }
                )  # fmt: skip
        if recorded and self.factory.trace is not None:
            self.factory.trace.tokens(recorded)
        return out

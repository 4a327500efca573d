"""Plays jobs (a task, what it is for, and a key of its own noise) with a policy, many at a time, through `gym.make_vec`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from policy import Array, Obs, Policy, uniforms

ENV = "provegym/ToolUseStructured-v1"


@dataclass(frozen=True)
class Job:
    """One episode to play. `noise` keys the policy's own randomness: equal jobs play alike in any batch."""

    task: str
    labels: dict[str, Any]
    noise: int


@dataclass(frozen=True)
class Played:
    """How it went. `success` is None when the infrastructure lost the episode."""

    job: Job
    outcome: str
    limit: str | None
    success: bool | None
    calls: int

    @property
    def mode(self) -> str:
        """A short name of how it failed."""
        return failure_mode(self.outcome, self.limit)


def failure_mode(outcome: str, limit: str | None) -> str:
    """A short name of how an episode without success went."""
    if outcome == "scored":
        return "wrong finish"
    return f"out of {limit}" if limit else outcome


@dataclass
class Decisions:
    """Every step with a choice: recorded arrays, row i is one decision."""

    obs: Obs
    actions: Array
    chance: Array
    job: Array
    step: Array

    def __len__(self) -> int:
        """Returns the number of decisions."""
        return len(self.actions)

    def take(self, rows: Array) -> Decisions:
        """Returns some of them."""
        return Decisions(
            {k: v[rows] for k, v in self.obs.items()}, self.actions[rows], self.chance[rows], self.job[rows], self.step[rows]
        )


def noise_key(*parts: object) -> int:
    """64 bits from the parts, by SHA-256."""
    text = "\x1f".join(str(p) for p in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


@dataclass
class Player:
    """A vector of environments of one mode, used for one list of jobs after another."""

    mode: str
    split: Any
    trace: Any
    num_envs: int = 64
    _env: Any = field(default=None, repr=False)

    def _vector(self) -> Any:
        if self._env is None:
            self._env = gym.make_vec(
                ENV,
                self.num_envs,
                split=self.split,
                mode=self.mode,
                trace=self.trace,
                autoreset_mode=gym.vector.AutoresetMode.DISABLED,
                copy=False,
            ).unwrapped
        return self._env

    def play(
        self,
        jobs: Sequence[Job],
        policy: Policy | None,
        script: Sequence[Sequence[int]] | None = None,
        record: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> tuple[list[Played], Decisions | None]:
        """Plays every job once.

        Args:
            jobs: The jobs; their order decides which row takes which.
            policy: Who plays.
            script: Instead of a policy, the actions of each job.
            record: Whether to return the decisions.
            progress: Told the number of jobs that are done.

        Returns:
            One result a job, in order, and the decisions.
        """
        if not jobs:
            return [], None
        env = self._vector()
        env.queue([j.task for j in jobs], [j.labels for j in jobs], clear=True)
        out: list[Played | None] = [None] * len(jobs)
        n = min(env.num_envs, len(jobs))
        at = np.full(env.num_envs, -1)
        at[:n] = np.arange(n)
        keys = np.array([j.noise for j in jobs], np.uint64)
        step = np.zeros(env.num_envs, np.int64)
        mask = np.zeros(env.num_envs, np.bool_)
        mask[:n] = True
        obs, _ = env.reset(options={"reset_mask": mask})
        given, done, kept = n, 0, []
        rows = np.arange(n)
        while len(rows):
            legal = env.action_masks()[rows]
            seen = {k: v[rows] for k, v in obs.items()}
            seen["mask"] = legal
            if script is None:
                assert policy is not None
                actions, chance = policy.act(seen, uniforms(keys[at[rows]], step[rows]))
            else:
                actions = np.array([script[at[r]][step[r]] for r in rows], np.int32)
                chance = np.ones(len(rows))
            if record:
                choice = (legal.sum(1) > 1).nonzero()[0]
                kept.append(
                    Decisions(
                        {k: v[choice] for k, v in seen.items()},
                        actions[choice],
                        chance[choice],
                        at[rows[choice]],
                        step[rows[choice]],
                    )
                )
            env.send(actions, rows)
            rows, _, _, terminated, truncated, infos = env.recv(min_ready=len(rows))
            step[rows] += 1
            ended = rows[terminated | truncated]
            for r in ended:
                outcome = infos["outcome"][r]
                out[at[r]] = Played(
                    jobs[at[r]],
                    outcome,
                    infos["limit"][r] if "limit" in infos else None,
                    bool(infos["success"][r]) if outcome in ("scored", "truncated") else None,
                    int(infos["calls"][r]),
                )
            if len(ended):
                done += len(ended)
                if progress:
                    progress(done)
                again = ended[: len(jobs) - given]
                if len(again):
                    at[again] = np.arange(given, given + len(again))
                    step[again] = 0
                    given += len(again)
                    mask[:] = False
                    mask[again] = True
                    obs, _ = env.reset(options={"reset_mask": mask})
                rows = np.sort(np.concatenate([np.setdiff1d(rows, ended), again]))
        decisions = None
        if record:
            decisions = Decisions(
                {k: np.concatenate([d.obs[k] for d in kept]) for k in kept[0].obs},
                *(np.concatenate([getattr(d, f) for d in kept]) for f in ("actions", "chance", "job", "step")),
            )
        return [p for p in out if p is not None], decisions

    def close(self) -> None:
        """Frees the environments."""
        if self._env is not None:
            self._env.close()
            self._env = None

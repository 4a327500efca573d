"""One environment, as ``gymnasium.make`` returns it. In the library it is a batch of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from provegym._batch import Batch, Config, Labels, action_space, check_options, check_seed, end_info, observation_space
from provegym.errors import BadInputError
from provegym.split import Split
from provegym.trace import Trace

__all__ = ["Env"]

_OPTIONS = ("task", "labels", "snapshot")


class Env(gym.Env[Any, Any]):
    """An environment of one pack in one view.

    Text view: the observation is the instruction, then the JSON result of each call; the action is one call as JSON,
    ``{"tool": name, "args": {…}}``. Structured view: the observation is a dict of arrays of fixed shape, the action a number
    that ``action_masks`` allows; a call is chosen in phases, the tool first, then each argument.

    Args:
        pack: The pack, as in a task id.
        view: "text" or "structured".
        family: The family, or several to draw from; all that the mode allows if None.
        dials: Settings by dial; the others stay at their base, or in training at the nearest level that the split allows.
        preset: A named set of settings, or several to draw from.
        split: A ``Split``, its manifest, or the path of its file; every mode but free needs one.
        mode: "free", "train", "eval" or "test".
        trace: A ``Trace``, or the path of a store, to record into.
        labels: What the episodes are for; kept in the trace.
        render_mode: None; there is nothing to render.

    Raises:
        UnknownNameError: If a pack, family, dial, level or preset does not exist; the text has the nearest one.
        HeldOutError: If the split admits none of it in this mode.
        BadInputError: If an argument is malformed.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as the base class has it)

    def __init__(
        self,
        *,
        pack: str,
        view: str = "text",
        family: str | Sequence[str] | None = None,
        dials: Mapping[str, Any] | None = None,
        preset: str | Sequence[str] | None = None,
        split: Split | Mapping[str, Any] | str | Path | None = None,
        mode: str = "free",
        trace: Trace | str | Path | None = None,
        labels: Labels | None = None,
        render_mode: None = None,
    ) -> None:
        """Makes it, loading the library if this is the first one."""
        if render_mode is not None:
            raise BadInputError(f"there is nothing to render: render_mode is None, not {render_mode!r}")
        self._config = Config(
            pack=pack,
            view=view,
            family=family,
            dials=dials,
            preset=preset,
            split=split,
            mode=mode,
            trace=trace,
            labels=labels,
        )
        self._batch = Batch(self._config, 1, final=False, autoreset="disabled")
        self._key: int | None = None  # of the stream that tasks are drawn from
        self._drawn = 0  # tasks drawn from it
        self._behind = False  # the batch has not drawn them yet: this is a copy
        self._started = False
        self.observation_space = observation_space(view)
        self.action_space = action_space(view)

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: Seed of the stream that this and later resets draw their tasks from; without one it goes on.
            options: ``task`` (a task id), with it ``labels``; or ``snapshot`` (what ``snapshot`` returned).

        Returns:
            The observation, and info with ``task`` and ``limits``.

        Raises:
            BadInputError: If an option is unknown or malformed.
            HeldOutError: If the split does not admit the task in this mode.
        """
        if seed is not None:
            seed = check_seed(seed)
        super().reset(seed=seed)
        given = check_options(options, _OPTIONS)
        if "snapshot" in given:
            if len(given) > 1:
                raise BadInputError("a snapshot holds its task: give no other option with it")
            return self.restore(given["snapshot"])
        if "labels" in given and "task" not in given:
            raise BadInputError("labels go with a task; give both, or labels= when making the environment")
        if seed is None and self._key is None:
            seed = int(self.np_random.integers(2**63))
        if seed is not None:
            self._key, self._drawn, self._behind = seed, 0, True
        own = "task" not in given
        if not own:
            self._batch.queue([given["task"]], given.get("labels"), clear=True)
        seeds: list[int | None] = [None]
        if self._behind and (own or not self._drawn):
            seeds = [self._key] + [None] * self._drawn
            for earlier in seeds[:-1]:
                self._batch.reset([earlier])
            self._behind = False
        self._batch.reset(seeds[-1:])
        self._drawn += own
        self._started = True
        return self._batch.row(0), self._batch.reset_info(0)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes one action. What is wrong with it is shown to the agent, costs a call and changes nothing.

        Args:
            action: Text view: a call as JSON, str or UTF-8 bytes. Structured view: a whole number.

        Returns:
            Observation, reward, terminated, truncated, and info with ``outcome``; on the last step also ``success``,
            ``components``, ``calls`` and, if truncated, ``limit``.

        Raises:
            StateError: Before the first reset and after the end of the episode.
            BadInputError: If the action is of the wrong type.
        """
        reward, terminated, truncated, outcome, limit, components, calls = self._batch.native.step_one(action)
        return self._batch.row(0), reward, terminated, truncated, end_info(outcome, limit, components, calls)

    def stop(self, outcome: str, *, limit: str | None = None, why: str = "") -> dict[str, Any]:
        """Ends the running episode from outside, without a reward, and records it so; then a step is refused as after any end.

        Args:
            outcome: "truncated" by a limit that the trainer keeps, or "invalid" when the trainer's side failed.
            limit: Of "truncated": "tokens" if None, or "calls", "wall" or "bytes" where the trainer has its own.
            why: Of "invalid": what failed.

        Returns:
            Info as on the last step of an episode.

        Raises:
            StateError: Before the first reset and after the end of the episode.
            UnknownNameError: If there is no such outcome or limit.
            BadInputError: If outcome, limit and why do not go together.
        """
        self._batch.stop(0, outcome, limit, why)
        return self._batch.end_info(0)

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Returns which actions are legal now, (actions,). At least one always is.

        Raises:
            BadInputError: If the view is text, which has no masks.
        """
        mask: npt.NDArray[np.bool_] = self._batch.masks()[0]
        return mask

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools on offer in this episode, as JSON Schema functions."""
        tools: list[dict[str, Any]] = self._batch.info(0)["tools"]
        return tools

    @property
    def task(self) -> str:
        """The task's id."""
        return self._batch.task(0)

    @property
    def episode_id(self) -> int | None:
        """The episode's id in the trace; None if nothing records it."""
        found: int | None = self._batch.info(0)["episode"]
        return found

    @property
    def instruction(self) -> str:
        """The task as the agent reads it."""
        return str(self._batch.info(0)["instruction"])

    @property
    def digest(self) -> str:
        """The episode's digest: equal digests mean equal calls, results, worlds and rewards."""
        return str(self._batch.info(0)["digest"])

    @property
    def why(self) -> str:
        """What made the episode invalid or its check fail; empty otherwise."""
        return str(self._batch.info(0).get("why") or "")

    def explain(self) -> dict[str, Any] | None:
        """Takes the reward of the episode that has ended apart. It is for people and reports: keep it from the agent.

        Returns:
            ``required``: what the check asks for, each a dict of part (goal, path or finish), text and met; ``unrequested``:
            the changes that nobody asked for, in words; ``decisive``: of a failure call (from 0, -1 for none: the first after
            which it could not succeed any more), kind and why, else None. None where the pack does not say.

        Raises:
            StateError: Before the first reset, and while the episode runs.
        """
        found: dict[str, Any] | None = self._batch.explain(0)
        return found

    def snapshot(self) -> bytes:
        """Returns the whole episode: world, streams, clock and log. ``restore`` takes it here and in other processes.

        Raises:
            StateError: Before the first reset.
            SnapshotError: If the pack is not deterministic.
        """
        return self._batch.native.snapshot(0)

    def restore(self, snapshot: bytes) -> tuple[Any, dict[str, Any]]:
        """Goes on from a snapshot, as a new episode to the trace.

        Returns:
            The observation at that point, and info as ``reset`` gives it.

        Raises:
            SnapshotError: If it is of another pack or view, or does not replay to its digest.
            HeldOutError: If the split does not admit its task in this mode.
        """
        self._batch.native.restore(0, snapshot)
        self._started = True
        return self._batch.row(0), self._batch.reset_info(0)

    def fork(self, n: int) -> list[Env]:
        """Returns n new environments that continue this episode. Their own later resets draw from streams of their own."""
        data = self.snapshot()
        copies = [type(self)(**vars(self._config)) for _ in range(n)]
        for copy in copies:
            copy.restore(data)
        return copies

    def close(self) -> None:
        """Frees it; a second call does nothing."""
        self._batch.native.close()

    def __getstate__(self) -> dict[str, Any]:
        """Returns what a copy is made from: arguments, episode, and the place in the stream of tasks."""
        return {
            "config": self._config,
            "snapshot": self.snapshot() if self._started else None,
            "key": self._key,
            "drawn": self._drawn,
            "np_random": (self._np_random, self._np_random_seed),
            "spec": self.spec,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Makes the copy."""
        Env.__init__(self, **vars(state["config"]))
        self._np_random, self._np_random_seed = state["np_random"]
        self.spec = state["spec"]
        self._key, self._drawn = state["key"], state["drawn"]
        self._behind = self._key is not None
        if state["snapshot"] is not None:
            self.restore(state["snapshot"])

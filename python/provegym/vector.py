"""Many environments as one, as ``gymnasium.make_vec`` returns them: one crossing of the border a step."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

import provegym
from provegym._batch import (
    COMPONENTS,
    LIMITS,
    OUTCOMES,
    Batch,
    Config,
    Labels,
    action_space,
    check_options,
    check_seed,
    observation_space,
)
from provegym.curriculum import Curriculum
from provegym.errors import BadInputError, UnknownNameError
from provegym.split import Split
from provegym.trace import Trace

__all__ = ["AsyncVector", "Row", "VectorEnv"]

_AUTORESET = {
    AutoresetMode.NEXT_STEP: "next_step",
    AutoresetMode.SAME_STEP: "same_step",
    AutoresetMode.DISABLED: "disabled",
}
_OPTIONS = ("reset_mask", "task", "labels")

Bools = npt.NDArray[np.bool_]
Result = tuple[Any, npt.NDArray[np.float64], Bools, Bools, dict[str, Any]]
Received = tuple[npt.NDArray[np.uint32], Any, npt.NDArray[np.float64], Bools, Bools, dict[str, Any]]


class Row:
    """One environment of a vector, as ``call`` and ``get_attr`` see it."""

    def __init__(self, batch: Batch, index: int) -> None:
        """Points at row ``index``."""
        self._batch, self._index = batch, index

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools on offer in its episode, as JSON Schema functions."""
        tools: list[dict[str, Any]] = self._batch.info(self._index)["tools"]
        return tools

    @property
    def task(self) -> str:
        """The id of its task."""
        return self._batch.task(self._index)

    @property
    def episode_id(self) -> int | None:
        """The id of its episode in the trace; None if nothing records it."""
        found: int | None = self._batch.info(self._index)["episode"]
        return found

    @property
    def instruction(self) -> str:
        """Its task as the agent reads it."""
        return str(self._batch.info(self._index)["instruction"])

    @property
    def labels(self) -> dict[str, Any]:
        """What its episode is for."""
        return dict(self._batch.info(self._index).get("labels") or {})

    @property
    def digest(self) -> str:
        """The digest of its episode."""
        return str(self._batch.info(self._index)["digest"])

    @property
    def why(self) -> str:
        """What made its episode invalid or its check fail; empty otherwise."""
        return str(self._batch.info(self._index).get("why") or "")

    def action_masks(self) -> Bools:
        """Returns which actions are legal in it now, (actions,)."""
        mask: Bools = self._batch.masks()[self._index]
        return mask

    def snapshot(self) -> bytes:
        """Returns its whole episode."""
        return self._batch.native.snapshot(self._index)


class VectorEnv(gym.vector.VectorEnv[Any, Any, npt.NDArray[Any]]):
    """``num_envs`` environments of one pack in one view, stepped together in the library.

    Args:
        num_envs: How many.
        pack: The pack, as in a task id.
        view: "text" or "structured", as for ``Env``.
        family: As for ``Env``.
        dials: As for ``Env``.
        preset: As for ``Env``.
        split: As for ``Env``.
        mode: As for ``Env``.
        trace: As for ``Env``.
        labels: As for ``Env``.
        curriculum: Where the next tasks come from when the queue is empty; their own streams if None.
        group_size: So many rows in a row get the same tasks.
        autoreset_mode: What follows the end of an episode; see ``gymnasium.vector.AutoresetMode``. SAME_STEP wastes no step.
        num_workers: Threads that step; by the machine if 0.
        copy: Whether observations are the caller's to keep. If False they are arrays that the next step overwrites in the
            structured view, and ``memoryview``, not decoded, in the text view; they must not be written to.
        render_mode: None; there is nothing to render.

    Raises:
        UnknownNameError: If a name does not exist; the text has the nearest one.
        HeldOutError: If the split admits none of it in this mode.
        BadInputError: If an argument is malformed.
    """

    def __init__(
        self,
        num_envs: int,
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
        curriculum: Curriculum | None = None,
        group_size: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        num_workers: int = 0,
        copy: bool = True,
        render_mode: None = None,
    ) -> None:
        """Makes them, loading the library if this is the first use of it."""
        if render_mode is not None:
            raise BadInputError(f"there is nothing to render: render_mode is None, not {render_mode!r}")
        try:
            self._mode = AutoresetMode(autoreset_mode)
        except ValueError as err:
            modes = ", ".join(repr(m.value) for m in AutoresetMode)
            raise BadInputError(f"autoreset_mode is one of {modes}, not {autoreset_mode!r}") from err
        self._curriculum = curriculum
        config = Config(
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
        self._batch = Batch(
            config,
            num_envs,
            final=self._mode is AutoresetMode.SAME_STEP,
            autoreset=_AUTORESET[self._mode],
            curriculum=curriculum and curriculum.handle,
            group_size=group_size,
            num_workers=num_workers,
        )
        self.num_envs = self._batch.num_envs
        self.copy = copy
        self.metadata = {"render_modes": [], "autoreset_mode": self._mode}
        self.render_mode = None
        self.single_observation_space = observation_space(view)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.single_action_space = action_space(view)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._keyed = np.zeros(self.num_envs, np.bool_)  # rows whose stream has a key
        self._all = np.ones(self.num_envs, np.bool_)
        self._running = np.full(self.num_envs, OUTCOMES[0], object)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Starts episodes.

        Args:
            seed: s for s, s+1, …, or one for each row, None among them for those that go on with their stream.
            options: ``reset_mask``, a bool array of the rows to reset, all if missing; ``task`` (a task id), with it
                ``labels``, gives that task to each of them. It replaces what is queued.

        Returns:
            The observations of all rows, and info with ``task`` and ``limits`` of those that were reset.

        Raises:
            BadInputError: If a seed or option is malformed.
            HeldOutError: If the split does not admit a task in this mode.
        """
        n = self.num_envs
        given = check_options(options, _OPTIONS)
        mask = self._reset_mask(given["reset_mask"]) if "reset_mask" in given else None
        if "labels" in given and "task" not in given:
            raise BadInputError("labels go with a task; give both, or labels= when making the environments")
        seeds: list[int | None]
        if seed is None:
            seeds = [None] * n
        elif isinstance(seed, int | np.integer):
            first = check_seed(seed)
            super().reset(seed=first)
            seeds = [check_seed(first + i) for i in range(n)]
        else:
            seeds = [None if s is None else check_seed(s) for s in seed]
            if len(seeds) != n:
                raise BadInputError(f"there are {n} environments and {len(seeds)} seeds")
        if not self._keyed.all():
            seeds = [
                s if s is not None or k else int(self.np_random.integers(2**63))
                for s, k in zip(seeds, self._keyed, strict=True)
            ]
        if "task" in given:
            rows = n if mask is None else int(mask.sum())
            self._batch.queue([given["task"]] * rows, given.get("labels"), clear=True)
        self._batch.reset(seeds, mask)
        begun = self._all if mask is None else mask
        self._keyed |= begun
        return self._observations(None), self._put_reset({}, begun)

    def _reset_mask(self, mask: Any) -> Bools:
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            got = f"{mask.dtype} {mask.shape}" if isinstance(mask, np.ndarray) else type(mask).__name__
            raise BadInputError(f"options['reset_mask'] is a bool array of shape ({self.num_envs},), not {got}")
        if not mask.any():
            raise BadInputError("options['reset_mask'] names no row to reset")
        return np.ascontiguousarray(mask)

    def step(self, actions: Any) -> Result:
        """Takes one action in each row. What is wrong with one is shown to its agent, costs it a call and changes nothing.

        Args:
            actions: Text view: a list or tuple of str or UTF-8 bytes. Structured view: whole numbers, (num_envs,).

        Returns:
            Observations, rewards, terminated, truncated and infos, batched as Gymnasium does; infos hold for each row what
            ``Env.step`` gives, for rows that began an episode what ``Env.reset`` gives.

        Raises:
            StateError: Before the first reset; with autoreset disabled, if a row has ended.
            BadInputError: If the actions are of the wrong type or number.
        """
        changed = self._batch.native.step(self._actions(actions))
        rows = self._batch.rows
        return (
            self._observations(None),
            rows["reward"].copy(),
            rows["terminated"].copy(),
            rows["truncated"].copy(),
            self._infos(self._all) if changed else {"outcome": self._running.copy(), "_outcome": self._all.copy()},
        )

    def send(self, actions: Any, rows: Sequence[int] | npt.NDArray[np.integer] | None = None) -> None:
        """Starts stepping some rows and returns at once; ``recv`` waits for them.

        Args:
            actions: One action for each of the rows, as ``step`` takes them.
            rows: Their numbers; all if None.

        Raises:
            StateError: If one of them was sent and not yet received, or was never reset.
            BadInputError: If actions and rows do not fit.
        """
        ids = list(range(self.num_envs)) if rows is None else [int(i) for i in rows]
        if len(actions) != len(ids):
            raise BadInputError(f"there are {len(ids)} rows and {len(actions)} actions")
        if rows is None:
            self._batch.native.send(self._actions(actions), ids)
            return
        for i in ids:
            if not 0 <= i < self.num_envs:
                raise BadInputError(f"rows are whole numbers from 0 to {self.num_envs - 1}, not {i}")
        everyone: Any
        if self._batch.text:
            everyone = [b""] * self.num_envs
            for i, action in zip(ids, actions, strict=True):
                everyone[i] = action
        else:
            everyone = np.zeros(self.num_envs, np.int64)
            everyone[ids] = self._actions(actions)
        self._batch.native.send(everyone, ids)

    def recv(self, min_ready: int = 1, timeout: float | None = None) -> Received:
        """Waits for rows that were sent.

        Args:
            min_ready: Return when so many are done.
            timeout: Or when so many seconds have passed; None waits until they are done.

        Returns:
            The numbers of the rows that are done; their observations, rewards, terminated and truncated in that order; infos
            of full width, as ``step`` gives them.

        Raises:
            StateError: If nothing was sent.
        """
        forever = 0x7FFFFFFF
        ms = forever if timeout is None else max(0, min(forever, round(timeout * 1000)))
        ids = np.frombuffer(self._batch.native.recv(min_ready, ms), np.uint32)
        done = np.zeros(self.num_envs, np.bool_)
        done[ids] = True
        rows = self._batch.rows
        return (
            ids,
            self._observations(ids),
            rows["reward"][ids],
            rows["terminated"][ids],
            rows["truncated"][ids],
            self._infos(done),
        )

    def _actions(self, actions: Any) -> Any:
        if self._batch.text or (isinstance(actions, np.ndarray) and actions.dtype.char in "il" and actions.flags.c_contiguous):
            return actions
        array = np.asarray(actions)
        if array.dtype == np.bool_ or not np.issubdtype(array.dtype, np.integer):
            raise BadInputError(f"structured actions are whole numbers, not {array.dtype}")
        if array.dtype == np.uint64:
            array = np.minimum(array, np.uint64(2**62))  # beyond every mask, and so it stays
        if array.dtype not in (np.int32, np.int64):
            array = array.astype(np.int64)
        return np.ascontiguousarray(array)

    def _observations(self, ids: npt.NDArray[np.uint32] | None) -> Any:
        batch = self._batch
        if batch.text:
            texts = batch.native.texts("text", not self.copy)
            return texts if ids is None else tuple(texts[i] for i in ids)
        if ids is not None and (self.copy or len(ids) < self.num_envs):
            return {name: a[ids] for name, a in batch.obs.items()}
        return {name: a.copy() for name, a in batch.obs.items()} if self.copy else dict(batch.obs)

    def _infos(self, done: Bools) -> dict[str, Any]:
        """Builds what ``_add_info`` would from the infos of the rows that are done, without a call for each."""
        infos: dict[str, Any] = {}
        rows = self._batch.rows
        began = rows["began"] & done
        stepped = done & ~began if self._mode is AutoresetMode.NEXT_STEP else done
        ended = stepped & (rows["terminated"] | rows["truncated"])
        if self._mode is not AutoresetMode.SAME_STEP:
            self._put_end(infos, stepped, ended)
        else:
            self._put_end(infos, stepped & ~ended, np.zeros_like(ended))
            if ended.any():
                infos["final_obs"] = np.full(self.num_envs, None, object)
                for i in np.flatnonzero(ended):
                    infos["final_obs"][i] = self._batch.final_row(int(i))
                infos["_final_obs"] = ended
                infos["final_info"] = self._put_end({}, ended, ended)
                infos["_final_info"] = ended.copy()
        return self._put_reset(infos, began)

    def _put_reset(self, infos: dict[str, Any], began: Bools) -> dict[str, Any]:
        rows = np.flatnonzero(began)
        if not len(rows):
            return infos
        tasks, limits = np.full(self.num_envs, None, object), dict[str, Any]()
        for i in rows.tolist():
            info = self._batch.reset_info(i)
            tasks[i] = info["task"]
            for name, limit in info["limits"].items():
                if name not in limits:
                    limits[name], limits[f"_{name}"] = np.zeros(self.num_envs, type(limit)), np.zeros(self.num_envs, np.bool_)
                limits[name][i], limits[f"_{name}"][i] = limit, True
        infos["task"], infos["_task"] = tasks, began.copy()
        infos["limits"], infos["_limits"] = limits, began.copy()
        return infos

    def _put_end(self, infos: dict[str, Any], stepped: Bools, ended: Bools) -> dict[str, Any]:
        rows = self._batch.rows
        if stepped.any():
            _put(infos, "outcome", OUTCOMES[rows["outcome"]], stepped)
        if ended.any():
            bits = rows["components"]
            _put(infos, "success", bits == 15, ended)
            parts: dict[str, Any] = {}
            for bit, name in enumerate(COMPONENTS):
                _put(parts, name, (bits >> bit & 1).astype(np.bool_), ended)
            infos["components"], infos["_components"] = parts, ended.copy()
            _put(infos, "calls", rows["calls"].astype(np.int64), ended)
            cut = ended & (rows["limit"] != 0)
            if cut.any():
                _put(infos, "limit", LIMITS[rows["limit"]], cut)
        return infos

    def action_masks(self) -> Bools:
        """Returns which actions are legal now, (num_envs, actions).

        Raises:
            BadInputError: If the view is text, which has no masks.
        """
        return self._batch.masks()

    def queue(self, tasks: Iterable[str], labels: Labels | Sequence[Labels] | None = None, clear: bool = False) -> None:
        """Queues tasks: the next rows that need one take them in this order, before the curriculum and their streams.

        Args:
            tasks: Task ids.
            labels: What each is for, or one for all.
            clear: Whether to drop what is queued first.

        Raises:
            UnknownNameError: If an id names a family or dial that does not exist.
            HeldOutError: If the split does not admit one in this mode.
        """
        self._batch.queue(tasks, labels, clear)

    def stop(self, row: int, outcome: str, *, limit: str | None = None, why: str = "") -> dict[str, Any]:
        """Ends the running episode of a row from outside, as ``Env.stop`` does, and tells the curriculum.

        With autoreset disabled the row then waits for a reset; in NEXT_STEP mode its next step begins a new episode.

        Returns:
            The row's info, as ``Env.step`` gives it on the last step of an episode.

        Raises:
            StateError: In SAME_STEP mode, before the first reset, while the row is in flight, after the end of its episode.
            UnknownNameError: If there is no such outcome or limit.
            BadInputError: If there is no such row, or outcome, limit and why do not go together.
        """
        self._batch.stop(int(row), outcome, limit, why)
        return self._batch.end_info(int(row))

    def snapshot(self, row: int) -> bytes:
        """Returns the whole episode of a row; ``restore`` takes it here and in other processes.

        Raises:
            StateError: Before the first reset.
            SnapshotError: If the pack is not deterministic.
        """
        return self._batch.native.snapshot(row)

    def restore(self, row: int, snapshot: bytes) -> tuple[Any, dict[str, Any]]:
        """Makes a row go on from a snapshot, as a new episode to the trace.

        Returns:
            The row's observation, and info as ``Env.reset`` gives it.

        Raises:
            SnapshotError: If it is of another pack or view.
            HeldOutError: If the split does not admit its task in this mode.
        """
        self._batch.native.restore(row, snapshot)
        return self._batch.row(row), self._batch.reset_info(row)

    def fork(self, row: int, rows: Sequence[int]) -> Any:
        """Copies the live episode of a row into others, in memory, and returns the observations of all rows."""
        self._batch.native.fork(row, [int(i) for i in rows])
        return self._observations(None)

    def observations(self) -> Any:
        """Returns the observations of all rows as they are now."""
        return self._observations(None)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Returns an attribute of every row (see ``Row``), called with the arguments if it is a method.

        Raises:
            AttributeError: If rows have none of that name; the text has the nearest one.
        """
        self._known(name)
        out = []
        for i in range(self.num_envs):
            value = getattr(Row(self._batch, i), name)
            out.append(value(*args, **kwargs) if callable(value) else value)
        return tuple(out)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Returns an attribute of every row; see ``call``."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Refuses: nothing of a row can be set from outside.

        Raises:
            AttributeError: Always.
        """
        self._known(name)
        raise AttributeError(f"{name} of a row cannot be set; make another vector for other settings")

    def _known(self, name: str) -> None:
        known = [n for n in vars(Row) if not n.startswith("_")]
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise AttributeError(f"rows have no attribute {name!r}; {hint}")

    def close_extras(self, **kwargs: Any) -> None:
        """Frees the library's side."""
        self._batch.native.close()

    def __reduce__(self) -> Any:
        """Refuses: a vector is not pickled.

        Raises:
            TypeError: Always.
        """
        raise TypeError("a VectorEnv cannot be pickled; make one from the same arguments and restore each row's snapshot")


def _put(infos: dict[str, Any], key: str, values: npt.NDArray[Any], mask: Bools) -> None:
    """Puts values where the mask is set, what ``_add_info`` leaves elsewhere, and the mask."""
    nothing: Any = None if values.dtype == object else values.dtype.type(0)
    infos[key], infos[f"_{key}"] = np.where(mask, values, nothing), mask.copy()


class AsyncVector(VectorEnv):
    """Many environments, taken as they become ready, so that one slow episode holds no batch.

    ``reset`` begins all of them. From then on ``recv`` returns the first ``batch_size`` rows that are done, and ``send`` takes
    actions for just those rows, while the others go on.

    >>> envs = AsyncVector("provegym/Echo-v0", num_envs=8, batch_size=2)
    >>> observations, infos = envs.reset(seed=1)
    >>> envs.send(['{"tool": "finish", "args": {}}'] * 8)
    >>> rows, observations, rewards, terminated, truncated, infos = envs.recv()
    >>> len(rows) >= 2
    True
    >>> envs.close()

    Args:
        id: As for ``gymnasium.make``.
        num_envs: How many.
        batch_size: How many rows ``recv`` waits for; a quarter of them if None.
        **how: As for ``VectorEnv``.

    Raises:
        UnknownNameError: If there is no such id.
        BadInputError: If an argument is malformed.
    """

    def __init__(self, id: str, num_envs: int, batch_size: int | None = None, **how: Any) -> None:
        """Makes them."""
        ours = provegym.ids()
        if id not in ours:
            near = difflib.get_close_matches(id, ours, 1)
            raise UnknownNameError(
                f"no environment {id!r}; " + (f"did you mean {near[0]!r}?" if near else f"known: {', '.join(ours)}")
            )
        if batch_size is not None and not 1 <= batch_size <= num_envs:
            raise BadInputError(f"batch_size is a whole number from 1 to num_envs, which is {num_envs}, not {batch_size}")
        super().__init__(num_envs, **{**gym.spec(id).kwargs, **how})
        self.batch_size = batch_size or max(1, num_envs // 4)

    def recv(self, min_ready: int | None = None, timeout: float | None = None) -> Received:
        """As of ``VectorEnv``, for ``batch_size`` rows if ``min_ready`` is None."""
        return super().recv(self.batch_size if min_ready is None else min_ready, timeout)

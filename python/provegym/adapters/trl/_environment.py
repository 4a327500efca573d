"""The environments that TRL calls for its rollouts, and the factory that makes them."""

from __future__ import annotations

import contextlib
import json
import os
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import provegym
from provegym import trace as traces
from provegym.adapters._tools import tool_functions
from provegym.curriculum import Curriculum
from provegym.env import Env
from provegym.errors import BadInputError, HeldOutError, ProveGymError, UnknownNameError
from provegym.split import Split
from provegym.trace import Trace

if TYPE_CHECKING:
    from provegym.adapters.trl._connect import Tokens

__all__ = ["Ended", "Environment", "EnvironmentFactory", "environment_factory", "write"]

OVER = '{"error":{"code":"episode_over","text":"the episode is over; no call counts any more"}}'
"""What a tool answers after the end of its episode."""
TOO_LONG = '{{"error":{{"code":"result_too_long","text":"the result has {n} tokens, {left} are left; the episode is over"}}}}'
BROKEN = "The environment failed; this episode does not count. Answer in one word."
"""What the agent is told of an episode that has no task or does not fit into the model."""
LOOKAHEAD = 256  # tasks that are drawn to see which tools are on offer


@dataclass(frozen=True)
class Ended:
    """How a rollout ended."""

    step: int
    slot: int
    version: int
    item: str
    task: str
    outcome: str
    limit: str | None
    success: bool
    calls: int

    @property
    def counted(self) -> bool:
        """Whether the agent, and not the infrastructure, decided the outcome."""
        return self.outcome in ("scored", "truncated")

    @property
    def family(self) -> str:
        """The task's family."""
        return self.task.partition("/")[2].partition("#")[0].partition("?")[0]


@dataclass(frozen=True)
class _Config:
    pack: str
    family: str | tuple[str, ...] | None
    dials: Mapping[str, Any] | None
    preset: str | tuple[str, ...] | None
    split: Split | None
    mode: str
    key: int
    trace: str | None
    run: Mapping[str, Any]
    own_reward: bool


class EnvironmentFactory:
    """What ``GRPOTrainer(environment_factory=…)`` calls for one environment a rollout; see ``environment_factory``.

    It can be pickled: the copy starts without trainer, curriculum and open store.
    """

    def __init__(self, config: _Config) -> None:
        """Keeps the configuration; the library is loaded by the first environment."""
        self._config = config
        self._class: type[Environment] | None = None
        self._trace: Trace | None = None
        self.curriculum: Curriculum | None = None
        self.rank = int(os.environ.get("RANK", 0))
        self.step = 0
        self._plan_hash = ""
        self.tokens: Tokens | None = None
        self.ended: list[Ended] = []  # since the last update of the curriculum
        self.seen: list[Ended] = []  # since the last line of status
        self.state: dict[str, Any] = {}  # of the callbacks, kept beside TRL's checkpoints
        self._resumed: int | None = None
        self._drawn: dict[int, tuple[str, str]] = {}  # at this version
        self._version = 0

    def __call__(self) -> Environment:
        """Returns a new environment."""
        if self._class is None:
            config = self._config
            methods: dict[str, Any] = dict(tool_functions(self._offered(), Environment._call, taken=("reset", "get_reward")))
            if config.own_reward:
                methods["get_reward"] = _get_reward
            self._class = type(provegym.pack(config.pack)["title"], (Environment,), methods)
        return self._class(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as its configuration."""
        return EnvironmentFactory, (self._config,)

    @property
    def tools(self) -> list[Callable[..., str]]:
        """The tools as the trainer shows them to the model, in its order."""
        environment = self()
        return [getattr(environment, name) for name in sorted(environment._tool_names())]

    def _offered(self) -> list[dict[str, Any]]:
        """Every tool that a task of the configuration may offer.

        Raises:
            BadInputError: If a name means one tool in one task and another in the next.
        """
        if self.by_split:
            tasks = [d.task for d in self.new_curriculum("uniform").ask(LOOKAHEAD)]
        else:
            tasks = provegym.sample(self._config.pack, LOOKAHEAD, **self._settings())
        offered: dict[str, dict[str, Any]] = {}
        of: dict[str, str] = {}
        for task in tasks:
            for tool in provegym.task(task)["tools"]:
                name = tool["function"]["name"]
                if offered.setdefault(name, tool) != tool:
                    raise BadInputError(
                        f"tool {name} is not the same in {of[name]} and {task}, but TRL shows the model one set of tools: hold "
                        "the dial that changes tools at one level, in the split's train_dials or in dials (tooluse: opacity 0)"
                    )
                of.setdefault(name, task)
        return list(offered.values())

    def _settings(self) -> dict[str, Any]:
        c = self._config
        return {"family": c.family, "dials": c.dials, "preset": c.preset, "split": c.split, "mode": c.mode}

    @property
    def by_split(self) -> bool:
        """Whether tasks come from the whole training region of a split, and not from settings that were given."""
        c = self._config
        return c.split is not None and c.mode == "train" and c.dials is None and c.preset is None

    def new_curriculum(self, mode: str, **where: Any) -> Curriculum:
        """Returns a curriculum over the split's training region.

        Raises:
            BadInputError: If there is no split, or dials are given beside it.
        """
        c = self._config
        if not self.by_split or c.split is None:
            raise BadInputError(
                "a curriculum draws from a split's training region: give environment_factory a split, and leave out dials and "
                "preset (train_dials of the split says which settings training may use)"
            )
        families = [c.family] if isinstance(c.family, str) else c.family
        return Curriculum(c.pack, split=c.split, key=c.key, mode=mode, **{"families": families, **where})

    @property
    def config(self) -> _Config:
        """What it was made with."""
        return self._config

    def task(self, slot: int) -> tuple[str, str]:
        """Returns the task of a slot at the present version of the curriculum, and the curriculum's item that it is of.

        A pure function of version and slot.
        """
        if not self.by_split:
            seed = int.from_bytes(sha256(f"{self._config.key}/slot/{slot}".encode()).digest()[:8], "big")
            return provegym.sample(self._config.pack, 1, seed=seed, **self._settings())[0], ""
        if self.curriculum is None:
            self.curriculum = self.new_curriculum("uniform")
            self.redrawn()
        if slot not in self._drawn:
            _, draws = self.curriculum.at([slot])
            self._drawn[slot] = draws[0].task, draws[0].item
        return self._drawn[slot]

    @property
    def version(self) -> int:
        """The curriculum's version."""
        return self._version

    def advance(self, ended: Sequence[Ended]) -> None:
        """Takes the results of one update, those of all ranks in the same order, and raises the version."""
        if self.curriculum is None:
            return
        told: dict[str, Counter[str]] = defaultdict(Counter)
        for e in ended:
            if e.item:
                told[e.item]["passes"] += e.success
                told[e.item]["episodes" if e.counted else "lost"] += 1
        if told:
            names = ("passes", "episodes", "lost")
            results = [{"item": item, **{n: told[item][n] for n in names}} for item in sorted(told)]
            self.curriculum.advance(results)
            self.redrawn()

    def redrawn(self) -> None:
        """Notes that the curriculum changed: slots have other tasks from now on."""
        self._version = 0 if self.curriculum is None else self.curriculum.version
        self._drawn.clear()

    def declare(self, plan_hash: str) -> None:
        """Says which plan the trace is recorded for.

        Raises:
            BadInputError: If nothing is recorded, or the recording has begun.
        """
        if self._config.trace is None:
            raise BadInputError("Prove judges what was recorded: environment_factory(…, trace=folder)")
        if self._trace is not None:
            raise BadInputError("the trace is open already: add ProveCallback before the first episode")
        self._plan_hash = plan_hash

    def episodes(self) -> list[dict[str, Any]]:
        """Returns what the stores of all ranks have of this run's folder, superseded episodes left out."""
        folder = Path(self._config.trace or "")
        if self._trace is not None:
            self._trace.flush()
        return [row for path in sorted(folder.glob("trace*.db")) for row in traces.query(path, "episodes")]

    def ledger(self) -> list[str]:
        """Returns the ids of the tasks that training and Break have drawn."""
        return [row["task"] for row in self.episodes() if row["purpose"] in ("train", "break")]

    # ------------------------------------------------------------------ what is kept

    @property
    def trace(self) -> Trace | None:
        """The store that this rank records into, opened on first use."""
        c = self._config
        if self._trace is None and c.trace is not None:
            pack = provegym.pack(c.pack)
            identity = {
                "policy": "trl",
                "pack_hash": pack["hash"],
                "check_hash": pack["check_hash"],
                "split_hash": c.split.hash if c.split else "",
                "plan_hash": self._plan_hash,
                "config": {"key": str(c.key), "family": c.family, "dials": c.dials, "preset": c.preset},
                **c.run,
            }
            self._trace = Trace(self.trace_path(self.rank), identity, pack=c.pack, resume=self._resumed)
        return self._trace

    def trace_path(self, rank: int) -> Path:
        """The store of a rank."""
        folder = Path(self._config.trace or "")
        return folder / ("trace.db" if rank == 0 else f"trace-rank{rank}.db")

    def save(self, folder: Path, step: int) -> None:
        """Writes what goes with TRL's checkpoint of a step, before TRL writes that: by temporary file and rename."""
        if self._trace is not None:
            self._trace.mark(step)
        if self.rank:
            return
        folder.mkdir(parents=True, exist_ok=True)
        state = {
            "step": step,
            "curriculum": None if self.curriculum is None else self.curriculum.state(),
            **self.state,
        }
        write(folder / f"step-{step}.json", json.dumps(state))

    def resume(self, folder: Path, step: int) -> None:
        """Takes up what ``save`` wrote.

        Raises:
            BadInputError: If there is nothing of that step.
        """
        if self._resumed is not None:
            return
        path = folder / f"step-{step}.json"
        if not path.exists():
            raise BadInputError(
                f"checkpoint-{step} has no {path}: it was saved without ProveGym's callbacks; resume from one that has it, "
                "or start anew in another output_dir"
            )
        state = json.loads(path.read_text())
        stored = state.pop("curriculum")
        if self.curriculum is not None and stored is not None:
            self.curriculum = Curriculum.resume(stored)
        self.redrawn()
        del state["step"]
        self.state |= state
        self._resumed = step


@lru_cache(256)
def _working(task: str) -> frozenset[str]:
    """Names of the tools that work in a task; a group's members all ask the same."""
    return frozenset(t["function"]["name"] for t in provegym.task(task)["tools"])


def environment_factory(
    pack: str,
    *,
    family: str | Sequence[str] | None = None,
    dials: Mapping[str, Any] | None = None,
    preset: str | Sequence[str] | None = None,
    split: Split | Mapping[str, Any] | str | Path | None = None,
    mode: str | None = None,
    key: int = 0,
    trace: str | Path | None = None,
    run: Mapping[str, Any] | None = None,
    own_reward: bool = False,
) -> EnvironmentFactory:
    """Returns the ``environment_factory`` of a ``GRPOTrainer``.

    The model sees one tool for each tool of the pack that a task of this configuration may offer; an episode that offers fewer
    says which. A result is the JSON text of the core. The reward comes from ``success``, given to the trainer as its reward
    function.

    Args:
        pack: The pack.
        family: As for ``Env``.
        dials: As for ``Env``.
        preset: As for ``Env``.
        split: As for ``Env``.
        mode: "train" if there is a split, else "free".
        key: Seed of the slots' tasks and of a curriculum.
        trace: Folder to record into.
        run: What identifies the run in the trace beyond pack, split and plan.
        own_reward: Gives the environments ``get_reward``, for trainers that pass no environments to reward functions
            (AsyncGRPO). Do not combine it with ``success``.

    Raises:
        BadInputError: If an argument is malformed.
    """
    split = None if split is None else Split.of(split)
    names = [None if n is None else n if isinstance(n, str) else tuple(n) for n in (family, preset)]
    return EnvironmentFactory(
        _Config(
            pack=pack,
            family=names[0],
            dials=None if dials is None else dict(dials),
            preset=names[1],
            split=split,
            mode=mode or ("train" if split else "free"),
            key=key,
            trace=None if trace is None else str(trace),
            run=dict(run or {}),
            own_reward=own_reward,
        )
    )


class Environment:
    """One rollout. TRL makes a tool of every public method: there are none but the tools, ``reset`` and ``get_reward``."""

    def __init__(self, factory: EnvironmentFactory) -> None:
        self._factory = factory
        self._envs: dict[str, Env] = {}  # by mode
        self._env: Env | None = None
        self._ended: Ended | None = None
        self._failed = ""  # why there is no episode
        self._over = True
        self._training = False
        self._made = 0  # calls
        self._seconds = 0.0  # spent in reset and calls of this rollout
        self._left: int | None = None  # tokens for results
        self._slot = self._version = self._step = 0
        self._item = self._task = ""
        self._end: dict[str, Any] = {"outcome": "running"}

    def reset(self, slot: int = 0, task: str | None = None, mode: str | None = None, prompt: Any = None, **columns: Any) -> str:
        """Starts the episode of a row of the dataset; returns what the agent reads."""
        began = time.perf_counter()
        text = self._begin(slot, task, mode, prompt)
        self._seconds = time.perf_counter() - began
        return text

    def _begin(self, slot: int, task: str | None, mode: str | None, prompt: Any) -> str:
        factory = self._factory
        self._training = (mode or factory.config.mode) in ("train", "free")
        self._slot, self._version, self._step, self._item = int(slot), factory.version, factory.step, ""
        self._ended, self._failed, self._made, self._left = None, "", 0, None
        self._end = {"outcome": "running"}
        self._task = task or ""
        try:
            if not self._task:
                self._task, self._item = factory.task(self._slot)
            self._env = self._of_mode(mode or factory.config.mode)
            labels = {
                "purpose": "train" if self._training else "monitor",
                "slot": self._slot,
                "group": self._slot,
                "iteration": factory.step,
            }
            instruction, _ = self._env.reset(options={"task": self._task, "labels": labels})
        except (HeldOutError, BadInputError, UnknownNameError):
            raise  # a mistake in the configuration, which every row would repeat
        except ProveGymError as err:
            return self._fail(str(err))
        self._over = False
        text: str = self._lead(prompt) + instruction + self._offer()
        if factory.tokens is not None:
            self._left, room = factory.tokens.room(prompt, text, self._schemas())
            if self._left < 1:
                why = f"the prompt leaves no token for an answer: the model takes {room}"
                self._env.stop("invalid", why=why)
                return self._fail(why)
        return text

    def _of_mode(self, mode: str) -> Env:
        if mode not in self._envs:
            c = self._factory.config
            self._envs[mode] = Env(pack=c.pack, split=c.split, mode=mode, trace=self._factory.trace)
        return self._envs[mode]

    def _fail(self, why: str) -> str:
        """The infrastructure failed: an outcome of its own, and never an exception that ends the step."""
        self._failed, self._over = why, True
        self._end = {"outcome": "invalid"}
        warnings.warn(f"an episode of {self._task or 'a slot'} does not count: {why}", RuntimeWarning, stacklevel=3)
        return BROKEN

    @staticmethod
    def _lead(prompt: Any) -> str:
        """TRL appends without a separator."""
        content = prompt[-1]["content"] if prompt else ""
        return "\n\n" if content else ""

    def _schemas(self) -> list[Callable[..., str]]:
        return [getattr(self, name) for name in self._tool_names()]

    def _tool_names(self) -> list[str]:
        return [n for n in vars(type(self)) if not n.startswith("_") and n not in ("reset", "get_reward")]

    def _offer(self) -> str:
        """Which tools work, if not all that the model is shown do."""
        offered = _working(self._task)
        if offered >= set(self._tool_names()):
            return ""
        return "\n\nTools that work in this task: " + ", ".join(n for n in self._tool_names() if n in offered) + "."

    def _call(self, name: str, arguments: dict[str, Any]) -> str:
        began = time.perf_counter()
        result = OVER if self._over else self._play(name, arguments)
        self._seconds += time.perf_counter() - began
        return result

    def _play(self, name: str, arguments: dict[str, Any]) -> str:
        assert self._env is not None
        action = json.dumps({"tool": name, "args": arguments})
        try:
            result, reward, terminated, truncated, info = self._env.step(action)
        except ProveGymError as err:
            with contextlib.suppress(ProveGymError):
                self._env.stop("invalid", why=str(err))
            return self._fail(str(err))
        self._made += 1
        tokens = self._factory.tokens
        shown: str = result if tokens is None else tokens.plain(result)
        if terminated or truncated:
            self._over, self._end = True, {**info, "reward": reward}
            return shown
        if tokens is not None and self._left is not None:
            n = tokens.turn(name, arguments, shown)
            if n > self._left:
                self._env.stop("truncated", limit="tokens")
                self._over, self._end = True, {"outcome": "truncated", "limit": "tokens", "calls": self._made}
                return TOO_LONG.format(n=n, left=self._left)
            self._left -= n
        return shown

    def _finish(self) -> Ended:
        """Ends the rollout: one that the agent left without finishing is truncated, since only a finish can be scored."""
        if self._ended is None:
            if not self._over:
                assert self._env is not None
                self._env.stop("truncated", limit="tokens")
                self._over, self._end = True, {"outcome": "truncated", "limit": "tokens", "calls": self._made}
            e = self._end
            self._ended = Ended(
                step=self._step,
                slot=self._slot,
                version=self._version,
                item=self._item,
                task=self._task,
                outcome=e["outcome"],
                limit=e.get("limit"),
                success=bool(e.get("success")),
                calls=int(e.get("calls", self._made)),
            )
            if self._training:
                self._factory.ended.append(self._ended)
                self._factory.seen.append(self._ended)
        return self._ended

    def _rollout(self) -> dict[str, Any]:
        """How it ended, and what the core said of the end."""
        return {"ended": self._finish(), "end": self._end}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as a new environment of the same configuration."""
        return _make, (self._factory,)


def _make(factory: EnvironmentFactory) -> Environment:
    return factory()


def _get_reward(self: Environment) -> float | None:
    """Ends the rollout and returns its reward, None if the infrastructure lost it."""
    end = self._rollout()
    return float(end["end"].get("reward", 0.0)) if end["ended"].counted else None


def write(path: Path, text: str) -> None:
    """Writes by temporary file and rename: a reader never sees half of it."""
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "w", encoding="utf-8") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    temporary.replace(path)

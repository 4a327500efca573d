"""Callbacks of the trainer: curriculum, Break, and a line of status."""

from __future__ import annotations

import contextlib
import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from provegym import trace as traces
from provegym.adapters.trl._connect import attach
from provegym.adapters.trl._environment import Ended
from provegym.errors import BadInputError

__all__ = [
    "BreakCallback",
    "CurriculumCallback",
    "ProveGymCallback",
    "StatusCallback",
    "progress_bar",
    "say",
    "state_folder",
    "summary",
]


class ProveGymCallback(TrainerCallback):
    """Connects the trainer, keeps the state of all callbacks beside TRL's checkpoints, and takes it up on resume."""

    def __init__(self, trainer: Any) -> None:
        self.factory = attach(trainer)
        self._trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Takes up the state if TRL resumes."""
        if state.global_step:
            self.factory.resume(state_folder(args), state.global_step)
        self.factory.step = state.global_step

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Episodes that begin now are of this step."""
        self.factory.step = state.global_step

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Writes the state if TRL is about to save."""
        self._save(args, state, control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """As at the end of a step."""
        self._save(args, state, control)

    def _save(self, args: Any, state: Any, control: Any) -> None:
        # Every callback writes, so that the last one writes what all have changed.
        if control.should_save:
            self.factory.save(state_folder(args), state.global_step)

    def _gather(self, mine: list[Any]) -> list[Any]:
        """Returns the lists of all ranks, one after another, on every rank."""
        if self._trainer.accelerator.num_processes == 1:
            return mine
        from accelerate.utils import gather_object

        return list(gather_object(mine))

    def _first(self, work: Callable[[], Any]) -> Any:
        """Does on the first rank what is done once, and returns its result on every rank."""
        result = [work() if self.factory.rank == 0 else None]
        if self._trainer.accelerator.num_processes > 1:
            from accelerate.utils import broadcast_object_list

            broadcast_object_list(result)
        return result[0]

    def _policy(self, name: str, model: Any = None, **how: Any) -> Any:
        """The model as a chat policy that sees what it sees in training."""
        from provegym.policies.chat import Local

        trainer, tokens = self._trainer, self.factory.tokens
        assert tokens is not None
        if trainer.is_fsdp_enabled or getattr(trainer, "is_deepspeed_enabled", False):
            raise BadInputError(
                "Break and Prove play with a whole model on the first rank, and this one is sharded; run them apart from "
                "training, on a saved checkpoint, with provegym.policies"
            )
        return Local(
            trainer.accelerator.unwrap_model(trainer.model) if model is None else model,
            tokens.tokenizer,
            name=name,
            chat_template=trainer.chat_template,
            chat_template_kwargs=trainer.chat_template_kwargs,
            max_new_tokens=int((trainer.generation_kwargs or {}).get("max_new_tokens", trainer.max_completion_length)),
            temperature=trainer.temperature,
            tools=self.factory.tools,
            **how,
        )

    def _how(self) -> dict[str, Any]:
        """What the episodes of Break and Prove share with those of training."""
        messages = self._trainer.train_dataset[0]["prompt"]
        system = messages[0]["content"] if messages[0]["role"] == "system" else None
        return {"system": system, "max_tokens": self._trainer.max_completion_length, "split": self.factory.config.split}


def state_folder(args: Any) -> Path:
    """Where the callbacks keep what goes with TRL's checkpoints."""
    return Path(args.output_dir) / "provegym"


def last_checkpoint(output_dir: str | Path) -> str | None:
    """Returns the newest checkpoint that is complete, for ``trainer.train(resume_from_checkpoint=…)``; None if there is none.

    A process that is killed while it saves leaves a folder behind that TRL would pick and fail on.
    """
    out = Path(output_dir)
    whole = []
    for path in out.glob("checkpoint-*/trainer_state.json"):  # what TRL writes last
        with contextlib.suppress(ValueError):
            step = json.loads(path.read_text())["global_step"]
            if (out / "provegym" / f"step-{step}.json").exists():
                whole.append(step)
    return str(out / f"checkpoint-{max(whole)}") if whole else None


class CurriculumCallback(ProveGymCallback):
    """Draws the slots' tasks from where the policy fails, at the moment when TRL resets an environment.

    Args:
        trainer: The ``GRPOTrainer``.
        mode: "failures", or "uniform" over the training region.
        families: As for ``Curriculum``; the factory's if None.
        dials: As for ``Curriculum``.

    Raises:
        BadInputError: If the factory has no split, or dials beside it.
    """

    def __init__(
        self, trainer: Any, *, mode: str = "failures", families: Sequence[str] | None = None, dials: Sequence[str] | None = None
    ) -> None:
        """Makes the curriculum and connects it."""
        super().__init__(trainer)
        where = {k: v for k, v in (("families", families), ("dials", dials)) if v is not None}
        self.factory.curriculum = self.factory.new_curriculum(mode, **where)
        self.factory.redrawn()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Passes on the results of all ranks, if episodes were played for this step."""
        mine, self.factory.ended = self.factory.ended, []
        self.factory.advance(self._gather(mine))
        super().on_step_end(args, state, control, **kwargs)


class BreakCallback(ProveGymCallback):
    """Searches for where the present checkpoint fails, and gives the curriculum what it finds.

    Args:
        trainer: The ``GRPOTrainer``; add a ``CurriculumCallback`` first.
        every: Steps between two searches; the first is before the first step.
        budget: Episodes that one search may spend.
        batch: Episodes played at once.
        families: As for ``Breaker``; the factory's if None.
        dials: As for ``Breaker``.

    Raises:
        BadInputError: If there is no curriculum.
    """

    def __init__(
        self,
        trainer: Any,
        *,
        every: int,
        budget: int = 200,
        batch: int = 32,
        families: Sequence[str] | None = None,
        dials: Sequence[str] | None = None,
    ) -> None:
        """Connects it."""
        super().__init__(trainer)
        family = self.factory.config.family
        if self.factory.curriculum is None:
            raise BadInputError("Break feeds a curriculum: add CurriculumCallback(trainer) before BreakCallback(trainer, …)")
        if families is None and family is not None:
            families = [family] if isinstance(family, str) else family
        self._every, self._budget, self._batch = every, budget, batch
        self._families, self._dials = families, dials

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Searches before the first step."""
        super().on_train_begin(args, state, control, **kwargs)
        if not state.global_step:
            self._search(0)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Searches at intervals."""
        if state.global_step % self._every == 0 and state.global_step < state.max_steps:
            self._search(state.global_step)
        super().on_step_end(args, state, control, **kwargs)

    def _search(self, step: int) -> None:
        from provegym.breaker import Breaker
        from provegym.policies.chat import probe

        factory, config = self.factory, self.factory.config
        checkpoint = f"step-{step}"
        split = config.split
        assert factory.curriculum is not None and split is not None

        def work() -> Any:
            earlier = factory.state.get("causes", [])
            search = Breaker(
                config.pack,
                split=split,
                key=config.key + step,
                checkpoint=checkpoint,
                budget=self._budget,
                causes=earlier,
                families=self._families,
                dials=self._dials,
            )
            with progress_bar(self._budget, f"break at step {step}") as progress:
                return probe(
                    self._policy(checkpoint, batch_size=self._batch), search, trace=factory.trace, batch=self._batch,
                    labels={"iteration": step}, seed=config.key, progress=progress, **self._how(),
                )  # fmt: skip

        report: dict[str, Any] = self._first(work)
        factory.state["causes"] = report["causes"]
        factory.state.setdefault("breaks", []).append({"step": step, "causes": len(report["causes"])})
        factory.curriculum.update(report["causes"], checkpoint)
        factory.redrawn()


class StatusCallback(ProveGymCallback):
    """Prints a line whenever TRL logs: pass rate by family, share of dead groups, hollow passes, what was lost.

    A group is dead when all its members that count came out alike: it moves nothing. A pass is hollow when an audit flagged it,
    which only the trace knows.
    """

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Prints the line of the rollouts since the last one."""
        mine, self.factory.seen = self.factory.seen, []
        ended = self._gather(mine)
        if ended and self.factory.rank == 0:
            say(f"step {state.global_step}: {summary(ended, self._hollow(ended))}")

    def _hollow(self, ended: Sequence[Ended]) -> tuple[int, int] | None:
        """Hollow passes and passes among what this rank has recorded of these steps."""
        store = self.factory.trace
        if store is None:
            return None
        store.flush()
        rows = [
            r for step in {e.step for e in ended}
            for r in traces.query(store.path, "episodes", purpose="train", iteration=step, success=True)
        ]  # fmt: skip
        return sum(bool(r.get("audits")) for r in rows), len(rows)


def summary(ended: Sequence[Ended], hollow: tuple[int, int] | None = None) -> str:
    """One line on rollouts."""
    families: dict[str, list[bool]] = defaultdict(list)
    groups: dict[tuple[int, int, str], set[bool]] = defaultdict(set)
    for e in ended:
        if e.counted:
            families[e.family].append(e.success)
            groups[e.version, e.slot, e.task].add(e.success)
    parts = [f"{f} {statistics.fmean(p):.0%} of {len(p)}" for f, p in sorted(families.items())]
    if groups:
        parts.append(f"dead groups {statistics.fmean(len(g) == 1 for g in groups.values()):.0%}")
    if hollow is not None and hollow[1]:
        parts.append(f"hollow passes {hollow[0] / hollow[1]:.1%}")
    if lost := sum(not e.counted for e in ended):
        parts.append(f"lost {lost}")
    return ", ".join(parts)


def say(text: str) -> None:
    """Prints beside TRL's progress bar."""
    from tqdm import tqdm

    tqdm.write(text)


@contextlib.contextmanager
def progress_bar(total: int, what: str) -> Iterator[Callable[[int], Any]]:
    """A progress bar that is told how much is done."""
    from tqdm import tqdm

    with tqdm(total=total, desc=what, unit="ep", leave=False, disable=None) as bar:
        yield lambda done: bar.update(done - bar.n)

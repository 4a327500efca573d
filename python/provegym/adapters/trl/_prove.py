"""Prove inside a training run: monitor looks, sealed looks, the report."""

from __future__ import annotations

import json
import shutil
import statistics
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from provegym import prove
from provegym.adapters.trl._callbacks import ProveGymCallback, progress_bar, say, state_folder
from provegym.adapters.trl._environment import write
from provegym.errors import BadInputError

__all__ = ["ProveCallback", "digest"]

ARMS = ("base", "checkpoint")


class ProveCallback(ProveGymCallback):
    """Monitor looks at intervals, and the sealed looks that the plan declares; writes the report into ``output_dir``.

    The base arm is the model as it is when training begins; its weights, and those of the best checkpoint by the monitor's
    mean, are kept in ``output_dir/provegym``.

    Args:
        trainer: The ``GRPOTrainer``. Its factory must not have opened its trace yet, since the trace says which plan it is for.
        plan: The frozen plan.
        key: What it was frozen with.
        every: Steps between monitor looks; 0 for none.
        looks: The step of each sealed look that is not at the end of training.
        best: Whether a look at the end judges the best checkpoint by the monitor's mean, instead of the last.
        batch: Episodes played at once.

    Raises:
        BadInputError: If the trace is open already, there is none, or a look is none of the plan's.
    """

    def __init__(
        self,
        trainer: Any,
        plan: Mapping[str, Any],
        *,
        key: int = 0,
        every: int = 0,
        looks: Mapping[str, int] | None = None,
        best: bool = False,
        batch: int = 32,
    ) -> None:
        """Connects it."""
        super().__init__(trainer)
        self._plan, self._key, self._every, self._best, self._batch = plan, key, every, best, batch
        self._at = dict(looks or {})
        declared = [x["id"] for x in plan["looks"]]
        if strange := set(self._at) - set(declared):
            raise BadInputError(f"the plan declares no look {sorted(strange)}; it declares {declared}")
        self.factory.declare(plan["hash"])
        self._final = [x for x in declared if x not in self._at]

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Keeps the base."""
        super().on_train_begin(args, state, control, **kwargs)
        if not state.global_step:
            self._keep(args, "base")

    def _keep(self, args: Any, what: str) -> None:
        if self.factory.rank == 0:
            fresh = state_folder(args) / f"{what}.tmp"
            shutil.rmtree(fresh, ignore_errors=True)
            self._trainer.accelerator.unwrap_model(self._trainer.model).save_pretrained(fresh)
            shutil.rmtree(state_folder(args) / what, ignore_errors=True)
            fresh.replace(state_folder(args) / what)

    def _kept(self, args: Any, what: str) -> Any:
        model = self._trainer.accelerator.unwrap_model(self._trainer.model)
        folder = state_folder(args) / what
        return type(model).from_pretrained(folder, dtype=model.dtype).to(model.device)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Looks at intervals."""
        step = state.global_step
        if self._every and step % self._every == 0:
            self._monitor(args, step)
        for name, at in self._at.items():
            if at == step:
                self._sealed(args, name, step)
        super().on_step_end(args, state, control, **kwargs)

    def _monitor(self, args: Any, step: int) -> None:
        """A look at the monitor block: it may choose the checkpoint and feeds nothing else."""
        state = self.factory.state
        look = self._look(args, "monitor", step)
        trained = sum(r["purpose"] == "train" for r in self.factory.episodes())
        state.setdefault("learning", []).append({"iteration": step, "episodes": trained, "look": look})
        rates = {arm: [r[arm]["rate"] for r in look["rows"] if r[arm]["rate"] is not None] for arm in ("base", "checkpoint")}
        mean = {arm: statistics.fmean(r) if r else 0.0 for arm, r in rates.items()}
        say(f"monitor look at step {step}: base {mean['base']:.0%}, checkpoint {mean['checkpoint']:.0%} (no verdict)")
        if self._best and mean["checkpoint"] > state.get("best", {"mean": -1})["mean"]:
            state["best"] = {"mean": mean["checkpoint"], "step": step}
            self._keep(args, f"best-{step}")

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Takes the looks at the end and writes the report."""
        self.judge(args, state.global_step)

    def judge(self, args: Any, step: int = 0) -> dict[str, Any]:
        """Takes the looks at the end, writes the report and returns it. Without any training it is the base against itself."""
        if not (state_folder(args) / "base").exists():
            self._keep(args, "base")
        for name in self._final:
            self._sealed(args, name, step)
        report: dict[str, Any] = self._first(lambda: self._report(args))
        return report

    def _sealed(self, args: Any, name: str, step: int) -> None:
        done = self.factory.state.setdefault("looks", [])
        if all(x["look"] != name for x in done):
            done.append(self._look(args, name, step))

    def _look(self, args: Any, name: str, step: int) -> dict[str, Any]:
        from provegym.policies.chat import look

        def work() -> Any:
            factory = self.factory
            assert factory.trace is not None  # declare said so
            best = factory.state["best"]["step"] if name in self._final and "best" in factory.state else None
            base, model = self._kept(args, "base"), None if best is None else self._kept(args, f"best-{best}")
            trained = self._trainer.model if model is None else model
            slots = 2 * len(prove.tasks(self._plan, name, key=self._key))
            with progress_bar(slots, f"{name} look") as progress:
                return look(
                    self._policy(digest(base), base, batch_size=self._batch),
                    self._policy(digest(trained), model, batch_size=self._batch),
                    self._plan, name, key=self._key, trace=factory.trace, batch=self._batch,
                    labels={"iteration": step}, ledger=factory.ledger(), progress=progress, **self._how(),
                )  # fmt: skip

        found: dict[str, Any] = self._first(work)
        return found

    def _report(self, args: Any) -> dict[str, Any]:
        """Writes report.json, report.md and report.html, says the verdict, and returns the report."""
        state, rows = self.factory.state, self.factory.episodes()
        arms = {arm: [r for r in rows if r["purpose"] == "sealed" and r["arm"] == arm and r.get("success")] for arm in ARMS}
        made = prove.report(
            self._plan,
            state["looks"],
            learning=state.get("learning", []),
            causes=[_cause(c) for c in state.get("causes", [])],
            spent=Counter(r["purpose"] for r in rows),
            hollow=[{"arm": arm, "passes": len(p), "hollow": sum(bool(r.get("audits")) for r in p)} for arm, p in arms.items()],
        )
        out = Path(args.output_dir)
        write(out / "report.json", json.dumps(made["report"], indent=2) + "\n")
        write(out / "report.md", made["markdown"])
        write(out / "report.html", made["html"])
        say(made["report"]["headline"]["sentence"])
        say(f"report: {out / 'report.html'}")
        report: dict[str, Any] = made["report"]
        return report


def _cause(c: Mapping[str, Any]) -> dict[str, Any]:
    """A cause as the report shows it."""
    q, factors = c["q"], " and ".join(f"{x['factor']} = {x['level']}" for x in c["settings"])
    return {"name": c["id"], "factors": factors, "q": q["q"], "lo": q["lo"], "hi": q["hi"], "status": c["status"]}


def digest(model: Any) -> str:
    """SHA-256 of a model's weights, by name."""
    h = sha256()
    for name, weight in sorted(model.state_dict().items()):
        h.update(name.encode() + weight.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return h.hexdigest()

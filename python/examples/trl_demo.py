"""The main job with a language model and TRL: declare, imitate, break, train with GRPO, prove.

    freeze split and plan -> a small transformer from scratch, SFT on the oracle's episodes (the base checkpoint) -> Break ->
    GRPO on curriculum episodes, with Break again and monitor looks at intervals -> sealed look -> report

On two cores without a download it takes about a quarter of an hour. With --model a pretrained model in a local folder imitates
the oracle instead; its chat template must be one that TRL has tools for. That wants a GPU: see bench/gpu.sh.

    python python/examples/trl_demo.py --out demo-trl-run --seed 1

Stop it at any time; the same command with --resume goes on and ends with the same plan.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch
import transformers
import trl
import trl_tiny
from trl import GRPOConfig, GRPOTrainer

import provegym
from provegym import prove
from provegym.adapters.trl import (
    BreakCallback,
    CurriculumCallback,
    ProveCallback,
    StatusCallback,
    dataset,
    environment_factory,
    last_checkpoint,
    success,
)
from provegym.policies.chat import Local, play

PACK = "tooluse"
EASIEST = {
    "depth": "4",
    "width": "1",
    "opacity": "0",
    "constraints": "0",
    "fault_rate": "0",
    "fault_class": "2",
    "events": "0",
    "memory_gap": "0",
    "amendments": "0",
    "refusal_share": "0",
}
SPLIT = {
    "pack": PACK,
    "families": {"for-each": "test"},
    "train_dials": {
        "fanout": ["1"],
        "page_size": ["50"],
        "extra_tools": ["0"],
        "indirection": ["0"],
        "near_duplicates": ["0", "2", "4"],
        "slack": ["3", "2.5", "2", "1.6"],
        **{k: [v] for k, v in EASIEST.items()},
    },
    "combinations": [{"name": "tight", "region": "eval", "dials": {"near_duplicates": ["2", "4"], "slack": ["2", "1.6"]}}],
    "tier": "dial combinations of trained families, and one family seen by the sealed look only",
}
TRAINED = ("resolve-act", "branch", "refusal")
EASY = {"fanout": "1", "page_size": "50", "extra_tools": "0", "indirection": "0", **EASIEST}

# sizes: (full, smoke)
SIZES: dict[str, tuple[int, int]] = {
    "base_episodes": (120, 6),
    "steps": (40, 2),
    "groups": (8, 2),
    "group_size": (8, 2),
    "break_every": (20, 1),
    "break_budget": (96, 12),
    "monitor_every": (20, 2),
    "monitor_tasks": (12, 2),
    "sealed_tasks": (60, 20),
}


class Recipe(NamedTuple):
    """What differs between a model made here and a pretrained one.

    Attributes:
        imitated: Oracle episodes to imitate; the second number is for a smoke run.
        tokens: Of an episode after its prompt. A tokenizer that was made for these tasks needs fewer for the same text.
        turn: Tokens of one reply: a small model does not always stop by itself.
        rate: GRPO's learning rate.
    """

    imitated: tuple[int, int]
    tokens: int
    turn: int
    rate: float


FROM_SCRATCH = Recipe((trl_tiny.EPISODES, 32), 640, 40, 3e-4)
PRETRAINED = Recipe((800, 8), 3072, 128, 1e-5)


class StopError(Exception):
    """The run cannot go on; the text says why and what to do."""


class Run:
    """One run in its folder."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.out, self.seed = args, Path(args.out), args.seed
        self.size = {k: v[args.smoke] for k, v in SIZES.items()}
        self.recipe = PRETRAINED if args.model else FROM_SCRATCH
        self.pack = provegym.pack(PACK)
        self.began = time.monotonic()

    def main(self) -> None:
        """Does what is left."""
        self.declare()
        self.say("base")
        tokenizer, model = self.base()
        self.measure(tokenizer)
        self.say("train")
        self.train(tokenizer, model)
        self.say("done")

    def say(self, stage: str) -> None:
        """Notes when a stage began."""
        print(f"[{time.monotonic() - self.began:5.0f} s] {stage}", flush=True)

    # ------------------------------------------------------------------ declaring

    def declare(self) -> None:
        """Freezes split and plan, or reads them back."""
        plan = self.out / "plan.json"
        if plan.exists() and not self.args.resume:
            raise StopError(f"{self.out} holds a run: add --resume to go on with it, or name another folder with --out")
        if self.args.resume and not plan.exists():
            raise StopError(f"{self.out} holds no run to resume: leave out --resume to start one")
        self.out.mkdir(parents=True, exist_ok=True)
        if self.args.resume:
            self.split = provegym.Split.freeze(json.loads((self.out / "split.json").read_text()))
            self.plan = prove.freeze(json.loads(plan.read_text()), key=self.seed)
            if self.plan["base"]["rule"] != self.rule():
                raise StopError(f"{self.out} was started with other arguments ({self.plan['base']['rule']}): give the same")
        else:
            self.split = provegym.Split.freeze(SPLIT)
            self.split.save(self.out / "split.json")
            self.plan = prove.freeze(self.draft(), key=self.seed, split=self.split)
            with trl_tiny.replacing(plan) as half:
                half.write_text(json.dumps(self.plan, indent=2) + "\n")
        print(f"plan {self.plan['hash'][:16]}, split {self.split.hash[:16]}, folder {self.out}")
        for c in self.plan["conditions"]:
            print(f"  {c['id']:75} {c['G']:4} tasks, detects {100 * c['mde']:.0f} points")

    def rule(self) -> str:
        """How the base checkpoint comes about: everything that decides it."""
        what = f"{Path(self.args.model).resolve().name}, " if self.args.model else ""
        flags = ", smoke" * self.args.smoke + ", no training" * self.args.no_train
        return f"{what}SFT on oracle episodes, seed {self.seed}{flags}"

    def draft(self) -> dict[str, Any]:
        """The plan as it is declared, before anything has run."""
        n, s = self.size["sealed_tasks"], self.size
        tight = "&".join(f"{k}={v}" for k, v in sorted({**EASY, "near_duplicates": "2", "slack": "2"}.items()))
        plain = "&".join(f"{k}={v}" for k, v in sorted({**EASY, "near_duplicates": "0", "slack": "3"}.items()))
        conditions = [(f, tight, "held-out-dials") for f in TRAINED] + [("for-each", plain, "held-out-family")]
        ids = [(self.condition(f, q), tier) for f, q, tier in conditions]
        return {
            "pack": f"{PACK}@{self.pack['version']}",
            "split_hash": self.split.hash,
            "base": {"rule": self.rule()},
            "looks": [{"id": "final", "weight": 1.0, "checkpoint": "the last"}],
            "monitor": {"tasks": s["monitor_tasks"], "conditions": [c for c, tier in ids if tier == "held-out-dials"]},
            "conditions": [{"id": c, "tier": tier, "G": n, "psi0": 0.3} for c, tier in ids],
            "budget": {
                "train": s["steps"] * s["groups"] * s["group_size"],
                "break": s["break_budget"] * (1 + (s["steps"] - 1) // s["break_every"]),
                "monitor": s["monitor_tasks"] * len(TRAINED) * 2 * (s["steps"] // s["monitor_every"]),
            },
        }

    def condition(self, family: str, query: str) -> str:
        """A condition's canonical id."""
        condition: str = provegym.task(f"{PACK}@{self.pack['version']}/{family}?{query}#seed=1")["condition"]
        return condition

    # ------------------------------------------------------------------ the base checkpoint

    def base(self) -> tuple[Any, Any]:
        """Returns tokenizer and base model, made once and kept."""
        episodes = self.recipe.imitated[self.args.smoke]
        shown = {"start": self.args.model, "tools": self.tools()} if self.args.model else {}
        folder = trl_tiny.base(self.out / "base", self.seed, episodes, **shown, split=self.split, mode="train")
        model, tokenizer = trl_tiny.load(folder)
        return tokenizer, model

    def measure(self, tokenizer: Any) -> None:
        """Plays the base on training conditions: GRPO needs some passes and some failures."""
        kept = self.out / "base.json"
        if kept.exists():
            return
        _, model = self.base()
        with provegym.Curriculum(PACK, split=self.split, key=self.seed + 1, mode="uniform", families=TRAINED) as sampler:
            tasks = [d.task for d in sampler.ask(self.size["base_episodes"])]
        model.to(self.device())
        policy = Local(model, tokenizer, batch_size=64, max_new_tokens=self.recipe.turn, seed=self.seed, tools=self.tools())
        results = play(policy, tasks, mode="train", split=self.split, max_tokens=self.recipe.tokens, batch=64)
        passes = sum(r["success"] for r in results)
        lo, hi = wilson(passes, len(results))
        print(f"base checkpoint on training conditions: {passes} of {len(results)} passed ({lo:.0%} to {hi:.0%})")
        with trl_tiny.replacing(kept) as half:
            half.write_text(json.dumps({"passes": passes, "episodes": len(results)}))

    def tools(self) -> list[Any]:
        """The tools as TRL shows them to the model, in imitation and in training."""
        return environment_factory(PACK, family=TRAINED, split=self.split).tools

    @staticmethod
    def device() -> str:
        """Where models live."""
        return "cuda" if torch.cuda.is_available() else "cpu"

    # ------------------------------------------------------------------ training

    def train(self, tokenizer: Any, model: Any) -> None:
        """GRPO by TRL, with everything that ProveGym adds; ends with the sealed look and the report."""
        s, gpu = self.size, torch.cuda.is_available()
        factory = environment_factory(
            PACK,
            family=TRAINED,
            split=self.split,
            trace=self.out,
            key=self.seed,
            run={"policy": "trl-demo", "config": {"seed": self.seed}},
        )
        trainer = GRPOTrainer(
            model,
            args=GRPOConfig(
                str(self.out / "grpo"),
                per_device_train_batch_size=s["groups"] * s["group_size"],
                num_generations=s["group_size"],
                max_completion_length=self.recipe.tokens,
                generation_kwargs={"max_new_tokens": self.recipe.turn},
                max_tool_calling_iterations=12,
                max_steps=0 if self.args.no_train else s["steps"],
                learning_rate=self.recipe.rate,
                lr_scheduler_type="constant",
                adam_beta2=0.95,
                beta=0.0,
                scale_rewards="group",
                shuffle_dataset=False,
                gradient_checkpointing=bool(self.args.model),  # computes everything twice, to save memory that a tiny model has
                save_steps=5,
                save_total_limit=2,
                logging_steps=1,
                seed=self.seed,
                bf16=gpu,
                use_cpu=not gpu,
                report_to="none",
                dataloader_pin_memory=gpu,
            ),
            train_dataset=dataset(s["groups"]),
            environment_factory=factory,
            reward_funcs=success,
            processing_class=tokenizer,
        )
        prover = ProveCallback(trainer, self.plan, key=self.seed, every=s["monitor_every"], batch=64)
        if self.args.no_train:
            prover.judge(trainer.args)
            return
        trainer.add_callback(CurriculumCallback(trainer))
        trainer.add_callback(BreakCallback(trainer, every=s["break_every"], budget=s["break_budget"], batch=64))
        trainer.add_callback(StatusCallback(trainer))
        trainer.add_callback(prover)
        trainer.train(resume_from_checkpoint=last_checkpoint(trainer.args.output_dir) if self.args.resume else None)
        self.conclude(trainer.state.log_history)

    def conclude(self, log: list[dict[str, Any]]) -> None:
        """Prints what the environments cost, and keeps the figures with the machine and the versions they are from."""
        steps = [r for r in log if "step_time" in r]
        share = sum(r["provegym/seconds"] for r in steps) / sum(r["step_time"] for r in steps)
        print(f"the environments took {share:.2%} of the {len(steps)} steps' time")
        gpu = torch.cuda.is_available()
        told = {
            "date": time.strftime("%Y-%m-%d"),
            "machine": torch.cuda.get_device_name() if gpu else f"{os.cpu_count()} CPU cores",
            "versions": {m.__name__: m.__version__ for m in (torch, transformers, trl, provegym)},
            "rule": self.rule(),
            "base": json.loads((self.out / "base.json").read_text()),
            "seconds": [round(r["step_time"], 2) for r in steps],
            "environments_share": share,
        }
        with trl_tiny.replacing(self.out / "result.json") as half:
            half.write_text(json.dumps(told, indent=2) + "\n")


def wilson(k: int, n: int) -> tuple[float, float]:
    """95 % interval of a rate (Wilson 1927)."""
    z = 1.959964
    p, d = k / n, 1 + z * z / n
    half = z * ((p * (1 - p) + z * z / (4 * n)) / n) ** 0.5
    return (p + z * z / (2 * n) - half) / d, (p + z * z / (2 * n) + half) / d


def main(argv: list[str] | None = None) -> int:
    """Runs; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="demo-trl-run", help="folder of the run")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is drawn")
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped")
    parser.add_argument("--model", help="folder of a pretrained model that imitates, instead of one made from scratch")
    parser.add_argument("--no-train", action="store_true", help="base against base: shows what noise alone does")
    parser.add_argument("--smoke", action="store_true", help="the same path, tiny")
    args = parser.parse_args(argv)
    transformers.logging.set_verbosity_error()
    try:
        Run(args).main()
    except StopError as stop:
        print(f"stopped: {stop}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; to go on: the same command with --resume", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

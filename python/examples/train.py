"""The main job, end to end: declare, imitate, break, train, prove.

    freeze split and plan -> baselines -> short imitation of the oracle (the base checkpoint) -> Break -> group-relative policy
    gradient on curriculum episodes, with Break again and monitor looks at intervals -> sealed look -> report

Everything lands in one folder: split.json, plan.json, trace.db, break.json, curriculum.json, report.json, report.md,
report.html, forest.png, learning.png. The run is a list of units; after each one the state is written by temporary file and
rename, so that a killed run goes on with --resume and ends with the same plan hash and the same verdicts.

    python python/examples/train.py --out demo-run --seed 1
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from policy import Adam, Policy
from rollout import Decisions, Job, Played, Player, failure_mode, noise_key
from tqdm import tqdm

import provegym
from provegym import prove
from provegym import trace as traces

PACK = "tooluse"
SPLIT = {
    "pack": PACK,
    "families": {"for-each": "test"},
    "train_dials": {
        "fanout": ["1", "2", "3", "5"],
        "near_duplicates": ["0", "2", "4", "8", "16"],
        "page_size": ["50", "20", "10"],
        "extra_tools": ["0", "4", "8", "16"],
        "indirection": ["0", "1", "2"],
        "slack": ["3", "2.5", "2", "1.6"],
        # The example learner sees these at their easiest only.
        "depth": ["4"],
        "width": ["1"],
        "opacity": ["0"],
        "constraints": ["0"],
        "fault_rate": ["0"],
        "fault_class": ["2"],
        "events": ["0"],
        "memory_gap": ["0"],
        "amendments": ["0"],
        "refusal_share": ["0"],
    },
    "combinations": [
        {"name": "crowd", "region": "eval", "dials": {"near_duplicates": ["8", "16"], "indirection": ["2"]}},
        {"name": "clutter", "region": "eval", "dials": {"extra_tools": ["8", "16"], "page_size": ["10"]}},
    ],
    "tier": "dial combinations of trained families, and one family seen by the sealed look only",
}
TRAINED = ("resolve-act", "branch", "refusal")
HELD_OUT = [(f, q) for f in TRAINED for q in ("indirection=2&near_duplicates=8", "extra_tools=8&page_size=10")]
NEW_FAMILY = [("for-each", "fanout=1"), ("for-each", "")]
# Preset, and dials over it.
EASY: list[tuple[str, dict[str, str]]] = [("L0", {}), ("L1", {"constraints": "0"}), ("L0", {"indirection": "2"})]

# sizes: (full, smoke)
SIZES: dict[str, tuple[float, float]] = {
    "oracle_episodes": (480, 120),
    "imitation_epochs": (6, 5),
    "check_episodes": (200, 60),
    "baseline_tasks": (20, 4),
    "break_budget": (800, 120),
    "iterations": (40, 2),
    "groups": (32, 8),
    "group_size": (8, 4),
    "break_every": (10, 1),
    "monitor_every": (10, 1),
    "monitor_tasks": (20, 4),
    "sealed_tasks": (100, 20),
}
RATE, IMITATION_RATE, ENTROPY, PASSES, MINIBATCH = 1e-3, 2e-3, 0.003, 2, 1024
BASE_RANGE = (0.10, 0.60)
BASELINES = ("nc2_random_valid", "priority_heuristic", "blind_oracle", "oracle")


class StopError(Exception):
    """The run cannot go on; the text says why and what to do."""


class Run:
    """One run in its folder."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.out = Path(args.out)
        self.seed: int = args.seed
        self.smoke: bool = args.smoke
        self.uniform: bool = args.uniform
        self.no_train: bool = args.no_train
        self.size = {k: int(v[1] if args.smoke else v[0]) for k, v in SIZES.items()}
        self.config = {
            "seed": self.seed,
            "smoke": self.smoke,
            "uniform": self.uniform,
            "no_train": self.no_train,
            "size": self.size,
            "pack": PACK,
            "learner": [RATE, IMITATION_RATE, ENTROPY, PASSES, MINIBATCH],
        }
        self.pack = provegym.pack(PACK)
        self.base = Policy(noise_key(self.seed, "weights") % 2**63)
        self.policy = self.base
        self.adam = Adam(self.policy, RATE)
        self.best: Policy | None = None
        self.state: dict[str, Any] = {
            "unit": 0,
            "learning": [],
            "causes": [],
            "baselines": {},
            "curriculum": None,
            "best": None,
            "breaks": [],
            "history": [],
            "seconds": {},
            "spent": Counter(),
        }

    # ------------------------------------------------------------------ the list of units

    def units(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Yields name and function of every unit, in order; the list depends on the arguments alone."""
        yield "baselines", self.play_baselines
        yield "imitation", self.imitate
        if not self.no_train:
            yield "break 0", lambda: self.search(0)
            for i in range(1, self.size["iterations"] + 1):
                yield f"train {i}", lambda i=i: self.improve(i)  # type: ignore[misc]
                if i % self.size["monitor_every"] == 0 or i == self.size["iterations"]:
                    yield f"monitor {i}", lambda i=i: self.monitor(i)  # type: ignore[misc]
                if i % self.size["break_every"] == 0 and i < self.size["iterations"]:
                    yield f"break {i}", lambda i=i: self.search(i)  # type: ignore[misc]
        yield "sealed", self.seal
        yield "report", self.report

    def main(self, resume: bool) -> None:
        """Declares or resumes, then does what is left."""
        self.declare(resume)
        units = list(self.units())
        players = {
            "train": Player("train", self.split, self.trace),
            "eval": Player("eval", self.split, self.trace),
            "test": Player("test", self.split, self.trace),
        }
        self.players = players
        try:
            start = self.state["unit"]
            with tqdm(total=len(units), initial=start, desc="run", unit="unit", smoothing=0.1, disable=None) as self.bar:
                for number, (name, work) in enumerate(units):
                    if number < self.state["unit"]:
                        continue
                    self.bar.set_description(name)
                    self.unit = number
                    began = time.monotonic()
                    work()
                    kind = name.split()[0]
                    self.state["seconds"][kind] = self.state["seconds"].get(kind, 0.0) + time.monotonic() - began
                    self.state["unit"] = number + 1
                    self.save()
                    self.bar.update(1)
        finally:
            for p in players.values():
                p.close()
            self.trace.close()

    # ------------------------------------------------------------------ declaring and keeping

    def declare(self, resume: bool) -> None:
        """Freezes split and plan, or reads them back, and opens the trace."""
        self.out.mkdir(parents=True, exist_ok=True)
        state = self.out / "state.npz"
        if resume:
            if not (self.out / "plan.json").exists():
                raise StopError(f"{self.out} holds no run to resume: leave out --resume to start one")
            self.split = provegym.Split.freeze(json.loads((self.out / "split.json").read_text()))
            self.plan = prove.freeze(json.loads((self.out / "plan.json").read_text()), key=self.seed)
            if self.plan["base"]["rule"] != self.rule():
                raise StopError(
                    f"{self.out} was started with other arguments ({self.plan['base']['rule']}): give the same, or another "
                    "--out"
                )
            if state.exists():
                self.load(state)
        else:
            if (self.out / "plan.json").exists():
                raise StopError(f"{self.out} holds a run: add --resume to go on with it, or name another folder with --out")
            self.split = provegym.Split.freeze(SPLIT)
            self.split.save(self.out / "split.json")
            self.plan = prove.freeze(self.draft(), key=self.seed, split=self.split)
            write(self.out / "plan.json", json.dumps(self.plan, indent=2) + "\n")
        print(f"plan {self.plan['hash'][:16]}, split {self.split.hash[:16]}, folder {self.out}")
        for warning in self.plan["warnings"]:
            print(f"  note: {warning}")
        print_planning(self.plan)
        self.trace = provegym.Trace(
            self.out / "trace.db",
            resume=self.state["unit"] if resume else None,
            run={
                "policy": "numpy-example",
                "pack_hash": self.pack["hash"],
                "check_hash": self.pack["check_hash"],
                "split_hash": self.split.hash,
                "plan_hash": self.plan["hash"],
                "config": self.config,
            },
        )

    def rule(self) -> str:
        """How the base checkpoint comes about: everything that decides it."""
        c = self.config
        easy = ", ".join(p + "".join(f" {k}={v}" for k, v in d.items()) for p, d in EASY)
        return (
            f"imitation of {self.size['oracle_episodes']} oracle episodes ({easy}), {self.size['imitation_epochs']} epochs, "
            f"seed {self.seed}"
            + (", smoke" if c["smoke"] else "")
            + (", uniform" if c["uniform"] else "")
            + (", no training" if c["no_train"] else "")
        )

    def draft(self) -> dict[str, Any]:
        """The plan as it is declared, before anything has run."""
        n = self.size["sealed_tasks"]
        conditions = []
        for group, tier in ((HELD_OUT, "held-out-dials"), (NEW_FAMILY, "held-out-family")):
            for family, query in group:
                cid = f"{PACK}@{self.pack['version']}/{family}" + (f"?{'&'.join(sorted(query.split('&')))}" if query else "")
                conditions.append({"id": cid, "tier": tier, "G": n, "psi0": 0.3})
        s = self.size
        return {
            "pack": f"{PACK}@{self.pack['version']}",
            "split_hash": self.split.hash,
            "base": {"rule": self.rule()},
            "looks": [{"id": "final", "weight": 1.0, "checkpoint": "best on the monitor mean"}],
            "monitor": {
                "tasks": s["monitor_tasks"],
                "conditions": [c["id"] for c in conditions if c["tier"] == "held-out-dials"],
            },
            "conditions": conditions,
            "budget": {
                "train": s["iterations"] * s["groups"] * s["group_size"] + s["oracle_episodes"],
                "break": s["break_budget"] * (1 + (s["iterations"] - 1) // s["break_every"]),
                "monitor": s["monitor_tasks"] * len(HELD_OUT) * -(-s["iterations"] // s["monitor_every"]),
                "baseline": s["baseline_tasks"] * len(BASELINES) * len(conditions),
            },
        }

    def save(self) -> None:
        """Writes the state by temporary file and rename, then marks it in the trace."""
        arrays: dict[str, Any] = {f"policy.{k}": v for k, v in self.policy.w.items()} | {
            f"base.{k}": v for k, v in self.base.w.items()
        }
        arrays |= {f"mean.{k}": v for k, v in self.adam.mean.items()} | {f"square.{k}": v for k, v in self.adam.square.items()}
        if self.best is not None:
            arrays |= {f"best.{k}": v for k, v in self.best.w.items()}
        self.state["adam_steps"] = self.adam.steps
        buffer = io.BytesIO()
        np.savez(buffer, state=np.frombuffer(json.dumps(self.state).encode(), np.uint8), **arrays)
        write(self.out / "state.npz", buffer.getvalue())
        self.trace.mark(self.state["unit"])

    def load(self, path: Path) -> None:
        """Reads what save wrote."""
        with np.load(path) as z:
            self.state = json.loads(bytes(z["state"]))
            self.state["spent"] = Counter(self.state["spent"])

            def weights(prefix: str) -> dict[str, Any]:
                return {k.split(".", 1)[1]: z[k] for k in z.files if k.startswith(prefix + ".")}

            self.base, self.policy = Policy(0), Policy(0)
            self.base.w, self.policy.w = weights("base"), weights("policy")
            self.adam = Adam(self.policy, RATE)
            self.adam.mean, self.adam.square, self.adam.steps = weights("mean"), weights("square"), self.state["adam_steps"]
            if best := weights("best"):
                self.best = Policy(0)
                self.best.w = best

    # ------------------------------------------------------------------ playing

    def play(
        self, mode: str, jobs: list[Job], policy: Policy | None, what: str, **more: Any
    ) -> tuple[list[Played], Decisions | None]:
        """Plays jobs with a progress line."""
        with tqdm(total=len(jobs), desc=f"  {what}", leave=False, unit="ep", disable=None) as bar:

            def progress(done: int) -> None:
                bar.update(done - bar.n)

            return self.players[mode].play(jobs, policy, progress=progress, **more)

    def job(self, task: str, purpose: str, *noise: object, **labels: Any) -> Job:
        """A job with its labels; `noise` names the randomness of the policy in it."""
        return Job(task, {"purpose": purpose, "iteration": self.unit, **labels}, noise_key(self.seed, purpose, task, *noise))

    # ------------------------------------------------------------------ the units

    def play_baselines(self) -> None:
        """Runs the reference agents on tasks of the plan's conditions that no look uses."""
        for agent in BASELINES:
            passes = total = 0
            for condition in self.plan["conditions"]:
                tasks = [
                    f"{condition['id']}#seed={noise_key(self.seed, 'baseline', condition['id'], i)}"
                    for i in range(self.size["baseline_tasks"])
                ]
                rows = provegym.rollout(
                    agent,
                    tasks,
                    view="structured",
                    mode="test",
                    split=self.split,
                    trace=self.trace,
                    labels={"purpose": "baseline", "arm": agent, "iteration": self.unit},
                )
                passes += sum(bool(r["success"]) for r in rows)
                total += len(rows)
            self.state["baselines"][agent] = [passes, total]
            self.state["spent"]["baseline"] += total
        if self.state["baselines"]["oracle"][0] != self.state["baselines"]["oracle"][1]:
            raise StopError("the oracle fails on its own tasks: run `provegym check-pack tooluse`")

    def imitate(self) -> None:
        """Makes the base checkpoint from recorded oracle episodes of easy tasks."""
        share = self.size["oracle_episodes"] // len(EASY)
        tasks = [
            task
            for i, (preset, dials) in enumerate(EASY)
            for task in self.sample(share, "imitation", i, preset=preset, dials=dials)
        ]
        plans = provegym.rollout("oracle", tasks, view="structured", mode="train", split=self.split, actions=True)
        jobs = [self.job(t, "train", arm="oracle") for t in tasks]
        played, seen = self.play("train", jobs, None, "oracle", script=[p["actions"] for p in plans], record=True)
        self.state["spent"]["train"] += len(played)
        assert seen is not None and all(p.success for p in played)
        optimiser = Adam(self.base, IMITATION_RATE)
        order = np.random.Generator(np.random.PCG64(noise_key(self.seed, "imitation order") % 2**63))
        for _ in range(self.size["imitation_epochs"]):
            rows = order.permutation(len(seen))
            for i in range(0, len(rows) - 127, 128):
                part = seen.take(rows[i : i + 128])
                gradient, _ = self.base.gradient(part.obs, part.actions, np.ones(len(part), np.float32))
                optimiser.step(gradient)
        self.policy = Policy(0)
        self.policy.w = {k: v.copy() for k, v in self.base.w.items()}
        self.adam = Adam(self.policy, RATE)
        with self.sampler(noise_key(self.seed, "check"), "uniform") as region:
            check = [d.task for d in region.ask(self.size["check_episodes"])]
        played, _ = self.play("train", [self.job(t, "train", "check", arm="base") for t in check], self.base, "base")
        self.state["spent"]["train"] += len(played)
        rate = float(np.mean([bool(p.success) for p in played]))
        self.state["base_rate"] = rate
        tqdm.write(f"base checkpoint: passes {rate:.0%} of training conditions")
        lo, hi = BASE_RANGE
        if not lo <= rate <= hi and not self.smoke:
            raise StopError(
                f"the base passes {rate:.0%} of the training conditions, outside {lo:.0%} to {hi:.0%}: "
                "training could show nothing; change the imitation's size"
            )

    def sample(self, n: int, *noise: object, **more: Any) -> list[str]:
        """Draws training tasks from a stream of their own."""
        key = noise_key(self.seed, *noise) % 2**63
        return provegym.sample(PACK, n, seed=key, split=self.split, mode="train", **more)

    def search(self, i: int) -> None:
        """Break on the current checkpoint: old causes first, then a search; the curriculum takes what it confirms."""
        old = [c for c in self.state["causes"] if c["status"] == "confirmed"]
        breaker = provegym.Breaker(
            PACK,
            split=self.split,
            key=noise_key(self.seed, "break", i),
            checkpoint=digest(self.policy),
            budget=self.size["break_budget"],
            families=list(TRAINED),
            causes=old,
        )
        told: list[dict[str, Any]] = []
        done = False
        while not done:
            probes = breaker.ask(64)
            jobs = [self.job(p.task, "break", i, p.id) for p in probes]
            played, _ = self.play("train", jobs, self.policy, f"break {i}")
            self.state["spent"]["break"] += len(played)
            told = [
                {"id": p.id, "failed": not r.success, "lost": r.success is None, "mode": r.mode}
                for p, r in zip(probes, played, strict=True)
            ]
            done = breaker.tell(told)
        report = breaker.report()
        breaker.close()
        self.state["breaks"].append({"iteration": i, "checkpoint": digest(self.policy), "report": report})
        write(self.out / "break.json", json.dumps(self.state["breaks"], indent=2) + "\n")
        known = {c["id"]: c for c in self.state["causes"]}
        for c in report["causes"]:
            known[c["id"]] = c
        for c in report["retired"] or []:
            known[c["cause"]["id"]] = {**c["cause"], "status": "retired"}
        self.state["causes"] = list(known.values())
        found = "; ".join(c["id"] for c in report["causes"][:6])
        tqdm.write(
            f"break {i}: {len(report['causes'])} causes confirmed, {len(report['retired'] or [])} old ones solved: {found}"
        )
        if not self.uniform:
            sampler = self.curriculum()
            sampler.update([c for c in report["causes"] if c["status"] == "confirmed"], checkpoint=digest(self.policy))
            self.keep(sampler)

    def sampler(self, key: int, mode: str) -> provegym.Curriculum:
        """A sampler over the training region, "failures" or "uniform"."""
        return provegym.Curriculum(PACK, split=self.split, key=key, families=list(TRAINED), mode=mode)

    def curriculum(self) -> provegym.Curriculum:
        """The sampler as the last unit left it."""
        if self.state["curriculum"] is not None:
            return provegym.Curriculum.resume(self.state["curriculum"])
        return self.sampler(noise_key(self.seed, "curriculum"), "uniform" if self.uniform else "failures")

    def keep(self, sampler: provegym.Curriculum) -> None:
        """Keeps the sampler's state and writes curriculum.json."""
        self.state["curriculum"] = sampler.state()
        write(self.out / "curriculum.json", json.dumps(sampler.report(), indent=2) + "\n")
        sampler.close()

    def improve(self, i: int) -> None:
        """One iteration: groups of episodes of the same task; the advantage of each is its reward less the group's mean."""
        size = self.size["group_size"]
        sampler = self.curriculum()
        draws = sampler.ask(self.size["groups"] * size, group_size=size)
        jobs = [self.job(d.task, "train", i, k, arm="checkpoint", group=d.group) for k, d in enumerate(draws)]
        played, seen = self.play("train", jobs, self.policy, f"train {i}", record=True)
        assert seen is not None
        self.state["spent"]["train"] += len(played)
        groups: dict[int, list[int]] = defaultdict(list)
        for k, d in enumerate(draws):
            if played[k].success is not None:
                groups[d.group].append(k)
        advantage = np.zeros(len(draws), np.float32)
        results: list[dict[str, Any]] = []
        for members in groups.values():
            wins = np.array([bool(played[k].success) for k in members], np.float32)
            advantage[members] = (wins - wins.mean()) / (wins.std() + 0.1)
            results.append({"item": draws[members[0]].item, "passes": int(wins.sum()), "episodes": len(members)})
        sampler.tell(results)
        self.keep(sampler)
        weight = advantage[seen.job]
        live = (weight != 0).nonzero()[0]
        entropy = 0.0
        order = np.random.Generator(np.random.PCG64(noise_key(self.seed, "minibatches", i) % 2**63))
        if len(live):
            for _ in range(PASSES):
                for rows in np.array_split(order.permutation(live), max(1, len(live) // MINIBATCH)):
                    part = seen.take(rows)
                    gradient, entropy = self.policy.gradient(part.obs, part.actions, weight[rows], ENTROPY, old=part.chance)
                    self.adam.step(gradient)
        rate = float(np.mean([bool(p.success) for p in played]))
        self.state["history"].append(
            {
                "iteration": i,
                "rate": rate,
                "live_groups": int(sum(0 < r["passes"] < r["episodes"] for r in results)),
                "groups": len(results),
                "entropy": entropy,
            }
        )
        self.bar.set_postfix_str(f"pass {rate:.0%}")

    def monitor(self, i: int) -> None:
        """A look at the monitor block: it may choose the checkpoint and feeds nothing else."""
        result = self.look("monitor", "eval", "monitor", f"monitor {i}", self.policy, noise=("monitor", i))
        self.state["learning"].append({"iteration": i, "episodes": self.state["spent"]["train"], "look": result})
        mean = float(np.mean([r["checkpoint"]["rate"] for r in result["rows"]]))
        if self.state["best"] is None or mean > self.state["best"]["mean"]:
            self.state["best"] = {"mean": mean, "iteration": i}
            self.best = Policy(0)
            self.best.w = {k: v.copy() for k, v in self.policy.w.items()}
        o = result["overall"]
        tqdm.write(
            f"monitor {i}: base {o['base']['rate']:.0%}, now {o['checkpoint']['rate']:.0%} on held-out dial combinations"
        )

    def look(
        self, look: str, mode: str, purpose: str, what: str, checkpoint: Policy, noise: tuple[object, ...] = ()
    ) -> dict[str, Any]:
        """Plays both arms of a look and has it judged. Sealed slots that the trace holds already are not played again."""
        filled = {}
        if purpose == "sealed":
            for row in traces.query(self.trace.path, "slots", plan=self.plan["hash"], look=look):
                filled[row["condition"], row["cluster"], row["arm"]] = row
        records = []
        for arm, policy in (("base", self.base), ("checkpoint", checkpoint)):
            slots = [
                s for s in prove.tasks(self.plan, look, key=self.seed) if (s["condition"], s["cluster"], arm) not in filled
            ]
            jobs = [
                self.job(
                    s["task"], purpose, arm, s["sample"], *noise, arm=arm, look=look, cluster=s["cluster"], sample=s["sample"]
                )
                for s in slots
            ]
            played, _ = self.play(mode, jobs, policy.astype(np.float64), f"{what}, {arm}")
            self.state["spent"][purpose] += len(played)
            for s, r in zip(slots, played, strict=True):
                records.append(
                    self.record(s["condition"], s["cluster"], s["seed"], arm, mode, r.outcome, bool(r.success), r.mode)
                )
        for (condition, cluster, arm), row in filled.items():
            failure = failure_mode(row["outcome"], row["limit"])
            records.append(
                self.record(condition, cluster, row["seed"], arm, mode, row["outcome"], bool(row["success"]), failure)
            )
            self.state["spent"][purpose] += 1
        self.trace.flush()
        return prove.look(
            self.plan,
            look,
            records=records,
            key=self.seed,
            base=digest(self.base),
            checkpoint=digest(checkpoint),
            ledger=[r["task"] for p in ("train", "break") for r in traces.query(self.trace.path, "episodes", purpose=p)],
        )

    def record(
        self, condition: str, cluster: str, seed: Any, arm: str, mode: str, outcome: str, success: bool, failure: str
    ) -> dict[str, Any]:
        """One episode as Prove takes it."""
        return {
            "condition": condition,
            "cluster": cluster,
            "seed": str(seed),
            "sample": 0,
            "arm": arm,
            "mode": mode,
            "outcome": outcome,
            "success": success,
            "failure": "" if success else failure,
            "pack_hash": self.pack["hash"],
            "check_hash": self.pack["check_hash"],
        }

    def seal(self) -> None:
        """The sealed look: the only place where verdict words are earned."""
        checkpoint = self.base if self.no_train else (self.best or self.policy)
        self.state["final"] = self.look("final", "test", "sealed", "sealed look", checkpoint)

    def report(self) -> None:
        """Writes report and plots, and prints the verdicts."""
        result = self.state["final"]
        if self.no_train:
            discordant = result["overall"]["b"] + result["overall"]["c"]
            if discordant == 0:
                raise StopError("base against base shows no discordant pair: the arms share their noise")
        report = prove.report(
            self.plan,
            [result],
            learning=self.state["learning"],
            causes=[cause_row(c) for c in self.state["causes"]],
            reference=[{"name": k, "passes": v[0], "episodes": v[1]} for k, v in self.state["baselines"].items()],
            spent={k: int(v) for k, v in self.state["spent"].items()},
            hollow=self.hollow(),
            times={"seconds": {k: round(v, 1) for k, v in self.state["seconds"].items()}},
        )
        write(self.out / "report.json", json.dumps(report["report"], indent=2) + "\n")
        write(self.out / "report.md", report["markdown"])
        write(self.out / "report.html", report["html"])
        from plots import forest, learning

        forest(report["report"], self.out / "forest.png")
        learning(report["report"], self.state["history"], self.out / "learning.png")
        tqdm.write("")
        print_verdicts(report["report"])
        print(f"\nreport: {self.out / 'report.html'}")

    def hollow(self) -> list[dict[str, Any]]:
        """Passes of the sealed look that an audit flagged."""
        out = []
        for arm in ("base", "checkpoint"):
            rows = [r for r in traces.query(self.trace.path, "episodes", purpose="sealed", arm=arm) if r["success"]]
            out.append({"arm": arm, "passes": len(rows), "hollow": sum(bool(r.get("audits")) for r in rows)})
        return out


def cause_row(c: dict[str, Any]) -> dict[str, Any]:
    """A cause as the report shows it."""
    q, factors = c["q"], " and ".join(f"{x['factor']} = {x['level']}" for x in c["settings"])
    return {"name": c["id"], "factors": factors, "q": q["q"], "lo": q["lo"], "hi": q["hi"], "status": c["status"]}


def digest(policy: Policy) -> str:
    """SHA-256 of the weights."""
    import hashlib

    h = hashlib.sha256()
    for k in sorted(policy.w):
        h.update(k.encode() + policy.w[k].tobytes())
    return h.hexdigest()


def write(path: Path, content: str | bytes) -> None:
    """Writes by temporary file and rename: a reader never sees half of it."""
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as f:
        f.write(content if isinstance(content, bytes) else content.encode())
        f.flush()
        os.fsync(f.fileno())
    temporary.replace(path)


def points(share: float | None) -> str:
    """A smallest detectable change, in points."""
    return "none" if share is None else f"{100 * share:.1f}"


def print_planning(plan: dict[str, Any]) -> None:
    """The smallest change that each condition can detect, before anything runs."""
    rows = [(c["id"], c["G"], c["mde"]) for c in plan["conditions"]]
    rows.append(("overall", sum(n for _, n, _ in rows), plan["overall"]["mde"]))
    print(f"{'condition':56} {'tasks':>5} {'detects, points':>16}")
    for name, n, mde in rows:
        print(f"{name:56} {n:5} {points(mde):>16}")


def print_verdicts(report: dict[str, Any]) -> None:
    """The verdict table of the last sealed look."""
    look = report["looks"][-1]
    print(f"{'condition':56} {'base':>5} {'now':>5} {'change':>7} {'95 % interval':>16} {'Holm p':>8} {'detects':>8}  verdict")
    for row in [*look["rows"], look["overall"]]:
        label = row["verdict"]["label"] if row["verdict"] else "-"
        name = row["condition"] or "overall"
        if not row["change"]:
            print(f"{name:56} {label}")
            continue
        change = " ".join(f"{100 * row['change'][k]:+{w}.1f}" for k, w in (("value", 7), ("lo", 7), ("hi", 8)))
        rates = f"{row['base']['rate']:5.0%} {row['checkpoint']['rate']:5.0%}"
        print(f"{name:56} {rates} {change} {row['holm_p']:8.4f} {points(row['mde']):>8}  {label}")
    print(report["headline"]["sentence"])


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="demo-run", help="folder of the run (default: demo-run)")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is drawn")
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped")
    parser.add_argument("--no-train", action="store_true", help="base against base: shows what noise alone does")
    parser.add_argument("--uniform", action="store_true", help="the same budget without Break: training tasks drawn uniformly")
    parser.add_argument("--smoke", action="store_true", help="the same path, tiny")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Runs; returns the exit code."""
    args = arguments().parse_args(argv)
    run = Run(args)
    try:
        run.main(args.resume)
    except StopError as stop:
        print(f"stopped: {stop}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            f"\ninterrupted; what was recorded is readable in {run.out / 'trace.db'}\nto go on: the same command with --resume",
            file=sys.stderr,
        )
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

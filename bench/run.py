"""Measures ratios, all in one run: ours over plain loops and peers, and recording on over off. See bench/README.md.

    make bench                  # about two minutes
    make bench ARGS=--quick     # half a minute, with wider error: for a look
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import slices
import worlds
from gymnasium.vector import SyncVectorEnv
from slices import Candidate, p25, ratio

STEPS = 997  # of a list of actions, which is used round and round

GOALS_OVER_SYNC = {1: 25.0, 8: 80.0, 64: 200.0, 512: 300.0}


@dataclass
class Row:
    """One line of the table."""

    name: str
    value: float
    unit: str
    goal: str = ""  # "<= 1.15", ">= 25"; empty for information
    note: str = ""

    def verdict(self) -> str:
        if not self.goal:
            return "info"
        relation, bound = self.goal.split()
        met = {"<=": self.value <= float(bound), "<": self.value < float(bound), ">=": self.value >= float(bound)}[relation]
        return "met" if met else "missed"


def loop(step: Callable[[Any], Any], actions: Sequence[Any]) -> Callable[[int], None]:
    """Returns a function that takes so many steps with the actions in turn."""
    at = 0

    def run(n: int) -> None:
        nonlocal at
        i = at
        for _ in range(n):
            step(actions[i])
            i += 1
            if i == len(actions):
                i = 0
        at = i

    return run


class Bench:
    """One run: its settings and the rows so far."""

    def __init__(self, rounds: int, seconds: float, seed: int) -> None:
        self.rounds, self.seconds, self.seed = rounds, seconds, seed
        self.rows: list[Row] = []
        self.costs: dict[str, dict[str, list[float]]] = {}

    def add(self, *args: Any, **kwargs: Any) -> None:
        self.rows.append(Row(*args, **kwargs))

    def compare(self, name: str, candidates: dict[str, Candidate]) -> dict[str, list[float]]:
        costs = slices.alternate(candidates, rounds=self.rounds, seconds=self.seconds)
        self.costs[name] = costs
        return costs

    def over_c(self) -> None:
        """The batch step over the same loop in plain C, through the same extension."""
        for n in (64, 512):
            actions = list(worlds.actions(self.seed, STEPS, n))
            costs = self.compare(
                f"c_{n}",
                {
                    "go": Candidate(loop(worlds.go(n).vector.step, actions), n),
                    "c": Candidate(loop(worlds.c(n).vector.step, actions), n),
                },
            )
            note = f"{p25(costs['go']):.0f} ns and {p25(costs['c']):.0f} ns a step"
            self.add(f"batch step over a plain C loop, N={n}", ratio(costs["go"], costs["c"]), "x", "<= 1.15", note)

    def over_sync(self) -> None:
        """Gymnasium's SyncVectorEnv over our VectorEnv, both without copies of observations."""
        import provegym

        for n, goal in GOALS_OVER_SYNC.items():
            actions = list(worlds.actions(self.seed, STEPS, n))
            ours = provegym.VectorEnv(n, pack="counter", view="structured", copy=False, num_workers=1)
            ours.reset(seed=self.seed)
            peer = worlds.python(n)
            costs = self.compare(
                f"sync_{n}",
                {"sync": Candidate(loop(peer.step, actions), n), "ours": Candidate(loop(ours.step, actions), n)},
            )
            note = f"{p25(costs['sync']):.0f} ns and {p25(costs['ours']):.0f} ns a step"
            self.add(f"SyncVectorEnv over VectorEnv, N={n}", ratio(costs["sync"], costs["ours"]), "x", f">= {goal:g}", note)
            ours.close()
            peer.close()

    def text(self) -> None:
        """Our text vector against a Python loop over our single environments."""
        import provegym

        n = 64
        calls = ['{"tool":"list_orders"}', '{"tool":"get_order","args":{"order":"o-0000000000"}}', '{"tool":"finish"}']
        rng = np.random.default_rng(self.seed)
        actions = [[calls[k] for k in rng.choice(3, n, p=[0.5, 0.45, 0.05])] for _ in range(STEPS)]
        ours = provegym.VectorEnv(n, pack="tooluse", view="text", num_workers=1)
        peer = SyncVectorEnv([lambda: gym.make("provegym/ToolUse-v1")] * n)
        for envs in (ours, peer):
            envs.reset(seed=self.seed)
        costs = self.compare(
            "text", {"sync": Candidate(loop(peer.step, actions), n), "ours": Candidate(loop(ours.step, actions), n)}
        )
        note = f"{p25(costs['sync']):.0f} ns and {p25(costs['ours']):.0f} ns a step"
        self.add(f"SyncVectorEnv of our Env over VectorEnv, text, N={n}", ratio(costs["sync"], costs["ours"]), "x", note=note)
        ours.close()
        peer.close()

    def inside(self, program: Path) -> None:
        """What bench/gobench measures inside the library."""
        with tempfile.TemporaryDirectory(dir=worlds.BUILD) as folder:
            flags = ["-rounds", str(self.rounds), "-slice", f"{self.seconds}s", "-dir", folder]
            done = subprocess.run([program, *flags], check=True, stdout=subprocess.PIPE)
        r = json.loads(done.stdout)
        m = r["mallocs"]
        off = m["steps_structured"] + m["steps_text"]
        self.add("mallocs a step, recording off", off, "", "<= 0", "both views, no reset among them")
        note = f"episodes of 30 steps; {m['episode_off'] * 30:.0f} mallocs a reset without recording"
        self.add("mallocs a step that recording adds", m["episode_on"] - m["episode_off"], "", "< 0.25", note)
        for name, costs in r["record"].items():
            self.costs[f"record_{name}"] = costs
            view, _, policy = name.partition("_")
            wall, cpu = ratio(costs["on"], costs["off"]) - 1, ratio(costs["on_cpu"], costs["off_cpu"]) - 1
            note = (
                f"{cpu * 100:+.0f}% of the stepping thread's time; {p25(costs['off']):.0f} ns a step off, "
                f"{r['steps'][name]:.0f} steps an episode"
            )
            who = "3 us a step of policy" if policy else "a policy of no cost"
            self.add(f"recording, {view}, N=512, {who}", wall * 100, "%", "<= 5" if policy else "<= 15", note)
        for name, costs in r["parts"].items():
            part, _, view = name.partition("_")
            self.costs[f"part_{name}"] = {"ns": costs}
            goal = {"call": "<= 20", "reset": "<= 200", "oracle": "<= 5000"}.get(part, "")
            note = "plan and episode of the dearest family" if part == "oracle" else ""
            self.add(f"tooluse {part}, {view}", p25(costs) / 1000, "us", goal, note)

    def table(self) -> str:
        lines = [f"{'':58}{'value':>10}     goal     ", "-" * 100]
        for r in self.rows:
            value = f"{r.value:.0f}" if abs(r.value) >= 100 else f"{r.value:.2f}"
            lines.append(f"{r.name:58}{value:>10} {r.unit:3} {r.goal:9} {r.verdict():7} {r.note}")
        return "\n".join(lines)


def gobench() -> Path:
    """Builds bench/gobench with the flags of all Go code."""
    flags = json.loads((worlds.ROOT / "gobuild.json").read_text())
    out = worlds.BUILD / "gobench"
    go = os.environ.get("GO") or shutil.which("go") or str(Path(sys.executable).parent / "go")
    build = [go, "build", "-tags", ",".join(flags["tags"]), *flags["flags"], "-o", out, "./bench/gobench"]
    subprocess.run(build, cwd=worlds.ROOT, check=True)
    return out


def machine() -> dict[str, Any]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return {
        "processor": next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), ""),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "gymnasium": gym.__version__,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter slices")
    parser.add_argument("--seed", type=int, default=7, help="of the actions")
    parser.add_argument("--out", type=Path, default=worlds.ROOT / "build" / "bench.json")
    args = parser.parse_args()
    began, load = time.monotonic(), os.getloadavg()
    worlds.build()
    program = gobench()
    bench = Bench(*((8, 0.05) if args.quick else (20, 0.1)), seed=args.seed)
    print(worlds.agree(args.seed), flush=True)
    for measure in (bench.over_c, bench.over_sync, bench.text, lambda: bench.inside(program)):
        measure()
    after = os.getloadavg()
    print(bench.table())
    print(f"\n25th percentiles of {bench.rounds} slices of {bench.seconds * 1000:.0f} ms, candidates in turn. Ratios count;")
    print(f"nanoseconds are for orientation. Load {load[0]:.1f} before, {after[0]:.1f} after, on {machine()['cores']} cores.")
    result = {
        "seed": args.seed, "quick": args.quick, "rounds": bench.rounds, "slice_s": bench.seconds, "load": [load, after],
        "machine": machine(), "seconds": round(time.monotonic() - began, 1),
        "rows": [{**asdict(r), "verdict": r.verdict()} for r in bench.rows], "ns": bench.costs,
    }  # fmt: skip
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"All slices are in {os.path.relpath(args.out)}; it took {result['seconds']:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

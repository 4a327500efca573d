"""`make learning`: does the main job learn, and does it call noise noise?

Runs train.py on seeds 101 to 105, each with the curriculum from Break and with --uniform (the same budget), and prints every
result, whatever it is. Then base against base: sealed looks of a stored base checkpoint with policy noise from different
streams; the share of looks with any wrong verdict must not be above .05.

    python bench/learning.py --out build/learning [--seeds 101 102 103 104 105] [--aa 200] [--jobs 2]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "python" / "examples"
sys.path.insert(0, str(EXAMPLES))
from policy import Policy  # noqa: E402
from rollout import Job, Player, noise_key  # noqa: E402

import provegym  # noqa: E402
from provegym import prove  # noqa: E402

AA_TASKS = 40  # a condition and look


def train(out: Path, seed: int, uniform: bool) -> dict[str, Any]:
    """One run; a finished one is not run again, a stopped one goes on."""
    if not (out / "report.json").exists():
        more = ["--uniform"] * uniform + ["--resume"] * (out / "plan.json").exists()
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / "train.py"), "--out", str(out), "--seed", str(seed), *more],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            return {"seed": seed, "uniform": uniform, "stopped": done.stderr.strip().splitlines()[-1]}
    report = json.loads((out / "report.json").read_text())
    row = report["looks"][-1]["overall"]
    return {
        "seed": seed,
        "uniform": uniform,
        "verdict": row["verdict"]["label"],
        "base": row["base"]["rate"],
        "checkpoint": row["checkpoint"]["rate"],
        "change": row["change"],
        "p": row["p"],
        "mde": row["mde"],
        "b": row["b"],
        "c": row["c"],
        "n": row["n"],
        "rows": {r["condition"]: r["verdict"]["label"] for r in report["looks"][-1]["rows"]},
        "seconds": report["times"]["seconds"],
    }


def show(r: dict[str, Any]) -> None:
    how = "uniform   " if r["uniform"] else "curriculum"
    if "stopped" in r:
        print(f"{r['seed']:5} {how} {r['stopped']}", flush=True)
        return
    c = r["change"]
    print(
        f"{r['seed']:5} {how} {r['base']:5.1%} -> {r['checkpoint']:5.1%}  {100 * c['value']:+5.1f} points "
        f"({100 * c['lo']:+.1f} to {100 * c['hi']:+.1f})  detects {100 * r['mde']:.1f}  {r['verdict']}",
        flush=True,
    )


def base_against_base(run: Path, looks: int) -> dict[str, Any]:
    """Sealed looks of the base checkpoint of a run against itself."""
    plan = json.loads((run / "plan.json").read_text())
    split = provegym.Split.of(run / "split.json")
    pack = provegym.pack("tooluse")
    base = Policy(0)
    with np.load(run / "state.npz") as z:
        base.w = {k[5:]: z[k].astype(np.float64) for k in z.files if k.startswith("base.")}
    player = Player("test", split, None, 128)
    draft = {k: plan[k] for k in ("pack", "base", "looks", "budget")}
    draft["looks"] = [{"id": "final", "weight": 1.0, "checkpoint": "the base itself"}]
    draft["conditions"] = [{"id": c["id"], "tier": c["tier"], "G": AA_TASKS, "psi0": 0.3} for c in plan["conditions"]]
    wrong = wrong_overall = discordant = 0
    for i in range(looks):
        one = prove.freeze(draft, key=i, split=split)
        slots = prove.tasks(one, "final", key=i)
        jobs = [Job(s["task"], {}, noise_key("a/a", i, arm, s["task"])) for arm in ("base", "checkpoint") for s in slots]
        played, _ = player.play(jobs, base)
        records = [
            {
                "condition": s["condition"],
                "cluster": s["cluster"],
                "seed": s["seed"],
                "sample": 0,
                "arm": arm,
                "mode": "test",
                "outcome": p.outcome,
                "success": bool(p.success),
                "pack_hash": pack["hash"],
                "check_hash": pack["check_hash"],
            }
            for (arm, s), p in zip([(arm, s) for arm in ("base", "checkpoint") for s in slots], played, strict=True)
        ]
        result = prove.look(one, "final", key=i, records=records, base="same", checkpoint="same", ledger=[])
        claims = ("IMPROVED", "REGRESSED")
        wrong += any(r["verdict"]["word"] in claims for r in result["rows"])
        wrong_overall += result["overall"]["verdict"]["word"] in claims
        discordant += result["overall"]["b"] + result["overall"]["c"]
        assert result["overall"]["b"] + result["overall"]["c"] > 0, "the arms share their noise"
        if (i + 1) % 20 == 0:
            print(
                f"  {i + 1} looks: {wrong} with a wrong verdict in the condition table, {wrong_overall} in the overall row",
                flush=True,
            )
    player.close()
    return {
        "looks": looks,
        "wrong": wrong,
        "wrong_overall": wrong_overall,
        "p": above(wrong, looks, 0.05),
        "p_overall": above(wrong_overall, looks, 0.05),
        "discordant_pairs_a_look": discordant / looks,
        "tasks_a_condition": AA_TASKS,
    }


def above(x: int, n: int, p: float) -> float:
    """P(X >= x) for X binomial(n, p)."""
    from math import comb

    return float(sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(x, n + 1)))


def main() -> int:
    """Runs both; exit code 1 if the A/A looks make too many claims."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "learning")
    parser.add_argument("--seeds", type=int, nargs="*", default=[101, 102, 103, 104, 105])
    parser.add_argument("--aa", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    work = [(args.out / f"{'uniform' if u else 'curriculum'}-{s}", s, u) for s in args.seeds for u in (False, True)]
    results = []
    with ThreadPoolExecutor(args.jobs) as pool:
        for r in pool.map(lambda w: train(*w), work):
            show(r)
            results.append(r)
    for uniform in (False, True):
        mine = [r for r in results if r["uniform"] == uniform]
        good = sum(r.get("verdict") == "IMPROVED" for r in mine)
        print(f"{'uniform' if uniform else 'curriculum'}: overall IMPROVED on {good} of {len(mine)} seeds")
    aa = None
    if args.aa:
        print("base against base")
        run = next(out for out, _, _ in work if (out / "state.npz").exists())
        aa = base_against_base(run, args.aa)
        print(
            f"{aa['wrong']} of {aa['looks']} looks with a wrong verdict (P(at least so many at .05) = {aa['p']:.3f}); "
            f"overall row {aa['wrong_overall']} (P = {aa['p_overall']:.3f})"
        )
    (args.out / "learning.json").write_text(json.dumps({"runs": results, "aa": aa}, indent=2) + "\n")
    return int(aa is not None and min(aa["p"], aa["p_overall"]) < 0.001)


if __name__ == "__main__":
    sys.exit(main())

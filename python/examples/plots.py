"""The two plots of a run, from the numbers of its report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

_COLOURS = {"IMPROVED": "#1a7f37", "REGRESSED": "#c62828"}


def forest(report: dict[str, Any], path: Path) -> None:
    """The change on each condition of the last sealed look with its 95 % interval, and what it could have detected."""
    look = report["looks"][-1]
    rows = [r for r in [*look["rows"], look["overall"]] if r["change"]]
    fig, ax = plt.subplots(figsize=(10, 0.5 * len(rows) + 1.6), layout="constrained")
    for y, row in enumerate(reversed(rows)):
        c = row["change"]
        word = row["verdict"]["word"] if row["verdict"] else ""
        colour = _COLOURS.get(word, "#57606a")
        if row["mde"] is not None:
            ax.fill_betweenx([y - 0.3, y + 0.3], -100 * row["mde"], 100 * row["mde"], color="#d0d7de", alpha=0.5, lw=0)
        ax.plot([100 * c["lo"], 100 * c["hi"]], [y, y], color=colour, lw=2)
        ax.plot(100 * c["value"], y, "D" if row is look["overall"] else "o", color=colour, ms=7)
        ax.annotate(
            word.replace("_", " ").lower(), (1.01, y), xycoords=("axes fraction", "data"), va="center", color=colour, fontsize=9
        )
    ax.axvline(0, color="black", lw=0.8)
    ax.set_yticks(range(len(rows)), [(r["condition"] or "overall").split("/")[-1] for r in reversed(rows)], fontsize=9)
    ax.set_xlabel(
        "change of the pass rate in points, checkpoint less base; bar: 95 % interval; grey: smaller than it could detect"
    )
    ax.set_title(f"Sealed look {look['look']!r}")
    fig.savefig(path, dpi=120)
    plt.close(fig)


def learning(report: dict[str, Any], history: list[dict[str, Any]], path: Path) -> None:
    """The pass rate of training episodes and of the monitor looks (which earn no verdict)."""
    fig, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
    if history:
        ax.plot(
            [h["iteration"] for h in history],
            [100 * h["rate"] for h in history],
            color="#8c959f",
            lw=1.2,
            label="training episodes, as drawn",
        )
    points = report["learning"]
    if points:
        x = [p["iteration"] for p in points]
        rates = [p["look"]["overall"]["checkpoint"] for p in points]
        ax.errorbar(
            x,
            [100 * r["rate"] for r in rates],
            [[100 * (r["rate"] - r["lo"]) for r in rates], [100 * (r["hi"] - r["rate"]) for r in rates]],
            fmt="o-",
            color="#0969da",
            capsize=3,
            label="monitor: held-out dial combinations (95 % interval)",
        )
        base = points[0]["look"]["overall"]["base"]
        ax.axhline(100 * base["rate"], color="#bc4c00", ls="--", label="monitor: base")
    ax.set_xlabel("iteration")
    ax.set_ylabel("pass rate, %")
    ax.set_ylim(0, 100)
    ax.set_title("Learning (no verdicts here)")
    if history or points:
        ax.legend(fontsize=9)
    fig.savefig(path, dpi=120)
    plt.close(fig)

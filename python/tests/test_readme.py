"""README.md is run: every fenced block, and every name of a file or verb that it speaks of exists.

A block that an HTML comment ``<!-- not run: reason -->`` precedes is checked for its syntax alone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import provegym

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(provegym.__file__).parent

# Commands that other tests and the machine that builds the repository run, by how they begin.
COVERED = {
    "git clone": "the tests run in a clone",
    "cd ": "likewise",
    "make demo": "test_train.py runs the same path at a smaller size, .ci/run the whole",
    "make test": "these tests are part of it",
    "make build": "these tests need what it built",
    "make bench": "minutes; each of its programs ends with a status",
    "pip install": "test_wheel.py installs the package",
}

FENCE = re.compile(r"(?:<!-- not run: (?P<reason>[^>]+?) -->\s*\n)?^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S)


class Block(NamedTuple):
    """One fenced block."""

    line: int
    language: str
    text: str
    reason: str | None  # why it is not run


def blocks(text: str) -> list[Block]:
    found = []
    for m in FENCE.finditer(text):
        line = text.count("\n", 0, m.start("language")) + 1
        found.append(Block(line, m["language"].strip(), m["text"], m["reason"]))
    return found


def uncovered(script: str) -> str:
    """Returns a bash block without the commands that are run elsewhere."""
    kept = [line for line in script.splitlines() if not line.strip().startswith(tuple(COVERED))]
    return "\n".join(line for line in kept if line.partition("#")[0].strip())


def call(*command: str | Path, cwd: Path) -> None:
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def run(block: Block, tmp: Path) -> None:
    """Runs a block, or checks its syntax."""
    if block.language == "python":
        (tmp / "block.py").write_text(block.text)
        call(sys.executable, *(["-m", "py_compile"] if block.reason else []), "block.py", cwd=tmp)
    elif block.language == "bash":
        script = uncovered(block.text) if block.reason is None else block.text
        (tmp / "block.sh").write_text(f"set -euo pipefail\n{script}\n")
        call("bash", *(["-n"] if block.reason else []), tmp / "block.sh", cwd=ROOT if block.reason is None else tmp)
    elif block.language == "c":
        if not shutil.which("gcc"):
            pytest.skip("no gcc on the PATH")
        (tmp / "block.c").write_text(block.text)
        flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}"]
        if block.reason:
            call("gcc", *flags, "-fsyntax-only", "block.c", cwd=tmp)
            return
        lib = PACKAGE / "lib"
        call("gcc", *flags, "block.c", "-o", "block", f"-L{lib}", f"-Wl,-rpath,{lib}", "-lprovegym", cwd=tmp)
        call(tmp / "block", cwd=tmp)
    else:
        raise AssertionError(f"README.md line {block.line}: a block of {block.language or 'no language'}; bash, python or c")


README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", blocks(README), ids=lambda b: f"line {b.line} {b.language}")
def test_block(block: Block, tmp_path: Path) -> None:
    run(block, tmp_path)


def test_every_name_exists() -> None:
    verbs = set(re.findall(r"^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"`make ([a-z0-9-]+)|^make ([a-z0-9-]+)", README, re.M))
    assert {a or b for a, b in named} <= verbs
    paths = re.findall(r"\]\(([^)#:]+)\)", README) + re.findall(r"`([\w.]+(?:/[\w.]+)*/|[\w./]+\.(?:md|go|py|h|c))`", README)
    assert paths
    built = ("demo-run/",)  # by what the README tells to run
    assert [p for p in paths if not p.startswith(built) and not (ROOT / p).exists()] == []


def test_this_extractor(tmp_path: Path) -> None:
    """What must fail here fails, and what is not run is not run."""
    assert [b.language for b in blocks(README)].count("python") == README.count("```python")
    text = "<!-- not run: needs a network -->\n```python\nraise SystemExit(1)\n```\n\n```bash\nmake demo # slow\nfalse\n```\n"
    text += "```sh\n:\n```\n"
    skipped, bash, unknown = blocks(text)
    assert (skipped.reason, skipped.line, bash.reason, unknown.language) == ("needs a network", 2, None, "sh")
    run(skipped, tmp_path)
    assert uncovered(bash.text) == "false"
    bad = [bash, unknown, skipped._replace(reason=None), skipped._replace(text="def"), bash._replace(reason="x", text="if")]
    bad += [Block(1, "c", "int main(void) { return 3; }", None), Block(1, "c", "int main(void) { return x; }", "no")]
    for block in bad:
        with pytest.raises(AssertionError):
            run(block, tmp_path)

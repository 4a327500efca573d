"""The README's section "Train with TRL" and the shortest example run as they stand, but for model and number of steps."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import scripted

from provegym import trace as traces

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("model")
    scripted.make_model().save_pretrained(where)
    scripted.make_tokenizer().save_pretrained(where)
    return where


def run(cwd: Path, *command: str) -> None:
    done = subprocess.run([sys.executable, *command], cwd=cwd, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = traces.query(cwd / "grpo-run" / "trace.db", "episodes")
    assert len(rows) >= 8 and {r["mode"] for r in rows} == {"train"}


def test_readme(tmp_path: Path, folder: Path) -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Train with TRL")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.S)
    small = {'"Qwen/Qwen3-0.6B"': repr(str(folder)), "max_steps=200": "max_steps=1, use_cpu=True, bf16=False"}
    small["max_completion_length=4096"] = "max_completion_length=64"  # an untrained model does not stop by itself
    for old, new in small.items():
        assert code.count(old) == 1, f"the README's block no longer has {old}: change this test with it"
        code = code.replace(old, new)
    (tmp_path / "block.py").write_text(code)
    run(tmp_path, "block.py")


def test_example(tmp_path: Path, folder: Path) -> None:
    code = (ROOT / "python" / "examples" / "trl_grpo.py").read_text(encoding="utf-8")
    assert code.count("max_completion_length=4096") == code.count('report_to="none"') == 1
    code = code.replace("max_completion_length=4096", "max_completion_length=64")
    (tmp_path / "example.py").write_text(code.replace('report_to="none"', 'report_to="none", use_cpu=True, bf16=False'))
    run(tmp_path, "example.py", str(folder), "1")

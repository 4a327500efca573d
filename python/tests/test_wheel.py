"""A wheel works in a fresh environment, without Go, from another folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = pytest.mark.slow

CODE = """
import sys, gymnasium as gym, provegym
assert provegym.__file__.startswith(sys.prefix), provegym.__file__
env = gym.make("provegym/ToolUse-v1")
env.reset(seed=1)
result, *_ = env.step('{"tool": "nope"}')
envs = gym.make_vec("provegym/ToolUseStructured-v1", 3)
envs.reset(seed=1)
print(env.unwrapped.task, "unknown_tool" in result, provegym.build_info()["version"])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT], check=True)
    (made,) = out.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=True)
    fresh = home / "bin" / "python"
    # Gymnasium and NumPy come from the environment of the tests, so that the network is not needed; this package does not.
    site = next(home.glob("lib/python*/site-packages"))
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    subprocess.run([fresh, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    return fresh


def test_tag_and_content(wheel: Path) -> None:
    assert wheel.name.startswith("provegym-0.1.0-cp311-abi3-linux_")
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("_native.abi3.so", "lib/libprovegym.so", "include/provegym.h", "manifest.json", "py.typed"):
        assert f"provegym/{name}" in names
    assert not [n for n in names if "test" in n or n.endswith((".c", ".go"))]


def test_it_works_elsewhere_without_go(python: Path, tmp_path: Path) -> None:
    path = str(python.parent)
    assert shutil.which("go", path=path) is None
    env = {**os.environ, "PATH": path}
    env.pop("PYTHONPATH", None)
    told = subprocess.run([python, "-c", CODE], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("tooluse@2/") and told.stdout.endswith(" True 0.1.0\n")
    listed = subprocess.run([python.parent / "provegym", "tasks"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert "provegym/ToolUse-v1" in listed.stdout


def test_exports_are_ours_alone(wheel: Path, tmp_path: Path) -> None:
    if not shutil.which("nm"):
        pytest.skip("no nm")
    zipfile.ZipFile(wheel).extract("provegym/lib/libprovegym.so", tmp_path)
    told = subprocess.run(
        ["nm", "-D", "--defined-only", tmp_path / "provegym/lib/libprovegym.so"], capture_output=True, text=True, check=True
    )
    names = [line.split()[-1] for line in told.stdout.splitlines()]
    assert names and all(n.startswith("pgym_") for n in names), names


@pytest.mark.parametrize("lacks", ["go", "compiler"])
def test_what_is_missing_is_said(lacks: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    env = {**os.environ, "PATH": str(tmp_path / "bin")}
    for switch in ("GO", "CC", "PROVEGYM_PREBUILT_LIBRARY"):
        env.pop(switch, None)
    if lacks == "go":
        for tool in ("gcc", "cc", "as", "ld", "collect2"):
            if found := shutil.which(tool):
                (tmp_path / "bin" / tool).symlink_to(found)
    # A copy of the interpreter's own folder would hold a go that ensure_go put there; -I and an empty PATH do not hide it.
    if lacks == "go" and (Path(sys.executable).parent / "go").exists():
        pytest.skip("Go is installed in this environment")
    command = [sys.executable, "setup.py", "build_ext", "--build-lib", tmp_path / "lib", "--build-temp", tmp_path / "temp"]
    told = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert told.returncode != 0
    assert ("needs Go" if lacks == "go" else "no C compiler") in told.stderr

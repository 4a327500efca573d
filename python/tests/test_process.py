"""What the library does to the process it is loaded into, and what the package keeps from it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from agents import play

TEXT = "provegym:provegym/ToolUse-v1"  # the part before the colon is imported, in a spawned process too


def run(code: str, **env: str) -> str:
    """Output of a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, env={**os.environ, **env}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_loads_nothing() -> None:
    told = run("""
        def loaded(): return [n for n in ("libprovegym", "_native") if n in open("/proc/self/maps").read()]
        import gymnasium, provegym
        print(loaded())
        gymnasium.spec("provegym/ToolUse-v1"), provegym.ids(), provegym.manifest(), provegym.errors
        print(loaded())
        gymnasium.make("provegym/ToolUse-v1")
        print(loaded())
    """)
    assert told.splitlines() == ["[]", "[]", "['libprovegym', '_native']"]


def test_fork_before_the_first_environment() -> None:
    told = run("""
        import os, gymnasium, provegym
        child = os.fork()
        env = gymnasium.make("provegym/ToolUse-v1")
        task = env.reset(seed=1)[1]["task"]
        env.close()
        if child == 0: os._exit(0)
        print(os.waitpid(child, 0)[1], task)
    """)
    assert told.startswith("0 tooluse@")


def _played(id_: str, seed: int) -> list[Any]:
    env = gym.make(id_).unwrapped
    try:
        return play(env, seed, 40)
    finally:
        env.close()


def test_a_spawned_process_tells_the_same(seed: int) -> None:
    here = _played(TEXT, seed)  # the library is loaded in this process
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_played, (TEXT, seed)) == here


def test_nothing_opens_a_socket() -> None:
    told = run("""
        import os, sys
        opened = []
        sys.addaudithook(lambda event, args: opened.append(event) if event.startswith("socket.") else None)
        import gymnasium, provegym, provegym.cli, provegym.vector, provegym.breaker, provegym.curriculum, provegym.prove
        envs = gymnasium.make_vec("provegym/ToolUse-v1", 8)
        envs.reset(seed=1)
        for _ in range(20): envs.step(["{}"] * 8)
        fds = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{n}")]
        print(opened, [fd for fd in fds if fd.startswith("socket:")])
    """)
    assert told == "[] []"


def test_ctrl_c_during_recv() -> None:
    code = """
        import gymnasium, provegym
        envs = gymnasium.make_vec("provegym/ToolUse-v1", 2)
        envs.reset(seed=1)
        envs.send(["{}"], [0])
        print("ready", flush=True)
        try:
            envs.recv(1)
            envs.send(["{}"], [0])
            while True: envs.step if envs.recv(2, timeout=60) else None
        except (KeyboardInterrupt, provegym.errors.StateError) as err:
            print(type(err).__name__)
        envs.close()
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=30)
    assert out.strip() in ("KeyboardInterrupt", "StateError", ""), out


def test_no_leak_over_many_environments() -> None:
    told = run("""
        import gc, os, gymnasium, provegym
        def fds(): return len(os.listdir("/proc/self/fd"))
        def threads(): return len(os.listdir("/proc/self/task"))
        def once():
            envs = gymnasium.make_vec("provegym/ToolUseStructured-v1", 16)
            envs.reset(seed=1)
            envs.close()
        for _ in range(20): once()
        gc.collect(); before = fds(), threads()
        for _ in range(200): once()
        gc.collect(); after = fds(), threads()
        print(after[0] - before[0], after[1] - before[1])
    """)
    more_fds, more_threads = map(int, told.split())
    # Go's first timer opens two descriptors for the life of the process, at a moment of its own; a leak would be hundreds.
    assert more_fds <= 2 and more_threads <= 4, told


def test_a_dropped_environment_is_closed() -> None:
    told = run("""
        import gc, gymnasium, provegym
        from provegym import _lib
        env = gymnasium.make("provegym/ToolUse-v1").unwrapped
        handle = env._batch.native.handle
        del env; gc.collect()
        try: _lib.request("vec.info", {"env": 0}, handle)
        except provegym.errors.ClosedError: print("closed")
    """)
    assert told == "closed"


STUB = """
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef struct { char *data; uint64_t len; } bytes;
int32_t pgym_abi_version(void) { return ABI; }
int32_t pgym_build_info(bytes *out, void *err) {
  out->data = strdup("{\\"header\\":\\"f00d\\"}");
  out->len = strlen(out->data);
  return 0;
}
void pgym_free(bytes *b) { free(b->data); }
"""
NAMES = ("make", "bind", "reset", "queue", "send", "recv", "step", "snapshot", "restore", "fork", "close")


def refused(library: Path) -> str:
    """What is said when that library is to be loaded."""
    return run(
        """
        import provegym
        try: provegym.build_info()
        except provegym.errors.LibraryError as err: print(err)
        """,
        PROVEGYM_LIBRARY=str(library),
    )


@pytest.mark.parametrize(
    ("abi", "leave_out", "text"),
    [(1, None, "another provegym.h"), (7, None, "ABI version 7"), (1, "vec_fork", "no function pgym_vec_fork")],
)
def test_a_library_that_does_not_fit_is_refused(tmp_path: Path, abi: int, leave_out: str | None, text: str) -> None:
    functions = [f"vec_{n}" for n in NAMES] + ["request"]
    code = STUB + "\n".join(f"int32_t pgym_{n}(void) {{ return 0; }}" for n in functions if n != leave_out)
    library = tmp_path / "libprovegym.so"
    command = ["cc", "-shared", "-fPIC", f"-DABI={abi}", "-x", "c", "-", "-o", library]
    subprocess.run(command, input=code, text=True, check=True)
    told = refused(library)
    assert text in told and "install" in told


def test_a_library_that_is_none_is_refused(tmp_path: Path) -> None:
    junk = tmp_path / "libprovegym.so"
    junk.write_bytes(b"no library")
    told = refused(junk)
    assert str(junk) in told and "install" in told
    told = refused(tmp_path / "none.so")
    assert "none.so" in told and "PROVEGYM_LIBRARY" in told

"""The sandbox from Python: results, limits, files, errors, and life beside threads, children and signals of the process."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator

import pytest

from provegym.cli import main
from provegym.errors import BadInputError, ClosedError, HostError, StateError, StoreError
from provegym.sandbox import Sandbox


@pytest.fixture(scope="module")
def boxes() -> Iterator[Sandbox]:
    with Sandbox() as made:
        yield made


def test_result(boxes: Sandbox) -> None:
    end = boxes.run(["sh", "-c", "cat; echo err >&2; exit 3"], stdin=b"a\x00\xff", memory_bytes=64 << 20)
    assert (end.reason, end.exit_code, end.stdout, end.stderr, end.ok) == ("exit", 3, b"a\x00\xff", b"err\n", False)
    assert not end.infrastructure and end.stdout_bytes == 3 and 0 < end.wall_s < 10 and "3" in end.text
    assert boxes.run(["/usr/bin/env"], env={"A": "b"}).stdout == b"A=b\n"
    assert boxes.run(["pwd"]).ok


@pytest.mark.parametrize(
    ("command", "limits", "reason"),
    [
        ("sleep 60", {"wall_s": 0.2}, "wall"),
        ("kill -9 $$", {}, "signal"),
        ("yes", {"output_bytes": 1000}, "output"),
        ("head -c 9000000 /dev/zero > f", {"disk_bytes": 1 << 20}, "disk"),
    ],
)
def test_reasons(boxes: Sandbox, command: str, limits: dict[str, float], reason: str) -> None:
    end = boxes.run(["sh", "-c", command], **limits)
    assert end.reason == reason and not end.infrastructure, end


def test_program_that_is_not_there(boxes: Sandbox) -> None:
    end = boxes.run(["no-such-program"])
    assert end.reason == "exec_failed" and not end.infrastructure


def test_files(boxes: Sandbox) -> None:
    with boxes.box() as box:
        box.write("/work/a/b.bin", bytes(range(256)), mode=0o600)
        box.mkdir("/work/d")
        assert box.run(["sh", "-c", "ln -s /etc/passwd l; stat -c %a a/b.bin; echo hi > c"]).stdout == b"600\n"
        assert box.read("/work/a/b.bin") == bytes(range(256)) and box.read("/work/c") == b"hi\n"
        listed = {e.name: e for e in box.list()}
        assert (
            listed["/work/c"].size == 3 and listed["/work/l"].link == "/etc/passwd" and listed["/work/d"].mode.startswith("d")
        )
        with pytest.raises(StoreError):
            box.read("/work/l")
        with pytest.raises(StoreError):
            box.read("/work/none")
        with pytest.raises(BadInputError):
            box.read("/work/a/b.bin", max_bytes=10)


def test_bad_input(boxes: Sandbox) -> None:
    with pytest.raises(BadInputError, match=r"memory_bytes is 5.* pids is -1"):  # all problems at once
        boxes.box(memory_bytes=5, pids=-1).run(["true"])
    with pytest.raises(BadInputError, match="did you mean"):
        boxes.box(memory_byte=5)
    with pytest.raises(BadInputError):
        boxes.run([])
    with pytest.raises(BadInputError):
        boxes.run(["true"], wall_s=-5)
    with pytest.raises(BadInputError):
        Sandbox(require=["no such guarantee"])
    with pytest.raises(HostError):
        boxes.box().run_python("1")


def test_closed() -> None:
    own = Sandbox()
    box = own.box()
    own.close()
    with pytest.raises(StateError):
        box.run(["true"])
    box.close()
    with pytest.raises(ClosedError):
        box.run(["true"])


def test_kill_busy_and_threads(boxes: Sandbox) -> None:
    with boxes.box() as box:
        ended = []

        def sleep() -> None:
            while not ended:
                with contextlib.suppress(StateError):  # the other thread's `true` runs
                    ended.append(box.run(["sleep", "60"], wall_s=9))

        runner = threading.Thread(target=sleep)
        runner.start()
        deadline = time.monotonic() + 5
        while True:  # until it runs
            try:
                box.run(["true"])
            except StateError as err:
                assert "running" in str(err)
                break
            assert time.monotonic() < deadline
        box.kill()
        runner.join(5)
        assert ended[0].reason == "killed"
        assert box.run(["echo", "again"]).stdout == b"again\n"
    results: list[bytes] = []
    workers = [threading.Thread(target=lambda i=i: results.append(boxes.run(["echo", str(i)]).stdout)) for i in range(16)]
    for w in workers:
        w.start()
    for w in workers:
        w.join(30)
    assert sorted(map(int, results)) == list(range(16))


def test_pool(boxes: Sandbox) -> None:
    with boxes.pool(2, pids=8) as pool:
        for _ in range(5):
            with pool.get() as box:
                assert box.run(["sh", "-c", "test ! -e f && touch f"]).ok  # as fresh as any other


def test_warm_interpreter() -> None:
    try:
        warm = Sandbox(python=["json"])
    except HostError as err:
        pytest.skip(f"no warm interpreter here: {err}")
    with warm, warm.box() as box:
        box.arm()
        end = box.run_python("import sys; print('json' in sys.modules)")
        assert end.stdout == b"True\n", end
        assert box.run_python(b"raise ValueError(3)").exit_code == 1


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_beside_children_with_sigchld_ignored() -> None:
    told = run("""
        import signal, subprocess, threading
        from provegym.sandbox import Sandbox
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        with Sandbox() as boxes:
            ends = []
            def one(): ends.append(boxes.run(["sh", "-c", "exit 7"]).exit_code)
            threads = [threading.Thread(target=one) for _ in range(4)]
            for t in threads: t.start()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            own = [subprocess.run(["sh", "-c", "exit 5"]).returncode for _ in range(20)]
            for t in threads: t.join()
        print(ends, set(own))
    """)
    assert told == "[7, 7, 7, 7] {5}"


def test_beside_a_profiling_signal() -> None:
    told = run("""
        import signal
        from provegym.sandbox import Sandbox
        ticks = []
        signal.signal(signal.SIGPROF, lambda *a: ticks.append(1))
        signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
        with Sandbox() as boxes:
            busy = ["sh", "-c", "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; exit 3"]
            codes = {boxes.run(busy).exit_code for _ in range(10)}
            while len(ticks) < 4: pass
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(codes)
    """)
    assert told == "{3}"


def test_ctrl_c_kills_the_command() -> None:
    code = """
        from provegym.sandbox import Sandbox
        with Sandbox() as boxes, boxes.box() as box:
            print("ready", flush=True)
            try:
                box.run(["sleep", "60"], wall_s=9)
            except KeyboardInterrupt:
                print(box.run(["echo", "usable"]).stdout.decode().strip())
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=8)
    assert out.strip() == "usable"


def test_forked_child_gets_a_clear_error() -> None:
    told = run("""
        import os
        from provegym.errors import ForkError
        from provegym.sandbox import Sandbox
        boxes = Sandbox()
        if (pid := os.fork()) == 0:
            try: boxes.run(["true"])
            except ForkError as err: os._exit(42)
            os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), boxes.run(["echo", "on"]).stdout)
    """)
    assert told == "42 b'on\\n'"


def test_command_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", "run", "--wall", "3", "--memory", "64M", "--", "sh", "-c", "echo out; exit 4"]) == 4
    out, err = capfd.readouterr()
    assert out == "out\n" and "exit" in err
    assert main(["sandbox", "run", "--wall", "0.2", "--", "sleep", "9"]) == 125
    assert main(["doctor", "--json"]) == 0
    capfd.readouterr()
    main(["doctor", "--json"])
    names = [f["name"].strip() for f in json.loads(capfd.readouterr().out)]
    assert "sandbox" in names and "memory" in names and "network" in names

r"""Runs untrusted commands in fresh, isolated boxes on this machine, with limits; for trainers and tools of their own.

>>> from provegym import sandbox
>>> with sandbox.Sandbox() as boxes, boxes.box(memory_bytes=64 << 20) as box:
...     box.write("/work/data.txt", b"one\ntwo\n")
...     end = box.run(["wc", "-l", "data.txt"], wall_s=2)
>>> end.reason, end.exit_code, end.stdout
('exit', 0, b'2 data.txt\n')

What a box is kept from, and what is not defended, stands in the threat model of the library's sandbox/doc.go.
"""

from __future__ import annotations

import base64
import contextlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provegym import _lib
from provegym.errors import StateError

__all__ = ["Box", "Entry", "Pool", "Result", "Sandbox"]

_BUDGET_MS = 50  # one wait; between two of them kill and Ctrl-C work


@dataclass(frozen=True)
class Result:
    """How a command ended and what it used; every process of it is dead by then.

    Attributes:
        reason: "exit", "signal", a limit ("wall", "cpu", "memory", "pids", "disk", "output"), "killed", "exec_failed", or the
            sandbox's own failure ("set_up", "box_died").
        infrastructure: Whether the end tells nothing about the command: an episode that ends so is invalid, not failed.
        exit_code: Of the program; -1 if it did not exit by itself.
        signal: That ended the program, 0 for none.
        stdout: What it wrote, at most ``output_bytes`` of the box.
        stderr: Likewise.
        stdout_bytes: How many bytes it wrote; more than stdout has means that it was cut.
        stderr_bytes: Likewise.
        wall_s: Seconds from the program's start to its end.
        cpu_s: Seconds of processor time, of all processes, the system's included.
        memory_peak_bytes: Of the box since it was made, where the host tells it; else of the largest process.
        disk_bytes: In use at the end.
        text: One line for logs.
    """

    reason: str
    infrastructure: bool
    exit_code: int
    signal: int
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    stderr_bytes: int
    wall_s: float
    cpu_s: float
    memory_peak_bytes: int
    disk_bytes: int
    text: str

    @property
    def ok(self) -> bool:
        """Whether the program ran and exited with 0."""
        return self.reason == "exit" and self.exit_code == 0


@dataclass(frozen=True)
class Entry:
    """A file, directory or link in a box: its name there, its mode as ``ls`` writes it, its bytes, and where a link points."""

    name: str
    mode: str
    size: int
    link: str = ""


class Sandbox(_lib.Handle):
    """Makes boxes. One a process is enough; opening it takes some 20 ms, in which it finds out what this host can enforce.

    Args:
        require: Guarantees without which it does not open, such as "memory=enforced" or "network"; ``capabilities`` names them.
        level: "full", "delegated", "namespaces" or "plain", to try what a host without the rights would give; None is the best.
        read_only_dirs: The host's directories that boxes see; None is /usr with its links, which has the programs.
        max_boxes: Open at a time, 1024 if None.
        python: Keeps a CPython warm with these modules imported; its boxes run Python code by ``run_python`` and nothing else.
        executable: Which CPython; None looks for python3 in /usr.

    Raises:
        HostError: If a requirement is not met or no level works; the text says what to do.
        BadInputError: If an argument is malformed.
    """

    def __init__(
        self,
        *,
        require: Sequence[str] = (),
        level: str | None = None,
        read_only_dirs: Sequence[str] | None = None,
        max_boxes: int | None = None,
        python: Sequence[str] | None = None,
        executable: str | None = None,
    ) -> None:
        """Opens it."""
        warm = None if python is None else {"imports": list(python), "executable": executable or ""}
        opened = _lib.request(
            "sandbox.open",
            {
                "require": list(require),
                "level": level,
                "read_only_dirs": None if read_only_dirs is None else list(read_only_dirs),
                "max_boxes": max_boxes,
                "python": warm,
            },
        )
        super().__init__(opened["handle"])
        self._lock = threading.Lock()
        self.capabilities: dict[str, Any] = opened["capabilities"]

    def box(self, **limits: Any) -> Box:
        """Makes a box.

        Args:
            **limits: Of the box; what is left out has its default. ``wall_s`` of each command (10), ``cpu_s`` of each command
                (as wall_s), ``cpu_milli`` thousandths of a processor (1000), ``memory_bytes`` of processes and files (256 MiB),
                ``pids`` processes and threads (32), ``disk_bytes`` (16 MiB) and ``disk_files`` (1024) in /work, /tmp and
                /dev/shm, ``open_files`` of a process (64), ``output_bytes`` kept of stdout and of stderr (64 KiB),
                ``output_max_bytes`` written before the command is ended (4 times that), ``loopback`` for 127.0.0.1.

        Raises:
            BadInputError: If limits are wrong; it lists all that are.
            HostError: If the host cannot make one now.
        """
        with self._lock:
            return Box(self._ask("sandbox.box", limits)["handle"])

    def pool(self, size: int, **limits: Any) -> Pool:
        """Keeps so many boxes ready, with limits as of ``box``."""
        with self._lock:
            return Pool(self._ask("sandbox.pool", {"size": size, **limits})["handle"])

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", env: Mapping[str, str] | None = None, **limits: Any) -> Result:
        """Runs one command in a fresh box; arguments as of ``Box.run`` and ``box``."""
        with self.box(**limits) as box:
            return box.run(argv, stdin=stdin, env=env)


class Pool(_lib.Handle):
    """Boxes made ahead of time. Each is used once."""

    def __init__(self, handle: str) -> None:
        """Takes over an open handle; ``Sandbox.pool`` makes one."""
        super().__init__(handle)
        self._lock = threading.Lock()

    def get(self) -> Box:
        """Returns a box that is ready, or a new one if none is."""
        with self._lock:
            return Box(self._ask("pool.get")["handle"])


class Box(_lib.Handle):
    """An isolated space. Commands run in it one after another and see each other's files, never each other's processes.

    Any thread may use it, one command at a time. ``close`` kills what runs in it.
    """

    def __init__(self, handle: str) -> None:
        """Takes over an open handle; ``Sandbox.box`` and ``Pool.get`` make one."""
        super().__init__(handle)
        self._lock = threading.Lock()  # of requests: the library takes one thread a handle at a time
        self._command = threading.Lock()  # held while a command runs
        self._killed = threading.Event()

    def _locked(self, method: str, args: Mapping[str, Any] | None = None) -> dict[str, Any]:
        with self._lock:
            return self._ask(method, args)

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        wall_s: float | None = None,
    ) -> Result:
        """Runs a command to its end. Ctrl-C kills it and is raised.

        Args:
            argv: The program, a path or a name in the PATH of ``env``, and its arguments.
            stdin: What it reads.
            env: Its environment; None is a plain one, with a PATH, and nothing of this process's is ever added.
            cwd: Its working directory; /work if None.
            wall_s: Seconds, if not those of the box; only fewer.

        Raises:
            BadInputError: If an argument is wrong; it lists all that are.
            StateError: If another command runs in the box, or its sandbox was closed.
        """
        return self._run(
            {
                "argv": list(argv),
                "stdin": _encoded(stdin) if stdin else None,
                "env": None if env is None else [f"{k}={v}" for k, v in env.items()],
                "dir": cwd,
                "wall_s": wall_s,
            }
        )

    def run_python(self, code: str | bytes) -> Result:
        """Runs code as ``__main__`` in a process forked from the warm interpreter; an uncaught exception is exit code 1.

        Raises:
            HostError: If the sandbox has no warm interpreter.
        """
        return self._run({"python": _encoded(code.encode() if isinstance(code, str) else code)})

    def _run(self, command: Mapping[str, Any]) -> Result:
        if not self._command.acquire(blocking=False):
            raise StateError("a command is running in this box: wait for its end, or kill it")
        try:
            self._killed.clear()
            self._locked("box.start", command)
            try:
                while not (answer := self._waited())["done"]:
                    if self._killed.is_set():
                        self._locked("box.kill")
            except BaseException:
                with contextlib.suppress(StateError):  # it had ended
                    self._locked("box.kill")
                    while not self._waited()["done"]:
                        pass
                raise
            return self._finished(answer)
        finally:
            self._command.release()

    def _waited(self) -> dict[str, Any]:
        return self._locked("box.wait", {"budget_ms": _BUDGET_MS})

    @staticmethod
    def _finished(answer: Mapping[str, Any]) -> Result:
        r = answer["result"]
        return Result(
            reason=r["reason"],
            infrastructure=answer["infrastructure"],
            exit_code=r["exit_code"],
            signal=r.get("signal", 0),
            stdout=base64.b64decode(r["stdout"] or ""),
            stderr=base64.b64decode(r["stderr"] or ""),
            stdout_bytes=r["stdout_bytes"],
            stderr_bytes=r["stderr_bytes"],
            wall_s=r["wall_ns"] / 1e9,
            cpu_s=(r["cpu_user_ns"] + r["cpu_system_ns"]) / 1e9,
            memory_peak_bytes=r["memory_peak_bytes"],
            disk_bytes=r["disk_bytes"],
            text=answer["text"],
        )

    def kill(self) -> None:
        """Ends the running command, if there is one, from another thread; the box stays usable."""
        self._killed.set()

    def arm(self) -> None:
        """Forks the warm interpreter ahead of time; ``run_python`` then only hands over the code. Its time begins here."""
        self._locked("box.arm")

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Creates or replaces a regular file, and the directories above it.

        Raises:
            StoreError: What the file system says: no space, a link or a directory of that name, and so on.
        """
        self._locked("box.write", {"path": path, "data": _encoded(data), "mode": mode})

    def read(self, path: str, max_bytes: int = 16 << 20) -> bytes:
        """Returns what a regular file holds. It follows no link and never blocks on what a command has put there.

        Raises:
            BadInputError: If it is bigger than ``max_bytes``.
            StoreError: If it is not there or no regular file.
        """
        return base64.b64decode(self._locked("box.read", {"path": path, "max_bytes": max_bytes})["data"] or "")

    def list(self, path: str = "/work", max_entries: int = 10_000) -> list[Entry]:
        """Returns everything below a directory, by name, directories before what they hold."""
        found = self._locked("box.list", {"path": path, "max_entries": max_entries})["entries"]
        return [Entry(**e) for e in found or ()]

    def mkdir(self, path: str) -> None:
        """Makes a directory and those above it."""
        self._locked("box.mkdir", {"path": path})


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()

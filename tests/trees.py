"""Process trees that are hard to end: `python trees.py FOLDER DEPTH KIND` grows one.

Each process leaves a file named by its pid in FOLDER once it is ready, and has FOLDER in its
command line, so that a test finds it wherever it has moved to. Left alone, they end by themselves.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

DEPTH = 4
KINDS = {
    "plain": 5,
    "setsid": 6,  # one more: a child that left the session
    "double": 6,  # one more: a daemon whose parent is gone
    "clearenv": 6,  # one more: a daemon that has also dropped its environment
    "ignoreterm": 5,
    "forker": 10,  # and growing: daemons without end, in place of the last process
}
"""The processes of a full-grown tree of each kind."""

SECONDS = 60


def command(folder: Path, kind: str) -> list[str]:
    return [sys.executable, "-I", "-S", __file__, str(folder), str(DEPTH), kind]


def is_grown(folder: Path, kind: str) -> bool:
    return len(list(folder.iterdir())) >= KINDS[kind]


def living(folder: Path) -> list[int]:
    """Find the processes of a tree. Zombies have no command line, and so do not count."""
    return [pid for pid in _pids() if os.fsencode(folder) in command_line(pid)]


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_alive(pid: int) -> bool:
    return command_line(pid) != b""


def children(pid: int | None = None) -> set[int]:
    """Find the processes that one process, or this one, has started and not yet buried."""
    return {each for each in _pids() if _parent_or_none(each) == (pid or os.getpid())}


def descriptors() -> set[str]:
    """Find the sockets and pipes that this process holds open."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(entry.readlink()))
    return {name for name in found if name.startswith(("socket:", "pipe:"))}


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _parent_or_none(pid: int) -> int | None:
    try:
        return parent(pid)
    except (FileNotFoundError, ProcessLookupError):
        return None


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _grow(folder: str, depth: int, kind: str) -> None:
    if kind == "ignoreterm":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _register(folder)
    if depth == 2 and kind in {"setsid", "double", "clearenv"}:
        _detach(folder, kind)
    if depth == 1 and kind == "forker":
        _fork_on(folder)
    if depth > 0:
        argv = [sys.executable, "-I", "-S", __file__, folder, str(depth - 1), kind]
        os.posix_spawn(sys.executable, argv, os.environ)
    time.sleep(SECONDS)


def _register(folder: str) -> None:
    os.close(os.open(f"{folder}/{os.getpid()}", os.O_CREAT))


def _detach(folder: str, kind: str) -> None:
    pid = os.fork()
    if pid:
        if kind != "setsid":
            os.waitpid(pid, 0)
        return
    os.setsid()
    if kind != "setsid" and os.fork():
        os._exit(0)
    if kind == "clearenv":
        argv = [sys.executable, "-I", "-S", __file__, folder, "0", "plain"]
        os.execve(sys.executable, argv, {})
    _register(folder)
    _sleep()


def _fork_on(folder: str) -> NoReturn:
    end = time.monotonic() + SECONDS / 2
    while time.monotonic() < end:
        _detach(folder, "double")
        time.sleep(0.005)
    os._exit(0)


def _sleep() -> NoReturn:
    time.sleep(SECONDS)
    os._exit(0)


if __name__ == "__main__":
    _grow(sys.argv[1], int(sys.argv[2]), sys.argv[3])

"""Process trees that are hard to end: `python trees.py FOLDER DEPTH KIND` grows one.

Each process writes a file named by its pid into FOLDER when it is ready, and has FOLDER in its
command line, so that a test can find it anywhere. The processes also end by themselves.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

TREE_DEPTH = 4
PROCESS_COUNTS = {
    "plain": 5,
    "setsid": 6,  # one more: a child that left the session
    "double": 6,  # one more: a daemon whose parent is gone
    "clearenv": 6,  # one more: a daemon that has also dropped its environment
    "ignoreterm": 5,
    "forker": 10,  # and growing: daemons without end, in place of the last process
}
"""The number of processes in a complete tree, by kind."""

LIFETIME_SECONDS = 60


def build_command(folder: Path, kind: str) -> list[str]:
    return [sys.executable, "-I", "-S", __file__, str(folder), str(TREE_DEPTH), kind]


def is_grown(folder: Path, kind: str) -> bool:
    return len(list(folder.iterdir())) >= PROCESS_COUNTS[kind]


def find_living(folder: Path) -> list[int]:
    """Find the processes of a tree; zombies have no command line and do not count."""
    return [pid for pid in _list_pids() if os.fsencode(folder) in read_command_line(pid)]


def read_parent_pid(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_alive(pid: int) -> bool:
    return read_command_line(pid) != b""


def find_children(pid: int | None = None) -> set[int]:
    """Find the processes that one process, or this one, has started and not yet reaped."""
    return {child_pid for child_pid in _list_pids() if _find_parent_pid(child_pid) == (pid or os.getpid())}


def find_open_descriptors() -> set[str]:
    """Find the sockets and pipes that this process holds open."""
    targets = set()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            targets.add(str(entry.readlink()))
    return {name for name in targets if name.startswith(("socket:", "pipe:"))}


def _list_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _find_parent_pid(pid: int) -> int | None:
    try:
        return read_parent_pid(pid)
    except (FileNotFoundError, ProcessLookupError):
        return None


def read_command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _grow_tree(folder: str, depth: int, kind: str) -> None:
    if kind == "ignoreterm":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _register_process(folder)
    if depth == 2 and kind in {"setsid", "double", "clearenv"}:
        _detach_child(folder, kind)
    if depth == 1 and kind == "forker":
        _fork_repeatedly(folder)
    if depth > 0:
        argv = [sys.executable, "-I", "-S", __file__, folder, str(depth - 1), kind]
        os.posix_spawn(sys.executable, argv, os.environ)
    time.sleep(LIFETIME_SECONDS)


def _register_process(folder: str) -> None:
    os.close(os.open(f"{folder}/{os.getpid()}", os.O_CREAT))


def _detach_child(folder: str, kind: str) -> None:
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
    _register_process(folder)
    _sleep_and_exit()


def _fork_repeatedly(folder: str) -> NoReturn:
    end = time.monotonic() + LIFETIME_SECONDS / 2
    while time.monotonic() < end:
        _detach_child(folder, "double")
        time.sleep(0.005)
    os._exit(0)


def _sleep_and_exit() -> NoReturn:
    time.sleep(LIFETIME_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    _grow_tree(sys.argv[1], int(sys.argv[2]), sys.argv[3])

"""One server process: start it, talk over its pipes, ask the kernel what it used, end it.

Nothing outlives the `with` block, and nothing in it waits without a limit.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

CHUNK = 1 << 16
"""Bytes per read: the capacity of a Linux pipe, so one read empties it."""

GRACE = 3.0
"""Seconds a server has to end by itself after its input is closed."""


class Broken(Exception):  # noqa: N818 - it says what the server is
    """The server died, kept silent too long, or gave a wrong answer."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process and its descendants have used so far: CPU seconds, and peak bytes."""

    cpu: float
    peak: int


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    pid: int
    stdin: int
    stdout: int

    def send(self, data: bytes) -> None:
        os.write(self.stdin, data)

    def receive_line(self) -> bytes:
        """One line, when nothing else is outstanding."""
        received = b""
        while not received.endswith(b"\n"):
            received += self.receive()
        return received

    def receive(self) -> bytes:
        if chunk := os.read(self.stdout, CHUNK):
            return chunk
        raise Broken("the server closed its output")

    def place(self, cpus: AbstractSet[int]) -> None:
        """Let the server and this client run on these CPUs only, with all their threads."""
        os.sched_setaffinity(0, cpus)
        for pid in _tree(self.pid):
            for task in Path(f"/proc/{pid}/task").iterdir():
                with suppress(OSError):  # a thread may have ended since
                    os.sched_setaffinity(int(task.name), cpus)

    def usage(self) -> Usage:
        cpu, peak = 0.0, 0
        for pid in _tree(self.pid):
            # A short-lived descendant may be gone by now; its parent has its CPU time.
            with suppress(OSError):
                cpu += _cpu_seconds(pid)
                peak += _peak_bytes(pid)
        return Usage(cpu, peak)


@contextmanager
def running(command: Sequence[str]) -> Iterator[Server]:
    """Start a server in an empty folder; end it and its descendants on the way out.

    Raises:
        Broken: the server could not start; or the body raised it, and then the last line
            the server wrote to stderr is added.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as stderr:
        try:
            process = subprocess.Popen(
                command,
                bufsize=0,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,  # Ctrl-C is ours to handle, once
            )
        except OSError as error:
            raise Broken(str(error)) from None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Server(process.pid, process.stdin.fileno(), process.stdout.fileno())
        except (Broken, BrokenPipeError) as error:
            raise Broken(f"{error}{_last_words(stderr)}") from None
        finally:
            _end(process)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise Broken inside the block when it takes longer.

    A timer signal interrupts a blocking read or write, which spares the measured loop a
    poll before each of them.
    """

    def expire(_signal: int, _frame: FrameType | None) -> None:
        raise Broken(f"no answer within {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    limit = time.monotonic() + GRACE
    try:
        # Looking without reaping keeps the group's id ours until it has been killed.
        while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            if time.monotonic() > limit:
                break
            time.sleep(0.005)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _last_words(stderr: IO[bytes]) -> str:
    stderr.seek(0)
    lines = stderr.read().decode(errors="replace").split("\n")
    written = [line.strip() for line in lines if line.strip()]
    return f" (stderr: {written[-1][:200]})" if written else ""


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            for child in (task / "children").read_text().split():
                yield from _tree(int(child))


def _cpu_seconds(pid: int) -> float:
    # The CPU clock of another process counts all its threads, ended ones included, in
    # nanoseconds; /proc/PID/stat counts in ticks of 10 ms, hundreds of calls long. The id is
    # what clock_getcpuclockid(3) gives, which Python does not offer.
    own = time.clock_gettime(~pid << 3 | 2)
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    reaped_children = int(fields[13]) + int(fields[14])
    return own + reaped_children / os.sysconf("SC_CLK_TCK")


def _peak_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0

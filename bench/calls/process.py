"""One server process: start it, talk over its pipes, read its usage from the kernel, end it.

No process outlives the `with` block, and no wait in it is without a limit.
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

READ_CHUNK_BYTES = 1 << 16
"""Bytes per read: the capacity of a Linux pipe, so one read empties it."""

EXIT_GRACE_SECONDS = 3.0
"""Seconds that a server has to exit by itself after its input is closed."""


class BenchmarkError(Exception):
    """A server that died, was silent too long, or gave a wrong answer; or a failed tool."""


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """The usage of a process and its descendants so far: CPU seconds, and peak bytes."""

    cpu: float
    peak: int


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A running server."""

    pid: int
    stdin: int
    stdout: int

    def send(self, data: bytes) -> None:
        os.write(self.stdin, data)

    def receive_line(self) -> bytes:
        """Receive one line, when no other answer is outstanding."""
        received = b""
        while not received.endswith(b"\n"):
            received += self.receive()
        return received

    def receive(self) -> bytes:
        if chunk := os.read(self.stdout, READ_CHUNK_BYTES):
            return chunk
        raise BenchmarkError("the server closed its output")

    def pin_to_cpus(self, cpus: AbstractSet[int]) -> None:
        """Run the server and this client, with all their threads, on these CPUs only."""
        os.sched_setaffinity(0, cpus)
        for pid in _iterate_tree(self.pid):
            for task in Path(f"/proc/{pid}/task").iterdir():
                with suppress(OSError):  # a thread may have ended since
                    os.sched_setaffinity(int(task.name), cpus)

    def read_usage(self) -> ProcessUsage:
        cpu, peak = 0.0, 0
        for pid in _iterate_tree(self.pid):
            # A short-lived descendant may be gone by now; its parent has its CPU time.
            with suppress(OSError):
                cpu += _read_cpu_seconds(pid)
                peak += _read_peak_bytes(pid)
        return ProcessUsage(cpu, peak)


@contextmanager
def run_server(command: Sequence[str]) -> Iterator[ServerProcess]:
    """Start a server in an empty folder; end it and its descendants when the block is left.

    Raises:
        BenchmarkError: The server could not start; or the body raised it, and then the last line
            that the server wrote to stderr is added.
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
            raise BenchmarkError(str(error)) from None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield ServerProcess(process.pid, process.stdin.fileno(), process.stdout.fileno())
        except (BenchmarkError, BrokenPipeError) as error:
            raise BenchmarkError(f"{error}{_read_last_line(stderr)}") from None
        finally:
            _terminate(process)


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Raise BenchmarkError inside the block if it takes longer.

    A timer signal interrupts a blocking read or write, so that the measured loop needs no poll
    before each of them.
    """

    def raise_timeout(_signal: int, _frame: FrameType | None) -> None:
        raise BenchmarkError(f"no answer within {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, raise_timeout)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _terminate(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    limit = time.monotonic() + EXIT_GRACE_SECONDS
    try:
        # Waiting without reaping keeps the group's id reserved until the group has been killed.
        while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            if time.monotonic() > limit:
                break
            time.sleep(0.005)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _read_last_line(stderr: IO[bytes]) -> str:
    stderr.seek(0)
    lines = stderr.read().decode(errors="replace").split("\n")
    written = [line.strip() for line in lines if line.strip()]
    return f" (stderr: {written[-1][:200]})" if written else ""


def _iterate_tree(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            for child in (task / "children").read_text().split():
                yield from _iterate_tree(int(child))


def _read_cpu_seconds(pid: int) -> float:
    # The CPU clock of another process counts all its threads, ended ones included, in
    # nanoseconds; /proc/PID/stat counts in ticks of 10 ms, hundreds of calls long. The id is
    # what clock_getcpuclockid(3) gives, which Python does not offer.
    process_seconds = time.clock_gettime(~pid << 3 | 2)
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    reaped_children = int(fields[13]) + int(fields[14])
    return process_seconds + reaped_children / os.sysconf("SC_CLK_TCK")


def _read_peak_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0

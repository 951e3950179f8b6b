"""Measure one contestant: start it, time the first answer, then round trips of one frame."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from bench.calls import wire as mcp
from bench.calls.process import BenchmarkError, ServerProcess, limit_time, run_server

BLOCK_TIMEOUT_SECONDS = 60.0
"""Seconds for a start, and for each block of calls."""

BLOCK_CALLS = 10
"""Calls between two checks of the clock."""


@dataclass(frozen=True, slots=True)
class AssetContestant:
    """A command, and the protocol that it speaks."""

    name: str
    title: str
    command: Sequence[str]
    handshake: bool = False

    def encode_request(self, tool: str, arguments: object) -> bytes:
        method, params = tool, arguments
        if self.handshake:
            method, params = "tools/call", {"name": tool, "arguments": arguments}
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return msgspec.json.encode(request) + b"\n"


@dataclass(frozen=True, slots=True)
class AssetPace:
    """Round trips per second, and CPU microseconds of the server for each."""

    rate: float
    cpu_us: float


@dataclass(frozen=True, slots=True)
class AssetStart:
    """Milliseconds from the start of the process to its first answer."""

    wall_ms: float
    cpu_ms: float


def measure_start(contestant: AssetContestant, frame: bytes) -> AssetStart:
    start_time = time.perf_counter()
    with run_server(contestant.command) as server, limit_time(BLOCK_TIMEOUT_SECONDS):
        _open_session(contestant, server)
        server.send(frame)
        _check_answer(server.receive_line())
        return AssetStart((time.perf_counter() - start_time) * 1e3, server.read_usage().cpu * 1e3)


def measure_pace(contestant: AssetContestant, frame: bytes, seconds: float) -> AssetPace:
    """Measure sequential round trips for about this long after a warm-up, both sides on one CPU."""
    with run_server(contestant.command) as server, _pin_to_one_cpu(server):
        with limit_time(BLOCK_TIMEOUT_SECONDS):
            _open_session(contestant, server)
        _repeat_calls(server, frame, seconds / 3)
        cpu, start_time = server.read_usage().cpu, time.perf_counter()
        calls = _repeat_calls(server, frame, seconds)
        elapsed = time.perf_counter() - start_time
        return AssetPace(calls / elapsed, (server.read_usage().cpu - cpu) / calls * 1e6)


def _repeat_calls(server: ServerProcess, frame: bytes, seconds: float) -> int:
    send, receive = server.send, server.receive_line
    end = time.perf_counter() + seconds
    calls = 0
    while time.perf_counter() < end:
        with limit_time(BLOCK_TIMEOUT_SECONDS):
            for _ in range(BLOCK_CALLS):
                send(frame)
                line = receive()
        calls += BLOCK_CALLS
        _check_answer(line)
    return calls


def _open_session(contestant: AssetContestant, server: ServerProcess) -> None:
    if contestant.handshake:
        server.send(mcp.build_initialize())
        mcp.check_initialized(server.receive_line())
        server.send(mcp.build_initialized())


def _check_answer(line: bytes) -> None:
    """Check that a line is a successful answer."""
    if not line.startswith(b'{"jsonrpc":"2.0","id":1,"result":') or b'"ok":true' not in line:
        raise BenchmarkError(f"not what was asked for: {line[:200]!r}")


@contextmanager
def _pin_to_one_cpu(server: ServerProcess) -> Iterator[None]:
    # Only one side works at a time; otherwise the scheduler's choice of one CPU or two would matter
    # more than the call.
    all_cpus = os.sched_getaffinity(0)
    server.pin_to_cpus({max(all_cpus)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_cpus)

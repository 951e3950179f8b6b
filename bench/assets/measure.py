"""One contestant at a time: start it, time the first answer, then round trips of one frame."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from bench.calls import wire as mcp
from bench.calls.process import Broken, Server, running, time_limit

LIMIT = 60.0
"""Seconds for a start, and for each block of calls."""

BLOCK = 10
"""Calls between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A command, and how it is spoken to."""

    name: str
    title: str
    command: Sequence[str]
    handshake: bool = False

    def frame(self, tool: str, arguments: object) -> bytes:
        method, params = tool, arguments
        if self.handshake:
            method, params = "tools/call", {"name": tool, "arguments": arguments}
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return msgspec.json.encode(request) + b"\n"


@dataclass(frozen=True, slots=True)
class Pace:
    """Round trips per second, and CPU microseconds of the server for each."""

    rate: float
    cpu_us: float


@dataclass(frozen=True, slots=True)
class Start:
    """Milliseconds from the start of the process to its first answer."""

    wall_ms: float
    cpu_ms: float


def start(contestant: Contestant, frame: bytes) -> Start:
    began = time.perf_counter()
    with running(contestant.command) as server, time_limit(LIMIT):
        _greet(contestant, server)
        server.send(frame)
        _check(server.receive_line())
        return Start((time.perf_counter() - began) * 1e3, server.usage().cpu * 1e3)


def pace(contestant: Contestant, frame: bytes, seconds: float) -> Pace:
    """Round trips one by one, both sides on one CPU, for about so long after a warm-up."""
    with running(contestant.command) as server, _one_cpu(server):
        with time_limit(LIMIT):
            _greet(contestant, server)
        _repeat(server, frame, seconds / 3)
        cpu, began = server.usage().cpu, time.perf_counter()
        calls = _repeat(server, frame, seconds)
        took = time.perf_counter() - began
        return Pace(calls / took, (server.usage().cpu - cpu) / calls * 1e6)


def _repeat(server: Server, frame: bytes, seconds: float) -> int:
    send, receive = server.send, server.receive_line
    end = time.perf_counter() + seconds
    calls = 0
    while time.perf_counter() < end:
        with time_limit(LIMIT):
            for _ in range(BLOCK):
                send(frame)
                line = receive()
        calls += BLOCK
        _check(line)
    return calls


def _greet(contestant: Contestant, server: Server) -> None:
    if contestant.handshake:
        server.send(mcp.initialize())
        mcp.check_initialized(server.receive_line())
        server.send(mcp.initialized())


def _check(line: bytes) -> None:
    """An answer that says that it is one, and that all is well."""
    if not line.startswith(b'{"jsonrpc":"2.0","id":1,"result":') or b'"ok":true' not in line:
        raise Broken(f"not what was asked for: {line[:200]!r}")


@contextmanager
def _one_cpu(server: Server) -> Iterator[None]:
    # Only one side ever has work; left alone, the scheduler's choice of one CPU or two is worth
    # more than the call.
    everywhere = os.sched_getaffinity(0)
    server.place({max(everywhere)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, everywhere)

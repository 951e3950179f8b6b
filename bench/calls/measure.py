"""One round with one server: start it, time the first answers, then calls both ways."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench.calls import wire
from bench.calls.process import Server, running, time_limit

WINDOW = 32
"""Calls outstanding at once in the parallel part."""

WARM_UP = 2.0
"""Seconds of calls, in each part, before the clock starts. V8 needs some 6,000 calls until it
has compiled everything; with 500 it is measured at a third of its speed."""

WARM_UP_STEP = 200
"""Calls between two looks at the clock while warming up."""

START_LIMIT = 60.0
"""Seconds to the first answer; the slowest peer needs about one."""

CALL_LIMIT = 0.05
"""Seconds per call on average, some fifty times what the slowest peer needs."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one round measured. Milliseconds, calls per second, microseconds, megabytes."""

    initialize_ms: float
    first_call_ms: float
    start_cpu_ms: float
    sequential_rate: float
    parallel_rate: float
    sequential_cpu_us: float
    parallel_cpu_us: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class _Pace:
    rate: float
    cpu_us: float
    next_id: int


def rehearse(command: Sequence[str]) -> None:
    """Start once unmeasured: fills the page cache, writes bytecode, finds a broken server.

    Raises:
        Broken: the server does not answer, or not rightly.
    """
    with running(command) as server:
        _first_answers(server)


def measure(command: Sequence[str], calls: int) -> Sample:
    """Run one round.

    Raises:
        Broken: the server does not answer, or one of its answers is wrong.
    """
    began = time.perf_counter()
    with running(command) as server:
        initialized, called = _first_answers(server)
        start_cpu = server.usage().cpu
        with _sharing_one_cpu(server):
            sequential = _warm(_one_by_one, server, 2, calls)
        parallel = _warm(_in_parallel, server, sequential.next_id, calls)
        peak = server.usage().peak
    return Sample(
        initialize_ms=(initialized - began) * 1e3,
        first_call_ms=(called - began) * 1e3,
        start_cpu_ms=start_cpu * 1e3,
        sequential_rate=sequential.rate,
        parallel_rate=parallel.rate,
        sequential_cpu_us=sequential.cpu_us,
        parallel_cpu_us=parallel.cpu_us,
        peak_mb=peak / 1e6,
    )


def _first_answers(server: Server) -> tuple[float, float]:
    """When the answers to `initialize` and to the first call (id 1) were there."""
    (call,) = wire.calls(1, 1)
    with time_limit(START_LIMIT):
        server.send(wire.initialize())
        hello = server.receive_line()
        initialized = time.perf_counter()
        wire.check_initialized(hello)
        server.send(wire.initialized() + call)
        answer = server.receive_line()
        called = time.perf_counter()
    wire.check_calls(answer, 1, 1, ordered=True)
    return initialized, called


@contextmanager
def _sharing_one_cpu(server: Server) -> Iterator[None]:
    """Keep both sides on one CPU.

    When only one of them ever has work, the scheduler may put them on one CPU or on two, and a
    wake-up across CPUs costs more than the call: left alone, the same server is three times
    slower in one round than in the next.
    """
    everywhere = os.sched_getaffinity(0)
    server.place({max(everywhere)})
    try:
        yield
    finally:
        server.place(everywhere)


def _warm(
    part: Callable[[Server, int, int], _Pace], server: Server, first: int, count: int
) -> _Pace:
    """Call for a while unmeasured, then measure `count` calls."""
    limit = time.monotonic() + WARM_UP
    while time.monotonic() < limit:
        first = part(server, first, WARM_UP_STEP).next_id
    return part(server, first, count)


def _one_by_one(server: Server, first: int, count: int) -> _Pace:
    """Send each call when the answer to the one before is there."""
    frames = wire.calls(first, count)
    send, receive_line = server.send, server.receive_line
    answers = []
    with time_limit(10 + CALL_LIMIT * count):
        cpu, began = server.usage().cpu, time.perf_counter()
        for frame in frames:
            send(frame)
            answers.append(receive_line())
        took = time.perf_counter() - began
        cpu = server.usage().cpu - cpu
    wire.check_calls(b"".join(answers), first, count, ordered=True)
    return _Pace(count / took, cpu / count * 1e6, first + count)


def _in_parallel(server: Server, first: int, count: int) -> _Pace:
    """Keep `WINDOW` calls outstanding: each answer, in any order, lets the next one go."""
    frames = wire.calls(first, count)
    send, receive = server.send, server.receive
    chunks = []
    sent, answered = WINDOW, 0
    with time_limit(10 + CALL_LIMIT * count):
        cpu, began = server.usage().cpu, time.perf_counter()
        send(b"".join(frames[:sent]))
        while answered < count:
            chunk = receive()
            chunks.append(chunk)
            arrived = chunk.count(b"\n")
            answered += arrived
            if following := frames[sent : sent + arrived]:
                send(b"".join(following))
                sent += arrived
        took = time.perf_counter() - began
        cpu = server.usage().cpu - cpu
    wire.check_calls(b"".join(chunks), first, count, ordered=False)
    return _Pace(count / took, cpu / count * 1e6, first + count)

"""One round with one server: start it, time the first answers, then measure calls both ways."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench.calls import wire
from bench.calls.process import ServerProcess, limit_time, run_server

PARALLEL_CALLS = 32
"""Calls in flight at once in the parallel part."""

WARM_UP_SECONDS = 2.0
"""Seconds of calls, in each part, before the clock starts. V8 needs some 6,000 calls until it has
compiled everything; after 500 calls only a third of its speed is measured."""

WARM_UP_STEP_CALLS = 200
"""Calls between two checks of the clock while warming up."""

START_TIMEOUT_SECONDS = 60.0
"""Seconds to the first answer; the slowest peer needs about one."""

CALL_TIMEOUT_SECONDS = 0.05
"""Seconds per call on average, some fifty times the need of the slowest peer."""


@dataclass(frozen=True, slots=True)
class CallSample:
    """The figures of one round, in milliseconds, calls per second, microseconds and megabytes."""

    initialize_ms: float
    first_call_ms: float
    start_cpu_ms: float
    sequential_rate: float
    parallel_rate: float
    sequential_cpu_us: float
    parallel_cpu_us: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class _CallPace:
    rate: float
    cpu_us: float
    next_id: int


def rehearse_start(command: Sequence[str]) -> None:
    """Start a server once unmeasured: fill the page cache, write bytecode, find a broken server.

    Raises:
        BenchmarkError: The server does not answer, or gives a wrong answer.
    """
    with run_server(command) as server:
        _time_first_answers(server)


def measure_round(command: Sequence[str], calls: int) -> CallSample:
    """Run one round.

    Raises:
        BenchmarkError: The server does not answer, or one of its answers is wrong.
    """
    start_time = time.perf_counter()
    with run_server(command) as server:
        initialized_at, called_at = _time_first_answers(server)
        start_cpu = server.read_usage().cpu
        with _pin_to_one_cpu(server):
            sequential = _measure_warm(_call_one_by_one, server, 2, calls)
        parallel = _measure_warm(_call_in_parallel, server, sequential.next_id, calls)
        peak = server.read_usage().peak
    return CallSample(
        initialize_ms=(initialized_at - start_time) * 1e3,
        first_call_ms=(called_at - start_time) * 1e3,
        start_cpu_ms=start_cpu * 1e3,
        sequential_rate=sequential.rate,
        parallel_rate=parallel.rate,
        sequential_cpu_us=sequential.cpu_us,
        parallel_cpu_us=parallel.cpu_us,
        peak_mb=peak / 1e6,
    )


def _time_first_answers(server: ServerProcess) -> tuple[float, float]:
    """Return the times of the answers to `initialize` and to the first call (id 1)."""
    (call,) = wire.build_calls(1, 1)
    with limit_time(START_TIMEOUT_SECONDS):
        server.send(wire.build_initialize())
        hello = server.receive_line()
        initialized_at = time.perf_counter()
        wire.check_initialized(hello)
        server.send(wire.build_initialized() + call)
        answer = server.receive_line()
        called_at = time.perf_counter()
    wire.check_calls(answer, 1, 1, ordered=True)
    return initialized_at, called_at


@contextmanager
def _pin_to_one_cpu(server: ServerProcess) -> Iterator[None]:
    """Keep both sides on one CPU.

    When only one of them works at a time, the scheduler may put them on one CPU or on two, and a
    wake-up across CPUs costs more than the call: without this, the same server is three times
    slower in one round than in the next.
    """
    all_cpus = os.sched_getaffinity(0)
    server.pin_to_cpus({max(all_cpus)})
    try:
        yield
    finally:
        server.pin_to_cpus(all_cpus)


def _measure_warm(
    measure_calls: Callable[[ServerProcess, int, int], _CallPace], server: ServerProcess, first: int, count: int
) -> _CallPace:
    """Call for a while unmeasured, then measure `count` calls."""
    limit = time.monotonic() + WARM_UP_SECONDS
    while time.monotonic() < limit:
        first = measure_calls(server, first, WARM_UP_STEP_CALLS).next_id
    return measure_calls(server, first, count)


def _call_one_by_one(server: ServerProcess, first: int, count: int) -> _CallPace:
    """Send each call after the answer to the one before has arrived."""
    frames = wire.build_calls(first, count)
    send, receive_line = server.send, server.receive_line
    answers = []
    with limit_time(10 + CALL_TIMEOUT_SECONDS * count):
        cpu, start_time = server.read_usage().cpu, time.perf_counter()
        for frame in frames:
            send(frame)
            answers.append(receive_line())
        elapsed = time.perf_counter() - start_time
        cpu = server.read_usage().cpu - cpu
    wire.check_calls(b"".join(answers), first, count, ordered=True)
    return _CallPace(count / elapsed, cpu / count * 1e6, first + count)


def _call_in_parallel(server: ServerProcess, first: int, count: int) -> _CallPace:
    """Keep `PARALLEL_CALLS` calls in flight; each answer, in any order, lets the next one go."""
    frames = wire.build_calls(first, count)
    send, receive = server.send, server.receive
    chunks = []
    sent, answered = PARALLEL_CALLS, 0
    with limit_time(10 + CALL_TIMEOUT_SECONDS * count):
        cpu, start_time = server.read_usage().cpu, time.perf_counter()
        send(b"".join(frames[:sent]))
        while answered < count:
            chunk = receive()
            chunks.append(chunk)
            arrived = chunk.count(b"\n")
            answered += arrived
            if following := frames[sent : sent + arrived]:
                send(b"".join(following))
                sent += arrived
        elapsed = time.perf_counter() - start_time
        cpu = server.read_usage().cpu - cpu
    wire.check_calls(b"".join(chunks), first, count, ordered=False)
    return _CallPace(count / elapsed, cpu / count * 1e6, first + count)

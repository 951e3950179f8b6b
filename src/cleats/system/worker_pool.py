"""Processes that work through a list of tasks, and survive tasks that end their process.

A parser is native code: it may crash, and a parse that hangs cannot be interrupted. So each task
runs in another process, under time limits, and the worst possible result is `LostTask`. Workers are
forked where that is safe, and end with the process that started them, because their pipe closes.
"""

import faulthandler
import gc
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any, Final, Generic, TypeAlias, TypeVar

from cleats.system.processes.fork import start_process

T = TypeVar("T")
NumberedTask: TypeAlias = tuple[int, T]

TASK_TIMEOUT_SECONDS: Final = 60.0
"""Time limit for one task: the largest real files take six seconds, and a busy machine is slow."""

MIN_TASK_CPU_SECONDS, WEIGHT_PER_CPU_SECOND = 3.0, 1 << 16
"""The CPU time that any task may use, and the weight that allows another second. A real task uses a
hundredth of it, and since CPU time ignores other processes, it is the same on a busy machine."""

MAX_BATCH_TASKS, MAX_BATCH_WEIGHT = 16, 1 << 18
"""The size of a full batch: large enough to make a message cheap, small enough to distribute work."""

MAX_BATCHES_PER_WORKER: Final = 2
"""The number of batches assigned to one worker, so that it never waits for the next."""

MAX_PENDING_WEIGHT: Final = 8 << 20
"""The weight of tasks that may be running, or waiting for an earlier result."""


class LostTask:
    """The result of a task that ended its process, or took too long."""


@dataclass(eq=False)
class _PoolWorker(Generic[T]):
    process: BaseProcess
    pipe: "Connection[Any, Any]"
    batches: "deque[deque[NumberedTask[T]]]" = field(default_factory=deque)
    """The tasks it has not answered yet, by batch."""


class ProcessPool(Generic[T]):
    """A number of processes that all run one function."""

    def __init__(self, work: Callable[[T], bytes], count: int, *, limited: bool = True) -> None:
        """Set up `count` processes; with `limited`, tasks that take too long are lost."""
        self._work, self._count, self._limited = work, count, limited
        self._workers: list[_PoolWorker[T]] = []
        self._queued_batches: deque[deque[NumberedTask[T]]] = deque()

    def map(self, tasks: Sequence[T], weigh: Callable[[T], int]) -> Iterator[tuple[T, bytes | LostTask]]:
        """Run every task; yield it with its result, in the given order."""
        self._queued_batches = deque(_split_batches(tasks, weigh))
        ready: dict[int, bytes | LostTask] = {}
        pending_weight = position = 0
        try:
            while position < len(tasks):
                pending_weight += self._assign_batches(MAX_PENDING_WEIGHT - pending_weight, weigh)
                ready.update(self._receive_results())
                while position in ready:
                    yield tasks[position], ready.pop(position)
                    pending_weight -= weigh(tasks[position])
                    position += 1
        finally:
            for worker in self._workers:
                worker.pipe.close()
                worker.process.kill()
            for worker in self._workers:
                worker.process.join()
            self._workers.clear()

    def _assign_batches(self, room: int, weigh: Callable[[T], int]) -> int:
        assigned_weight = 0
        while self._queued_batches and assigned_weight < room and (worker := self._pick_worker()) is not None:
            batch = self._queued_batches.popleft()
            assigned_weight += sum(weigh(task) for _, task in batch)
            worker.batches.append(batch)
            limited_tasks = [
                (number, task, MIN_TASK_CPU_SECONDS + weigh(task) / WEIGHT_PER_CPU_SECOND) for number, task in batch
            ]
            with suppress(OSError):  # it has died, which is detected when it is polled
                worker.pipe.send(limited_tasks)
        return assigned_weight

    def _pick_worker(self) -> "_PoolWorker[T] | None":
        best = min(self._workers, key=lambda worker: len(worker.batches), default=None)
        if len(self._workers) < self._count and (best is None or best.batches):
            serve = partial(_run_tasks, work=self._work, limit=TASK_TIMEOUT_SECONDS if self._limited else 0.0)
            self._workers.append(_PoolWorker(*start_process(serve)))
            return self._workers[-1]
        return best if best is not None and len(best.batches) < MAX_BATCHES_PER_WORKER else None

    def _receive_results(self) -> Iterator[tuple[int, bytes | LostTask]]:
        ready_pipes = {id(pipe) for pipe in wait([worker.pipe for worker in self._workers])}
        for worker in [worker for worker in self._workers if id(worker.pipe) in ready_pipes]:
            try:
                number, result = worker.pipe.recv()
            except (EOFError, OSError):
                yield from self._reap_worker(worker)
                continue
            worker.batches[0].popleft()
            if not worker.batches[0]:
                worker.batches.popleft()
            yield number, result

    def _reap_worker(self, worker: "_PoolWorker[T]") -> Iterator[tuple[int, LostTask]]:
        self._workers.remove(worker)
        worker.pipe.close()
        worker.process.join()
        unfinished_tasks = deque(chain.from_iterable(worker.batches))
        if unfinished_tasks:
            yield unfinished_tasks.popleft()[0], LostTask()
        if unfinished_tasks:
            self._queued_batches.appendleft(unfinished_tasks)


def _split_batches(tasks: Sequence[T], weigh: Callable[[T], int]) -> "Iterator[deque[NumberedTask[T]]]":
    batch: deque[NumberedTask[T]] = deque()
    weight = 0
    for number, task in enumerate(tasks):
        batch.append((number, task))
        weight += weigh(task)
        if len(batch) == MAX_BATCH_TASKS or weight >= MAX_BATCH_WEIGHT:
            yield batch
            batch, weight = deque(), 0
    if batch:
        yield batch


def _run_tasks(pipe: "Connection[Any, Any]", work: Callable[[Any], bytes], limit: float) -> None:
    # Facts are trees without cycles: looking for garbage among them costs a fifth of the work.
    gc.freeze()
    gc.disable()
    _reset_signals()
    with Path(os.devnull).open("w") as null_file, suppress(EOFError, OSError, KeyboardInterrupt):
        while batch := pipe.recv():
            for number, task, cpu_seconds in batch:
                if limit:
                    _limit_seconds(limit, cpu_seconds, null_file)
                result = work(task)
                if limit:
                    _limit_seconds(0, 0, null_file)
                pipe.send((number, result))
            gc.collect(0)  # only what the batch has made: the caches of a long build are large


def _reset_signals() -> None:
    """Let the signals of timers end this process, whatever its parent does with them."""
    if sys.platform != "win32":
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)


def _limit_seconds(seconds: float, cpu_seconds: float, null_file: IO[str]) -> None:
    """End this process after these seconds, or once it has used this much CPU time; 0 removes the limits.

    Timers of the system work while native code holds the interpreter. Where there are none, a thread that is
    started for each task only limits the time on the clock.
    """
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    elif seconds:
        faulthandler.dump_traceback_later(seconds, exit=True, file=null_file)
    else:
        faulthandler.cancel_dump_traceback_later()

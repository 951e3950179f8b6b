"""Processes that work through a list of tasks, and what becomes of a task that ends its process.

A parser is native code: it may crash, and a parse that hangs cannot be interrupted. So each task
runs in another process, under limits of time, and the worst that it can do is to be `Lost`.
Results come in the order of the tasks, and only so many are waited for at once that memory does
not grow with the list.

Workers are forked where that is safe, so that libraries are loaded once. They end with the process
that started them: their pipe does.
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
from pathlib import Path
from select import POLLIN, poll
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from cleats.runtime.forks import fork

T = TypeVar("T")
Numbered: TypeAlias = tuple[int, T]

LIMIT: Final = 60.0
"""Seconds for one task: the largest honest files take six, and a busy machine is slow."""

LEAST, RATE = 3.0, 1 << 16
"""Seconds of CPU that any task may use, and the weight that is worth another one. An honest task
uses a hundredth of it, and because others do not count, it is the same on a busy machine."""

TASKS, WEIGHT = 16, 1 << 18
"""What makes a batch full: enough for one message to cost nothing, little enough to share out."""

AHEAD: Final = 2
"""Batches that one worker has been given, so that it never waits for the next."""

WINDOW: Final = 8 << 20
"""Weight that may be out, or wait for an earlier result."""


class Lost:
    """The result of a task that ended its process, or took too long."""


class _Process(Protocol):
    def kill(self) -> None: ...
    def join(self) -> None: ...


class _Pipe(Protocol):
    def fileno(self) -> int: ...
    def send(self, value: Any, /) -> None: ...
    def recv(self) -> Any: ...
    def close(self) -> None: ...


@dataclass(eq=False)
class _Worker(Generic[T]):
    process: _Process
    pipe: _Pipe
    given: "deque[deque[Numbered[T]]]" = field(default_factory=deque)
    """What it still has to answer, by batch."""


class Pool(Generic[T]):
    """A number of processes that all run one function."""

    def __init__(self, work: Callable[[T], bytes], count: int, *, limited: bool = True) -> None:
        """Let so many processes work; `limited` tasks are lost when they take too long."""
        self._work, self._count, self._limited = work, count, limited
        self._workers: list[_Worker[T]] = []
        self._waiting: deque[deque[Numbered[T]]] = deque()

    def map(
        self, tasks: Sequence[T], weigh: Callable[[T], int]
    ) -> Iterator[tuple[T, bytes | Lost]]:
        """Run every task; yield it with its result, in the order given."""
        self._waiting = deque(_batches(tasks, weigh))
        ready: dict[int, bytes | Lost] = {}
        out = position = 0
        try:
            while position < len(tasks):
                out += self._hand_out(WINDOW - out, weigh)
                ready.update(self._arrivals())
                while position in ready:
                    yield tasks[position], ready.pop(position)
                    out -= weigh(tasks[position])
                    position += 1
        finally:
            self._end()

    def _hand_out(self, room: int, weigh: Callable[[T], int]) -> int:
        """Give out batches; return what they weigh."""
        handed = 0
        while self._waiting and handed < room and (worker := self._idlest()) is not None:
            batch = self._waiting.popleft()
            handed += sum(weigh(task) for _, task in batch)
            worker.given.append(batch)
            allowed = [(number, task, LEAST + weigh(task) / RATE) for number, task in batch]
            with suppress(OSError):  # it has died; that is seen when it is listened to
                worker.pipe.send(allowed)
        return handed

    def _idlest(self) -> "_Worker[T] | None":
        best = min(self._workers, key=lambda worker: len(worker.given), default=None)
        if len(self._workers) < self._count and (best is None or best.given):
            self._workers.append(self._start())
            return self._workers[-1]
        return best if best is not None and len(best.given) < AHEAD else None

    def _arrivals(self) -> Iterator[tuple[int, bytes | Lost]]:
        for worker in self._heard():
            try:
                number, result = worker.pipe.recv()
            except (EOFError, OSError):
                yield from self._bury(worker)
                continue
            worker.given[0].popleft()
            if not worker.given[0]:
                worker.given.popleft()
            yield number, result

    def _heard(self) -> "list[_Worker[T]]":
        if sys.platform != "linux":
            from multiprocessing.connection import wait  # noqa: PLC0415 - pipes are of many kinds

            heard = {id(each) for each in wait([worker.pipe for worker in self._workers])}
            return [worker for worker in self._workers if id(worker.pipe) in heard]
        waiting = poll()
        for worker in self._workers:
            waiting.register(worker.pipe, POLLIN)
        ready = {descriptor for descriptor, _ in waiting.poll()}
        return [worker for worker in self._workers if worker.pipe.fileno() in ready]

    def _bury(self, worker: "_Worker[T]") -> Iterator[tuple[int, Lost]]:
        self._workers.remove(worker)
        worker.pipe.close()
        worker.process.join()
        left = deque(chain.from_iterable(worker.given))
        if left:
            yield left.popleft()[0], Lost()
        if left:
            self._waiting.appendleft(left)

    def _start(self) -> "_Worker[T]":
        serve = partial(_serve, work=self._work, limit=LIMIT if self._limited else 0.0)
        process, ours = fork(serve) if sys.platform == "linux" else _spawned(serve)
        return _Worker(process, ours)

    def _end(self) -> None:
        for worker in self._workers:
            worker.pipe.close()
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
        self._workers.clear()


def _batches(tasks: Sequence[T], weigh: Callable[[T], int]) -> "Iterator[deque[Numbered[T]]]":
    batch: deque[Numbered[T]] = deque()
    weight = 0
    for number, task in enumerate(tasks):
        batch.append((number, task))
        weight += weigh(task)
        if len(batch) == TASKS or weight >= WEIGHT:
            yield batch
            batch, weight = deque(), 0
    if batch:
        yield batch


def _spawned(serve: Callable[[_Pipe], None]) -> tuple[_Process, _Pipe]:
    from multiprocessing import get_context  # noqa: PLC0415 - a hundred modules

    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _serve(pipe: _Pipe, work: Callable[[Any], bytes], limit: float) -> None:
    # Facts are trees without cycles: looking for garbage among them costs a fifth of the work.
    gc.freeze()
    gc.disable()
    with Path(os.devnull).open("w") as nowhere, suppress(EOFError, OSError, KeyboardInterrupt):
        while batch := pipe.recv():
            for number, task, allowed in batch:
                if limit:
                    # Both work while native code holds the interpreter, as no other timer does.
                    faulthandler.dump_traceback_later(limit, exit=True, file=nowhere)
                    _end_after(allowed)
                result = work(task)
                if limit:
                    _end_after(0)
                    faulthandler.cancel_dump_traceback_later()
                pipe.send((number, result))
            gc.collect()


def _end_after(seconds: float) -> None:
    """End this process once it has used so many seconds of CPU from now on; 0 takes that back."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)

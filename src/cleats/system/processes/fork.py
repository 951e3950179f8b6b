"""A copy of this process that works for it, and the pipe between the two."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any


def start_process(serve: "Callable[[Connection[Any, Any]], None]") -> "tuple[BaseProcess, Connection[Any, Any]]":
    """Start a process that serves the other end of a pipe; it is forked where that is safe."""
    if sys.platform == "linux":
        context = get_context("fork")
    else:
        context = get_context("spawn")
    parent_pipe, child_pipe = context.Pipe()
    process = context.Process(target=_serve_pipe, args=(serve, child_pipe), daemon=True)
    with warnings.catch_warnings():
        # Python warns that threads do not survive a fork. The existing ones belong to numpy and
        # Tantivy, and the child does not need them.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    child_pipe.close()
    return process, parent_pipe


def _serve_pipe(serve: "Callable[[Connection[Any, Any]], None]", pipe: "Connection[Any, Any]") -> None:
    status = 1
    try:
        if sys.platform == "linux":
            # Locks and the pipes of others must end with their owner.
            os.closerange(3, pipe.fileno())
            os.closerange(pipe.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        serve(pipe)
        status = 0
    finally:
        os._exit(status)  # buffers and exit handlers belong to the original process


@contextmanager
def run_in_child_process(work: Callable[[], bytes]) -> Iterator[Callable[[], bytes | None]]:
    """Run the work in a child process; yield a function that waits for its result.

    The result is None if there is no such process, or if it died: then the caller must do the work.
    Leaving the block without waiting ends the process.
    """
    if sys.platform != "linux":
        yield lambda: None
        return

    def send_result(pipe: "Connection[Any, Any]") -> None:
        with suppress(OSError, KeyboardInterrupt):  # the parent no longer waits for it
            pipe.send(work())

    def wait_for_result() -> bytes | None:
        try:
            result: bytes = parent_pipe.recv()
        except EOFError:
            return None
        return result

    process, parent_pipe = start_process(send_result)
    try:
        yield wait_for_result
    finally:
        parent_pipe.close()
        process.kill()
        process.join()

"""Work that goes on beside this process, and is waited for when its result is needed."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from cleats.runtime.forks import Channel, fork


@contextmanager
def aside(work: Callable[[], bytes]) -> Iterator[Callable[[], bytes | None]]:
    """Let another process do it; what is yielded waits for the result.

    None is the result where there is no such process, or it died: then it must be done here. Who
    leaves the block without asking ends the process.
    """
    if sys.platform != "linux":
        yield lambda: None
        return

    def serve(channel: Channel) -> None:
        with suppress(OSError, KeyboardInterrupt):  # nobody waits for it any more
            channel.send(work())

    def wait() -> bytes | None:
        try:
            result: bytes = ours.recv()
        except EOFError:
            return None
        return result

    process, ours = fork(serve)
    try:
        yield wait
    finally:
        ours.close()
        process.kill()
        process.join()

"""The event loop of a server, and the garbage collector beside it."""

import gc
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from typing import Any


def freeze_startup_objects() -> None:
    """Exclude the objects created at start-up from garbage collection.

    Importing the SDK creates half a million objects that are never freed. Scanning them again and again takes a tenth
    of the start-up time, so a server imports with the collector off. Afterwards it may run less often than usual: a
    call leaves a hundred objects behind, and hardly ever a cycle.
    """
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def run_server(main: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
    """Run a server to its end on the fastest event loop that is installed."""
    import anyio  # noqa: PLC0415 - the rpc wire starts without it

    gc.disable()  # until `freeze_startup_objects`
    anyio.run(main, *args, backend_options={"use_uvloop": find_spec("uvloop") is not None})

"""What a test opens for as long as it runs: it is closed after the test, whatever became of it."""

from contextlib import ExitStack
from typing import Protocol, TypeVar


class Closes(Protocol):
    """What is to be closed."""

    def close(self) -> None: ...


Held = TypeVar("Held", bound=Closes)

_open = ExitStack()


def held(thing: Held) -> Held:
    """The same thing; it is closed when the test ends."""
    _open.callback(thing.close)
    return thing


def let_go() -> None:
    """Close all, the newest first."""
    _open.close()

"""Resources that a test opens for as long as it runs; they are always closed after the test."""

from contextlib import ExitStack
from typing import Protocol, TypeVar


class Closable(Protocol):
    """A resource with a close method."""

    def close(self) -> None: ...


ClosableT = TypeVar("ClosableT", bound=Closable)

_open_resources = ExitStack()


def close_after_test(resource: ClosableT) -> ClosableT:
    """Return the resource, and close it when the test ends."""
    _open_resources.callback(resource.close)
    return resource


def close_test_resources() -> None:
    """Close all resources, the newest first."""
    _open_resources.close()

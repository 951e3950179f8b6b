"""The two directions of a contract."""

from enum import Enum
from typing import TypeVar

T = TypeVar("T")


class Side(Enum):
    """Callers write inputs, so they may only grow; readers read outputs, so they may only shrink.

    The envelope is an output that all tools share.
    """

    INPUT = "INPUT"
    OUTPUT = "OUTPUT"
    ENVELOPE = "ENVELOPE"

    def ordered(self, old: T, new: T) -> tuple[T, T]:
        """(what has to be contained, what has to contain it)."""
        return (old, new) if self is Side.INPUT else (new, old)

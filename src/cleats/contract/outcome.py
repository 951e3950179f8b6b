"""The four outcomes of a call. Surfaces match on these and on nothing else."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from cleats.contract.errors import ToolError


@dataclass(frozen=True, slots=True)
class Done:
    """The handler finished."""

    result: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler ran and could not finish."""

    error: ToolError


@dataclass(frozen=True, slots=True)
class Rejected:
    """The handler never ran: unknown tool, bad arguments, full queue."""

    error: ToolError


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The caller withdrew the call. The surface decides whether that is answered."""


Outcome: TypeAlias = Done | Failed | Rejected | Cancelled

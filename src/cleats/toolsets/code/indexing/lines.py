"""What a builder and whoever waits for it say to each other.

The order goes to its stdin. On stdout come lines of JSON, each an object with one key: `progress`
as often as there is any, and at the end `report` or `error`.
"""

from typing import Any

import msgspec
from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.indexing.options import Options
from cleats.toolsets.code.indexing.progress import Progress
from cleats.toolsets.code.indexing.report import BuildReport


class Order(Struct, frozen=True):
    """What to build, and where it is kept."""

    root: str
    cache_dir: str
    options: Options


class Failure(Struct, frozen=True):
    """An error on its way from the builder to the caller."""

    code: str
    message: str
    hint: str = ""
    retryable: bool = False

    @classmethod
    def of(cls, error: ToolError) -> "Failure":
        return cls(error.code.name, error.message, error.hint, error.retryable)

    def error(self) -> ToolError:
        return ToolError(
            ErrorCode[self.code], self.message, hint=self.hint, retryable=self.retryable
        )


class Line(Struct, frozen=True, omit_defaults=True):
    """One line of a builder."""

    progress: Progress | None = None
    report: BuildReport | None = None
    error: Failure | None = None


def spoken(**said: Any) -> bytes:
    """A line for whoever listens."""
    return msgspec.json.encode(Line(**said)) + b"\n"

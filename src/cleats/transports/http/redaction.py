"""Errors without the places of this machine: a path outside the known folders is left out.

Like the fence it goes around the tools, so that it also holds for calls that come over `/mcp`.
"""

import os.path
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from cleats.contract.errors import ToolError
from cleats.contract.tools import Toolset

P = ParamSpec("P")
T = TypeVar("T")

HIDDEN = "<path>"

# A word that may be a path: from a slash (or a drive) to whatever ends words. The colon of
# `file.py:12` ends it too.
_END = r"""\s'"`<>|;,()\[\]{}"""
_PATH = re.compile(rf"(?<![\w./<-])(?:/(?!/)[^:{_END}]+|[A-Za-z]:\\[^{_END}]+)")


class Redaction:
    """Knows the folders whose paths the caller may read."""

    def __init__(self, folders: Sequence[Path]) -> None:
        roots = {os.path.normpath(each) for each in folders}
        self._roots = sorted(roots | {os.path.realpath(each) for each in roots})

    def around(self, toolset: Toolset) -> Toolset:
        """The toolset, whose tools and routes fail discreetly."""
        tools = [replace(tool, run=self._discreet(tool.run)) for tool in toolset.tools]
        routes = [replace(route, run=self._discreet(route.run)) for route in toolset.routes]
        return replace(toolset, tools=tools, routes=routes)

    def _discreet(self, run: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        async def discreet(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return await run(*args, **kwargs)
            except ToolError as error:
                raise self.error(error) from error
            except ExceptionGroup as group:
                crash: Exception = group
                while isinstance(crash, ExceptionGroup) and len(crash.exceptions) == 1:
                    crash = crash.exceptions[0]
                if isinstance(crash, ToolError):
                    raise self.error(crash) from group
                raise

        return discreet

    def error(self, error: ToolError) -> ToolError:
        """The same error, fit to leave."""
        return ToolError(
            error.code,
            self.text(error.message),
            hint=self.text(error.hint),
            retryable=error.retryable,
            details=self.value(error.details),
        )

    def value(self, value: Any) -> Any:
        """Any JSON value with its texts redacted."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {name: self.value(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return value

    def text(self, text: str) -> str:
        """A text with foreign paths left out."""
        return _PATH.sub(self._judge, text) if "/" in text or "\\" in text else text

    def _judge(self, found: "re.Match[str]") -> str:
        path = found[0].rstrip(".")
        plain = os.path.normpath(path)
        if self._is_known(plain) or not _is_place(plain):
            return found[0]
        return HIDDEN + found[0][len(path) :]

    def _is_known(self, path: str) -> bool:
        return any(path == root or path.startswith(f"{root}{os.sep}") for root in self._roots)


def _is_place(path: str) -> bool:
    """Whether it leads into this machine: a JSON pointer or a route looks the same otherwise."""
    if not path.startswith("/"):
        return True  # from a drive
    top = path.split("/")[1]
    return os.path.exists(f"/{top}")  # noqa: PTH110 - text all along

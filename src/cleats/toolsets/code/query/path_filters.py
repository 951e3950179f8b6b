"""Path and extension filters, compiled to patterns for paths in the repository.

A value is a part of a path, a glob or a `/regex/`; after a `!` it excludes. An absolute path must
be inside the repository.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from cleats.toolsets.code.query.arguments import SearchArgument
from cleats.toolsets.code.query.filters import NegatedCondition, PathPart, PatternCondition
from cleats.toolsets.code.query.patterns import compile_glob, compile_regex, is_glob, make_pattern_error

NO_MATCH_PATTERN = re.compile(r"(?!)")


class SearchRoots(Struct, frozen=True):
    """The folders that absolute paths may point into."""

    root: Path | None = None
    other_roots: Sequence[Path] = ()
    """Other repositories that are searched with the same values."""

    def contains(self, text: str) -> bool:
        """Return whether a text is an absolute path inside one of the roots."""
        roots = [*self.other_roots, *([self.root] if self.root else [])]
        return Path(text).is_absolute() and any(map(_resolve_path(text).is_relative_to, roots))

    def make_relative(self, argument: str, text: str) -> str | None:
        """Return a path relative to the repository; None if it is in another repository.

        Raises:
            ToolError: INVALID_REQUEST, it is in none of them.
        """
        path = _resolve_path(text)
        if self.root is not None and path.is_relative_to(self.root):
            return path.relative_to(self.root).as_posix()
        if any(path.is_relative_to(other_root) for other_root in self.other_roots):
            return None
        raise make_pattern_error(
            argument,
            text,
            "is not in the repository",
            hint=f"Write the path from {self.root or 'the root of the repository'}, without a slash at its beginning.",
        )


def _resolve_path(text: str) -> Path:
    return Path(os.path.realpath(text))


def compile_path_conditions(
    argument: SearchArgument, values: Iterable[str], roots: SearchRoots, *, cased: bool
) -> Iterator[PatternCondition | NegatedCondition]:
    """Yield the conditions for the values of an argument: any included one, no excluded one.

    Raises:
        ToolError: INVALID_REQUEST, a value cannot be used.
    """
    included: list[re.Pattern[str] | PathPart] = []
    excluded: list[re.Pattern[str] | PathPart] = []
    for value in values:
        target, text = (excluded, value[1:].strip()) if value.startswith("!") else (included, value)
        if not text:
            raise make_pattern_error(argument.name, value, "names nothing to leave out")
        target.append(_compile_pattern(argument, text, roots, cased=cased))
    if included:
        yield PatternCondition(tuple(included), cased)
    if excluded:
        yield NegatedCondition(PatternCondition(tuple(excluded), cased))


def _compile_pattern(
    argument: SearchArgument, text: str, roots: SearchRoots, *, cased: bool
) -> re.Pattern[str] | PathPart:
    is_path_filter = argument.matcher != "extension"
    ignore_case = not (cased and is_path_filter)
    # The path of a folder with a slash at its end has the form of an expression.
    compiled = None if roots.contains(text) else compile_regex(argument.name, text, ignore_case=ignore_case)
    if compiled is not None:
        return compiled
    if not is_path_filter:
        return compile_glob(argument.name, text.lower().removeprefix("*").removeprefix("."), ignore_case=True)
    if Path(text).is_absolute():
        return _compile_absolute(argument, roots.make_relative(argument.name, text), ignore_case=ignore_case)
    plain = text.removeprefix("./")
    if is_glob(plain):
        return compile_glob(argument.name, plain, ignore_case=ignore_case)
    plain = plain.replace("\\", "/")
    return PathPart(plain if cased else plain.lower(), argument.matcher == "file" and "/" not in plain)


def _compile_absolute(argument: SearchArgument, path: str | None, *, ignore_case: bool) -> re.Pattern[str]:
    """Compile an absolute path to a pattern for exactly one file, or for all below a folder."""
    if path is None:
        return NO_MATCH_PATTERN
    if is_glob(path):
        return compile_glob(argument.name, path, ignore_case=ignore_case)
    prefix = "" if path == "." else rf"{re.escape(path)}(?:/|\Z)"
    return re.compile(rf"\A{prefix}", re.IGNORECASE if ignore_case else 0)

"""Paths and extensions that a caller asks for: as patterns for paths in the repository.

A value is a part of a path, a glob or a `/regex/`; after a `!` it says what is left out. A path
from the root of the machine is one in the repository, or a mistake.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from cleats.toolsets.code.search.arguments import Argument
from cleats.toolsets.code.search.filters import Fits, Lacks, Part
from cleats.toolsets.code.search.patterns import glob, is_glob, refused, regex

NOWHERE = re.compile(r"(?!)")


class Roots(Struct, frozen=True):
    """Where paths from the root of the machine may lead."""

    own: Path | None = None
    others: Sequence[Path] = ()
    """Repositories that are searched with the same values, each for its own."""

    def hold(self, text: str) -> bool:
        """Whether a text is the path of a place in one of them."""
        roots = [*self.others, *([self.own] if self.own else [])]
        return Path(text).is_absolute() and any(map(_resolved(text).is_relative_to, roots))

    def relative(self, argument: str, text: str) -> str | None:
        """A path in the repository; None for one in another.

        Raises:
            ToolError: INVALID_REQUEST, it is in none.
        """
        path = _resolved(text)
        if self.own is not None and path.is_relative_to(self.own):
            return path.relative_to(self.own).as_posix()
        if any(path.is_relative_to(other) for other in self.others):
            return None
        raise refused(
            argument,
            text,
            "is not in the repository",
            hint=f"Write the path from {self.own or 'the root of the repository'}, without a slash "
            "at its beginning.",
        )


def _resolved(text: str) -> Path:
    return Path(os.path.realpath(text))


def places(
    row: Argument, values: Iterable[str], roots: Roots, *, cased: bool
) -> Iterator[Fits | Lacks]:
    """What the values of an argument ask for: any of the first, and none of those after a `!`.

    Raises:
        ToolError: INVALID_REQUEST, a value cannot be used.
    """
    wanted: list[re.Pattern[str] | Part] = []
    barred: list[re.Pattern[str] | Part] = []
    for value in values:
        kept, text = (barred, value[1:].strip()) if value.startswith("!") else (wanted, value)
        if not text:
            raise refused(row.name, value, "names nothing to leave out")
        kept.append(_pattern(row, text, roots, cased=cased))
    if wanted:
        yield Fits(tuple(wanted), cased)
    if barred:
        yield Lacks(Fits(tuple(barred), cased))


def _pattern(row: Argument, text: str, roots: Roots, *, cased: bool) -> re.Pattern[str] | Part:
    of_files = row.matcher != "extension"
    ignore = not (cased and of_files)
    # The path of a folder with a slash at its end has the form of an expression.
    found = None if roots.hold(text) else regex(row.name, text, ignore_case=ignore)
    if found is not None:
        return found
    if not of_files:
        return glob(row.name, text.lower().removeprefix("*").removeprefix("."), ignore_case=True)
    if Path(text).is_absolute():
        return _absolute(row, roots.relative(row.name, text), ignore=ignore)
    plain = text.removeprefix("./")
    if is_glob(plain):
        return glob(row.name, plain, ignore_case=ignore)
    plain = plain.replace("\\", "/")
    return Part(plain if cased else plain.lower(), row.matcher == "file" and "/" not in plain)


def _absolute(row: Argument, path: str | None, *, ignore: bool) -> re.Pattern[str]:
    """Exactly what a path from the root names: a file, or all below a folder."""
    if path is None:
        return NOWHERE
    if is_glob(path):
        return glob(row.name, path, ignore_case=ignore)
    below = "" if path == "." else rf"{re.escape(path)}(?:/|\Z)"
    return re.compile(rf"\A{below}", re.IGNORECASE if ignore else 0)

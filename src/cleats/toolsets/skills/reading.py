"""One SKILL.md: from bytes to a skill, or to the reason why it is none.

Lenient, as the Agent Skills client guide asks: what can be loaded is loaded, with a word about
what is wrong with it. Only a skill that cannot be offered at all, because nothing says what it is
for, is left out.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from cleats.toolsets.skills.frontmatter import BadHeaderError, Header, parse
from cleats.toolsets.skills.skill import (
    DISABLED_FILE,
    FILE,
    Problem,
    Skill,
    Source,
    Stamp,
    is_speakable,
)

LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
LARGEST = 16 << 20
"""Bytes of a SKILL.md; every host of the skills extension stops there for a whole skill."""

FRESH = 50_000_000
"""Nanoseconds in which a file may be written twice and keep its time: kernels tick every 4 ms,
and clocks of other machines, whose disks we may see, are a little off."""

WRITING = 1.0
"""Seconds after its last change in which a file that makes no sense may still be being written."""

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")

NAME = re.compile(r"(?!.*--)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")

# Without waiting: a pipe that somebody calls SKILL.md would hold up the server for ever.
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class Place(NamedTuple):
    """Where a SKILL.md was found."""

    folder: str
    file: str
    source: Source
    below: tuple[str, ...]
    """The folders between the source and the file; none when the source itself is the skill."""

    identity: tuple[int, int]


class Broken(NamedTuple):
    """A SKILL.md that is no skill."""

    problem: Problem
    stamp: Stamp | None
    absent: bool = False
    """There is no such file at all."""


def read_skill(place: Place) -> Skill | Broken:
    """Read the skill at a place. Never raises what the file system or the file says."""
    path = f"{place.folder}/{place.file}"
    try:
        data, stamp = read_stamped(path)
    except OSError as error:
        broken = _broken("unreadable", f"it cannot be read: {error.strerror}", path, None)
        # A link that leads nowhere is there, and worth a word.
        return broken._replace(absent=not os.path.lexists(path))
    if not is_speakable(path):
        return _broken("place-name", "a name on the way to it is not UTF-8", path, stamp)
    try:
        header = parse(data.decode())
    except UnicodeDecodeError:
        return _broken("not-utf8", "it is not UTF-8", path, stamp)
    except BadHeaderError as error:
        return _broken("front-matter", str(error), path, stamp, error.fix)
    fields = header.fields
    description = _line(fields.get("description"))
    if not description:
        return _broken("no-description", "it has no description", path, stamp)
    given = _line(fields.get("name"))
    folder = place.below[-1] if place.below else ""
    name = given or folder or os.path.basename(place.folder)
    regular = NAME.fullmatch(name) is not None
    right = (
        header.strict
        and regular
        and given == (folder or name)
        and len(name) <= LONGEST_NAME
        and len(description) <= LONGEST_DESCRIPTION
        and place.file != FILE.lower()
    )
    problems = () if right else tuple(_warnings(header, given, description, place, path))
    return Skill(
        name=name,
        description=description,
        verbatim="" if fields["description"] == description else str(fields["description"]),
        folder=place.folder,
        file=place.file,
        source=place.source,
        place=name if regular and len(place.below) < 2 and right else _uri_path(place, name),
        stamp=stamp,
        identity=place.identity,
        off=place.file == DISABLED_FILE,
        for_models=fields.get("disable-model-invocation") is not True,
        for_people=fields.get("user-invocable") is not False,
        publishable=right,
        problems=problems,
    )


def is_young(path: str) -> bool:
    """Whether a file changed so lately that somebody may still be writing it."""
    try:
        return time.time() - os.stat(path).st_mtime < WRITING
    except OSError:
        return False


def _uri_path(place: Place, name: str) -> str:
    return "/".join(map(quote, place.below)) or quote(name)


def read_stamped(path: str) -> tuple[bytes, Stamp]:
    """The bytes of a file and a stamp that is true of them.

    Raises:
        OSError: it cannot be read, or is no file, or is too large.
    """
    descriptor = os.open(path, _OPEN)
    try:
        before = os.fstat(descriptor)
        if stat.S_ISDIR(before.st_mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if not stat.S_ISREG(before.st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        if before.st_size > LARGEST:
            raise OSError(errno.EFBIG, f"it has more than {LARGEST} bytes")
        data = os.read(descriptor, before.st_size + 1)
        while len(data) < before.st_size and (more := os.read(descriptor, LARGEST)):
            data += more
    finally:
        os.close(descriptor)
    fresh = before.st_mtime_ns > time.time_ns() - FRESH or len(data) != before.st_size
    return data, Stamp(before.st_ino, before.st_size, -1 if fresh else before.st_mtime_ns)


def _line(value: Any) -> str:
    """A field as text on one line; a name that is a number or a date is meant as text.

    What would move a terminal's cursor or ring its bell is left out.
    """
    if isinstance(value, str):
        if not value.isprintable():
            value = _CONTROLS.sub(" ", value)
        return " ".join(value.split())
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _warnings(
    header: Header, name: str, description: str, place: Place, path: str
) -> Iterator[Problem]:
    folder = place.below[-1] if place.below else name
    if place.file == FILE.lower():
        yield _warning("file-name", f"the file is called {place.file}", f"Call it {FILE}.", path)
    if not header.strict:
        yield _warning(
            "yaml",
            f"its front matter is not correct: {header.complaint}",
            header.fix or "Put the value in quotes; `cleats skills validate` says which.",
            path,
        )
    if not name:
        yield _warning("no-name", "it has no name; the folder's is used", "Add a name.", path)
    elif not NAME.fullmatch(name):
        yield _warning(
            "name-rules",
            f"the name {name!r} is not made of lower-case letters, digits and single hyphens",
            "Rename the skill and its folder.",
            path,
        )
    elif name != folder:
        yield _warning(
            "name-folder",
            f"its name is {name!r} and its folder's {folder!r}",
            "Give both the same name.",
            path,
        )
    if len(name) > LONGEST_NAME:
        yield _too_long("name", len(name), LONGEST_NAME, path)
    if len(description) > LONGEST_DESCRIPTION:
        yield _too_long("description", len(description), LONGEST_DESCRIPTION, path)


def _too_long(field: str, size: int, most: int, path: str) -> Problem:
    return _warning(
        f"{field}-length", f"its {field} has {size} characters, {most} are allowed", "Cut it.", path
    )


def _warning(code: str, message: str, fix: str, path: str) -> Problem:
    return Problem("warning", code, message, fix, path)


_FIXES: Final = {
    "unreadable": "Make the file readable.",
    "place-name": "Rename the folder: nobody could be told where it is.",
    "not-utf8": "Save it as UTF-8.",
    "no-description": "Say in a `description` what the skill does and when to use it.",
}


def _broken(code: str, message: str, path: str, stamp: Stamp | None, fix: str = "") -> Broken:
    return Broken(Problem("error", code, message, fix or _FIXES[code], path), stamp)

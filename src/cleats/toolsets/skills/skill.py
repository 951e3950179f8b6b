"""Skills, their sources and problems, and the reading of one SKILL.md: to a skill, or the reason why it is not one.

Reading is lenient, as the Agent Skills client guide asks: every usable skill is loaded, with warnings about its faults.
Only a skill without a description, which cannot be offered, is left out.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote

from cleats.system.front_matter import FrontMatterError
from cleats.system.skill_header import SkillHeader, parse_skill_header

SKILL_FILE_NAME = "SKILL.md"
DISABLED_FILE_NAME = ".SKILL.md"
"""The file name by which other skill managers disable a skill; it is disabled here too."""

SkillScope = Literal["custom", "project", "user", "system", "plugin"]
ProblemSeverity = Literal["error", "warning", "info"]


def is_encodable(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8: a file name may hold any bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def make_encodable(text: str) -> str:
    """Return the text with a question mark for every byte that is not UTF-8."""
    return text if is_encodable(text) else text.encode(errors="replace").decode()


@dataclass(frozen=True, slots=True)
class SkillProblem:
    """A problem of a skill or a folder, and how to fix it.

    After an error the skill is not loaded, after a warning it is; info is for correct but noteworthy facts.
    """

    severity: ProblemSeverity
    code: str
    message: str
    fix: str
    path: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", make_encodable(self.path))

    def as_json(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSource:
    """A folder that is searched for skills.

    `label` is unique among the sources and the first part of the URIs of their skills.
    """

    path: str
    scope: SkillScope
    label: str
    agent: str = ""
    plugin: str = ""
    marketplace: str = ""
    expected: bool = False
    """True if the user named the folder, so that its absence is reported."""


class FileStamp(NamedTuple):
    """The state of a file when it was read; a different stamp means different content."""

    inode: int
    size: int
    modified: int
    """Nanoseconds; -1 if the file was so fresh that a later write could leave the same stamp."""


class Skill(NamedTuple):
    """A skill that can be loaded. A tuple, because ten thousand are created at a time."""

    name: str
    description: str
    """On one line."""

    folder: str
    source: SkillSource
    uri_path: str
    """The folder relative to the source, with `/` between its parts."""

    stamp: FileStamp
    identity: tuple[int, int]
    """Device and inode of the folder: the same for every path that leads to it."""

    verbatim: str = ""
    """The description as written in the file, if it is not on one line."""

    file: str = SKILL_FILE_NAME
    for_models: bool = True
    for_people: bool = True
    publishable: bool = True
    """True if it follows the specification, as other hosts require."""

    disabled: bool = False
    problems: tuple[SkillProblem, ...] = ()

    @property
    def full_name(self) -> str:
        """The name that no other skill can take over."""
        plugin = self.source.plugin
        return f"{plugin}:{self.name}" if plugin else self.name

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.file}"

    @property
    def root_uri(self) -> str:
        return f"skill://{self.source.label}/{self.uri_path}"

    @property
    def uri(self) -> str:
        return f"{self.root_uri}/{SKILL_FILE_NAME}"


MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 1024
MAX_FILE_BYTES = 16 << 20
"""The maximum size of a SKILL.md; every host of the skills extension has this limit for a whole skill."""

FRESH_NANOSECONDS = 50_000_000
"""The period in which a file may be written twice and keep its modification time: kernels tick
every 4 ms, and clocks of other machines, whose disks we may read, are slightly off."""

WRITE_GRACE_SECONDS = 1.0
"""The time after its last change in which an invalid file may still be being written."""

_CONTROL_CHARS_PATTERN = re.compile(r"[\x00-\x1f\x7f-\x9f]+")

SKILL_NAME_PATTERN = re.compile(r"(?!.*--)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")

# Non-blocking: a pipe named SKILL.md would block the server for ever.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class SkillLocation(NamedTuple):
    """The location of a SKILL.md."""

    folder: str
    file: str
    source: SkillSource
    parts: tuple[str, ...]
    """The folders between the source and the file; empty if the source itself is the skill."""

    identity: tuple[int, int]


class BrokenSkill(NamedTuple):
    """A SKILL.md that is not a valid skill."""

    problem: SkillProblem
    stamp: FileStamp | None
    absent: bool = False
    """True if the file does not exist."""


def read_skill(location: SkillLocation) -> Skill | BrokenSkill:
    """Read the skill at a location. Never raises errors of the file system or the content."""
    path = f"{location.folder}/{location.file}"
    try:
        data, stamp = read_stamped(path)
    except OSError as error:
        broken = _build_broken("unreadable", f"it cannot be read: {error.strerror}", path, None)
        # A dangling link exists, and is reported.
        return broken._replace(absent=not os.path.lexists(path))
    if not is_encodable(path):
        return _build_broken("place-name", "its path is not UTF-8", path, stamp)
    try:
        header = parse_skill_header(data.decode())
    except UnicodeDecodeError:
        return _build_broken("not-utf8", "it is not UTF-8", path, stamp)
    except FrontMatterError as error:
        return _build_broken("front-matter", str(error), path, stamp, error.fix)
    fields = header.fields
    description = _normalize_text(fields.get("description"))
    if not description:
        return _build_broken("no-description", "it has no description", path, stamp)
    declared_name = _normalize_text(fields.get("name"))
    folder = location.parts[-1] if location.parts else ""
    name = declared_name or folder or os.path.basename(location.folder)
    has_valid_name = SKILL_NAME_PATTERN.fullmatch(name) is not None
    is_valid = (
        header.strict
        and has_valid_name
        and declared_name == (folder or name)
        and len(name) <= MAX_NAME_CHARS
        and len(description) <= MAX_DESCRIPTION_CHARS
        and location.file != SKILL_FILE_NAME.lower()
    )
    warnings = () if is_valid else _iter_warnings(header, declared_name, description, location)
    return Skill(
        name=name,
        description=description,
        verbatim="" if fields["description"] == description else str(fields["description"]),
        folder=location.folder,
        file=location.file,
        source=location.source,
        uri_path="/".join(map(quote, location.parts)) or quote(name),
        stamp=stamp,
        identity=location.identity,
        disabled=location.file == DISABLED_FILE_NAME,
        for_models=fields.get("disable-model-invocation") is not True,
        for_people=fields.get("user-invocable") is not False,
        publishable=is_valid,
        problems=tuple(SkillProblem("warning", *warning, path) for warning in warnings),
    )


def is_recently_written(path: str) -> bool:
    """Return whether a file changed so recently that it may still be being written."""
    try:
        return time.time() - os.stat(path).st_mtime < WRITE_GRACE_SECONDS
    except OSError:
        return False


def read_stamped(path: str) -> tuple[bytes, FileStamp]:
    """Return the bytes of a file and a stamp that matches them.

    Raises:
        OSError: The file cannot be read, is not a regular file, or is too large.
    """
    descriptor = os.open(path, _OPEN_FLAGS)
    try:
        before = os.fstat(descriptor)
        if stat.S_ISDIR(before.st_mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if not stat.S_ISREG(before.st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        if before.st_size > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, f"it has more than {MAX_FILE_BYTES} bytes")
        data = os.read(descriptor, before.st_size + 1)
        while len(data) < before.st_size and (chunk := os.read(descriptor, MAX_FILE_BYTES)):
            data += chunk
    finally:
        os.close(descriptor)
    is_fresh = before.st_mtime_ns > time.time_ns() - FRESH_NANOSECONDS or len(data) != before.st_size
    return data, FileStamp(before.st_ino, before.st_size, -1 if is_fresh else before.st_mtime_ns)


def _normalize_text(value: Any) -> str:
    """Return a field as text on one line; a name that is a number is meant as text.

    Control characters, which could move a terminal's cursor or ring its bell, are removed.
    """
    if isinstance(value, str):
        if not value.isprintable():
            value = _CONTROL_CHARS_PATTERN.sub(" ", value)
        return " ".join(value.split())
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _iter_warnings(
    header: SkillHeader, name: str, description: str, location: SkillLocation
) -> Iterator[tuple[str, str, str]]:
    """Yield the code, the message and the fix of each warning about a skill."""
    folder = location.parts[-1] if location.parts else name
    if location.file == SKILL_FILE_NAME.lower():
        yield "file-name", f"the file is called {location.file}", f"Call it {SKILL_FILE_NAME}."
    if not header.strict:
        fix = header.fix or "Put the value in quotes; `cleats skills validate` shows which one."
        yield "yaml", f"its front matter is invalid: {header.complaint}", fix
    if not name:
        yield "no-name", "it has no name; the folder's is used", "Add a name."
    elif not SKILL_NAME_PATTERN.fullmatch(name):
        message = f"the name {name!r} is not made of lower-case letters, digits and single hyphens"
        yield "name-rules", message, "Rename the skill and its folder."
    elif name != folder:
        yield "name-folder", f"its name is {name!r} and its folder's {folder!r}", "Give both the same name."
    for field, text, limit in (("name", name, MAX_NAME_CHARS), ("description", description, MAX_DESCRIPTION_CHARS)):
        if len(text) > limit:
            yield f"{field}-length", f"its {field} has {len(text)} characters, {limit} are allowed", "Cut it."


_FIXES_BY_CODE: Final = {
    "unreadable": "Make the file readable.",
    "place-name": "Rename the folder: its path cannot be written as text.",
    "not-utf8": "Save it as UTF-8.",
    "no-description": "Say in a `description` what the skill does and when to use it.",
}


def _build_broken(code: str, message: str, path: str, stamp: FileStamp | None, fix: str = "") -> BrokenSkill:
    return BrokenSkill(SkillProblem("error", code, message, fix or _FIXES_BY_CODE[code], path), stamp)

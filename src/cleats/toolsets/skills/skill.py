"""The values that everything here is made of: where skills lie, what each is, what is wrong."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

FILE = "SKILL.md"
DISABLED_FILE = ".SKILL.md"
"""Other managers of skills switch one off by this name; so it stays off here too."""

Scope = Literal["custom", "project", "user", "system", "plugin"]
Severity = Literal["error", "warning", "info"]


def is_speakable(text: str) -> bool:
    """Whether a text can be said in UTF-8: the name of a file may hold any bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def speakable(text: str) -> str:
    """The text, with a question mark for every byte of it that is none."""
    return text if is_speakable(text) else text.encode(errors="replace").decode()


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to know about a skill or a folder, and what to do about it.

    An error means that it is not loaded, a warning that it is, and info that all is as it should
    be and still worth knowing.
    """

    severity: Severity
    code: str
    message: str
    fix: str
    path: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", speakable(self.path))

    def as_json(self) -> dict[str, str]:
        return {
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
            "fix": self.fix,
            "path": self.path,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A folder in which skills are looked for.

    `label` is unique among the sources and the first part of the URIs of their skills.
    """

    path: str
    scope: Scope
    label: str
    agent: str = ""
    plugin: str = ""
    marketplace: str = ""
    expected: bool = False
    """Somebody named it, so its absence is worth a word."""


class Stamp(NamedTuple):
    """What a file looked like when it was read; another stamp means another content."""

    inode: int
    size: int
    modified: int
    """Nanoseconds; -1 when it was so fresh that a later write could leave the same stamp."""


class Skill(NamedTuple):
    """A skill that can be loaded. A tuple, because ten thousand are made at a time."""

    name: str
    description: str
    """On one line."""

    folder: str
    source: Source
    place: str
    """The folder within the source, with `/` between its parts."""

    stamp: Stamp
    identity: tuple[int, int]
    """Device and inode of the folder: the same for every way that leads to it."""

    verbatim: str = ""
    """The description as the file has it, when that is not on one line."""

    file: str = FILE
    for_models: bool = True
    for_people: bool = True
    publishable: bool = True
    """Whether it keeps the rules of the specification, as other hosts demand."""

    off: bool = False
    problems: tuple[Problem, ...] = ()

    @property
    def full_name(self) -> str:
        """The name that no other skill can take away."""
        plugin = self.source.plugin
        return f"{plugin}:{self.name}" if plugin else self.name

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.file}"

    @property
    def root_uri(self) -> str:
        return f"skill://{self.source.label}/{self.place}"

    @property
    def uri(self) -> str:
        return f"{self.root_uri}/{FILE}"

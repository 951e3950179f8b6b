"""The basic values of the toolset: skill sources, skills and problems."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

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

    After an error the skill is not loaded, after a warning it is; info is for correct but
    noteworthy facts.
    """

    severity: ProblemSeverity
    code: str
    message: str
    fix: str
    path: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", make_encodable(self.path))

    def as_json(self) -> dict[str, str]:
        return {
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
            "fix": self.fix,
            "path": self.path,
        }


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

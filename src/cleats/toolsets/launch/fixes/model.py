"""What a rule is given, and what it may answer.

A rule sees one file with every issue of one code in it, and answers with the file's new text. It
repairs them all: they have one cause more often than not, and a run has few attempts. It never
touches another file, never adds a claim, and answers None when it does not know what is right.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TypeAlias

from cleats.toolsets.launch import pages
from cleats.toolsets.launch.gates.site import PageFile, Site
from cleats.toolsets.launch.issues import Issue


class Gone(Enum):
    """The answer of a rule that removes the file."""

    GONE = "gone"


Answer: TypeAlias = str | Gone | None
"""The new text of the file, its end, or nothing when the rule cannot help."""


@dataclass(frozen=True)
class Case:
    """One file with the issues of one code that are open in it."""

    site: Site
    issue: Issue
    """The one that was selected."""
    issues: Sequence[Issue]
    """All of its code in its file, the selected one among them."""
    text: str | None
    """The file as it lies in the worktree; None when it is not there."""

    @property
    def path(self) -> str:
        return self.issue.path

    @cached_property
    def file(self) -> PageFile:
        """The page; one that is not there is empty."""
        plan = next((each for each in self.site.plan if each["output_path"] == self.path), {})
        return PageFile(self.path, self.text or "", plan)

    @cached_property
    def draft(self) -> str | None:
        """The page as it was drafted."""
        name = f"drafts/{self.file.section}/{self.path}"
        if not self.file.plan or not self.site.job.has(name):
            return None
        return self.site.job.read(name).decode()

    @cached_property
    def drafted(self) -> PageFile | None:
        return None if self.draft is None else PageFile(self.path, self.draft, self.file.plan)

    @property
    def lines(self) -> frozenset[int]:
        """The lines of the file that the issues name."""
        return frozenset(issue.line for issue in self.issues if issue.line)

    @property
    def named(self) -> list[str]:
        """What the messages end with after their first colon: a link, a command."""
        return [issue.message.split(": ", 1)[1] for issue in self.issues if ": " in issue.message]


Rule: TypeAlias = Callable[[Case], Answer]


def each_line(text: str, change: Callable[[int, str], str | None]) -> str:
    """Change a text line by line; None takes a line away. Lines count from 1."""
    changed = (change(number, line) for number, line in enumerate(text.split("\n"), start=1))
    return "\n".join(line for line in changed if line is not None)


def without(text: str, lines: Iterable[int]) -> str:
    """A text without some of its lines, and without the double gaps they would leave."""
    gone = set(lines)
    kept: list[str] = []
    closing = False
    for number, line in enumerate(text.split("\n"), start=1):
        if number in gone:
            closing = True
            continue
        if closing and not line.strip() and kept and not kept[-1].strip():
            continue
        closing = closing and not line.strip()
        kept.append(line)
    return ended("\n".join(kept))


def ended(text: str) -> str:
    """A text with one line feed at its end."""
    return text.rstrip("\n") + "\n"


def prose_lines(file: PageFile) -> frozenset[int]:
    """The lines of a file that are text of its body: no front matter, no code."""
    return frozenset(number for number, _ in file.prose)


def code_lines(file: PageFile) -> frozenset[int]:
    """The lines of a file that are code, fences included."""
    return frozenset(file.first + number - 1 for number in pages.code_lines(file.body))

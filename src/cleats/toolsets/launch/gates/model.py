"""The types of gates, issues and fixes.

A gate inspects the site and changes nothing. Its module defines every kind of issue that it reports,
with its remedy and its fix. A fix receives one file with all issues of one kind in it and repairs all
of them: they usually have one cause, and a run has few attempts. It never touches another file, never
adds a claim, and returns None when it does not know what is right.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from functools import cached_property
from typing import TypeAlias

from cleats.toolsets.launch.gates.site import LaunchSite, PageFile
from cleats.toolsets.launch.runs.issues import Issue, Severity
from cleats.toolsets.launch.site.claim_markers import parse_evidence_list, refresh_evidence_list


class FileRemoval(Enum):
    """The result of a fix that removes the file."""

    REMOVED = "gone"


FixResult: TypeAlias = str | FileRemoval | None
"""The new text of the file, its removal, or None when the fix cannot help."""


@dataclass(frozen=True)
class FixCase:
    """One file with the open issues of one error code."""

    site: LaunchSite
    issue: Issue
    issues: Sequence[Issue]
    """All issues of the same code in the same file, including the selected one."""
    existing_text: str | None
    """The text of the file in the worktree; None when the file does not exist."""

    @property
    def path(self) -> str:
        return self.issue.path

    @property
    def text(self) -> str:
        return self.existing_text or ""

    @cached_property
    def file(self) -> PageFile:
        """The page; a file that does not exist is an empty page."""
        plan = next((entry for entry in self.site.plan if entry["output_path"] == self.path), {})
        return PageFile(self.path, self.text, plan)

    @cached_property
    def draft(self) -> str | None:
        """The text of the page as it was drafted, with the edits that people made to its predecessor."""
        if self.site.job.has_artifact(f"merged/{self.path}"):
            return self.site.job.read(f"merged/{self.path}").decode()
        name = f"drafts/{self.file.section}/{self.path}"
        has_draft = self.file.plan and self.site.job.has_artifact(name)
        return self.site.job.read(name).decode() if has_draft else None

    @cached_property
    def drafted_file(self) -> PageFile | None:
        return None if self.draft is None else PageFile(self.path, self.draft, self.file.plan)

    @property
    def lines(self) -> frozenset[int]:
        """The lines of the file that the issues name."""
        return frozenset(issue.line for issue in self.issues if issue.line)

    @cached_property
    def message_targets(self) -> frozenset[str]:
        """The ends of the messages, after their first colon: a link or a command."""
        return frozenset(issue.message.split(": ", 1)[1] for issue in self.issues if ": " in issue.message)


FixRule: TypeAlias = Callable[[FixCase], FixResult]


@dataclass(frozen=True, slots=True)
class IssueKind:
    """A kind of issue: its error code, its severity, its remedy for people, and its fix if there is one."""

    code: str
    severity: Severity
    remedy: str
    fix: FixRule | None = None

    def draft(self, message: str, path: str = "", line: int = 0, severity: Severity | None = None) -> "IssueDraft":
        """Return a draft; the severity is that of the kind unless another is given."""
        return IssueDraft(self, message, path, line, severity or self.severity)


@dataclass(frozen=True, slots=True)
class IssueDraft:
    """One problem, before the runner makes an issue of it.

    The path is relative to the worktree; line 0 means the file as a whole.
    """

    kind: IssueKind
    message: str
    path: str
    line: int
    severity: Severity


GateMessage: TypeAlias = IssueDraft | str
GateCheck: TypeAlias = Callable[[LaunchSite], Iterable[GateMessage] | Awaitable[Iterable[GateMessage]]]
"""A check that runs in a thread, under the gate's timeout, and starts no process; one that waits for a
program or for the network is a coroutine."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A named check with its timeouts in seconds, by validation profile."""

    name: str
    purpose: str
    check: GateCheck
    _: KW_ONLY
    local_seconds: float = 60.0
    strict_seconds: float = 120.0
    tools: tuple[str, ...] = ()
    reads_pages: bool = False
    """Whether the gate judges pages line by line, and only lines that the launch wrote."""


def apply_fix_rule(fix: FixRule, case: FixCase) -> FixResult:
    """Apply a rule to a file, and keep the list of evidence of a page in step with its statements."""
    answer = fix(case)
    if isinstance(answer, str) and parse_evidence_list(answer).line:
        commit = str(case.site.config["github_ref"])
        return refresh_evidence_list(answer, case.site.evidence, commit, case.site.passed_programs)
    return answer

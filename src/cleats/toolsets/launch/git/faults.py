"""The classification of git failures by their English messages."""

import re
from enum import Enum
from typing import Final

from cleats.contract.errors import ErrorCode


class GitFault(Enum):
    """The reason why git failed, as far as a caller can act on it."""

    NETWORK = "network"
    NOT_FOUND = "not_found"
    ACCESS_DENIED = "no_access"
    UNKNOWN_COMMIT = "unknown_commit"
    PROTOCOL = "protocol_not_allowed"
    DISK_FULL = "no_room"
    PUSH_CONFLICT = "push_raced"
    PUSH_REJECTED = "push_refused"
    OTHER = "git_failed"

    @property
    def code(self) -> ErrorCode:
        return {
            GitFault.UNKNOWN_COMMIT: ErrorCode.INVALID_INPUT,
            GitFault.PROTOCOL: ErrorCode.INVALID_INPUT,
            GitFault.DISK_FULL: ErrorCode.INTERNAL,
        }.get(self, ErrorCode.REPO_NOT_FOUND)

    @property
    def details(self) -> dict[str, str]:
        """The error details for the caller; an internal error always names its class."""
        details = {"reason": self.value}
        return {**details, "cause_class": "OSError"} if self.code is ErrorCode.INTERNAL else details

    @property
    def is_transient(self) -> bool:
        """True if the same command may succeed later."""
        return self in {GitFault.NETWORK, GitFault.DISK_FULL, GitFault.PUSH_CONFLICT}

    @property
    def description(self) -> str:
        return _FAULT_DESCRIPTIONS[self]


_FAULT_DESCRIPTIONS: Final = {
    GitFault.NETWORK: "the network or the server failed",
    GitFault.NOT_FOUND: "there is no such repository",
    GitFault.ACCESS_DENIED: "access is refused",
    GitFault.UNKNOWN_COMMIT: "the repository has no such commit",
    GitFault.PROTOCOL: "this kind of address is not allowed",
    GitFault.DISK_FULL: "there is no room left on the disk",
    GitFault.PUSH_CONFLICT: "somebody else writes to the remote",
    GitFault.PUSH_REJECTED: "the remote refused it",
    GitFault.OTHER: "the repository cannot be read or written",
}

_FAULT_PATTERNS: Final[tuple[tuple[GitFault, str], ...]] = (
    (GitFault.DISK_FULL, "No space left on device|Disk quota exceeded"),
    # These are reported as rejections, too, but not because of a rule.
    (GitFault.PUSH_CONFLICT, r"\(stale info\)|\(fetch first\)|cannot lock ref|failed to lock"),
    (GitFault.NETWORK, r"\[remote rejected\][^\n]*\(internal server error\)"),
    (GitFault.PUSH_REJECTED, r"\[(remote )?rejected\]|hook declined|protected branch"),
    (GitFault.PROTOCOL, "transport '[^']*' not allowed|is not a git command"),
    (GitFault.UNKNOWN_COMMIT, "not our ref|unadvertised object|couldn't find remote ref|is not a tree"),
    (
        GitFault.ACCESS_DENIED,
        "Authentication failed|could not read (Username|Password)|Permission denied|error: 40[13]",
    ),
    (GitFault.ACCESS_DENIED, "error: 40[13]|terminal prompts disabled|dubious ownership|Host key verification"),
    (GitFault.NOT_FOUND, "Repository not found|repository '[^']*' not found|does not exist|error: 404"),
    (GitFault.NOT_FOUND, "not appear to be a git repository|not a git repository"),
    (GitFault.NETWORK, "Could not resolve|Connection (timed out|refused|reset|closed)|Failed to connect"),
    (GitFault.NETWORK, "Couldn't connect|Operation (timed out|too slow)|Network is unreachable|No route to host"),
    (GitFault.NETWORK, "early EOF|hung up unexpectedly|unexpected disconnect|RPC failed|Empty reply|Temporary failure"),
    (GitFault.NETWORK, r"error: (429|5\d\d)"),
)
"""Patterns in order of precedence: git ends most failures with a line about the remote."""


_REJECTION_REASON_PATTERN: Final = re.compile(r"\[(?:remote )?rejected\][^\n]*\(([\w .,'-]{1,80})\)")


def extract_rejection_reason(stderr: str) -> str:
    """Return the reason that git repeats for a rejected push, mostly the name of a rule."""
    match = _REJECTION_REASON_PATTERN.search(stderr)
    return match[1] if match else ""


def classify_fault(stderr: str) -> GitFault:
    """Return the first fault whose patterns match the error output of git."""
    faults = (fault for fault, pattern in _FAULT_PATTERNS if re.search(pattern, stderr, re.IGNORECASE))
    return next(faults, GitFault.OTHER)

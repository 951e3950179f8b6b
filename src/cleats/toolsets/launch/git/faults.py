"""The classification of git failures by their English messages."""

import re
from enum import Enum
from typing import Final

from cleats.contract.errors import ErrorCode


class GitFault(Enum):
    """The reason why git failed, as far as a caller can act on it."""

    NETWORK = ("network", "the network or the server failed", ErrorCode.REPO_NOT_FOUND, True)
    NOT_FOUND = ("not_found", "there is no such repository", ErrorCode.REPO_NOT_FOUND)
    ACCESS_DENIED = ("no_access", "access is refused", ErrorCode.REPO_NOT_FOUND)
    UNKNOWN_COMMIT = ("unknown_commit", "the repository has no such commit", ErrorCode.INVALID_INPUT)
    PROTOCOL = ("protocol_not_allowed", "this kind of address is not allowed", ErrorCode.INVALID_INPUT)
    DISK_FULL = ("no_room", "there is no room left on the disk", ErrorCode.INTERNAL, True)
    PUSH_CONFLICT = ("push_raced", "somebody else writes to the remote", ErrorCode.REPO_NOT_FOUND, True)
    PUSH_REJECTED = ("push_refused", "the remote refused it", ErrorCode.REPO_NOT_FOUND)
    OTHER = ("git_failed", "the repository cannot be read or written", ErrorCode.REPO_NOT_FOUND)

    def __init__(self, reason: str, description: str, code: ErrorCode, is_transient: bool = False) -> None:
        self.reason = reason
        self.description = description
        self.code = code
        self.is_transient = is_transient
        """True if the same command may succeed later."""

    @property
    def details(self) -> dict[str, str]:
        """The error details for the caller; an internal error always names its class."""
        details = {"reason": self.reason}
        return {**details, "cause_class": "OSError"} if self.code is ErrorCode.INTERNAL else details


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

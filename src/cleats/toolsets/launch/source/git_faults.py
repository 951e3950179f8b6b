"""What a failing git means, read from what it says in English."""

import re
from enum import Enum
from typing import Final

from cleats.contract.errors import ErrorCode


class Fault(Enum):
    """Why git failed, as far as a caller can act on it."""

    NETWORK = "network"
    NOT_FOUND = "not_found"
    CLOSED = "no_access"
    UNKNOWN_COMMIT = "unknown_commit"
    PROTOCOL = "protocol_not_allowed"
    DISK = "no_room"
    RACED = "push_raced"
    REFUSED = "push_refused"
    OTHER = "git_failed"

    @property
    def code(self) -> ErrorCode:
        return {
            Fault.UNKNOWN_COMMIT: ErrorCode.INVALID_INPUT,
            Fault.PROTOCOL: ErrorCode.INVALID_INPUT,
            Fault.DISK: ErrorCode.INTERNAL,
        }.get(self, ErrorCode.REPO_NOT_FOUND)

    @property
    def details(self) -> dict[str, str]:
        """What a caller is told; an internal failure always names its class."""
        told = {"reason": self.value}
        return {**told, "cause_class": "OSError"} if self.code is ErrorCode.INTERNAL else told

    @property
    def passes(self) -> bool:
        """Whether the same may work later."""
        return self in {Fault.NETWORK, Fault.DISK, Fault.RACED}

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS: Final = {
    Fault.NETWORK: "the network or the server failed",
    Fault.NOT_FOUND: "there is no such repository",
    Fault.CLOSED: "access is refused",
    Fault.UNKNOWN_COMMIT: "the repository has no such commit",
    Fault.PROTOCOL: "this kind of address is not allowed",
    Fault.DISK: "there is no room left on the disk",
    Fault.RACED: "somebody else writes to the remote",
    Fault.REFUSED: "the remote refused it",
    Fault.OTHER: "the repository cannot be read or written",
}

_SIGNS: Final[tuple[tuple[Fault, tuple[str, ...]], ...]] = (
    (Fault.DISK, ("No space left on device", "Disk quota exceeded")),
    # These are rejections as well, and no rule stands behind them.
    (Fault.RACED, (r"\(stale info\)", r"\(fetch first\)", "cannot lock ref", "failed to lock")),
    (Fault.NETWORK, (r"\[remote rejected\][^\n]*\(internal server error\)",)),
    (Fault.REFUSED, (r"\[(remote )?rejected\]", "hook declined", "protected branch")),
    (Fault.PROTOCOL, (r"transport '[^']*' not allowed", "is not a git command")),
    (
        Fault.UNKNOWN_COMMIT,
        ("not our ref", "unadvertised object", "couldn't find remote ref", "is not a tree"),
    ),
    (
        Fault.CLOSED,
        (
            "Authentication failed",
            "could not read (Username|Password)",
            "Permission denied",
            "error: 40[13]",
            "terminal prompts disabled",
            "dubious ownership",
            "Host key verification",
        ),
    ),
    (
        Fault.NOT_FOUND,
        (
            "Repository not found",
            "repository '[^']*' not found",
            "does not exist",
            "error: 404",
            "not appear to be a git repository",
            "not a git repository",
        ),
    ),
    (
        Fault.NETWORK,
        (
            "Could not resolve",
            "Connection (timed out|refused|reset|closed)",
            "Operation (timed out|too slow)",
            "Failed to connect|Couldn't connect",
            "early EOF",
            "hung up unexpectedly",
            "unexpected disconnect",
            "RPC failed",
            r"error: (429|5\d\d)",
            "Network is unreachable|No route to host",
            "Empty reply",
            "Temporary failure",
        ),
    ),
)
"""In order: git ends most failures of any kind with a line about the remote."""


_WHY: Final = re.compile(r"\[(?:remote )?rejected\][^\n]*\(([\w .,'-]{1,80})\)")


def refusal(said: str) -> str:
    """Why a remote refused a push, in the few words that git repeats of it; mostly its rule."""
    found = _WHY.search(said)
    return found[1] if found else ""


def fault_of(said: str) -> Fault:
    """The first kind of failure that git's words show."""
    for fault, signs in _SIGNS:
        if any(re.search(sign, said, re.IGNORECASE) for sign in signs):
            return fault
    return Fault.OTHER

"""What a gate is, and what it can say.

A gate looks at the site and says what is wrong with it. It changes nothing. A check yields
findings, and plain lines for its log, in an order that depends on nothing but the site; the
runner gives them ids, severities for the profile, and a verdict.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from cleats.toolsets.launch.gates.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong. A path is relative to the worktree; line 0 means the whole file."""

    code: str
    severity: str
    message: str
    path: str = ""
    line: int = 0


Said: TypeAlias = Finding | str
Check: TypeAlias = Callable[[Site], Iterable[Said]]
"""Runs in a thread, under the gate's deadline; starts no process."""
Errand: TypeAlias = Callable[[Site], Awaitable[Iterable[Said]]]
"""A check that waits for a program or for the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A named check. `local` and `strict` are its seconds, by profile."""

    name: str
    purpose: str
    check: Check | None = None
    errand: Errand | None = None
    local: float = 60.0
    strict: float = 120.0
    tools: tuple[str, ...] = ()
    reads_pages: bool = False
    """Whether it judges pages line by line: then what a page said before is not its affair."""

    def seconds(self, profile: str) -> float:
        """How long the gate may take."""
        return self.local if profile == "local" else self.strict


def blocker(code: str, message: str, path: str = "", line: int = 0) -> Finding:
    """A finding that must go before anything is published."""
    return Finding(code=code, severity="blocker", message=message, path=path, line=line)


def error(code: str, message: str, path: str = "", line: int = 0) -> Finding:
    """A finding that makes a page wrong."""
    return Finding(code=code, severity="error", message=message, path=path, line=line)


def warning(code: str, message: str, path: str = "", line: int = 0) -> Finding:
    """A finding that a strict profile does not let pass."""
    return Finding(code=code, severity="warn", message=message, path=path, line=line)

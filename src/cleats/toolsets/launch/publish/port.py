"""What is published, and what a driver promises.

A driver may be asked twice for the same change: the answer to the first time may be lost, or the
process may have been killed before it was recorded. So a commit is a function of the change (its
dates and author are part of it), a branch belongs to one run, and a driver that finds its own work
already there answers with it. What it finds there of somebody else it leaves alone and refuses.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from cleats.contract.errors import ErrorCode, ToolError


@dataclass(frozen=True, slots=True)
class File:
    """A file as the change leaves it; no content means that it is gone."""

    path: str
    content: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Everything that a driver needs to know."""

    run_id: str
    repo_url: str
    base_sha: str
    base_branch: str
    """The branch that the request asks to change; empty for the remote's default."""
    branch: str
    files: Sequence[File]
    allowed_paths: Sequence[str]
    title: str
    message: str
    body: str
    author: tuple[str, str]
    """Name and address."""
    moment: int
    """Seconds since the epoch: the date of the commit, the same on each attempt."""
    bundle: Mapping[str, Any]
    """The same files as patches, for services that take those."""
    earlier: Sequence[str] = ()
    """Commits that this run made before and published nowhere else; they may be replaced."""
    draft: bool = False
    """Whether the request is opened as one that is not to be merged yet, where that is known."""

    def key(self, what: str) -> str:
        """A UUID that is the same for the same request of the same change, and for no other."""
        whole = hashlib.sha256(f"{what}\0{self.run_id}\0{self.branch}\0{self.base_sha}".encode())
        for file in self.files:
            content = b"-" if file.content is None else hashlib.sha256(file.content).digest()
            whole.update(file.path.encode() + b"\0" + content)
        return str(UUID(bytes=whole.digest()[:16], version=4))


@dataclass(frozen=True, slots=True)
class Requested:
    """The open request."""

    url: str
    number: int | None = None


class Publisher(Protocol):
    """One place to publish to."""

    async def commit(self, change: Change) -> str:
        """Make the commit on its branch and answer with its id.

        Raises:
            ToolError: COMMIT_SERVICE_ERROR, retryable when another try can help.
        """

    async def request(self, change: Change, commit: str) -> Requested:
        """Open the request for a commit that was made; the one that is open already if there is.

        Raises:
            ToolError: COMMIT_SERVICE_ERROR, retryable when another try can help.
        """


def refused(message: str, *, retryable: bool = False, hint: str = "", **details: Any) -> ToolError:
    """Why publishing did not work."""
    return ToolError(
        ErrorCode.COMMIT_SERVICE_ERROR, message, retryable=retryable, hint=hint, details=details
    )

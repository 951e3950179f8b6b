"""The change to publish, and the contract of a publish driver.

A driver may be called twice for the same change: the reply to the first call may be lost, or the
process may have been killed before it was recorded. So a commit is a function of the change (its
dates and author are part of it), a branch belongs to one run, and a driver that finds its own
earlier work returns it. It leaves the work of others alone and reports an error.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from cleats.contract.errors import ErrorCode, ToolError


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file as the change leaves it; a content of None means that it is deleted."""

    path: str
    content: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChange:
    """Everything that a driver needs to publish a run."""

    run_id: str
    repo_url: str
    base_sha: str
    base_branch: str
    """The branch that the request targets; empty for the default branch of the remote."""
    branch: str
    files: Sequence[ChangedFile]
    allowed_paths: Sequence[str]
    title: str
    message: str
    body: str
    author: tuple[str, str]
    """Name and email address."""
    moment: int
    """Seconds since the epoch: the date of the commit, equal on every attempt."""
    bundle: Mapping[str, Any]
    """The same files as patches, for services that accept those."""
    earlier: Sequence[str] = ()
    """Earlier commits of this run, which exist only on its branch and may be replaced."""
    draft: bool = False
    """True to open the request as a draft, where the forge supports drafts."""

    def idempotency_key(self, action: str) -> str:
        """Return a UUID that is equal for the same action on the same change, and for no other."""
        digest = hashlib.sha256(f"{action}\0{self.run_id}\0{self.branch}\0{self.base_sha}".encode())
        for file in self.files:
            content = b"-" if file.content is None else hashlib.sha256(file.content).digest()
            digest.update(file.path.encode() + b"\0" + content)
        return str(UUID(bytes=digest.digest()[:16], version=4))


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """An open review request."""

    url: str
    number: int | None = None


class ChangePublisher(Protocol):
    """A destination that changes are published to."""

    async def commit(self, change: RunChange) -> str:
        """Create the commit on its branch and return its id.

        Raises:
            ToolError: COMMIT_SERVICE_ERROR, retryable when another attempt can help.
        """

    async def open_request(self, change: RunChange, commit: str) -> ReviewRequest:
        """Open the review request for a commit, or return the one that is already open.

        Raises:
            ToolError: COMMIT_SERVICE_ERROR, retryable when another attempt can help.
        """


def publish_error(message: str, *, retryable: bool = False, hint: str = "", **details: Any) -> ToolError:
    """Return the error for a change that could not be published."""
    return ToolError(ErrorCode.COMMIT_SERVICE_ERROR, message, retryable=retryable, hint=hint, details=details)

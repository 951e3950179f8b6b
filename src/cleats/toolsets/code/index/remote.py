"""The port to an index that lives elsewhere: in shared storage, or in a search cluster.

The index knows remote indexes only by this protocol; `composition` makes the ones that the settings
name.
"""

from collections.abc import Callable
from typing import Protocol

from cleats.toolsets.code.index.generations import GenerationStore
from cleats.toolsets.code.index.progress import BuildProgress
from cleats.toolsets.code.repository import Repository


class RemoteIndexPort(Protocol):
    """The index of one repository elsewhere, built here or on another machine."""

    @property
    def name(self) -> str:
        """The name of the index, the same on every machine."""

    def is_index_of(self, repository: Repository) -> bool:
        """Return whether this is the index of the repository."""

    def is_read_only_for(self, repository: Repository) -> bool:
        """Return whether this is the index of the repository, and another machine builds it."""

    def reject_build(self, repository: Repository) -> None:
        """Reject the build of an index that another machine builds.

        Raises:
            ToolError: FORBIDDEN.
        """

    async def ensure_available(self, store: GenerationStore) -> None:
        """Wait for the generation that a first search needs, if it has to be fetched.

        Raises:
            ToolError: NO_INDEX, there is none to fetch.
        """

    async def follow(self, store: GenerationStore) -> None:
        """Fetch every generation that is published, until cancelled."""

    async def publish(self, store: GenerationStore, on_progress: Callable[[BuildProgress], None]) -> str:
        """Publish the current generation; return an error text, or an empty string on success."""

    async def check_reachable(self) -> None:
        """Check that what searches need can be reached.

        Raises:
            OSError: it cannot.
        """

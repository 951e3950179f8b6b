"""Several indexes of a cluster, searched as one corpus."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from cleats.contract.errors import ToolError
from cleats.toolsets.code.index.generations import GenerationStore
from cleats.toolsets.code.index.progress import BuildProgress
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.sharing.opensearch.remote_index import RemoteIndex

if TYPE_CHECKING:
    from cleats.toolsets.code.query.request import SearchRequest


class RemoteIndexGroup:
    """Indexes that other machines build; their answers are merged like those of a workspace."""

    def __init__(self, indexes: Sequence[RemoteIndex]) -> None:
        self.indexes = indexes
        self.name = ",".join(index.name for index in indexes)

    def is_index_of(self, repository: Repository) -> bool:
        """Return whether these indexes are searched for a repository."""
        return self.indexes[0].is_index_of(repository)

    def is_read_only_for(self, repository: Repository) -> bool:
        """Return whether these indexes are searched for a repository; they are never built here."""
        return self.is_index_of(repository)

    def reject_build(self, repository: Repository) -> None:
        """Reject a build of indexes that are only searched here.

        Raises:
            ToolError: FORBIDDEN.
        """
        self.indexes[0].reject_build(repository)

    async def search(self, build_request: "Callable[[], SearchRequest]") -> dict[str, Any]:
        """Answer a search from all indexes, or not at all.

        Raises:
            ToolError: the error of the first index that failed.
        """
        request = await to_thread.run_sync(build_request, abandon_on_cancel=True)
        answers: dict[str, dict[str, Any]] = {}
        errors: list[ToolError] = []

        async def search_index(index: RemoteIndex) -> None:
            try:
                answers[index.name] = await index.search(lambda: request)
            except ToolError as error:
                errors.append(error)

        async with anyio.create_task_group() as group:
            for index in self.indexes:
                group.start_soon(search_index, index)
        if errors:
            raise errors[0]
        named_answers = [(index.name, answers[index.name]) for index in self.indexes]
        return await to_thread.run_sync(_merge_answers, request, named_answers)

    async def check_reachable(self) -> None:
        """Check that the cluster, which all indexes share, answers requests.

        Raises:
            ClusterError: it cannot be reached, or rejects the request.
        """
        await self.indexes[0].check_reachable()

    async def publish(self, _store: GenerationStore, _on_progress: Callable[[BuildProgress], None]) -> str:
        """Do nothing: these indexes are published by other machines."""
        return ""


def _merge_answers(request: "SearchRequest", answers: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    from cleats.toolsets.code.query.request import HitLimits  # noqa: PLC0415 - as above
    from cleats.toolsets.code.search.federation import RepositoryAnswer, merge_answers  # noqa: PLC0415 - large
    from cleats.toolsets.code.search.output import is_lean  # noqa: PLC0415 - as above

    parts = [RepositoryAnswer(name, name, answer) for name, answer in answers]
    limits = HitLimits(request.top, request.other_top or request.top)
    return merge_answers(parts, limits, lean=is_lean(request.output, explain=request.explain))

"""Several indexes of a cluster, searched as one corpus: as many as machines have published."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from cleats.contract.errors import ToolError
from cleats.toolsets.code.indexing.progress import Progress
from cleats.toolsets.code.opensearch.remote import Remote
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.store.generations import Shelf

if TYPE_CHECKING:
    from cleats.toolsets.code.search.request import Request


class Together:
    """Indexes that others build. Answers are merged as those of a workspace are."""

    def __init__(self, parts: Sequence[Remote]) -> None:
        self.parts = parts
        self.name = ",".join(part.name for part in parts)

    def concerns(self, repository: Repository) -> bool:
        """Whether they are what is searched for this repository."""
        return self.parts[0].concerns(repository)

    def reads(self, repository: Repository) -> bool:
        """The same: nobody builds several at once."""
        return self.concerns(repository)

    def refuse_build(self, repository: Repository) -> None:
        """Refuse to build what is only searched here.

        Raises:
            ToolError: FORBIDDEN.
        """
        self.parts[0].refuse_build(repository)

    async def search(self, make: "Callable[[], Request]") -> dict[str, Any]:
        """Answer a search from all of them, or not at all.

        Raises:
            ToolError: as the first that failed says.
        """
        request = await to_thread.run_sync(make, abandon_on_cancel=True)
        answers: dict[str, dict[str, Any]] = {}
        failed: list[ToolError] = []

        async def ask(part: Remote) -> None:
            try:
                answers[part.name] = await part.search(lambda: request)
            except ToolError as error:
                failed.append(error)

        async with anyio.create_task_group() as group:
            for part in self.parts:
                group.start_soon(ask, part)
        if failed:
            raise failed[0]
        listed = [(part.name, answers[part.name]) for part in self.parts]
        return await to_thread.run_sync(_merged, request, listed)

    async def answers(self) -> None:
        """Return when the cluster, which is one for all, takes questions.

        Raises:
            ClusterError: it cannot be reached, or refuses.
        """
        await self.parts[0].answers()

    async def publish(self, _shelf: Shelf, _report: Callable[[Progress], None]) -> str:
        """Nothing is published here."""
        return ""


def _merged(request: "Request", answers: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    from cleats.toolsets.code.search.federation import Part, merged  # noqa: PLC0415 - large
    from cleats.toolsets.code.search.limits import Limits  # noqa: PLC0415 - as above
    from cleats.toolsets.code.search.output import lean  # noqa: PLC0415 - as above

    parts = [Part(name, name, answer) for name, answer in answers]
    limits = Limits(request.top, request.beside or request.top)
    return merged(parts, limits, lean=lean(request.output, explain=request.explain))

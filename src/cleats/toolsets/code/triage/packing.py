"""The tool `triage_context_pack`.

Imported when a server starts; what searches is imported by the first call, in a thread. The
questions of a pack go to the engine that searches use, which is open already when one came before.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Context, Hints, Tool, arguments
from cleats.toolsets.code.indexing.access import Indexes
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.triage import shapes
from cleats.toolsets.code.triage.keeping import Keeper

if TYPE_CHECKING:
    from cleats.toolsets.code.search.tool import SearchTool
    from cleats.toolsets.code.triage.records import Record

PATIENCE: Final = 0.02
"""Seconds that a pack waits to learn whether its index is stale."""


class PackTool:
    """Packs, over the records and the index of a repository."""

    def __init__(self, indexes: Indexes, searching: "SearchTool", data: Path) -> None:
        self._indexes, self._searching, self._data = indexes, searching, data

    async def pack(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        repository = self._indexes.repository(given.get("repoPath"))
        context.about(str(repository.root))
        keeper = self._indexes.records(repository)
        warnings: list[dict[str, str]] = []
        with suppress(ToolError):  # whoever looks for evidence says that there is no index
            await self._indexes.ready(repository)
        fresh = await self._indexes.freshness(repository, within=PATIENCE)
        if fresh is not None and fresh.stale:
            said = f"The index is not up to date: {fresh}."
            warnings.append({"code": "index_stale", "message": said})
        made: dict[str, Any] = await to_thread.run_sync(
            self._packed, given, repository, keeper, warnings
        )
        for warning in warnings:
            context.warn(warning["code"], warning["message"])
        return made

    def _packed(
        self,
        given: Mapping[str, Any],
        repository: Repository,
        keeper: Keeper,
        warnings: list[dict[str, str]],
    ) -> dict[str, Any]:
        from cleats.toolsets.code.triage import packs  # noqa: PLC0415
        from cleats.toolsets.code.triage.decisions import history  # noqa: PLC0415
        from cleats.toolsets.code.triage.lookup import finding  # noqa: PLC0415
        from cleats.toolsets.code.triage.records import now, shown  # noqa: PLC0415

        archive = keeper.current()
        record = finding(archive, "recordId", given["recordId"])
        place = None
        if "outPath" in given:
            folders = (repository.root, self._data)
            place = packs.target(given["outPath"], repository.root, folders)
        meaning = False if given["stubEmbeddings"] else given.get("ann")
        made: dict[str, Any] = {
            "recordId": record.record_id,
            "generatedAt": now(),
            "finding": shown(record),
            "history": history(archive, record, datetime.now(UTC)),
            "repoEvidence": {
                "queries": self._evidence(repository, record, meaning=meaning, warnings=warnings)
            },
        }
        if warnings:
            made["warnings"] = warnings
        if place is not None:
            made["outPath"] = str(place)
            packs.write(place, made)
        return made

    def _evidence(
        self,
        repository: Repository,
        record: "Record",
        *,
        meaning: bool | None,
        warnings: list[dict[str, str]],
    ) -> list[dict[str, Any]]:
        from cleats.toolsets.code.triage.evidence import gather  # noqa: PLC0415

        try:
            with self._searching.engine(repository) as engine:
                return gather(engine, repository.root, record, meaning=meaning)
        except ToolError as error:
            if error.code is not ErrorCode.NO_INDEX:
                raise
            said = f"{error.message} The pack has no evidence from the code. {error.hint}"
            warnings.append({"code": "no_index", "message": said})
            return []

    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="triage_context_pack",
                version=2,
                title="Pack the context of a finding",
                description=(
                    "Collect what is needed to decide about a finding: the finding, earlier "
                    "decisions about it and others like it, and where the repository mentions "
                    "its vulnerability, imports its package, or has the lines that a scanner "
                    "pointed at."
                ),
                input=arguments(shapes.PACK_ARGUMENTS, required=("recordId",)),
                output=shapes.PACK,
                run=self.pack,
                timeout=120.0,
                hints=Hints(read_only=False),
                errors=(ErrorCode.NOT_FOUND, ErrorCode.FORBIDDEN, ErrorCode.UNAVAILABLE),
                examples=({"arguments": {"recordId": "0a4d55a8d778e5022fab701977c5d840bbc486d0"}},),
            ),
        )

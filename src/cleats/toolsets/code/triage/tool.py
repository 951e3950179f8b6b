"""The tools `triage_ingest` and `triage_decision`.

Imported when a server starts; what reads documents is imported by the first call.
"""

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from anyio import from_thread, to_thread
from msgspec.structs import replace

from cleats.contract.errors import ErrorCode
from cleats.contract.tools import Context, Hints, Tool, arguments
from cleats.toolsets.code.indexing.access import Indexes
from cleats.toolsets.code.indexing.options import chosen
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.triage import shapes
from cleats.toolsets.code.triage.archive import Archive, virtual_path
from cleats.toolsets.code.triage.keeping import Keeper

if TYPE_CHECKING:
    from cleats.toolsets.code.indexing.progress import Progress
    from cleats.toolsets.code.triage.ingest import Advance, Ingested
    from cleats.toolsets.code.triage.records import Record


class TriageTools:
    """Findings and decisions, in the records of a repository."""

    def __init__(self, indexes: Indexes) -> None:
        self._indexes = indexes

    def _begin(self, given: Mapping[str, Any], context: Context) -> tuple[Repository, Keeper]:
        repository = self._indexes.repository(given.get("repoPath"))
        context.about(str(repository.root))
        return repository, self._indexes.records(repository)

    async def ingest(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        repository, keeper = self._begin(given, context)
        elsewhere = given["buildIndex"] and self._indexes.built_elsewhere(repository)
        given_up = threading.Event()

        def advance(done: int, total: int) -> bool:
            if given_up.is_set():
                return False
            from_thread.run_sync(lambda: _report(context, done, total))
            return True

        try:
            done = await to_thread.run_sync(
                _ingested, given, repository, keeper, advance, abandon_on_cancel=True
            )
        finally:
            given_up.set()
        if not done.total and not done.errors and not done.recognised:
            context.warn(
                "nothing_found",
                f"There is no finding in it, as {given['source']} would write one.",
                hint="Check that the source is what wrote the file.",
            )
        answer = {
            "source": given["source"],
            "repoPath": str(repository.root),
            "recordsDir": str(keeper.here.folder),
            **_answer(keeper.here, done),
        }
        if elsewhere:
            context.warn(
                "index_elsewhere",
                f"The shared index {elsewhere} is built elsewhere and has the records soon.",
            )
        elif given["buildIndex"]:
            answer["index"] = await self._build(repository, given, context)
        return answer

    async def _build(
        self, repository: Repository, given: Mapping[str, Any], context: Context
    ) -> dict[str, Any]:
        def report(at: "Progress") -> None:
            context.progress(
                at.message, phase=at.phase, done=at.done or None, total=at.total or None
            )

        known = self._indexes.shelf(repository).name() is not None
        stub = given.get("stubEmbeddings")
        options = replace(
            self._indexes.options,
            modes=chosen("records" if known else "all"),
            incremental=given["incremental"],
            vectors=None if stub is None else not stub,
        )
        done = await self._indexes.build(repository, options, report)
        for warning in done.warnings:
            context.warn("index_incomplete", warning)
        return {
            "generation": done.generation,
            "published": done.published,
            "records": done.chunks.get("records", 0),
            "seconds": done.seconds,
        }

    async def decide(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        _, keeper = self._begin(given, context)
        record = await to_thread.run_sync(_decided, given, keeper)
        from cleats.toolsets.code.triage.decisions import expired  # noqa: PLC0415

        made = record.decision
        over = made is not None and expired(made, datetime.now(UTC))
        if over:
            context.warn("decision_expired", "The decision is over already.")
        return {
            "recordId": record.record_id,
            "findingId": made.finding_record_id if made else "",
            "status": record.standing,
            "expiresAt": (made.expires_at or None) if made else None,
            "expired": over,
            "recordsDir": str(keeper.here.folder),
            "jsonPath": str(keeper.here.place(record)),
            "file": virtual_path(record.record_id),
        }

    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="triage_ingest",
                version=2,
                title="Take in findings",
                description=(
                    "Take in what a scanner found: vulnerable packages, findings in code or in "
                    "the cloud. Each becomes a record of this repository with a lasting id; the"
                    " same again changes nothing. With buildIndex=true, search finds them with "
                    "mode=records, and by their fields with meta."
                ),
                input=arguments(shapes.INGEST_ARGUMENTS, required=("source", "inputPath")),
                output=shapes.INGESTED,
                run=self.ingest,
                timeout=300.0,
                hints=Hints(read_only=False),
                errors=(ErrorCode.NOT_FOUND, ErrorCode.UNAVAILABLE),
                examples=(
                    {"arguments": {"source": "sarif", "inputPath": "bandit.sarif"}},
                    {
                        "arguments": {
                            "source": "npm_audit",
                            "inputPath": "/reports/audit.json",
                            "meta": {"service": "shop", "env": "prod"},
                            "buildIndex": True,
                        }
                    },
                ),
            ),
            Tool(
                name="triage_decision",
                version=2,
                title="Decide on a finding",
                description=(
                    "Record what was decided about a finding: fix, accept, defer, "
                    "false_positive or not_affected, why, by whom and until when. Decisions are "
                    "added, never changed; the newest counts, and those on similar findings are "
                    "shown by triage_context_pack."
                ),
                input=arguments(shapes.DECISION_ARGUMENTS, required=("finding", "status")),
                output=shapes.DECIDED,
                run=self.decide,
                timeout=30.0,
                hints=Hints(read_only=False, idempotent=False),
                errors=(ErrorCode.NOT_FOUND, ErrorCode.UNAVAILABLE),
                examples=(
                    {
                        "arguments": {
                            "finding": "0a4d55a8d778e5022fab701977c5d840bbc486d0",
                            "status": "not_affected",
                            "justification": "The parser is never given foreign input.",
                            "codes": ["code_not_reachable"],
                            "expires": "2027-01-31",
                        }
                    },
                ),
            ),
        )


def _report(context: Context, done: int, total: int) -> None:
    message = f"{done:,} of {total:,} findings"
    context.progress(message, phase="ingest", done=done, total=total)


def _ingested(
    given: Mapping[str, Any], repository: Repository, keeper: Keeper, advance: "Advance"
) -> "Ingested":
    from cleats.toolsets.code.triage.documents import read  # noqa: PLC0415
    from cleats.toolsets.code.triage.ingest import ingest  # noqa: PLC0415

    documents = read(given["inputPath"], repository.root)
    with keeper.writing() as writer:
        meta = given.get("meta", {})
        return ingest(writer, given["source"], documents, meta, advance, root=repository.root)


def _decided(given: Mapping[str, Any], keeper: Keeper) -> "Record":
    from cleats.toolsets.code.triage.decisions import decide  # noqa: PLC0415
    from cleats.toolsets.code.triage.lookup import finding  # noqa: PLC0415

    record = decide(finding(keeper.current(), "finding", given["finding"]), given)
    with keeper.writing() as writer:
        writer.save([record])
    return record


def _answer(archive: Archive, done: "Ingested") -> dict[str, Any]:
    from cleats.toolsets.code.triage.ingest import LISTED  # noqa: PLC0415

    listed = list(done.records.items())[:LISTED]
    return {
        "total": done.total,
        "written": done.changes["created"] + done.changes["updated"],
        "created": done.changes["created"],
        "updated": done.changes["updated"],
        "unchanged": done.changes["unchanged"],
        "duplicates": done.duplicates,
        "errors": done.errors,
        "recordIds": [record_id for record_id, _ in listed],
        "records": [
            {
                "recordId": record_id,
                "change": change,
                "jsonPath": str(archive.finding_place(record_id)),
                "file": virtual_path(record_id),
            }
            for record_id, change in listed
        ],
        "errorDetails": done.error_details,
    }

"""The tools `triage_ingest` and `triage_decision`, which `tools.json` declares.

This module is imported when a server starts; the readers of documents are imported by the first call.
"""

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from anyio import from_thread, to_thread
from msgspec.structs import replace

from cleats.contract.tools import Context, Tool
from cleats.system.tool_tables import ToolTable
from cleats.toolsets.code.index.options import expand_mode
from cleats.toolsets.code.index.progress import create_progress_reporter
from cleats.toolsets.code.index.service import Indexes
from cleats.toolsets.code.index.tool import build_unused_argument_error
from cleats.toolsets.code.records.archive import RecordArchive, RecordChange, RecordStore, virtual_path
from cleats.toolsets.code.repository import Repository

if TYPE_CHECKING:
    from cleats.toolsets.code.records.model import TriageRecord
    from cleats.toolsets.code.triage.ingest import IngestProgress, IngestResult


class TriageTools:
    """Tools for findings and decisions in the records of a repository."""

    def __init__(self, indexes: Indexes) -> None:
        self._indexes = indexes

    def _open_records(self, args: Mapping[str, Any], context: Context) -> tuple[Repository, RecordStore]:
        repository = self._indexes.find_repository(args.get("repoPath"))
        context.about(str(repository.root))
        return repository, self._indexes.records.open(repository)

    async def ingest(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        repository, store = self._open_records(args, context)
        if not args["buildIndex"] and not args["incremental"]:
            raise build_unused_argument_error("incremental", "buildIndex")
        if not args["buildIndex"] and "stubEmbeddings" in args:
            raise build_unused_argument_error("stubEmbeddings", "buildIndex")
        shared_index = args["buildIndex"] and self._indexes.find_remote_builder(repository)
        abandoned = threading.Event()

        def report_progress(done: int, total: int) -> bool:
            if abandoned.is_set():
                return False
            message = f"{done:,} of {total:,} findings"
            from_thread.run_sync(lambda: context.progress(message, phase="ingest", done=done, total=total))
            return True

        try:
            result = await to_thread.run_sync(
                _ingest_file, args, repository, store, report_progress, abandon_on_cancel=True
            )
        finally:
            abandoned.set()
        if not result.total and not result.errors and not result.recognised:
            context.warn(
                "nothing_found",
                f"The file has no finding in the format of {args['source']}.",
                hint="Check that `source` names the program that wrote the file.",
            )
        answer = {
            "source": args["source"],
            "repoPath": str(repository.root),
            "recordsDir": str(store.local_archive.folder),
            **_build_answer(store.local_archive, result),
        }
        if shared_index:
            context.warn(
                "index_elsewhere",
                f"The shared index {shared_index} is built by another process and will contain the records soon.",
            )
        elif args["buildIndex"]:
            answer["index"] = await self._build_index(repository, args, context)
        return answer

    async def _build_index(self, repository: Repository, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        has_index = self._indexes.open_store(repository).read_current_name() is not None
        stub_embeddings = args.get("stubEmbeddings")
        options = replace(
            self._indexes.options,
            modes=expand_mode("records" if has_index else "all"),
            incremental=args["incremental"],
            vectors=None if stub_embeddings is None else not stub_embeddings,
        )
        result = await self._indexes.build_index(repository, options, create_progress_reporter(context))
        for warning in result.warnings:
            context.warn("index_incomplete", warning)
        return {
            "generation": result.generation,
            "published": result.published,
            "records": result.chunks.get("records", 0),
            "seconds": result.seconds,
        }

    async def decide(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        _, store = self._open_records(args, context)
        record = await to_thread.run_sync(_save_decision, args, store)
        from cleats.toolsets.code.triage.decisions import is_expired  # noqa: PLC0415

        decision = record.decision
        has_expired = decision is not None and is_expired(decision, datetime.now(UTC))
        if has_expired:
            context.warn("decision_expired", "The decision has already expired.")
        return {
            "recordId": record.record_id,
            "findingId": decision.finding_record_id if decision else "",
            "status": record.effective_status,
            "expiresAt": (decision.expires_at or None) if decision else None,
            "expired": has_expired,
            "recordsDir": str(store.local_archive.folder),
            "jsonPath": str(store.local_archive.record_path(record)),
            "file": virtual_path(record.record_id),
        }

    def tools(self) -> tuple[Tool, ...]:
        handlers = {"triage_ingest": self.ingest, "triage_decision": self.decide}
        return ToolTable(Path(__file__).parent).make_tools(handlers)


def _ingest_file(
    args: Mapping[str, Any], repository: Repository, store: RecordStore, report_progress: "IngestProgress"
) -> "IngestResult":
    from cleats.toolsets.code.triage.ingest import ingest_documents, read_documents  # noqa: PLC0415

    documents = read_documents(args["inputPath"], repository.root)
    with store.open_writer() as writer:
        meta = args.get("meta", {})
        return ingest_documents(writer, args["source"], documents, meta, report_progress, root=repository.root)


def _save_decision(args: Mapping[str, Any], store: RecordStore) -> "TriageRecord":
    from cleats.toolsets.code.triage.decisions import build_decision, resolve_finding  # noqa: PLC0415

    record = build_decision(resolve_finding(store.refresh(), "finding", args["finding"]), args)
    with store.open_writer() as writer:
        writer.save([record])
    return record


def _build_answer(archive: RecordArchive, result: "IngestResult") -> dict[str, Any]:
    from cleats.toolsets.code.triage.ingest import MAX_LISTED_RECORDS  # noqa: PLC0415

    listed_records = list(result.records.items())[:MAX_LISTED_RECORDS]
    return {
        "total": result.total,
        "written": result.changes["created"] + result.changes["updated"],
        **{change: result.changes[change] for change in get_args(RecordChange)},
        "duplicates": result.duplicates,
        "errors": result.errors,
        "recordIds": [record_id for record_id, _ in listed_records],
        "records": [
            {
                "recordId": record_id,
                "change": change,
                "jsonPath": str(archive.finding_path(record_id)),
                "file": virtual_path(record_id),
            }
            for record_id, change in listed_records
        ],
        "errorDetails": result.error_details,
    }

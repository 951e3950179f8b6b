"""The tool `triage_context_pack`, which `tools.json` declares.

This module is imported when a server starts; the search code is imported by the first call, in a
thread. The queries of a pack use the engine of `search`, which is open if a search came before.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Context, Tool
from cleats.system import atomic_files
from cleats.system.processes import blocking
from cleats.system.safe_paths import check_path_name
from cleats.system.tool_tables import ToolTable
from cleats.toolsets.code.index.service import Indexes
from cleats.toolsets.code.records.archive import RecordStore
from cleats.toolsets.code.repository import Repository

if TYPE_CHECKING:
    from cleats.toolsets.code.records.model import TriageRecord
    from cleats.toolsets.code.search.tool import SearchTool

FRESHNESS_TIMEOUT_SECONDS: Final = 0.02
"""Seconds that a pack waits to learn whether its index is stale."""


class ContextPackTool:
    """Builds context packs from the records and the index of a repository."""

    def __init__(self, indexes: Indexes, search_tool: "SearchTool", data_dir: Path) -> None:
        self._indexes, self._search_tool, self._data_dir = indexes, search_tool, data_dir

    async def pack(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        repository = self._indexes.find_repository(args.get("repoPath"))
        context.about(str(repository.root))
        store = self._indexes.records.open(repository)
        warnings: list[dict[str, str]] = []
        with suppress(ToolError):  # `_gather_evidence` reports a missing index
            await self._indexes.wait_until_ready(repository)
        freshness = await self._indexes.check_freshness(repository, max_wait=FRESHNESS_TIMEOUT_SECONDS)
        if freshness is not None and freshness.is_stale:
            message = f"The index is not up to date: {freshness}."
            warnings.append({"code": "index_stale", "message": message})
        pack: dict[str, Any] = await blocking.run_in_thread(self._build_pack, args, repository, store, warnings)
        for warning in warnings:
            context.warn(warning["code"], warning["message"])
        return pack

    def _build_pack(
        self, args: Mapping[str, Any], repository: Repository, store: RecordStore, warnings: list[dict[str, str]]
    ) -> dict[str, Any]:
        from cleats.toolsets.code.records.model import format_current_time, to_public_dict  # noqa: PLC0415
        from cleats.toolsets.code.triage.decisions import find_related_decisions, resolve_finding  # noqa: PLC0415

        archive = store.refresh()
        record = resolve_finding(archive, "recordId", args["recordId"])
        out_path = None
        if "outPath" in args:
            folders = (repository.root, self._data_dir)
            out_path = resolve_target(args["outPath"], repository.root, folders)
        semantic = False if args["stubEmbeddings"] else args.get("ann")
        pack: dict[str, Any] = {
            "recordId": record.record_id,
            "generatedAt": format_current_time(),
            "finding": to_public_dict(record),
            "history": find_related_decisions(archive, record, datetime.now(UTC)),
            "repoEvidence": {
                "queries": self._gather_evidence(repository, record, semantic=semantic, warnings=warnings)
            },
        }
        if warnings:
            pack["warnings"] = warnings
        if out_path is not None:
            pack["outPath"] = str(out_path)
            write_pack(out_path, pack)
        return pack

    def _gather_evidence(
        self, repository: Repository, record: "TriageRecord", *, semantic: bool | None, warnings: list[dict[str, str]]
    ) -> list[dict[str, Any]]:
        from cleats.toolsets.code.triage.evidence import gather_evidence  # noqa: PLC0415

        try:
            with self._search_tool.open_engine(repository) as engine:
                return gather_evidence(engine, repository.root, record, semantic=semantic)
        except ToolError as error:
            if error.code is not ErrorCode.NO_INDEX:
                raise
            message = f"{error.message} The pack has no evidence from the code. {error.hint}"
            warnings.append({"code": "no_index", "message": message})
            return []

    def tools(self) -> tuple[Tool, ...]:
        return ToolTable(Path(__file__).parent).make_tools({"triage_context_pack": self.pack})


PACK_SUFFIX: Final = ".json"
GIT_FOLDER_NAME: Final = ".git"

MAX_EXISTING_BYTES: Final = 16 << 20
"""The largest existing file that is inspected before it is replaced."""

_PACK_KEYS: Final = frozenset({"recordId", "generatedAt", "finding", "repoEvidence"})
"""Keys that every pack has; only a file with these keys is replaced."""


def resolve_target(out_path: str, root: Path, folders: Sequence[Path]) -> Path:
    """Resolve the path for a pack, which is absolute or relative to the root of the repository.

    Raises:
        ToolError: FORBIDDEN if the path is outside of the folders or another file is there;
            INVALID_REQUEST if it cannot be a pack.
    """
    try:
        requested = root / check_path_name(out_path)
        path = requested.parent.resolve() / requested.name
        allowed_folders = [folder.resolve() for folder in folders]
        existing = path.lstat() if os.path.lexists(path) else None
    except (OSError, ValueError, RuntimeError) as error:
        raise _build_path_error(ErrorCode.INVALID_REQUEST, out_path, "is not a valid path") from error
    containing_folders = [folder for folder in allowed_folders if folder in path.parents]
    if not containing_folders:
        raise _build_path_error(ErrorCode.FORBIDDEN, out_path, "is neither in the repository nor in the data folder")
    if any(GIT_FOLDER_NAME in path.relative_to(allowed_folder).parts for allowed_folder in containing_folders):
        raise _build_path_error(ErrorCode.FORBIDDEN, out_path, "is in git's own folder")
    if path.suffix.lower() != PACK_SUFFIX:
        raise _build_path_error(ErrorCode.INVALID_REQUEST, out_path, f"does not end in {PACK_SUFFIX}")
    if existing is not None and not _is_pack(path, existing.st_mode, existing.st_size):
        raise _build_path_error(ErrorCode.FORBIDDEN, out_path, "exists and is not a context pack")
    return path


def write_pack(path: Path, pack: dict[str, Any]) -> None:
    """Write a pack atomically.

    Raises:
        ToolError: INVALID_REQUEST if the pack cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        data = msgspec.json.format(msgspec.json.encode(pack)) + b"\n"
        atomic_files.replace_file(path, data, mode=atomic_files.PRIVATE_MODE)
    except OSError as error:
        reason = f"cannot be written: {error.strerror}"
        raise _build_path_error(ErrorCode.INVALID_REQUEST, str(path), reason) from error


def _is_pack(path: Path, mode: int, size: int) -> bool:
    if not stat.S_ISREG(mode) or size > MAX_EXISTING_BYTES:
        return False
    try:
        document = msgspec.json.decode(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.keys() >= _PACK_KEYS


def _build_path_error(code: ErrorCode, out_path: str, reason: str) -> ToolError:
    return ToolError(
        code,
        f"outPath: {out_path!r} {reason}",
        hint="Name a new .json file in the repository, or omit outPath: the answer has the whole pack.",
    )

"""Ingestion of a report: the file is read, every finding is parsed, identified, completed and saved.

A report is one JSON document, or one per line. A finding that cannot be parsed is reported and does
not affect the others. Ingesting the same document again changes nothing.
"""

import hashlib
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.analysis.extract import convert_to_utf8
from cleats.toolsets.code.index.file_reader import NotAFileError, read_content
from cleats.toolsets.code.records.archive import RecordChange, RecordWriter
from cleats.toolsets.code.records.model import TriageRecord, compute_record_id, encode_json
from cleats.toolsets.code.triage.decisions import apply_meta
from cleats.toolsets.code.triage.sources.registry import (
    SOURCES_BY_NAME,
    build_format_hint,
    can_come_from,
    is_recognizable,
)
from cleats.toolsets.code.triage.values import strip_root

MAX_FILE_BYTES: Final = 64 << 20
"""The largest file that is read; every genuine scanner report is smaller."""

_UTF8_BOM: Final = b"\xef\xbb\xbf"


@dataclass
class Documents:
    """The content of a file."""

    parsed: list[tuple[int, Any]] = field(default_factory=list)
    """Each document with its line number, or 0 if the file is a single document."""
    invalid_lines: list[tuple[int, str]] = field(default_factory=list)
    """Numbers of lines that are not valid JSON, with the reasons."""
    by_line: bool = False


def read_documents(input_path: str, root: Path) -> Documents:
    """Read a file whose path is absolute or relative to the root of a repository.

    Raises:
        ToolError: NOT_FOUND if there is no such file; INVALID_REQUEST if it is not a JSON file or too large.
    """
    try:
        path = (root / input_path).resolve(strict=True)
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _build_input_error(input_path, "is not a file", "Give the path of a file.")
        if status.st_size > MAX_FILE_BYTES:
            raise _build_input_error(
                input_path,
                f"has {status.st_size:,} bytes; the maximum is {MAX_FILE_BYTES:,}",
                "Split it into several files; the findings stay the same.",
            )
        return parse_documents(input_path, read_content(str(path)).data)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"inputPath: the file {input_path!r} does not exist",
            hint=f"Give an absolute path, or one relative to {root}.",
        ) from error
    except NotAFileError as error:
        raise _build_input_error(input_path, "is not a file", "Give the path of a file.") from error
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "is not a valid path"
        raise _build_input_error(input_path, f"cannot be read: {reason}", "Give the path of a file.") from error


def parse_documents(input_path: str, data: bytes) -> Documents:
    """Parse JSON or, if that fails, JSON lines.

    Raises:
        ToolError: INVALID_REQUEST if the data is neither.
    """
    text = convert_to_utf8(data).removeprefix(_UTF8_BOM)
    document, problem = _decode_json(text)
    if not problem:
        return Documents([(0, document)])
    documents = Documents(by_line=True)
    for number, line in enumerate(text.split(b"\n")):
        if not line.strip():
            continue
        document, reason = _decode_json(line)
        if not reason and not isinstance(document, dict | list):
            reason = "is not an object"
        if reason:
            documents.invalid_lines.append((number, reason))
        else:
            documents.parsed.append((number, document))
    if documents.parsed:
        return documents
    raise _build_input_error(input_path, f"is not JSON: {problem}", "Give the scanner's output as JSON.")


def _decode_json(text: bytes) -> tuple[Any, str]:
    """Return a document and an empty text, or None and the reason for the failure."""
    if not text.strip():
        return None, "it is empty"
    try:
        return msgspec.json.decode(text), ""
    except RecursionError:
        return None, "it is nested too deeply"
    except (msgspec.MsgspecError, ValueError) as error:
        return None, str(error)


def _build_input_error(input_path: str, reason: str, hint: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"inputPath: {input_path!r} {reason}",
        hint=hint,
        details=[{"instancePath": "/inputPath", "keyword": "file", "message": reason}],
    )


MAX_RAW_BYTES: Final = 32 << 10
"""The largest original of a finding that is saved with its record."""

MAX_REPORTED_ERRORS: Final = 100
"""Errors that are reported one by one; the others are only counted."""

MAX_LISTED_RECORDS: Final = 500
"""Records that are listed in an answer; all are counted."""

SAVE_BATCH_FINDINGS: Final = 50
"""Findings that are saved together, and the interval of progress reports."""

IngestProgress = Callable[[int, int], bool]
"""Callback that takes the number of processed findings and the total; False stops the ingestion."""


@dataclass
class IngestResult:
    """The result of an ingestion."""

    total: int = 0
    errors: int = 0
    duplicates: int = 0
    """Findings that occur more than once in the documents."""
    recognised: bool = False
    """True if the source has a recognizable format, so that a report without findings is plausible."""
    changes: Counter[RecordChange] = field(default_factory=Counter)
    records: dict[str, RecordChange] = field(default_factory=dict)
    error_details: list[dict[str, Any]] = field(default_factory=list)

    def add_error(self, index: int, message: str) -> None:
        self.errors += 1
        if len(self.error_details) < MAX_REPORTED_ERRORS:
            self.error_details.append({"index": index, "message": message})


class NotAFinding(Exception):  # noqa: N818 - an answer about one thing in a document
    """Raised for an item that lacks everything a finding needs."""


def ingest_documents(
    writer: RecordWriter,
    source: str,
    documents: Documents,
    meta: Mapping[str, Any],
    report_progress: IngestProgress = lambda _done, _total: True,
    *,
    root: Path = Path(),
) -> IngestResult:
    """Save every finding of the documents, with paths relative to `root`.

    Raises:
        ToolError: INVALID_REQUEST if no document has the format of the source; nothing is saved.
        OSError, ToolError: A record cannot be saved; earlier ones are saved.
    """
    result = IngestResult(recognised=is_recognizable(source))
    for line, reason in documents.invalid_lines:
        result.add_error(line, f"line {line + 1}: {reason}")
    items: list[tuple[int, Any]] = []
    mismatch_count = 0
    for line, document in documents.parsed:
        if not can_come_from(source, document):
            mismatch_count += 1
            result.add_error(line, f"line {line + 1}: it is not in the format of {source}")
            continue
        numbered_items = enumerate(SOURCES_BY_NAME[source].iter_items(document))
        items += ((line if documents.by_line else number, item) for number, item in numbered_items)
    if mismatch_count and mismatch_count == len(documents.parsed):
        raise _build_format_error(source, documents.parsed[0][1])
    session = _IngestSession(writer, source, meta, result, root)
    for count, (index, item) in enumerate(items):
        if count % SAVE_BATCH_FINDINGS == 0:
            session.save_pending()
            if not report_progress(count, len(items)):
                break
        session.add(index, item)
    session.save_pending()
    return result


def _build_format_error(source: str, document: Any) -> ToolError:
    reason = f"is not in the format of {source}"
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"inputPath: the document {reason}",
        hint=build_format_hint(source, document),
        details=[{"instancePath": "/inputPath", "keyword": "source", "message": reason}],
    )


@dataclass(frozen=True)
class _IngestSession:
    writer: RecordWriter
    source: str
    meta: Mapping[str, Any]
    result: IngestResult
    root: Path
    pending: dict[str, TriageRecord] = field(default_factory=dict)

    def add(self, index: int, item: Any) -> None:
        result = self.result
        result.total += 1
        try:
            record = parse_finding(self.source, item)
        except (NotAFinding, RecursionError) as error:
            result.add_error(index, str(error) if isinstance(error, NotAFinding) else "it is nested too deeply")
            return
        if record.record_id in result.records or record.record_id in self.pending:
            # The first one counts; otherwise the two would overwrite each other in every ingestion.
            result.duplicates += 1
            return
        apply_meta(record, self.meta)
        self.pending[record.record_id] = record
        # Paths are relative to the repository, so that they are the same on every machine.
        for location in record.locations:
            location.path = strip_root(self.root, location.path)
        record.package.manifest_path = strip_root(self.root, record.package.manifest_path)

    def save_pending(self) -> None:
        changes = self.writer.save(list(self.pending.values()))
        self.result.changes.update(changes)
        self.result.records.update(zip(self.pending, changes, strict=True))
        self.pending.clear()


def parse_finding(source: str, item: Any) -> TriageRecord:
    """Return the record of one item of a document, without timestamps.

    Raises:
        NotAFinding: The item lacks everything a finding needs.
        RecursionError: The item is nested too deeply.
    """
    if not isinstance(item, dict):
        raise NotAFinding("it is not an object")
    key, record = SOURCES_BY_NAME[source].draft_finding(item)
    if not (record.vuln.vuln_id or record.vuln.title or record.package.name):
        raise NotAFinding(f"it has no id, title or package in the format of {source}")
    record.source = source
    raw = encode_json(item)
    if len(raw) <= MAX_RAW_BYTES:
        record.raw = msgspec.Raw(raw)
    record.parse_warnings = list(_iter_warnings(record, key, len(raw)))
    record.record_id = compute_record_id(source, key or hashlib.sha256(raw).hexdigest())
    # Saved records are compared with decoded ones, so return the record as it will be decoded.
    return msgspec.json.decode(encode_json(record), type=TriageRecord)


def _iter_warnings(record: TriageRecord, key: str, raw_size: int) -> Iterator[str]:
    if not key:
        yield "no id from the scanner: any change in it makes it another finding"
    if not record.vuln.severity:
        yield "no severity"
    if raw_size > MAX_RAW_BYTES:
        yield f"the original of {raw_size:,} bytes was not kept"

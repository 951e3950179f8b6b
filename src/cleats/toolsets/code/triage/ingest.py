"""Ingestion of documents: every finding is parsed, identified, completed and saved.

A finding that cannot be parsed is reported and does not affect the others. Ingesting the same
document again changes nothing.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.triage.documents import Documents
from cleats.toolsets.code.triage.lookup import apply_meta
from cleats.toolsets.code.triage.record_store import RecordChange, RecordWriter
from cleats.toolsets.code.triage.records import TriageRecord, compute_record_id, encode_json
from cleats.toolsets.code.triage.sources.registry import SOURCES_BY_NAME
from cleats.toolsets.code.triage.values import get_nested, iter_objects, strip_root

FormatCheck: TypeAlias = Callable[[Any], bool]


class KnownFormat(NamedTuple):
    """A recognizable format, and the advice for a document in it."""

    name: str
    advice: str
    matches: FormatCheck


def can_come_from(source: str, document: Any) -> bool:
    """Return True if a document can be output of the source, with or without findings."""
    if source in UNCHECKED_SOURCES:
        return True
    known_format = detect_format(document)
    if known_format is not None:
        return known_format.name == source
    return source not in CHECKS_BY_SOURCE or EMPTY_REPORT_CHECKS[source](document)


def build_format_hint(source: str, document: Any) -> str:
    """Return a hint for a document that is not output of the source."""
    known_format = detect_format(document)
    if known_format is None:
        return f"Check what wrote the file: {source} always has {REQUIRED_KEYS_BY_SOURCE[source]}."
    return f"This looks like {known_format.advice}"


def detect_format(document: Any) -> KnownFormat | None:
    """Return the format of a document, or None if it is not recognized."""
    return next((known_format for known_format in KNOWN_FORMATS if known_format.matches(document)), None)


def _is_sarif(document: Any) -> bool:
    runs = get_nested(document, "runs")
    if not isinstance(runs, list):
        return False
    return isinstance(get_nested(document, "version"), str) or any("tool" in run for run in iter_objects(runs))


def _is_npm_audit(document: Any) -> bool:
    tables = (get_nested(document, "advisories"), get_nested(document, "vulnerabilities"))
    return any(isinstance(table, dict) for table in tables)


def _is_pip_audit(document: Any) -> bool:
    dependencies = get_nested(document, "dependencies") if isinstance(document, dict) else document
    return any("vulns" in dependency or "skip_reason" in dependency for dependency in _list_objects(dependencies))


def _is_osv(document: Any) -> bool:
    if isinstance(document, list):
        return any(map(_is_osv_entry, _list_objects(document)))
    results = _list_objects(get_nested(document, "results"))
    has_results = any("packages" in result or "vulns" in result for result in results)
    return has_results or isinstance(get_nested(document, "vulns"), list) or _is_osv_entry(document)


def _is_osv_entry(document: Any) -> bool:
    """Return True for an entry of the OSV database itself."""
    typical_keys = ("affected", "modified", "published", "schema_version", "aliases")
    return isinstance(get_nested(document, "id"), str) and any(key in document for key in typical_keys)


def _has_keys(**kinds: type) -> FormatCheck:
    """Return a check that these keys have values of these types."""
    return lambda document: all(isinstance(get_nested(document, key), kinds[key]) for key in kinds)


def _has_rows_with(*keys: str) -> FormatCheck:
    """Return a check that the document is a list with an object that has these keys."""
    return lambda document: any(all(key in row for key in keys) for row in _list_objects(document))


def _list_objects(value: Any) -> list[dict[str, Any]]:
    return list(iter_objects(value)) if isinstance(value, list) else []


CHECKS_BY_SOURCE: Final[Mapping[str, FormatCheck]] = {
    "sarif": _is_sarif,
    "cyclonedx": lambda document: get_nested(document, "bomFormat") == "CycloneDX",
    "npm_audit": _is_npm_audit,
    "pip_audit": _is_pip_audit,
    "osv": _is_osv,
}
"""Checks that recognize a document of each source."""

EMPTY_REPORT_CHECKS: Final[Mapping[str, FormatCheck]] = {
    **CHECKS_BY_SOURCE,
    "pip_audit": lambda document: document == [] or _has_keys(dependencies=list)(document),
    # The OSV API answers `{}` for a package without vulnerabilities.
    "osv": lambda document: document in ([], {}) or _has_keys(results=list)(document) or _has_keys(id=str)(document),
}
"""Weaker checks for documents that match no known format, such as reports without findings."""

REQUIRED_KEYS_BY_SOURCE: Final[Mapping[str, str]] = {
    "sarif": "`version` and `runs`",
    "cyclonedx": '`"bomFormat": "CycloneDX"`',
    "npm_audit": "`vulnerabilities` or `advisories`",
    "pip_audit": "`dependencies`",
    "osv": "`results` or `vulns`",
}
"""The keys that every document of a source has, for hints."""

UNCHECKED_SOURCES: Final = frozenset({"generic", "manual"})
"""Sources that accept any document."""

KNOWN_FORMATS: Final = (
    KnownFormat("bandit", "bandit's JSON: run `bandit -f sarif`.", _has_keys(results=list, metrics=dict)),
    KnownFormat("semgrep", "Semgrep's JSON: run `semgrep --sarif`.", _has_keys(results=list, paths=dict)),
    KnownFormat("trivy", "Trivy's JSON: run `trivy --format sarif`.", _has_keys(SchemaVersion=int)),
    KnownFormat("grype", "Grype's JSON: run `grype -o sarif`.", _has_keys(matches=list, descriptor=dict)),
    KnownFormat(
        "ruff",
        "ruff's JSON: run `ruff check --output-format sarif`.",
        _has_rows_with("code", "filename", "noqa_row"),
    ),
    KnownFormat("spdx", "SPDX, which lists packages and no findings.", _has_keys(spdxVersion=str)),
    KnownFormat("npm_error", "an error of npm: look at its message.", _has_keys(error=dict)),
    KnownFormat("sarif", "SARIF: name the source `sarif`.", CHECKS_BY_SOURCE["sarif"]),
    KnownFormat("cyclonedx", "CycloneDX: name the source `cyclonedx`.", CHECKS_BY_SOURCE["cyclonedx"]),
    KnownFormat("npm_audit", "what npm audit writes: name the source `npm_audit`.", CHECKS_BY_SOURCE["npm_audit"]),
    KnownFormat("pip_audit", "what pip-audit writes: name the source `pip_audit`.", CHECKS_BY_SOURCE["pip_audit"]),
    KnownFormat("osv", "OSV: name the source `osv`.", CHECKS_BY_SOURCE["osv"]),
)
"""The formats that callers provide, those with the most reliable checks first."""


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
    """True if the source has a recognizable format, so that a report without findings is
    plausible."""
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
    result = IngestResult(recognised=source in CHECKS_BY_SOURCE)
    for line, reason in documents.invalid_lines:
        result.add_error(line, f"line {line + 1}: {reason}")
    items: list[tuple[int, Any]] = []
    mismatch_count = 0
    for line, document in documents.parsed:
        if not can_come_from(source, document):
            mismatch_count += 1
            result.add_error(line, f"line {line + 1}: it is not what {source} writes")
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
    reason = f"is not what {source} writes"
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
        except NotAFinding as error:
            result.add_error(index, str(error))
            return
        except RecursionError:
            result.add_error(index, "it is nested too deep")
            return
        if record.record_id in result.records or record.record_id in self.pending:
            result.duplicates += (
                1  # the first one counts; otherwise the two would overwrite each other in every ingestion
            )
            return
        apply_meta(record, self.meta)
        self._relativize_paths(record)
        self.pending[record.record_id] = record

    def _relativize_paths(self, record: TriageRecord) -> None:
        """Make paths relative to the repository, so that they are the same on every machine."""
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
        raise NotAFinding("it is no object")
    key, record = SOURCES_BY_NAME[source].draft_finding(item)
    if not (record.vuln.vuln_id or record.vuln.title or record.package.name):
        raise NotAFinding(f"it has no id, no title and no package, as {source} would write them")
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
        yield "no id of its own: any change in it makes it another finding"
    if not record.vuln.severity:
        yield "no severity"
    if raw_size > MAX_RAW_BYTES:
        yield f"the original of {raw_size:,} bytes was not kept"

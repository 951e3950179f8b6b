"""Decisions about findings: the finding of an id, creation, expiry, and relevance to other findings."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from itertools import islice
from typing import Any, Final
from uuid import uuid4

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.records.archive import RecordArchive
from cleats.toolsets.code.records.model import Decision, TriageRecord, compute_record_id
from cleats.toolsets.code.triage.values import to_line, to_lines, to_text

MAX_SUGGESTED_IDS: Final = 5
"""Ids that are suggested for an unknown one."""

SHARED_PREFIX_CHARS: Final = 4
"""Leading characters that an id must share with an unknown one to be suggested."""

_PLAIN_ID_PATTERN = re.compile(r"[^/\\\0]+")


def resolve_finding(archive: RecordArchive, argument: str, record_id: str) -> TriageRecord:
    """Return the finding with an id.

    Raises:
        ToolError: INVALID_REQUEST if the id is malformed or that of a decision; NOT_FOUND if no record has it.
    """
    stripped_id = record_id.strip()
    if not _PLAIN_ID_PATTERN.fullmatch(stripped_id) or stripped_id in (".", ".."):
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{argument}: {record_id!r} is not a valid record id",
            hint="A record id has 40 hexadecimal digits.",
        )
    record = archive.find(stripped_id.lower())
    if record is None:
        raise _build_not_found_error(archive, argument, stripped_id)
    if record.decision is not None:
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{argument}: {stripped_id} is a decision",
            hint=f"Use the id of its finding: {record.decision.finding_record_id}.",
        )
    return record


def _build_not_found_error(archive: RecordArchive, argument: str, record_id: str) -> ToolError:
    similar = list(islice(_iter_similar(archive, record_id), MAX_SUGGESTED_IDS))
    suggestions = [f"{record.record_id} ({record.name})" for record in similar]
    hint = f"Did you mean {' or '.join(suggestions)}?" if similar else _ID_SOURCES_HINT
    return ToolError(
        ErrorCode.NOT_FOUND,
        f"{argument}: the record {record_id!r} does not exist",
        hint=hint,
        details={"near": [record.record_id for record in similar]} if similar else None,
    )


_ID_SOURCES_HINT: Final = (
    "triage_ingest returns the ids of the findings it imports; `search` with mode=records finds them."
)


def _iter_similar(archive: RecordArchive, record_id: str) -> Iterator[TriageRecord]:
    """Yield findings whose id starts alike, or whose vulnerability or package has that name."""
    lowered = record_id.lower()
    for record in archive.iter_records("finding"):
        names = {
            record.vuln.vuln_id.lower(),
            record.vuln.cve.lower(),
            record.package.name.lower(),
            *(alias.lower() for alias in record.vuln.aliases),
        }
        if lowered in names or record.record_id.startswith(lowered[:SHARED_PREFIX_CHARS]):
            yield record


OWNERSHIP_FIELDS: Final = ("service", "env", "team", "owner", "repo")
EXPOSURE_FIELDS: Final = {
    "internetExposed": "internet_exposed",
    "publicEndpoint": "public_endpoint",
    "dataSensitivity": "data_sensitivity",
    "businessCriticality": "business_criticality",
    "compensatingControls": "compensating_controls",
}


def apply_meta(record: TriageRecord, meta: Mapping[str, Any]) -> None:
    """Apply the values of the argument `meta` to a record."""
    for name, value in meta.items():
        if name in OWNERSHIP_FIELDS:
            setattr(record, name, to_line(value))
        elif name in EXPOSURE_FIELDS:
            setattr(record.exposure, EXPOSURE_FIELDS[name], value)
        else:
            text = str(value).lower() if isinstance(value, bool) else to_line(value)
            record.labels = {**record.labels, name: text}


MAX_SHOWN_DECISIONS: Final = 5
"""Decisions shown to a reader."""

_DATE_PATTERN = re.compile(r"\d{4}-\d\d-\d\d")
_DATETIME_PATTERN = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?")


def build_decision(finding: TriageRecord, args: Mapping[str, Any]) -> TriageRecord:
    """Return the record of a new decision about a finding; each call creates a different id.

    Raises:
        ToolError: INVALID_REQUEST if the expiry is not a date.
    """
    decision = Decision(
        finding_record_id=finding.record_id,
        status=args["status"],
        justification=to_text(args.get("justification")),
        justification_codes=to_lines(args.get("codes", [])),
        reviewer=str(args.get("reviewer", "")).strip(),
        expires_at=parse_expiry(args["expires"]) if "expires" in args else "",
        evidence_refs=to_lines(args.get("evidence", [])),
    )
    record = msgspec.structs.replace(
        finding,
        record_type="decision",
        **dict.fromkeys(("created_at", "updated_at", "status"), ""),
        locations=[],
        parse_warnings=[],
        raw=None,
        exposure=msgspec.structs.replace(finding.exposure),
        decision=decision,
    )
    apply_meta(record, args.get("meta", {}))
    record.record_id = compute_record_id("decision", f"{finding.record_id}:{uuid4()}")
    return record


def parse_expiry(text: str) -> str:
    """Normalize an expiry to a date, or to a time in UTC.

    Raises:
        ToolError: INVALID_REQUEST if the text is neither a date nor a time.
    """
    stripped = text.strip()
    try:
        if _DATE_PATTERN.fullmatch(stripped):
            return date.fromisoformat(stripped).isoformat()
        if _DATETIME_PATTERN.fullmatch(stripped):
            moment = datetime.fromisoformat(stripped)
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return aware.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        pass
    raise ToolError(
        ErrorCode.INVALID_REQUEST,
        f"expires: {text!r} is not a valid date",
        hint="Write it as 2027-01-31, or with a time as 2027-01-31T12:00:00Z.",
        details=[{"instancePath": "/expires", "keyword": "date", "message": "is not a valid date"}],
    )


def is_expired(decision: Decision, now: datetime) -> bool:
    """Return True if a decision no longer applies; it applies through the day it names."""
    until = decision.expires_at
    if not until:
        return False
    if _DATE_PATTERN.fullmatch(until):
        return now.astimezone(UTC).date().isoformat() > until
    return now >= datetime.fromisoformat(until)


def find_related_decisions(archive: RecordArchive, finding: TriageRecord, now: datetime) -> list[dict[str, Any]]:
    """Return the decisions about a finding and similar ones, the closest first, then the newest."""
    related = [
        (-distance, decision_record.created_at, decision_record.record_id, relation, decision_record)
        for decision_record in archive.iter_records("decision")
        for distance, relation in _iter_relations(finding, decision_record)
    ]
    newest_first = sorted(related, key=lambda match: match[1:3], reverse=True)
    nearest_first = sorted(newest_first, key=lambda match: match[0], reverse=True)
    return [
        _describe_decision(decision_record, relation, now)
        for *_, relation, decision_record in nearest_first[:MAX_SHOWN_DECISIONS]
    ]


def _iter_relations(finding: TriageRecord, decision_record: TriageRecord) -> Iterator[tuple[int, str]]:
    """Yield the closest relation between a finding and a decision, with its distance, if any."""
    if decision_record.decision is None:
        return
    if decision_record.decision.finding_record_id == finding.record_id:
        yield 0, "finding"
    elif _vulnerability_names(finding) & _vulnerability_names(decision_record):
        yield 1, "vulnerability"
    elif _equals_ignoring_case(finding.package.name, decision_record.package.name):
        yield 2, "package"
    elif _equals_ignoring_case(finding.package.manifest_path, decision_record.package.manifest_path):
        yield 3, "manifest"


def _vulnerability_names(record: TriageRecord) -> set[str]:
    vuln = record.vuln
    return {name.lower() for name in (vuln.vuln_id, vuln.cve, *vuln.aliases) if name}


def _equals_ignoring_case(first_text: str, second_text: str) -> bool:
    return bool(first_text) and first_text.lower() == second_text.lower()


def _describe_decision(record: TriageRecord, relation: str, now: datetime) -> dict[str, Any]:
    decision = record.decision
    decision_fields = msgspec.to_builtins(decision)
    return {
        "recordId": record.record_id,
        "relation": relation,
        "decidedAt": record.created_at,
        "expired": decision is not None and is_expired(decision, now),
        "vulnId": record.vuln.vuln_id,
        "packageName": record.package.name,
        "service": record.service,
        "env": record.env,
        **decision_fields,
    }

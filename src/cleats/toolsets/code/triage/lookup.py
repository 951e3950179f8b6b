"""Resolves the id of a finding, with suggestions if there is none."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.records.archive import RecordArchive
from cleats.toolsets.code.records.model import TriageRecord
from cleats.toolsets.code.triage.values import to_line

MAX_SUGGESTED_IDS: Final = 5
"""Ids that are suggested for an unknown one."""

SHARED_PREFIX_CHARS: Final = 4
"""Leading characters that an id must share with an unknown one to be suggested."""

_PLAIN_ID_PATTERN = re.compile(r"[^/\\\0]+")


def resolve_finding(archive: RecordArchive, argument: str, record_id: str) -> TriageRecord:
    """Return the finding with an id.

    Raises:
        ToolError: INVALID_REQUEST if the id is malformed or that of a decision; NOT_FOUND if no
            record has it.
    """
    stripped_id = record_id.strip()
    if not _PLAIN_ID_PATTERN.fullmatch(stripped_id) or stripped_id in (".", ".."):
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{argument}: {record_id!r} is no id of a record",
            hint="An id has 40 digits, 0 to 9 and a to f; it is no path.",
        )
    record = archive.find(stripped_id.lower())
    if record is None:
        raise _build_not_found_error(archive, argument, stripped_id)
    if record.decision is not None:
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{argument}: {stripped_id} is a decision",
            hint=f"Use the finding it is about: {record.decision.finding_record_id}.",
        )
    return record


def _build_not_found_error(archive: RecordArchive, argument: str, record_id: str) -> ToolError:
    similar = list(islice(_iter_similar(archive, record_id), MAX_SUGGESTED_IDS))
    suggestions = [f"{record.record_id} ({record.name})" for record in similar]
    hint = f"Did you mean {' or '.join(suggestions)}?" if similar else _ID_SOURCES_HINT
    return ToolError(
        ErrorCode.NOT_FOUND,
        f"{argument}: there is no record {record_id!r}",
        hint=hint,
        details={"near": [record.record_id for record in similar]} if similar else None,
    )


_ID_SOURCES_HINT: Final = (
    "triage_ingest answers with the ids of what it took in; `search` with mode=records finds them."
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

_TEXT_SCHEMA: Final = {"type": "string", "minLength": 1, "maxLength": 500}

META_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "maxProperties": 50,
    "description": ("What to note on every record: whom it belongs to, how exposed it is, and labels of your own."),
    "properties": {
        "service": _TEXT_SCHEMA,
        "env": _TEXT_SCHEMA,
        "team": _TEXT_SCHEMA,
        "owner": _TEXT_SCHEMA,
        "repo": _TEXT_SCHEMA,
        "internetExposed": {"type": "boolean"},
        "publicEndpoint": _TEXT_SCHEMA,
        "dataSensitivity": _TEXT_SCHEMA,
        "businessCriticality": _TEXT_SCHEMA,
        "compensatingControls": {"type": "array", "items": _TEXT_SCHEMA, "maxItems": 50},
    },
    "propertyNames": {"minLength": 1, "maxLength": 100},
    "additionalProperties": {"type": ["string", "number", "boolean"], "maxLength": 500},
}
"""The schema of the argument `meta`."""


def apply_meta(record: TriageRecord, meta: Mapping[str, Any]) -> None:
    """Apply the values of the argument `meta` to a record."""
    for name, value in meta.items():
        if name in OWNERSHIP_FIELDS:
            setattr(record, name, to_line(value))
        elif name in EXPOSURE_FIELDS:
            setattr(record.exposure, EXPOSURE_FIELDS[name], value)
        else:
            record.labels = {**record.labels, name: _format_label(value)}


def _format_label(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return to_line(value)

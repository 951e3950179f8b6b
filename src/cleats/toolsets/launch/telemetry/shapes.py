"""The records of the telemetry API: what a client may send and what it gets."""

from collections.abc import Mapping
from typing import Any, Final

STATUSES: Final = ("running", "success", "failure", "partial", "timeout", "cancelled")

_TEXT: Final = {"type": "string", "maxLength": 4096}
_MOMENT: Final = {
    "type": "string",
    "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})?$",
}
"""ISO 8601. A pattern, because a validator may pass over a `format`; the zone may be missing,
because many a client leaves it out."""

_COUNT: Final = {"type": "integer", "minimum": 0}
_FACTS: Final = {"type": ["object", "null"]}
_ID: Final = {"type": "string", "minLength": 1, "maxLength": 256}
_UUID: Final = {
    "type": "string",
    "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
}

_ENDS: Final[Mapping[str, Any]] = {
    "status": {"enum": list(STATUSES)},
    "end_time": _MOMENT,
    "duration_ms": {"type": "number", "minimum": 0},
    "items_discovered": _COUNT,
    "items_succeeded": _COUNT,
    "items_failed": _COUNT,
    "items_skipped": _COUNT,
    "output_summary": _TEXT,
    "error_summary": _TEXT,
    "metrics_json": _FACTS,
    "context_json": _FACTS,
}

RECORD: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["event_id", "run_id", "agent_name", "job_type", "start_time"],
    "properties": {
        "event_id": _UUID,
        "run_id": _ID,
        "agent_name": _ID,
        "job_type": _ID,
        "start_time": _MOMENT,
        "parent_run_id": _ID,
        "product": _TEXT,
        "product_family": _TEXT,
        "platform": _TEXT,
        "subdomain": _TEXT,
        "website": _TEXT,
        "website_section": _TEXT,
        "item_name": _TEXT,
        "git_repo": _TEXT,
        "git_branch": _TEXT,
        **_ENDS,
    },
    "additionalProperties": False,
}
"""A record as it begins; `event_id` makes sending it twice the same as sending it once."""

UPDATE: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": _ENDS,
    "minProperties": 1,
    "additionalProperties": False,
}
"""What may be said about a record later."""

COMMIT: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["commit_hash", "commit_source"],
    "properties": {
        "commit_hash": {"type": "string", "pattern": "^[0-9a-f]{7,40}$"},
        "commit_source": {"enum": ["manual", "llm", "ci"]},
        "commit_author": _TEXT,
        "commit_timestamp": _MOMENT,
    },
    "additionalProperties": False,
}

BATCH: Final[Mapping[str, Any]] = {
    "type": "array",
    "maxItems": 1000,
    "items": {"type": "object"},
}

STORED: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["event_id", "run_id", "agent_name", "job_type", "start_time", "status"],
    "properties": {**RECORD["properties"], "commits": {"type": "array", "items": COMMIT}},
}
"""A record as it is given back."""

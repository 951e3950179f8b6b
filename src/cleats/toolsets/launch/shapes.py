"""What the launch tools take and answer, as JSON Schema.

An answer is open: a client that validates must not break on a field that a minor version adds.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cleats.toolsets.launch.states import SectionState, State

Schema = Mapping[str, Any]

TEXT: Final = {"type": "string"}
HASH: Final = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
STATE: Final = {"enum": [state.value for state in State]}
WHOLE: Final = {"type": "integer", "minimum": 0}

RUN_ID: Final = {
    "type": "string",
    "description": "As the start tools and launch_list_runs give it: r_2026-01-21T10-00-00Z_…",
}
KEY: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "description": (
        "Any text that is the same when you retry: the run that it started is answered again."
    ),
}


def record(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """An object whose first properties are always there."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
    }


def listing(item: Schema) -> Schema:
    """A list of one kind of thing."""
    return {"type": "array", "items": item}


ERROR: Final = record(
    {
        "code": TEXT,
        "message": TEXT,
        "retryable": {"type": "boolean"},
        "details": {"type": "object"},
    }
)


def answer(fields: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """`{ok: true, …}` with these fields, or `{ok: false, run_id?, error}`."""
    known = {"run_id": TEXT, **fields, **(optional or {}), "error": ERROR}
    return {
        "type": "object",
        "required": ["ok"],
        "properties": {"ok": {"type": "boolean"}, **known},
        "oneOf": [
            {"properties": {"ok": {"const": True}}, "required": list(fields)},
            {"properties": {"ok": {"const": False}}, "required": ["error"]},
        ],
    }


ISSUE_LINE: Final = record({"issue_id": TEXT, "severity": TEXT, "gate": TEXT, "title": TEXT})

RUN_STATUS: Final = record(
    {
        "run_id": TEXT,
        "state": STATE,
        "section_states": {
            "type": "object",
            "additionalProperties": {"enum": [state.value for state in SectionState]},
        },
        "open_issues": listing(ISSUE_LINE),
        "artifacts": listing(record({"name": TEXT, "sha256": HASH})),
    }
)

ARTIFACT: Final = record({"name": TEXT, "content_type": TEXT, "sha256": HASH, "content": TEXT})

ISSUE: Final = record(
    {
        "issue_id": TEXT,
        "gate": TEXT,
        "severity": {"enum": ["blocker", "error", "warn", "info"]},
        "message": TEXT,
        "status": {"enum": ["OPEN", "IN_PROGRESS", "RESOLVED"]},
    },
    {
        "error_code": TEXT,
        "files": listing(TEXT),
        "location": record({"path": TEXT}, {"line": WHOLE}),
        "suggested_fix": TEXT,
    },
)

REPORT: Final = record(
    {
        "schema_version": TEXT,
        "ok": {"type": "boolean", "description": "The verdict: whether every gate passed."},
        "profile": {"enum": ["local", "ci", "prod"]},
        "gates": listing(record({"name": TEXT, "ok": {"type": "boolean"}}, {"log_path": TEXT})),
        "issues": listing(ISSUE),
    },
    {"manual_edits": {"type": "boolean"}, "manual_edited_files": listing(TEXT)},
)

STARTED: Final[Mapping[str, Schema]] = {"run_id": TEXT, "state": STATE}

FROM_URL: Final = record({"site": TEXT, "product_slug": TEXT, "platform": TEXT, "locale": TEXT})

FROM_REPO: Final = record(
    {
        "family": TEXT,
        "target_platform": TEXT,
        "locales": listing(TEXT),
        "layout_mode": {"enum": ["auto", "v1", "v2"]},
        "allow_inference": {"type": "boolean"},
        "github_repo_url": TEXT,
        "github_ref": {"type": "string", "pattern": "^[0-9a-f]{40}$"},
    }
)

RUN: Final = record(
    {
        "run_id": TEXT,
        "product_slug": TEXT,
        "state": STATE,
        "started_at": {"type": "string", "format": "date-time"},
        "finished_at": {"type": ["string", "null"], "format": "date-time"},
    }
)


def given(
    properties: Mapping[str, Schema], required: Sequence[str] | None = None
) -> dict[str, Any]:
    """The arguments of a tool; all of them are required unless it is said which."""
    names = list(properties) if required is None else list(required)
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if names:
        schema["required"] = names
    schema["additionalProperties"] = False
    return schema

"""JSON Schemas of the arguments and answers of the launch tools.

An answer is open: a client that validates must not break on a field that a minor version adds.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cleats.toolsets.launch.runs.states import RunState, SectionState

Schema = Mapping[str, Any]

TEXT_SCHEMA: Final = {"type": "string"}
HASH_SCHEMA: Final = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
STATE_SCHEMA: Final = {"enum": [state.value for state in RunState]}
COUNT_SCHEMA: Final = {"type": "integer", "minimum": 0}

RUN_ID_SCHEMA: Final = {
    "type": "string",
    "description": "As the start tools and launch_list_runs give it: r_2026-01-21T10-00-00Z_…",
}
IDEMPOTENCY_KEY_SCHEMA: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "description": ("Any text that is the same when you retry: the run that it started is answered again."),
}


def make_object_schema(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """Make the schema of an object whose `required` properties are always present."""
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}


def make_array_schema(item: Schema) -> Schema:
    """Make the schema of a list of items of one kind."""
    return {"type": "array", "items": item}


ERROR_SCHEMA: Final = make_object_schema(
    {"code": TEXT_SCHEMA, "message": TEXT_SCHEMA, "retryable": {"type": "boolean"}, "details": {"type": "object"}}
)


def make_answer_schema(fields: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """Make the schema of `{ok: true, …}` with these fields, or `{ok: false, run_id?, error}`."""
    properties = {"run_id": TEXT_SCHEMA, **fields, **(optional or {}), "error": ERROR_SCHEMA}
    return {
        "type": "object",
        "required": ["ok"],
        "properties": {"ok": {"type": "boolean"}, **properties},
        "oneOf": [
            {"properties": {"ok": {"const": True}}, "required": list(fields)},
            {"properties": {"ok": {"const": False}}, "required": ["error"]},
        ],
    }


ISSUE_SUMMARY_SCHEMA: Final = make_object_schema(
    {"issue_id": TEXT_SCHEMA, "severity": TEXT_SCHEMA, "gate": TEXT_SCHEMA, "title": TEXT_SCHEMA}
)

RUN_STATUS_SCHEMA: Final = make_object_schema(
    {
        "run_id": TEXT_SCHEMA,
        "state": STATE_SCHEMA,
        "section_states": {"type": "object", "additionalProperties": {"enum": [state.value for state in SectionState]}},
        "open_issues": make_array_schema(ISSUE_SUMMARY_SCHEMA),
        "artifacts": make_array_schema(make_object_schema({"name": TEXT_SCHEMA, "sha256": HASH_SCHEMA})),
    }
)

ARTIFACT_SCHEMA: Final = make_object_schema(
    {"name": TEXT_SCHEMA, "content_type": TEXT_SCHEMA, "sha256": HASH_SCHEMA, "content": TEXT_SCHEMA}
)

ISSUE_SCHEMA: Final = make_object_schema(
    {
        "issue_id": TEXT_SCHEMA,
        "gate": TEXT_SCHEMA,
        "severity": {"enum": ["blocker", "error", "warn", "info"]},
        "message": TEXT_SCHEMA,
        "status": {"enum": ["OPEN", "IN_PROGRESS", "RESOLVED"]},
    },
    {
        "error_code": TEXT_SCHEMA,
        "files": make_array_schema(TEXT_SCHEMA),
        "location": make_object_schema({"path": TEXT_SCHEMA}, {"line": COUNT_SCHEMA}),
        "suggested_fix": TEXT_SCHEMA,
    },
)

REPORT_SCHEMA: Final = make_object_schema(
    {
        "schema_version": TEXT_SCHEMA,
        "ok": {"type": "boolean", "description": "The verdict: whether every gate passed."},
        "profile": {"enum": ["local", "ci", "prod"]},
        "gates": make_array_schema(
            make_object_schema({"name": TEXT_SCHEMA, "ok": {"type": "boolean"}}, {"log_path": TEXT_SCHEMA})
        ),
        "issues": make_array_schema(ISSUE_SCHEMA),
    },
    {"manual_edits": {"type": "boolean"}, "manual_edited_files": make_array_schema(TEXT_SCHEMA)},
)

STARTED_FIELDS: Final[Mapping[str, Schema]] = {"run_id": TEXT_SCHEMA, "state": STATE_SCHEMA}

PAGE_CONFIG_SCHEMA: Final = make_object_schema(
    {"site": TEXT_SCHEMA, "product_slug": TEXT_SCHEMA, "platform": TEXT_SCHEMA, "locale": TEXT_SCHEMA}
)

REPOSITORY_CONFIG_SCHEMA: Final = make_object_schema(
    {
        "family": TEXT_SCHEMA,
        "target_platform": TEXT_SCHEMA,
        "locales": make_array_schema(TEXT_SCHEMA),
        "layout_mode": {"enum": ["auto", "v1", "v2"]},
        "allow_inference": {"type": "boolean"},
        "github_repo_url": TEXT_SCHEMA,
        "github_ref": {"type": "string", "pattern": "^[0-9a-f]{40}$"},
    }
)

RUN_SCHEMA: Final = make_object_schema(
    {
        "run_id": TEXT_SCHEMA,
        "product_slug": TEXT_SCHEMA,
        "state": STATE_SCHEMA,
        "started_at": {"type": "string", "format": "date-time"},
        "finished_at": {"type": ["string", "null"], "format": "date-time"},
    }
)


def make_input_schema(properties: Mapping[str, Schema], required: Sequence[str] | None = None) -> dict[str, Any]:
    """Make the input schema of a tool; all properties are required unless `required` names some."""
    names = list(properties) if required is None else list(required)
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if names:
        schema["required"] = names
    schema["additionalProperties"] = False
    return schema

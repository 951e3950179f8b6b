"""Inputs and outputs of the tools as JSON Schema.

Answers stay open: a client that validates must not break on the optional field that a minor version
adds.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

TEXT_SCHEMA: Final = {"type": "string"}

ASSET_SCHEMA: Final = {"description": "Any JSON value; usually an object."}

SCHEMA_NAME_SCHEMA: Final = {
    "type": "string",
    "minLength": 1,
    "description": (
        "Name of the schema, as list_schemas gives it; `nested-synesthetic-asset` also stands for `synesthetic-asset`."
    ),
}

ERRORS_SCHEMA: Final = {
    "type": "array",
    "description": "Each violation, sorted by path, then message.",
    "items": {
        "type": "object",
        "required": ["path", "msg"],
        "properties": {
            "path": {"type": "string", "description": "RFC 6901 pointer; empty for the root."},
            "msg": TEXT_SCHEMA,
        },
    },
}

PATCH_SCHEMA: Final = {
    "type": "array",
    "description": "RFC 6902 operations, sorted by path.",
    "items": {
        "type": "object",
        "required": ["op", "path"],
        "properties": {
            "op": {"enum": ["add", "remove", "replace"]},
            "path": TEXT_SCHEMA,
            "value": {"description": "Any JSON value; absent for remove."},
        },
    },
}

VERDICT_SCHEMA: Final = {
    "type": "object",
    "required": ["ok"],
    "properties": {"ok": {"type": "boolean"}, "errors": ERRORS_SCHEMA, "reason": TEXT_SCHEMA},
}


def listing_schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an array of objects that always have all of their properties."""
    row = {"type": "object", "required": list(properties), "properties": dict(properties)}
    return {"type": "array", "items": row}


def answer_schema(
    properties: Mapping[str, Any],
    *,
    reasons: Sequence[str],
    failure: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the schema of a flat answer: `ok` with these properties, or a failure with a reason.

    The reasons are named in the description and not as an `enum`, because the server itself adds
    some, such as `tool_timeout`.
    """
    reason_list = ", ".join(f"`{reason}`" for reason in reasons)
    reason = {"type": "string", "description": f"Why not: {reason_list}." if reason_list else "Why not."}
    return {
        "type": "object",
        "required": ["ok"],
        "properties": {
            "ok": {"type": "boolean"},
            **properties,
            "reason": reason,
            "errors": ERRORS_SCHEMA,
            "detail": TEXT_SCHEMA,
            **(failure or {}),
        },
        "oneOf": [
            {"properties": {"ok": {"const": True}}, "required": list(properties)},
            {"properties": {"ok": {"const": False}}, "required": ["reason"]},
        ],
    }

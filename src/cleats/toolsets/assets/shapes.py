"""What the tools take and give, as JSON Schema.

Answers stay open: a client that validates must not break on the optional field that a minor
version adds.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

TEXT: Final = {"type": "string"}

ASSET: Final = {"description": "Any JSON value; usually an object."}

SCHEMA: Final = {
    "type": "string",
    "minLength": 1,
    "description": (
        "Name of the schema, as list_schemas gives it; `nested-synesthetic-asset` also stands for "
        "`synesthetic-asset`."
    ),
}

ERRORS: Final = {
    "type": "array",
    "description": "Each violation, sorted by path, then message.",
    "items": {
        "type": "object",
        "required": ["path", "msg"],
        "properties": {
            "path": {"type": "string", "description": "RFC 6901 pointer; empty for the root."},
            "msg": TEXT,
        },
    },
}

PATCH: Final = {
    "type": "array",
    "description": "RFC 6902 operations, sorted by path.",
    "items": {
        "type": "object",
        "required": ["op", "path"],
        "properties": {
            "op": {"enum": ["add", "remove", "replace"]},
            "path": TEXT,
            "value": {"description": "Any JSON value; absent for remove."},
        },
    },
}

VERDICT: Final = {
    "type": "object",
    "required": ["ok"],
    "properties": {"ok": {"type": "boolean"}, "errors": ERRORS, "reason": TEXT},
}


def listing(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """An array of objects that always have all of their properties."""
    row = {"type": "object", "required": list(properties), "properties": dict(properties)}
    return {"type": "array", "items": row}


def answer(
    properties: Mapping[str, Any],
    *,
    reasons: Sequence[str],
    failure: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A flat answer: `ok` with these properties, or not `ok` with one of these reasons.

    The reasons are named in the description and not as an `enum`, because the server itself adds
    some, such as `tool_timeout`.
    """
    named = ", ".join(f"`{reason}`" for reason in reasons)
    reason = {"type": "string", "description": f"Why not: {named}." if named else "Why not."}
    return {
        "type": "object",
        "required": ["ok"],
        "properties": {
            "ok": {"type": "boolean"},
            **properties,
            "reason": reason,
            "errors": ERRORS,
            "detail": TEXT,
            **(failure or {}),
        },
        "oneOf": [
            {"properties": {"ok": {"const": True}}, "required": list(properties)},
            {"properties": {"ok": {"const": False}}, "required": ["reason"]},
        ],
    }

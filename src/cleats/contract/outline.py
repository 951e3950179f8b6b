"""An output schema as a list of tools shows it.

Whoever reads that list pays for every word of it, in each conversation, and looks at the answers
anyway. So it has what an answer is made of: the names, which of them are always there, and their
types. The contract and the OpenAPI document have all of it; whatever fits that fits the outline.
"""

from collections.abc import Mapping
from typing import Any, Final

_KEPT: Final = ("type", "enum", "const")


def outline(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The names and types of an object."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    made = _bare(schema)
    if properties:
        made["properties"] = {name: _bare(rule) for name, rule in properties.items()}
    if "required" in schema:
        made["required"] = list(schema["required"])
    return made


def _bare(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {word: schema[word] for word in _KEPT if word in schema}


def enveloped(result: Mapping[str, Any]) -> dict[str, Any]:
    """The envelope around a result, in outline."""
    return {
        "type": "object",
        "required": ["ok", "_meta"],
        "properties": {"ok": {"type": "boolean"}, "result": result, "error": {"type": "object"}},
    }

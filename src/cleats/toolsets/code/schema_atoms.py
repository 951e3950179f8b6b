"""The building blocks of the input and output schemas of tools."""

from collections.abc import Iterable
from typing import Any, Final

TEXT_SCHEMA: Final[dict[str, Any]] = {"type": "string"}
NULLABLE_TEXT_SCHEMA: Final[dict[str, Any]] = {"type": ["string", "null"]}
FLAG_SCHEMA: Final[dict[str, Any]] = {"type": "boolean"}
COUNT_SCHEMA: Final[dict[str, Any]] = {"type": "integer", "minimum": 0}


def add_description(schema: dict[str, Any], description: str) -> dict[str, Any]:
    """Return a schema with a description."""
    return {**schema, "description": description}


def text_schema(description: str) -> dict[str, Any]:
    """Build the schema of a text."""
    return add_description(TEXT_SCHEMA, description)


def nullable_text_schema(description: str) -> dict[str, Any]:
    """Build the schema of a text or null."""
    return add_description(NULLABLE_TEXT_SCHEMA, description)


def flag_schema(description: str) -> dict[str, Any]:
    """Build the schema of a truth value."""
    return add_description(FLAG_SCHEMA, description)


def count_schema(description: str) -> dict[str, Any]:
    """Build the schema of a number of things."""
    return add_description(COUNT_SCHEMA, description)


def object_schema(description: str = "", /, **properties: Any) -> dict[str, Any]:
    """Build the schema of an object with only required properties."""
    schema = {"type": "object", "required": list(properties), "properties": properties}
    return {**schema, "description": description} if description else schema


def nullable_object_schema(description: str, /, **properties: Any) -> dict[str, Any]:
    """Build the schema of an object with only required properties, or null."""
    return {**object_schema(description, **properties), "type": ["object", "null"]}


def array_schema(items: dict[str, Any], description: str = "") -> dict[str, Any]:
    """Build the schema of an array."""
    schema: dict[str, Any] = {"type": "array", "items": items}
    return {**schema, "description": description} if description else schema


def text_argument(description: str, **keywords: Any) -> dict[str, Any]:
    """Build the schema of a text argument, which is not empty."""
    return {"type": "string", "minLength": 1, **keywords, "description": description}


def choice_argument(description: str, options: Iterable[str], **keywords: Any) -> dict[str, Any]:
    """Build the schema of an argument that is one of some texts."""
    return {"type": "string", "enum": list(options), **keywords, "description": description}


def flag_argument(description: str, *, default: bool = False) -> dict[str, Any]:
    """Build the schema of a boolean argument."""
    return {"type": "boolean", "default": default, "description": description}


def repeat_schema(schema: dict[str, Any], names: str) -> dict[str, Any]:
    """Return properties that all have the same schema; their names are separated by spaces."""
    return dict.fromkeys(names.split(), schema)

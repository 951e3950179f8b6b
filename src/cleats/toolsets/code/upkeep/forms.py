"""Words for the schemas of what these tools take and give."""

from typing import Any, Final

TEXT: Final[dict[str, Any]] = {"type": "string"}
MAYBE: Final[dict[str, Any]] = {"type": ["string", "null"]}
FLAG: Final[dict[str, Any]] = {"type": "boolean"}
COUNT: Final[dict[str, Any]] = {"type": "integer", "minimum": 0}
MOMENT: Final[dict[str, Any]] = {"type": ["string", "null"], "format": "date-time"}


def record(description: str = "", /, **properties: Any) -> dict[str, Any]:
    """An object whose properties are all there."""
    made = {"type": "object", "required": list(properties), "properties": properties}
    return {**made, "description": description} if description else made


def many(items: dict[str, Any], description: str = "") -> dict[str, Any]:
    """A list."""
    made: dict[str, Any] = {"type": "array", "items": items}
    return {**made, "description": description} if description else made


def either(description: str, /, **properties: Any) -> dict[str, Any]:
    """An object whose properties are all there, or null."""
    return {**record(description, **properties), "type": ["object", "null"]}


def switch(description: str) -> dict[str, Any]:
    """An argument that is off unless it is given."""
    return {"type": "boolean", "default": False, "description": description}


def reserved(description: str) -> dict[str, Any]:
    """An argument that other servers have, and that is refused here when it is set."""
    return {"type": "string", "x-reserved": True, "description": description}

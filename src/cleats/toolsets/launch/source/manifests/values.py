"""Values that a stranger wrote: what cannot be read, or is of another kind, was not said.

A manifest with nonsense in one field still says the rest, and no repository can make its reader
fail.
"""

from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.source import tables


def table(path: str, text: str | None) -> Mapping[str, Any]:
    """The table that a file is; empty when it cannot be read."""
    try:
        return tables.parse(path, text or "")
    except ValueError:
        return {}


def mapping(value: Any) -> Mapping[str, Any]:
    """A table; empty when it is something else."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The tables in a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def texts(value: Any) -> list[str]:
    """The texts in a list, but for empty ones."""
    return [item for item in value if text(item)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """A text; empty when it is something else, or nothing but space."""
    return value if isinstance(value, str) and value.strip() else ""

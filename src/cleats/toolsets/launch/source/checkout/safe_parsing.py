"""Untrusted Python programs: parsed, never run."""

import ast
import json
import tomllib
from collections.abc import Mapping
from typing import Any

import yaml


def parse_python(text: str | None) -> ast.Module | None:
    """Parse a Python program; return None if it is invalid or nested too deeply."""
    try:
        return ast.parse(text or "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def unparse_node(node: ast.AST) -> str:
    """Return a syntax node as source text; dots if it is nested too deeply."""
    try:
        return ast.unparse(node)
    except RecursionError:
        return "..."


def parse_document(name: str, text: str) -> dict[str, Any]:
    """Parse a file as a table; an empty file is an empty table.

    Raises:
        ValueError: The file cannot be read; the message is one line.
    """
    if not text.strip():
        return {}
    try:
        table = _load_document(name, text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (LookupError, AttributeError):  # PyYAML, where a tag does not fit its value
        raise ValueError("a value is not of the kind that its tag names") from None
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(str(error).split("\n", 1)[0]) from None
    if not isinstance(table, dict):
        raise ValueError("it is no mapping")  # noqa: TRY004 - a wrong file, not a wrong argument
    return table


def _load_document(name: str, text: str) -> Any:
    if name.endswith(".toml"):
        return tomllib.loads(text)
    if name.endswith(".json"):
        return json.loads(text)
    return yaml.safe_load(text)


def parse_table(path: str, text: str | None) -> Mapping[str, Any]:
    """Parse a file as a table; return an empty one when it cannot be read."""
    try:
        return parse_document(path, text or "")
    except ValueError:
        return {}


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping, or an empty one for any other value."""
    return value if isinstance(value, Mapping) else {}


def as_mappings(value: Any) -> list[Mapping[str, Any]]:
    """Return the mappings in a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def as_texts(value: Any) -> list[str]:
    """Return the texts in a list that are not blank."""
    return [item for item in value if as_text(item)] if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """Return a text, or "" for a blank one or any other value."""
    return value if isinstance(value, str) and value.strip() else ""

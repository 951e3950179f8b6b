"""Untrusted programs and data of a repository: parsed, never run."""

import ast
import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from tree_sitter import Parser

GRAMMARS_BY_LANGUAGE: Final = {
    "javascript": ("tree_sitter_javascript", "language"),
    "jsx": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "java": ("tree_sitter_java", "language"),
    "kotlin": ("tree_sitter_kotlin", "language"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "swift": ("tree_sitter_swift", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "shell": ("tree_sitter_bash", "language"),
    "bash": ("tree_sitter_bash", "language"),
}
"""The module and the function of the grammar of each language."""


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


@cache
def load_parser(language: str) -> "Parser":
    """Return the parser of a language; it is native code, which damaged text may crash."""
    from tree_sitter import Language, Parser  # noqa: PLC0415 - few of those who read tables need it

    module, function_name = GRAMMARS_BY_LANGUAGE[language]
    return Parser(Language(getattr(import_module(module), function_name)()))


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

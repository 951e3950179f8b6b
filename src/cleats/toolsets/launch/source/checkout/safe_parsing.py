"""Untrusted programs and data of a repository: parsed, never run."""

import ast
import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from tree_sitter import Parser

PLATFORM_TABLES: Final[Mapping[str, Mapping[str, Any]]] = tomllib.loads(
    Path(__file__).with_name("platforms.toml").read_text(encoding="utf-8")
)
"""What is known of languages, of families of platforms and of package ecosystems."""

GRAMMARS_BY_LANGUAGE: Final = {
    language: row["grammar"] for language, row in PLATFORM_TABLES["languages"].items() if "grammar" in row
}
"""The module of the grammar of each language, and its function where it has several."""


def parse_python(text: str | None) -> ast.Module | None:
    """Parse a Python program; return None if it is invalid or nested too deeply."""
    try:
        return ast.parse(text or "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def walk_python(text: str | None) -> list[ast.AST]:
    """Return every syntax node of a Python program, none if it cannot be parsed."""
    module = parse_python(text)
    return list(ast.walk(module)) if module else []


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

    module, _, function_name = GRAMMARS_BY_LANGUAGE[language].partition(":")
    return Parser(Language(getattr(import_module(module), function_name or "language")()))


def parse_document(name: str, text: str) -> dict[str, Any]:
    """Parse a file as a table; an empty file is an empty table.

    Raises:
        ValueError: The file cannot be read; the message is one line.
    """
    if not text.strip():
        return {}
    load = tomllib.loads if name.endswith(".toml") else json.loads if name.endswith(".json") else yaml.safe_load
    try:
        table: Any = load(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (LookupError, AttributeError):  # PyYAML, where a tag does not fit its value
        raise ValueError("a value does not have the type of its tag") from None
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(str(error).split("\n", 1)[0]) from None
    if not isinstance(table, dict):
        raise ValueError("it is not a table of names and values")  # noqa: TRY004 - a wrong file, not a wrong argument
    return table


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

"""Published input schemas fit the clients and the model APIs that read them."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cleats.app import BUILTIN_TOOLSETS, build_registry
from cleats.contract.tools import Tool
from cleats.settings import Settings

MAX_NORMALIZED_BYTES = 5_000
"""Bytes of a schema above which Codex drops every description in it."""

NORMALIZED_KEYWORDS = frozenset(
    {"type", "description", "enum", "items", "properties", "required", "additionalProperties", "anyOf"}
)

TOOLS = list(build_registry(Settings(project_dir=Path("/")), BUILTIN_TOOLSETS))


def normalize(schema: Any, *, is_properties: bool = False) -> Any:
    """Return a schema as Codex passes it on."""
    if isinstance(schema, Mapping):
        return {
            key: normalize(value, is_properties=key == "properties" and not is_properties)
            for key, value in schema.items()
            if is_properties or key in NORMALIZED_KEYWORDS
        }
    return [normalize(item) for item in schema] if isinstance(schema, list) else schema


def iterate_schemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping):
        yield schema
        for value in schema.values():
            yield from iterate_schemas(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from iterate_schemas(value)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_normalized_input_schema_is_small_enough_to_keep_its_descriptions(tool: Tool) -> None:
    assert len(json.dumps(normalize(tool.input), separators=(",", ":"))) < MAX_NORMALIZED_BYTES


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_an_input_schema_has_no_type_unions_and_no_arrays_without_items(tool: Tool) -> None:
    schemas = list(iterate_schemas(tool.input))

    assert not [schema for schema in schemas if isinstance(schema.get("type"), list)]
    assert not [schema for schema in schemas if schema.get("type") == "array" and "items" not in schema]


def test_the_lean_registration_stays_within_its_token_budget() -> None:
    explore = build_registry(Settings(project_dir=Path("/")), ["explore"])
    definitions = [
        {"name": tool.name, "description": tool.current_description, "inputSchema": tool.input} for tool in explore
    ]

    assert len(json.dumps(definitions, separators=(",", ":"))) / 3.2 < 2_500

"""Tests of the outline of an output schema in a list of tools: it is accurate and short."""

import json
from typing import Any

import jsonschema
import pytest

from cleats import app
from cleats.contract.tools import outline_envelope, outline_schema
from cleats.settings import Settings
from cleats.toolsets.code.search import answer_schema
from cleats.transports.mcp.description import describe_tool

OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "Words.",
    "required": ["kind", "hits"],
    "properties": {
        "kind": {"enum": ["a", "b"], "description": "Words."},
        "hits": {"type": "array", "items": {"type": "object", "required": ["deep"]}},
        "more": {"type": ["object", "null"], "properties": {"deep": {"type": "string"}}},
    },
}


def test_an_outline_has_names_and_types_and_what_is_always_there() -> None:
    assert outline_schema(OUTPUT_SCHEMA) == {
        "type": "object",
        "required": ["kind", "hits"],
        "properties": {
            "kind": {"enum": ["a", "b"]},
            "hits": {"type": "array"},
            "more": {"type": ["object", "null"]},
        },
    }


@pytest.mark.parametrize(
    "answer",
    [
        {"ok": True, "result": {"kind": "a", "hits": []}, "_meta": {}},
        {"ok": False, "error": {"code": "NO_INDEX"}, "_meta": {}},
    ],
)
def test_answers_and_errors_fit_the_envelope_in_outline(answer: dict[str, Any]) -> None:
    jsonschema.validate(answer, outline_envelope(outline_schema(OUTPUT_SCHEMA)))


def test_the_list_of_the_code_tools_fits_into_a_conversation() -> None:
    tools = [describe_tool(tool) for tool in app.build_registry(Settings(), ("code",))]

    text = json.dumps(tools, separators=(",", ":"), ensure_ascii=False)

    assert len(tools) == 20
    assert len(text.encode()) <= 45 * 1024


def test_an_argument_is_explained_in_one_sentence_or_two() -> None:
    descriptions = {
        (tool.name, name): rule["description"]
        for tool in app.build_registry(Settings(), ("code",))
        for name, rule in tool.input.get("properties", {}).items()
    }

    assert all(0 < len(text) <= 300 for text in descriptions.values())


def test_what_is_listed_of_a_search_is_part_of_what_it_answers() -> None:
    listed_properties, output_properties = (
        answer_schema.LISTED_OUTPUT_SCHEMA["properties"],
        answer_schema.SEARCH_OUTPUT_SCHEMA["properties"],
    )
    hit = listed_properties["code"]["items"]

    assert listed_properties.keys() == output_properties.keys()
    assert hit["properties"].items() <= output_properties["code"]["items"]["properties"].items()
    assert set(hit["required"]) <= set(hit["properties"])

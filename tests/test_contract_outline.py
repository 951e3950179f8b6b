"""What a list of tools shows of an output schema: the truth, in few words."""

import json
from typing import Any

import jsonschema
import pytest

from cleats import app
from cleats.contract.outline import enveloped, outline
from cleats.settings import Settings
from cleats.toolsets.code.search import shapes
from cleats.transports.mcp.surface import definition

SCHEMA: dict[str, Any] = {
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
    assert outline(SCHEMA) == {
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
    jsonschema.validate(answer, enveloped(outline(SCHEMA)))


def test_the_list_of_the_code_tools_fits_into_a_conversation() -> None:
    tools = [definition(tool) for tool in app.catalogue(Settings(), ("code",))]

    text = json.dumps(tools, separators=(",", ":"), ensure_ascii=False)

    assert len(tools) == 20
    assert len(text.encode()) <= 45 * 1024


def test_an_argument_is_explained_in_one_sentence_or_two() -> None:
    told = {
        (tool.name, name): rule["description"]
        for tool in app.catalogue(Settings(), ("code",))
        for name, rule in tool.input.get("properties", {}).items()
    }

    assert all(0 < len(text) <= 300 for text in told.values())


def test_what_is_listed_of_a_search_is_part_of_what_it_answers() -> None:
    listed, whole = shapes.LISTED["properties"], shapes.OUTPUT["properties"]
    hit = listed["code"]["items"]

    assert listed.keys() == whole.keys()
    assert hit["properties"].items() <= whole["code"]["items"]["properties"].items()
    assert set(hit["required"]) <= set(hit["properties"])

"""Tests of the arguments of a call: other spellings are understood, violations are refused."""

from typing import Any

import pytest

from cleats.contract.arguments import ArgumentBinder
from cleats.contract.errors import ErrorCode, ToolError

TEXT_OR_LIST = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "path": TEXT_OR_LIST,
        "lang": {"type": "string"},
        "top": {"type": "integer", "default": 10},
    },
    "required": ["query"],
    "additionalProperties": False,
}


def bind(**arguments: Any) -> dict[str, Any]:
    return dict(ArgumentBinder("search", SCHEMA, frozenset({"lang"})).bind(arguments))


def test_null_for_an_optional_argument_counts_as_absent() -> None:
    assert bind(query="a", path=None, top=None) == {"query": "a", "top": 10}


def test_null_for_a_required_argument_is_refused() -> None:
    with pytest.raises(ToolError) as raised:
        bind(query=None)

    assert raised.value.code is ErrorCode.INVALID_REQUEST


def test_null_for_an_unknown_argument_is_refused() -> None:
    with pytest.raises(ToolError):
        bind(query="a", nonsense=None)


def test_a_json_encoded_array_is_an_array_where_one_is_allowed() -> None:
    assert bind(query="[1]", path='["src/**", "lib/**"]') == {"query": "[1]", "path": ["src/**", "lib/**"], "top": 10}


@pytest.mark.parametrize("glob", ["[ab]*.py", "[", '["a"'])
def test_a_glob_that_begins_with_a_bracket_stays_a_text(glob: str) -> None:
    assert bind(query="a", path=glob)["path"] == glob


def test_an_array_is_one_text_where_a_text_takes_several_values() -> None:
    assert bind(query="a", lang=["python", "go"])["lang"] == "python,go"


def test_an_array_is_refused_where_a_text_takes_one_value() -> None:
    with pytest.raises(ToolError):
        bind(query=["a", "b"])

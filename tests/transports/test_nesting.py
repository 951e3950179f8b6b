"""Tests of the limit on the depth of nested JSON, on every wire."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.violations import Validator
from cleats.transports.jsonrpc import MAX_NESTING_LEVELS, is_too_deep
from tests.support.http_client import JSON_HEADERS, run_web_server
from tests.transports.test_jsonrpc import json_value

DEEP_LEVELS = 300
"""A depth beyond the limit of the validator but within that of the parser."""


def build_nested_value(levels: int) -> Any:
    value: Any = "[{"
    for level in range(levels):
        value = [value] if level % 2 else {"a": value, "b[": []}
    return value


@given(json_value, st.integers(MAX_NESTING_LEVELS - 20, MAX_NESTING_LEVELS + 5))
def test_a_text_is_too_deep_by_its_levels_and_not_by_what_its_strings_say(value: Any, levels: int) -> None:
    for _ in range(levels - _count_levels(value)):
        value = {"[\\": "]{", '"{': value}

    assert is_too_deep(json.dumps(value).encode()) is (levels > MAX_NESTING_LEVELS)


def _count_levels(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max(map(_count_levels, inner), default=0) + isinstance(value, dict | list)


@pytest.mark.parametrize("text", [b'["' + b"\\[" * 1000, b"[" * 200 + b'"\\"' * 1000, b"]" * 1000])
def test_brackets_in_a_string_that_never_ends_do_not_count(text: bytes) -> None:
    assert not is_too_deep(text)


def test_a_value_that_the_validator_cannot_walk_is_a_violation() -> None:
    [violation] = Validator({"type": "object"}).find_violations([build_nested_value(DEEP_LEVELS)])

    assert (violation.path, violation.message) == ("", "nested too deeply")


def test_nothing_that_is_nested_too_deep_fails_the_server(tmp_path: Path) -> None:
    deep = build_nested_value(DEEP_LEVELS)
    call = {"name": "echo", "arguments": {"text": deep}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accepts = {**JSON_HEADERS, "accept": "application/json, text/event-stream"}

    with run_web_server(home=tmp_path) as web:
        plain = web.call_tool("echo", text=deep)
        stream = web.post("/tools/echo/stream", {"text": deep})
        mcp = web.send_request("POST", "/mcp", json.dumps(message).encode(), accepts)
        fine = web.call_tool("echo", text=build_nested_value(MAX_NESTING_LEVELS - 2))  # it has one level of its own

    for reply in (plain, stream):
        assert (reply.status, reply.error["code"]) == (400, "INVALID_REQUEST")
        assert "nested too deeply" in reply.error["message"]
    assert (mcp.status, mcp.json["error"]["code"]) == (400, -32700)
    assert "/text" in fine.error["message"]

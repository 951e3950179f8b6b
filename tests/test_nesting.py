"""How deep JSON may be nested, on every wire."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.violations import Validator
from cleats.transports.nesting import DEEPEST, too_deep
from tests.test_jsonrpc import json_value
from tests.web import JSON, serving

BEYOND = 300
"""Deeper than the validator goes, and not as deep as the parser does."""


def nested(levels: int) -> Any:
    value: Any = "[{"
    for level in range(levels):
        value = [value] if level % 2 else {"a": value, "b[": []}
    return value


@given(json_value, st.integers(DEEPEST - 20, DEEPEST + 5))
def test_a_text_is_too_deep_by_its_levels_and_not_by_what_its_strings_say(
    value: Any, levels: int
) -> None:
    for _ in range(levels - _levels(value)):
        value = {"[\\": "]{", '"{': value}

    assert too_deep(json.dumps(value).encode()) is (levels > DEEPEST)


def _levels(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max(map(_levels, inner), default=0) + isinstance(value, dict | list)


@pytest.mark.parametrize("text", [b'["' + b"\\[" * 1000, b"[" * 200 + b'"\\"' * 1000, b"]" * 1000])
def test_brackets_in_a_string_that_never_ends_do_not_count(text: bytes) -> None:
    assert not too_deep(text)


def test_a_value_that_the_validator_cannot_walk_is_a_violation() -> None:
    [found] = Validator({"type": "object"}).violations([nested(BEYOND)])

    assert (found.path, found.message) == ("", "nested too deeply")


def test_nothing_that_is_nested_too_deep_fails_the_server(tmp_path: Path) -> None:
    deep = nested(BEYOND)
    call = {"name": "echo", "arguments": {"text": deep}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accepts = {**JSON, "accept": "application/json, text/event-stream"}

    with serving(home=tmp_path) as web:
        plain = web.call("echo", text=deep)
        stream = web.post("/tools/echo/stream", {"text": deep})
        mcp = web.ask("POST", "/mcp", json.dumps(message).encode(), accepts)
        fine = web.call("echo", text=nested(DEEPEST - 2))  # it has one level of its own

    for reply in (plain, stream):
        assert (reply.status, reply.error["code"]) == (400, "INVALID_REQUEST")
        assert "nested too deeply" in reply.error["message"]
    assert (mcp.status, mcp.json["error"]["code"]) == (400, -32700)
    assert "/text" in fine.error["message"]

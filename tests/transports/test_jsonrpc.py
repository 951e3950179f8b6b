"""Tests of turning a body into a message, and messages into bodies."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cleats.transports import jsonrpc
from cleats.transports.jsonrpc import MalformedMessage, Notification, Request, Response, parse_message

json_value: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.binary())
def test_parsing_never_raises(body: bytes) -> None:
    assert isinstance(parse_message(body), Request | Notification | Response | MalformedMessage)


@given(json_value)
def test_any_json_is_a_message_or_a_refusal_with_a_number(value: Any) -> None:
    message = parse_message(json.dumps(value).encode())

    if isinstance(message, MalformedMessage):
        assert message.code in {-32700, -32600}
        assert message.reason


def test_what_is_wrong_with_a_text_is_said_with_its_place() -> None:
    refusal = parse_message(rb'{"jsonrpc":"2.0","id":1,"method":"x","params":{"asset":"\ud800"}}')

    assert refusal == MalformedMessage(-32700, r"Parse error: lone surrogate \ud800 (byte 56)")


@given(st.text() | st.integers(), st.text(min_size=1), st.dictionaries(st.text(), json_value))
def test_a_request_is_read_as_it_was_written(request_id: Any, method: str, params: dict[str, Any]) -> None:
    body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}

    assert parse_message(json.dumps(body).encode()) == Request(request_id, method, params)


def test_a_message_without_an_id_is_a_notification() -> None:
    assert parse_message(b'{"jsonrpc":"2.0","method":"m"}') == Notification("m", None)


def test_an_answer_is_a_response_and_not_a_request() -> None:
    assert parse_message(b'{"jsonrpc":"2.0","id":1,"result":{}}') == Response(1, {})
    assert parse_message(b'{"jsonrpc":"2.0","id":1,"error":{}}') == Response(1, error={})


@given(st.text() | st.integers(), json_value)
def test_an_answer_carries_its_id_and_value_unchanged(request_id: Any, value: Any) -> None:
    body = json.loads(jsonrpc.encode_result(request_id, value))

    assert body == {"jsonrpc": "2.0", "id": request_id, "result": value}


def test_the_refusal_of_a_message_has_its_string_code() -> None:
    refusal = jsonrpc.encode_refusal(jsonrpc.MalformedMessage(-32700, "no"))

    assert json.loads(refusal) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32700, "message": "no", "data": {"code": "INVALID_REQUEST"}},
    }

"""Tests of decoding one text to one value, or to an error that says what is wrong."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.transports.jsonrpc import InvalidJsonError, decode_json


def read_decode_error(text: bytes) -> str:
    with pytest.raises(InvalidJsonError) as error_info:
        decode_json(text)
    return str(error_info.value)


@pytest.mark.parametrize(
    ("text", "surrogate", "at"),
    [
        (rb'{"a":"\ud800"}', r"\ud800", 6),
        (rb'{"a":"\ud800 and more text after it"}', r"\ud800", 6),
        (rb'{"a":"\udc00x"}', r"\udc00", 6),
        (rb'{"a":"\uD800\u0041"}', r"\uD800", 6),
        (rb'{"a":"\ud800\ud800\udc00"}', r"\ud800", 6),
        (rb'{"a":"\ud83d\ude00 \\ud800 \udfff"}', r"\udfff", 27),
        (rb'{"\udbff":1}', r"\udbff", 2),
        (rb'["\ud800', r"\ud800", 2),
    ],
)
def test_half_a_surrogate_pair_is_named_with_its_place(text: bytes, surrogate: str, at: int) -> None:
    assert read_decode_error(text) == f"lone surrogate {surrogate} (byte {at})"


@pytest.mark.parametrize(
    "text",
    [
        rb'{"a":NaN, "b":"\ud800"}',
        rb'{"a":1e999, "b":"\ud800"}',
        rb'{"a":"\ud83d\ude00',
        rb'{"a":"\\ud800"',
        b"{} {}",
    ],
)
def test_what_is_wrong_before_a_surrogate_or_without_one_is_not_laid_on_it(text: bytes) -> None:
    assert "surrogate" not in read_decode_error(text)


def test_a_text_that_is_not_utf8_or_too_deep_or_marked_is_called_so() -> None:
    assert read_decode_error(b'{"a":"\xff"}') == "invalid UTF-8 (byte 6)"
    assert read_decode_error(b"[" * 201) == "nested too deeply"
    assert read_decode_error(b"\xef\xbb\xbf{}") == "it starts with a byte order mark"


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists))
def test_what_is_json_is_its_value(value: Any) -> None:
    assert decode_json(json.dumps(value).encode()) == value
    assert decode_json(json.dumps(value, ensure_ascii=False).encode()) == value

"""Tests of Content-Length framing, however the bytes arrive and whatever stands between frames."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.transports.framing import (
    MAX_HEADER_LINE_BYTES,
    ContentLengthFramer,
    InvalidFrame,
    OversizedFrame,
    WireFrame,
    frame_body,
)

FRAME_LIMIT_BYTES = 40
bodies = st.lists(st.binary(max_size=FRAME_LIMIT_BYTES))
cut_positions = st.lists(st.integers(min_value=0))


def read_frames(chunks: list[bytes], limit: int = FRAME_LIMIT_BYTES) -> list[WireFrame]:
    framing = ContentLengthFramer(limit)
    frames = [frame for chunk in chunks for frame in framing.feed(chunk)]
    return frames + list(framing.close())


def cut_stream(stream: bytes, positions: list[int]) -> list[bytes]:
    edges = sorted({0, len(stream), *(position % (len(stream) + 1) for position in positions)})
    return [stream[start:end] for start, end in pairwise(edges)]


@given(bodies, cut_positions)
def test_every_body_comes_back_however_the_stream_is_cut(given_bodies: list[bytes], where: list[int]) -> None:
    stream = b"".join(map(frame_body, given_bodies))

    assert read_frames(cut_stream(stream, where)) == given_bodies


@given(st.lists(st.sampled_from([b"Content-Length: 3", b"\r\n", b"{}", b"\n", b"x", b":"])), cut_positions)
def test_the_frames_of_any_bytes_do_not_depend_on_how_they_are_cut(pieces: list[bytes], where: list[int]) -> None:
    stream = b"".join(pieces)

    assert read_frames(cut_stream(stream, where)) == read_frames([stream])


@given(st.binary(max_size=200))
def test_garbage_never_raises_and_a_blank_line_later_a_frame_is_read(garbage: bytes) -> None:
    framing = ContentLengthFramer(FRAME_LIMIT_BYTES)
    digits = garbage.replace(b":", b";")  # a header in it would swallow what follows, rightly

    list(framing.feed(digits + b"\n\n"))

    assert list(framing.feed(frame_body(b"ok"))) == [b"ok"]


@given(st.lists(st.binary(max_size=9000), max_size=4))
def test_no_more_is_held_than_a_body_or_a_header_line(chunks: list[bytes]) -> None:
    framing = ContentLengthFramer(FRAME_LIMIT_BYTES)
    for chunk in chunks:
        list(framing.feed(chunk))

        assert len(framing._buffer) <= max(FRAME_LIMIT_BYTES, MAX_HEADER_LINE_BYTES)


def test_names_in_any_case_other_fields_bare_newlines_and_blank_lines_are_no_trouble() -> None:
    stream = b"\r\n\r\nContent-Type: x; charset=utf-8\r\ncontent-length : 2 \r\n\r\nok"
    plain = b"Content-Length: 2\n\nok"

    assert read_frames([stream + plain]) == [b"ok", b"ok"]


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: two\r\n\r\n",
        b"Content-Length: -2\r\n\r\n",
        b"Content-Length: +2\r\n\r\n",
        b"Content-Length:\r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n",
        b"Content-Type: x\r\n\r\n",
        b"x" * (MAX_HEADER_LINE_BYTES + 1) + b"\r\n\r\n",
        b"X: y\r\n" * 33 + b"\r\n",
    ],
)
def test_a_bad_header_is_refused_once_and_the_next_frame_is_read(header: bytes) -> None:
    first, *rest = read_frames([header + b'{"a":1}' + frame_body(b"ok")])

    assert isinstance(first, InvalidFrame)
    assert rest == [b"ok"]


def test_bare_lines_are_refused_one_by_one_as_they_come() -> None:
    framing = ContentLengthFramer(FRAME_LIMIT_BYTES)

    assert [type(frame) for frame in framing.feed(b'{"id":1}\n')] == [InvalidFrame]
    assert [type(frame) for frame in framing.feed(b'{"id":2}\n')] == [InvalidFrame]
    assert [type(frame) for frame in framing.feed(b"z" * 5000 + b"\n")] == [InvalidFrame]
    assert list(framing.feed(frame_body(b"ok"))) == [b"ok"]


def test_a_body_over_the_limit_is_refused_before_it_comes_and_the_next_one_is_whole() -> None:
    framing = ContentLengthFramer(FRAME_LIMIT_BYTES)

    assert list(framing.feed(b"Content-Length: 41\r\n\r\n")) == [OversizedFrame(FRAME_LIMIT_BYTES)]
    assert list(framing.feed(b"x" * 41 + frame_body(b"ok"))) == [b"ok"]


def test_an_empty_body_is_a_frame() -> None:
    assert read_frames([frame_body(b"") + frame_body(b"ok")]) == [b"", b"ok"]


@pytest.mark.parametrize("stream", [b"Content-Length: 5\r\n\r\nab", b"Content-Length: 5\r\n", b"Con", b"{}"])
def test_a_frame_that_the_end_cuts_off_is_refused(stream: bytes) -> None:
    assert [type(frame) for frame in read_frames([stream])] == [InvalidFrame]

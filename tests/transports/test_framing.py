"""Tests of splitting bytes into frames, however the bytes arrive."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cleats.transports.framing import LineFramer, OversizedFrame

LINE_LIMIT_BYTES = 12
line = st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b"."))


def read_frames(chunks: list[bytes]) -> list[bytes | OversizedFrame]:
    lines = LineFramer(LINE_LIMIT_BYTES)
    frames = [frame for chunk in chunks for frame in lines.feed(chunk)]
    return frames + list(lines.close())


def is_too_long(line: bytes) -> bool:
    return len(line.removesuffix(b"\r")) > LINE_LIMIT_BYTES


def cut_stream(stream: bytes, positions: list[int]) -> list[bytes]:
    edges = sorted({0, len(stream), *(position % (len(stream) + 1) for position in positions)})
    return [stream[start:end] for start, end in pairwise(edges)]


@given(st.lists(line), st.lists(st.integers(min_value=0)), st.booleans())
def test_the_frames_do_not_depend_on_how_the_stream_is_cut(
    lines: list[bytes], places: list[int], is_ended: bool
) -> None:
    stream = b"\n".join(lines) + (b"\n" if is_ended else b"")

    assert read_frames(cut_stream(stream, places)) == read_frames([stream])


@given(st.lists(line), st.lists(st.integers(min_value=0)))
def test_every_line_is_a_frame_or_a_refusal_or_blank(lines: list[bytes], places: list[int]) -> None:
    stream = b"".join(raw_line + b"\n" for raw_line in lines)
    expected = [
        OversizedFrame(LINE_LIMIT_BYTES) if is_too_long(raw_line) else raw_line.strip()
        for raw_line in lines
        if is_too_long(raw_line) or raw_line.strip()
    ]

    assert read_frames(cut_stream(stream, places)) == expected


@given(st.lists(st.binary(max_size=50)))
def test_the_buffer_never_holds_more_than_the_limit(chunks: list[bytes]) -> None:
    lines = LineFramer(LINE_LIMIT_BYTES)
    for chunk in chunks:
        list(lines.feed(chunk))

        assert not is_too_long(bytes(lines._buffer))


def test_a_line_over_the_limit_is_reported_once_and_the_next_one_is_whole() -> None:
    assert read_frames([b"x" * 10, b"x" * 10, b"x" * 10 + b"\nok\n"]) == [OversizedFrame(LINE_LIMIT_BYTES), b"ok"]


def test_the_end_of_a_line_does_not_count_whichever_it_is() -> None:
    largest = b"x" * LINE_LIMIT_BYTES

    for end in (b"\n", b"\r\n", b"\r", b""):
        assert read_frames([largest + end]) == read_frames([largest, end]) == [largest]
        assert read_frames([largest + b"x" + end]) == [OversizedFrame(LINE_LIMIT_BYTES)]


def test_a_last_line_without_its_newline_is_a_line() -> None:
    assert read_frames([b"one\ntwo"]) == [b"one", b"two"]

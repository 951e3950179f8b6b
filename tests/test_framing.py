"""Bytes to frames, whatever way the bytes arrive."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cleats.transports.framing import Lines, TooLarge

LIMIT = 12
line = st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b"."))


def frames(chunks: list[bytes]) -> list[bytes | TooLarge]:
    lines = Lines(LIMIT)
    found = [frame for chunk in chunks for frame in lines.feed(chunk)]
    return found + list(lines.close())


def over(line: bytes) -> bool:
    return len(line.removesuffix(b"\r")) > LIMIT


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    return [stream[start:end] for start, end in pairwise(edges)]


@given(st.lists(line), st.lists(st.integers(min_value=0)), st.booleans())
def test_the_frames_do_not_depend_on_how_the_stream_is_cut(
    lines: list[bytes], places: list[int], ended: bool
) -> None:
    stream = b"\n".join(lines) + (b"\n" if ended else b"")

    assert frames(cut(stream, places)) == frames([stream])


@given(st.lists(line), st.lists(st.integers(min_value=0)))
def test_every_line_is_a_frame_or_a_refusal_or_blank(lines: list[bytes], places: list[int]) -> None:
    stream = b"".join(each + b"\n" for each in lines)
    expected = [
        TooLarge(LIMIT) if over(each) else each.strip()
        for each in lines
        if over(each) or each.strip()
    ]

    assert frames(cut(stream, places)) == expected


@given(st.lists(st.binary(max_size=50)))
def test_the_buffer_never_holds_more_than_the_limit(chunks: list[bytes]) -> None:
    lines = Lines(LIMIT)
    for chunk in chunks:
        list(lines.feed(chunk))

        assert not over(bytes(lines._buffer))


def test_a_line_over_the_limit_is_reported_once_and_the_next_one_is_whole() -> None:
    assert frames([b"x" * 10, b"x" * 10, b"x" * 10 + b"\nok\n"]) == [TooLarge(LIMIT), b"ok"]


def test_the_end_of_a_line_does_not_count_whichever_it_is() -> None:
    largest = b"x" * LIMIT

    for end in (b"\n", b"\r\n", b"\r", b""):
        assert frames([largest + end]) == frames([largest, end]) == [largest]
        assert frames([largest + b"x" + end]) == [TooLarge(LIMIT)]


def test_a_last_line_without_its_newline_is_a_line() -> None:
    assert frames([b"one\ntwo"]) == [b"one", b"two"]

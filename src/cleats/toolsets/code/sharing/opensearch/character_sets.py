"""Sets of characters in a regular expression, as ranges of code points.

Lucene has neither Python's character classes nor its case rules, so each set is written out with
exactly the characters that Python matches.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, TypeAlias

CodePointRanges: TypeAlias = tuple[tuple[int, int], ...]
"""Ranges of code points, sorted, both ends included, never adjacent."""

MAX_CODE_POINT: Final = 0x10FFFF
MAX_CASED_CODE_POINT: Final = 0x20000
"""Code points from here on have no uppercase forms."""

FRAME_START, FRAME_END = "\x02", "\x03"
"""Characters before and after every path in the index, which turn an anchor into a character."""

FRAME_RANGES: Final[CodePointRanges] = ((ord(FRAME_START), ord(FRAME_END)),)


def expand_range(first: int, last: int, *, ignore_case: bool) -> CodePointRanges:
    """Return the characters of a range, and those that Python treats as equal to them."""
    ranges: CodePointRanges = ((first, last),)
    if not ignore_case:
        return ranges
    source = f"[{re.escape(chr(first))}-{re.escape(chr(last))}]"
    return merge_ranges([ranges, _merge_chars(re.findall(source, _cased_chars(), re.IGNORECASE))])


@cache
def expand_class(source: str) -> CodePointRanges:
    """Return the characters of one of Python's classes, such as digits."""
    chars = "".join(map(chr, (*range(0xD800), *range(0xE000, MAX_CODE_POINT + 1))))
    runs = re.finditer(f"{source}+", chars)
    return tuple((ord(chars[run.start()]), ord(chars[run.end() - 1])) for run in runs)


@cache
def _cased_chars() -> str:
    chars = map(chr, range(MAX_CASED_CODE_POINT))
    return "".join(char for char in chars if char.lower() != char or char.upper() != char)


def _merge_chars(chars: Iterable[str]) -> CodePointRanges:
    return merge_ranges([((ord(char), ord(char)),) for char in chars])


def merge_ranges(range_sets: Iterable[CodePointRanges]) -> CodePointRanges:
    """Return the characters of all sets."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(code_range for ranges in range_sets for code_range in ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)


def invert_ranges(ranges: CodePointRanges) -> CodePointRanges:
    """Return all other characters."""
    return tuple(_iterate_gaps(ranges))


def _iterate_gaps(ranges: CodePointRanges) -> Iterator[tuple[int, int]]:
    next_code = 0
    for first, last in ranges:
        if next_code < first:
            yield next_code, first - 1
        next_code = last + 1
    if next_code <= MAX_CODE_POINT:
        yield next_code, MAX_CODE_POINT


def subtract_ranges(ranges: CodePointRanges, excluded: CodePointRanges) -> CodePointRanges:
    """Return the characters of one set that are not in another."""
    return invert_ranges(merge_ranges([invert_ranges(ranges), excluded]))


def format_ranges(ranges: CodePointRanges) -> str:
    """Format a set in Lucene's language, without the frame characters."""
    ranges = subtract_ranges(ranges, FRAME_RANGES)
    if not ranges:
        return f"{FRAME_END}{FRAME_START}"  # occurs in no framed text
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return escape_text(chr(ranges[0][0]))
    inverted = invert_ranges(ranges)
    if len(inverted) < len(ranges):
        return f"[^{''.join(map(_format_range, inverted))}]"
    return f"[{''.join(map(_format_range, ranges))}]"


def _format_range(code_range: tuple[int, int]) -> str:
    first, last = (escape_text(chr(code)) for code in code_range)
    return first if code_range[0] == code_range[1] else f"{first}-{last}"


def escape_text(text: str) -> str:
    """Escape a text for Lucene: every ASCII character that could have a special meaning."""
    return "".join(
        f"\\{char}" if char.isascii() and char.isprintable() and not char.isalnum() else char for char in text
    )

"""Sets of signs: what one place of a regular expression can be, as ranges of code points.

Lucene knows neither Python's classes nor its idea of case, so each set is written out, after
Python itself has said which signs it takes.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Of code points, in order, both ends included, never touching."""

LAST: Final = 0x10FFFF
CASED: Final = 0x20000
"""Beyond it no sign has a capital."""

BEGIN, END = "\x02", "\x03"
"""What stands before and after every path in the index, so that an anchor is a sign like others."""

FRAME: Final[Ranges] = ((ord(BEGIN), ord(END)),)


def one(first: int, last: int, *, ignore_case: bool) -> Ranges:
    """The signs from one to another, and those that Python takes for them."""
    signs: Ranges = ((first, last),)
    if not ignore_case:
        return signs
    source = f"[{re.escape(chr(first))}-{re.escape(chr(last))}]"
    return union([signs, _codes(re.findall(source, _cased(), re.IGNORECASE))])


@cache
def category(source: str) -> Ranges:
    """The signs of one of Python's classes, such as a digit."""
    signs = "".join(map(chr, (*range(0xD800), *range(0xE000, LAST + 1))))
    runs = re.finditer(f"{source}+", signs)
    return tuple((ord(signs[run.start()]), ord(signs[run.end() - 1])) for run in runs)


@cache
def _cased() -> str:
    signs = map(chr, range(CASED))
    return "".join(sign for sign in signs if sign.lower() != sign or sign.upper() != sign)


def _codes(found: Iterable[str]) -> Ranges:
    return union([((ord(sign), ord(sign)),) for sign in found])


def union(sets: Iterable[Ranges]) -> Ranges:
    """All signs of all sets."""
    made: list[tuple[int, int]] = []
    for first, last in sorted(each for signs in sets for each in signs):
        if made and first <= made[-1][1] + 1:
            made[-1] = (made[-1][0], max(last, made[-1][1]))
        else:
            made.append((first, last))
    return tuple(made)


def complement(signs: Ranges) -> Ranges:
    """All other signs."""
    return tuple(_between(signs))


def _between(signs: Ranges) -> Iterator[tuple[int, int]]:
    at = 0
    for first, last in signs:
        if at < first:
            yield at, first - 1
        at = last + 1
    if at <= LAST:
        yield at, LAST


def without(signs: Ranges, others: Ranges) -> Ranges:
    """The signs of one set that are not in another."""
    return complement(union([complement(signs), others]))


def written(signs: Ranges) -> str:
    """A set in Lucene's language, without the frame; one sign is itself."""
    signs = without(signs, FRAME)
    if not signs:
        return f"{END}{BEGIN}"  # in no framed text
    if len(signs) == 1 and signs[0][0] == signs[0][1]:
        return plain(chr(signs[0][0]))
    others = complement(signs)
    if len(others) < len(signs):
        return f"[^{''.join(map(_range, others))}]"
    return f"[{''.join(map(_range, signs))}]"


def _range(signs: tuple[int, int]) -> str:
    first, last = (plain(chr(code)) for code in signs)
    return first if signs[0] == signs[1] else f"{first}-{last}"


def plain(text: str) -> str:
    """A text in Lucene's language: every sign of ASCII that could mean something is escaped."""
    return "".join(
        f"\\{s}" if s.isascii() and s.isprintable() and not s.isalnum() else s for s in text
    )

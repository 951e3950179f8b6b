"""What a filter asks of a chunk, and which chunks of a shard have it.

A filter never looks at a chunk: it looks at the distinct values of a column, and takes whoever has
one that fits.
"""

import re
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cleats.toolsets.code.search.columns import Columns
from cleats.toolsets.code.search.digest import ASYNC, GENERATOR, RETURNS
from cleats.toolsets.code.search.patterns import refused
from cleats.toolsets.code.search.vocabulary import Ids, Mask, Vocabulary, distinct

PATIENCE: Final = 2.0
"""Seconds that the patterns of one filter may take on all paths."""

FLAGS: Final[Mapping[str, int]] = {"async": ASYNC, "generator": GENERATOR, "returns": RETURNS}


class Holds(Struct, frozen=True):
    """A value holds, is, ends with or begins with one of these texts: see `SHAPES`."""

    texts: tuple[str, ...]
    shape: str
    cased: bool


class Part(Struct, frozen=True):
    """A piece of a path, or of the name of a file."""

    text: str
    in_name: bool


class Fits(Struct, frozen=True):
    """A value fits a pattern, or has a part."""

    patterns: tuple[re.Pattern[str] | Part, ...]
    cased: bool


class Lacks(Struct, frozen=True):
    """It does not fit."""

    test: Fits


class Least(Struct, frozen=True):
    """A number is known, and not below this."""

    number: float


class Set(Struct, frozen=True):
    """A flag is set."""


class Field(Struct, frozen=True):
    """A field of this name is there, and holds one of these texts if there are any."""

    key: str
    texts: tuple[str, ...]


Test: TypeAlias = Holds | Fits | Lacks | Least | Set | Field


class Filter(Struct, frozen=True):
    """One argument as a test of a column."""

    argument: str
    column: str
    test: Test


SHAPES: Final[Mapping[str, tuple[bytes, bytes]]] = {
    "contains": (b"", b""),
    "is": (rb"\0", rb"\0"),
    "member": (rb"\0.:>#", rb"\0"),
    "module": (rb"\0", rb"\0./:\\"),
}
"""Of which bytes one has to stand before a text, and one after it."""


def mask(columns: Columns, wanted: Filter) -> Mask:
    """The chunks of a shard that pass."""
    match wanted.test:
        case Lacks(test):
            return ~mask(columns, replace(wanted, test=test))
        case Least(number):
            found = columns.number(wanted.column)
            return (found >= number) & (found >= 0)
        case Set():
            flags = columns.number("flags") & FLAGS.get(wanted.column, 0)
            return np.asarray(columns.number("lint") if wanted.column == "lint" else flags != 0)
        case Holds() | Fits() | Field() as test:
            column = columns.column(wanted.column)
            if column is None:
                return np.zeros(columns.chunks, np.bool_)
            ids = _ids(column.vocabulary, test, wanted.argument)
            return columns.spread(wanted.column, column.mask(ids))


def _ids(vocabulary: Vocabulary, test: Holds | Fits | Field, argument: str) -> Ids:
    match test:
        case Holds(texts, shape, cased):
            patterns = [literal(text, *SHAPES[shape], cased=cased) for text in texts]
            found = [vocabulary.find(pattern, cased=cased) for pattern in patterns]
            return found[0] if len(found) == 1 else distinct(np.concatenate(found))
        case Field(key, texts):
            return vocabulary.find(_field(key, texts), cased=False)
        case Fits(patterns, cased):
            return _fitting(vocabulary, patterns, argument, cased=cased)


def literal(text: str, before: bytes, after: bytes, *, cased: bool) -> bytes:
    """A pattern for a text between one of some bytes and one of others.

    The text itself comes first and what is before it is looked at afterwards: only then does the
    engine jump from one to the next.
    """
    escaped = re.escape((text if cased else text.lower()).encode(errors="surrogatepass"))
    return (
        escaped
        + (b"(?<=[" + before + b"]" + escaped + b")" if before else b"")
        + (b"(?=[" + after + b"])" if after else b"")
    )


def _any(texts: Sequence[str]) -> bytes:
    encoded = [text.lower().encode(errors="surrogatepass") for text in texts]
    return b"(?:" + b"|".join(map(re.escape, encoded)) + b")"


def _field(key: str, texts: Sequence[str]) -> bytes:
    # Items of a list are fields of their own, `tags.0` or `tags[0]`; who asks for `tags` means any.
    named = rb"\0" + re.escape(key.lower().encode()) + rb"(?:\.\d+|\[\d*\])*"
    if not texts:
        return named + rb"(?=[=.\[])"
    return named + rb"=[^\0]*?" + _any(texts)


def _fitting(
    vocabulary: Vocabulary,
    patterns: Sequence[re.Pattern[str] | Part],
    argument: str,
    *,
    cased: bool,
) -> Ids:
    deadline = monotonic() + PATIENCE
    found: list[int] = []
    for number, value in enumerate(vocabulary.values()):
        if any(_fits(pattern, value, cased=cased) for pattern in patterns):
            found.append(number)
        if monotonic() > deadline:
            raise refused(argument, "the pattern", "takes too long")
    return np.asarray(found, np.int32)


def _fits(pattern: re.Pattern[str] | Part, value: str, *, cased: bool) -> bool:
    if isinstance(pattern, re.Pattern):
        return pattern.search(value) is not None
    seen = value.rpartition("/")[2] if pattern.in_name else value
    return pattern.text in (seen if cased else seen.lower())

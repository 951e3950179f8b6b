"""The conditions of filters, and the chunks of a shard that satisfy them.

A filter never looks at single chunks: it searches the distinct values of a column, and selects the
owners of those that match.
"""

import re
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cleats.toolsets.code.index.columns import Ids, Mask, ShardColumns, Vocabulary, sort_unique
from cleats.toolsets.code.index.digest import ASYNC_FLAG, GENERATOR_FLAG, RETURNS_FLAG
from cleats.toolsets.code.query.patterns import make_pattern_error

PATTERN_TIMEOUT_SECONDS: Final = 2.0
"""Seconds that the patterns of one filter may take on all paths."""

FLAG_BITS: Final[Mapping[str, int]] = {"async": ASYNC_FLAG, "generator": GENERATOR_FLAG, "returns": RETURNS_FLAG}


class TextCondition(Struct, frozen=True):
    """A value contains, equals, ends or begins with one of these texts (`MATCHER_BOUNDARIES`)."""

    texts: tuple[str, ...]
    matcher: str
    cased: bool


class PathPart(Struct, frozen=True):
    """A part of a path, or of the name of a file."""

    text: str
    in_name: bool


class PatternCondition(Struct, frozen=True):
    """A value matches a pattern, or contains a part."""

    patterns: tuple[re.Pattern[str] | PathPart, ...]
    cased: bool


class NegatedCondition(Struct, frozen=True):
    """A value does not satisfy the condition."""

    condition: PatternCondition


class MinimumCondition(Struct, frozen=True):
    """A number is known, and at least this."""

    number: float


class FlagCondition(Struct, frozen=True):
    """A flag is set."""


class FieldCondition(Struct, frozen=True):
    """A field of this name exists, and contains one of these texts if there are any."""

    key: str
    texts: tuple[str, ...]


FilterCondition: TypeAlias = (
    TextCondition | PatternCondition | NegatedCondition | MinimumCondition | FlagCondition | FieldCondition
)


class SearchFilter(Struct, frozen=True):
    """One argument as a condition on a column."""

    argument: str
    column: str
    condition: FilterCondition


MATCHER_BOUNDARIES: Final[Mapping[str, tuple[bytes, bytes]]] = {
    "contains": (b"", b""),
    "is": (rb"\0", rb"\0"),
    "member": (rb"\0.:>#", rb"\0"),
    "module": (rb"\0", rb"\0./:\\"),
}
"""The bytes of which one must precede a text, and those of which one must follow it."""


def compute_mask(columns: ShardColumns, search_filter: SearchFilter) -> Mask:
    """Return the chunks of a shard that pass a filter."""
    match search_filter.condition:
        case NegatedCondition(condition):
            return ~compute_mask(columns, replace(search_filter, condition=condition))
        case MinimumCondition(number):
            numbers = columns.get_numbers(search_filter.column)
            return (numbers >= number) & (numbers >= 0)
        case FlagCondition():
            flags = columns.get_numbers("flags") & FLAG_BITS.get(search_filter.column, 0)
            return np.asarray(columns.get_numbers("lint") if search_filter.column == "lint" else flags != 0)
        case TextCondition() | PatternCondition() | FieldCondition() as condition:
            column = columns.get_column(search_filter.column)
            if column is None:
                return np.zeros(columns.chunk_count, np.bool_)
            ids = _find_values(column.vocabulary, condition, search_filter.argument)
            return columns.spread_to_chunks(search_filter.column, column.mask_owners(ids))


def _find_values(
    vocabulary: Vocabulary, condition: TextCondition | PatternCondition | FieldCondition, argument: str
) -> Ids:
    match condition:
        case TextCondition(texts, matcher, cased):
            patterns = [make_literal_pattern(text, *MATCHER_BOUNDARIES[matcher], cased=cased) for text in texts]
            matches = [vocabulary.find(pattern, cased=cased) for pattern in patterns]
            return matches[0] if len(matches) == 1 else sort_unique(np.concatenate(matches))
        case FieldCondition(key, texts):
            return vocabulary.find(_make_field_pattern(key, texts), cased=False)
        case PatternCondition(patterns, cased):
            return _match_patterns(vocabulary, patterns, argument, cased=cased)


def make_literal_pattern(text: str, before: bytes, after: bytes, *, cased: bool) -> bytes:
    """Return a pattern for a text between one of some bytes and one of others.

    The text itself comes first and the byte before it is checked afterwards: only then does the
    regex engine jump from one occurrence to the next.
    """
    escaped = re.escape((text if cased else text.lower()).encode(errors="surrogatepass"))
    return (
        escaped
        + (b"(?<=[" + before + b"]" + escaped + b")" if before else b"")
        + (b"(?=[" + after + b"])" if after else b"")
    )


def _make_any_pattern(texts: Sequence[str]) -> bytes:
    encoded = [text.lower().encode(errors="surrogatepass") for text in texts]
    return b"(?:" + b"|".join(map(re.escape, encoded)) + b")"


def _make_field_pattern(key: str, texts: Sequence[str]) -> bytes:
    # Items of a list are separate fields, `tags.0` or `tags[0]`; a filter on `tags` means any.
    key_pattern = rb"\0" + re.escape(key.lower().encode()) + rb"(?:\.\d+|\[\d*\])*"
    if not texts:
        return key_pattern + rb"(?=[=.\[])"
    return key_pattern + rb"=[^\0]*?" + _make_any_pattern(texts)


def _match_patterns(
    vocabulary: Vocabulary, patterns: Sequence[re.Pattern[str] | PathPart], argument: str, *, cased: bool
) -> Ids:
    deadline = monotonic() + PATTERN_TIMEOUT_SECONDS
    numbers: list[int] = []
    for number, value in enumerate(vocabulary.values()):
        if any(_matches_pattern(pattern, value, cased=cased) for pattern in patterns):
            numbers.append(number)
        if monotonic() > deadline:
            raise make_pattern_error(argument, "the pattern", "takes too long")
    return np.asarray(numbers, np.int32)


def _matches_pattern(pattern: re.Pattern[str] | PathPart, value: str, *, cased: bool) -> bool:
    if isinstance(pattern, re.Pattern):
        return pattern.search(value) is not None
    subject = value.rpartition("/")[2] if pattern.in_name else value
    return pattern.text in (subject if cased else subject.lower())

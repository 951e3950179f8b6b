"""The numbers, texts, names and lengths of which sample values are made."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, Final

from cleats.contract.compat.keywords import Schema, encode_canonical, list_announced_names, walk_schemas
from cleats.contract.compat.patterns import UnsupportedPatternError, find_unmatched_text

MAX_COMPARED_PATTERNS: Final = 40
"""The number of pairs of patterns for which a text is made that tells them apart."""

MAX_MULTIPLES: Final = 8
"""The number of multiples of a `multipleOf` that are tried."""

MAX_SAMPLE_LENGTH: Final = 2000
"""In characters or items: a higher limit is tried only for a change of that limit."""

SAMPLE_TEXTS: Final = (
    *("a", "", "A", "0", "a-b", "a_b", "a.b", "a/b", "a b", "aa", "é", "a1", "1a", "-", "/a"),
    *("2020-01-01", "2020-01-01T00:00:00Z", "00:00:00Z", "P1D", "https://example.org/"),
    *("a@example.org", "example.org", "127.0.0.1", "::1", "00000000-0000-4000-8000-000000000000"),
)
"""One of each kind that patterns and formats commonly require."""

SAMPLE_NUMBERS: Final = (0, 1, -1, 2, 0.5, 10, 1000000)


class SamplePool:
    """Parts for samples: common ones, and those that two schemas mention."""

    def __init__(self, small: Schema, large: Schema) -> None:
        parts = [part for root in (small, large) for part in walk_schemas(root) if isinstance(part, dict)]
        limits = [value for part in parts for value in part.values() if _is_number(value)]
        steps = [part["multipleOf"] for part in parts if _is_number(part.get("multipleOf"))]
        multiples = (step * count for step in steps for count in range(1, MAX_MULTIPLES + 1))
        self.numbers = _list_distinct(
            chain(SAMPLE_NUMBERS, *((number, number - 1, number + 1) for number in limits), multiples)
        )
        length_candidates = _list_distinct(
            chain(*((number + 1, number, number - 1) for number in limits), SAMPLE_NUMBERS)
        )
        self.lengths = [
            number for number in length_candidates if isinstance(number, int) and 0 <= number <= MAX_SAMPLE_LENGTH
        ]
        mentioned_values = _list_distinct(chain.from_iterable(map(_list_mentioned_values, parts)))
        texts = [*_list_pattern_texts(small, large), *(value for value in mentioned_values if isinstance(value, str))]
        long_texts = ("a" * length for length in self.lengths)
        self.texts = _list_distinct(chain(SAMPLE_TEXTS, texts, (f"{text_value}x" for text_value in texts), long_texts))
        names = (name for part in parts for name in _list_property_names(part))
        self.names = _list_distinct(chain(names, _list_pattern_names(small, large), ["other"]))


def _list_pattern_texts(small: Schema, large: Schema) -> Iterator[str]:
    """Yield texts that tell the patterns of the two schemas apart, and texts that match them."""
    return _tell_patterns_apart(*(_collect_patterns(schema, "pattern") for schema in (small, large)))


def _list_pattern_names(small: Schema, large: Schema) -> Iterator[str]:
    """Yield names that tell the patterns for properties apart."""
    return _tell_patterns_apart(*(_collect_patterns(schema, "patternProperties") for schema in (small, large)))


def _collect_patterns(schema: Schema, keyword: str) -> list[str]:
    parts = (part[keyword] for part in walk_schemas(schema) if isinstance(part, dict) and keyword in part)
    return _list_distinct(chain.from_iterable([value] if isinstance(value, str) else value for value in parts))


def _tell_patterns_apart(patterns: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    pairs = [(one, other) for one in patterns for other in others if one != other]
    pairs += [(one, other) for other, one in pairs]
    singles: list[tuple[str, str | None]] = [(one, None) for one in (*patterns, *others)]
    for one, other in islice(chain(pairs, singles), MAX_COMPARED_PATTERNS):
        with suppress(UnsupportedPatternError):
            if (text := find_unmatched_text(one, other)) is not None:
                yield text


def _list_mentioned_values(part: dict[str, Any]) -> Iterator[Any]:
    """Yield the values that a schema mentions."""
    yield from (part[keyword] for keyword in ("const", "default") if keyword in part)
    for keyword in ("enum", "examples"):
        yield from part[keyword] if isinstance(part.get(keyword), list) else []


def _list_property_names(part: dict[str, Any]) -> Iterator[str]:
    for keyword in ("properties", "dependentSchemas", "dependentRequired"):
        yield from part[keyword] if isinstance(part.get(keyword), dict) else ()
    yield from part["required"] if isinstance(part.get("required"), list) else ()
    yield from list_announced_names(part)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def drop_duplicates(values: Iterable[Any]) -> Iterator[Any]:
    """Yield each value once, in the original order."""
    encoded_values = set()
    for value in values:
        if (encoded := encode_canonical(value)) not in encoded_values:
            encoded_values.add(encoded)
            yield value


def _list_distinct(values: Iterable[Any]) -> list[Any]:
    return list(drop_duplicates(values))

"""How the values of each column are stored in OpenSearch, so that every filter finds what the embedded index finds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from cleats.toolsets.code.query.arguments import FILTER_ARGUMENTS, Matcher
from cleats.toolsets.code.sharing.opensearch.regexes import FRAME_END, FRAME_START

MEMBER_SEPARATORS, MODULE_SEPARATORS = ".:>#", "./:\\"
"""Characters before the last part of a member name, and after the first part of a module name."""


@dataclass(frozen=True, slots=True)
class ColumnStorage:
    """The way in which the values of one column are stored."""

    type: str
    forms: Callable[[str], Iterable[str]]
    """Returns the stored forms of a value."""


def frame_value(value: str) -> str:
    """Return a value between the characters that mark its beginning and its end."""
    return f"{FRAME_START}{value}{FRAME_END}"


def iterate_suffixes(value: str, separators: str = MEMBER_SEPARATORS) -> Iterator[str]:
    """Yield a value, and the text after each separator in it."""
    yield value
    for index, char in enumerate(value):
        if char in separators and index + 1 < len(value):
            yield value[index + 1 :]


def iterate_prefixes(value: str, separators: str = MODULE_SEPARATORS) -> Iterator[str]:
    """Yield a value, and the text before each separator in it."""
    yield value
    for index, char in enumerate(value):
        if char in separators and index:
            yield value[:index]


_EXACT_STORAGE: Final = ColumnStorage("keyword", lambda value: (value,))
_LOWERCASE_STORAGE: Final = ColumnStorage("wildcard", lambda value: (value.lower(),))

_STORAGE_BY_MATCHER: Final[Mapping[Matcher | None, ColumnStorage]] = {
    "contains": _LOWERCASE_STORAGE,
    "contains-cased": ColumnStorage("wildcard", lambda value: (value,)),
    "fields": _LOWERCASE_STORAGE,
    "is": _EXACT_STORAGE,
    "kind": _EXACT_STORAGE,
    "language": _EXACT_STORAGE,
    "member": ColumnStorage("keyword", iterate_suffixes),
    "module": ColumnStorage("keyword", iterate_prefixes),
    "extension": ColumnStorage("wildcard", lambda value: (frame_value(value),)),
}

STORAGE_BY_COLUMN: Final[Mapping[str, ColumnStorage]] = {
    row.column: _STORAGE_BY_MATCHER[row.matcher] for row in FILTER_ARGUMENTS if row.matcher in _STORAGE_BY_MATCHER
}
"""Every column with values except the path, which has separate fields."""

"""The table of all search arguments, which `arguments.json` lists by topic.

The tool's input schema, the flags of `cleats search`, the columns and matchers of filters, and the reference pages are
all derived from `SEARCH_ARGUMENTS`. A row has the name and the description of an argument. It may have its flag on the
command line, its schema (by default that of a text), and for a filter the matcher, the column if its name is another,
and `takes_one` if separators in a value mean nothing. Model APIs refuse a union of types, and arrays without `items`:
several texts are an `anyOf`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

ArgumentTopic = Literal["query", "place", "declaration", "body", "risk", "history", "records", "results"]

Matcher = Literal[
    "contains",  # any of the values is in it; case is ignored
    "contains-cased",
    "is",  # it is one of the values
    "member",  # it is one of the values, or ends with one after a dot
    "module",  # it is one of the values, or begins with one before a separator
    "path",  # a glob, a /regex/ or a part of the path
    "file",  # the same, and without a slash it is about the name
    "extension",
    "kind",
    "language",
    "least",  # the number is at least this
    "since",  # the time is not before this
    "flag",  # it is true
    "fields",
]

DEFAULT_TOP_HITS: Final = 10
"""More than the five of a terminal program: an agent reads ten hits faster than it asks twice."""

_TEXT_SCHEMA: Final = {"type": "string", "minLength": 1, "maxLength": 1000}

_SEPARATORS_BY_MATCHER: Final[Mapping[Matcher, str]] = {
    **dict.fromkeys(("contains", "is", "member", "module"), ","),
    **dict.fromkeys(("extension", "kind", "language"), ", "),
}
"""Separators of the values of a filter, unless it takes one value only."""


class SearchArgument(Struct, forbid_unknown_fields=True):
    """One argument: its name, its texts for people, and its filter if it has one."""

    name: str
    description: str
    flag: str = "--"
    """The flag on the command line, completed from the name by default; empty for the query itself."""
    schema: Mapping[str, Any] = field(default_factory=_TEXT_SCHEMA.copy)
    matcher: Matcher | None = None
    column: str = ""
    takes_one: bool = False
    topic: ArgumentTopic = "query"

    def __post_init__(self) -> None:
        if self.flag == "--":
            self.flag += "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in self.name)
        self.column = self.column or self.name if self.matcher else ""

    @property
    def separators(self) -> str:
        """Characters between alternative values."""
        return _SEPARATORS_BY_MATCHER.get(self.matcher, "") if self.matcher and not self.takes_one else ""

    @property
    def property_schema(self) -> dict[str, Any]:
        """The property of the argument in the input schema."""
        return {**self.schema, "description": self.description}


class _TopicRows(Struct, frozen=True, forbid_unknown_fields=True):
    topic: ArgumentTopic
    title: str
    arguments: list[SearchArgument]


_TOPICS: Final = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=list[_TopicRows])

TOPIC_TITLES: Final[Mapping[ArgumentTopic, str]] = {rows.topic: rows.title for rows in _TOPICS}

SEARCH_ARGUMENTS: Final = tuple(replace(row, topic=rows.topic) for rows in _TOPICS for row in rows.arguments)

ARGUMENTS_BY_NAME: Final = {argument.name: argument for argument in SEARCH_ARGUMENTS}
FILTER_ARGUMENTS: Final = tuple(argument for argument in SEARCH_ARGUMENTS if argument.matcher)


LIST_ARGUMENTS: Final = frozenset(argument.name for argument in SEARCH_ARGUMENTS if "," in argument.separators)
"""Text filters that take several values with commas, or as an array."""


def make_input_schema() -> dict[str, Any]:
    """Return the input schema of the tool."""
    return {
        "type": "object",
        "properties": {argument.name: argument.property_schema for argument in SEARCH_ARGUMENTS},
        "required": ["query"],
        "additionalProperties": False,
    }

"""The table of all search arguments.

The tool's input schema, the flags of `cleats search`, the columns and matchers of filters, and the
reference pages are all derived from `SEARCH_ARGUMENTS`.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

ArgumentTopic = Literal["query", "place", "declaration", "body", "risk", "history", "records", "results"]
TOPIC_TITLES: Final[Mapping[ArgumentTopic, str]] = {
    "query": "Query",
    "place": "Where it is",
    "declaration": "What is declared",
    "body": "What it does",
    "risk": "Risk",
    "history": "History and lint",
    "records": "Records",
    "results": "Results",
}

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

TEXT_SCHEMA: Final = {"type": "string", "minLength": 1, "maxLength": 1000}
TEXT_LIST_SCHEMA: Final = {
    "anyOf": [TEXT_SCHEMA, {"type": "array", "items": TEXT_SCHEMA, "minItems": 1, "maxItems": 100}]
}
"""One text or several. Model APIs refuse a union of types, and arrays without `items`."""

COUNT_SCHEMA: Final = {"type": "integer", "minimum": 0}
SWITCH_SCHEMA: Final = {"type": "boolean"}
FIELDS_SCHEMA: Final = {
    "anyOf": [
        {"type": "object", "minProperties": 1},
        {"type": "array", "items": {}, "minItems": 1},
        {"type": "string", "minLength": 1},
    ]
}

DEFAULT_TOP_HITS: Final = 10
"""More than the five of a terminal program: an agent reads ten hits faster than it asks twice."""


class SearchArgument(Struct, frozen=True):
    """One argument: its name, its texts for people, and its filter if it has one."""

    name: str
    flag: str
    """The flag on the command line; empty for the query itself."""
    description: str
    schema: Mapping[str, Any]
    matcher: Matcher | None = None
    column: str = ""
    separators: str = ""
    """Characters between alternative values."""
    topic: ArgumentTopic = "query"

    @property
    def property_schema(self) -> dict[str, Any]:
        """The property of the argument in the input schema."""
        return {**self.schema, "description": self.description}


_SEPARATORS_BY_MATCHER: Final[Mapping[Matcher, str]] = {
    **dict.fromkeys(("contains", "is", "member", "module"), ","),
    **dict.fromkeys(("extension", "kind", "language"), ", "),
}
"""Separators of the values of a filter, unless it takes one value only."""


def _make_argument(name: str, description: str, schema: Mapping[str, Any], flag: str | None = None) -> SearchArgument:
    return SearchArgument(name, _make_flag(name) if flag is None else flag, description, schema)


def _make_filter(
    name: str,
    matcher: Matcher,
    description: str,
    column: str = "",
    *,
    schema: Mapping[str, Any] = TEXT_SCHEMA,
    takes_one: bool = False,
) -> SearchArgument:
    separators = "" if takes_one else _SEPARATORS_BY_MATCHER.get(matcher, "")
    return SearchArgument(name, _make_flag(name), description, schema, matcher, column or name, separators)


def _make_flag(name: str) -> str:
    return "--" + "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name)


def _make_flag_filter(name: str, description: str) -> SearchArgument:
    return _make_filter(name, "flag", description, schema=SWITCH_SCHEMA)


def _make_minimum_filter(name: str, unit: str) -> SearchArgument:
    column = name.removesuffix("Min")
    return SearchArgument(name, f"--{column}", f"At least this many {unit}.", COUNT_SCHEMA, "least", column)


_ARGUMENTS_BY_TOPIC: Final[Mapping[ArgumentTopic, tuple[SearchArgument, ...]]] = {
    "query": (
        _make_argument(
            "query",
            'Question, words or a name. "phrases" are required, -word is excluded, * matches everything; '
            "AND, OR, NOT and (groups) make a formula.",
            {"type": "string", "minLength": 1, "maxLength": 20_000},
            flag="",
        ),
        _make_argument("repoPath", "Repository folder. [default: the server's]", TEXT_SCHEMA, flag="--repo"),
        _make_argument(
            "workspacePath",
            "File that names several repositories to search.",
            TEXT_SCHEMA,
            flag="--workspace",
        ),
        _make_argument(
            "mode",
            "What to search: prose is documents and comments, extracted-prose only comments, records "
            "findings and logs, both everything but records.",
            {"enum": ["code", "prose", "extracted-prose", "records", "both", "all"], "default": "both"},
        ),
        _make_argument("case", "Set caseFile and caseTokens.", SWITCH_SCHEMA),
        _make_argument("caseTokens", "Case-sensitive words.", SWITCH_SCHEMA),
        _make_argument(
            "ann",
            "Also rank by meaning.",
            SWITCH_SCHEMA,
            flag="--ann/--no-ann",
        ),
        _make_argument(
            "backend",
            "Ranking engine; auto is tantivy.",
            {"enum": ["auto", "tantivy", "sqlite-fts", "sqlite", "memory"], "default": "auto"},
        ),
        _make_argument("refresh", "Update the index.", SWITCH_SCHEMA),
    ),
    "place": (
        _make_filter(
            "path",
            "path",
            "Path: glob (src/**/*.py), /regex/ or substring. !x excludes.",
            schema=TEXT_LIST_SCHEMA,
        ),
        _make_filter(
            "file",
            "file",
            "File name: glob, /regex/ or substring.",
            "path",
            schema=TEXT_LIST_SCHEMA,
        ),
        _make_filter(
            "ext",
            "extension",
            "File extension, glob or /regex/. !x excludes.",
            schema=TEXT_LIST_SCHEMA,
        ),
        _make_filter("lang", "language", "Language name: python, py, c++."),
        _make_argument("caseFile", "Case-sensitive paths.", SWITCH_SCHEMA),
        _make_argument("branch", "Only if the index is of this branch.", TEXT_SCHEMA),
    ),
    "declaration": (
        _make_filter(
            "type",
            "kind",
            "Kind: function, method, class, section, ...",
            "kind",
        ),
        _make_filter("signature", "contains-cased", "Signature substring, case-sensitive."),
        _make_filter("param", "is", "Parameter name, whole."),
        _make_filter("decorator", "contains", "Decorator substring.", takes_one=True),
        _make_filter("extends", "contains", "Base class substring."),
        _make_filter(
            "visibility",
            "contains",
            "public, private, ... or a modifier: static.",
        ),
        _make_filter(
            "inferredType",
            "contains",
            "Type substring, also inferred.",
            takes_one=True,
        ),
        _make_filter("returnType", "contains", "Declared return type substring.", takes_one=True),
        _make_flag_filter("async", "Only asynchronous."),
        _make_flag_filter("generator", "Only generators."),
        _make_flag_filter("returns", "Only if it returns a value."),
    ),
    "body": (
        _make_filter("import", "module", "Module its file imports, or a prefix: os.path."),
        _make_filter(
            "calls",
            "member",
            "Callers of this function; get matches session.get.",
        ),
        _make_filter("uses", "member", "Name it refers to."),
        _make_filter("reads", "contains", "Name it reads (substring)."),
        _make_filter("writes", "contains", "Name it assigns (substring)."),
        _make_filter("mutates", "contains", "What it mutates (substring)."),
        _make_filter("alias", "contains", "Alias substring: name=other.", takes_one=True),
        _make_filter("awaits", "contains", "Substring of what it awaits."),
        _make_filter("throws", "contains", "Substring of what it throws."),
        *(_make_minimum_filter(f"{unit}Min", unit) for unit in ("branches", "loops", "breaks", "continues")),
    ),
    "risk": (
        _make_filter("risk", "contains", "Risk tag substring.", "riskTag"),
        _make_filter("riskTag", "contains", "The same as risk."),
        _make_filter("riskSource", "contains", "Source name substring."),
        _make_filter("riskSink", "contains", "Sink name substring."),
        _make_filter("riskCategory", "contains", "Risk category substring."),
        _make_filter("riskFlow", "contains", "Flow substring: source->sink."),
    ),
    "history": (
        _make_filter("author", "contains", "Last author of the file."),
        _make_filter("chunkAuthor", "contains", "Author of its lines."),
        _make_minimum_filter("churnMin", "changed lines"),
        _make_filter(
            "modifiedAfter",
            "since",
            "Committed on or after 2026-01-31.",
            "modified",
        ),
        _make_filter(
            "modifiedSince",
            "since",
            "Committed in the last N days.",
            "modified",
            schema={"type": "number", "minimum": 0},
        ),
        _make_flag_filter("lint", "Only with linter findings."),
    ),
    "records": (
        _make_filter(
            "meta",
            "fields",
            "Field of a record: key=text, or key.",
            "fields",
            schema=FIELDS_SCHEMA,
        ),
        _make_filter("metaJson", "fields", "The same as JSON.", "fields", schema=FIELDS_SCHEMA),
    ),
    "results": (
        _make_argument(
            "top",
            "Hits of each mode. [default: 10, and 3 documents and 3 comments]",
            {"type": "integer", "maximum": 1000},
            flag="-n/--top",
        ),
        _make_argument(
            "context",
            "Show text with N lines around; 1 is enough.",
            {"type": "integer", "minimum": 0, "maximum": 200, "default": 0},
        ),
        _make_argument(
            "output",
            "compact: kind and place; full or json: also text and all facts.",
            {"enum": ["compact", "full", "json"], "default": "compact"},
            flag="--compact/--json",
        ),
        _make_argument("explain", "Explain scores.", SWITCH_SCHEMA),
    ),
}

SEARCH_ARGUMENTS: Final = tuple(
    replace(row, topic=topic) for topic, rows in _ARGUMENTS_BY_TOPIC.items() for row in rows
)

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

"""The table of all search arguments.

The tool's input schema, the flags of `cleats search`, the columns and matchers of filters, and the
reference pages are all derived from `SEARCH_ARGUMENTS`.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

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
    "type": ["string", "array"],
    "minLength": 1,
    "maxLength": 1000,
    "items": TEXT_SCHEMA,
    "minItems": 1,
    "maxItems": 100,
}
COUNT_SCHEMA: Final = {"type": "integer", "minimum": 0}
SWITCH_SCHEMA: Final = {"type": "boolean"}
FIELDS_SCHEMA: Final = {"type": ["object", "array", "string"], "minLength": 1, "minItems": 1, "minProperties": 1}

DEFAULT_TOP_HITS: Final = 10
"""More than the five of a terminal program: an agent reads ten hits faster than it asks twice."""


class SearchArgument(Struct, frozen=True):
    """One argument: its name, its texts for people, and its filter if it has one."""

    name: str
    flag: str
    """The flag on the command line; empty for the query itself."""
    topic: ArgumentTopic
    description: str
    schema: Mapping[str, Any]
    matcher: Matcher | None = None
    column: str = ""
    separators: str = ""
    """Characters between alternative values."""

    @property
    def property_schema(self) -> dict[str, Any]:
        """The property of the argument in the input schema."""
        return {**self.schema, "description": self.description}


_SEPARATORS_BY_MATCHER: Final[Mapping[Matcher, str]] = {
    **dict.fromkeys(("contains", "is", "member", "module"), ","),
    **dict.fromkeys(("extension", "kind", "language"), ", "),
}
"""Separators of the values of a filter, unless it takes one value only."""


def _make_filter(
    name: str,
    topic: ArgumentTopic,
    matcher: Matcher,
    description: str,
    column: str = "",
    *,
    schema: Mapping[str, Any] = TEXT_SCHEMA,
    takes_one: bool = False,
) -> SearchArgument:
    separators = "" if takes_one else _SEPARATORS_BY_MATCHER.get(matcher, "")
    return SearchArgument(name, _make_flag(name), topic, description, schema, matcher, column or name, separators)


def _make_flag(name: str) -> str:
    return "--" + "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name)


def _make_flag_filter(name: str, topic: ArgumentTopic, description: str) -> SearchArgument:
    return _make_filter(name, topic, "flag", description, schema=SWITCH_SCHEMA)


def _make_minimum_filter(name: str, topic: ArgumentTopic, unit: str) -> SearchArgument:
    column = name.removesuffix("Min")
    return SearchArgument(name, f"--{column}", topic, f"At least so many {unit}.", COUNT_SCHEMA, "least", column)


SEARCH_ARGUMENTS: Final[tuple[SearchArgument, ...]] = (
    SearchArgument(
        "query",
        "",
        "query",
        'A question, words or a name, ranked; "phrases" are required, -word is left out, * is '
        "everything. With AND, OR or NOT in capitals between words it is a formula, with (groups). "
        "camelCase and snake_case names are found whole and by their words.",
        {"type": "string", "minLength": 1, "maxLength": 20_000},
    ),
    SearchArgument(
        "repoPath", "--repo", "query", "The repository; by default that of the server's working folder.", TEXT_SCHEMA
    ),
    SearchArgument(
        "workspacePath",
        "--workspace",
        "query",
        "A file that names several repositories to search (see workspace_status); with "
        "repoPath, a file of that repository that names none outside of it.",
        TEXT_SCHEMA,
    ),
    SearchArgument(
        "mode",
        "--mode",
        "query",
        "What to search: prose is documents, comments and docstrings; extracted-prose only the "
        "latter two; records is findings and logs; both is all but records.",
        {"enum": ["code", "prose", "extracted-prose", "records", "both", "all"], "default": "both"},
    ),
    SearchArgument("case", "--case", "query", "Both caseFile and caseTokens.", SWITCH_SCHEMA),
    SearchArgument(
        "caseTokens", "--case-tokens", "query", "Words of the query match only as they are written.", SWITCH_SCHEMA
    ),
    SearchArgument(
        "ann",
        "--ann/--no-ann",
        "query",
        "Whether meaning counts beside words; null is the default, which is yes.",
        {"type": ["boolean", "null"], "default": None},
    ),
    SearchArgument(
        "backend",
        "--backend",
        "query",
        "What ranks: tantivy (auto), sqlite-fts (sqlite is the same), or memory, slow and simple.",
        {"enum": ["auto", "tantivy", "sqlite-fts", "sqlite", "memory"], "default": "auto"},
    ),
    SearchArgument("refresh", "--refresh", "query", "Bring the index up to date first.", SWITCH_SCHEMA),
    # Where it is
    _make_filter(
        "path",
        "place",
        "path",
        "Path in the repository: a glob (src/**/*.py; without a slash it is about the file's "
        "name), a /regex/, or any part of the path. Several: any. What begins with ! is left out: "
        "!tests/**.",
        schema=TEXT_LIST_SCHEMA,
    ),
    _make_filter(
        "file",
        "place",
        "file",
        "Like path, but a value without a slash must be in the file's name.",
        "path",
        schema=TEXT_LIST_SCHEMA,
    ),
    _make_filter(
        "ext",
        "place",
        "extension",
        "File extension, with or without a dot; a glob (ts*) or a /regex/. Several: any. What "
        "begins with ! is left out.",
        schema=TEXT_LIST_SCHEMA,
    ),
    _make_filter(
        "lang", "place", "language", "Language, by name or short name: python, py, c++. Several with commas: any."
    ),
    SearchArgument("caseFile", "--case-file", "place", "Case counts in path and file.", SWITCH_SCHEMA),
    SearchArgument(
        "branch",
        "--branch",
        "place",
        "Only if the index was built on this branch; else nothing is found, and it is said.",
        TEXT_SCHEMA,
    ),
    # What is declared
    _make_filter(
        "type",
        "declaration",
        "kind",
        "Kind of declaration: function, method, class, interface, section, ... Several with commas: any.",
        "kind",
    ),
    _make_filter("signature", "declaration", "contains-cased", "Text in the signature; case counts."),
    _make_filter("param", "declaration", "is", "A parameter's name, whole."),
    _make_filter("decorator", "declaration", "contains", "Text in a decorator or an annotation.", takes_one=True),
    _make_filter("extends", "declaration", "contains", "Text in the name of a base class or an interface."),
    _make_filter(
        "visibility",
        "declaration",
        "contains",
        "public, protected, private, internal, package, dunder, or a modifier such as static.",
    ),
    _make_filter(
        "inferredType",
        "declaration",
        "contains",
        "Text in a type of a parameter, a field, a local or the result, declared or inferred.",
        takes_one=True,
    ),
    _make_filter("returnType", "declaration", "contains", "Text in the declared type of the result.", takes_one=True),
    _make_flag_filter("async", "declaration", "Only asynchronous ones."),
    _make_flag_filter("generator", "declaration", "Only generators."),
    _make_flag_filter("returns", "declaration", "Only those that return a value."),
    # What it does
    _make_filter(
        "import", "body", "module", "A module that its file imports, or the beginning of its name: os.path, werkzeug."
    ),
    _make_filter(
        "calls",
        "body",
        "member",
        "Code that calls this function, and the function of this name itself if it calls any; "
        "get matches self.session.get.",
    ),
    _make_filter("uses", "body", "member", "A name that it refers to."),
    _make_filter("reads", "body", "contains", "Text in a name that it reads."),
    _make_filter("writes", "body", "contains", "Text in a name that it assigns."),
    _make_filter("mutates", "body", "contains", "Text in what it changes in place: obj.field, list[]."),
    _make_filter("alias", "body", "contains", "Text in an alias: name=other.", takes_one=True),
    _make_filter("awaits", "body", "contains", "Text in what it awaits."),
    _make_filter("throws", "body", "contains", "Text in what it throws."),
    *(_make_minimum_filter(f"{unit}Min", "body", unit) for unit in ("branches", "loops", "breaks", "continues")),
    # Risk
    _make_filter("risk", "risk", "contains", "Text in a tag of a risk.", "riskTag"),
    _make_filter("riskTag", "risk", "contains", "The same as risk, and counts if both are given."),
    _make_filter("riskSource", "risk", "contains", "Text in the name of where untrusted data comes from."),
    _make_filter("riskSink", "risk", "contains", "Text in the name of where it does harm."),
    _make_filter("riskCategory", "risk", "contains", "Text in a category of sources, sinks or sanitizers."),
    _make_filter("riskFlow", "risk", "contains", "Text in a flow: source->sink."),
    # History and lint
    _make_filter(
        "author", "history", "contains", "Text in the name of the file's last author. Several with commas: any."
    ),
    _make_filter(
        "chunkAuthor", "history", "contains", "Text in the name of an author of its lines. Several with commas: any."
    ),
    _make_minimum_filter("churnMin", "history", "lines changed by the file's last commits"),
    _make_filter(
        "modifiedAfter",
        "history",
        "since",
        "The file was committed on this date or later: 2026-01-31, or with a time.",
        "modified",
    ),
    _make_filter(
        "modifiedSince",
        "history",
        "since",
        "The file was committed in the last so many days. With modifiedAfter the later counts.",
        "modified",
        schema={"type": "number", "minimum": 0},
    ),
    _make_flag_filter("lint", "history", "Only with findings of a linter."),
    # Records
    _make_filter(
        "meta",
        "records",
        "fields",
        "A field of a record or an entry: key=text, or key alone if it only has to be there; "
        "dots reach inside. Several: all.",
        "fields",
        schema=FIELDS_SCHEMA,
    ),
    _make_filter(
        "metaJson", "records", "fields", "The same as an object, or as JSON text.", "fields", schema=FIELDS_SCHEMA
    ),
    # Results
    SearchArgument(
        "top",
        "-n/--top",
        "results",
        "Hits of each mode, at least 1; 10 by default, with 3 documents and 3 comments beside code.",
        {"type": "integer", "maximum": 1000},
    ),
    SearchArgument(
        "context",
        "--context",
        "results",
        "Show the text of a hit with so many lines before and after it.",
        {"type": "integer", "minimum": 0, "maximum": 200, "default": 0},
    ),
    SearchArgument(
        "output",
        "--compact/--json",
        "results",
        "compact: what a hit is and where; full, and json which is the same: with its text and all "
        "that is known of it.",
        {"enum": ["compact", "full", "json"], "default": "compact"},
    ),
    SearchArgument("explain", "--explain", "results", "Say how each score came about.", SWITCH_SCHEMA),
)

ARGUMENTS_BY_NAME: Final = {argument.name: argument for argument in SEARCH_ARGUMENTS}
FILTER_ARGUMENTS: Final = tuple(argument for argument in SEARCH_ARGUMENTS if argument.matcher)


def make_input_schema() -> dict[str, Any]:
    """Return the input schema of the tool."""
    return {
        "type": "object",
        "properties": {argument.name: argument.property_schema for argument in SEARCH_ARGUMENTS},
        "required": ["query"],
        "additionalProperties": False,
    }

"""Every argument of a search, once.

The tool's input schema, the flags of `cleats search`, what a filter compares with what, and the
reference pages are all read from `ARGUMENTS`.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

Topic = Literal["query", "place", "declaration", "body", "risk", "history", "records", "results"]
TOPICS: Final[Mapping[Topic, str]] = {
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

TEXT: Final = {"type": "string", "minLength": 1, "maxLength": 1000}
TEXTS: Final = {
    "type": ["string", "array"],
    "minLength": 1,
    "maxLength": 1000,
    "items": TEXT,
    "minItems": 1,
    "maxItems": 100,
}
COUNT: Final = {"type": "integer", "minimum": 0}
SWITCH: Final = {"type": "boolean"}

TOP: Final = 10
"""More than the five of a terminal program: an agent reads ten hits faster than it asks twice."""


class Argument(Struct, frozen=True):
    """One row: a name, the words for people, and what it filters if it does."""

    name: str
    flag: str
    """Of the command line; empty for the query itself."""
    topic: Topic
    about: str
    schema: Mapping[str, Any]
    matcher: Matcher | None = None
    column: str = ""
    separators: str = ""
    """Between values of which any will do."""

    @property
    def property(self) -> dict[str, Any]:
        """Its part of the input schema."""
        return {**self.schema, "description": self.about}


def _filter(
    name: str,
    topic: Topic,
    about: str,
    matcher: Matcher,
    column: str = "",
    *,
    flag: str = "",
    schema: Mapping[str, Any] = TEXT,
    separators: str = "",
) -> Argument:
    return Argument(
        name, flag or _dashed(name), topic, about, schema, matcher, column or name, separators
    )


def _dashed(name: str) -> str:
    return "--" + "".join(f"-{c.lower()}" if c.isupper() else c for c in name)


def _least(name: str, topic: Topic, what: str, flag: str) -> Argument:
    about = f"At least so many {what}."
    return _filter(name, topic, about, "least", flag.lstrip("-"), flag=flag, schema=COUNT)


ARGUMENTS: Final[tuple[Argument, ...]] = (
    Argument(
        "query",
        "",
        "query",
        'A question, words or a name, ranked; "phrases" are required, -word is left out, * is '
        "everything. With AND, OR or NOT in capitals between words it is a formula, with (groups). "
        "camelCase and snake_case names are found whole and by their words.",
        {"type": "string", "minLength": 1, "maxLength": 20_000},
    ),
    Argument(
        "repoPath",
        "--repo",
        "query",
        "The repository; by default that of the server's working folder.",
        TEXT,
    ),
    Argument(
        "workspacePath",
        "--workspace",
        "query",
        "A file that names several repositories to search (see workspace_status); with "
        "repoPath, a file of that repository that names none outside of it.",
        TEXT,
    ),
    Argument(
        "mode",
        "--mode",
        "query",
        "What to search: prose is documents, comments and docstrings; extracted-prose only the "
        "latter two; records is findings and logs; both is all but records.",
        {"enum": ["code", "prose", "extracted-prose", "records", "both", "all"], "default": "both"},
    ),
    Argument("case", "--case", "query", "Both caseFile and caseTokens.", SWITCH),
    Argument(
        "caseTokens",
        "--case-tokens",
        "query",
        "Words of the query match only as they are written.",
        SWITCH,
    ),
    Argument(
        "ann",
        "--ann/--no-ann",
        "query",
        "Whether meaning counts beside words; null is the default, which is yes.",
        {"type": ["boolean", "null"], "default": None},
    ),
    Argument(
        "backend",
        "--backend",
        "query",
        "What ranks: tantivy (auto), sqlite-fts (sqlite is the same), or memory, slow and simple.",
        {"enum": ["auto", "tantivy", "sqlite-fts", "sqlite", "memory"], "default": "auto"},
    ),
    Argument("refresh", "--refresh", "query", "Bring the index up to date first.", SWITCH),
    # Where it is
    _filter(
        "path",
        "place",
        "Path in the repository: a glob (src/**/*.py; without a slash it is about the file's "
        "name), a /regex/, or any part of the path. Several: any. What begins with ! is left out: "
        "!tests/**.",
        "path",
        schema=TEXTS,
    ),
    _filter(
        "file",
        "place",
        "Like path, but a value without a slash must be in the file's name.",
        "file",
        "path",
        schema=TEXTS,
    ),
    _filter(
        "ext",
        "place",
        "File extension, with or without a dot; a glob (ts*) or a /regex/. Several: any. What "
        "begins with ! is left out.",
        "extension",
        schema=TEXTS,
        separators=", ",
    ),
    _filter(
        "lang",
        "place",
        "Language, by name or short name: python, py, c++. Several with commas: any.",
        "language",
        separators=", ",
    ),
    Argument("caseFile", "--case-file", "place", "Case counts in path and file.", SWITCH),
    Argument(
        "branch",
        "--branch",
        "place",
        "Only if the index was built on this branch; else nothing is found, and it is said.",
        TEXT,
    ),
    # What is declared
    _filter(
        "type",
        "declaration",
        "Kind of declaration: function, method, class, interface, section, ... Several with "
        "commas: any.",
        "kind",
        "kind",
        separators=", ",
    ),
    _filter("signature", "declaration", "Text in the signature; case counts.", "contains-cased"),
    _filter("param", "declaration", "A parameter's name, whole.", "is", separators=","),
    _filter("decorator", "declaration", "Text in a decorator or an annotation.", "contains"),
    _filter(
        "extends",
        "declaration",
        "Text in the name of a base class or an interface.",
        "contains",
        separators=",",
    ),
    _filter(
        "visibility",
        "declaration",
        "public, protected, private, internal, package, dunder, or a modifier such as static.",
        "contains",
        separators=",",
    ),
    _filter(
        "inferredType",
        "declaration",
        "Text in a type of a parameter, a field, a local or the result, declared or inferred.",
        "contains",
    ),
    _filter("returnType", "declaration", "Text in the declared type of the result.", "contains"),
    _filter("async", "declaration", "Only asynchronous ones.", "flag", schema=SWITCH),
    _filter("generator", "declaration", "Only generators.", "flag", schema=SWITCH),
    _filter("returns", "declaration", "Only those that return a value.", "flag", schema=SWITCH),
    # What it does
    _filter(
        "import",
        "body",
        "A module that its file imports, or the beginning of its name: os.path, werkzeug.",
        "module",
        separators=",",
    ),
    _filter(
        "calls",
        "body",
        "Code that calls this function, and the function of this name itself if it calls any; "
        "get matches self.session.get.",
        "member",
        separators=",",
    ),
    _filter("uses", "body", "A name that it refers to.", "member", separators=","),
    _filter("reads", "body", "Text in a name that it reads.", "contains", separators=","),
    _filter("writes", "body", "Text in a name that it assigns.", "contains", separators=","),
    _filter(
        "mutates",
        "body",
        "Text in what it changes in place: obj.field, list[].",
        "contains",
        separators=",",
    ),
    _filter("alias", "body", "Text in an alias: name=other.", "contains"),
    _filter("awaits", "body", "Text in what it awaits.", "contains", separators=","),
    _filter("throws", "body", "Text in what it throws.", "contains", separators=","),
    _least("branchesMin", "body", "branches", "--branches"),
    _least("loopsMin", "body", "loops", "--loops"),
    _least("breaksMin", "body", "breaks", "--breaks"),
    _least("continuesMin", "body", "continues", "--continues"),
    # Risk
    _filter("risk", "risk", "Text in a tag of a risk.", "contains", "riskTag", separators=","),
    _filter(
        "riskTag",
        "risk",
        "The same as risk, and counts if both are given.",
        "contains",
        separators=",",
    ),
    _filter(
        "riskSource",
        "risk",
        "Text in the name of where untrusted data comes from.",
        "contains",
        separators=",",
    ),
    _filter(
        "riskSink", "risk", "Text in the name of where it does harm.", "contains", separators=","
    ),
    _filter(
        "riskCategory",
        "risk",
        "Text in a category of sources, sinks or sanitizers.",
        "contains",
        separators=",",
    ),
    _filter("riskFlow", "risk", "Text in a flow: source->sink.", "contains", separators=","),
    # History and lint
    _filter(
        "author",
        "history",
        "Text in the name of the file's last author. Several with commas: any.",
        "contains",
        separators=",",
    ),
    _filter(
        "chunkAuthor",
        "history",
        "Text in the name of an author of its lines. Several with commas: any.",
        "contains",
        separators=",",
    ),
    _least("churnMin", "history", "lines changed by the file's last commits", "--churn"),
    _filter(
        "modifiedAfter",
        "history",
        "The file was committed on this date or later: 2026-01-31, or with a time.",
        "since",
        "modified",
    ),
    _filter(
        "modifiedSince",
        "history",
        "The file was committed in the last so many days. With modifiedAfter the later counts.",
        "since",
        "modified",
        schema={"type": "number", "minimum": 0},
    ),
    _filter("lint", "history", "Only with findings of a linter.", "flag", schema=SWITCH),
    # Records
    _filter(
        "meta",
        "records",
        "A field of a record or an entry: key=text, or key alone if it only has to be there; "
        "dots reach inside. Several: all.",
        "fields",
        "fields",
        schema={
            "type": ["object", "array", "string"],
            "minLength": 1,
            "minItems": 1,
            "minProperties": 1,
        },
    ),
    _filter(
        "metaJson",
        "records",
        "The same as an object, or as JSON text.",
        "fields",
        "fields",
        schema={
            "type": ["object", "array", "string"],
            "minLength": 1,
            "minItems": 1,
            "minProperties": 1,
        },
    ),
    # Results
    Argument(
        "top",
        "-n/--top",
        "results",
        "Hits of each mode, at least 1; 10 by default,"
        " with 3 documents and 3 comments beside code.",
        {"type": "integer", "maximum": 1000},
    ),
    Argument(
        "context",
        "--context",
        "results",
        "Show the text of a hit with so many lines before and after it.",
        {"type": "integer", "minimum": 0, "maximum": 200, "default": 0},
    ),
    Argument(
        "output",
        "--compact/--json",
        "results",
        "compact: what a hit is and where; full, and json which is the same: with its text and all "
        "that is known of it.",
        {"enum": ["compact", "full", "json"], "default": "compact"},
    ),
    Argument("explain", "--explain", "results", "Say how each score came about.", SWITCH),
)

BY_NAME: Final = {argument.name: argument for argument in ARGUMENTS}
FILTERS: Final = tuple(argument for argument in ARGUMENTS if argument.matcher)


def input_schema() -> dict[str, Any]:
    """What the tool takes."""
    return {
        "type": "object",
        "properties": {argument.name: argument.property for argument in ARGUMENTS},
        "required": ["query"],
        "additionalProperties": False,
    }

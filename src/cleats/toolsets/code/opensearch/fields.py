"""What an index in OpenSearch has for each filter, read from the one table of arguments.

Everything is compared as it was stored, byte by byte: values are lowered, cut into their ends or
framed here, when they are written, and so are the texts of a filter when they are looked for.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cleats.toolsets.code.opensearch.regexes import LONGEST
from cleats.toolsets.code.opensearch.signs import BEGIN, END
from cleats.toolsets.code.search.arguments import FILTERS, Matcher
from cleats.toolsets.code.search.segments import COUNTED, POSITIONAL

FORM: Final = 3
"""Rises with every change of what is stored; a reader of another form does not even try."""

FILE: Final = "file"
"""The mode of documents that are no chunk but a file's text, and what is known of it."""

AFTER, BEFORE = ".:>#", "./:\\"
"""Before the last part of a member's name, and after the first part of a module's."""

LONGEST_VALUE: Final = 8000
"""Characters of a value; Lucene takes none above 32,766 bytes."""

NAME_ENDS: Final = ".:#/"
"""What a part of a name stands behind, as the ranking of symbols has it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """How the values of one column are stored."""

    type: str
    forms: Callable[[str], Iterable[str]]
    """Of a value: those that are stored."""


def _same(value: str) -> Iterable[str]:
    return (value,)


def _lowered(value: str) -> Iterable[str]:
    return (value.lower(),)


def framed(value: str) -> str:
    """A value between the signs that stand for its beginning and its end."""
    return f"{BEGIN}{value}{END}"


def tails(value: str, separators: str = AFTER) -> Iterator[str]:
    """A value, and what is behind each separator in it."""
    yield value
    for at, sign in enumerate(value):
        if sign in separators and at + 1 < len(value):
            yield value[at + 1 :]


def heads(value: str, separators: str = BEFORE) -> Iterator[str]:
    """A value, and what is before each separator in it."""
    yield value
    for at, sign in enumerate(value):
        if sign in separators and at:
            yield value[:at]


_KEPT: Final[Mapping[Matcher | None, Kept]] = {
    "contains": Kept("wildcard", _lowered),
    "contains-cased": Kept("wildcard", _same),
    "fields": Kept("wildcard", _lowered),
    "is": Kept("keyword", _same),
    "kind": Kept("keyword", _same),
    "language": Kept("keyword", _same),
    "member": Kept("keyword", tails),
    "module": Kept("keyword", heads),
    "extension": Kept("wildcard", lambda value: (framed(value),)),
}

COLUMNS: Final[Mapping[str, Kept]] = {
    row.column: _KEPT[row.matcher] for row in FILTERS if row.matcher in _KEPT
}
"""Every column with values but the path, which has fields of its own."""

NUMBERS: Final = tuple(
    dict.fromkeys(row.column for row in FILTERS if row.matcher in ("least", "since"))
)
FLAGS: Final = tuple(row.column for row in FILTERS if row.matcher == "flag")


def index(meta: Mapping[str, Any], *, shards: int, replicas: int) -> dict[str, Any]:
    """How an index is made; `meta` says what it is an index of."""
    settings: dict[str, Any] = {
        "number_of_shards": shards,
        "number_of_replicas": replicas,
        "refresh_interval": "-1",  # it is refreshed once, when all is in it
        "max_regex_length": LONGEST,
    }
    properties = _properties()
    if meta.get("dimensions"):
        settings["knn"] = True
        properties["vector"] = _vector(meta["dimensions"])
    mappings = {
        "dynamic": "strict",
        # What is only looked for need not lie there a second time.
        "_source": {"includes": ["at", "mode", "hit"]},
        "_meta": {"cleats": dict(meta)},
        "properties": properties,
    }
    return {"settings": {"index": settings}, "mappings": mappings}


def _properties() -> dict[str, Any]:
    return {
        "at": {"type": "long"},
        "mode": {"type": "keyword"},
        "tests": {"type": "boolean"},
        "path": {"properties": {each: _text("wildcard") for each in ("written", "lower")}},
        "ends": _text("keyword"),
        "name": {
            "properties": {
                each: _text("keyword") for each in ("whole", "whole_lower", "part", "part_lower")
            }
        },
        "text": {
            "properties": {
                **{field: _words("positions") for field in POSITIONAL},
                **{field: _words("freqs") for field in COUNTED},
            }
        },
        "has": {"properties": {name: _text(kept.type) for name, kept in COLUMNS.items()}},
        "number": {"properties": {name: {"type": "long"} for name in NUMBERS}},
        "flag": {"properties": {name: {"type": "boolean"} for name in FLAGS}},
        "hit": {"type": "object", "enabled": False},
    }


def _text(kind: str) -> dict[str, Any]:
    # Without doc values a wildcard field would look into the source, which does not have it.
    values = {"doc_values": True} if kind == "wildcard" else {}
    return {"type": kind, "ignore_above": LONGEST_VALUE, **values}


def _words(options: str) -> dict[str, Any]:
    return {"type": "text", "analyzer": "whitespace", "index_options": options}


def _vector(dimensions: int) -> dict[str, Any]:
    return {
        "type": "knn_vector",
        "dimension": dimensions,
        "data_type": "byte",
        "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"},
    }

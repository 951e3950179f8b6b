"""Fields of an OpenSearch index for each filter, derived from the one table of arguments.

Everything is compared byte by byte as it was stored: values are lowercased, split into suffixes or
framed here when they are written, and so are the texts of a filter in a search.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cleats.toolsets.code.index.segments import FREQUENCY_FIELDS, POSITIONAL_FIELDS
from cleats.toolsets.code.query.arguments import FILTER_ARGUMENTS, Matcher
from cleats.toolsets.code.sharing.opensearch.regexes import FRAME_END, FRAME_START, MAX_LUCENE_CHARS

DOCUMENT_FORMAT: Final = 3
"""Version of the stored documents, raised with every change; other versions are not searched."""

FILE_MODE: Final = "file"
"""The mode of documents that hold the text and metadata of a file instead of a chunk."""

MEMBER_SEPARATORS, MODULE_SEPARATORS = ".:>#", "./:\\"
"""Characters before the last part of a member name, and after the first part of a module name."""

MAX_VALUE_CHARS: Final = 8000
"""Characters of a value; Lucene accepts at most 32,766 bytes."""

NAME_SEPARATORS: Final = ".:#/"
"""Separators between the parts of a name, as in the ranking of symbols."""


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

NUMBER_COLUMNS: Final = tuple(
    dict.fromkeys(row.column for row in FILTER_ARGUMENTS if row.matcher in ("least", "since"))
)
FLAG_COLUMNS: Final = tuple(row.column for row in FILTER_ARGUMENTS if row.matcher == "flag")


def build_index_body(meta: Mapping[str, Any], *, shards: int, replicas: int) -> dict[str, Any]:
    """Build the body that creates an index; `meta` describes the indexed generation."""
    settings: dict[str, Any] = {
        "number_of_shards": shards,
        "number_of_replicas": replicas,
        "refresh_interval": "-1",  # it is refreshed once, after all documents are written
        "max_regex_length": MAX_LUCENE_CHARS,
    }
    properties = _build_properties()
    if meta.get("dimensions"):
        settings["knn"] = True
        properties["vector"] = _vector_field(meta["dimensions"])
    mappings = {
        "dynamic": "strict",
        # Fields that are only searched need not be stored a second time.
        "_source": {"includes": ["at", "mode", "hit"]},
        "_meta": {"cleats": dict(meta)},
        "properties": properties,
    }
    return {"settings": {"index": settings}, "mappings": mappings}


def _build_properties() -> dict[str, Any]:
    return {
        "at": {"type": "long"},
        "mode": {"type": "keyword"},
        "tests": {"type": "boolean"},
        "path": {"properties": {field_name: _text_field("wildcard") for field_name in ("written", "lower")}},
        "ends": _text_field("keyword"),
        "name": {
            "properties": {
                field_name: _text_field("keyword") for field_name in ("whole", "whole_lower", "part", "part_lower")
            }
        },
        "text": {
            "properties": {
                **{field: _word_field("positions") for field in POSITIONAL_FIELDS},
                **{field: _word_field("freqs") for field in FREQUENCY_FIELDS},
            }
        },
        "has": {"properties": {name: _text_field(storage.type) for name, storage in STORAGE_BY_COLUMN.items()}},
        "number": {"properties": {name: {"type": "long"} for name in NUMBER_COLUMNS}},
        "flag": {"properties": {name: {"type": "boolean"} for name in FLAG_COLUMNS}},
        "hit": {"type": "object", "enabled": False},
    }


def _text_field(kind: str) -> dict[str, Any]:
    # Without doc values a wildcard field would read the source, which lacks the value.
    values = {"doc_values": True} if kind == "wildcard" else {}
    return {"type": kind, "ignore_above": MAX_VALUE_CHARS, **values}


def _word_field(options: str) -> dict[str, Any]:
    return {"type": "text", "analyzer": "whitespace", "index_options": options}


def _vector_field(dimensions: int) -> dict[str, Any]:
    return {
        "type": "knn_vector",
        "dimension": dimensions,
        "data_type": "byte",
        "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"},
    }

"""A generation as documents: its files, and their chunks with every searchable field, from the one table of filters.

The catalogue is read file by file in path order, so the number of a chunk is its position in the order of paths and
positions in their files. Everything is compared byte by byte as it was stored: values are lowercased, split or
framed here when they are written, and so are the texts of a filter in a search.
"""

from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from cleats.toolsets.code.analysis.kinds import PROTOTYPE_MODIFIER
from cleats.toolsets.code.index import catalogue_schema, tokens
from cleats.toolsets.code.index.catalogue import IndexCatalogue
from cleats.toolsets.code.index.catalogue_schema import Relations
from cleats.toolsets.code.index.column_writer import UNKNOWN_NUMBER, VALUE_SEPARATOR
from cleats.toolsets.code.index.digest import (
    ASYNC_FLAG,
    GENERATOR_FLAG,
    RETURNS_FLAG,
    FileAttributes,
    load_word_table,
    unpack_attributes,
)
from cleats.toolsets.code.index.full_text import map_field_texts
from cleats.toolsets.code.index.segments import FREQUENCY_FIELDS, POSITIONAL_FIELDS
from cleats.toolsets.code.index.shard_writer import SHARD_FORMAT_VERSION, unpack_risk_columns
from cleats.toolsets.code.query.arguments import FILTER_ARGUMENTS
from cleats.toolsets.code.search.engine import SEVERITY_RATINGS
from cleats.toolsets.code.search.fusion import TEST_PATH_PATTERN, is_deprecated_mark, is_duplicate_path
from cleats.toolsets.code.sharing.opensearch.column_storage import STORAGE_BY_COLUMN, frame_value, iterate_suffixes
from cleats.toolsets.code.sharing.opensearch.file_words import count_words, encode_bytes, read_word_documents
from cleats.toolsets.code.sharing.opensearch.regexes import MAX_LUCENE_CHARS

DOCUMENT_FORMAT: Final = 4
"""Version of the stored documents, raised with every change; other versions are not searched."""

FILE_MODE: Final = "file"
"""The mode of documents that hold the text and metadata of a file instead of a chunk."""

MAX_VALUE_CHARS: Final = 8000
"""Characters of a value; Lucene accepts at most 32,766 bytes."""

NAME_SEPARATORS: Final = ".:#/"
"""Separators between the parts of a name, as in the ranking of symbols."""


NUMBER_COLUMNS: Final = tuple(
    dict.fromkeys(row.column for row in FILTER_ARGUMENTS if row.matcher in ("least", "since"))
)
LISTING_NUMBERS: Final = ("modified", "severity")
"""Numbers that a list of everything can be ordered by."""

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
        method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
        vector = {"type": "knn_vector", "dimension": meta["dimensions"], "data_type": "byte", "method": method}
        properties["vector"] = vector
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
        "listing": {"properties": {name: {"type": "long"} for name in LISTING_NUMBERS}},
        "hit": {"type": "object", "enabled": False},
    }


def _text_field(kind: str) -> dict[str, Any]:
    # Without doc values a wildcard field would read the source, which lacks the value.
    values = {"doc_values": True} if kind == "wildcard" else {}
    return {"type": kind, "ignore_above": MAX_VALUE_CHARS, **values}


def _word_field(options: str) -> dict[str, Any]:
    return {"type": "text", "analyzer": "whitespace", "index_options": options}


_SELECT_FILES_SQL = (
    "SELECT id, path, lang, facts, attributes, vectors, text, last_author, last_modified,"
    " last_commit, churn FROM files ORDER BY path"
)
_SELECT_CHUNKS_SQL = (
    "SELECT mode, kind, name, start, end, start_line, end_line, headline, facts, risk, authors,"
    " lint FROM chunks WHERE file = ? ORDER BY ordinal"
)
_FLAG_BITS: Final = {"async": ASYNC_FLAG, "generator": GENERATOR_FLAG, "returns": RETURNS_FLAG}

_relations_decoder = msgspec.msgpack.Decoder(Relations)
_names_decoder = msgspec.msgpack.Decoder(list[str])


class IndexDocument(NamedTuple):
    """One document and its id."""

    id: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _FileRow:
    id: int
    path: str
    lang: str
    facts: bytes
    attributes: bytes
    vectors: bytes
    text: bytes
    author: str | None
    modified: int | None
    commit: str | None
    churn: int | None


@dataclass(frozen=True, slots=True)
class _ChunkRow:
    mode: str
    kind: str
    name: str
    start: int
    end: int
    start_line: int
    end_line: int
    headline: str
    facts: bytes
    risk: bytes | None
    authors: bytes | None
    lint: bytes | None


def describe_generation(folder: Path) -> dict[str, Any]:
    """Return the metadata of a generation that its publisher and its searchers need."""
    with IndexCatalogue.open(folder / catalogue_schema.CATALOGUE_FILE_NAME) as catalogue:
        counts = catalogue.count_contents()
        meta = catalogue.read_meta()
        [(vector_bytes, chunk_count)] = catalogue.connection.execute(
            "SELECT coalesce(sum(length(vectors)), 0), (SELECT count(*) FROM chunks) FROM files"
        )
        paths = [path for (path,) in catalogue.connection.execute("SELECT path FROM files")]
    table = load_word_table()
    dimensions = (
        vector_bytes // chunk_count if chunk_count and table is not None and not vector_bytes % chunk_count else 0
    )
    return {
        "form": format_version(),
        "generation": folder.name,
        "chunks": sum(counts.chunks.values()),
        "files": counts.files,
        "words": count_words(folder),
        "branch": meta.get("branch"),
        "alphabet": list_other_chars(paths),
        "dimensions": int(dimensions),
        "table": table.fingerprint if table is not None and dimensions else "",
    }


def list_other_chars(paths: Iterable[str]) -> str:
    """Return the characters of some paths, in their own and in lower case, that are not ASCII."""
    chars = {char for path in paths if not path.isascii() for char in path + path.lower() if not char.isascii()}
    return "".join(sorted(chars))


def format_version() -> str:
    """Return the version of everything that publisher and searcher must share."""
    return f"{DOCUMENT_FORMAT}.{SHARD_FORMAT_VERSION}.{catalogue_schema.CATALOGUE_SCHEMA_VERSION}"


def read_documents(folder: Path, dimensions: int) -> Generator[IndexDocument]:
    """Yield every file of a generation, followed by its chunks; and then the words of all files."""
    numbers = count()
    with IndexCatalogue.open(folder / catalogue_schema.CATALOGUE_FILE_NAME) as catalogue:
        execute = catalogue.connection.execute
        for file_number, row in enumerate(execute(_SELECT_FILES_SQL)):
            file = _FileRow(*row)
            yield IndexDocument(build_file_id(file_number), {"mode": FILE_MODE, "hit": _build_file_body(file)})
            chunks = [_ChunkRow(*chunk_row) for chunk_row in execute(_SELECT_CHUNKS_SQL, (file.id,))]
            facts = list(_collect_chunk_fields(file, chunks, dimensions))
            for ordinal, (chunk, values) in enumerate(zip(chunks, facts, strict=True)):
                number = next(numbers)
                hit = {"file": file_number, "ordinal": ordinal, **_build_hit(file, chunk)}
                hit |= {name: values.pop(name) for name in ("row", "uses", "repeats", "deprecated")}
                yield IndexDocument(str(number), {"at": number, "mode": chunk.mode, **values, "hit": hit})
    for document_id, hit in read_word_documents(folder):
        yield IndexDocument(document_id, {"mode": FILE_MODE, "hit": hit})


def _collect_chunk_fields(file: _FileRow, chunks: Sequence[_ChunkRow], dimensions: int) -> Iterator[dict[str, Any]]:
    file_attributes = unpack_attributes(file.attributes)
    values_by_chunk, vectors = _group_values_by_chunk(file_attributes), _read_vectors(file, len(chunks), dimensions)
    counts = {name: np.frombuffer(column, np.int32).tolist() for name, column in file_attributes.counts.items()}
    file_values = _collect_file_values(file, file_attributes)
    history = {"churn": file.churn, "modified": file.modified}
    file_numbers = {name: number for name, number in history.items() if number is not None}
    file_fields = {
        "tests": TEST_PATH_PATTERN.search(file.path) is not None,
        "path": {"written": frame_value(file.path), "lower": frame_value(file.path.lower())},
        "ends": sorted(set(iterate_suffixes(file.path.lower(), "/"))),
    }
    stems, is_repeated = tokens.stem_text(file.path), is_duplicate_path(file.path)
    for index, chunk in enumerate(chunks):
        chunk_counts = {
            name: column_counts[index]
            for name, column_counts in counts.items()
            if column_counts[index] >= 0 and name in NUMBER_COLUMNS
        }
        yield {
            **file_fields,
            "name": {
                "whole": chunk.name,
                "whole_lower": chunk.name.lower(),
                "part": sorted(set(iterate_suffixes(chunk.name, NAME_SEPARATORS))),
                "part_lower": sorted(set(iterate_suffixes(chunk.name.lower(), NAME_SEPARATORS))),
            },
            "text": {
                field: text for field, text in map_field_texts(stems, file_attributes.texts[index]).items() if text
            },
            "has": {**file_values, **_normalize_columns(values_by_chunk[index]), **_collect_late_values(file, chunk)},
            "number": {**chunk_counts, **file_numbers},
            "listing": {
                "modified": UNKNOWN_NUMBER if file.modified is None else file.modified,
                "severity": _rate_severity(chunk.risk),
            },
            "flag": {
                **{name: bool(file_attributes.flags[index] & bit) for name, bit in _FLAG_BITS.items()},
                "lint": bool(chunk.lint),
            },
            **({"vector": vectors[index].tolist()} if vectors[index].any() else {}),
            "row": encode_bytes(vectors[index].tobytes()),
            "uses": len(values_by_chunk[index].get("uses", ())),
            "deprecated": any(map(is_deprecated_mark, values_by_chunk[index].get("decorator", ()))),
            "repeats": is_repeated or PROTOTYPE_MODIFIER in values_by_chunk[index].get("visibility", ()),
        }


def build_file_id(file_number: int) -> str:
    """Return the document id of a file."""
    return f"file-{file_number}"


def _read_vectors(file: _FileRow, chunk_count: int, dimensions: int) -> Any:
    if not dimensions or not chunk_count:
        return np.zeros((chunk_count, 0), np.int8)
    return np.frombuffer(file.vectors, np.int8).reshape(chunk_count, dimensions)


def _group_values_by_chunk(file_attributes: FileAttributes) -> dict[int, dict[str, list[str]]]:
    values_by_chunk: dict[int, dict[str, list[str]]] = defaultdict(dict)
    for name, column in file_attributes.columns.items():
        chunk_numbers = np.frombuffer(column.owners, np.int32).tolist()
        value_ids = np.frombuffer(column.ids, np.int32).tolist()
        for chunk_number, value_id in zip(chunk_numbers, value_ids, strict=True):
            values_by_chunk[chunk_number].setdefault(name, []).append(column.values[value_id])
    for values in values_by_chunk.values():
        values.pop("name", None)  # names have separate fields
    return values_by_chunk


def _collect_file_values(file: _FileRow, file_attributes: FileAttributes) -> dict[str, list[str]]:
    imports = _relations_decoder.decode(file.facts).imports
    return _normalize_columns({"ext": [file_attributes.extension], "import": imports, "author": [file.author or ""]})


def _collect_late_values(file: _FileRow, chunk: _ChunkRow) -> dict[str, list[str]]:
    authors = _names_decoder.decode(chunk.authors) if chunk.authors else [file.author or ""]
    risk_columns = unpack_risk_columns(chunk.risk) if chunk.risk else {}
    filterable = {name: values for name, values in risk_columns.items() if name in STORAGE_BY_COLUMN}
    return _normalize_columns({"chunkAuthor": authors, **filterable})


def _rate_severity(risk: bytes | None) -> int:
    severities = unpack_risk_columns(risk)["riskSeverity"] if risk else []
    return max((SEVERITY_RATINGS.get(severity, 0) for severity in severities), default=0)


def _normalize_columns(values: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Convert values to the stored form of their columns, omitting empty columns."""
    forms = {name: _normalize_values(name, column_values) for name, column_values in values.items()}
    return {name: stored_values for name, stored_values in forms.items() if stored_values}


def _normalize_values(column: str, values: Iterable[str]) -> list[str]:
    forms = STORAGE_BY_COLUMN[column].forms
    return sorted({form for value in values if value for form in forms(value.replace(VALUE_SEPARATOR, ""))})


def _build_hit(file: _FileRow, chunk: _ChunkRow) -> dict[str, Any]:
    packed = {"facts": chunk.facts, "risk": chunk.risk, "authors": chunk.authors, "lint": chunk.lint}
    return {
        "path": file.path,
        "lang": file.lang,
        "kind": chunk.kind,
        "name": chunk.name,
        "range": [chunk.start, chunk.end, chunk.start_line, chunk.end_line],
        "headline": chunk.headline,
        **{name: encode_bytes(data) for name, data in packed.items() if data},
    }


def _build_file_body(file: _FileRow) -> dict[str, Any]:
    return {
        "path": file.path,
        "facts": encode_bytes(file.facts),
        "text": encode_bytes(file.text),
        "author": file.author,
        "modified": file.modified,
        "commit": file.commit,
        "churn": file.churn,
    }

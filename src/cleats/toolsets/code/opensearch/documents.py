"""A generation as documents: its files, and their chunks with all that is looked for in them.

The catalogue is read file by file, in the order of paths, so the number of a chunk is its place in
the order of paths and of places in their files.
"""

from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from cleats.toolsets.code.kinds import PROTOTYPE
from cleats.toolsets.code.opensearch.fields import COLUMNS, FILE, FORM, NAME_ENDS, framed, tails
from cleats.toolsets.code.search import tokens
from cleats.toolsets.code.search.corpus import texts_of
from cleats.toolsets.code.search.digest import (
    ASYNC,
    GENERATOR,
    RETURNS,
    Attributes,
    attributes,
    word_table,
)
from cleats.toolsets.code.search.parts import FORMAT, risks
from cleats.toolsets.code.search.postings import END
from cleats.toolsets.code.search.standing import OF_TESTS, repeats
from cleats.toolsets.code.store import schema
from cleats.toolsets.code.store.catalogue import Catalogue
from cleats.toolsets.code.store.rows import Relations

_FILES = (
    "SELECT id, path, lang, facts, attributes, vectors, text, last_author, last_modified,"
    " last_commit, churn FROM files ORDER BY path"
)
_CHUNKS = (
    "SELECT mode, kind, name, start, end, start_line, end_line, headline, facts, risk, authors,"
    " lint FROM chunks WHERE file = ? ORDER BY ordinal"
)
_FLAGS: Final = {"async": ASYNC, "generator": GENERATOR, "returns": RETURNS}

_relations = msgspec.msgpack.Decoder(Relations)
_names = msgspec.msgpack.Decoder(list[str])


class Document(NamedTuple):
    """One document, by its id."""

    id: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _File:
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
class _Chunk:
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


def about(folder: Path) -> dict[str, Any]:
    """What is to be known of a generation by who publishes it and by who searches in it."""
    with Catalogue.open(folder / schema.FILE) as catalogue:
        counts = catalogue.counts()
        meta = catalogue.meta()
        [(rows, size)] = catalogue.connection.execute(
            "SELECT coalesce(sum(length(vectors)), 0), (SELECT count(*) FROM chunks) FROM files"
        )
    table = word_table()
    dimensions = rows // size if size and table is not None and not rows % size else 0
    return {
        "form": form(),
        "generation": folder.name,
        "chunks": sum(counts.chunks.values()),
        "files": counts.files,
        "branch": meta.get("branch"),
        "dimensions": int(dimensions),
        "table": table.fingerprint if table is not None and dimensions else "",
    }


def form() -> str:
    """The version of all that publisher and reader must have in common."""
    return f"{FORM}.{FORMAT}.{schema.SCHEMA}"


def documents(folder: Path, dimensions: int) -> Generator[Document]:
    """Every file of a generation, and after it its chunks."""
    numbers = count()
    with Catalogue.open(folder / schema.FILE) as catalogue:
        execute = catalogue.connection.execute
        for order, row in enumerate(execute(_FILES)):
            file = _File(*row)
            yield Document(file_id(order), {"mode": FILE, "hit": _file(file)})
            chunks = [_Chunk(*each) for each in execute(_CHUNKS, (file.id,))]
            facts = list(_facts(file, chunks, dimensions))
            for ordinal, (chunk, known) in enumerate(zip(chunks, facts, strict=True)):
                at = next(numbers)
                hit = {"file": order, "ordinal": ordinal, **_hit(file, chunk)}
                hit |= {name: known.pop(name) for name in ("row", "uses", "repeats")}
                yield Document(str(at), {"at": at, "mode": chunk.mode, **known, "hit": hit})


def _facts(file: _File, chunks: Sequence[_Chunk], dimensions: int) -> Iterator[dict[str, Any]]:
    """What is looked for in each chunk of a file."""
    found = attributes(file.attributes)
    values, vectors = _values(found), _rows(file, len(chunks), dimensions)
    counts = {name: np.frombuffer(each, np.int32).tolist() for name, each in found.counts.items()}
    of_file, numbers = _of_file(file, found), dict(_known(file))
    shared, stems, repeated = _shared(file), tokens.stemmed(file.path), repeats(file.path)
    for at, chunk in enumerate(chunks):
        own = {name: listed[at] for name, listed in counts.items() if listed[at] >= 0}
        yield {
            **shared,
            "name": _name(chunk.name),
            "text": {k: text for k, text in texts_of(stems, found.texts[at]).items() if text},
            "has": {**of_file, **_stored(values[at]), **_late(file, chunk)},
            "number": {**own, **numbers},
            "flag": {
                **{name: bool(found.flags[at] & bit) for name, bit in _FLAGS.items()},
                "lint": bool(chunk.lint),
            },
            **({"vector": vectors[at].tolist()} if vectors[at].any() else {}),
            "row": pack(vectors[at].tobytes()),
            "uses": len(values[at].get("uses", ())),
            "repeats": repeated or PROTOTYPE in values[at].get("visibility", ()),
        }


def file_id(order: int) -> str:
    """The id of the document of a file."""
    return f"file-{order}"


def _shared(file: _File) -> dict[str, Any]:
    return {
        "tests": OF_TESTS.search(file.path) is not None,
        "path": {"written": framed(file.path), "lower": framed(file.path.lower())},
        "ends": sorted(set(tails(file.path.lower(), "/"))),
    }


def _rows(file: _File, chunks: int, dimensions: int) -> Any:
    if not dimensions or not chunks:
        return np.zeros((chunks, 0), np.int8)
    return np.frombuffer(file.vectors, np.int8).reshape(chunks, dimensions)


def _name(name: str) -> dict[str, Any]:
    return {
        "whole": name,
        "whole_lower": name.lower(),
        "part": sorted(set(tails(name, NAME_ENDS))),
        "part_lower": sorted(set(tails(name.lower(), NAME_ENDS))),
    }


def _values(found: Attributes) -> dict[int, dict[str, list[str]]]:
    """The values of each chunk of a file in each column."""
    made: dict[int, dict[str, list[str]]] = defaultdict(dict)
    for name, column in found.columns.items():
        owners = np.frombuffer(column.owners, np.int32).tolist()
        ids = np.frombuffer(column.ids, np.int32).tolist()
        for owner, number in zip(owners, ids, strict=True):
            made[owner].setdefault(name, []).append(column.values[number])
    for values in made.values():
        values.pop("name", None)  # it has fields of its own
    return made


def _of_file(file: _File, found: Attributes) -> dict[str, list[str]]:
    imports = _relations.decode(file.facts).imports
    return _stored({"ext": [found.extension], "import": imports, "author": [file.author or ""]})


def _late(file: _File, chunk: _Chunk) -> dict[str, list[str]]:
    authors = _names.decode(chunk.authors) if chunk.authors else [file.author or ""]
    return _stored({"chunkAuthor": authors, **(risks(chunk.risk) if chunk.risk else {})})


def _stored(values: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Values as their columns keep them; a column without any is left out."""
    forms = {name: _forms(name, given) for name, given in values.items()}
    return {name: kept for name, kept in forms.items() if kept}


def _forms(column: str, values: Iterable[str]) -> list[str]:
    forms = COLUMNS[column].forms
    return sorted({form for value in values if value for form in forms(value.replace(END, ""))})


def _known(file: _File) -> Iterator[tuple[str, int]]:
    for name, known in (("churn", file.churn), ("modified", file.modified)):
        if known is not None:
            yield name, known


def _hit(file: _File, chunk: _Chunk) -> dict[str, Any]:
    packed = {
        "facts": chunk.facts,
        "risk": chunk.risk,
        "authors": chunk.authors,
        "lint": chunk.lint,
    }
    return {
        "path": file.path,
        "lang": file.lang,
        "kind": chunk.kind,
        "name": chunk.name,
        "range": [chunk.start, chunk.end, chunk.start_line, chunk.end_line],
        "headline": chunk.headline,
        **{name: pack(data) for name, data in packed.items() if data},
    }


def _file(file: _File) -> dict[str, Any]:
    return {
        "path": file.path,
        "facts": pack(file.facts),
        "text": pack(file.text),
        "author": file.author,
        "modified": file.modified,
        "commit": file.commit,
        "churn": file.churn,
    }


def pack(data: bytes) -> str:
    """Bytes as JSON can have them."""
    return b64encode(data).decode()


def unpack(text: str) -> bytes:
    """The bytes again."""
    return b64decode(text)

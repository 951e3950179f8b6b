"""The words of a generation as they went into its index, in the order of positions."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from cleats.toolsets.code.search import tokens
from cleats.toolsets.code.search.columns import Columns
from cleats.toolsets.code.search.digest import Texts, attributes
from cleats.toolsets.code.store import schema
from cleats.toolsets.code.store.catalogue import Catalogue

FIELDS: Final = (
    *("words", "cased", "stems", "whole", "name", "label", "own", "path", "signature", "doc"),
)


def corpus(folder: Path, shards: Sequence[Columns]) -> Iterator[tuple[int, dict[str, str]]]:
    """The mode of every chunk, and the text of each of its fields."""
    with Catalogue.open(folder / schema.FILE) as catalogue:
        for columns in shards:
            for path in columns.paths.values():
                yield from _file(catalogue, path)


def _file(catalogue: Catalogue, path: str) -> Iterator[tuple[int, dict[str, str]]]:
    rows = catalogue.connection.execute("SELECT attributes FROM files WHERE path = ?", (path,))
    [(packed,)] = rows
    found = attributes(packed)
    stems = tokens.stemmed(path)
    for mode, texts in zip(found.modes, found.texts, strict=True):
        yield mode, texts_of(stems, texts)


def texts_of(path: str, texts: Texts) -> dict[str, str]:
    """The text of each field of a chunk, by the stems of its path and its own texts."""
    return {
        "words": texts.cased.lower(),
        "cased": texts.cased,
        "stems": texts.stems,
        "whole": texts.whole,
        "name": texts.name,
        "label": texts.label,
        "own": texts.own,
        "path": path,
        "signature": texts.signature,
        "doc": texts.doc,
    }

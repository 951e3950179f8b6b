"""The indexed texts of a generation, in the order of positions."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from cleats.toolsets.code.index import catalogue_schema, tokens
from cleats.toolsets.code.index.catalogue import IndexCatalogue
from cleats.toolsets.code.index.columns import ShardColumns
from cleats.toolsets.code.index.digest import ChunkTexts, unpack_attributes

TEXT_FIELDS: Final = (*("words", "cased", "stems", "whole", "name", "label", "own", "path", "signature", "doc"),)


def read_corpus(folder: Path, shards: Sequence[ShardColumns]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the mode of every chunk, and the text of each of its fields."""
    with IndexCatalogue.open(folder / catalogue_schema.CATALOGUE_FILE_NAME) as catalogue:
        for columns in shards:
            for path in columns.paths.values():
                yield from _read_file_texts(catalogue, path)


def _read_file_texts(catalogue: IndexCatalogue, path: str) -> Iterator[tuple[int, dict[str, str]]]:
    rows = catalogue.connection.execute("SELECT attributes FROM files WHERE path = ?", (path,))
    [(packed,)] = rows
    file_attributes = unpack_attributes(packed)
    stems = tokens.stem_text(path)
    for mode, texts in zip(file_attributes.modes, file_attributes.texts, strict=True):
        yield mode, map_field_texts(stems, texts)


def map_field_texts(path_stems: str, texts: ChunkTexts) -> dict[str, str]:
    """Return the text of each field of a chunk, from the stems of its path and its own texts."""
    return {
        "words": texts.cased.lower(),
        "cased": texts.cased,
        "stems": texts.stems,
        "whole": texts.whole,
        "name": texts.name,
        "label": texts.label,
        "own": texts.own,
        "path": path_stems,
        "signature": texts.signature,
        "doc": texts.doc,
    }

"""The indexed texts of a generation, and the full-text index of SQLite that is made of them.

The index of SQLite is built on request, beside the other parts, and can be compacted. Words are
stored as they are compared: SQLite folds case and treats some letters differently, so characters
that it would change are encoded as letters and digits that it leaves alone.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import apsw
import msgspec

from cleats.toolsets.code.index import catalogue_schema, tokens
from cleats.toolsets.code.index.catalogue import IndexCatalogue
from cleats.toolsets.code.index.columns import ShardColumns
from cleats.toolsets.code.index.digest import ChunkTexts, unpack_attributes
from cleats.toolsets.code.index.shard_writer import list_shard_folders

FTS_FILE_NAME: Final = "fts.db"

TEXT_FIELDS: Final = ("words", "cased", "stems", "whole", "name", "label", "own", "path", "signature", "doc")

_CREATE_TABLE_SQL = (
    f"CREATE VIRTUAL TABLE texts USING fts5({', '.join(TEXT_FIELDS)}, content='',"
    " tokenize='unicode61 remove_diacritics 0')"
)
_INSERT_TEXTS_SQL = (
    f"INSERT INTO texts(rowid, {', '.join(TEXT_FIELDS)}) VALUES ({', '.join('?' * (1 + len(TEXT_FIELDS)))})"  # noqa: S608
)


def read_corpus(folder: Path, shards: Sequence[ShardColumns]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the mode of every chunk, and the text of each of its fields."""
    with IndexCatalogue.open(folder / catalogue_schema.CATALOGUE_FILE_NAME) as catalogue:
        for columns in shards:
            for path in columns.paths.values():
                packed = catalogue.connection.execute("SELECT attributes FROM files WHERE path = ?", (path,)).get
                file_attributes, stems = unpack_attributes(packed), tokens.stem_text(path)
                for mode, texts in zip(file_attributes.modes, file_attributes.texts, strict=True):
                    yield mode, map_field_texts(stems, texts)


def map_field_texts(path_stems: str, texts: ChunkTexts) -> dict[str, str]:
    """Return the text of each field of a chunk, from the stems of its path and its own texts."""
    return {"words": texts.cased.lower(), "path": path_stems, **msgspec.structs.asdict(texts)}


def write_fts_index(folder: Path) -> None:
    """Write the full-text index of a generation whose other parts exist."""
    path = folder / FTS_FILE_NAME
    path.unlink(missing_ok=True)
    shards = [ShardColumns(shard_folder) for shard_folder in list_shard_folders(folder)]
    connection = apsw.Connection(str(path))
    try:
        # A file that is thrown away when its writer fails needs neither journal nor sync.
        connection.pragma("journal_mode", "off")
        connection.pragma("synchronous", "off")
        connection.execute("BEGIN")
        connection.execute(_CREATE_TABLE_SQL)
        connection.execute("CREATE TABLE modes(position INTEGER PRIMARY KEY, mode INTEGER)")
        for position, (mode, fields) in enumerate(read_corpus(folder, shards), 1):
            texts = [_encode_text(fields[field]) for field in TEXT_FIELDS]
            connection.execute(_INSERT_TEXTS_SQL, (position, *texts))
            connection.execute("INSERT INTO modes VALUES (?, ?)", (position, mode))
        connection.execute("INSERT INTO texts(texts) VALUES ('optimize')")
        connection.execute("COMMIT")
    finally:
        connection.close()


def _encode_text(text: str) -> str:
    if text.isascii() and text.islower():
        return text
    return " ".join(map(encode_word, text.split()))


def encode_word(word: str) -> str:
    """Encode a word as it is stored and compared."""
    if not word.isascii():
        return f"u0{word.encode(errors='surrogatepass').hex()}"
    return word if word.islower() else re.sub("[A-Z]", lambda matched: "0" + matched[0].lower(), word)

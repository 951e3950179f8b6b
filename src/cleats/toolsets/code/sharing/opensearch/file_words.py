"""The words of whole files in a cluster: a document for each word, and one table of all files.

The numbers are those of a local index, so that files are ranked by the same code and get the same points.
"""

import hashlib
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from cleats.toolsets.code.index.column_writer import PATH_WORD_PREFIX
from cleats.toolsets.code.index.columns import Ids, ShardColumns
from cleats.toolsets.code.index.shard_writer import list_shard_folders
from cleats.toolsets.code.search.file_evidence import FileEvidence, FileScores, FileTable

TABLE_DOCUMENT_ID: Final = "file-table"


def encode_bytes(data: bytes) -> str:
    """Encode bytes as base64 text for JSON."""
    return b64encode(data).decode()


def build_word_id(word: str) -> str:
    """Return the document id of a word; a hash, because an id has a limited length."""
    return f"word-{hashlib.blake2b(word.encode(errors='surrogatepass'), digest_size=12).hexdigest()}"


def list_word_ids(stems: Iterable[str]) -> list[str]:
    """Return the ids of the documents that the stems of a question need, in files and in paths."""
    return [build_word_id(prefix + stem) for stem in stems for prefix in ("", PATH_WORD_PREFIX)]


def count_words(folder: Path) -> int:
    """Return the number of word documents of a generation."""
    return len({word for shard in _open_shards(folder) for word in _list_words(shard)})


def read_word_documents(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the table of all files, and each word with its files; files are numbered in the order of paths."""
    shards = _open_shards(folder)
    table = FileTable.from_shards(shards)
    by_path = np.argsort(table.path_ranks)
    chunk_counts = np.diff(table.first_chunks)[by_path]
    yield (
        TABLE_DOCUMENT_ID,
        {
            "lengths": encode_bytes(table.lengths[by_path].astype("<i4").tobytes()),
            "first_chunks": encode_bytes(np.concatenate([[0], np.cumsum(chunk_counts)]).astype("<i4").tobytes()),
            "tests": encode_bytes(table.test_mask[by_path].tobytes()),
        },
    )
    postings: dict[str, list[tuple[Ids, Any]]] = defaultdict(list)
    first_file = 0
    for shard in shards:
        ranks = table.path_ranks[first_file : first_file + shard.file_count]
        first_file += shard.file_count
        if (column := shard.get_column("word")) is not None:
            for number, word in enumerate(_list_words(shard)):
                files, counts = column.get_counts(number)
                postings[word].append((ranks[files], counts))
    for word, parts in postings.items():
        files = np.concatenate([files for files, _ in parts])
        counts = np.concatenate([counts for _, counts in parts])
        order = np.argsort(files)
        body = {"files": encode_bytes(files[order].astype("<i4").tobytes())}
        if not word.startswith(PATH_WORD_PREFIX):
            body["counts"] = encode_bytes(counts[order].astype("|u1").tobytes())
        yield build_word_id(word), body


def _open_shards(folder: Path) -> list[ShardColumns]:
    return [ShardColumns(shard_folder) for shard_folder in list_shard_folders(folder)]


def _list_words(shard: ShardColumns) -> list[str]:
    column = shard.get_column("word")
    return [] if column is None else column.vocabulary.values()


def read_file_table(document: Mapping[str, str]) -> FileTable:
    """Return the table of all files from its document."""
    lengths = np.frombuffer(b64decode(document["lengths"]), "<i4")
    first_chunks = np.frombuffer(b64decode(document["first_chunks"]), "<i4")
    tests = np.frombuffer(b64decode(document["tests"]), np.bool_)
    return FileTable(lengths, np.arange(len(lengths), dtype=np.int32), first_chunks, tests)


def make_file_evidence(table: FileTable, documents: Mapping[str, Mapping[str, str]]) -> FileEvidence:
    """Return the evidence of files for the words whose documents were fetched, by their ids."""

    def find_word(word: str) -> tuple[Ids, FileScores]:
        document = documents.get(build_word_id(word))
        if document is None:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        files: Ids = np.frombuffer(b64decode(document["files"]), "<i4")
        if "counts" not in document:
            return files, np.ones(len(files), np.float32)
        return files, np.frombuffer(b64decode(document["counts"]), np.uint8).astype(np.float32)

    return FileEvidence(table, find_word)

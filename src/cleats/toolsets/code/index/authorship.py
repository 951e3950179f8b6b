"""Authorship in the catalogue: the authors, dates and churn that git knows of files and chunks."""

import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from cleats.system.processes import blocking
from cleats.toolsets.code.analysis.history.head import GitState
from cleats.toolsets.code.analysis.history.replay import FileHistory, History
from cleats.toolsets.code.index.catalogue import IndexCatalogue

HISTORY_FILE_NAME: Final = "history.bin"
"""The saved history that the next build continues from."""

MAILMAP_FILE_NAME: Final = ".mailmap"
"""The file that maps several names of an author to one person."""

MAX_FILE_LINES: Final = 1 << 30
"""More lines than any file has."""

MIN_PARALLEL_FILES: Final = 256
"""Files from which on the history is read in parallel, because reading them takes long enough."""

LoadHistory: TypeAlias = Callable[[], bytes | None]
"""Returns a saved history to continue from; None when there is none."""

_pack = msgspec.msgpack.Encoder().encode

_SELECT_FILES_SQL = "SELECT id, path, last_author, last_modified, last_commit, churn FROM files"
_UPDATE_FILE_SQL = "UPDATE files SET last_author = ?, last_modified = ?, last_commit = ?, churn = ? WHERE id = ?"
_SELECT_CHUNKS_SQL = "SELECT id, start_line, end_line FROM chunks WHERE file = ?"


@contextmanager
def prepare_history(root: Path, git: GitState | None, previous: Path | None, file_count: int) -> Iterator[LoadHistory]:
    """Provide the history to continue from: that of an earlier generation.

    Without one, and with enough files to read that it pays, the full history is read in another
    process while the block runs; the returned function waits for it.
    """
    saved_path = previous / HISTORY_FILE_NAME if previous else None
    if saved_path is not None and saved_path.is_file():
        yield saved_path.read_bytes
    elif git is None or git.commit is None or file_count < MIN_PARALLEL_FILES:
        yield lambda: None
    else:
        from cleats.system.processes.fork import run_in_child_process  # noqa: PLC0415 - most builds are small

        with run_in_child_process(partial(_read_full_history, root, git.commit)) as wait:
            yield wait


def _read_full_history(root: Path, commit: str) -> bytes:
    with blocking.shared_supervisor():
        return History.from_commit(root, commit).save()


def add_authorship(
    catalogue: IndexCatalogue,
    root: Path,
    git: GitState | None,
    touched: Collection[str] | None,
    *,
    load_history: LoadHistory,
    draft: Path,
) -> list[str]:
    """Write authors, dates and churn to the catalogue; return warnings.

    A file that was not `touched` and has the same history as before keeps its values.
    """
    if git is None or git.commit is None:
        _clear_authorship(catalogue)
        return []
    saved = load_history()
    history = History.from_commit(root, git.commit, saved)
    updated = saved if saved and history.is_unchanged else history.save()
    (draft / HISTORY_FILE_NAME).write_bytes(updated)
    affects_all = touched is None or MAILMAP_FILE_NAME in touched
    for file in list(_read_files(catalogue)):
        file_history = history.find_file(file.path)
        facts = _history_facts(file_history)
        if affects_all or file.path in (touched or ()) or facts != file.facts:
            catalogue.connection.execute(_UPDATE_FILE_SQL, (*facts, file.id))
            _write_chunk_authors(catalogue, history, file)
    return history.warnings


class _AuthoredFile(Struct, frozen=True):
    id: int
    path: str
    facts: tuple[Any, ...]


def _read_files(catalogue: IndexCatalogue) -> Iterator[_AuthoredFile]:
    for number, path, *facts in catalogue.connection.execute(_SELECT_FILES_SQL):
        yield _AuthoredFile(number, path, tuple(facts))


def _history_facts(file_history: FileHistory | None) -> tuple[Any, ...]:
    if file_history is None:
        return (None, None, None, None)
    return (file_history.last_author or None, file_history.last_modified, file_history.last_commit, file_history.churn)


def _write_chunk_authors(catalogue: IndexCatalogue, history: History, file: _AuthoredFile) -> None:
    packed = catalogue.connection.execute("SELECT text FROM files WHERE id = ?", (file.id,)).get
    text = zlib.decompress(packed)
    # No authors at all, when the file has changed since git was asked.
    is_same_text = history.find_authors(file.path, 1, MAX_FILE_LINES, text)
    lines = history.list_line_authors(file.path) if is_same_text else []
    rows = []
    for chunk, start, end in catalogue.connection.execute(_SELECT_CHUNKS_SQL, (file.id,)):
        authors = _rank_authors(history.authors, Counter(lines[start - 1 : end]))
        rows.append((_pack(authors) if authors else None, chunk))
    catalogue.connection.executemany("UPDATE chunks SET authors = ? WHERE id = ?", rows)


def _rank_authors(names: Sequence[str], line_counts: Mapping[int, int]) -> list[str]:
    """Return the names of authors by descending line count; two numbers may be one person."""
    counts: Counter[str] = Counter()
    for number, count in line_counts.items():
        counts[names[number]] += count
    del counts[""]
    return sorted(counts, key=lambda name: (-counts[name], name))


def _clear_authorship(catalogue: IndexCatalogue) -> None:
    catalogue.connection.execute(
        "UPDATE files SET last_author = NULL, last_modified = NULL, last_commit = NULL,"
        " churn = NULL WHERE last_commit IS NOT NULL OR last_author IS NOT NULL"
    )
    catalogue.connection.execute("UPDATE chunks SET authors = NULL WHERE authors IS NOT NULL")

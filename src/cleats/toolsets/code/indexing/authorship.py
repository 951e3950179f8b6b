"""Who wrote what, in the catalogue: git's part of what is known of files and chunks."""

import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from cleats.runtime import blocking
from cleats.toolsets.code.history.replay import FileHistory, History
from cleats.toolsets.code.history.state import GitState
from cleats.toolsets.code.store.catalogue import Catalogue

FILE: Final = "history.bin"
"""What the next build goes on from."""

NAMES: Final = ".mailmap"
"""The file that says which authors are the same person."""

MOST: Final = 1 << 30
"""More lines than any file has."""

MANY: Final = 256
"""Files that take so long to read that their history is read meanwhile."""

Beginning: TypeAlias = Callable[[], bytes | None]
"""Gives a history to go on from, as it was saved; None when there is none."""

_pack = msgspec.msgpack.Encoder().encode

_FILES = "SELECT id, path, last_author, last_modified, last_commit, churn FROM files"
_SET = (
    "UPDATE files SET last_author = ?, last_modified = ?, last_commit = ?, churn = ? WHERE id = ?"
)
_CHUNKS = "SELECT id, start_line, end_line FROM chunks WHERE file = ?"


@contextmanager
def begun(
    root: Path, git: GitState | None, previous: Path | None, files: int
) -> Iterator[Beginning]:
    """What the history is to begin from: that of an earlier generation.

    Without one, and with so many files to read that it pays, all of it is read in another process
    while the block goes on; the answer waits for it.
    """
    saved = previous / FILE if previous else None
    if saved is not None and saved.is_file():
        yield saved.read_bytes
    elif git is None or git.commit is None or files < MANY:
        yield lambda: None
    else:
        from cleats.runtime.aside import aside  # noqa: PLC0415 - most builds are small

        with aside(partial(_whole, root, git.commit)) as wait:
            yield wait


def _whole(root: Path, commit: str) -> bytes:
    with blocking.attended():
        return History.of(root, commit).save()


def add(
    catalogue: Catalogue,
    root: Path,
    git: GitState | None,
    touched: Collection[str] | None,
    *,
    beginning: Beginning,
    draft: Path,
) -> list[str]:
    """Note authors, dates and churn; return warnings.

    A file that was not `touched` and has the same history as before keeps what it has.
    """
    if git is None or git.commit is None:
        _forget(catalogue)
        return []
    before = beginning()
    history = History.of(root, git.commit, before)
    saved_now = before if before and history.is_as_saved else history.save()
    (draft / FILE).write_bytes(saved_now)
    everywhere = touched is None or NAMES in touched
    for file in list(_files(catalogue)):
        known = history.file(file.path)
        now = _facts(known)
        if everywhere or file.path in (touched or ()) or now != file.facts:
            catalogue.connection.execute(_SET, (*now, file.id))
            _sign(catalogue, history, file)
    return history.warnings


class _File(Struct, frozen=True):
    id: int
    path: str
    facts: tuple[Any, ...]


def _files(catalogue: Catalogue) -> Iterator[_File]:
    for number, path, *facts in catalogue.connection.execute(_FILES):
        yield _File(number, path, tuple(facts))


def _facts(known: FileHistory | None) -> tuple[Any, ...]:
    if known is None:
        return (None, None, None, None)
    return (known.last_author or None, known.last_modified, known.last_commit, known.churn)


def _sign(catalogue: Catalogue, history: History, file: _File) -> None:
    packed = catalogue.connection.execute("SELECT text FROM files WHERE id = ?", (file.id,)).get
    text = zlib.decompress(packed)
    # Nobody at all, when the file has become another one since git was asked.
    fits = history.authors_of(file.path, 1, MOST, text)
    lines = history.line_authors(file.path) if fits else []
    signed = []
    for chunk, start, end in catalogue.connection.execute(_CHUNKS, (file.id,)):
        authors = _most_first(history.authors, Counter(lines[start - 1 : end]))
        signed.append((_pack(authors) if authors else None, chunk))
    catalogue.connection.executemany("UPDATE chunks SET authors = ? WHERE id = ?", signed)


def _most_first(names: Sequence[str], lines: Mapping[int, int]) -> list[str]:
    """The names of authors, by how many lines they wrote; two numbers may be one person."""
    counts: Counter[str] = Counter()
    for number, count in lines.items():
        counts[names[number]] += count
    del counts[""]
    return sorted(counts, key=lambda name: (-counts[name], name))


def _forget(catalogue: Catalogue) -> None:
    catalogue.connection.execute(
        "UPDATE files SET last_author = NULL, last_modified = NULL, last_commit = NULL,"
        " churn = NULL WHERE last_commit IS NOT NULL OR last_author IS NOT NULL"
    )
    catalogue.connection.execute("UPDATE chunks SET authors = NULL WHERE authors IS NOT NULL")

"""A catalogue in two files: a base that generations share, and the files that have changed since.

Copying the catalogue of a large repository costs more than anything else in the update of one file. So the copy is
avoided: the base is linked into the next generation and never written again, and only the small second file is
copied and changed. A file of the repository is in the base, or with all its rows in the second file, which then names
it as replaced. Views with the names of the tables show both as one.
"""

import os
from pathlib import Path
from typing import Final
from urllib.parse import quote

import apsw

from cleats.system.atomic_files import clone_file, link_file
from cleats.toolsets.code.index.catalogue_schema import (
    BASE_FILE_NAME,
    CATALOGUE_FILE_NAME,
    CATALOGUE_SCHEMA_VERSION,
    CREATE_TABLES_SQL,
    LAYERED_APPLICATION_ID,
    PAGE_BYTES,
)

MIN_BASE_BYTES: Final = 8 << 20
"""Bytes of a catalogue below which copying it costs less than looking into two files."""

MIN_CHANGES_BYTES: Final = 4 << 20
MAX_CHANGES_SHARE: Final = 1 / 32
"""Bytes of the second file, or its share of the base, from which on the next update merges the two."""

_LAYERED_TABLES: Final = {"files": "id", "chunks": "file"}
"""The tables with rows in both files, and the column with the id of the repository's file."""

WRITER_PRAGMAS_SQL: Final = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -16384;
"""
"""Settings for a file that is thrown away when its writer fails."""


def make_read_only_uri(path: Path) -> str:
    """Return the address by which SQLite opens a file that nobody changes, without locks."""
    return f"file:{quote(os.fsencode(path.absolute()))}?mode=ro&immutable=1"


def attach_base(connection: apsw.Connection, catalogue: Path) -> bool:
    """Show the rows of the base beside those of the catalogue; return whether there is a base."""
    if connection.execute("PRAGMA main.application_id").get != LAYERED_APPLICATION_ID:
        return False
    connection.execute("ATTACH ? AS base", (make_read_only_uri(catalogue.with_name(BASE_FILE_NAME)),))
    for table, file_column in _LAYERED_TABLES.items():
        connection.execute(
            f"CREATE TEMP VIEW {table} AS SELECT * FROM base.{table} WHERE {file_column} NOT IN "  # noqa: S608 - ours
            f"(SELECT id FROM main.replaced) UNION ALL SELECT * FROM main.{table}"
        )
    return True


def create_tables(connection: apsw.Connection) -> None:
    """Create the tables of an empty catalogue."""
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES};" + WRITER_PRAGMAS_SQL)
    connection.execute(f"PRAGMA user_version = {CATALOGUE_SCHEMA_VERSION};" + CREATE_TABLES_SQL)


def copy_catalogue(previous: Path, draft: Path, *, is_small_change: bool) -> None:
    """Put the catalogue of an earlier generation into a draft, so that it can be updated there."""
    source, target = previous / CATALOGUE_FILE_NAME, draft / CATALOGUE_FILE_NAME
    base = previous / BASE_FILE_NAME
    if not base.exists():
        if not is_small_change or source.stat().st_size < MIN_BASE_BYTES:
            clone_file(source, target)
            return
        link_file(source, draft / BASE_FILE_NAME)
        _create_changes(target)
    elif is_small_change and source.stat().st_size < max(MIN_CHANGES_BYTES, base.stat().st_size * MAX_CHANGES_SHARE):
        link_file(base, draft / BASE_FILE_NAME)
        clone_file(source, target)
    else:
        merge_catalogue(previous, target)


def _create_changes(path: Path) -> None:
    """Create the second file of a catalogue whose base is next to it."""
    connection = apsw.Connection(os.fspath(path), flags=_WRITER_FLAGS)
    try:
        create_tables(connection)
        connection.execute(f"PRAGMA application_id = {LAYERED_APPLICATION_ID}")
        connection.execute("ATTACH ? AS base", (make_read_only_uri(path.with_name(BASE_FILE_NAME)),))
        connection.execute("INSERT INTO main.meta SELECT * FROM base.meta")
        connection.execute("INSERT INTO main.skipped SELECT * FROM base.skipped")
    finally:
        connection.close()


_WRITER_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI


def merge_catalogue(generation: Path, target: Path) -> None:
    """Write both files of a generation's catalogue as one."""
    clone_file(generation / BASE_FILE_NAME, target)
    connection = apsw.Connection(os.fspath(target), flags=_WRITER_FLAGS)
    try:
        connection.execute(WRITER_PRAGMAS_SQL)
        connection.execute("ATTACH ? AS changes", (make_read_only_uri(generation / CATALOGUE_FILE_NAME),))
        connection.execute("BEGIN")
        for table, file_column in _LAYERED_TABLES.items():
            connection.execute(
                f"DELETE FROM main.{table} WHERE {file_column} IN (SELECT id FROM changes.replaced);"  # noqa: S608
                f"INSERT INTO main.{table} SELECT * FROM changes.{table}"
            )
        for table in ("meta", "skipped"):
            query = f"DELETE FROM main.{table}; INSERT INTO main.{table} SELECT * FROM changes.{table}"  # noqa: S608
            connection.execute(query)
        connection.execute("COMMIT")
    finally:
        connection.close()


def take_file(connection: apsw.Connection, file: int) -> None:
    """Copy the rows of a file from the base, unless that has been done or it was removed, so that they can change."""
    query = "SELECT count(*) FROM base.files WHERE id = ? AND id NOT IN (SELECT id FROM main.replaced)"
    if not connection.execute(query, (file,)).get:
        return
    for table, file_column in _LAYERED_TABLES.items():
        query = f"INSERT INTO main.{table} SELECT * FROM base.{table} WHERE {file_column} = ?"  # noqa: S608 - ours
        connection.execute(query, (file,))
    connection.execute("INSERT INTO main.replaced VALUES (?)", (file,))

"""Runs in one SQLite file that any number of processes on a machine share.

Write-ahead log with full sync: what was recorded survives a power cut, and readers never wait for
a writer.
"""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from cleats.toolsets.launch import disk
from cleats.toolsets.launch.store import tables
from cleats.toolsets.launch.store.sql import SqlStore

log = logging.getLogger(__name__)


class _File:
    """A connection to the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: os.stat_result | None = None
        self.lock = threading.Lock()

    @cached_property
    def connection(self) -> sqlite3.Connection:
        made = tables.open_file(self._path)
        self._opened = self._there()
        return made

    def begin(self, statement: str) -> None:
        """Begin a transaction on the file that lies there now.

        Somebody may have removed it, or put back a copy. Whoever still wrote to the old one would
        record what nobody else can see, and what is lost when the process ends.
        """
        there = self._there()
        known = there and self._opened and os.path.samestat(there, self._opened)
        if not known:
            self.close()
        self.execute(statement)

    def _there(self) -> os.stat_result | None:
        try:
            return self._path.stat()
        except FileNotFoundError:
            return None

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self.connection.execute(statement, values)

    def close(self) -> None:
        if made := self.__dict__.pop("connection", None):
            made.close()

    def now(self) -> float:
        return time.time()

    def alone(self, name: str) -> None:
        """Nothing: there is one writer at a time, whatever it writes."""

    def add(self, statement: str, values: Sequence[Any]) -> bool:
        try:
            self.connection.execute(statement, values)
        except sqlite3.IntegrityError:
            return False
        return True


class SqliteStore(SqlStore):
    """The store of one user on one machine. Its file is opened when it is first needed."""

    def __init__(self, path: Path) -> None:
        self._writer = _File(path)
        self._reader = _File(path)

    @contextmanager
    def _writing(self) -> Iterator[_File]:
        with self._transaction(self._writer, "BEGIN IMMEDIATE"):
            yield self._writer

    @contextmanager
    def _reading(self) -> Iterator[_File]:
        with self._transaction(self._reader, "BEGIN"):
            yield self._reader

    @contextmanager
    def _transaction(self, file: _File, begin: str) -> Iterator[None]:
        with file.lock, told():
            file.begin(begin)
            try:
                yield
                file.execute("COMMIT")
            except BaseException:
                if file.connection.in_transaction:  # a full disk has taken it back already
                    file.execute("ROLLBACK")
                raise

    def close(self) -> None:
        for file in (self._writer, self._reader):
            with file.lock:
                file.close()


@contextmanager
def told() -> Iterator[None]:
    """Tell what is wrong with the file as an error that a caller can act on."""
    try:
        yield
    except sqlite3.Error as error:
        log.error("store.fail error=%s", error)  # noqa: TRY400 - where is of no use to anybody
        raise tables.trouble(error) from None
    except OSError as error:
        if (known := disk.trouble(error)) is None:
            raise
        raise known from None

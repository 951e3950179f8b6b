"""Runs in one SQLite file that any number of processes on a machine share.

Write-ahead log with full sync: what was recorded survives a power cut, and readers never wait for
a writer.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from cleats.toolsets.launch.store.sql import SqlStore
from cleats.toolsets.launch.store.tables import open_file


class _File:
    """A connection to the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.lock = threading.Lock()

    @cached_property
    def connection(self) -> sqlite3.Connection:
        return open_file(self._path)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self.connection.execute(statement, values)

    def close(self) -> None:
        if "connection" in self.__dict__:
            self.connection.close()

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
        with file.lock:
            file.execute(begin)
            try:
                yield
            except BaseException:
                file.execute("ROLLBACK")
                raise
            file.execute("COMMIT")

    def close(self) -> None:
        for file in (self._writer, self._reader):
            with file.lock:
                file.close()

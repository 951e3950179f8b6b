"""Which generation of a shared index is the one to read: a small file beside it, or a database.

A pointer moves as a whole. With a database it moves in one transaction, and every move is kept,
so that an operator can see what was served when.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from cleats.runtime import postgres
from cleats.toolsets.code.fleet.manifest import UnsoundError
from cleats.toolsets.code.fleet.storage import Storage

if TYPE_CHECKING:
    from cleats.runtime.postgres import Connection

TABLES: Final = """
CREATE TABLE IF NOT EXISTS cleats_index_moves (
  sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT NOT NULL,
  generation TEXT NOT NULL,
  manifest TEXT NOT NULL,
  moved_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS cleats_index_pointers (
  name TEXT PRIMARY KEY,
  sequence BIGINT NOT NULL REFERENCES cleats_index_moves
);
"""


class Pointer(msgspec.Struct, frozen=True):
    """A generation, and the hash of its manifest: what is read is what was published."""

    generation: str
    manifest: str


# At import: two threads that show msgspec a type for the first time bring the process down.
_read = msgspec.json.Decoder(Pointer).decode


class Pointers(Protocol):
    """Every method may raise `OSError` when the place cannot be reached."""

    def current(self, name: str) -> Pointer | None: ...

    def move(self, name: str, pointer: Pointer) -> None: ...


class Beside:
    """Pointers as files of the storage itself."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def current(self, name: str) -> Pointer | None:
        data = self._storage.get(f"{name}/current.json")
        if data is None:
            return None
        try:
            return _read(data)
        except msgspec.DecodeError as error:
            raise UnsoundError(f"the pointer cannot be read: {error}") from None

    def move(self, name: str, pointer: Pointer) -> None:
        self._storage.put(f"{name}/current.json", msgspec.json.encode(pointer))


class Database:
    """Pointers in PostgreSQL."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._made = False

    def current(self, name: str) -> Pointer | None:
        with self._connected() as connection:
            row = connection.execute(
                "SELECT generation, manifest FROM cleats_index_pointers"
                " JOIN cleats_index_moves USING (sequence)"
                " WHERE cleats_index_pointers.name = %s",
                (name,),
            ).fetchone()
        return None if row is None else Pointer(*row)

    def move(self, name: str, pointer: Pointer) -> None:
        with self._connected() as connection:
            connection.execute(
                "WITH moved AS (INSERT INTO cleats_index_moves (name, generation, manifest)"
                " VALUES (%s, %s, %s) RETURNING name, sequence)"
                " INSERT INTO cleats_index_pointers SELECT name, sequence FROM moved"
                " ON CONFLICT (name) DO UPDATE SET sequence = excluded.sequence",
                (name, pointer.generation, pointer.manifest),
            )

    @contextmanager
    def _connected(self) -> "Iterator[Connection]":
        with postgres.connected(self._url) as connection:
            if not self._made:
                postgres.make_tables(connection, TABLES)
                connection.commit()
                self._made = True
            yield connection

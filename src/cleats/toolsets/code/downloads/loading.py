"""A library in a SQLite of its own: a program for a child process, which may not survive it.

The order comes as JSON on stdin. For each step that is over a line of JSON is written at once, so
that the parent knows in which one the library took the process along.
"""

import struct
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    import apsw

VECTOR = (1.0, 2.0, 3.0)


class Trial(Struct, frozen=True):
    """What to load and to try."""

    path: str
    module: str
    table: str
    column: str
    encoding: Literal["float32", "json"]
    options: str = ""


class Step(Struct, frozen=True):
    """How one step went."""

    step: Literal["load", "smoke"]
    reason: str = ""
    """Why not, empty if it went well."""


def main() -> None:
    trial = msgspec.json.decode(sys.stdin.buffer.read(), type=Trial)
    import apsw  # noqa: PLC0415 - the order comes first

    connection = apsw.Connection(":memory:")
    if _done("load", lambda: _load(connection, trial)):
        _done("smoke", lambda: _smoke(connection, trial))


def _done(step: Literal["load", "smoke"], act: Callable[[], None]) -> bool:
    reason = ""
    try:
        act()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        reason = str(error) or type(error).__name__
    sys.stdout.buffer.write(msgspec.json.encode(Step(step, reason)) + b"\n")
    sys.stdout.buffer.flush()
    return not reason


def _load(connection: "apsw.Connection", trial: Trial) -> None:
    connection.enable_load_extension(True)
    connection.load_extension(trial.path)
    connection.enable_load_extension(False)


def _smoke(connection: "apsw.Connection", trial: Trial) -> None:
    """Make a table for three numbers, put a vector in, and find it again by itself."""
    table, column = f'"{trial.table}"', f'"{trial.column}"'
    connection.execute(
        f"CREATE VIRTUAL TABLE {table} USING {trial.module}"
        f"({trial.column} float[3] {trial.options})"
    )
    vector = struct.pack("<3f", *VECTOR)
    said = vector if trial.encoding == "float32" else msgspec.json.encode(VECTOR).decode()
    connection.execute(f"INSERT INTO {table}(rowid, {column}) VALUES (7, ?)", (said,))  # noqa: S608
    query = f"SELECT rowid FROM {table} WHERE {column} MATCH ? ORDER BY distance LIMIT 1"  # noqa: S608
    found = connection.execute(query, (said,)).fetchall()
    if found != [(7,)]:
        raise ValueError(f"a vector was put in and not found again: {found!r}")


if __name__ == "__main__":
    main()

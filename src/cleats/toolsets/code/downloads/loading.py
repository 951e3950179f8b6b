"""Trial of an extension library in a child process, which the library may crash.

The trial arrives as JSON on stdin. After each step one line of JSON is written immediately, so that
the parent knows in which step the library ended the process.
"""

import struct
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    import apsw

SAMPLE_VECTOR = (1.0, 2.0, 3.0)


class ExtensionTrial(Struct, frozen=True):
    """The library to load and the table to try."""

    path: str
    module: str
    table: str
    column: str
    encoding: Literal["float32", "json"]
    options: str = ""


class TrialStep(Struct, frozen=True):
    """The outcome of one step."""

    step: Literal["load", "smoke"]
    reason: str = ""
    """Reason of the failure, empty on success."""


def main() -> None:
    trial = msgspec.json.decode(sys.stdin.buffer.read(), type=ExtensionTrial)
    import apsw  # noqa: PLC0415 - the trial is read first

    connection = apsw.Connection(":memory:")
    if _run_step("load", lambda: _load_library(connection, trial)):
        _run_step("smoke", lambda: _query_sample(connection, trial))


def _run_step(step: Literal["load", "smoke"], action: Callable[[], None]) -> bool:
    reason = ""
    try:
        action()
    except Exception as error:  # noqa: BLE001 - every failure is the result of the step
        reason = str(error) or type(error).__name__
    sys.stdout.buffer.write(msgspec.json.encode(TrialStep(step, reason)) + b"\n")
    sys.stdout.buffer.flush()
    return not reason


def _load_library(connection: "apsw.Connection", trial: ExtensionTrial) -> None:
    connection.enable_load_extension(True)
    connection.load_extension(trial.path)
    connection.enable_load_extension(False)


def _query_sample(connection: "apsw.Connection", trial: ExtensionTrial) -> None:
    """Create a table of three-dimensional vectors, insert one, and find it by itself."""
    table, column = f'"{trial.table}"', f'"{trial.column}"'
    connection.execute(f"CREATE VIRTUAL TABLE {table} USING {trial.module}({trial.column} float[3] {trial.options})")
    vector = struct.pack("<3f", *SAMPLE_VECTOR)
    encoded_vector = vector if trial.encoding == "float32" else msgspec.json.encode(SAMPLE_VECTOR).decode()
    connection.execute(f"INSERT INTO {table}(rowid, {column}) VALUES (7, ?)", (encoded_vector,))  # noqa: S608
    query = f"SELECT rowid FROM {table} WHERE {column} MATCH ? ORDER BY distance LIMIT 1"  # noqa: S608
    rows = connection.execute(query, (encoded_vector,)).fetchall()
    if rows != [(7,)]:
        raise ValueError(f"a vector was put in and not found again: {rows!r}")


if __name__ == "__main__":
    main()

"""The `sqlite-fts` backend: the same words in SQLite's own full-text index.

It is made on request, beside the other parts, and can be packed. Words go in as they are compared:
SQLite folds case and knows other letters than we do, so what it would change is spelled out in
letters and digits that it leaves alone.
"""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import apsw
import numpy as np
from numpy.typing import NDArray

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.search import expressions as ex
from cleats.toolsets.code.search.columns import Columns
from cleats.toolsets.code.search.corpus import FIELDS, corpus
from cleats.toolsets.code.search.evaluation import Leaf, Scores, evaluate
from cleats.toolsets.code.search.parts import shard_folders
from cleats.toolsets.code.search.vocabulary import Ids, Mask

FILE: Final = "fts.db"

WEIGHTS: Final[Mapping[str, float]] = {
    "whole": 2.0,
    "name": 2.0,
    "label": 2.0,
    "path": 0.4,
    "signature": 0.3,
    "doc": 0.5,
}
"""What a match counts by its field: SQLite weighs columns, not words."""

_TABLE = (
    f"CREATE VIRTUAL TABLE texts USING fts5({', '.join(FIELDS)}, content='',"
    " tokenize='unicode61 remove_diacritics 0')"
)
_INSERT = (
    f"INSERT INTO texts(rowid, {', '.join(FIELDS)}) VALUES ({', '.join('?' * (1 + len(FIELDS)))})"  # noqa: S608
)
_SELECT = (
    f"SELECT rowid, -bm25(texts, {', '.join(str(WEIGHTS.get(f, 1.0)) for f in FIELDS)})"  # noqa: S608
    " FROM texts WHERE texts MATCH ?"
)


def write_fts(folder: Path) -> None:
    """Make the index of a generation whose other parts are there."""
    path = folder / FILE
    path.unlink(missing_ok=True)
    shards = [Columns(each) for each in shard_folders(folder)]
    connection = apsw.Connection(str(path))
    try:
        # A file that is thrown away when its writer fails needs neither.
        connection.pragma("journal_mode", "off")
        connection.pragma("synchronous", "off")
        connection.execute("BEGIN")
        connection.execute(_TABLE)
        connection.execute("CREATE TABLE modes(position INTEGER PRIMARY KEY, mode INTEGER)")
        for position, (mode, fields) in enumerate(corpus(folder, shards), 1):
            texts = [_spelled(fields[field]) for field in FIELDS]
            connection.execute(_INSERT, (position, *texts))
            connection.execute("INSERT INTO modes VALUES (?, ?)", (position, mode))
        connection.execute("INSERT INTO texts(texts) VALUES ('optimize')")
        connection.execute("COMMIT")
    finally:
        connection.close()


def _spelled(text: str) -> str:
    if text.isascii() and text.islower():
        return text
    return " ".join(map(_spelled_word, text.split()))


def _spelled_word(word: str) -> str:
    if not word.isascii():
        return f"u0{word.encode(errors='surrogatepass').hex()}"
    return word if word.islower() else re.sub("[A-Z]", lambda sign: "0" + sign[0].lower(), word)


class Fts:
    """The index of one generation, for reading. Safe for several threads, one at a time."""

    name = "sqlite-fts"
    kind = "fts"

    def __init__(self, connection: apsw.Connection, order: NDArray[np.int64]) -> None:
        self._connection = connection
        self._order = order
        self._turn = threading.Lock()
        rows = connection.execute("SELECT mode FROM modes ORDER BY position")
        self._modes = np.asarray([mode for (mode,) in rows], np.uint8)

    @classmethod
    def open(cls, folder: Path, order: NDArray[np.int64]) -> "Fts":
        """Open it.

        Raises:
            ToolError: NO_INDEX, it was never made.
        """
        path = folder / FILE
        if not path.exists():
            raise ToolError(
                ErrorCode.NO_INDEX,
                "The repository has no SQLite index.",
                hint="Build one with `build_sqlite_index`, or use the backend `auto`.",
                details=[
                    {"instancePath": "/backend", "keyword": "backend", "message": "has no index"}
                ],
            )
        return cls(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY), order)

    def rank(
        self, expression: ex.Expression, modes: Mapping[int, Mask | None], limit: int
    ) -> dict[int, tuple[Ids, NDArray[np.float32]]]:
        """The best chunks of each mode that match, within its mask if it has one; best first."""
        with self._turn:
            scores = evaluate(expression, self._matches, len(self._modes))
        positions = np.fromiter(scores.keys(), np.int32, len(scores))
        points = np.fromiter(scores.values(), np.float32, len(scores))
        best = {}
        for mode, mask in modes.items():
            kept = self._modes[positions] == mode
            if mask is not None:
                kept &= mask[positions]
            found, worth = positions[kept], points[kept]
            order = np.lexsort((self._order[found], -worth))[:limit]
            best[mode] = found[order], worth[order]
        return best

    def _matches(self, parts: Sequence[Leaf]) -> Scores:
        if not parts:
            return {}
        query = " OR ".join(_formula(parts))
        rows = self._connection.execute(_SELECT, (query,))
        return {int(row) - 1: float(score) for row, score in rows}


def _formula(parts: Sequence[Leaf]) -> Iterator[str]:
    for part in parts:
        words = (part.word,) if isinstance(part, ex.Word) else part.words
        yield f'{part.field} : "{" ".join(map(_spelled_word, words))}"'

"""Who is called exactly what was asked for: names of declarations, and files.

Whoever types a name wants the thing of that name, wherever words would rank it.
"""

from typing import Final

import numpy as np

from cleats.toolsets.code.search.columns import Columns
from cleats.toolsets.code.search.filters import literal
from cleats.toolsets.code.search.vocabulary import Ids

QUALIFIED, LAST, FILE = 2.0, 1.5, 1.0
"""Points for the whole name, for its last part, and for being in the file of that name. All are
more than any ranking gives."""

SAME_CASE: Final = 2.0
"""More for the same letters: who asks for `Meta` does not mean a constant `META`."""

_BEFORE = rb"\0.:#/"
"""What a part of a name stands behind."""


def named(columns: Columns, name: str, *, cased: bool) -> dict[int, float]:
    """The points of the chunks of a shard whose name, or whose file's name, this is."""
    points: dict[int, float] = {}
    if not name or "\0" in name:
        return points
    if not cased:
        for positions in _in_file(columns, name):
            points |= dict.fromkeys(positions.tolist(), FILE)
    column = columns.column("name")
    if column is None:
        return points
    pattern = literal(name, _BEFORE, rb"\0", cased=False)
    for number in column.vocabulary.find(pattern, cased=False).tolist():
        found = column.vocabulary[number]
        whole = len(found) == len(name)
        same = found.endswith(name)
        if same or not cased:
            bonus = (QUALIFIED if whole else LAST) + SAME_CASE * same
            points |= dict.fromkeys(column.owners(number).tolist(), bonus)
    return points


def _in_file(columns: Columns, name: str) -> list[Ids]:
    if "." not in name or not columns.files:
        return []
    pattern = literal(name.removeprefix("./"), rb"\0/", rb"\0", cased=False)
    files = columns.paths.find(pattern, cased=False)
    return [np.flatnonzero(columns.file_of == file).astype(np.int32) for file in files]

"""Why nothing is left to search: what each filter lets through, and what it could have asked."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from cleats.toolsets.code.search.arguments import BY_NAME
from cleats.toolsets.code.search.filters import Filter, Holds

if TYPE_CHECKING:
    from cleats.toolsets.code.search.engine import Engine
    from cleats.toolsets.code.search.request import Request

COMPARED: Final = 5000
"""Values among which near ones are looked for."""

FEW: Final = 12
"""Values that are all named when none is near."""


class Passing(Struct, frozen=True):
    """What one argument lets through by itself, in the modes that are asked for."""

    argument: str
    chunks: int
    known: tuple[str, ...] = ()
    """Values that chunks have, where none has the one that is asked for."""
    never: tuple[str, str] | None = None
    """A code and a sentence: why no chunk of this index can have it, where that is so."""

    def as_json(self) -> dict[str, Any]:
        known = {"known": list(self.known)} if self.known else {}
        return {"argument": self.argument, "chunks": self.chunks, **known}


def passing(engine: "Engine", request: "Request") -> tuple[Passing, ...]:
    """What each filter of a request lets through."""
    asked = np.any([engine.of_mode(mode) for mode in request.modes], axis=0)
    by_argument: dict[str, list[Filter]] = {}
    for each in request.filters:
        by_argument.setdefault(each.argument, []).append(each)
    found = []
    for argument, filters in by_argument.items():
        mask = engine.mask(filters)
        count = 0 if mask is None else int(np.count_nonzero(mask & asked))
        known = () if count else tuple(_known(engine, filters[0]))
        never = None if count else _never(engine.meta, argument)
        found.append(Passing(argument, count, known, never))
    return tuple(found)


def _never(meta: Mapping[str, Any], argument: str) -> tuple[str, str] | None:
    if argument == "lint":
        return ("not_linted", why) if (why := _unlinted(meta)) else None
    if BY_NAME[argument].topic != "history":
        return None
    if meta["commit"] is None:
        return ("no_history", "This index knows no authors and no dates: it was built without git.")
    # Not in what an older version built.
    if gaps := meta.get("history_gaps"):
        return ("history_gaps", f"This index knows only a part of the history: {'; '.join(gaps)}.")
    return None


def _unlinted(meta: Mapping[str, Any]) -> str:
    """Why an index knows nothing of linters; empty when it was built with one."""
    from cleats.toolsets.code.lint import none_asked  # noqa: PLC0415 - few searches end here

    mark = meta.get("lint_mark", "")
    if mark is None:
        return "This index was built without linters: CLEATS_INDEX_LINT was off."
    if none_asked(mark):
        return (
            "No linter was there when this index was built. Install one (pip install ruff)"
            " and index everything again, not only what has changed."
        )
    return ""


def _known(engine: "Engine", wanted: Filter) -> list[str]:
    """The values that are most like what is asked for, or all if there are few."""
    if not isinstance(wanted.test, Holds):
        return []
    columns = [column for each in engine.columns if (column := each.column(wanted.column))]
    if sum(len(column.vocabulary) for column in columns) > COMPARED:
        return []
    values = {value.lower(): value for column in columns for value in column.vocabulary.values()}
    near = [
        values[each]
        for text in wanted.test.texts
        for each in get_close_matches(text.lower(), list(values), n=3)
    ]
    return list(dict.fromkeys(near)) or (sorted(values.values()) if len(values) <= FEW else [])

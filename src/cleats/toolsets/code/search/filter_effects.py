"""What each filter of a request matches by itself, to explain an answer without hits."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

import numpy as np
from msgspec import Struct

from cleats.runtime.installation import format_install_command
from cleats.system.processes import blocking
from cleats.toolsets.code.query.arguments import ARGUMENTS_BY_NAME
from cleats.toolsets.code.query.filters import SearchFilter, TextCondition
from cleats.toolsets.code.query.request import SearchRequest
from cleats.toolsets.code.search.engine import SearchEngine

MAX_COMPARED_VALUES: Final = 5000
"""Largest number of values that are searched for close matches."""

MAX_LISTED_VALUES: Final = 12
"""Largest number of values that are all listed when none is close."""


class FilterEffect(Struct, frozen=True):
    """The chunks that one argument matches by itself, in the requested modes."""

    argument: str
    chunks: int
    suggestions: tuple[str, ...] = ()
    """Values that chunks have, where none has the requested one."""
    unavailable_note: tuple[str, str] | None = None
    """A code and a sentence: the reason why no chunk of this index can match, if there is one."""

    def as_json(self) -> dict[str, Any]:
        suggestions = {"known": list(self.suggestions)} if self.suggestions else {}
        return {"argument": self.argument, "chunks": self.chunks, **suggestions}


def measure_filters(engine: SearchEngine, request: SearchRequest) -> tuple[FilterEffect, ...]:
    """Count the chunks that each filter of a request matches by itself."""
    mode_mask = np.any([engine.get_mode_mask(mode) for mode in request.modes], axis=0)
    by_argument: dict[str, list[SearchFilter]] = {}
    for search_filter in request.filters:
        by_argument.setdefault(search_filter.argument, []).append(search_filter)
    effects = []
    for argument, filters in by_argument.items():
        blocking.raise_if_stopped()
        mask = engine.compute_mask(filters)
        count = 0 if mask is None else int(np.count_nonzero(mask & mode_mask))
        suggestions = () if count else tuple(_suggest_values(engine, filters[0]))
        unavailable_note = None if count else _explain_unavailable(engine.meta, argument)
        effects.append(FilterEffect(argument, count, suggestions, unavailable_note))
    return tuple(effects)


def _explain_unavailable(meta: Mapping[str, Any], argument: str) -> tuple[str, str] | None:
    if argument == "lint":
        return ("not_linted", reason) if (reason := _explain_missing_lint(meta)) else None
    if ARGUMENTS_BY_NAME[argument].topic != "history":
        return None
    if meta["commit"] is None:
        return ("no_history", "This index knows no authors and no dates: it was built without git.")
    # Not in what an older version built.
    if gaps := meta.get("history_gaps"):
        return ("history_gaps", f"This index knows only a part of the history: {'; '.join(gaps)}.")
    return None


def _explain_missing_lint(meta: Mapping[str, Any]) -> str:
    """Explain why an index has no findings; empty when it was built with a linter."""
    from cleats.toolsets.code.analysis.lint import is_empty_fingerprint  # noqa: PLC0415 - few searches end here

    linters_hash = meta.get("lint_mark", "")
    if linters_hash is None:
        return "This index was built without linters: CLEATS_INDEX_LINT was off."
    if is_empty_fingerprint(linters_hash):
        return (
            f"This index was built without a linter. Install one ({format_install_command('ruff')})"
            " and index everything again, not only what has changed."
        )
    return ""


def _suggest_values(engine: SearchEngine, search_filter: SearchFilter) -> list[str]:
    """Return the values closest to the requested ones, or all values if there are few."""
    if not isinstance(search_filter.condition, TextCondition):
        return []
    columns = [column for item in engine.shards if (column := item.get_column(search_filter.column))]
    if sum(len(column.vocabulary) for column in columns) > MAX_COMPARED_VALUES:
        return []
    values = {value.lower(): value for column in columns for value in column.vocabulary.values()}
    near: list[str] = []
    for text in search_filter.condition.texts:
        blocking.raise_if_stopped()
        near += (values[item] for item in get_close_matches(text.lower(), list(values), n=3))
    return list(dict.fromkeys(near)) or (sorted(values.values()) if len(values) <= MAX_LISTED_VALUES else [])

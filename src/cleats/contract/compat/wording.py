"""How changes are put into words."""

import json
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any, Final

from cleats.contract.compat.keywords import PLUMBING, same, text

LONGEST: Final = 60
"""Characters of a value that are shown; a line of a report has to stay a line."""


CONTEXT: Final = 12
"""Characters shown before the place where two texts part."""


def quoted(name: str) -> str:
    return f"`{name}`"


def shown(value: Any) -> str:
    """A JSON value, cut when it is long."""
    written = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return written if len(written) <= LONGEST else written[: LONGEST - 1] + "…"


def changed_keywords(
    old: dict[str, Any], new: dict[str, Any], keywords: Iterable[str] | None = None
) -> str:
    """One sentence for each keyword that differs."""
    if new == {"not": {}}:
        return "Nothing is allowed here any more."
    if old == {"not": {}}:
        return "Something is allowed here now."
    names = sorted((old.keys() | new.keys()) - PLUMBING) if keywords is None else keywords
    sentences = [_sentence(name, old, new) for name in names]
    return " ".join(filter(None, sentences)) or "What it refers to changed."


def moved(old: Any, new: Any) -> str:
    """A value that became another."""
    return f"Was {shown(old)}, is {shown(new)}."


def reworded(old: str | None, new: str | None) -> str:
    """Two texts, each cut down to where they differ."""
    one, other = old or "", new or ""
    letters = enumerate(zip_longest(one, other))
    start = next((place for place, (a, b) in letters if a != b), 0)
    return f"Was {_around(one, start)}, is {_around(other, start)}."


def _around(whole: str, place: int) -> str:
    """A readable piece of a text, from a little before a place."""
    start = max(0, place - CONTEXT)
    piece = whole[start : start + LONGEST]
    return f"{'…' if start else ''}{piece!r}{'…' if start + LONGEST < len(whole) else ''}"


def _sentence(keyword: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    name = quoted(keyword)
    if keyword not in old:
        return f"{name} is new: {shown(new[keyword])}."
    if keyword not in new:
        return f"{name} is gone: {shown(old[keyword])}."
    if same(old[keyword], new[keyword]):
        return ""
    if isinstance(old[keyword], list) and isinstance(new[keyword], list):
        return _lists(name, old[keyword], new[keyword])
    return f"{name} was {shown(old[keyword])} and is {shown(new[keyword])}."


def _lists(name: str, old: list[Any], new: list[Any]) -> str:
    before, after = {text(value) for value in old}, {text(value) for value in new}
    lost = [shown(value) for value in old if text(value) not in after]
    gained = [shown(value) for value in new if text(value) not in before]
    parts = [
        f"{verb} {', '.join(values)}"
        for verb, values in (("lost", lost), ("gained", gained))
        if values
    ]
    return f"{name} {' and '.join(parts) if parts else 'is in another order'}."

"""Words that look alike."""

import threading
from collections.abc import Sequence
from typing import Any

_importing = threading.Lock()
"""Two threads that import the library at once can find it half made."""


def warm() -> None:
    """Import the library before it is needed."""
    _library()


def alike(word: str, words: Sequence[str], *, least: float, limit: int) -> list[str]:
    """The words that agree with this one in at least so many per cent, the likest first."""
    process, ratio = _library()
    found = process.extract(word, words, scorer=ratio, score_cutoff=least, limit=limit)
    return [each for each, _score, _index in found]


def _library() -> tuple[Any, Any]:
    with _importing:
        from rapidfuzz import fuzz, process  # noqa: PLC0415 - only for a word that is wrong

        return process, fuzz.ratio

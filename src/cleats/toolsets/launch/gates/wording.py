"""Words as evidence: whether one text can support another.

Knows nothing of claims or pages. A text supports another when they share what carries meaning:
words by their stem, names split where they are joined (`loadScene`, `load_scene`), numbers whole.
"""

import re
from functools import cache
from typing import Any

import Stemmer  # type: ignore[import-not-found]

_WORD = re.compile(r"\d+(?:\.\d+)*|[^\W\d_]+|\d+")
_JOINED = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
NUMBER = re.compile(r"(?<![\w.-])\d+(?:\.\d+)+(?![\w-])|(?<![\w.-])\d{2,}(?![\w-])")
"""A version or a figure: what nobody may invent. A single digit is a step or a size."""

COMMON = frozenset(
    re.findall(
        r"\w+",
        """
    a about after all also an and any are as at be been before both but by can do does each for
    from get had has have how if in into is it its let like may more most no not of on one only or
    other our out over s so some such than that the their them then there these they this those
    through to under until up use used using via was we were what when where which while who will
    with without you your
    """,
    )
)


@cache
def _stemmer() -> Any:
    return Stemmer.Stemmer("english")


def stems(text: str) -> frozenset[str]:
    """The stems of the words that carry meaning."""
    words = (word.lower() for piece in _WORD.findall(text) for word in _JOINED.split(piece))
    return frozenset(_stemmer().stemWords([word for word in words if word not in COMMON]))


def share(said: str, known: str) -> float:
    """How much of what is said is known, from 0 to 1; 1 when nothing is said."""
    words = stems(said)
    if not words:
        return 1.0
    theirs = stems(known)
    return sum(word in theirs or _near(word, theirs) for word in words) / len(words)


def numbers(text: str) -> frozenset[str]:
    """The versions and figures in a text."""
    return frozenset(NUMBER.findall(text))


def _near(word: str, others: frozenset[str]) -> bool:
    """Whether a long word begins another or the other way round: `serializ`, `serializer`."""
    return len(word) >= 4 and any(
        len(other) >= 4 and (other.startswith(word) or word.startswith(other)) for other in others
    )

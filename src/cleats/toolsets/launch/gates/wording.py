"""Words as evidence: whether one text can support another.

Knows nothing of claims or pages. A text supports another when they share what carries meaning:
words by their stem, names split where they are joined (`loadScene`, `load_scene`), numbers whole.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

import Stemmer  # type: ignore[import-not-found]

_WORD = re.compile(r"\d+(?:\.\d+)*|[^\W\d_]+|\d+")
_JOINED = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
NUMBER = re.compile(r"(?<![\w.-])\d+(?:\.\d+)+(?![\w-])|(?<![\w.-])\d{2,}(?![\w-])")
"""A version or a figure: what nobody may invent. A single digit is a step or a size."""

_NO = re.compile(r"(?i)\b(?:no|not|never|none|nothing|neither|cannot|without|\w+n['\u2019]t)\b")
_SPAN = re.compile(r"`([^`]+)`")
_NAME = re.compile(r"[^\W\d]\w+")
_CALLED = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*)(?:\(.*)?$", re.DOTALL)

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


class Weights:
    """How much each word tells: a word of every text tells little, one of a single text much."""

    def __init__(self, texts: Iterable[str]) -> None:
        held = [stems(text) for text in texts]
        self._texts = len(held)
        self._held = Counter(word for words in held for word in words)

    def of(self, word: str) -> float:
        return math.log(1 + self._texts / max(self._held[word], 0.5))


def share(said: str, known: str, *, free: str = "", weights: Weights | None = None) -> float:
    """How much of what is said is known, from 0 to 1; 1 when nothing is said.

    The words of `free` may be said without being known, and count for nothing.
    """
    words = stems(said) - stems(free)
    if not words:
        return 1.0
    theirs = stems(known)
    weight = {word: weights.of(word) if weights else 1.0 for word in words}
    found = sum(weight[word] for word in words if word in theirs or _near(word, theirs))
    return found / sum(weight.values())


def numbers(text: str) -> frozenset[str]:
    """The versions and figures in a text."""
    return frozenset(NUMBER.findall(text))


def negated(text: str) -> bool:
    """Whether a text denies something, its code aside. Two denials are none."""
    return len(_NO.findall(_SPAN.sub(" ", text))) % 2 == 1


def unknown_names(text: str, known: str) -> list[str]:
    """The code that a text shows under a name that is not known.

    Of `module.Class.method(argument)` the name is `method`; of a command line any word will do.
    """
    words = frozenset(_NAME.findall(known.lower()))
    found = []
    for span in dict.fromkeys(_SPAN.findall(text)):
        path = _CALLED.match(span)
        names = _NAME.findall(path[1].rsplit(".", 1)[-1] if path else span)
        if names and not words.intersection(name.lower() for name in names):
            found.append(span)
    return found


def _near(word: str, others: frozenset[str]) -> bool:
    """Whether a long word begins another or the other way round: `serializ`, `serializer`."""
    return len(word) >= 4 and any(
        len(other) >= 4 and (other.startswith(word) or word.startswith(other)) for other in others
    )

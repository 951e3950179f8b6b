"""Comparison of texts by their words: whether one text can support another.

This module knows nothing of claims or pages. A text supports another when they share what carries
meaning: words by their stem, compound names split into words (`loadScene`, `load_scene`), numbers
as a whole.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

import Stemmer  # type: ignore[import-not-found]

_WORD_PATTERN = re.compile(r"\d+(?:\.\d+)*|[^\W\d_]+|\d+")
_CAMEL_CASE_BREAK_PATTERN = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
NUMBER_PATTERN = re.compile(r"(?<![\w.-])\d+(?:\.\d+)+(?![\w-])|(?<![\w.-])\d{2,}(?![\w-])")
"""A version or a figure, which nobody may invent. A single digit is a step or a size."""

_NEGATION_PATTERN = re.compile(r"(?i)\b(?:no|not|never|none|nothing|neither|cannot|without|\w+n['\u2019]t)\b")
_CODE_SPAN_PATTERN = re.compile(r"`([^`]+)`")
_NAME_PATTERN = re.compile(r"[^\W\d]\w+")
_CALL_PATH_PATTERN = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*)(?:\(.*)?$", re.DOTALL)

STOP_WORDS = frozenset(
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
def _load_stemmer() -> Any:
    return Stemmer.Stemmer("english")


def stem_words(text: str) -> frozenset[str]:
    """Return the stems of the words that carry meaning."""
    words = (word.lower() for piece in _WORD_PATTERN.findall(text) for word in _CAMEL_CASE_BREAK_PATTERN.split(piece))
    return frozenset(_load_stemmer().stemWords([word for word in words if word not in STOP_WORDS]))


class WordWeights:
    """The weight of each word: low for a word of every text, high for a word of a single text."""

    def __init__(self, texts: Iterable[str]) -> None:
        stem_sets = [stem_words(text) for text in texts]
        self._text_count = len(stem_sets)
        self._text_frequencies = Counter(word for words in stem_sets for word in words)

    def weigh(self, word: str) -> float:
        return math.log(1 + self._text_count / max(self._text_frequencies[word], 0.5))


def measure_overlap(statement: str, evidence: str, *, ignored: str = "", weights: WordWeights | None = None) -> float:
    """Return the weighted share of a statement's words that the evidence has, from 0 to 1.

    A statement without words scores 1. The words of `ignored` may be stated without evidence and
    count for nothing.
    """
    words = stem_words(statement) - stem_words(ignored)
    if not words:
        return 1.0
    evidence_stems = stem_words(evidence)
    word_weights = {word: weights.weigh(word) if weights else 1.0 for word in words}
    matched_weight = sum(
        word_weights[word] for word in words if word in evidence_stems or _has_prefix_match(word, evidence_stems)
    )
    return matched_weight / sum(word_weights.values())


def find_numbers(text: str) -> frozenset[str]:
    """Return the versions and figures in a text."""
    return frozenset(NUMBER_PATTERN.findall(text))


def is_negated(text: str) -> bool:
    """Return whether a text denies something, not counting its code. Two negations cancel out."""
    return len(_NEGATION_PATTERN.findall(_CODE_SPAN_PATTERN.sub(" ", text))) % 2 == 1


def find_unknown_names(text: str, evidence: str) -> list[str]:
    """Return the code spans of a text whose name the evidence does not contain.

    The name of `module.Class.method(argument)` is `method`; for a command line any word may match.
    """
    words = frozenset(_NAME_PATTERN.findall(evidence.lower()))
    unknown_spans = []
    for span in dict.fromkeys(_CODE_SPAN_PATTERN.findall(text)):
        call_path = _CALL_PATH_PATTERN.match(span)
        names = _NAME_PATTERN.findall(call_path[1].rsplit(".", 1)[-1] if call_path else span)
        if names and not words.intersection(name.lower() for name in names):
            unknown_spans.append(span)
    return unknown_spans


def _has_prefix_match(word: str, candidates: frozenset[str]) -> bool:
    """Return whether a long word begins a candidate or the reverse: `serializ`, `serializer`."""
    return len(word) >= 4 and any(
        len(candidate) >= 4 and (candidate.startswith(word) or word.startswith(candidate)) for candidate in candidates
    )

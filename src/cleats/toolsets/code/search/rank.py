"""From a query to the lists that are ranked, and what counts how much.

A question becomes two lists: one by stems, which finds what is meant in other forms, and one by
words as they are, which puts the literal first; its phrases and what it bars say in which chunks
to look. A formula becomes one list of what it demands. Names count more than text, paths less;
whoever has all words of a short question comes before whoever lacks one, and a symbol of exactly
this name before everything. A name that a question is about brings what is called so.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from cleats.toolsets.code.search import tokens
from cleats.toolsets.code.search.expressions import (
    EVERYTHING,
    PATH,
    AllOf,
    AnyOf,
    Bonus,
    Expression,
    Word,
    phrase,
    required,
    term,
)
from cleats.toolsets.code.search.query_tree import Question, leaves
from cleats.toolsets.code.search.request import Request

STEMS, EXACT, MEANING = 1.0, 0.5, 1.5
"""Weights of the lists when they are fused; docs/search-quality.md has what others would give."""

OWN, LABEL, SIGNATURE, DOC = 2.0, 0.5, 0.3, 0.25
"""What a match counts beside one in the text: in the last part of the name, in the whole name, in
the signature, in the documentation."""

WHOLE, SAME_NAME = 2.0, 3.0
"""What an identifier counts that is there unsplit: in the text, and as a name."""

COVERED: Final = 1000.0
"""Points for having every word: more than any score, so that they can be told apart again."""

SHORT: Final = 3
"""Words that are expected to be found all together, unless they are a sentence: that says more
than what it is about, and the answer has other words."""

LONGEST_NAME: Final = 5
"""Words that may be meant as one identifier: `get user by id`."""

MOST: Final = 48
"""Words of a question that are ranked; a pasted page says no more with the rest."""

ABOUT_TESTS: Final = frozenset({"test", "spec", "fixtur", "mock", "assert"})
"""Stems of words that say that a question is about tests."""

MENTIONED: Final = 0.1
"""Points for being called like a name that is mentioned: about what two lists give at the most."""

FEW: Final = 1
"""Telling words that a question may have beside a name, for the name to be what it is about; in a
longer one names may be of other things, unless they are in backticks."""

MENTIONS: Final = 4
"""Names that are looked for in one question."""

_TICKED = re.compile(r"`([\w$.:#]+)(?:\(\))?`")
_NAME = re.compile(r"[^\W\d][\w$.:#]*")


class Ranking(Struct, frozen=True):
    """One list to be made."""

    name: str
    weight: float
    expression: Expression


class Plan(Struct, frozen=True):
    """What a search does."""

    rankings: tuple[Ranking, ...]
    words: tuple[str, ...]
    """What the question is about, for its meaning."""
    strict: bool
    """Nothing may be found that the query does not demand."""
    symbol: str = ""
    """The name that the whole question could be."""
    mentioned: tuple[str, ...] = ()
    """Names within the question that it is about."""
    demanded: Expression | None = None
    """What every chunk has to have that is found."""
    barred: Expression | None = None
    """What none may have."""


def plan(request: Request) -> Plan:
    """How to search for a request."""
    query = request.query
    words = tuple(_words(request))
    if not isinstance(query, Question):
        wanted = required(query, cased=request.cased)
        return Plan((Ranking("required", STEMS, wanted),), words, strict=True)
    demanded, barred = _limits(query, cased=request.cased)
    symbol = _said(query).strip("`").rstrip("()").strip()
    if not (query.terms or query.phrases):
        everything = Ranking("everything", STEMS, EVERYTHING)
        return Plan((everything,), words, True, demanded=demanded, barred=barred)
    return Plan(
        _rankings(query, words, cased=request.cased),
        words,
        strict=request.cased,
        symbol=symbol,
        mentioned=tuple(name for name in _mentioned(query, words) if name != symbol)[:MENTIONS],
        demanded=demanded,
        barred=barred,
    )


def _limits(query: Question, *, cased: bool) -> tuple[Expression | None, Expression | None]:
    """What a chunk has to have, and what it may not."""
    demanded = tuple(required(each, cased=cased) for each in query.phrases)
    barred = tuple(required(each, cased=cased) for each in query.barred[:MOST])
    return AllOf(demanded) if demanded else None, AnyOf(barred) if barred else None


def _said(query: Question) -> str:
    return " ".join(leaf.text for leaf in leaves(query))


def _mentioned(query: Question, words: tuple[str, ...]) -> Iterator[str]:
    """Names in backticks; and those of several words, when the question has hardly another word."""
    for each in dict.fromkeys(query.terms[:MOST]):
        if ticked := _TICKED.search(each.text):
            yield ticked[1]
        elif name := _NAME.search(each.text):
            pieces = tokens.pieces(name[0])
            if len(pieces) > 1 and len(set(words).difference(pieces)) <= FEW:
                yield name[0].rstrip(".:#")


def _rankings(query: Question, words: tuple[str, ...], *, cased: bool) -> tuple[Ranking, ...]:
    if cased:
        wanted = tuple(required(each, cased=True) for each in list(leaves(query))[:MOST])
        return (Ranking("cased", STEMS, AnyOf(wanted)),)
    pieces = tokens.pieces(_said(query))
    terse = 1 < len(words) <= SHORT and len(words) == len(set(pieces))
    joined = "".join(pieces) if len(pieces) <= LONGEST_NAME else ""
    return (
        Ranking("stems", STEMS, _by_stem(words, terse=terse)),
        Ranking("exact", EXACT, _by_word(words, query, joined)),
    )


def _words(request: Request) -> Iterator[str]:
    """The distinct words that say what it is about; all of them if none does."""
    pieces = [piece for leaf in leaves(request.query) for piece in tokens.pieces(leaf.text)]
    telling = [piece for piece in pieces if piece not in tokens.STOP]
    yield from list(dict.fromkeys(telling or pieces))[:MOST]


def _by_stem(words: tuple[str, ...], *, terse: bool) -> Expression:
    stems = dict.fromkeys(map(tokens.stem, words))
    parts: list[Expression] = [part for stem in stems for part in _stem(stem)]
    if terse:
        parts.append(Bonus(AllOf(tuple(map(term, words))), COVERED))
    return AnyOf(tuple(parts))


def _stem(stem: str) -> Iterator[Expression]:
    yield Word("stems", stem)
    yield Word("own", stem, OWN)
    yield Word("label", stem, LABEL)
    yield Word("doc", stem, DOC)
    yield Word("signature", stem, SIGNATURE)
    yield Word("path", stem, PATH)


def _by_word(words: tuple[str, ...], query: Question, joined: str) -> Expression:
    parts: list[Expression] = []
    for word in words:
        parts += [Word("words", word), Word("name", word)]
    parts += [phrase(each.text) for each in query.phrases]
    wholes = [whole for each in query.terms[:MOST] for whole in tokens.wholes(each.text)]
    for whole in dict.fromkeys([*wholes, joined] if joined else wholes):
        parts += [Word("whole", whole, WHOLE), Word("label", whole, SAME_NAME)]
    if 1 < len(words) <= SHORT:
        parts.append(phrase(" ".join(words)))
    return AnyOf(tuple(parts))

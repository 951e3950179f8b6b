"""The plan of a search: the lists to rank, and the weights of their matches.

A question becomes two lists: one by stems, which finds other forms of a word, and one by unstemmed
words, which puts literal matches first; its phrases and excluded words restrict the chunks. A
formula becomes one list of its matches. Names count more than text, paths less; chunks with all
words of a short question come before those that lack one, and a symbol with exactly the name before
everything. A name that a question is about adds the chunks of that name.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from cleats.toolsets.code.index import tokens
from cleats.toolsets.code.query.request import SearchRequest
from cleats.toolsets.code.query.tree import Question, iterate_leaves
from cleats.toolsets.code.search.expressions import (
    MATCH_EVERYTHING,
    PATH_BOOST,
    AllOf,
    AnyOf,
    ConstantScore,
    Expression,
    WordMatch,
    match_phrase,
    match_term,
    translate_node,
)

STEMS_LIST_WEIGHT, EXACT_LIST_WEIGHT, MEANING_LIST_WEIGHT = 1.0, 0.5, 1.5
"""Weights of the lists in the fusion; docs/search-quality.md shows the effect of other values."""

OWN_NAME_BOOST, LABEL_BOOST, SIGNATURE_BOOST, DOC_BOOST = 2.0, 0.5, 0.3, 0.25
"""Boosts relative to a match in the text: in the last part of the name, in the whole name, in the
signature, in the documentation."""

WHOLE_IDENTIFIER_BOOST, SAME_NAME_BOOST = 2.0, 3.0
"""Boosts of an unsplit identifier: in the text, and as a name."""

ALL_WORDS_SCORE: Final = 1000.0
"""Score for having every word: more than any other score, so that it can be separated again."""

MAX_SHORT_QUERY_WORDS: Final = 3
"""Words that are expected to occur together, unless they are a sentence: a sentence contains more
than its subject, and the answer uses other words."""

MAX_NAME_WORDS: Final = 5
"""Words that may be meant as one identifier: `get user by id`."""

MAX_QUERY_WORDS: Final = 48
"""Words of a question that are ranked; the rest of a pasted page adds nothing."""

TEST_QUESTION_STEMS: Final = frozenset({"test", "spec", "fixtur", "mock", "assert"})
"""Stems of words that show that a question is about tests."""

MENTION_BONUS: Final = 0.1
"""Points for having a mentioned name: about the most that two lists give."""

MAX_WORDS_BESIDE_NAME: Final = 1
"""Content words that a question may have beside a name, for the name to be its subject; in a longer
one names may be of other things, unless they are in backticks."""

MAX_MENTIONED_NAMES: Final = 4
"""Names that are looked up for one question."""

_BACKTICKED_NAME_PATTERN = re.compile(r"`([\w$.:#]+)(?:\(\))?`")
_NAME_PATTERN = re.compile(r"[^\W\d][\w$.:#]*")


class PlannedList(Struct, frozen=True):
    """One list to rank."""

    name: str
    weight: float
    expression: Expression


class SearchPlan(Struct, frozen=True):
    """The lists and constraints of a search."""

    lists: tuple[PlannedList, ...]
    words: tuple[str, ...]
    """The words of the question, for its meaning."""
    is_strict: bool
    """True if only matches of the query may be found."""
    symbol: str = ""
    """The name that the whole question could be."""
    mentioned_names: tuple[str, ...] = ()
    """Names within the question that it is about."""
    required: Expression | None = None
    """The condition that every hit must match."""
    excluded: Expression | None = None
    """The condition that no hit may match."""


def plan_search(request: SearchRequest) -> SearchPlan:
    """Plan the search for a request."""
    query = request.query
    words = tuple(_select_words(request))
    if not isinstance(query, Question):
        formula = translate_node(query, cased=request.cased)
        return SearchPlan((PlannedList("required", STEMS_LIST_WEIGHT, formula),), words, is_strict=True)
    required_expression, excluded = _translate_constraints(query, cased=request.cased)
    symbol = _join_query_text(query).strip("`").rstrip("()").strip()
    if not (query.terms or query.phrases):
        everything = PlannedList("everything", STEMS_LIST_WEIGHT, MATCH_EVERYTHING)
        return SearchPlan((everything,), words, True, required=required_expression, excluded=excluded)
    return SearchPlan(
        _plan_lists(query, words, cased=request.cased),
        words,
        is_strict=request.cased,
        symbol=symbol,
        mentioned_names=tuple(name for name in _find_mentioned_names(query, words) if name != symbol)[
            :MAX_MENTIONED_NAMES
        ],
        required=required_expression,
        excluded=excluded,
    )


def _translate_constraints(query: Question, *, cased: bool) -> tuple[Expression | None, Expression | None]:
    required_phrases = tuple(translate_node(leaf, cased=cased) for leaf in query.phrases)
    excluded = tuple(translate_node(leaf, cased=cased) for leaf in query.excluded[:MAX_QUERY_WORDS])
    return AllOf(required_phrases) if required_phrases else None, AnyOf(excluded) if excluded else None


def _join_query_text(query: Question) -> str:
    return " ".join(leaf.text for leaf in iterate_leaves(query))


def _find_mentioned_names(query: Question, words: tuple[str, ...]) -> Iterator[str]:
    """Yield names in backticks; and those of several words, if the question has few other words."""
    for query_term in dict.fromkeys(query.terms[:MAX_QUERY_WORDS]):
        if backticked := _BACKTICKED_NAME_PATTERN.search(query_term.text):
            yield backticked[1]
        elif name := _NAME_PATTERN.search(query_term.text):
            pieces = tokens.tokenize_text(name[0])
            if len(pieces) > 1 and len(set(words).difference(pieces)) <= MAX_WORDS_BESIDE_NAME:
                yield name[0].rstrip(".:#")


def _plan_lists(query: Question, words: tuple[str, ...], *, cased: bool) -> tuple[PlannedList, ...]:
    if cased:
        matches = tuple(translate_node(leaf, cased=True) for leaf in list(iterate_leaves(query))[:MAX_QUERY_WORDS])
        return (PlannedList("cased", STEMS_LIST_WEIGHT, AnyOf(matches)),)
    pieces = tokens.tokenize_text(_join_query_text(query))
    is_terse = 1 < len(words) <= MAX_SHORT_QUERY_WORDS and len(words) == len(set(pieces))
    joined_name = "".join(pieces) if len(pieces) <= MAX_NAME_WORDS else ""
    return (
        PlannedList("stems", STEMS_LIST_WEIGHT, _match_stems(words, is_terse=is_terse)),
        PlannedList("exact", EXACT_LIST_WEIGHT, _match_words(words, query, joined_name)),
    )


def _select_words(request: SearchRequest) -> Iterator[str]:
    """Yield the distinct content words of a query; all words if there are none."""
    pieces = [piece for leaf in iterate_leaves(request.query) for piece in tokens.tokenize_text(leaf.text)]
    content_words = [piece for piece in pieces if piece not in tokens.STOP_WORDS]
    yield from list(dict.fromkeys(content_words or pieces))[:MAX_QUERY_WORDS]


def _match_stems(words: tuple[str, ...], *, is_terse: bool) -> Expression:
    stems = dict.fromkeys(map(tokens.stem_word, words))
    parts: list[Expression] = [part for stem in stems for part in _match_stem_fields(stem)]
    if is_terse:
        parts.append(ConstantScore(AllOf(tuple(map(match_term, words))), ALL_WORDS_SCORE))
    return AnyOf(tuple(parts))


def _match_stem_fields(stem: str) -> Iterator[Expression]:
    yield WordMatch("stems", stem)
    yield WordMatch("own", stem, OWN_NAME_BOOST)
    yield WordMatch("label", stem, LABEL_BOOST)
    yield WordMatch("doc", stem, DOC_BOOST)
    yield WordMatch("signature", stem, SIGNATURE_BOOST)
    yield WordMatch("path", stem, PATH_BOOST)


def _match_words(words: tuple[str, ...], query: Question, joined_name: str) -> Expression:
    parts: list[Expression] = []
    for word in words:
        parts += [WordMatch("words", word), WordMatch("name", word)]
    parts += [match_phrase(leaf.text) for leaf in query.phrases]
    identifiers = [
        identifier for leaf in query.terms[:MAX_QUERY_WORDS] for identifier in tokens.find_identifiers(leaf.text)
    ]
    for identifier in dict.fromkeys([*identifiers, joined_name] if joined_name else identifiers):
        parts += [
            WordMatch("whole", identifier, WHOLE_IDENTIFIER_BOOST),
            WordMatch("label", identifier, SAME_NAME_BOOST),
        ]
    if 1 < len(words) <= MAX_SHORT_QUERY_WORDS:
        parts.append(match_phrase(" ".join(words)))
    return AnyOf(tuple(parts))

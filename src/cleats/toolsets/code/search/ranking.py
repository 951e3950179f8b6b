"""The plan of a search: the lists to rank, and the weights of their matches.

A question becomes several lists: one by stems, which finds other forms of a word, and one by unstemmed
words, which puts literal matches first, and a third one of the places that have several of its words
in a row, as a message has; its phrases and excluded words restrict the chunks. A
formula becomes one list of its matches. Names count more than text, paths less; chunks with all
words of a short question come before those that lack one, and a symbol with exactly the name before
everything. A name that a question is about adds the chunks of that name.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

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
    SequenceMatch,
    WordMatch,
    match_phrase,
    match_term,
    translate_node,
)

EVERYTHING_LIST: Final = "everything"
"""The name of the list of a query without words."""


class RankingWeights(Struct, frozen=True):
    """The weights of everything that ranks a chunk; docs/search-quality.md says how they were chosen."""

    stems: float
    exact: float
    meaning: float
    file_rank: float
    file_score: float
    """Weights of the rank of a file, and of its score relative to the best."""
    body_names: float
    body_lines: float
    """Points for each unit of the logarithms of the names that a body uses, and of its lines."""
    coverage: float = 0.0
    """Points in the list of stems for having a word at all, relative to the rarity of the word."""
    message: float = 0.5


FINDING_WEIGHTS: Final = RankingWeights(
    stems=1.0, exact=0.77, meaning=2.0, file_rank=0.12, file_score=0.018, body_names=0.026, body_lines=0.0
)
"""Weights for a question of what code does."""

DEFECT_WEIGHTS: Final = RankingWeights(
    *(1.35, 0.9, 1.15), file_rank=0.19, file_score=0.05, body_names=0.012, body_lines=0.02, coverage=3.0
)
"""Weights for a question of what has to change: the place is often in a long function, which has many other
words."""

DEFECT_WORDS: Final = frozenset(
    {
        *("fix", "fixes", "fixed", "fixing", "bug", "bugs", "regression", "broken", "crash", "crashes", "crashed"),
        *("crashing", "incorrect", "incorrectly", "wrong", "wrongly"),
    }
)
"""Words that show that a question is about something that has to change."""

STRICT_LIST_WEIGHT: Final = 1.0
"""The weight of the only list of words of a formula, or of a search by case."""

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

MESSAGE_WORDS, MIN_MESSAGE_CONTENT_WORDS, MAX_MESSAGE_SEQUENCES = 5, 4, 12
"""Words in a row that a question may have from a message; how many of them are not stop words; and how many
such sequences are looked for."""

MAX_NAME_WORDS: Final = 5
"""Words that may be meant as one identifier: `get user by id`."""

MAX_QUERY_WORDS: Final = 48
"""Words of a question that are ranked; the rest of a pasted page adds nothing."""

TEST_QUESTION_STEMS: Final = frozenset({"test", "spec", "fixtur", "mock", "assert"})
"""Stems of words that show that a question is about tests."""

MENTION_BONUS: Final = 0.15
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
    weights: RankingWeights = FINDING_WEIGHTS

    @property
    def stems(self) -> list[str]:
        """The stems of the words, each once."""
        return list(dict.fromkeys(map(tokens.stem_word, self.words)))


def plan_search(request: SearchRequest) -> SearchPlan:
    """Plan the search for a request."""
    query = request.query
    words = tuple(_select_words(request))
    if not isinstance(query, Question):
        formula = translate_node(query, cased=request.cased)
        return SearchPlan((PlannedList("required", STRICT_LIST_WEIGHT, formula),), words, is_strict=True)
    required_expression, excluded = _translate_constraints(query, cased=request.cased)
    symbol = _join_query_text(query).strip("`").rstrip("()").strip()
    if not (query.terms or query.phrases):
        everything = PlannedList(EVERYTHING_LIST, STRICT_LIST_WEIGHT, MATCH_EVERYTHING)
        return SearchPlan((everything,), words, True, required=required_expression, excluded=excluded)
    weights = choose_weights(_join_query_text(query))
    return SearchPlan(
        _plan_lists(query, words, weights, cased=request.cased),
        words,
        is_strict=request.cased,
        symbol=symbol,
        mentioned_names=tuple(name for name in _find_mentioned_names(query, words) if name != symbol)[
            :MAX_MENTIONED_NAMES
        ],
        required=required_expression,
        excluded=excluded,
        weights=weights,
    )


def choose_weights(text: str) -> RankingWeights:
    """Return the weights for the text of a question, by what it is about."""
    pieces = tokens.tokenize_text(text)
    is_defect = len(pieces) > MAX_SHORT_QUERY_WORDS and not DEFECT_WORDS.isdisjoint(pieces)
    return DEFECT_WEIGHTS if is_defect else FINDING_WEIGHTS


def add_coverage(search_plan: SearchPlan, measure_rarity: Callable[[str], float]) -> SearchPlan:
    """Return the plan with points in its list of stems for every word that a chunk has."""
    coverage = search_plan.weights.coverage
    if not coverage or search_plan.is_strict:
        return search_plan
    stems_list, *others = search_plan.lists
    points = tuple(
        ConstantScore(WordMatch("stems", stem), _round_points(coverage * measure_rarity(stem)))
        for stem in search_plan.stems
    )
    expression = AnyOf((stems_list.expression, *points))
    return replace(search_plan, lists=(replace(stems_list, expression=expression), *others))


def _round_points(points: float) -> float:
    """Round points so that backends with less precise numbers add them up to the same sums."""
    return round(points * 64) / 64


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


def _plan_lists(
    query: Question, words: tuple[str, ...], weights: RankingWeights, *, cased: bool
) -> tuple[PlannedList, ...]:
    if cased:
        matches = tuple(translate_node(leaf, cased=True) for leaf in list(iterate_leaves(query))[:MAX_QUERY_WORDS])
        return (PlannedList("cased", STRICT_LIST_WEIGHT, AnyOf(matches)),)
    pieces = tokens.tokenize_text(_join_query_text(query))
    is_terse = 1 < len(words) <= MAX_SHORT_QUERY_WORDS and len(words) == len(set(pieces))
    joined_name = "".join(pieces) if len(pieces) <= MAX_NAME_WORDS else ""
    return (
        PlannedList("stems", weights.stems, _match_stems(words, is_terse=is_terse)),
        PlannedList("exact", weights.exact, _match_words(words, query, joined_name)),
        *_plan_message(pieces, words, weights.message),
    )


def _select_words(request: SearchRequest) -> Iterator[str]:
    """Yield the distinct content words of a query; all words if there are none."""
    pieces = [piece for leaf in iterate_leaves(request.query) for piece in tokens.tokenize_text(leaf.text)]
    content_words = [piece for piece in dict.fromkeys(pieces) if piece not in tokens.STOP_WORDS]
    if len(content_words) > MAX_SHORT_QUERY_WORDS:
        content_words = [word for word in content_words if word not in tokens.REPAIR_WORDS] or content_words
    yield from (content_words or list(dict.fromkeys(pieces)))[:MAX_QUERY_WORDS]


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


def _plan_message(pieces: list[str], words: tuple[str, ...], weight: float) -> Iterator[PlannedList]:
    """Plan a list of the places that have words in a row: a question may repeat a message without quotes."""
    starts = range(len(pieces) - MESSAGE_WORDS + 1)
    windows = dict.fromkeys(tuple(pieces[start : start + MESSAGE_WORDS]) for start in starts)
    telling = [window for window in windows if len(set(window).intersection(words)) >= MIN_MESSAGE_CONTENT_WORDS]
    if telling:
        matches = (SequenceMatch("words", window) for window in telling[:MAX_MESSAGE_SEQUENCES])
        yield PlannedList("message", weight, AnyOf(tuple(matches)))

"""Expressions: the conditions for a match, in indexed words. All backends understand them.

An expression names fields and words that are already in their indexed form, so every backend that
follows it finds the same chunks. Boosts change how much a match counts, never whether it matches.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from cleats.system.processes import blocking
from cleats.toolsets.code.index import tokens
from cleats.toolsets.code.query.tree import And, Not, Or, Phrase, QueryNode, Term


class WordMatch(Struct, frozen=True):
    """Matches if the field has the word."""

    field: str
    word: str
    boost: float = 1.0


class SequenceMatch(Struct, frozen=True):
    """Matches if the field has the words next to each other, in this order."""

    field: str
    words: tuple[str, ...]
    boost: float = 1.0


class AnyOf(Struct, frozen=True):
    parts: tuple["Expression", ...]


class AllOf(Struct, frozen=True):
    parts: tuple["Expression", ...]


class Negation(Struct, frozen=True):
    """Matches everything that its part does not."""

    part: "Expression"


class ConstantScore(Struct, frozen=True):
    """A constant score for every match of its part."""

    part: "Expression"
    points: float


Expression: TypeAlias = WordMatch | SequenceMatch | AnyOf | AllOf | Negation | ConstantScore

NAME_BOOST, PATH_BOOST = 2.0, 0.4
"""Boosts of a match in a name and in a path, relative to one in the text."""

MATCH_EVERYTHING: Final = Negation(AnyOf(()))


def translate_node(node: QueryNode, *, cased: bool = False) -> Expression:
    """Translate a formula into an expression."""
    match node:
        case Term(text):
            return match_term(text, cased=cased)
        case Phrase(text):
            return match_phrase(text, cased=cased)
        case Not(inner):
            return Negation(translate_node(inner, cased=cased))
        case And(nodes):
            return AllOf(tuple(translate_node(child, cased=cased) for child in nodes))
        case Or(nodes):
            return AnyOf(tuple(translate_node(child, cased=cased) for child in nodes))


def match_term(text: str, *, cased: bool = False) -> Expression:
    """Match a word by its stem; match a name of several words as a sequence."""
    pieces = tokens.tokenize_text(text)
    if cased or len(pieces) != 1:
        return match_phrase(text, cased=cased)
    stem = tokens.stem_word(pieces[0])
    return AnyOf((WordMatch("stems", stem), WordMatch("label", stem, NAME_BOOST), WordMatch("path", stem, PATH_BOOST)))


def match_phrase(text: str, *, cased: bool = False) -> Expression:
    """Match words in sequence, unstemmed."""
    if cased:
        return _match_sequence("cased", tuple(tokens.tokenize_cased(text)))
    pieces = tuple(tokens.tokenize_text(text))
    matches = (_match_sequence("words", pieces), _match_sequence("name", pieces, NAME_BOOST))
    if len(pieces) == 1:
        return AnyOf(matches)
    return AnyOf((*matches, _match_sequence("path", tuple(map(tokens.stem_word, pieces)), PATH_BOOST)))


def _match_sequence(field: str, words: tuple[str, ...], boost: float = 1.0) -> Expression:
    if not words:
        return AnyOf(())  # too long to be in the index
    return WordMatch(field, words[0], boost) if len(words) == 1 else SequenceMatch(field, words, boost)


ExpressionLeaf: TypeAlias = WordMatch | SequenceMatch
ChunkScores: TypeAlias = dict[int, float]
LookUpLeaves: TypeAlias = Callable[[Sequence[ExpressionLeaf]], ChunkScores]
"""Returns every chunk that has any of the leaves, with their summed score."""


def evaluate_expression(expression: Expression, look_up: LookUpLeaves, chunk_count: int) -> ChunkScores:
    """Return every chunk that matches, with its score, out of `chunk_count` chunks."""
    blocking.raise_if_stopped()
    match expression:
        case WordMatch() | SequenceMatch():
            return look_up([expression])
        case ConstantScore(part, points):
            return dict.fromkeys(evaluate_expression(part, look_up, chunk_count), points)
        case AnyOf(parts):
            leaves = [part for part in parts if isinstance(part, WordMatch | SequenceMatch)]
            branches = [part for part in parts if not isinstance(part, WordMatch | SequenceMatch)]
            branch_scores = (evaluate_expression(branch, look_up, chunk_count) for branch in branches)
            return sum_scores([look_up(leaves), *branch_scores])
        case AllOf(parts):
            return _evaluate_all(parts, look_up, chunk_count)
        case Negation():
            return _evaluate_all((expression,), look_up, chunk_count)


def _evaluate_all(parts: Sequence[Expression], look_up: LookUpLeaves, chunk_count: int) -> ChunkScores:
    part_scores: list[ChunkScores] = []
    remaining = set(range(chunk_count))
    for part in parts:
        if isinstance(part, Negation):
            remaining -= evaluate_expression(part.part, look_up, chunk_count).keys()
        else:
            part_scores.append(evaluate_expression(part, look_up, chunk_count))
            remaining &= part_scores[-1].keys()
    total = sum_scores(part_scores)
    return {position: total.get(position, 0.0) for position in remaining}


def sum_scores(parts: Sequence[Mapping[int, float]]) -> ChunkScores:
    """Sum the scores of all parts."""
    total: ChunkScores = {}
    for part in parts:
        for position, score in part.items():
            total[position] = total.get(position, 0.0) + score
    return total

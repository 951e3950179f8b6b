"""What a chunk must have to match, in words of the index: the language that backends understand.

An expression names fields and words that are already in their indexed form, so every backend that
follows it finds the same chunks. Boosts say how much a match counts; they never decide whether.
"""

from typing import Final, TypeAlias

from msgspec import Struct

from cleats.toolsets.code.search import tokens
from cleats.toolsets.code.search.query_tree import And, Node, Not, Or, Phrase, Term


class Word(Struct, frozen=True):
    """The field has the word."""

    field: str
    word: str
    boost: float = 1.0


class Sequence(Struct, frozen=True):
    """The field has the words next to each other, in this order."""

    field: str
    words: tuple[str, ...]
    boost: float = 1.0


class AnyOf(Struct, frozen=True):
    parts: tuple["Expression", ...]


class AllOf(Struct, frozen=True):
    parts: tuple["Expression", ...]


class Without(Struct, frozen=True):
    """Everything that does not match."""

    part: "Expression"


class Bonus(Struct, frozen=True):
    """A constant for what matches, whatever it weighs otherwise."""

    part: "Expression"
    points: float


Expression: TypeAlias = Word | Sequence | AnyOf | AllOf | Without | Bonus

NAME, PATH = 2.0, 0.4
"""What a match in a name and in a path counts, against one in the text."""


EVERYTHING: Final = Without(AnyOf(()))


def required(node: Node, *, cased: bool = False) -> Expression:
    """What a formula demands."""
    match node:
        case Term(text):
            return term(text, cased=cased)
        case Phrase(text):
            return phrase(text, cased=cased)
        case Not(inner):
            return Without(required(inner, cased=cased))
        case And(nodes):
            return AllOf(tuple(required(each, cased=cased) for each in nodes))
        case Or(nodes):
            return AnyOf(tuple(required(each, cased=cased) for each in nodes))


def term(text: str, *, cased: bool = False) -> Expression:
    """A word by its stem; a name of several words as those words in a row."""
    pieces = tokens.pieces(text)
    if cased or len(pieces) != 1:
        return phrase(text, cased=cased)
    stem = tokens.stem(pieces[0])
    return AnyOf((Word("stems", stem), Word("label", stem, NAME), Word("path", stem, PATH)))


def phrase(text: str, *, cased: bool = False) -> Expression:
    """Words in a row, as they are."""
    if cased:
        return _row("cased", tuple(tokens.cased(text)))
    pieces = tuple(tokens.pieces(text))
    if len(pieces) == 1:
        return AnyOf((_row("words", pieces), _row("name", pieces, NAME)))
    stems = tuple(map(tokens.stem, pieces))
    return AnyOf((_row("words", pieces), _row("name", pieces, NAME), _row("path", stems, PATH)))


def _row(field: str, words: tuple[str, ...], boost: float = 1.0) -> Expression:
    if not words:
        return AnyOf(())  # too long to be in the index
    return Word(field, words[0], boost) if len(words) == 1 else Sequence(field, words, boost)

"""The query language: from text to a tree. Knows nothing of an index.

    parse error                 words, ranked; what has them all comes first
    "parse error"               a phrase: these words, next to each other, unstemmed
    parse -test  parse !test    without test
    parse AND (error OR fault)  a formula: operators in capitals; see `formulas`
    *                           everything

A query is a question unless it has an operator between words. In a question every word helps and
none is required, because a sentence hardly ever stands in one function whole; only a phrase is,
and only what is barred is left out. Whatever else it has is text, and nothing in it is an error:
questions are asked in sentences, and error messages are pasted, with quotes and parentheses that
nobody meant. `search and replace` is no formula, and `-x`, `--option` and `-1` bar nothing.
"""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from cleats.toolsets.code.search.formulas import QUOTED, formula, unquoted
from cleats.toolsets.code.search.query_tree import (
    OPERATORS,
    Phrase,
    Query,
    QueryError,
    Question,
    Term,
)

_QUOTED = re.compile(rf"(?P<sign>[-!]?){QUOTED.pattern}(?!\w)", re.DOTALL)
_RUN = re.compile(r"\S+")
_BARRED = re.compile(r"[-!](?=[^\W\d])(?P<word>\S+)")
_BEFORE = "([{,;:="
"""What may stand between a space and a phrase."""
_STRAY = re.compile(r'^\W*"\W*')
"""What a word loses that begins with a stray quote, so that it opens no phrase and bars nothing."""


def parse(text: str) -> Query:
    """Read a query.

    Raises:
        QueryError: it is a formula that cannot be read, or there is no word at all.
    """
    pieces = [piece for piece in _pieces(text) if piece.text == "*" or _letters(piece.text)]
    meant = formula(text) if _has_operator(pieces) else _question(pieces)
    match meant:
        case Term():
            return Question((meant,))
        case Phrase():
            return _question(_pieces(str(meant)))
        case _:
            return meant


class _Piece(Struct, frozen=True):
    """A run without spaces, or a phrase."""

    text: str
    phrase: bool = False
    barred: bool = False


def _pieces(text: str) -> Iterator[_Piece]:
    at = 0
    while found := _RUN.search(text, at):
        opening = found.start() + len(found[0]) - len(found[0].lstrip(_BEFORE))
        quoted = _QUOTED.match(text, opening)
        if quoted and _is_phrase(quoted):
            yield _Piece(unquoted(quoted), phrase=True, barred=bool(quoted["sign"]))
            at = quoted.end()
        else:
            yield _Piece(found[0])
            at = found.end()


def _is_phrase(quoted: re.Match[str]) -> bool:
    """Whether what is between quotes is meant as words: not a letter, nor the gap between two."""
    said = quoted["words"]
    return said == said.strip() and _letters(said) > 1


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def _has_operator(pieces: list[_Piece]) -> bool:
    """Whether an operator has something to work on, so that it can be meant as one."""
    texts = ["" if piece.phrase else piece.text for piece in pieces]
    return not OPERATORS.isdisjoint(texts[1:-1]) or (len(texts) > 1 and texts[0] == "NOT")


def _question(pieces: Iterable[_Piece]) -> Question:
    terms: list[Term] = []
    phrases: list[Phrase] = []
    barred: list[Term | Phrase] = []
    everything = False
    for piece in pieces:
        if piece.phrase:
            (barred if piece.barred else phrases).append(Phrase(piece.text))
        elif (sign := _BARRED.fullmatch(piece.text)) and _letters(piece.text) > 1:
            barred.append(Term(sign["word"]))
        elif piece.text == "*":
            everything = True
        elif word := _STRAY.sub("", piece.text):
            terms.append(Term(word.lower() if word in OPERATORS else word))
    if not (terms or phrases or barred or everything):
        hint = "Write a word, a name or a question; * stands for all that the filters leave."
        raise QueryError("there is no word to look for", 0, hint)
    return Question(tuple(terms), tuple(phrases), tuple(barred))

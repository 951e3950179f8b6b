"""The query language: from text to a tree, without any index.

    parse error                 words, ranked; chunks that have them all come first
    "parse error"               a phrase: these words, next to each other, unstemmed
    parse -test  parse !test    without test
    parse AND (error OR fault)  a formula: operators in capitals; see `formulas`
    *                           everything

A query is a question unless it has an operator between words. In a question every word helps and none is required,
because a sentence hardly ever occurs in one function as a whole; only phrases are required, and only excluded words are
left out. Everything else is text, and nothing in it is an error: questions are asked in sentences, and error messages
are pasted, with quotes and parentheses that nobody meant. `search and replace` is not a formula, and `-x`, `--option`
and `-1` exclude nothing.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from cleats.toolsets.code.index.tokens import STOP_WORDS
from cleats.toolsets.code.query.tree import (
    QUERY_OPERATORS,
    And,
    Not,
    Or,
    ParsedQuery,
    Phrase,
    QueryError,
    QueryNode,
    Question,
    Term,
    join_nodes,
)

MAX_NESTING_DEPTH: Final = 40
"""Nested groups and negations: more is a mistake or an attack."""

MAX_FORMULA_WORDS: Final = 400
"""Words and phrases of a formula."""

QUOTED_PATTERN: Final = re.compile(r'"(?P<words>(?:\\.|[^"\\])*)"', re.DOTALL)
_ESCAPE_PATTERN = re.compile(r"\\(.)", re.DOTALL)
_NEGATED_PATTERN = re.compile(r'["(\w]')


def parse_formula(text: str) -> QueryNode:
    """Parse a formula.

    Raises:
        QueryError: a quote or a parenthesis is left open, an operator has no operand, or a group is empty.
    """
    return _FormulaParser(list(_tokenize(text)), len(text)).parse()


def unquote_phrase(quoted: re.Match[str]) -> str:
    """Return the words between quotes."""
    return _ESCAPE_PATTERN.sub(r"\1", quoted["words"]).strip()


class _FormulaToken(Struct, frozen=True):
    kind: str
    """`word`, `phrase`, `and`, `or`, `not`, `(` or `)`."""
    text: str
    position: int


def _tokenize(text: str) -> Iterator[_FormulaToken]:
    position = depth = 0
    while position < len(text):
        character = text[position]
        if character.isspace():
            position += 1
        elif character == "(" or (character == ")" and depth):
            depth += 1 if character == "(" else -1
            yield _FormulaToken(character, character, position)
            position += 1
        elif character in "-!" and _NEGATED_PATTERN.match(text, position + 1):
            yield _FormulaToken("not", character, position)
            position += 1
        elif character == '"':
            quoted = QUOTED_PATTERN.match(text, position)
            if quoted is None:
                raise QueryError("a quote is left open", position, "Close it, or remove it.")
            yield _FormulaToken("phrase", unquote_phrase(quoted), position)
            position = quoted.end()
        else:
            end = _find_word_end(text, position, in_group=depth > 0)
            yield from _classify_word(text[position:end], position)
            position = end


def _classify_word(text: str, position: int) -> Iterator[_FormulaToken]:
    if text in QUERY_OPERATORS:
        yield _FormulaToken(text.lower(), text, position)
    elif text == ")":
        raise QueryError("a closing parenthesis has no opening one", position, "Open it first, or remove it.")
    elif any(character.isalnum() for character in text):  # anything else is punctuation: nothing to find
        yield _FormulaToken("word", text, position)


def _find_word_end(text: str, start: int, *, in_group: bool) -> int:
    """Return the end of a word. It includes its own parentheses, but not that of its group."""
    end, open_count = start, 0
    while end < len(text) and not text[end].isspace():
        if text[end] == "(":
            open_count += 1
        elif text[end] == ")":
            if open_count == 0 and in_group:
                break
            open_count = max(open_count - 1, 0)
        end += 1
    return end


class _FormulaParser:
    """A recursive-descent parser, one method for each level of precedence."""

    def __init__(self, tokens: list[_FormulaToken], end: int) -> None:
        self._tokens = tokens
        self._index = 0
        self._end = end
        words = [token for token in tokens if token.kind in {"word", "phrase"}]
        if len(words) > MAX_FORMULA_WORDS:
            hint = f"Use at most {MAX_FORMULA_WORDS}."
            raise QueryError("the query has too many words", words[MAX_FORMULA_WORDS].position, hint)

    def parse(self) -> QueryNode:
        node = self._parse_any(0)
        if (rest := self._peek()) is not None:
            raise _dangling_error(rest)
        return node

    def _parse_any(self, depth: int) -> QueryNode:
        nodes = [self._parse_all(depth)]
        while self._accept("or"):
            nodes.append(self._parse_all(depth))
        return join_nodes(Or, nodes)

    def _parse_all(self, depth: int) -> QueryNode:
        nodes = [self._parse_one(depth)]
        while (token := self._peek()) is not None and token.kind not in {"or", ")"}:
            self._accept("and")
            nodes.append(self._parse_one(depth))
        telling = [node for node in nodes if not (isinstance(node, Term) and node.text.lower() in STOP_WORDS)]
        return join_nodes(And, telling or nodes)

    def _parse_one(self, depth: int) -> QueryNode:
        token = self._peek()
        if token is None:
            raise QueryError("an operand is missing at the end", self._end, "Add an operand after the operator.")
        if depth > MAX_NESTING_DEPTH:
            raise QueryError("groups are nested too deeply", token.position, "Use fewer nested groups.")
        self._index += 1
        match token.kind:
            case "word":
                return Term(token.text)
            case "phrase" if not any(map(str.isalnum, token.text)):
                raise QueryError("a phrase has no word in it", token.position, "Put words between quotes.")
            case "phrase":
                return Phrase(token.text)
            case "not":
                return Not(self._parse_one(depth + 1))
            case "(":
                return self._parse_group(token, depth)
            case _:
                raise _dangling_error(token)

    def _parse_group(self, opened: _FormulaToken, depth: int) -> QueryNode:
        if (token := self._peek()) is not None and token.kind == ")":
            raise QueryError("a group is empty", opened.position, "Put a word into it, or remove it.")
        node = self._parse_any(depth + 1)
        if not self._accept(")"):
            raise QueryError("a parenthesis is left open", opened.position, "Close it, or remove it.")
        return node

    def _peek(self) -> _FormulaToken | None:
        return self._tokens[self._index] if self._index < len(self._tokens) else None

    def _accept(self, kind: str) -> bool:
        token = self._peek()
        if token is None or token.kind != kind:
            return False
        self._index += 1
        return True


def _dangling_error(token: _FormulaToken) -> QueryError:
    hint = f'To search for the word itself, write "{token.text}" in quotes.'
    return QueryError(f"{token.text} has no operand", token.position, hint)


_SIGNED_PHRASE_PATTERN = re.compile(rf"(?P<sign>[-!]?){QUOTED_PATTERN.pattern}(?!\w)", re.DOTALL)
_NON_SPACE_PATTERN = re.compile(r"\S+")
_EXCLUDED_WORD_PATTERN = re.compile(r"[-!](?=[^\W\d])(?P<word>\S+)")
_PHRASE_OPENERS = "([{,;:="
"""Characters that may stand between a space and a phrase."""
_STRAY_QUOTE_PATTERN = re.compile(r'^\W*"\W*')
"""Removed from a word that begins with a stray quote, so that it opens no phrase and excludes nothing."""


_REGEX_PATTERN = re.compile(
    r"""
      \\[dsw](?!\w)             # \d+, \w*, \s; not the path C:\docs
    | \\b\w+\\b | \\[][.(){}+*?|^$]
    | \.[*+]\??(?=[^\s;,])| (?<!\w)\.[*+]  # foo.*bar; not import java.util.*
    | \[\^?(?:\w-\w)+\w*\]    # [a-z]
    | \(\?[:=!<Pi] | \w\|\w | \)(?:[+*]|\?(?=\S))
    | \A\^\w
    """,
    re.VERBOSE,
)

REGEX_HINT: Final = "For a regular expression use grep_code with regex=true, or `cleats grep -e` in a terminal."


def is_regex_like(text: str) -> bool:
    """Return whether a query looks like a regular expression, which a search reads as words."""
    return _REGEX_PATTERN.search(text) is not None


def parse_query(text: str) -> ParsedQuery:
    """Parse a query.

    Raises:
        QueryError: it is a formula that cannot be parsed, or it has no word at all.
    """
    pieces = [piece for piece in _split_pieces(text) if piece.text == "*" or _count_letters(piece.text)]
    if not pieces and is_regex_like(text):
        raise QueryError("the query has no word to search for", 0, REGEX_HINT)
    parsed = parse_formula(text) if _has_operator(pieces) else _make_question(pieces)
    match parsed:
        case Term():
            return Question((parsed,))
        case Phrase():
            return _make_question(_split_pieces(str(parsed)))
        case _:
            return parsed


class _QueryPiece(Struct, frozen=True):
    text: str
    is_phrase: bool = False
    is_excluded: bool = False


def _split_pieces(text: str) -> Iterator[_QueryPiece]:
    position = 0
    while run := _NON_SPACE_PATTERN.search(text, position):
        opening = run.start() + len(run[0]) - len(run[0].lstrip(_PHRASE_OPENERS))
        quoted = _SIGNED_PHRASE_PATTERN.match(text, opening)
        if quoted and _is_phrase(quoted):
            yield _QueryPiece(unquote_phrase(quoted), is_phrase=True, is_excluded=bool(quoted["sign"]))
            position = quoted.end()
        else:
            yield _QueryPiece(run[0])
            position = run.end()


def _is_phrase(quoted: re.Match[str]) -> bool:
    """Return whether quoted text is meant as words: neither a letter nor a gap between quotes."""
    words = quoted["words"]
    return words == words.strip() and _count_letters(words) > 1


def _count_letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def _has_operator(pieces: list[_QueryPiece]) -> bool:
    """Return whether an operator has operands, so that it can be meant as one."""
    texts = ["" if piece.is_phrase else piece.text for piece in pieces]
    return not QUERY_OPERATORS.isdisjoint(texts[1:-1]) or (len(texts) > 1 and texts[0] == "NOT")


def _make_question(pieces: Iterable[_QueryPiece]) -> Question:
    terms: list[Term] = []
    phrases: list[Phrase] = []
    excluded: list[Term | Phrase] = []
    everything = False
    for piece in pieces:
        if piece.is_phrase:
            (excluded if piece.is_excluded else phrases).append(Phrase(piece.text))
        elif (excluded_word := _EXCLUDED_WORD_PATTERN.fullmatch(piece.text)) and _count_letters(piece.text) > 1:
            excluded.append(Term(excluded_word["word"]))
        elif piece.text == "*":
            everything = True
        elif word := _STRAY_QUOTE_PATTERN.sub("", piece.text):
            terms.append(Term(word.lower() if word in QUERY_OPERATORS else word))
    if not (terms or phrases or excluded or everything):
        hint = "Write a word, a name or a question; * matches everything that passes the filters."
        raise QueryError("the query has no word to search for", 0, hint)
    return Question(tuple(terms), tuple(phrases), tuple(excluded))

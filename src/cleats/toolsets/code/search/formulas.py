"""Formulas: queries with operators, read strictly. What cannot be read says where.

NOT binds tightest, then AND, then OR; words side by side are an AND. A word is a run without
spaces, code included: `foo(bar)`, `session.get`, `don't`. A parenthesis, a quote or a sign of
negation is one only at the beginning of a word. A word such as `the` is never demanded, unless it
is all that there is.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from cleats.toolsets.code.search.query_tree import (
    OPERATORS,
    Node,
    Not,
    Phrase,
    QueryError,
    Term,
    conjunction,
    disjunction,
)
from cleats.toolsets.code.search.tokens import STOP

DEEPEST: Final = 40
"""Groups and negations within each other: more is a mistake, or meant to be one."""

MOST: Final = 400
"""Words and phrases of a formula."""

QUOTED: Final = re.compile(r'"(?P<words>(?:\\.|[^"\\])*)"', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def formula(text: str) -> Node:
    """Read a formula.

    Raises:
        QueryError: a quote or a parenthesis is left open, an operator has nothing to work on, or
            a group is empty.
    """
    return _Parser(list(_tokens(text)), len(text)).whole()


def unquoted(quoted: re.Match[str]) -> str:
    """The words between quotes."""
    return _ESCAPED.sub(r"\1", quoted["words"]).strip()


class _Token(Struct, frozen=True):
    kind: str
    """`word`, `phrase`, `and`, `or`, `not`, `(` or `)`."""
    text: str
    at: int


def _tokens(text: str) -> Iterator[_Token]:
    at = depth = 0
    while at < len(text):
        sign = text[at]
        if sign.isspace():
            at += 1
        elif sign == "(":
            depth += 1
            yield _Token("(", sign, at)
            at += 1
        elif sign == ")" and depth:
            depth -= 1
            yield _Token(")", sign, at)
            at += 1
        elif sign in "-!" and _negates(text, at):
            yield _Token("not", sign, at)
            at += 1
        elif sign == '"':
            quoted = QUOTED.match(text, at)
            if quoted is None:
                raise QueryError("a quote is left open", at, "Close it, or leave it out.")
            yield _Token("phrase", unquoted(quoted), at)
            at = quoted.end()
        else:
            end = _word_end(text, at, inside=depth > 0)
            yield from _word(text[at:end], at)
            at = end


def _word(text: str, at: int) -> Iterator[_Token]:
    if text in OPERATORS:
        yield _Token(text.lower(), text, at)
    elif text == ")":
        raise QueryError("a parenthesis closes nothing", at, "Open it before, or leave it out.")
    elif any(sign.isalnum() for sign in text):  # anything else is punctuation: nothing to find
        yield _Token("word", text, at)


def _negates(text: str, at: int) -> bool:
    after = text[at + 1 : at + 2]
    return after in {'"', "("} if not after.isalnum() and after != "_" else True


def _word_end(text: str, at: int, *, inside: bool) -> int:
    """Where a word ends. Its own parentheses belong to it, that of the group around it does not."""
    end, own = at, 0
    while end < len(text) and not text[end].isspace():
        if text[end] == "(":
            own += 1
        elif text[end] == ")":
            if own == 0 and inside:
                break
            own = max(own - 1, 0)
        end += 1
    return end


class _Parser:
    """Recursive descent, one method for each level of binding."""

    def __init__(self, tokens: list[_Token], end: int) -> None:
        self._tokens = tokens
        self._next = 0
        self._end = end
        words = [token for token in tokens if token.kind in {"word", "phrase"}]
        if len(words) > MOST:
            raise QueryError("there are too many words", words[MOST].at, f"Use at most {MOST}.")

    def whole(self) -> Node:
        node = self._any(0)
        if (left := self._peek()) is not None:
            raise _idle(left)
        return node

    def _any(self, depth: int) -> Node:
        nodes = [self._all(depth)]
        while self._take("or"):
            nodes.append(self._all(depth))
        return disjunction(*nodes)

    def _all(self, depth: int) -> Node:
        nodes = [self._one(depth)]
        while (token := self._peek()) is not None and token.kind not in {"or", ")"}:
            self._take("and")
            nodes.append(self._one(depth))
        return conjunction(*([node for node in nodes if not _says_little(node)] or nodes))

    def _one(self, depth: int) -> Node:
        token = self._peek()
        if token is None:
            raise QueryError(
                "something is missing at the end", self._end, "Write what the operator works on."
            )
        if depth > DEEPEST:
            raise QueryError("groups are nested too deeply", token.at, "Write it flatter.")
        self._next += 1
        match token.kind:
            case "word":
                return Term(token.text)
            case "phrase":
                return self._phrase(token)
            case "not":
                return Not(self._one(depth + 1))
            case "(":
                return self._group(token, depth)
            case _:
                raise _idle(token)

    def _phrase(self, token: _Token) -> Phrase:
        if not any(sign.isalnum() for sign in token.text):
            raise QueryError("a phrase has no word in it", token.at, "Put words between quotes.")
        return Phrase(token.text)

    def _group(self, opened: _Token, depth: int) -> Node:
        if (token := self._peek()) is not None and token.kind == ")":
            raise QueryError("a group is empty", opened.at, "Write something in it.")
        node = self._any(depth + 1)
        if not self._take(")"):
            raise QueryError("a parenthesis is left open", opened.at, "Close it, or leave it out.")
        return node

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self, kind: str) -> bool:
        token = self._peek()
        if token is None or token.kind != kind:
            return False
        self._next += 1
        return True


def _says_little(node: Node) -> bool:
    return isinstance(node, Term) and node.text.lower() in STOP


def _idle(token: _Token) -> QueryError:
    hint = f'To look for the word itself, write "{token.text}" in quotes.'
    return QueryError(f"{token.text} has nothing to work on", token.at, hint)

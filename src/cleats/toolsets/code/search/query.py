"""The query language: from text to a tree. Knows nothing of an index.

    parse error                 words, ranked; what has them all comes first
    "parse error"               a phrase: these words, next to each other, unstemmed
    parse AND (error OR fault)  operators, in capitals; NOT binds tightest, then AND, then OR
    parse -test  parse !test    without test; -(a OR b) without either

A word is a run without spaces, code included: `foo(bar)`, `session.get`, `don't`. A parenthesis,
a quote or a sign of negation is one only at the beginning of a word. `--flag` is a word.

Two decisions:

- Operators are in capitals. Questions are asked in sentences, and `search and replace` is not a
  formula; who means the word `AND` puts it in quotes.
- Words side by side are an AND once the query has an operator, a phrase, a negation or a group: who
  writes one wants exactly that. Without any they are a question, in which every word helps and
  none is required, because a sentence hardly ever stands in one function whole.

A query of negations alone means everything else.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from cleats.contract.errors import ErrorCode, ToolError

DEEPEST: Final = 40
"""Groups and negations within each other: more is a mistake, or meant to be one."""

MOST: Final = 400
"""Words and phrases of a query with operators."""

OPERATORS: Final = frozenset({"AND", "OR", "NOT"})
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class QueryError(ToolError):
    """A query that cannot be read; it says where."""

    def __init__(self, message: str, position: int, hint: str) -> None:
        self.position = position
        super().__init__(
            ErrorCode.INVALID_REQUEST,
            f"query: {message} at character {position + 1}",
            hint=hint,
            details=[
                {
                    "instancePath": "/query",
                    "keyword": "query",
                    "message": message,
                    "position": position,
                }
            ],
        )


@dataclass(frozen=True, slots=True)
class Term:
    """One word, compared by its stem; one of several parts is a phrase of them."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words next to each other, as they are."""

    text: str

    def __str__(self) -> str:
        escaped = self.text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'


@dataclass(frozen=True, slots=True)
class Not:
    node: "Node"

    def __str__(self) -> str:
        return f"NOT {_grouped(self.node)}"


@dataclass(frozen=True, slots=True)
class And:
    nodes: tuple["Node", ...]

    def __str__(self) -> str:
        return " AND ".join(f"({n})" if isinstance(n, Or) else str(n) for n in self.nodes)


@dataclass(frozen=True, slots=True)
class Or:
    nodes: tuple["Node", ...]

    def __str__(self) -> str:
        return " OR ".join(map(str, self.nodes))


@dataclass(frozen=True, slots=True)
class Question:
    """Words of which any may be missing."""

    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return " ".join(map(str, self.terms))


Node: TypeAlias = Term | Phrase | Not | And | Or
Query: TypeAlias = Question | Phrase | Not | And | Or


def _grouped(node: Node) -> str:
    return f"({node})" if isinstance(node, And | Or) else str(node)


def leaves(node: Query | Node, *, negated: bool = False) -> Iterator[Term | Phrase]:
    """The words and phrases that a hit may have; with `negated`, those that it may not."""
    match node:
        case Term() | Phrase():
            if not negated:
                yield node
        case Not(inner):
            yield from leaves(inner, negated=not negated)
        case And(nodes) | Or(nodes) | Question(terms=nodes):
            for each in nodes:
                yield from leaves(each, negated=negated)


def parse(text: str) -> Query:
    """Read a query.

    Raises:
        QueryError: a quote or a parenthesis is left open, an operator has nothing to work on, a
            group is empty, or there is no word at all.
    """
    tokens = list(_tokens(text))
    if not tokens:
        raise QueryError("there is no word to look for", 0, "Write a word, a name or a question.")
    if all(token.kind == "word" for token in tokens):
        return Question(tuple(Term(token.text) for token in tokens))
    node = _Parser(tokens, len(text)).whole()
    return Question((node,)) if isinstance(node, Term) else node


@dataclass(frozen=True, slots=True)
class _Token:
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
        elif sign == '"' or (sign == "'" and _closing(text, at) > 0):
            end = _closing(text, at)
            if end < 0:
                raise QueryError("a quote is left open", at, "Close it, or leave it out.")
            yield _Token("phrase", _ESCAPED.sub(r"\1", text[at + 1 : end]), at)
            at = end + 1
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
    return after in {'"', "'", "("} if not after.isalnum() and after != "_" else True


def _closing(text: str, at: int) -> int:
    """Where a quote ends; -1 when it does not.

    An apostrophe can be part of a word, so a single quote ends only before a space or the end.
    """
    quote, end = text[at], at + 1
    while end < len(text):
        if text[end] == "\\":
            end += 1
        elif text[end] == quote and (quote == '"' or _ends_word(text, end + 1)):
            return end
        end += 1
    return -1


def _ends_word(text: str, at: int) -> bool:
    return at >= len(text) or text[at].isspace() or text[at] == ")"


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
        return conjunction(*nodes)

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


def _idle(token: _Token) -> QueryError:
    hint = f'To look for the word itself, write "{token.text}" in quotes.'
    return QueryError(f"{token.text} has nothing to work on", token.at, hint)


def conjunction(*nodes: Node) -> Node:
    """All of them, flat; one alone is itself."""
    flat = tuple(e for node in nodes for e in (node.nodes if isinstance(node, And) else (node,)))
    return flat[0] if len(flat) == 1 else And(flat)


def disjunction(*nodes: Node) -> Node:
    """Any of them, flat; one alone is itself."""
    flat = tuple(e for node in nodes for e in (node.nodes if isinstance(node, Or) else (node,)))
    return flat[0] if len(flat) == 1 else Or(flat)

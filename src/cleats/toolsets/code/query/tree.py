"""The tree of a parsed query; its text parses back to the same tree."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError

QUERY_OPERATORS: Final = frozenset({"AND", "OR", "NOT"})


class QueryError(ToolError):
    """A query that cannot be parsed; it names the position."""

    def __init__(self, message: str, position: int, hint: str) -> None:
        self.position = position
        super().__init__(
            ErrorCode.INVALID_REQUEST,
            f"query: {message} at character {position + 1}",
            hint=hint,
            details=[{"instancePath": "/query", "keyword": "query", "message": message, "position": position}],
        )


class Term(Struct, frozen=True):
    """One word, compared by its stem; a word of several parts is a phrase of them."""

    text: str

    def __str__(self) -> str:
        return self.text


class Phrase(Struct, frozen=True):
    """Words next to each other, unstemmed."""

    text: str

    def __str__(self) -> str:
        escaped = self.text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'


class Not(Struct, frozen=True):
    node: "QueryNode"

    def __str__(self) -> str:
        return f"NOT ({self.node})" if isinstance(self.node, And | Or) else f"NOT {self.node}"


class And(Struct, frozen=True):
    nodes: tuple["QueryNode", ...]

    def __str__(self) -> str:
        return " AND ".join(f"({node})" if isinstance(node, Or) else str(node) for node in self.nodes)


class Or(Struct, frozen=True):
    nodes: tuple["QueryNode", ...]

    def __str__(self) -> str:
        return " OR ".join(map(str, self.nodes))


class Question(Struct, frozen=True):
    """Words that are all optional, among chunks with all phrases and nothing excluded.

    Without words and phrases it matches everything that is not excluded.
    """

    terms: tuple[Term, ...] = ()
    phrases: tuple[Phrase, ...] = ()
    excluded: tuple[Term | Phrase, ...] = ()

    def __str__(self) -> str:
        words = [*map(str, self.terms), *map(str, self.phrases), *(f"-{leaf}" for leaf in self.excluded)]
        return " ".join(words) or "*"

    def loosen_phrases(self) -> "Question":
        """Return the question with the words of its phrases instead of the phrases."""
        words = (Term(word) for phrase in self.phrases for word in phrase.text.split())
        return Question((*self.terms, *words), (), self.excluded)


QueryNode: TypeAlias = Term | Phrase | Not | And | Or
ParsedQuery: TypeAlias = Question | Not | And | Or


def iterate_leaves(node: ParsedQuery | QueryNode, *, negated: bool = False) -> Iterator[Term | Phrase]:
    """Yield the words and phrases that a hit may have; with `negated`, those that it may not."""
    match node:
        case Term() | Phrase():
            if not negated:
                yield node
        case Not(inner):
            yield from iterate_leaves(inner, negated=not negated)
        case Question(terms, phrases, excluded):
            if negated:
                yield from excluded
            else:
                yield from terms
                yield from phrases
        case And(nodes) | Or(nodes):
            for child in nodes:
                yield from iterate_leaves(child, negated=negated)


def join_nodes(operator: type[And | Or], nodes: Iterable[QueryNode]) -> QueryNode:
    """Join nodes with an operator, flattened; a single node is returned as it is."""
    flat = tuple(child for node in nodes for child in (node.nodes if isinstance(node, operator) else (node,)))
    return flat[0] if len(flat) == 1 else operator(flat)

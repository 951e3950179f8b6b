"""What a query means, as a tree; its text reads back as the same tree."""

from collections.abc import Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError

OPERATORS: Final = frozenset({"AND", "OR", "NOT"})


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


class Term(Struct, frozen=True):
    """One word, compared by its stem; one of several parts is a phrase of them."""

    text: str

    def __str__(self) -> str:
        return self.text


class Phrase(Struct, frozen=True):
    """Words next to each other, as they are."""

    text: str

    def __str__(self) -> str:
        escaped = self.text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'


class Not(Struct, frozen=True):
    node: "Node"

    def __str__(self) -> str:
        return f"NOT {_grouped(self.node)}"


class And(Struct, frozen=True):
    nodes: tuple["Node", ...]

    def __str__(self) -> str:
        return " AND ".join(f"({n})" if isinstance(n, Or) else str(n) for n in self.nodes)


class Or(Struct, frozen=True):
    nodes: tuple["Node", ...]

    def __str__(self) -> str:
        return " OR ".join(map(str, self.nodes))


class Question(Struct, frozen=True):
    """Words of which any may be missing, within what has the phrases and nothing that is barred.

    Without words and phrases it is everything, as far as nothing of it is barred.
    """

    terms: tuple[Term, ...] = ()
    phrases: tuple[Phrase, ...] = ()
    barred: tuple[Term | Phrase, ...] = ()

    def __str__(self) -> str:
        words = [*map(str, self.terms), *map(str, self.phrases), *(f"-{e}" for e in self.barred)]
        return " ".join(words) or "*"

    def loosened(self) -> "Question":
        """The same with the words of the phrases instead of the phrases."""
        words = (Term(word) for phrase in self.phrases for word in phrase.text.split())
        return Question((*self.terms, *words), (), self.barred)


Node: TypeAlias = Term | Phrase | Not | And | Or
Query: TypeAlias = Question | Not | And | Or


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
        case Question(terms, phrases, barred):
            if negated:
                yield from barred
            else:
                yield from terms
                yield from phrases
        case And(nodes) | Or(nodes):
            for each in nodes:
                yield from leaves(each, negated=negated)


def conjunction(*nodes: Node) -> Node:
    """All of them, flat; one alone is itself."""
    flat = tuple(e for node in nodes for e in (node.nodes if isinstance(node, And) else (node,)))
    return flat[0] if len(flat) == 1 else And(flat)


def disjunction(*nodes: Node) -> Node:
    """Any of them, flat; one alone is itself."""
    flat = tuple(e for node in nodes for e in (node.nodes if isinstance(node, Or) else (node,)))
    return flat[0] if len(flat) == 1 else Or(flat)

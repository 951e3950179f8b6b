"""Parameters that a framework fills with what a stranger sent: of route handlers, or annotated.

What a parameter is declared with is read in the signature, because annotations of parameters are
nowhere else.
"""

import re
from collections.abc import Iterator

from cleats.toolsets.code.facts import Chunk
from cleats.toolsets.code.risk.book import SELVES, Book
from cleats.toolsets.code.risk.rules import SourceRule

_WORD = re.compile(r"[\w$]+")
_ANNOTATION = re.compile(r"@[\w.]+(?:\([^()]*\))?")
_OPEN, _CLOSE = "([{<", ")]}>"


def untrusted(chunk: Chunk, book: Book) -> Iterator[tuple[str, SourceRule]]:
    """The parameters of a function that are sources themselves."""
    if not chunk.params or not book.parameters:
        return
    for rule in book.parameters:
        if rule.beside and book.beside[rule.id].isdisjoint(chunk.params):
            continue
        if "*" not in rule.parameters and not any(w in chunk.signature for w in rule.parameters):
            continue
        if not book.concerns(rule, chunk.decorators):
            continue
        for name, declaration in _declared(chunk):
            words = f" {declaration} "
            meant = "*" in rule.parameters or any(word in words for word in rule.parameters)
            if meant and not any(word in words for word in rule.except_parameters):
                yield name, rule


def _declared(chunk: Chunk) -> Iterator[tuple[str, str]]:
    """Each parameter with the text that declares it."""
    pieces = list(_pieces(chunk.signature))
    types = {typed.name: typed.type for typed in chunk.types if typed.where == "param"}
    for param in chunk.params:
        name = param.lstrip("*&.")
        if name in SELVES:
            continue
        own = (piece for piece in pieces if name in _WORD.findall(_ANNOTATION.sub(" ", piece)))
        yield param, next(own, types.get(name, ""))


def _pieces(signature: str) -> Iterator[str]:
    """The declarations between the outermost parentheses that hold parameters."""
    start = signature.find("(")
    # The parentheses of an annotation in front of the name are not those of the parameters.
    for match in _ANNOTATION.finditer(signature):
        if match.start() < start < match.end():
            start = signature.find("(", match.end())
    if start < 0:
        return
    depth, begin = 0, start + 1
    for position in range(start, len(signature)):
        letter = signature[position]
        if letter in _OPEN:
            depth += 1
        elif letter in _CLOSE and signature[position - 1 : position + 1] not in ("->", "=>"):
            depth -= 1
        if (letter == "," and depth == 1) or depth == 0:
            yield signature[begin:position]
            begin = position + 1
        if depth == 0:
            return

"""The kinds of chunks, and the names that people and tools use for them."""

from collections.abc import Mapping
from typing import Final

CHUNK_KINDS: Final[Mapping[str, str]] = {
    "function": "A function that belongs to no type.",
    "method": "A function that belongs to a type.",
    "constructor": "A method that makes an instance.",
    "class": "A class.",
    "interface": "An interface or a protocol.",
    "trait": "A trait or a mixin.",
    "struct": "A struct, a record or a union.",
    "enum": "An enumeration.",
    "impl": "A block that implements or extends a type.",
    "type": "A type alias or another named type.",
    "namespace": "A namespace, a package or a module declared inside a file.",
    "property": "A property that has code, such as a getter.",
    "constant": "A constant or a variable at the top of a file.",
    "macro": "A macro.",
    "module": "What a file says outside of every declaration.",
    "section": "A section of a document, under its heading.",
    "entry": "An entry of a configuration or data file.",
    "statement": "A statement of SQL.",
    "stage": "A stage of a Dockerfile.",
    "target": "A target of a Makefile.",
    "element": "A part of a page.",
    "lines": "A block of lines of a file whose structure is not known.",
    "comment": "A comment, as prose.",
    "docstring": "The documentation of a declaration, as prose.",
    "record": "A finding, a decision or an entry of a log.",
}

PROTOTYPE_MODIFIER: Final = "prototype"
"""The modifier of a function that its file only declares; without a body, it ranks below one that has a body."""

_KINDS_BY_ALIASES: Final = {
    "functiondeclaration arrowfunction fn func": ("function",),
    "methoddeclaration methoddefinition": ("method", "constructor"),
    "def": ("function", "method"),
    "constructordeclaration": ("constructor",),
    "classdeclaration": ("class",),
    "interfacedeclaration protocoldeclaration protocol": ("interface",),
    "traitdeclaration": ("trait",),
    "structdeclaration recorddeclaration": ("struct",),
    "record": ("record", "struct"),
    "enumdeclaration": ("enum",),
    "impldeclaration extensiondeclaration": ("impl",),
    "typealias typealiasdeclaration": ("type",),
    "moduledeclaration": ("module", "namespace"),
    "namespacedeclaration": ("namespace",),
    "macrodeclaration": ("macro",),
    "variabledeclaration variable": ("constant",),
    "configsection": ("entry",),
    "section": ("section",),
}
KIND_ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    alias: kinds for aliases, kinds in _KINDS_BY_ALIASES.items() for alias in aliases.split()
}
"""Lower-case names used by others, and the kinds that they stand for."""


def resolve_kinds(name: str) -> tuple[str, ...]:
    """Return the kinds that a name stands for; empty if it is unknown."""
    lowered = name.lower()
    return KIND_ALIASES.get(lowered) or ((lowered,) if lowered in CHUNK_KINDS else ())

"""The kinds of chunks, and the other names people and tools have for them."""

from collections.abc import Mapping
from typing import Final

KINDS: Final[Mapping[str, str]] = {
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
    "property": "A property with code of its own.",
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

PROTOTYPE: Final = "prototype"
"""The modifier of a function whose head is all that its file has of it: it has no body to read, and
stands below one that has."""

ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "functiondeclaration": ("function",),
    "arrowfunction": ("function",),
    "methoddeclaration": ("method", "constructor"),
    "methoddefinition": ("method", "constructor"),
    "constructordeclaration": ("constructor",),
    "classdeclaration": ("class",),
    "interfacedeclaration": ("interface",),
    "protocoldeclaration": ("interface",),
    "traitdeclaration": ("trait",),
    "structdeclaration": ("struct",),
    "recorddeclaration": ("struct",),
    "enumdeclaration": ("enum",),
    "impldeclaration": ("impl",),
    "extensiondeclaration": ("impl",),
    "typealias": ("type",),
    "typealiasdeclaration": ("type",),
    "moduledeclaration": ("module", "namespace"),
    "namespacedeclaration": ("namespace",),
    "macrodeclaration": ("macro",),
    "variabledeclaration": ("constant",),
    "configsection": ("entry",),
    "section": ("section",),
    "protocol": ("interface",),
    "fn": ("function",),
    "func": ("function",),
    "def": ("function", "method"),
    "variable": ("constant",),
    "record": ("record", "struct"),
}
"""Lower-cased names that are not ours, and the kinds they mean."""


def meant(name: str) -> tuple[str, ...]:
    """The kinds that a name means; none when it is unknown."""
    lowered = name.lower()
    return ALIASES.get(lowered) or ((lowered,) if lowered in KINDS else ())

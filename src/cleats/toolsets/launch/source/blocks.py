"""A piece of a document."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """`kind` is heading, paragraph, item, continuation (of an item), cell or code."""

    kind: str
    text: str
    path: str
    line: int
    end: int
    section: tuple[str, ...] = ()
    """The headings above it, outermost first."""
    lead: str = ""
    """The strong words that it begins with."""
    language: str = ""
    """What a piece of code says it is."""
    only_link: bool = False
    html: bool = False
    quoted: bool = False
    depth: int = 0
    """How many lists it is in."""
    fenced: bool = True
    """Code that says where it begins and ends; an indented piece only looks like code."""

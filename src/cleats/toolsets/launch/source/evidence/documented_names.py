"""Purposes of public names from the documents of a repository, for names that the source leaves undocumented.

A document describes a name in a list item that begins with a call (`valid(v)`: Return the parsed version), or
in the first sentence below a heading that is a call or a member (`limit.activeCount`), or, in a reference, the name.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from cleats.toolsets.launch.source.api.public_names import ApiSurface, Symbol
from cleats.toolsets.launch.source.text import english
from cleats.toolsets.launch.source.text.documents import Block

_ITEM_PATTERN: Final = re.compile(
    r"`?(?:[\w$]+\.)*(?P<name>[\w$]+)\([^`]*?\)`?\s*(?::|-|\u2013|\u2014)\s+(?P<text>.+)", re.DOTALL
)
_OPEN_END_PATTERN: Final = re.compile(r",? (?:e\.g|i\.e|for example)\.?:?$")
_HEADING_PATTERN: Final = re.compile(
    r"`?(?:[\w$]+\.)*(?P<name>[\w$]+)\([^`]*\)`?(?: .*)?|`?[\w$]+\.(?P<member>[\w$]+)`?"
)


_NAME_HEADING_PATTERN: Final = re.compile(r"`?(?P<name>[A-Za-z_$][\w$]*)`?")
_REFERENCE_PATTERN: Final = re.compile(r"\b(?:api|reference|methods|functions|properties|exports)\b", re.IGNORECASE)
"""A heading above headings that are names."""


def add_documented_purposes(surface: ApiSurface, documents: Iterable[list[Block]]) -> ApiSurface:
    """Return the public names, those without a purpose in the source with that of the documents."""
    purposes = _read_purposes(documents)
    names = [_strip_owner(item.name) for symbol in surface.symbols for item in (symbol, *symbol.members)]
    unique = {name: place for name, place in purposes.items() if names.count(name) == 1}
    return replace(surface, symbols=tuple(_complete_symbol(symbol, unique) for symbol in surface.symbols))


def _complete_symbol(symbol: Symbol, purposes: Mapping[str, tuple[str, Block]]) -> Symbol:
    members = tuple(_complete_symbol(member, purposes) for member in symbol.members)
    text, block = purposes.get(_strip_owner(symbol.name), ("", None))
    if symbol.doc or block is None:
        return replace(symbol, members=members)
    return replace(symbol, members=members, doc=text, doc_line=block.line, doc_end=block.end, doc_path=block.path)


def _read_purposes(documents: Iterable[list[Block]]) -> dict[str, tuple[str, Block]]:
    """Return the first purpose of each name, with its block."""
    purposes: dict[str, tuple[str, Block]] = {}
    for blocks in documents:
        heading = ""
        for block in blocks:
            if block.kind == "heading":
                match = _HEADING_PATTERN.fullmatch(block.text)
                heading = (match["name"] or match["member"]) if match else _find_heading_name(block)
                continue
            item = _ITEM_PATTERN.match(block.text) if block.kind == "item" else None
            name = item["name"] if item else heading if block.kind == "paragraph" else ""
            text = item["text"] if item else block.text
            sentence = next(iter(english.split_sentences(text)), "") if name and not block.html else ""
            usable = f"{re.sub(_OPEN_END_PATTERN, '', sentence).rstrip('.:')}."
            if sentence and english.is_quotable(usable) and not english.is_promise(usable):
                purposes.setdefault(name, (usable, block))
            heading = "" if block.kind == "paragraph" else heading
    return purposes


def _find_heading_name(block: Block) -> str:
    """Return the heading if it is a word in a reference, where it is the name that it describes."""
    match = _NAME_HEADING_PATTERN.fullmatch(block.text)
    return match["name"] if match and any(map(_REFERENCE_PATTERN.search, block.section)) else ""


def _strip_owner(name: str) -> str:
    return re.split(r"\.|::", name)[-1]

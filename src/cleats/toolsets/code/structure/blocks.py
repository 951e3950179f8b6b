"""Blocks of lines: what is left to do with text whose structure is not known."""

from cleats.toolsets.code.facts import Chunk
from cleats.toolsets.code.structure.source import BLOCK, Source


def blocks(source: Source) -> list[Chunk]:
    """The whole text, sixty lines at a time; blank lines around a block are not part of it."""
    return [
        Chunk("lines", source.stem, *source.span(*kept), kept[0] + 1, kept[1] + 1)
        for first in range(0, len(source.lines), BLOCK)
        if (kept := source.trimmed(first, min(first + BLOCK, len(source.lines)) - 1))
    ]

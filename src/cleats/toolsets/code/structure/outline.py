"""A text cut into chunks by lines.

A reader of a format says where a piece begins and what is mentioned on which line; this module
makes chunks of it. So for every format the same laws hold: each line that is not blank lies in
exactly one chunk, no chunk is longer than a person would read at once, and what is mentioned
belongs to the chunk that holds its line.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, Literal

from msgspec import Struct

from cleats.toolsets.code.facts import Chunk
from cleats.toolsets.code.structure.source import BLOCK, Source

What = Literal["calls", "uses", "reads", "writes"]

MOST_LINES: Final = 2 * BLOCK
"""Longer pieces are cut again, at a blank line if there is one."""

MOST_CUTS: Final = 20_000
"""A file with more is data; its rest is read in stretches of lines."""

MOST_MENTIONS: Final = 50_000
MOST_NAMES: Final = 400
MOST_TEXT: Final = 200
MOST_DOC: Final = 600
"""Bounds of what is kept: mentions in a file, names in a chunk, characters of a value or a doc."""


class Cut(Struct, frozen=True):
    """Where a piece begins."""

    line: int
    kind: str
    name: str
    doc: str = ""
    signature: str = ""
    lang: str = ""


class Outline(Struct):
    """What a reader has seen of a text so far. Lines count from 0 here."""

    source: Source
    kind: str
    """The kind of what stands before the first cut."""
    imports: list[str] = []
    name: str = ""
    """What the text calls itself; the file's own name if empty."""
    _cuts: dict[int, Cut] = {}
    _mentions: list[tuple[int, What | None, str, str]] = []

    def cut(self, line: int, kind: str, name: str, doc: str = "", signature: str = "") -> None:
        """Begin a piece. Of two that begin on one line, the first is the one."""
        shown = " ".join(name[: 2 * MOST_TEXT].split())[:MOST_TEXT] or self.source.stem
        self._add(Cut(line, kind, shown, doc[:MOST_DOC], signature[:MOST_TEXT]))

    def embed(self, line: int, kind: str, name: str, lang: str) -> None:
        """Begin a piece in another language."""
        self._add(Cut(line, kind, name, lang=lang))

    def _add(self, cut: Cut) -> None:
        if len(self._cuts) < MOST_CUTS:
            self._cuts.setdefault(cut.line, cut)

    def say(self, line: int, what: What, name: str) -> None:
        if name and len(self._mentions) < MOST_MENTIONS:
            self._mentions.append((line, what, name[:MOST_TEXT], ""))

    def field(self, line: int, key: str, value: str) -> None:
        if key and len(self._mentions) < MOST_MENTIONS:
            self._mentions.append((line, None, key[:MOST_TEXT], value[:MOST_TEXT]))

    def imported(self, name: str) -> None:
        if name and len(self.imports) < MOST_MENTIONS:
            self.imports.append(name[:MOST_TEXT])

    def chunks(self) -> list[Chunk]:
        made = [chunk for cut, last in self._pieces() for chunk in self._chunks_of(cut, last)]
        self._attach(made)
        return made

    def _pieces(self) -> Iterator[tuple[Cut, int]]:
        cuts = [self._cuts[line] for line in sorted(self._cuts)]
        if not cuts or cuts[0].line > 0:
            cuts.insert(0, Cut(0, self.kind, self.name or self.source.stem))
        for cut, after in pairwise(cuts):
            yield cut, after.line - 1
        yield cuts[-1], len(self.source.lines) - 1

    def _chunks_of(self, cut: Cut, last: int) -> Iterator[Chunk]:
        first, doc = cut.line, cut.doc
        while first <= last:
            end = self._end(first, last)
            if kept := self.source.trimmed(first, end):
                start, stop = self.source.span(*kept)
                chunk = Chunk(cut.kind, cut.name, start, stop, kept[0] + 1, kept[1] + 1)
                chunk.lang, chunk.doc, chunk.signature = cut.lang, doc, cut.signature
                doc = ""
                yield chunk
            first = end + 1

    def _end(self, first: int, last: int) -> int:
        if last - first < MOST_LINES:
            return last
        furthest = first + MOST_LINES - 1
        blank = (at for at in range(furthest, first + BLOCK, -1) if self.source.is_blank(at))
        return next(blank, furthest)

    def _attach(self, chunks: list[Chunk]) -> None:
        at = 0
        seen: set[tuple[int, str, str]] = set()
        for line, what, name, value in sorted(self._mentions, key=lambda mention: mention[0]):
            while at < len(chunks) and chunks[at].end_line <= line:
                at += 1
            if at == len(chunks):
                return
            if what is None:
                _put(chunks[at].fields, name, value)
            elif (at, what, name) not in seen:
                seen.add((at, what, name))
                names: list[str] = getattr(chunks[at], what)
                if len(names) < MOST_NAMES:
                    names.append(name)


def _put(fields: dict[str, str], key: str, value: str) -> None:
    """Set a field; what is said twice is kept as a list."""
    before = fields.get(key)
    if before is None:
        if len(fields) < MOST_NAMES:
            fields[key] = value
    elif value != before and len(before) < MOST_TEXT:
        fields[key] = f"{before}, {value}"


def paragraph(lines: list[str], first: int, last: int) -> str:
    """The first paragraph between two lines, as one line."""
    words: list[str] = []
    for line in lines[first : last + 1]:
        if line.strip():
            words.append(line.strip())
        elif words:
            break
        if len(words) > 12:
            break
    return " ".join(words)[:MOST_DOC]

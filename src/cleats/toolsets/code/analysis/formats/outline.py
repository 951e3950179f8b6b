"""The outline of a text: its lines, the pieces it is cut into, and the names mentioned in them.

Blocks of lines are the fallback for text without a known structure. For data and configuration, a chunk for every line
would drown the important ones, one chunk for the whole file would hide them. So an entry with a body gets a separate
chunk, single values share one, and a long entry is divided again by its keys.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Final, Literal

from msgspec import Struct

from cleats.toolsets.code.analysis.facts import Chunk

BLOCK_LINES = 60
"""Lines of a block where no structure shows the end of one item and the start of the next."""


class SourceText:
    """A file that is read as lines. Only a line feed ends a line, as in tree-sitter and git."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data

    @cached_property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace").removeprefix("\ufeff")

    @cached_property
    def lines(self) -> list[str]:
        # A line feed is never part of a UTF-8 sequence, so both ways of splitting agree.
        return self.text.split("\n")

    @cached_property
    def line_starts(self) -> list[int]:
        """The byte offset of each line, and one more for the end of the text."""
        return list(accumulate((len(line) + 1 for line in self.data.split(b"\n")), initial=0))

    @property
    def stem(self) -> str:
        """The name of the file without its folders and its extension."""
        name = self.path.rsplit("/", 1)[-1]
        return name.rsplit(".", 1)[0] or name

    def get_byte_span(self, first: int, last: int) -> tuple[int, int]:
        """Return the byte range of the lines from first to last, without the final line feed."""
        return self.line_starts[first], self.line_starts[last + 1] - 1

    def trim_blank_lines(self, first: int, last: int) -> tuple[int, int] | None:
        """Return the line range without the blank lines around it, or None if all are blank."""
        lines = self.lines
        while first <= last and not lines[first].strip():
            first += 1
        while last >= first and not lines[last].strip():
            last -= 1
        return (first, last) if first <= last else None

    def find_comment_start(self, line: int, *marks: str) -> int:
        """Return the first of the comment lines directly above a line, or the line itself."""
        while line > 0 and self.lines[line - 1].lstrip().startswith(marks):
            line -= 1
        return line


def count_lines(data: bytes) -> int:
    """Count the lines of a text, including a last line without a line feed."""
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


def split_blocks(source: SourceText) -> list[Chunk]:
    """Split a text into blocks of sixty lines, without the blank lines around each block."""
    return [
        Chunk("lines", source.stem, *source.get_byte_span(*bounds), bounds[0] + 1, bounds[1] + 1)
        for first in range(0, len(source.lines), BLOCK_LINES)
        if (bounds := source.trim_blank_lines(first, min(first + BLOCK_LINES, len(source.lines)) - 1))
    ]


MentionKind = Literal["calls", "uses", "reads", "writes"]

MAX_CHUNK_LINES: Final = 2 * BLOCK_LINES
"""Longer pieces are cut again, at a blank line if there is one."""

MAX_FILE_CUTS: Final = 20_000
"""A file with more cuts is data; its rest is divided into blocks of lines."""

MAX_FILE_MENTIONS: Final = 50_000
MAX_CHUNK_NAMES: Final = 400
MAX_VALUE_CHARS: Final = 200
MAX_DOC_CHARS: Final = 600
"""Limits on stored data: mentions in a file, names in a chunk, characters of a value or a doc."""

MAX_LINE_CHARS: Final = 2000
"""Characters of a line, a heading or a paragraph that are examined."""

MAX_KEY_DEPTH: Final = 8
"""Keys of a dotted name; values that are nested deeper have no field."""


class OutlineCut(Struct, frozen=True):
    """The beginning of a piece."""

    line: int
    kind: str
    name: str
    doc: str = ""
    signature: str = ""
    lang: str = ""


class Outline(Struct):
    """The cuts and mentions that a reader has reported so far. Lines count from 0 here."""

    source: SourceText
    kind: str
    """The kind of the text before the first cut."""
    imports: list[str] = []
    name: str = ""
    """The title of the text; the stem of the file if empty."""
    _cuts: dict[int, OutlineCut] = {}
    _mentions: list[tuple[int, MentionKind | None, str, str]] = []

    def cut(self, line: int, kind: str, name: str, doc: str = "", signature: str = "", *, lang: str = "") -> None:
        """Begin a piece, maybe in another language. Of two pieces that begin on one line, the first wins."""
        short_name = " ".join(name[: 2 * MAX_VALUE_CHARS].split())[:MAX_VALUE_CHARS] or self.source.stem
        if len(self._cuts) < MAX_FILE_CUTS:
            new_cut = OutlineCut(line, kind, short_name, doc[:MAX_DOC_CHARS], signature[:MAX_VALUE_CHARS], lang)
            self._cuts.setdefault(line, new_cut)

    def add_mention(self, line: int, kind: MentionKind, name: str) -> None:
        if name and len(self._mentions) < MAX_FILE_MENTIONS:
            self._mentions.append((line, kind, name[:MAX_VALUE_CHARS], ""))

    def add_field(self, line: int, key: str, value: str) -> None:
        if key and len(self._mentions) < MAX_FILE_MENTIONS:
            self._mentions.append((line, None, key[:MAX_VALUE_CHARS], value[:MAX_VALUE_CHARS]))

    def add_import(self, name: str) -> None:
        if name and len(self.imports) < MAX_FILE_MENTIONS:
            self.imports.append(name[:MAX_VALUE_CHARS])

    def build_chunks(self) -> list[Chunk]:
        cuts = {0: OutlineCut(0, self.kind, self.name or self.source.stem), **self._cuts}
        bounds = pairwise([*sorted(cuts), len(self.source.lines)])
        chunks = [chunk for line, end in bounds for chunk in self._build_piece_chunks(cuts[line], end - 1)]
        self._attach_mentions(chunks)
        return chunks

    def _build_piece_chunks(self, cut: OutlineCut, last: int) -> Iterator[Chunk]:
        first, doc = cut.line, cut.doc
        while first <= last:
            end = self._find_chunk_end(first, last)
            if bounds := self.source.trim_blank_lines(first, end):
                start, stop = self.source.get_byte_span(*bounds)
                chunk = Chunk(cut.kind, cut.name, start, stop, bounds[0] + 1, bounds[1] + 1)
                chunk.lang, chunk.doc, chunk.signature = cut.lang, doc, cut.signature
                doc = ""
                yield chunk
            first = end + 1

    def _find_chunk_end(self, first: int, last: int) -> int:
        if last - first < MAX_CHUNK_LINES:
            return last
        furthest = first + MAX_CHUNK_LINES - 1
        blank_lines = (
            index for index in range(furthest, first + BLOCK_LINES, -1) if not self.source.lines[index].strip()
        )
        return next(blank_lines, furthest)

    def _attach_mentions(self, chunks: list[Chunk]) -> None:
        position = 0
        seen_mentions: set[tuple[int, str, str]] = set()
        for line, kind, name, value in sorted(self._mentions, key=lambda mention: mention[0]):
            while position < len(chunks) and chunks[position].end_line <= line:
                position += 1
            if position == len(chunks):
                return
            if kind is None:
                _add_field_value(chunks[position].fields, name, value)
            elif (position, kind, name) not in seen_mentions:
                seen_mentions.add((position, kind, name))
                names: list[str] = getattr(chunks[position], kind)
                if len(names) < MAX_CHUNK_NAMES:
                    names.append(name)


def _add_field_value(fields: dict[str, str], key: str, value: str) -> None:
    previous = fields.get(key)
    if previous is None:
        if len(fields) < MAX_CHUNK_NAMES:
            fields[key] = value
    elif value != previous and len(previous) < MAX_VALUE_CHARS:
        fields[key] = f"{previous}, {value}"


def join_first_paragraph(lines: list[str], first: int, last: int) -> str:
    """Return the first paragraph between two lines, as one line."""
    words: list[str] = []
    for line in lines[first : last + 1]:
        if line.strip():
            words.append(line.strip())
        elif words:
            break
        if len(words) > 12:
            break
    return " ".join(words)[:MAX_DOC_CHARS]


MIN_ELEMENT_LINES: Final = 20
"""Lines from which an unnamed element of a list gets a separate chunk."""


class DataEntry(Struct):
    """A key of the first or second level, and its lines."""

    line: int
    key: str
    """The key; `[]` for an unnamed element of a list."""
    body: bool
    """True if the entry holds more than a single value."""
    last: int = 0
    entries: list["DataEntry"] = []


def cut_entries(outline: Outline, entries: Sequence[DataEntry], last: int, name: str = "") -> None:
    """Cut the lines of some entries, the last of which ends with line `last`.

    `name` is the document they belong to, such as a manifest among several in a file.
    """
    _set_last_lines(entries, last)
    _cut_level(outline, entries, name or outline.source.stem, f"{name}." if name else "")


def _set_last_lines(entries: Sequence[DataEntry], last: int) -> None:
    ends = [*(entry.line - 1 for entry in entries[1:]), last]
    for entry, end in zip(entries, ends, strict=False):
        entry.last = max(end, entry.line)
        _set_last_lines(entry.entries, entry.last)


def _cut_level(outline: Outline, entries: Sequence[DataEntry], parent_name: str, prefix: str) -> None:
    small_entries: list[DataEntry] = []
    for entry in entries:
        lines = entry.last - entry.line + 1
        has_name = entry.key != "[]"
        if lines == 1 or not entry.body or (not has_name and lines < MIN_ELEMENT_LINES):
            if small_entries and entry.last - small_entries[0].line >= BLOCK_LINES:
                _cut_small_entries(outline, small_entries, parent_name, prefix)
            small_entries.append(entry)
            continue
        _cut_small_entries(outline, small_entries, parent_name, prefix)
        full_name = prefix + entry.key if has_name else parent_name
        outline.cut(entry.line, "entry", full_name)
        if lines > BLOCK_LINES:
            _cut_level(outline, entry.entries, full_name, f"{full_name}.")
    _cut_small_entries(outline, small_entries, parent_name, prefix)


def _cut_small_entries(outline: Outline, small_entries: list[DataEntry], parent_name: str, prefix: str) -> None:
    if small_entries:
        is_single = len(small_entries) == 1 and small_entries[0].key != "[]"
        outline.cut(small_entries[0].line, "entry", prefix + small_entries[0].key if is_single else parent_name)
        small_entries.clear()

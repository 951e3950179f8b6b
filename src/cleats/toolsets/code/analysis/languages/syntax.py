"""A syntax tree as flat lists, in the order of the text, and the declarations that are read from it.

A node is a number. Reading lists of Python values is several times cheaper than reading the nodes
of the parser, which creates a new object for every access. So the tree is copied once, in one walk
of a cursor, and everything else works on integers and slices.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping

from msgspec import Struct
from tree_sitter import Tree

from cleats.toolsets.code.analysis.facts import Chunk, DataFlowStep, TypeFact

MAX_TREE_LEVELS = 200
"""Levels that are kept as a tree. Deeper nodes are kept flat, as leaves of the last level, so that a recursive descent
stays within the interpreter's limit of 1,000 frames."""

ERROR_ID = 65535
"""The parser's id for a node that covers text it could not parse."""

NO_NODE = -1
"""The number of a missing node: an empty one without kind, field, text and children."""

_LINE_BREAK_PATTERN = re.compile(rb"\n")


class SyntaxTree:
    """The nodes of one file."""

    def __init__(self, data: bytes, capacity: int) -> None:
        # Filling preallocated lists is faster than growing them.
        self.data = self.parsed = data
        """`parsed` is the text that the grammar was given: the same bytes, with blanks for what it cannot read."""
        self.kinds = [""] * capacity
        self.fields = [""] * capacity
        """The field of its parent that a node fills; empty for most nodes."""
        self.starts = [0] * capacity
        self.ends = [0] * capacity
        self.stops = [0] * capacity
        """The number after the last node below a node, which is the number of its next sibling, if any."""
        self.parents = [NO_NODE] * capacity
        self._before: dict[int, int] = {}
        self._breaks: list[int] = []
        self._line = self._first = self._end = 0
        """The line of the last lookup, and its range of bytes."""
        self._whole = data.decode() if data.isascii() else ""
        """The decoded text of a pure ASCII file, where byte and character positions are equal."""

    def truncate(self, count: int) -> None:
        """Shrink the lists to the nodes, and an empty one at the end that stands for `NO_NODE`."""
        for column in (self.kinds, self.fields):
            column[count:] = [""]
        for numbers in (self.starts, self.ends, self.stops):
            numbers[count:] = [0]
        self.parents[count:] = [NO_NODE]

    def text(self, node: int) -> str:
        """Return the text of a node."""
        if self._whole:
            return self._whole[self.starts[node] : self.ends[node]]
        return self.data[self.starts[node] : self.ends[node]].decode("utf-8", "replace")

    def contains_text(self, node: int, text: bytes) -> bool:
        """Return whether a node contains a text."""
        return self.data.find(text, self.starts[node], self.ends[node]) >= 0

    def children(self, node: int) -> Iterator[int]:
        """Yield the direct children of a node, in order."""
        stops = self.stops
        child, stop = node + 1, stops[node]
        while child < stop:
            yield child
            child = stops[child]

    def find_child(self, node: int, *labels: str) -> int:
        """Return the first child whose field or kind is among the labels, or `NO_NODE`."""
        kinds, fields, stops = self.kinds, self.fields, self.stops
        child, stop = node + 1, stops[node]
        while child < stop:
            if fields[child] in labels or kinds[child] in labels:
                return child
            child = stops[child]
        return NO_NODE

    def last_child(self, node: int) -> int:
        """Return the last child, or `NO_NODE`."""
        stops = self.stops
        last, child, stop = NO_NODE, node + 1, stops[node]
        while child < stop:
            last, child = child, stops[child]
        return last

    def previous_sibling(self, node: int) -> int:
        """Return the sibling just before a node, or `NO_NODE`."""
        if (previous := self._before.get(node)) is None:
            last = NO_NODE
            for child in self.children(self.parents[node]):
                self._before[child] = last
                last = child
            previous = self._before.get(node, NO_NODE)
        return previous

    def line_number(self, offset: int) -> int:
        """Return the line of a byte offset, counted from 1."""
        if self._first <= offset < self._end:
            return self._line
        if not (line_starts := self._breaks):
            line_starts.append(0)
            line_starts.extend(line_break.end() for line_break in _LINE_BREAK_PATTERN.finditer(self.data))
        self._line = line = bisect_right(line_starts, offset)
        self._first = line_starts[line - 1]
        self._end = line_starts[line] if line < len(line_starts) else self._first
        return line

    def count_lines(self, node: int) -> int:
        """Return the number of lines that a node covers."""
        return self.data.count(b"\n", self.starts[node], self.ends[node]) + 1

    def is_first_on_line(self, node: int) -> bool:
        """Return whether only white space precedes a node on its line."""
        start = self.starts[node]
        return not self.data[self.data.rfind(b"\n", 0, start) + 1 : start].strip()


def flatten_tree(tree: Tree, data: bytes, kinds: Mapping[int, str], fields: Mapping[int, str]) -> SyntaxTree:
    """Copy a tree, without the nodes whose kind is not in `kinds` and everything below them."""
    capacity = len(data) // 2 + 64
    while True:
        syntax = SyntaxTree(data, capacity)
        try:
            syntax.truncate(_copy_nodes(tree, syntax, kinds, fields))
        except IndexError:
            capacity *= 2
        else:
            return syntax


def _copy_nodes(tree: Tree, syntax: SyntaxTree, kinds: Mapping[int, str], fields: Mapping[int, str]) -> int:
    """Fill the lists and return the number of nodes.

    Raises:
        IndexError: The tree has more nodes than the lists have room for.
    """
    kind_names, field_names, starts, ends = syntax.kinds, syntax.fields, syntax.starts, syntax.ends
    stops, parents = syntax.stops, syntax.parents
    cursor = tree.walk()
    down, across, up = cursor.goto_first_child, cursor.goto_next_sibling, cursor.goto_parent
    kind_of, ancestors = kinds.get, list[int]()
    push, pop = ancestors.append, ancestors.pop
    parent, count, depth = NO_NODE, 0, 0
    while True:
        if (node := cursor.node) is not None and (kind := kind_of(node.kind_id)) is not None:
            kind_names[count] = kind
            if field := cursor.field_id:
                field_names[count] = fields[field]
            starts[count] = node.start_byte
            ends[count] = node.end_byte
            parents[count] = parent
            current = count
            count += 1
            stops[current] = count
            if down():
                push(parent)
                depth += 1
                if depth <= MAX_TREE_LEVELS:
                    parent = current
                continue
        while not across():
            if not up():
                return count
            if depth <= MAX_TREE_LEVELS:
                stops[parent] = count
            depth -= 1
            parent = pop()


MAX_NAME_CHARS = 400
"""Characters of a dotted name that is split into its parts; longer ones are attacks, not names."""


class Frame(Struct, eq=False):
    """One declaration that is being read. The dictionaries serve as ordered sets."""

    kind: str
    name: str
    start: int
    end: int
    parent: "Frame | None"
    qualified_name: str = ""
    nested_ranges: list[tuple[int, int]] = []
    """Byte ranges of the chunks directly inside this one."""
    section_visibility: str = ""
    """The visibility that a line in the body, such as `private:`, sets for everything after it."""

    signature: str = ""
    params: list[str] = []
    types: dict[TypeFact, None] = {}
    return_type: str = ""
    decorators: list[str] = []
    bases: list[str] = []
    visibility: str = ""
    modifiers: dict[str, None] = {}
    is_async: bool = False
    is_generator: bool = False
    returns: bool = False

    calls: dict[str, None] = {}
    uses: dict[str, None] = {}
    """Only names that are neither read nor called: types, decorators, bases."""
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}
    mutates: dict[str, None] = {}
    aliases: dict[str, None] = {}
    throws: dict[str, None] = {}
    awaits: dict[str, None] = {}
    branches: int = 0
    blocks: int = 0
    loops: int = 0
    breaks: int = 0
    continues: int = 0
    doc: str = ""
    doc_range: tuple[int, int] = (0, 0)
    comments: list[str] = []
    steps: list[DataFlowStep] = []

    def __post_init__(self) -> None:
        self.qualified_name = self.name
        if self.parent is not None and self.parent.parent is not None:
            self.qualified_name = f"{self.parent.qualified_name}.{self.name}"

    @property
    def is_top_level(self) -> bool:
        """True for a declaration at the top level of the file."""
        return self.parent is not None and self.parent.parent is None

    def rename(self, name: str) -> None:
        """Change the last part of the qualified name."""
        self.qualified_name = self.qualified_name.removesuffix(self.name) + name
        self.name = name

    def to_chunk(self, syntax: SyntaxTree) -> Chunk:
        """Return the finished chunk."""
        # Field by field: a loop over the names of the fields takes twice as long.
        return Chunk(
            kind=self.kind,
            name=self.qualified_name,
            start=self.start,
            end=self.end,
            start_line=syntax.line_number(self.start),
            end_line=syntax.line_number(max(self.start, self.end - 1)),
            own=self._own_ranges() if self.nested_ranges else [],
            signature=self.signature,
            params=self.params,
            types=list(self.types),
            return_type=self.return_type,
            decorators=self.decorators,
            bases=self.bases,
            visibility=self.visibility,
            modifiers=list(self.modifiers),
            is_async=self.is_async,
            is_generator=self.is_generator,
            returns=self.returns,
            calls=list(self.calls),
            uses=self._collect_uses(),
            reads=list(self.reads),
            writes=list(self.writes),
            mutates=list(self.mutates),
            aliases=list(self.aliases),
            throws=list(self.throws),
            awaits=list(self.awaits),
            branches=self.branches,
            loops=self.loops,
            breaks=self.breaks,
            continues=self.continues,
            doc=self.doc,
            comments="\n".join(self.comments),
            steps=self.steps,
        )

    def is_blank(self, data: bytes) -> bool:
        """Return whether only white space and semicolons are left once the nested chunks are cut out."""
        return not any(data[start:end].strip(b" \t\r\n\f\v;") for start, end in self._own_ranges())

    def _own_ranges(self) -> list[tuple[int, int]]:
        own_ranges, position = [], self.start
        # Not in order yet: the right side of an assignment is read before the left one.
        for start, end in [*sorted(self.nested_ranges), (self.end, self.end)]:
            if start > position:
                own_ranges.append((position, start))
            position = max(position, end)
        return own_ranges

    def _collect_uses(self) -> list[str]:
        """Return every used name: each dotted name, and each name in it."""
        uses = {**self.uses, **self.reads, **self.calls, **self.mutates}
        for name in list(uses):
            if not name.isidentifier() and len(name) < MAX_NAME_CHARS:
                for part in name.replace("::", ".").replace("[]", "").replace("()", "").split("."):
                    uses[part] = None
        uses.pop("", None)
        return list(uses)

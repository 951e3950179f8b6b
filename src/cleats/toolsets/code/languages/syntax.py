"""A syntax tree as flat lists, in the order of the text.

A node is a number. Asking lists of Python values is several times cheaper than asking the nodes
of the parser, each of which is made anew for every question, so the tree is copied once, in one
walk of a cursor, and everything else is integers and slices.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Tree

DEEPEST = 200
"""Levels that are kept as a tree. What lies deeper is kept flat, as leaves of the last level, so
that whoever descends recursively stays within the interpreter's limit of 1,000 frames."""

ERROR_ID = 65535
"""The parser's number for a node that stands for text it could not place."""

NONE = -1

_BREAK = re.compile(rb"\n")


class Syntax:
    """The nodes of one file."""

    __slots__ = (
        "_before",
        "_breaks",
        "_end",
        "_first",
        "_line",
        "_whole",
        "data",
        "ends",
        "fields",
        "kinds",
        "parents",
        "parsed",
        "starts",
        "stops",
    )

    def __init__(self, data: bytes, room: int) -> None:
        # Lists that have the room already are filled faster than lists that grow.
        self.data = self.parsed = data
        """`parsed` is what the grammar was given: the same, with blanks for what it cannot read."""
        self.kinds = [""] * room
        self.fields = [""] * room
        """The field of its parent that a node is; empty for most."""
        self.starts = [0] * room
        self.ends = [0] * room
        self.stops = [0] * room
        """The number after the last node below a node; its next sibling's, if it has one."""
        self.parents = [NONE] * room
        self._before: dict[int, int] = {}
        self._breaks: list[int] = []
        self._line = self._first = self._end = 0
        """The line that was asked for last, and the bytes it is."""
        self._whole = data.decode() if data.isascii() else ""
        """The text, where its letters are as many as its bytes."""

    def cut(self, count: int) -> None:
        """Forget the room for nodes that there are not."""
        for column in (self.kinds, self.fields):
            del column[count:]
        for numbers in (self.starts, self.ends, self.stops, self.parents):
            del numbers[count:]

    def text(self, node: int) -> str:
        """What is written there."""
        if self._whole:
            return self._whole[self.starts[node] : self.ends[node]]
        return self.data[self.starts[node] : self.ends[node]].decode("utf-8", "replace")

    def has(self, node: int, text: bytes) -> bool:
        """Whether something is written in it."""
        return self.data.find(text, self.starts[node], self.ends[node]) >= 0

    def children(self, node: int) -> Iterator[int]:
        """The nodes right below, in order."""
        stops = self.stops
        child, stop = node + 1, stops[node]
        while child < stop:
            yield child
            child = stops[child]

    def child(self, node: int, *wanted: str) -> int:
        """The first child that has one of the fields or, failing that, is of one of the kinds."""
        kinds, fields, stops = self.kinds, self.fields, self.stops
        child, stop = node + 1, stops[node]
        while child < stop:
            if fields[child] in wanted or kinds[child] in wanted:
                return child
            child = stops[child]
        return NONE

    def last(self, node: int) -> int:
        """The last child, or `NONE`."""
        stops = self.stops
        last, child, stop = NONE, node + 1, stops[node]
        while child < stop:
            last, child = child, stops[child]
        return last

    def before(self, node: int) -> int:
        """The sibling just before, or `NONE`."""
        found = self._before.get(node)
        if found is None:
            last = NONE
            for child in self.children(self.parents[node]):
                self._before[child] = last
                last = child
            found = self._before.get(node, NONE)
        return found

    def line(self, offset: int) -> int:
        """The line of a byte, counted from 1."""
        if self._first <= offset < self._end:
            return self._line
        breaks = self._breaks
        if not breaks:
            breaks.append(0)
            breaks.extend(found.end() for found in _BREAK.finditer(self.data))
        self._line = line = bisect_right(breaks, offset)
        self._first = breaks[line - 1]
        self._end = breaks[line] if line < len(breaks) else self._first
        return line

    def opens_line(self, node: int) -> bool:
        """Whether nothing but space stands before it on its line."""
        start = self.starts[node]
        return not self.data[self.data.rfind(b"\n", 0, start) + 1 : start].strip()


def flatten(
    tree: "Tree", data: bytes, kinds: Mapping[int, str], fields: Mapping[int, str]
) -> Syntax:
    """Copy a tree; nodes whose kind is not among `kinds` are left out with all below them."""
    room = len(data) // 2 + 64
    while True:
        syntax = Syntax(data, room)
        try:
            syntax.cut(_copy(tree, syntax, kinds, fields))
        except IndexError:
            room *= 2
        else:
            return syntax


def _copy(tree: "Tree", syntax: Syntax, kinds: Mapping[int, str], fields: Mapping[int, str]) -> int:
    """Fill the lists; gives the number of nodes.

    Raises:
        IndexError: There are more nodes than there is room for.
    """
    names, roles, starts, ends = syntax.kinds, syntax.fields, syntax.starts, syntax.ends
    stops, parents = syntax.stops, syntax.parents
    cursor = tree.walk()
    down, across, up = cursor.goto_first_child, cursor.goto_next_sibling, cursor.goto_parent
    kind_of, above = kinds.get, list[int]()
    push, pop = above.append, above.pop
    parent, count, depth = NONE, 0, 0
    while True:
        node = cursor.node
        if node is not None and (kind := kind_of(node.kind_id)) is not None:
            names[count] = kind
            if field := cursor.field_id:
                roles[count] = fields[field]
            starts[count] = node.start_byte
            ends[count] = node.end_byte
            parents[count] = parent
            this = count
            count += 1
            stops[this] = count
            if down():
                push(parent)
                depth += 1
                if depth <= DEEPEST:
                    parent = this
                continue
        while not across():
            if not up():
                return count
            if depth <= DEEPEST:
                stops[parent] = count
            depth -= 1
            parent = pop()

"""A syntax tree as flat lists, in the order of the text.

A node is a number. Asking lists of Python values is several times cheaper than asking the nodes
of the parser, each of which is made anew for every question, so the tree is copied once, in one
walk of a cursor, and everything else is integers and slices.
"""

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


class Syntax:
    """The nodes of one file."""

    __slots__ = (
        "_before",
        "_breaks",
        "data",
        "ends",
        "fields",
        "kinds",
        "parents",
        "starts",
        "stops",
    )

    def __init__(
        self,
        data: bytes,
        kinds: list[str],
        fields: list[str],
        starts: list[int],
        ends: list[int],
        stops: list[int],
        parents: list[int],
    ) -> None:
        self.data = data
        self.kinds = kinds
        self.fields = fields
        """The field of its parent that a node is; empty for most."""
        self.starts = starts
        self.ends = ends
        self.stops = stops
        """The number after the last node below a node; its next sibling's, if it has one."""
        self.parents = parents
        self._before: dict[int, int] = {}
        self._breaks: list[int] = []

    def text(self, node: int) -> str:
        """What is written there."""
        return self.data[self.starts[node] : self.ends[node]].decode("utf-8", "replace")

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
        last = NONE
        for child in self.children(node):
            last = child
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
        if not self._breaks:
            self._breaks = [0]
            at = self.data.find(b"\n")
            while at >= 0:
                self._breaks.append(at + 1)
                at = self.data.find(b"\n", at + 1)
        return bisect_right(self._breaks, offset)

    def opens_line(self, node: int) -> bool:
        """Whether nothing but space stands before it on its line."""
        start = self.starts[node]
        return not self.data[self.data.rfind(b"\n", 0, start) + 1 : start].strip()


def flatten(
    tree: "Tree", data: bytes, kinds: Mapping[int, str], fields: Mapping[int | None, str]
) -> Syntax:
    """Copy a tree; nodes whose kind is not among `kinds` are left out with all below them."""
    # Lists of the length that is needed at most are filled faster than lists that grow.
    most = tree.root_node.descendant_count
    names, roles, nothing = [""] * most, [""] * most, [0] * most
    starts, ends, parents, stops = nothing, nothing.copy(), nothing.copy(), list(range(1, most + 1))
    cursor = tree.walk()
    down, across, up = cursor.goto_first_child, cursor.goto_next_sibling, cursor.goto_parent
    kind_of, above = kinds.get, list[int]()
    parent, count = NONE, 0
    while True:
        node = cursor.node
        if node is not None and (kind := kind_of(node.kind_id)) is not None:
            names[count] = kind
            roles[count] = fields[cursor.field_id]
            starts[count] = node.start_byte
            ends[count] = node.end_byte
            parents[count] = parent
            count += 1
            if down():
                above.append(parent)
                if len(above) <= DEEPEST:
                    parent = count - 1
                continue
        while not across():
            if not up():
                for column in (names, roles, starts, ends, parents, stops):
                    del column[count:]
                return Syntax(data, names, roles, starts, ends, stops, parents)
            outer = above.pop()
            if len(above) < DEEPEST:
                stops[parent] = count
            parent = outer

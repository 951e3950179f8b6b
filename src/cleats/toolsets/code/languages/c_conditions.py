"""Conditions of C's preprocessor that part a statement, read as if the first branch were all.

`#ifdef` may stand between any two words: around one argument of a call, or around the head of an
`if` whose body follows behind it. To a grammar both branches are there at once, which costs it the
function and often those behind it. Where each branch is whole by itself, all of them are kept.
"""

import re
from typing import Final, NamedTuple

from msgspec import Struct

_TOKEN: Final = re.compile(
    rb"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*+\"?|'(?:\\.|[^'\\\n]){1,12}'"
    rb"|^[ \t]*#[ \t]*(\w*)(?:\\\r?\n|[^\n])*|[(){}/]|[^\s(){}/\"'][^\n(){}/\"']*",
    re.MULTILINE | re.DOTALL,
)
MOST: Final = 4000
"""Bytes of a condition. Statements are not that long: where a longer one seems to part one, it is
around a good part of the file, and what is in it was not counted well."""
_NEVER: Final = re.compile(rb"[ \t]*#[ \t]*if[ \t]+0\b")
_NESTED: Final = {b"(": (1, 0), b")": (-1, 0), b"{": (0, 1), b"}": (0, -1)}
_OVER: Final = (b"", b";", b"{", b"}", b":")
"""Behind what a statement begins."""


class _Depth(NamedTuple):
    """What is open at a place, and what came last before it."""

    rounds: int = 0
    braces: int = 0
    last: bytes = b""

    def after(self, token: bytes) -> "_Depth":
        rounds, braces = _NESTED.get(token, (0, 0))
        return _Depth(self.rounds + rounds, self.braces + braces, token.rstrip()[-1:])


class _Branch(Struct, gc=False):
    start: int
    """Where its directive begins, and where that ends."""
    body: int
    end: _Depth = _Depth()


class _Condition(Struct, gc=False):
    begin: _Depth
    branches: list[_Branch]

    def parts(self) -> bool:
        """Whether a statement goes on into it, or out of it."""
        rounds, braces, last = self.begin
        ends = [each.end for each in self.branches]
        if rounds > 0 or any(end[:2] != (rounds, braces) for end in ends):
            return True
        if last in _OVER:
            return False
        # Behind a macro without a semicolon there may well be whole functions.
        may_be_over = last in b")_" or last.isalnum()
        return not (may_be_over and ends[0].last in (b";", b"}"))

    def kept(self, data: bytes) -> _Branch:
        first, *others = self.branches
        return others[0] if others and _NEVER.match(data, first.start) else first


def settled(data: bytes) -> bytes:
    """The text with one branch of each condition that parts a statement, as long as before."""
    eased = bytearray(data)
    depth = _Depth()
    open_: list[_Condition] = []
    for found in _TOKEN.finditer(data):
        word = found[1]
        if word is None:
            if not found.group().startswith((b"//", b"/*")):
                depth = depth.after(found.group())
        elif word.startswith(b"if"):
            open_.append(_Condition(depth, [_Branch(found.start(), found.end())]))
        elif open_ and word == b"endif":
            depth = _ended(eased, open_.pop(), depth, found)
        elif open_ and word.startswith(b"el"):
            condition = open_[-1]
            condition.branches[-1].end = depth
            condition.branches.append(_Branch(found.start(), found.end()))
            depth = condition.begin
    return bytes(eased)


def _ended(eased: bytearray, condition: _Condition, depth: _Depth, end: re.Match[bytes]) -> _Depth:
    """Leave blanks for all but one branch, if need be; gives what is open behind it."""
    branches = condition.branches
    branches[-1].end = depth
    kept = condition.kept(end.string)
    if end.end() - branches[0].start <= MOST and condition.parts():
        stops = [*(each.start for each in branches[1:]), end.start()]
        for branch, stop in zip(branches, stops, strict=True):
            _blank(eased, branch.start, branch.body if branch is kept else stop)
        _blank(eased, end.start(), end.end())
    return kept.end


def _blank(eased: bytearray, start: int, end: int) -> None:
    eased[start:end] = blanked(eased[start:end])


def blanked(text: bytes | bytearray) -> bytes:
    """Spaces in the place of a text, on as many lines."""
    return re.sub(rb"[^\n]", b" ", bytes(text))

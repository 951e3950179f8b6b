"""Names that rules are about: how a pattern is written, and which patterns a name meets.

Names are those of steps: dotted, calls of a chain as `()`, an index as `[]`. `::`, `->` and `?.`
count as dots, and `$` does not count at all, so that one pattern serves whatever the language
writes between the parts of a name.

- `*.execute`: a receiver, of any length, then `execute`. `**.execute`: with a receiver or without.
- `*` elsewhere stands for (part of) one segment: `fs.write*`.
- `input()`: a call, never a mere read of that name.
- `run@subprocess`: only in a file that imports `subprocess`.

A pattern of a source also meets what is reached through it: `req.body` meets `req.body.name`. One
that ends with `*` is about members, not about methods: `req.*` does not meet `req.user().name`.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Generic, TypeVar

from msgspec import Struct

_SEGMENT = re.compile(r"[^.()\[\]]+")
MEMORY = 100_000
"""Names remembered with what they met; a repository says the same names again and again."""
LONGEST = 300
"""Letters of a name that anybody writes; what is longer is met by nothing and not remembered."""
MOST_WILDCARDS = 4
"""Each multiplies what a name can cost."""

R = TypeVar("R")


class Pattern(Struct):
    """A pattern, ready to be asked. What it takes is made when it is first asked."""

    key: str
    """A segment that every name it meets has."""
    module: str
    called: bool
    head: str
    body: str
    core: str
    """The longest text that every name it meets has; most names need not be asked for more."""
    through: bool
    shape: re.Pattern[str] | None = None

    @property
    def members(self) -> bool:
        """Whether it is about any member of something that is a source, but about no method."""
        return self.through and not self.called and self.body.endswith("*")

    def meets(self, name: str) -> bool:
        """Whether it is about a name, given in its canonical form."""
        body = self.body
        if not self.through and "*" not in body:
            if name == body:
                return self.head != "*."
            return bool(self.head) and name.endswith(body) and name[-len(body) - 1] == "."
        if self.core not in name:
            return False
        if self.shape is None:
            self.shape = self._shape()
        return self.shape.fullmatch(name) is not None

    def whole(self, name: str) -> bool:
        """Whether it is about a name itself, and not about what is reached through it."""
        return compiled(self.head + self.body, through=False).meets(canonical(name))

    def _shape(self) -> re.Pattern[str]:
        head = {"": "", "*.": r".+\.", "**.": r"(?:.*\.)?"}[self.head]
        middle = r"[^.(\[]*".join(re.escape(part) for part in self.body.split("*"))
        tail = "" if not self.through else r"(?:\(\).*)?" if self.called else r"(?:[.\[(].*)?"
        if self.members:
            tail = r"(?:[.\[].*)?"
        return re.compile(head + middle + tail)


def canonical(name: str) -> str:
    for separator in ("::", "->", "?."):
        if separator in name:
            name = name.replace(separator, ".")
    return name.replace("$", "")


@lru_cache(maxsize=1 << 14)  # a rule is read, checked and asked by the same texts
def compiled(text: str, *, through: bool) -> Pattern:
    """Make a pattern of its text; `through` lets it meet what is reached through the name.

    Raises:
        ValueError: It has no whole segment to look it up by, or too many wildcards.
    """
    # The first letter is never the sign of a module: `$@` are the arguments of a shell script.
    cut = text.find("@", 2)
    body, module = (text[:cut], text[cut + 1 :]) if cut > 0 else (text, "")
    body = canonical(body.strip())
    called = body.endswith("()")
    body = body.removesuffix("()")
    literals = [segment for segment in _SEGMENT.findall(body) if "*" not in segment]
    if not literals:
        raise ValueError(f"{text!r} has no segment without a wildcard")
    if body.count("*") > MOST_WILDCARDS:
        raise ValueError(f"{text!r} has more than {MOST_WILDCARDS} wildcards")
    head = "**." if body.startswith("**.") else "*." if body.startswith("*.") else ""
    body = body.removeprefix(head)
    core = max(body.split("*"), key=len)
    return Pattern(literals[-1], module, called, head, body, core, through)


class Lookup(Generic[R]):
    """Which rules a name meets. Asked about the same name twice, it remembers."""

    def __init__(self, entries: Iterable[tuple[Pattern, R]]) -> None:
        self._entries: dict[str, list[tuple[Pattern, R]]] = {}
        self.known: dict[str, tuple[tuple[Pattern, R], ...]] = {}
        """What was asked before; who asks in a hurry may look here first."""
        for pattern, rule in entries:
            self._entries.setdefault(pattern.key, []).append((pattern, rule))

    def __call__(self, name: str) -> tuple[tuple[Pattern, R], ...]:
        found = self.known.get(name)
        if found is None:
            if len(name) > LONGEST:
                return ()
            if len(self.known) >= MEMORY:
                self.known.clear()
            found = self.known[name] = self._find(canonical(name))
        return found

    def _find(self, name: str) -> tuple[tuple[Pattern, R], ...]:
        return tuple(
            entry
            for segment in dict.fromkeys(_SEGMENT.findall(name))
            for entry in self._entries.get(segment, ())
            if entry[0].meets(name)
        )


def imported(module: str, imports: Iterable[str]) -> bool:
    """Whether a file with these imports knows a module, as a whole or in part."""
    wanted = canonical(module)
    for name in imports:
        plain = canonical(name.removeprefix("node:"))
        if plain == wanted or plain.startswith((f"{wanted}.", f"{wanted}/")):
            return True
    return False

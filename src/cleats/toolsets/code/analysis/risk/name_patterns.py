"""Name patterns of rules: their syntax, and the lookup of patterns that match a name.

Names are those of steps: dotted, with `()` for calls of a chain and `[]` for an index. `::`, `->` and `?.` count as
dots, and `$` is ignored, so that one pattern works for every separator of a language.

- `*.execute`: a receiver of any length, then `execute`. `**.execute`: with or without a receiver.
- `*` elsewhere matches (a part of) one segment: `fs.write*`.
- `input()`: a call, never a mere read of that name.
- `run@subprocess`: only in a file that imports `subprocess`.

The pattern of a source also matches members: `req.body` matches `req.body.name`. One that ends with `*` is about
members, not methods: `req.*` does not match `req.user().name`.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Generic, TypeVar

from msgspec import Struct

_SEGMENT_PATTERN = re.compile(r"[^.()\[\]]+")
MAX_CACHED_NAMES = 100_000
"""Names that are cached with their matches; a repository repeats the same names very often."""
MAX_NAME_CHARS = 300
"""The longest name that is looked up; a longer one matches nothing and is not cached."""
MAX_WILDCARDS = 4
"""Each wildcard multiplies the cost of matching a name."""

R = TypeVar("R")


class NamePattern(Struct):
    """A parsed pattern. Its regular expression is compiled at first use."""

    key_segment: str
    """A segment that every matching name contains."""
    module: str
    is_call: bool
    head: str
    body: str
    longest_literal: str
    """The longest text that every matching name contains; it rules out most names cheaply."""
    matches_members: bool
    regex: re.Pattern[str] | None = None

    @property
    def matches_members_only(self) -> bool:
        """True if the pattern is about any member of a source, but about no method."""
        return self.matches_members and not self.is_call and self.body.endswith("*")

    def matches(self, name: str) -> bool:
        """Return True if the pattern matches a canonical name."""
        body = self.body
        if not self.matches_members and "*" not in body:
            if name == body:
                return self.head != "*."
            return bool(self.head) and name.endswith(body) and name[-len(body) - 1] == "."
        if self.longest_literal not in name:
            return False
        if self.regex is None:
            self.regex = self._build_regex()
        return self.regex.fullmatch(name) is not None

    def matches_exactly(self, name: str) -> bool:
        """Return True if the pattern matches a name itself, not only what it is a prefix of."""
        return compile_pattern(self.head + self.body, matches_members=False).matches(canonicalize_name(name))

    def _build_regex(self) -> re.Pattern[str]:
        head = {"": "", "*.": r".+\.", "**.": r"(?:.*\.)?"}[self.head]
        middle = r"[^.(\[]*".join(re.escape(part) for part in self.body.split("*"))
        tail = "" if not self.matches_members else r"(?:\(\).*)?" if self.is_call else r"(?:[.\[(].*)?"
        if self.matches_members_only:
            tail = r"(?:[.\[].*)?"
        return re.compile(head + middle + tail)


def canonicalize_name(name: str) -> str:
    for separator in ("::", "->", "?."):
        if separator in name:
            name = name.replace(separator, ".")
    return name.replace("$", "")


@lru_cache(maxsize=1 << 14)  # a rule is read, checked and compiled from the same texts
def compile_pattern(text: str, *, matches_members: bool) -> NamePattern:
    """Parse a pattern; `matches_members` lets it match members of the name as well.

    Raises:
        ValueError: The pattern has no complete segment to look it up by, or too many wildcards.
    """
    # The first characters never start a module: `$@` are the arguments of a shell script.
    cut = text.find("@", 2)
    body, module = (text[:cut], text[cut + 1 :]) if cut > 0 else (text, "")
    body = canonicalize_name(body.strip())
    is_call = body.endswith("()")
    body = body.removesuffix("()")
    literals = [segment for segment in _SEGMENT_PATTERN.findall(body) if "*" not in segment]
    if not literals:
        raise ValueError(f"{text!r} has no segment without a wildcard")
    if body.count("*") > MAX_WILDCARDS:
        raise ValueError(f"{text!r} has more than {MAX_WILDCARDS} wildcards")
    head = "**." if body.startswith("**.") else "*." if body.startswith("*.") else ""
    body = body.removeprefix(head)
    longest_literal = max(body.split("*"), key=len)
    return NamePattern(literals[-1], module, is_call, head, body, longest_literal, matches_members)


class NameCache(dict[str, R]):
    """The results of a function of a name; `cache[name]` computes a result that is not cached."""

    def __init__(self, compute: Callable[[str], R]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, name: str) -> R:
        if len(name) > MAX_NAME_CHARS:
            return self._compute(name)
        if len(self) >= MAX_CACHED_NAMES:
            self.clear()
        result = self[name] = self._compute(name)
        return result


class PatternLookup(NameCache[tuple[tuple[NamePattern, R], ...]], Generic[R]):
    """The rules that match a name, each with its pattern."""

    def __init__(self, entries: Iterable[tuple[NamePattern, R]]) -> None:
        super().__init__(self._find_matches)
        self._entries: dict[str, list[tuple[NamePattern, R]]] = {}
        for pattern, rule in entries:
            self._entries.setdefault(pattern.key_segment, []).append((pattern, rule))

    def _find_matches(self, name: str) -> tuple[tuple[NamePattern, R], ...]:
        if len(name) > MAX_NAME_CHARS:
            return ()
        canonical_name = canonicalize_name(name)
        return tuple(
            entry
            for segment in dict.fromkeys(_SEGMENT_PATTERN.findall(canonical_name))
            for entry in self._entries.get(segment, ())
            if entry[0].matches(canonical_name)
        )


def is_imported(module: str, imports: Iterable[str]) -> bool:
    """Return True if a file with these imports imports a module or a part of it."""
    canonical_module = canonicalize_name(module)
    beginnings = (f"{canonical_module}.", f"{canonical_module}/")
    names = (canonicalize_name(name.removeprefix("node:")) for name in imports)
    return any(name == canonical_module or name.startswith(beginnings) for name in names)

"""SQL: a chunk for each statement, and which tables it reads and writes.

Strings and comments are blanked first, so that nothing in them is taken for the end of a statement
or the name of a table. Bodies in dollar quotes are code: they stay, but do not end a statement.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cleats.toolsets.code.structure.outline import Outline
from cleats.toolsets.code.structure.source import BLOCK

_PART = r"(?:[\w$#@]+|\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`|\[[^\]\n]{1,200}\])"
_NAME = rf"({_PART}(?:\.{_PART})*+)"
_HIDDEN = re.compile(r"'(?:[^'\\]++|''|\\.)*+'?|--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_MARK = re.compile(
    r"\$(?:[A-Za-z_]\w*)?\$|;|//|\b(?:begin|case|end)\b|^[ \t]*+(?:go|/)[ \t]*\r?$"
    r"|^[ \t]*+delimiter[ \t]+(\S+)|\"[^\"\n]*\"|`[^`\n]*`",
    re.IGNORECASE | re.MULTILINE,
)
_CREATE = re.compile(
    r"\s*(?:create|alter|drop)\s+(?:or\s+replace\s+)?(?:(?:global|local|temp|temporary|unique|unlogged"
    r"|materialized|recursive|definer\s*=\s*\S+|clustered|nonclustered|external|virtual|foreign"
    r"|constraint|editionable|concurrently)\s+)*+(?P<what>table|view|index|function|procedure|trigger"
    r"|type|schema|sequence|database|role|user|policy|extension|domain|package(?:\s+body)?|server"
    r"|event|rule|aggregate|operator|cast|synonym|publication|subscription)\s+(?:concurrently\s+)?"
    r"(?:if\s+(?:not\s+)?exists\s+)?(?:only\s+)?" + _NAME,
    re.IGNORECASE,
)
_ROUTINE: Final = frozenset({"function", "procedure", "trigger", "package", "event"})
_CHANGED = re.compile(
    r"\b(?:insert\s+(?:or\s+\w+\s+|ignore\s+)?into|update(?:\s+only)?|delete\s+from|merge\s+into"
    r"|replace\s+into|truncate(?:\s+table)?|create\s+(?:temp(?:orary)?\s+|unlogged\s+)?table"
    r"(?:\s+if\s+not\s+exists)?|alter\s+table(?:\s+if\s+exists)?(?:\s+only)?|copy)\s+" + _NAME,
    re.IGNORECASE,
)
_READ = re.compile(r"(?<!delete\s)\b(?:from|join)\s+(?:only\s+|lateral\s+)?" + _NAME, re.IGNORECASE)
_USED = re.compile(r"\b(?:references|on)\s+" + _NAME + r"\s*\(", re.IGNORECASE)
_CALLED = re.compile(
    r"\b(?:call|exec(?:ute)?(?:\s+(?:function|procedure))?)\s+" + _NAME, re.IGNORECASE
)
_VISIBLE = re.compile(r"\S")
_WORDS = re.compile(r"\s*(\w+)")
_NOT_NAMES: Final = frozenset(
    {"select", "set", "values", "where", "table", "only", "unnest", "dual"}
)
_QUOTES: Final = '"`[]'


def read(outline: Outline) -> None:
    text = "\n".join(outline.source.lines)
    clean = _HIDDEN.sub(_blank, text)
    line = at = 0
    before = (-BLOCK, "")
    for start, end in Splitter(clean).statements():
        line += text.count("\n", at, start)
        at = start
        name = _name(clean[start : start + 2000])
        # A thousand rows of one table are one thing to find, as long as it can be read.
        if name != before[1] or line - before[0] >= BLOCK:
            first = text[start : start + 200].strip().split("\n", 1)[0]
            outline.cut(_with_comment(outline, line), "statement", name, signature=first)
            before = (line, name)
        _mentions(outline, clean[start:end], line)


def _blank(found: re.Match[str]) -> str:
    """Spaces of the same length, so that places stay what they are."""
    hidden = found[0]
    if "\n" not in hidden:
        return " " * len(hidden)
    return "\n".join(" " * len(part) for part in hidden.split("\n"))


@dataclass(slots=True)
class Splitter:
    """Where the statements of a text begin and end."""

    clean: str
    start: int = 0
    depth: int = 0
    """Of BEGIN and CASE, which counts only in what holds a body."""
    ending: str = ";"
    quote: str = ""
    routine: bool | None = None
    """Whether the statement holds a body; none before the first word that asks for it."""

    def statements(self) -> Iterator[tuple[int, int]]:
        for mark in _MARK.finditer(self.clean):
            word = mark[0].strip().lower()
            if self._is_within(word):
                continue
            if mark[1]:
                self._restart(mark.end())
                self.ending = mark[1]
            elif word in ("begin", "case", "end"):
                self._count(word, mark.end())
            elif word in ("go", "/") or (self.depth == 0 and word == self.ending):
                yield from self._until(mark.start(), mark.end())
                self._restart(mark.end())
        yield from self._until(len(self.clean), len(self.clean))

    def _is_within(self, word: str) -> bool:
        """Whether a mark opens, closes or lies in quotes."""
        if word.startswith("$") and word != self.ending:
            self.quote = "" if self.quote == word else self.quote or word
            return True
        return bool(self.quote) or word[0] in '"`'

    def _count(self, word: str, end: int) -> None:
        if self.routine is None:
            found = _CREATE.match(self.clean, self.start)
            self.routine = found is not None and found["what"].lower().split()[0] in _ROUTINE
        if self.routine and word != "end":
            self.depth += 1
        elif self.routine and not _ends_other(self.clean, end):
            self.depth = max(self.depth - 1, 0)

    def _until(self, end: int, after: int) -> Iterator[tuple[int, int]]:
        if found := _VISIBLE.search(self.clean, self.start, end):
            yield found.start(), after

    def _restart(self, at: int) -> None:
        self.start, self.depth, self.routine = at, 0, None


def _ends_other(clean: str, at: int) -> bool:
    """`END IF` and its like end what is not counted."""
    following = clean[at : at + 20].split(None, 1)
    return bool(following) and following[0].rstrip(";").lower() in ("if", "loop", "while", "repeat")


def _name(head: str) -> str:
    if found := _CREATE.match(head):
        return _bare(found[found.lastindex or 0])
    verb = _WORDS.match(head)
    if verb is None:
        return ""
    target = _CHANGED.match(head.lstrip()) or _READ.search(head) or _CALLED.match(head.lstrip())
    return f"{verb[1].upper()} {_bare(target[1])}" if target else verb[1].upper()


def _bare(name: str) -> str:
    return "".join(char for char in name if char not in _QUOTES)


def _mentions(outline: Outline, statement: str, line: int) -> None:
    for pattern, what in ((_CHANGED, "writes"), (_READ, "reads"), (_USED, ""), (_CALLED, "calls")):
        for found in pattern.finditer(statement):
            name = _bare(found[1])
            if name.lower() in _NOT_NAMES:
                continue
            if what == "writes":
                outline.say(line, "writes", name)
            elif what == "reads":
                outline.say(line, "reads", name)
            elif what == "calls":
                outline.say(line, "calls", name)
            outline.say(line, "uses", name)


def _with_comment(outline: Outline, at: int) -> int:
    while at > 0 and outline.source.lines[at - 1].lstrip().startswith("--"):
        at -= 1
    return at

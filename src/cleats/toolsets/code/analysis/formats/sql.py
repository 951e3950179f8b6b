"""SQL: a chunk for each statement, and the tables it reads and writes.

Strings and comments are blanked first, so that their contents are never taken for the end of a statement or the name of
a table. Bodies in dollar quotes are code: they stay, but do not end a statement.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from cleats.toolsets.code.analysis.formats.outline import BLOCK_LINES, MentionKind, Outline

_NAME_PART_PATTERN = r"(?:[\w$#@]+|\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`|\[[^\]\n]{1,200}\])"
_NAME_PATTERN = rf"({_NAME_PART_PATTERN}(?:\.{_NAME_PART_PATTERN})*+)"
_STRING_OR_COMMENT_PATTERN = re.compile(r"'(?:[^'\\]++|''|\\.)*+'?|--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_DELIMITER_PATTERN = re.compile(
    r"\$(?:[A-Za-z_]\w*)?\$|;|//|\b(?:begin|case|end)\b|^[ \t]*+(?:go|/)[ \t]*\r?$"
    r"|^[ \t]*+delimiter[ \t]+(\S+)|\"[^\"\n]*\"|`[^`\n]*`",
    re.IGNORECASE | re.MULTILINE,
)
_DEFINITION_PATTERN = re.compile(
    r"\s*(?:create|alter|drop)\s+(?:or\s+replace\s+)?(?:(?:global|local|temp|temporary|unique|unlogged"
    r"|materialized|recursive|definer\s*=\s*\S+|clustered|nonclustered|external|virtual|foreign"
    r"|constraint|editionable|concurrently)\s+)*+(?P<what>table|view|index|function|procedure|trigger"
    r"|type|schema|sequence|database|role|user|policy|extension|domain|package(?:\s+body)?|server"
    r"|event|rule|aggregate|operator|cast|synonym|publication|subscription)\s+(?:concurrently\s+)?"
    r"(?:if\s+(?:not\s+)?exists\s+)?(?:only\s+)?" + _NAME_PATTERN,
    re.IGNORECASE,
)
_ROUTINE_KINDS: Final = frozenset({"function", "procedure", "trigger", "package", "event"})
_WRITE_PATTERN = re.compile(
    r"\b(?:insert\s+(?:or\s+\w+\s+|ignore\s+)?into|update(?:\s+only)?|delete\s+from|merge\s+into"
    r"|replace\s+into|truncate(?:\s+table)?|create\s+(?:temp(?:orary)?\s+|unlogged\s+)?table"
    r"(?:\s+if\s+not\s+exists)?|alter\s+table(?:\s+if\s+exists)?(?:\s+only)?|copy)\s+" + _NAME_PATTERN,
    re.IGNORECASE,
)
_READ_PATTERN = re.compile(r"(?<!delete\s)\b(?:from|join)\s+(?:only\s+|lateral\s+)?" + _NAME_PATTERN, re.IGNORECASE)
_REFERENCE_PATTERN = re.compile(r"\b(?:references|on)\s+" + _NAME_PATTERN + r"\s*\(", re.IGNORECASE)
_CALL_PATTERN = re.compile(r"\b(?:call|exec(?:ute)?(?:\s+(?:function|procedure))?)\s+" + _NAME_PATTERN, re.IGNORECASE)
_MENTION_PATTERNS: Final[Sequence[tuple[MentionKind, re.Pattern[str]]]] = (
    ("writes", _WRITE_PATTERN),
    ("reads", _READ_PATTERN),
    ("uses", _REFERENCE_PATTERN),
    ("calls", _CALL_PATTERN),
)
_NON_SPACE_PATTERN = re.compile(r"\S")
_FIRST_WORD_PATTERN = re.compile(r"\s*(\w+)")
_NON_TABLE_WORDS: Final = frozenset({"select", "set", "values", "where", "table", "only", "unnest", "dual"})
_QUOTE_CHARS: Final = '"`[]'


def read_sql(outline: Outline) -> None:
    text = outline.source.text
    blanked_text = _STRING_OR_COMMENT_PATTERN.sub(_blank_match, text)
    line = offset = 0
    previous = (-BLOCK_LINES, "")
    for start, end in SqlSplitter(blanked_text).iterate_statements():
        line += text.count("\n", offset, start)
        offset = start
        name = _name_statement(blanked_text[start : start + 2000])
        # A thousand rows of one table form one chunk, as long as it stays readable.
        if name != previous[1] or line - previous[0] >= BLOCK_LINES:
            first_line = text[start : start + 200].strip().split("\n", 1)[0]
            outline.cut(outline.source.find_comment_start(line, "--"), "statement", name, signature=first_line)
            previous = (line, name)
        _collect_mentions(outline, blanked_text[start:end], line)


def _blank_match(match: re.Match[str]) -> str:
    """Return spaces of the same length, so that positions do not change."""
    return "\n".join(" " * len(part) for part in match[0].split("\n"))


class SqlSplitter(Struct):
    """The boundaries of the statements in a text."""

    text: str
    start: int = 0
    depth: int = 0
    """Nesting of BEGIN and CASE, counted only in statements with a body."""
    terminator: str = ";"
    quote: str = ""
    is_routine: bool | None = None
    """True if the statement has a body; None until a word requires the answer."""

    def iterate_statements(self) -> Iterator[tuple[int, int]]:
        for delimiter in _DELIMITER_PATTERN.finditer(self.text):
            word = delimiter[0].strip().lower()
            if self._is_quoted(word):
                continue
            if delimiter[1]:
                self._start_statement(delimiter.end())
                self.terminator = delimiter[1]
            elif word in ("begin", "case", "end"):
                self._update_depth(word, delimiter.end())
            elif word in ("go", "/") or (self.depth == 0 and word == self.terminator):
                yield from self._yield_statement(delimiter.start(), delimiter.end())
                self._start_statement(delimiter.end())
        yield from self._yield_statement(len(self.text), len(self.text))

    def _is_quoted(self, word: str) -> bool:
        """Return whether a delimiter opens, closes or lies in quotes."""
        if word.startswith("$") and word != self.terminator:
            self.quote = "" if self.quote == word else self.quote or word
            return True
        return bool(self.quote) or word[0] in '"`'

    def _update_depth(self, word: str, end: int) -> None:
        if self.is_routine is None:
            definition = _DEFINITION_PATTERN.match(self.text, self.start)
            self.is_routine = definition is not None and definition["what"].lower().split()[0] in _ROUTINE_KINDS
        if self.is_routine and word != "end":
            self.depth += 1
        elif self.is_routine and not _ends_control_block(self.text, end):
            self.depth = max(self.depth - 1, 0)

    def _yield_statement(self, end: int, next_start: int) -> Iterator[tuple[int, int]]:
        if match := _NON_SPACE_PATTERN.search(self.text, self.start, end):
            yield match.start(), next_start

    def _start_statement(self, position: int) -> None:
        self.start, self.depth, self.is_routine = position, 0, None


def _ends_control_block(text: str, position: int) -> bool:
    """Return whether an END closes an uncounted block, such as `END IF`."""
    following = text[position : position + 20].split(None, 1)
    return bool(following) and following[0].rstrip(";").lower() in ("if", "loop", "while", "repeat")


def _name_statement(head: str) -> str:
    if definition := _DEFINITION_PATTERN.match(head):
        return _strip_quotes(definition[definition.lastindex or 0])
    verb = _FIRST_WORD_PATTERN.match(head)
    if verb is None:
        return ""
    target = _WRITE_PATTERN.match(head.lstrip()) or _READ_PATTERN.search(head) or _CALL_PATTERN.match(head.lstrip())
    return f"{verb[1].upper()} {_strip_quotes(target[1])}" if target else verb[1].upper()


def _strip_quotes(name: str) -> str:
    return "".join(char for char in name if char not in _QUOTE_CHARS)


def _collect_mentions(outline: Outline, statement: str, line: int) -> None:
    for kind, pattern in _MENTION_PATTERNS:
        for match in pattern.finditer(statement):
            name = _strip_quotes(match[1])
            if name.lower() in _NON_TABLE_WORDS:
                continue
            for mention in dict.fromkeys((kind, "uses")):
                outline.add_mention(line, mention, name)

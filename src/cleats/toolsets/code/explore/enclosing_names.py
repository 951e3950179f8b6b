"""The declaration around a line, found without a parser: by indentation and by the words that begin a declaration.

A search for text has hits in many files, and parsing them takes longer than the search. What this reads wrongly, such
as code without indentation, is left without a name.
"""

import re
from collections.abc import Sequence
from typing import Final

MAX_SCANNED_LINES: Final = 3000
"""Lines above a hit that are looked at."""

MAX_HEAD_LINES: Final = 6
"""Lines of the head of a function up to its brace."""

MAX_LINE_CHARS: Final = 300
"""Characters of a line that are looked at; longer ones are data."""

_TAB_WIDTH: Final = 4

_DECLARING_PATTERN: Final = re.compile(
    r"^\s*(?:[\w@<>.*&:\[\]]+(?:\([\w]*\))?\s+){0,6}?"
    r"(?P<word>def|class|func|function\*?|fn|fun|struct|union|enum|trait|interface|mod|module|namespace|object|record|protocol"
    r"|extension|impl(?:<[^{]*?>)?(?:\s+[\w:<>', ]+\s+for(?=\s))?)\s+"
    r"(?:\(\w*\s*\*?(?P<receiver>\w+)[^)]*\)\s*)?(?P<name>[\w.]+(?:::\w+)*)(?!.*=\s*\{)"
)
_ASSIGNED_PATTERN: Final = re.compile(
    r"^\s*(?:export\s+)?(?:(?:const|let|var)\s+)?(?:\w+\.)*(?P<name>\w+)(?:\s*:[^=]+?)?\s*[=:]\s*"
    r"(?:async\s*)?(?:function\b|\([^()]*\)\s*(?::[^=]+)?=>|\w+\s*=>)"
)
_CALLABLE_PATTERN: Final = re.compile(
    r"^\s*(?:[\w<>\[\],.*&:?@]+\s+)*[*&]*(?:\w+::)*(?P<name>~?\w+)\s*(?:<[^<>()]*>)?\((?!.*(?:=>|\bfunc|\bdo\b))[^;]*$"
)
"""The head of a function in languages without a word for it; a block has to follow."""

_TYPE_WORDS: Final = frozenset({"struct", "union", "enum"})
"""Words that also begin the type of a variable or of a result."""

_NOT_NAMES: Final = frozenset(
    re.findall(
        r"\w+",
        """if for foreach while switch catch return else elif elseif with match when unless do try lock using until
        sizeof assert new throw raise yield await in and or not case print super this typeof delete go defer select
        func var""",
    )
)

_SKIPPED_PATTERN: Final = re.compile(r"\s*(?:$|[{}()\[\]#/*\"'|+.,:<>=&?-]|\w+:\s*$|@\w|(?:public|private|protected):)")
"""Lines that neither declare anything nor end a declaration by their indentation."""


def find_enclosing_name(lines: Sequence[str], number: int) -> str:
    """Return the name of the declaration around a line, with those around it; empty where none is found."""
    names = [_read_declared_name(lines, number)]
    indentation = _measure_indentation(lines[number - 1])
    for above in range(number - 1, max(0, number - 1 - MAX_SCANNED_LINES), -1):
        if not indentation:
            break
        line = lines[above - 1]
        if _SKIPPED_PATTERN.match(line):
            continue
        depth = _measure_indentation(line)
        if depth < indentation:
            indentation = depth
            names.append(_read_declared_name(lines, above))
    return ".".join(filter(None, reversed(names)))


def _read_declared_name(lines: Sequence[str], number: int) -> str:
    """Return the name that a line declares; empty if it declares nothing that has a body."""
    line = lines[number - 1][:MAX_LINE_CHARS]
    if matched := _DECLARING_PATTERN.match(line):
        if matched["word"] in _TYPE_WORDS and not _begins_block(lines, number):
            return ""
        name = matched["name"].replace("::", ".")
        return f"{matched['receiver']}.{name}" if matched["receiver"] else name
    if matched := _ASSIGNED_PATTERN.match(line):
        return matched["name"]
    matched = _CALLABLE_PATTERN.match(line)
    if matched is None or matched["name"] in _NOT_NAMES or line.split(None, 1)[0] in _NOT_NAMES:
        return ""
    return matched["name"] if _begins_block(lines, number) else ""


def _begins_block(lines: Sequence[str], number: int) -> bool:
    """Return whether a brace opens after the head that begins in a line."""
    depth = 0
    for position in range(number - 1, min(len(lines), number - 1 + MAX_HEAD_LINES)):
        text = lines[position].strip()
        depth += text.count("(") - text.count(")")
        if depth <= 0:
            following = lines[position + 1].strip() if position + 1 < len(lines) else ""
            return text.endswith("{") or following.startswith("{")
    return False


def _measure_indentation(line: str) -> int:
    start = line[: len(line) - len(line.lstrip())]
    return len(start.expandtabs(_TAB_WIDTH))

"""Syntax that is newer than a grammar, put in words that the grammar knows.

Only asked where a grammar has failed: one construct that it does not know can cost it all that
follows. The new text is as long as the old one and is parsed in its stead; what nodes say is still
read from the file, so a name or a signature never holds what is written here.
"""

import re
from typing import Final

_UNIT: Final = re.compile(
    rb"^([ \t]*)((?:export[ \t]+)?(?:import|module)\b[^;\n(=]*;)", re.MULTILINE
)
_EXPORT: Final = re.compile(rb"^([ \t]*)export(?=\s+(\w+|\{|\[))", re.MULTILINE)
_BARE: Final = (b"template", b"using", b"typedef", b"{", b"[")
"""What no specifier may stand before."""
_CONSTEVAL: Final = re.compile(rb"\bif ?(!? ?)consteval( ?)(?=\{)")

_MODULE: Final = re.compile(rb"^(\s*import\s+)module(?=\s+\w)", re.MULTILINE)

# Lengths are bounded, so that a line of a million words costs no more than any other.
_CONTEXT: Final = re.compile(
    rb"^([ \t]*)context([ \t]*\([^()\n]{0,400}\))(?=\s*[\w@])", re.MULTILINE
)
_GENERIC: Final = re.compile(rb"<[^<>]*>|\?")
_GUARDED: Final = rb"(?=[ \t(](?:(?!->)[^{}\n]){0,400}->)"
"""What is between `if` and the arrow of a branch."""
_GUARD: Final = re.compile(
    rb"^([ \t]*[!\w.\"'](?:(?!->)[^{}=\n]){0,400}[ \t])if" + _GUARDED, re.MULTILINE
)
_ELSE_GUARD: Final = re.compile(rb"^[ \t]*else[ \t]+if" + _GUARDED, re.MULTILINE)


def cpp(data: bytes) -> bytes:
    """Modules of C++20: their lines become directives, and `export` the specifier `inline`."""
    eased = _UNIT.sub(lambda unit: unit[1] + b"#" + unit[2][1:], data)
    eased = _EXPORT.sub(
        lambda found: found[1] + (b"      " if found[2] in _BARE else b"inline"), eased
    )
    return _CONSTEVAL.sub(_runtime, eased)


def _runtime(found: re.Match[bytes]) -> bytes:
    """`if consteval {` with a condition that may stand in brackets."""
    return b"if(0)".ljust(len(found.group()))


def kotlin(data: bytes) -> bytes:
    """Kotlin 2.2: a guard becomes one more condition, and a context an annotation."""
    eased = _CONTEXT.sub(_annotation, data)
    eased = _ELSE_GUARD.sub(lambda found: b" " * len(found.group()), eased)
    return _GUARD.sub(rb"\1, ", eased)


def java(data: bytes) -> bytes:
    """`import module` of Java 25 without its second word."""
    return _MODULE.sub(rb"\1      ", data)


def _annotation(found: re.Match[bytes]) -> bytes:
    before, within = b"", found[2]
    while within != before:
        before, within = within, _GENERIC.sub(lambda part: b" " * len(part.group()), within)
    return found[1] + b"@ontext" + within.replace(b":", b"=")

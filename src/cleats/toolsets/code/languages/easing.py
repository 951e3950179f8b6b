"""Syntax that is newer than a grammar, put in words that the grammar knows.

One construct that a grammar does not know can cost it all that follows, and what a macro holds is
only tokens to it. The new text is as long as the old one and is parsed in its stead; what nodes say
is still read from the file, so a name or a signature never holds what is written here.
"""

import re
from typing import Final

from cleats.toolsets.code.languages import c_macros

_UNIT: Final = re.compile(
    rb"^([ \t]*)((?:export[ \t]+)?(?:import|module)\b[^;\n(=]*;)", re.MULTILINE
)
_EXPORT: Final = re.compile(rb"^([ \t]*)export(?=\s+(\w+|\{|\[))", re.MULTILINE)
_BARE: Final = (b"template", b"using", b"typedef", b"{", b"[")
"""What no specifier may stand before."""
_CONSTEVAL: Final = re.compile(rb"\bif ?(!? ?)consteval( ?)(?=\{)")

_VARIANCE: Final = re.compile(
    rb"(?:(?<=[<,])\s{0,80}|^[ \t]{0,80})"
    rb"(in\s+out|in|out)(?=\s+[A-Za-z_$][\w$]*\s*(?:extends\b|[=,>]))",
    re.MULTILINE,
)
_IMPORTED: Final = re.compile(rb"\bimport\([\"'][^\"'\n]{1,400}[\"']\)\.(?=[\w$.]{1,200}<)")
_TYPES: Final = re.compile(rb"\b(export\s+)type(?=\s*\*)")
_USING: Final = re.compile(rb"\busing(?=\s*[?:,)=.])")

_FLOW: Final = re.compile(
    rb"(\bimport\s+)typeof\b|^((?:export\s+)?)opaque(?=\s+type\b)"
    rb"|([{,\s])[+-](?=[\w$]+\??:)|(<)[+-](?=[A-Z])|([:|(,<=]\s*)\?(?=\()"
    rb"|(\{)\||()\|(?=\})|()\.\.\.(?=\s*(?:[,}]|\|\}))",
    re.MULTILINE,
)
"""What Flow says of types and TypeScript does not; what stands before it is kept."""

_UNNAMED: Final = re.compile(rb"([(,]\s*\??)(strin|numbe|boolea|an)[grny](?=\s*[,)])")
"""A parameter of a function type that is only a type."""

_ISOLATED: Final = re.compile(
    rb"(?<=[>:)])[ \t]{0,8}sending(?=\s+[@\w(\[])|\bnonisolated\(unsafe\)|@_\w{1,80}(?=\s)"
    rb"|(?<=[\[,( ])~(?=\w)"
)

_MODULE: Final = re.compile(rb"^([ \t]*import\s+)module(?=\s+\w)", re.MULTILINE)

_BRACE: Final = re.compile(
    rb"//[^\n]*|/\*.*?(?:\*/|\Z)|r(#+)\".*?(?:\"\1|\Z)|\"(?:\\.|[^\"\\])*(?:\"|\Z)"
    rb"|'(?:\\.[^']{0,8}|[^\\'])'|[{}]",
    re.DOTALL,
)
"""Braces, and what may hold some that are none."""
_WRAPPED: Final = re.compile(rb"^[ \t]*([a-z_][\w:]*![ \t]*\{)", re.MULTILINE)
_ITEMS: Final = re.compile(
    rb"(?:\s|//[^\n]*|/\*.*?\*/|#!?\[[^\]]*\])*"
    rb"(?:(?:pub|unsafe|async|const|extern)\b[^;{=]{0,40}?)?"
    rb"\b(?:fn|struct|enum|impl|mod|use|trait|type|macro_rules)\b",
    re.DOTALL,
)

# Lengths are bounded, so that a line of a million words costs no more than any other.
_CONTEXT: Final = re.compile(
    rb"^([ \t]*)context([ \t]*\([^()\n]{0,400}\))(?=\s*[\w@])", re.MULTILINE
)
_ANNOTATION: Final = re.compile(rb"\bannotation(?=[ \t]+class[ \t]+\w+[ \t]*(?:\n|$))")
_GENERIC: Final = re.compile(rb"<[^<>]*>|\?")
_GUARDED: Final = rb"(?=[ \t(](?:(?!->)[^{}\n]){0,400}->)"
"""What is between `if` and the arrow of a branch."""
_GUARD: Final = re.compile(
    rb"^([ \t]*[!\w.\"'](?:(?!->)[^{}=\n]){0,400}[ \t])if" + _GUARDED, re.MULTILINE
)
_ELSE_GUARD: Final = re.compile(rb"^[ \t]*else[ \t]+if" + _GUARDED, re.MULTILINE)


def cpp(data: bytes) -> bytes:
    """Modules of C++20: their lines become directives, and `export` the specifier `inline`.

    Macros in heads are left out.
    """
    eased = _UNIT.sub(lambda unit: unit[1] + b"#" + unit[2][1:], data)
    eased = _EXPORT.sub(
        lambda found: found[1] + (b"      " if found[2] in _BARE else b"inline"), eased
    )
    return c_macros.without(_CONSTEVAL.sub(_runtime, eased))


def _runtime(found: re.Match[bytes]) -> bytes:
    """`if consteval {` with a condition that may stand in brackets."""
    return b"if(0)".ljust(len(found.group()))


def kotlin(data: bytes) -> bytes:
    """Kotlin 2.2: a guard becomes one more condition, and a context an annotation."""
    eased = _CONTEXT.sub(_annotation, data)
    eased = _ELSE_GUARD.sub(_blank, eased)
    return _GUARD.sub(rb"\1, ", eased)


def typescript(data: bytes) -> bytes:
    """Types without where they are imported from and how they vary, and names that are words."""
    eased = _VARIANCE.sub(_varied, data)
    eased = _IMPORTED.sub(_blank, eased)
    eased = _UNNAMED.sub(rb"\1\2_", _FLOW.sub(_unsaid, eased))
    return _USING.sub(b"usinG", _TYPES.sub(rb"\1    ", eased))


def _blank(found: re.Match[bytes]) -> bytes:
    return b" " * len(found.group())


def _varied(found: re.Match[bytes]) -> bytes:
    return found.group()[: -len(found[1])] + b" " * len(found[1])


def _unsaid(found: re.Match[bytes]) -> bytes:
    return (found[found.lastindex or 0]).ljust(len(found.group()))


def kotlin_annotations(data: bytes) -> bytes:
    """`annotation class Audited` without its first word: three names are a call to the grammar."""
    return _ANNOTATION.sub(_blank, data)


def swift(data: bytes) -> bytes:
    """Without words of Swift 6 on who may use a value, the compiler's own attributes, and `~x`."""
    return _ISOLATED.sub(_blank, data)


def java(data: bytes) -> bytes:
    """`import module` of Java 25 without its second word."""
    return _MODULE.sub(rb"\1      ", data)


def rust(data: bytes) -> bytes:
    """Items in a macro, such as `cfg_rt! { pub fn spawn() {} }`, without the macro."""
    heads = {found.end(1) - 1: found.start(1) for found in _WRAPPED.finditer(data)}
    if not heads:
        return data
    eased, opened = bytearray(data), list[int]()
    for brace in _BRACE.finditer(data):
        at = brace.start()
        if brace.group() == b"{":
            opened.append(at)
        elif brace.group() == b"}" and opened:
            start = opened.pop()
            if start in heads and _ITEMS.match(data, start + 1, start + 4000):
                eased[heads[start] : start + 1] = b" " * (start + 1 - heads[start])
                eased[at : at + 1] = b" "
    return bytes(eased)


def _annotation(found: re.Match[bytes]) -> bytes:
    before, within = b"", found[2]
    while within != before:
        before, within = within, _GENERIC.sub(_blank, within)
    return found[1] + b"@ontext" + within.replace(b":", b"=")

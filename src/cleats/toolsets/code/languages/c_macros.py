"""Macros in the heads of C and C++: words to a reader, names of types to the grammar.

`class API Desk : Base {`, `void f() REQUIRES(lock) {` and a line that is only `BEGIN_NAMESPACE` are
no C++ until they are expanded, and each can cost the grammar all that follows. Where it has failed,
they are left out; what is there is told from a name or a call by its capitals and its place.
"""

import re
from typing import Final

from cleats.toolsets.code.languages import c_conditions

_MACRO: Final = rb"[A-Z][A-Z0-9_]{2,80}"
_GIVEN: Final = rb"(?:[ \t]?\((?:[^()\n;{}]|\([^()\n]{0,200}\)){0,200}\))?"
_WORDS: Final = rb"(?:const|noexcept|override|final)"

_LINE: Final = re.compile(
    rb"^[ \t]*((?:[A-Z][a-z]{1,20}_)?%b%b)[ \t]*(?://[^\n]*|/\*[^\n]*\*/)?$" % (_MACRO, _GIVEN),
    re.MULTILINE,
)
"""Alone on a line: `BEGIN_NAMESPACE`, `Q_OBJECT`, `DISALLOW_COPY(Desk)`, `Py_UNBLOCK_THREADS`."""
_ENDS: Final = b";{}:)>/"
"""What may stand before such a line; after anything else it is part of an expression."""

_LINKAGE: Final = re.compile(
    rb"^([ \t]*#[ \t]*if(?:def[ \t]+|[ \t]+defined[ \t(]+)__cplusplus\b[^\n]*\s+"
    rb"(?:extern[ \t]+\"C\"[ \t]*\{|\})[^\n]*\s+#[ \t]*endif[^\n]*)",
    re.MULTILINE,
)
"""`extern "C" {` and its end, each in a condition of its own."""

_TYPE: Final = re.compile(
    rb"\b(?:class|struct|union|enum(?:[ \t]+(?:class|struct))?)[ \t]+"
    rb"((?:%b%b[ \t]+){1,3})(?=[A-Za-z_][\w:]*\s*(?:final\b\s*)?[:{<\n])" % (_MACRO, _GIVEN)
)
"""`class API Desk`."""

_BEFORE: Final = re.compile(
    rb"^[ \t]*(?:(?:static|inline|extern|virtual|constexpr|friend|explicit)[ \t]+){0,4}"
    rb"(%b%b)(?=\s+(?:(?:extern|static|inline|const|constexpr|virtual|void|struct|class)\b"
    rb"|[A-Za-z_][\w:<>,*&\s]{0,120}[\s*&][\w:~]{1,100}+\s*+[(=;{\[]))" % (_MACRO, _GIVEN),
    re.MULTILINE,
)
"""`INLINE int f(`, `API extern int x;`."""

_BETWEEN: Final = re.compile(
    rb"^(?:(?!return\b|else\b|case\b|goto\b)[A-Za-z_]\w*[ \t*]+){1,4}"
    rb"(%b)(?=[ \t]+[A-Za-z_]\w*[ \t]*\()" % _MACRO,
    re.MULTILINE,
)
"""`int EXPORT f(`."""

_WITHIN: Final = re.compile(
    rb"[(,]\s*(%b)(?=\s+(?:const\b|struct\b|[a-z_][\w:<>]{0,200}[\s*&]+\w{1,200}\s*[,)=]))" % _MACRO
)
"""`f(UNUSED int x)`."""

_AFTER: Final = re.compile(
    rb"(?:\)|\b%b)\s*\s(%b%b)(?=\s*(?:\{|:[ \n]|=[ ]?(?:0|default|delete)\b|%b\b|%b))"
    % (_WORDS, _MACRO, _GIVEN, _WORDS, _MACRO)
)
"""`f() REQUIRES(lock) {`."""

_ENDING: Final = re.compile(
    rb"^(?![ \t]*(?:if|while|for|switch|else|return|case|\})\b)[^\n;{}#]{1,300}"
    rb"(?:\)|\b%b)[ \t]+(%b%b)(?=;)" % (_WORDS, _MACRO, _GIVEN),
    re.MULTILINE,
)
"""`int f() PRINTF(1, 2);`."""

_POINTED: Final = re.compile(
    rb"[*&]\s*(\w{0,60}(?:nonnull|nullable|Nonnull|Nullable|NONNULL|NULLABLE|RESTRICT))\b"
)
"""`char *_Nonnull name`."""

_EMPTY: Final = re.compile(rb"=(\s*)\{\}(?=\s*[,)])")
"""`f(Row row = {})`, which is no macro, and no default to the grammar."""

_FIELD: Final = re.compile(
    rb"[\w>*&\]][ \t*&]+(?!return\b|throw\b|new\b|delete\b|else\b)[a-z_]\w*\s+"
    rb"(%b[ \t]?\([^()\n]{0,200}\))(?=\s*[;={])" % _MACRO
)
"""`int size GUARDED_BY(lock);`."""


# Each may have another behind it, which is seen when the first is gone.
_PATTERNS: Final = (
    *(_TYPE, _BEFORE, _BEFORE, _BETWEEN, _WITHIN),
    *(_AFTER, _AFTER, _ENDING, _FIELD, _POINTED),
)


def without(data: bytes) -> bytes:
    """The text without such macros, byte for byte as long."""
    eased = c_conditions.settled(_LINKAGE.sub(_blank, data))
    eased = _LINE.sub(_unless_continued, eased)
    for pattern in _PATTERNS:
        eased = pattern.sub(_blank, eased)
    return _EMPTY.sub(rb"=\g<1>0 ", eased)


def _blank(found: re.Match[bytes]) -> bytes:
    start, whole = found.start(1) - found.start(), found.group()
    end = found.end(1) - found.start()
    return whole[:start] + c_conditions.blanked(whole[start:end]) + whole[end:]


def _unless_continued(found: re.Match[bytes]) -> bytes:
    data, end = found.string, found.start()
    while end > 0:
        start = data.rfind(b"\n", 0, end - 1) + 1
        line = data[start:end].partition(b"//")[0].strip()
        if line:
            is_over = line[-1] in _ENDS or line.startswith(b"#")
            return _blank(found) if is_over else found.group()
        end = start
    return _blank(found)

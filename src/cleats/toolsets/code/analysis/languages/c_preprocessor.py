"""Preprocessor conditions of C that split a statement, resolved to their first branch.

`#ifdef` may appear between any two tokens: around one argument of a call, or around the head of an
`if` whose body comes after it. A grammar sees both branches at once, and loses the function and
often those after it. Where each branch is complete by itself, all of them are kept.
"""

import re
from typing import Final, NamedTuple

from msgspec import Struct

_TOKEN_PATTERN: Final = re.compile(
    rb"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*+\"?|'(?:\\.|[^'\\\n]){1,12}'"
    rb"|^[ \t]*#[ \t]*(\w*)(?:\\\r?\n|[^\n])*|[(){}/]|[^\s(){}/\"'][^\n(){}/\"']*",
    re.MULTILINE | re.DOTALL,
)
MAX_CONDITION_BYTES: Final = 4000
"""Bytes of a condition. Statements are shorter: a longer condition that seems to split one encloses
a large part of the file, and its contents were not counted correctly."""
_IF_ZERO_PATTERN: Final = re.compile(rb"[ \t]*#[ \t]*if[ \t]+0\b")
_DEPTH_CHANGES: Final = {b"(": (1, 0), b")": (-1, 0), b"{": (0, 1), b"}": (0, -1)}
_STATEMENT_ENDS: Final = (b"", b";", b"{", b"}", b":")
"""Characters after which a statement begins."""


class _NestingDepth(NamedTuple):
    """The open parentheses and braces at a position, and the last character before it."""

    rounds: int = 0
    braces: int = 0
    last: bytes = b""

    def advance(self, token: bytes) -> "_NestingDepth":
        rounds, braces = _DEPTH_CHANGES.get(token, (0, 0))
        return _NestingDepth(self.rounds + rounds, self.braces + braces, token.rstrip()[-1:])


class _ConditionBranch(Struct, gc=False):
    start: int
    """The start of its directive; `body` is the end of that directive."""
    body: int
    end_depth: _NestingDepth = _NestingDepth()


class _Condition(Struct, gc=False):
    start_depth: _NestingDepth
    branches: list[_ConditionBranch]

    def has_split_statement(self) -> bool:
        """Return whether a statement continues into or out of the condition."""
        rounds, braces, last_token = self.start_depth
        end_depths = [branch.end_depth for branch in self.branches]
        if rounds > 0 or any(end[:2] != (rounds, braces) for end in end_depths):
            return True
        if last_token in _STATEMENT_ENDS:
            return False
        # Complete functions may follow a macro without a semicolon.
        may_end_statement = last_token in b")_" or last_token.isalnum()
        return not (may_end_statement and end_depths[0].last in (b";", b"}"))

    def select_branch(self, data: bytes) -> _ConditionBranch:
        first, *other_branches = self.branches
        return other_branches[0] if other_branches and _IF_ZERO_PATTERN.match(data, first.start) else first


def resolve_conditions(data: bytes) -> bytes:
    """Return a text of the same length with one branch of each statement-splitting condition."""
    resolved = bytearray(data)
    depth = _NestingDepth()
    open_conditions: list[_Condition] = []
    for token in _TOKEN_PATTERN.finditer(data):
        directive = token[1]
        if directive is None:
            if not token.group().startswith((b"//", b"/*")):
                depth = depth.advance(token.group())
        elif directive.startswith(b"if"):
            open_conditions.append(_Condition(depth, [_ConditionBranch(token.start(), token.end())]))
        elif open_conditions and directive == b"endif":
            depth = _close_condition(resolved, open_conditions.pop(), depth, token)
        elif open_conditions and directive.startswith(b"el"):
            condition = open_conditions[-1]
            condition.branches[-1].end_depth = depth
            condition.branches.append(_ConditionBranch(token.start(), token.end()))
            depth = condition.start_depth
    return bytes(resolved)


def _close_condition(
    resolved: bytearray, condition: _Condition, depth: _NestingDepth, end_directive: re.Match[bytes]
) -> _NestingDepth:
    """Blank out all branches but one if necessary; return the depth after the condition."""
    branches = condition.branches
    branches[-1].end_depth = depth
    selected = condition.select_branch(end_directive.string)
    if end_directive.end() - branches[0].start <= MAX_CONDITION_BYTES and condition.has_split_statement():
        stops = [*(later_branch.start for later_branch in branches[1:]), end_directive.start()]
        for branch, stop in zip(branches, stops, strict=True):
            _blank_range(resolved, branch.start, branch.body if branch is selected else stop)
        _blank_range(resolved, end_directive.start(), end_directive.end())
    return selected.end_depth


def _blank_range(resolved: bytearray, start: int, end: int) -> None:
    resolved[start:end] = blank_text(resolved[start:end])


def blank_text(text: bytes | bytearray) -> bytes:
    """Return spaces of the same length as a text, with the same line breaks."""
    return re.sub(rb"[^\n]", b" ", bytes(text))


_MACRO_NAME: Final = rb"[A-Z][A-Z0-9_]{2,80}"
_MACRO_ARGUMENTS: Final = rb"(?:[ \t]?\((?:[^()\n;{}]|\([^()\n]{0,200}\)){0,200}\))?"
_TRAILING_KEYWORDS: Final = rb"(?:const|noexcept|override|final)"

_MACRO_LINE_PATTERN: Final = re.compile(
    rb"^[ \t]*((?:[A-Z][a-z]{1,20}_)?%b%b)[ \t]*(?://[^\n]*|/\*[^\n]*\*/)?$" % (_MACRO_NAME, _MACRO_ARGUMENTS),
    re.MULTILINE,
)
"""A macro alone on a line: `BEGIN_NAMESPACE`, `Q_OBJECT`, `DISALLOW_COPY(Desk)`,
`Py_UNBLOCK_THREADS`."""
_LINE_ENDINGS: Final = b";{}:)>/"
"""Characters that may precede such a line; after any other it is part of an expression."""

_EXTERN_C_PATTERN: Final = re.compile(
    rb"^([ \t]*#[ \t]*if(?:def[ \t]+|[ \t]+defined[ \t(]+)__cplusplus\b[^\n]*\s+"
    rb"(?:extern[ \t]+\"C\"[ \t]*\{|\})[^\n]*\s+#[ \t]*endif[^\n]*)",
    re.MULTILINE,
)
"""`extern "C" {` and its closing brace, each in its own condition."""

_TYPE_MACRO_PATTERN: Final = re.compile(
    rb"\b(?:class|struct|union|enum(?:[ \t]+(?:class|struct))?)[ \t]+"
    rb"((?:%b%b[ \t]+){1,3})(?=[A-Za-z_][\w:]*\s*(?:final\b\s*)?[:{<\n])" % (_MACRO_NAME, _MACRO_ARGUMENTS)
)
"""`class API Desk`."""

_LEADING_MACRO_PATTERN: Final = re.compile(
    rb"^[ \t]*(?:(?:static|inline|extern|virtual|constexpr|friend|explicit)[ \t]+){0,4}"
    rb"(%b%b)(?=\s+(?:(?:extern|static|inline|const|constexpr|virtual|void|struct|class)\b"
    rb"|[A-Za-z_][\w:<>,*&\s]{0,120}[\s*&][\w:~]{1,100}+\s*+[(=;{\[]))" % (_MACRO_NAME, _MACRO_ARGUMENTS),
    re.MULTILINE,
)
"""`INLINE int f(`, `API extern int x;`."""

_INNER_MACRO_PATTERN: Final = re.compile(
    rb"^(?:(?!return\b|else\b|case\b|goto\b)[A-Za-z_]\w*[ \t*]+){1,4}"
    rb"(%b)(?=[ \t]+[A-Za-z_]\w*[ \t]*\()" % _MACRO_NAME,
    re.MULTILINE,
)
"""`int EXPORT f(`."""

_PARAMETER_MACRO_PATTERN: Final = re.compile(
    rb"[(,]\s*(%b)(?=\s+(?:const\b|struct\b|[a-z_][\w:<>]{0,200}[\s*&]+\w{1,200}\s*[,)=]))" % _MACRO_NAME
)
"""`f(UNUSED int x)`."""

_TRAILING_MACRO_PATTERN: Final = re.compile(
    rb"(?:\)|\b%b)\s*\s(%b%b)(?=\s*(?:\{|:[ \n]|=[ ]?(?:0|default|delete)\b|%b\b|%b))"
    % (_TRAILING_KEYWORDS, _MACRO_NAME, _MACRO_ARGUMENTS, _TRAILING_KEYWORDS, _MACRO_NAME)
)
"""`f() REQUIRES(lock) {`."""

_FINAL_MACRO_PATTERN: Final = re.compile(
    rb"^(?![ \t]*(?:if|while|for|switch|else|return|case|\})\b)[^\n;{}#]{1,300}"
    rb"(?:\)|\b%b)[ \t]+(%b%b)(?=;)" % (_TRAILING_KEYWORDS, _MACRO_NAME, _MACRO_ARGUMENTS),
    re.MULTILINE,
)
"""`int f() PRINTF(1, 2);`."""

_POINTER_MACRO_PATTERN: Final = re.compile(
    rb"[*&]\s*(\w{0,60}(?:nonnull|nullable|Nonnull|Nullable|NONNULL|NULLABLE|RESTRICT))\b"
)
"""`char *_Nonnull name`."""

_EMPTY_DEFAULT_PATTERN: Final = re.compile(rb"=(\s*)\{\}(?=\s*[,)])")
"""The default in `f(Row row = {})`, which is not a macro but which the grammar cannot parse."""

_FIELD_MACRO_PATTERN: Final = re.compile(
    rb"[\w>*&\]][ \t*&]+(?!return\b|throw\b|new\b|delete\b|else\b)[a-z_]\w*\s+"
    rb"(%b[ \t]?\([^()\n]{0,200}\))(?=\s*[;={])" % _MACRO_NAME
)
"""`int size GUARDED_BY(lock);`."""


# Two patterns are applied twice: another macro may follow, and only matches once the first is gone.
_MACRO_PATTERNS: Final = (
    *(
        _TYPE_MACRO_PATTERN,
        _LEADING_MACRO_PATTERN,
        _LEADING_MACRO_PATTERN,
        _INNER_MACRO_PATTERN,
        _PARAMETER_MACRO_PATTERN,
    ),
    *(
        _TRAILING_MACRO_PATTERN,
        _TRAILING_MACRO_PATTERN,
        _FINAL_MACRO_PATTERN,
        _FIELD_MACRO_PATTERN,
        _POINTER_MACRO_PATTERN,
    ),
)


def blank_macros(data: bytes) -> bytes:
    """Return the text with such macros blanked out, in the same length."""
    blanked = resolve_conditions(_EXTERN_C_PATTERN.sub(_blank_group, data))
    blanked = _MACRO_LINE_PATTERN.sub(_blank_macro_line, blanked)
    for pattern in _MACRO_PATTERNS:
        blanked = pattern.sub(_blank_group, blanked)
    return _EMPTY_DEFAULT_PATTERN.sub(rb"=\g<1>0 ", blanked)


def _blank_group(match: re.Match[bytes]) -> bytes:
    start, text = match.start(1) - match.start(), match.group()
    end = match.end(1) - match.start()
    return text[:start] + blank_text(text[start:end]) + text[end:]


def _blank_macro_line(match: re.Match[bytes]) -> bytes:
    data, end = match.string, match.start()
    while end > 0:
        start = data.rfind(b"\n", 0, end - 1) + 1
        line = data[start:end].partition(b"//")[0].strip()
        if line:
            ends_statement = line[-1] in _LINE_ENDINGS or line.startswith(b"#")
            return _blank_group(match) if ends_statement else match.group()
        end = start
    return _blank_group(match)

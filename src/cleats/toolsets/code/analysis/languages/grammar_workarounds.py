"""Grammar workarounds: syntax that is newer than a grammar is rewritten into syntax it knows.

One unknown construct can make a grammar fail on everything after it, and the contents of a macro
are only tokens to it. The new text has the same length as the old one and is parsed instead of it.
The text of nodes is still read from the original file, so a name or a signature never contains
rewritten text.
"""

import re
from typing import Final, NamedTuple

from msgspec import Struct

_CPP_MODULE_LINE_PATTERN: Final = re.compile(
    rb"^([ \t]*)((?:export[ \t]+)?(?:import|module)\b[^;\n(=]*;)", re.MULTILINE
)
_CPP_EXPORT_PATTERN: Final = re.compile(rb"^([ \t]*)export(?=\s+(\w+|\{|\[))", re.MULTILINE)
_NO_SPECIFIER_WORDS: Final = (b"template", b"using", b"typedef", b"{", b"[")
"""Words that must not follow a specifier."""
_IF_CONSTEVAL_PATTERN: Final = re.compile(rb"\bif ?(!? ?)consteval( ?)(?=\{)")

_VARIANCE_PATTERN: Final = re.compile(
    rb"(?:(?<=[<,])\s{0,80}|^[ \t]{0,80})"
    rb"(in\s+out|in|out)(?=\s+[A-Za-z_$][\w$]*\s*(?:extends\b|[=,>]))",
    re.MULTILINE,
)
_IMPORT_TYPE_PATTERN: Final = re.compile(rb"\bimport\([\"'][^\"'\n]{1,400}[\"']\)\.(?=[\w$.]{1,200}<)")
_EXPORT_TYPE_PATTERN: Final = re.compile(rb"\b(export\s+)type(?=\s*\*)")
_USING_NAME_PATTERN: Final = re.compile(rb"\busing(?=\s*[?:,)=.])")

_FLOW_TYPE_PATTERN: Final = re.compile(
    rb"(\bimport\s+)typeof\b|^((?:export\s+)?)opaque(?=\s+type\b)"
    rb"|([{,\s])[+-](?=[\w$]+\??:)|(<)[+-](?=[A-Z])|([:|(,<=]\s*)\?(?=\()"
    rb"|(\{)\||()\|(?=\})|()\.\.\.(?=\s*(?:[,}]|\|\}))",
    re.MULTILINE,
)
"""Type syntax of Flow that TypeScript does not have; the text before it is kept in groups."""

_UNNAMED_PARAMETER_PATTERN: Final = re.compile(rb"([(,]\s*\??)(strin|numbe|boolea|an)[grny](?=\s*[,)])")
"""A parameter of a function type that consists only of a type."""

_SWIFT_ATTRIBUTE_PATTERN: Final = re.compile(
    rb"(?<=[>:)])[ \t]{0,8}sending(?=\s+[@\w(\[])|\bnonisolated\(unsafe\)|@_\w{1,80}(?=\s)"
    rb"|(?<=[\[,( ])~(?=\w)"
)

_JAVA_IMPORT_MODULE_PATTERN: Final = re.compile(rb"^([ \t]*import\s+)module(?=\s+\w)", re.MULTILINE)

_BRACE_PATTERN: Final = re.compile(
    rb"//[^\n]*|/\*.*?(?:\*/|\Z)|r(#+)\".*?(?:\"\1|\Z)|\"(?:\\.|[^\"\\])*(?:\"|\Z)"
    rb"|'(?:\\.[^']{0,8}|[^\\'])'|[{}]",
    re.DOTALL,
)
"""Braces, and tokens that may contain characters which only look like braces."""
_MACRO_WRAPPER_PATTERN: Final = re.compile(rb"^[ \t]*([a-z_][\w:]*![ \t]*\{)", re.MULTILINE)
_RUST_ITEM_PATTERN: Final = re.compile(
    rb"(?:\s|//[^\n]*|/\*.*?\*/|#!?\[[^\]]*\])*"
    rb"(?:(?:pub|unsafe|async|const|extern)\b[^;{=]{0,40}?)?"
    rb"\b(?:fn|struct|enum|impl|mod|use|trait|type|macro_rules)\b",
    re.DOTALL,
)

# Lengths are bounded, so that a line of a million words does not take quadratic time.
_KOTLIN_CONTEXT_PATTERN: Final = re.compile(rb"^([ \t]*)context([ \t]*\([^()\n]{0,400}\))(?=\s*[\w@])", re.MULTILINE)
_ANNOTATION_CLASS_PATTERN: Final = re.compile(rb"\bannotation(?=[ \t]+class[ \t]+\w+[ \t]*(?:\n|$))")
_GENERIC_ARGUMENTS_PATTERN: Final = re.compile(rb"<[^<>]*>|\?")
_GUARD_TAIL_PATTERN: Final = rb"(?=[ \t(](?:(?!->)[^{}\n]){0,400}->)"
"""The text between `if` and the arrow of a branch."""
_WHEN_GUARD_PATTERN: Final = re.compile(
    rb"^([ \t]*[!\w.\"'](?:(?!->)[^{}=\n]){0,400}[ \t])if" + _GUARD_TAIL_PATTERN, re.MULTILINE
)
_ELSE_GUARD_PATTERN: Final = re.compile(rb"^[ \t]*else[ \t]+if" + _GUARD_TAIL_PATTERN, re.MULTILINE)


def rewrite_cpp(data: bytes) -> bytes:
    """Rewrite C++20 modules: module lines become directives, `export` the specifier `inline`.

    Macros in declaration headers are blanked out.
    """
    rewritten = _CPP_MODULE_LINE_PATTERN.sub(lambda module_line: module_line[1] + b"#" + module_line[2][1:], data)
    rewritten = _CPP_EXPORT_PATTERN.sub(
        lambda match: match[1] + (b"      " if match[2] in _NO_SPECIFIER_WORDS else b"inline"), rewritten
    )
    # `if consteval {` gets a condition in parentheses.
    rewritten = _IF_CONSTEVAL_PATTERN.sub(lambda match: b"if(0)".ljust(len(match[0])), rewritten)
    return blank_macros(rewritten)


def rewrite_kotlin(data: bytes) -> bytes:
    """Rewrite Kotlin 2.2: a guard becomes an additional condition, a context an annotation."""
    rewritten = _KOTLIN_CONTEXT_PATTERN.sub(_rewrite_context, data)
    rewritten = _ELSE_GUARD_PATTERN.sub(_blank_match, rewritten)
    return _WHEN_GUARD_PATTERN.sub(rb"\1, ", rewritten)


def rewrite_typescript(data: bytes) -> bytes:
    """Blank out type imports, variance and Flow syntax; rename `using` where it is a name."""
    rewritten = _VARIANCE_PATTERN.sub(lambda match: match[0][: -len(match[1])].ljust(len(match[0])), data)
    rewritten = _IMPORT_TYPE_PATTERN.sub(_blank_match, rewritten)
    rewritten = _FLOW_TYPE_PATTERN.sub(lambda match: match[match.lastindex or 0].ljust(len(match[0])), rewritten)
    rewritten = _UNNAMED_PARAMETER_PATTERN.sub(rb"\1\2_", rewritten)
    return _USING_NAME_PATTERN.sub(b"usinG", _EXPORT_TYPE_PATTERN.sub(rb"\1    ", rewritten))


def _blank_match(match: re.Match[bytes]) -> bytes:
    return b" " * len(match.group())


def unwrap_kotlin_annotations(data: bytes) -> bytes:
    """Blank out `annotation` in `annotation class Audited`, which the grammar takes for a call."""
    return _ANNOTATION_CLASS_PATTERN.sub(_blank_match, data)


def rewrite_swift(data: bytes) -> bytes:
    """Blank out Swift 6 isolation keywords, private compiler attributes, and `~` before types."""
    return _SWIFT_ATTRIBUTE_PATTERN.sub(_blank_match, data)


def rewrite_java(data: bytes) -> bytes:
    """Blank out `module` in `import module` of Java 25."""
    return _JAVA_IMPORT_MODULE_PATTERN.sub(rb"\1      ", data)


def unwrap_rust_macros(data: bytes) -> bytes:
    """Blank out macros around items, such as `cfg_rt! { pub fn spawn() {} }`; keep the items."""
    macro_starts = {match.end(1) - 1: match.start(1) for match in _MACRO_WRAPPER_PATTERN.finditer(data)}
    if not macro_starts:
        return data
    unwrapped, open_braces = bytearray(data), list[int]()
    for brace in _BRACE_PATTERN.finditer(data):
        position = brace.start()
        if brace.group() == b"{":
            open_braces.append(position)
        elif brace.group() == b"}" and open_braces:
            start = open_braces.pop()
            if start in macro_starts and _RUST_ITEM_PATTERN.match(data, start + 1, start + 4000):
                unwrapped[macro_starts[start] : start + 1] = b" " * (start + 1 - macro_starts[start])
                unwrapped[position : position + 1] = b" "
    return bytes(unwrapped)


def _rewrite_context(match: re.Match[bytes]) -> bytes:
    previous, arguments = b"", match[2]
    while arguments != previous:
        previous, arguments = arguments, _GENERIC_ARGUMENTS_PATTERN.sub(_blank_match, arguments)
    return match[1] + b"@ontext" + arguments.replace(b":", b"=")


# Preprocessor conditions and macros of C. `#ifdef` may appear between any two tokens: around one argument of a call, or
# around the head of an `if` whose body comes after it. A grammar sees both branches at once, and loses the function and
# often those after it. Where each branch is complete by itself, all of them are kept.

_TOKEN_PATTERN: Final = re.compile(
    rb"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*+\"?|'(?:\\.|[^'\\\n]){1,12}'"
    rb"|^[ \t]*#[ \t]*(\w*)(?:\\\r?\n|[^\n])*|[(){}/]|[^\s(){}/\"'][^\n(){}/\"']*",
    re.MULTILINE | re.DOTALL,
)
MAX_CONDITION_BYTES: Final = 4000
"""Bytes of a condition. Statements are shorter: a longer condition that seems to split one encloses a large part of the
file, and its contents were not counted correctly."""
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
        if (directive := token[1]) is None:
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


_MACRO_WORDS: Final = {
    b"MACRO": rb"[A-Z][A-Z0-9_]{2,80}",
    b"ARGUMENTS": rb"(?:[ \t]?\((?:[^()\n;{}]|\([^()\n]{0,200}\)){0,200}\))?",
    b"TRAILING": rb"(?:const|noexcept|override|final)",
}
"""Words in the patterns of macros, and what they stand for."""


def _compile_macro_pattern(pattern: bytes) -> re.Pattern[bytes]:
    for word, meaning in _MACRO_WORDS.items():
        pattern = pattern.replace(word, meaning)
    return re.compile(pattern, re.MULTILINE)


_MACRO_LINE_PATTERN: Final = _compile_macro_pattern(
    rb"^[ \t]*((?:[A-Z][a-z]{1,20}_)?MACROARGUMENTS)[ \t]*(?://[^\n]*|/\*[^\n]*\*/)?$"
)
"""A macro alone on a line: `BEGIN_NAMESPACE`, `Q_OBJECT`, `DISALLOW_COPY(Desk)`, `Py_UNBLOCK_THREADS`."""
_LINE_ENDINGS: Final = b";{}:)>/"
"""Characters that may precede such a line; after any other it is part of an expression."""
_EXTERN_C_PATTERN: Final = re.compile(
    rb"^([ \t]*#[ \t]*if(?:def[ \t]+|[ \t]+defined[ \t(]+)__cplusplus\b[^\n]*\s+"
    rb"(?:extern[ \t]+\"C\"[ \t]*\{|\})[^\n]*\s+#[ \t]*endif[^\n]*)",
    re.MULTILINE,
)
"""`extern "C" {` and its closing brace, each in its own condition."""
_EMPTY_DEFAULT_PATTERN: Final = re.compile(rb"=(\s*)\{\}(?=\s*[,)])")
"""The default in `f(Row row = {})`, which is not a macro but which the grammar cannot parse."""
_LEADING_MACRO: Final = (  # `INLINE int f(`, `API extern int x;`
    rb"^[ \t]*(?:(?:static|inline|extern|virtual|constexpr|friend|explicit)[ \t]+){0,4}"
    rb"(MACROARGUMENTS)(?=\s+(?:(?:extern|static|inline|const|constexpr|virtual|void|struct|class)\b"
    rb"|[A-Za-z_][\w:<>,*&\s]{0,120}[\s*&][\w:~]{1,100}+\s*+[(=;{\[]))"
)
_TRAILING_MACRO: Final = (  # `f() REQUIRES(lock) {`
    rb"(?:\)|\bTRAILING)\s*\s(MACROARGUMENTS)(?=\s*(?:\{|:[ \n]|=[ ]?(?:0|default|delete)\b|TRAILING\b|MACRO))"
)
_MACRO_PATTERNS: Final = [
    _compile_macro_pattern(pattern)
    for pattern in (
        # `class API Desk`
        (
            rb"\b(?:class|struct|union|enum(?:[ \t]+(?:class|struct))?)[ \t]+"
            rb"((?:MACROARGUMENTS[ \t]+){1,3})(?=[A-Za-z_][\w:]*\s*(?:final\b\s*)?[:{<\n])"
        ),
        # Twice: another macro may follow, and only matches once the first is gone.
        *(_LEADING_MACRO, _LEADING_MACRO),
        # `int EXPORT f(`
        rb"^(?:(?!return\b|else\b|case\b|goto\b)[A-Za-z_]\w*[ \t*]+){1,4}(MACRO)(?=[ \t]+[A-Za-z_]\w*[ \t]*\()",
        # `f(UNUSED int x)`
        rb"[(,]\s*(MACRO)(?=\s+(?:const\b|struct\b|[a-z_][\w:<>]{0,200}[\s*&]+\w{1,200}\s*[,)=]))",
        *(_TRAILING_MACRO, _TRAILING_MACRO),
        # `int f() PRINTF(1, 2);`
        (
            rb"^(?![ \t]*(?:if|while|for|switch|else|return|case|\})\b)[^\n;{}#]{1,300}"
            rb"(?:\)|\bTRAILING)[ \t]+(MACROARGUMENTS)(?=;)"
        ),
        # `int size GUARDED_BY(lock);`
        (
            rb"[\w>*&\]][ \t*&]+(?!return\b|throw\b|new\b|delete\b|else\b)[a-z_]\w*\s+"
            rb"(MACRO[ \t]?\([^()\n]{0,200}\))(?=\s*[;={])"
        ),
        # `char *_Nonnull name`
        rb"[*&]\s*(\w{0,60}(?:nonnull|nullable|Nonnull|Nullable|NONNULL|NULLABLE|RESTRICT))\b",
    )
]


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
        if line := data[start:end].partition(b"//")[0].strip():
            ends_statement = line[-1] in _LINE_ENDINGS or line.startswith(b"#")
            return _blank_group(match) if ends_statement else match.group()
        end = start
    return _blank_group(match)

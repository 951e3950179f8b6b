"""Grammar workarounds: syntax that is newer than a grammar is rewritten into syntax it knows.

One unknown construct can make a grammar fail on everything after it, and the contents of a macro
are only tokens to it. The new text has the same length as the old one and is parsed instead of it.
The text of nodes is still read from the original file, so a name or a signature never contains
rewritten text.
"""

import re
from typing import Final

from cleats.toolsets.code.analysis.languages import c_preprocessor

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
    return c_preprocessor.blank_macros(rewritten)


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

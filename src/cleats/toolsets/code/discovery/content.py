"""Classification of a file by its bytes: whether to index it, and in which language and mode.

It runs when a file is read, not when it is discovered, so that checking for changes costs only one
stat per file.
"""

import codecs
import re
from typing import Final, NamedTuple

from cleats.toolsets.code.analysis.facts import Mode
from cleats.toolsets.code.analysis.languages.language_names import (
    LANGUAGE_NAMES,
    UNKNOWN_LANGUAGE,
    detect_language_by_interpreter,
    resolve_language_ids,
)
from cleats.toolsets.code.discovery.file_names import classify_name, select_mode
from cleats.toolsets.code.discovery.tree import DiscoveryLimits

SNIFF_BYTES: Final = 8 * 1024
"""Bytes that are inspected to tell text from binary data. Git inspects as many."""

_WIDE_ENCODING_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
_TEXT_BYTES: Final = bytes({7, 8, 9, 10, 12, 13, 27} | set(range(0x20, 0x100)) - {0x7F})
_MIN_MINIFIED_BYTES: Final = 4 * 1024
_MINIFIED_LINE_BYTES: Final = 300
"""Average bytes per line above which a script or style sheet counts as minified."""

_MINIFIABLE_LANGUAGES: Final = frozenset({"javascript", "typescript", "css"})
_COMMENT_START_PATTERN = rb"(?m)^[ \t]*(?://|/\*|\*|#|--|;|%|<!--|\(\*|\"\"\"|'''|@rem|REM)[^\n]{0,200}?"
_GENERATED_PATTERN = re.compile(
    _COMMENT_START_PATTERN + rb"(?:@generated\b|<auto-?generated\b"
    rb"|[Gg]enerated by [^\n]{1,200}(?:DO NOT (?:EDIT|MODIFY)|[Dd]o not (?:edit|modify))"
    rb"|(?:[Cc]ode|[Ff]ile|[Cc]lass) (?:is |was |has been )?(?:automatically |auto-?)?generated"
    rb" [^\n]{0,200}(?:DO NOT (?:EDIT|MODIFY)|[Dd]o not (?:edit|modify))"
    rb"|(?:file|code|source) (?:is|was|has been) (?:automatically |auto-?|machine[- ])generated"
    rb"|A(?:UTO|uto)-?(?:GENERATED|[Gg]enerated) (?:FILE|CODE|[Ff]ile|[Cc]ode|by)\b)"
)
_MODELINE_PATTERN = re.compile(
    r"-\*-[^\n]{0,100}?(?:mode:[ \t]*)?([\w+#-]+)[ \t]*(?:;[^\n]{0,100})?-\*-"
    r"|\b(?:vim?|ex):[^\n]{0,100}?\b(?:ft|filetype|syntax)=([\w+#-]+)"
)
# Patterns that few files need are compiled on first use: compiling takes longer than matching.
_CPP_PATTERN: Final = (
    rb"(?m)^[ \t]*(?:class\s+\w+\s*(?:[:{;]|final\b)|namespace\s*(?:\w[\w:]*\s*)?\{|template\s*<"
    rb"|using\s+(?:namespace|std|\w+\s*=)|(?:public|private|protected)[ \t]*:|constexpr\b"
    rb"|#[ \t]*include[ \t]*<[a-z_]+>)|\bstd::"
)
_OBJECTIVE_C_PATTERN: Final = rb"(?m)^[ \t]*(?:@(?:interface|protocol|class|import|property)\b|#import\b)"
_TIMESTAMP_PATTERN: Final = (
    r"\s*[\[(<]?(?:\d{4}[-/.]\d\d[-/.]\d\d[T _]\d\d?:\d\d|\d\d?:\d\d:\d\d"
    r"|\d\d?/[A-Z][a-z]{2}/\d{4}:\d\d|(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
    r"|\d{10}(?:\.\d+)?[\]) ])"
    r"|\s*[\[(]?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)[\]):| ]"
)
_STACK_FRAME_PATTERN: Final = (
    r"Traceback \(most recent call last\)|Exception in thread |Caused by: |panic: |goroutine \d+ \["
    r'|\s+at [\w.$<>/]+ ?\(|\s+File ".+", line \d+|\s+from .+:\d+:in |#\d+ +0x[0-9a-f]+'
)


class ContentVerdict(NamedTuple):
    """The decision about a file: a reason to skip it, or its language and mode."""

    skip_reason: str | None
    lang: str
    mode: Mode


def classify_content(path: str, data: bytes, limits: DiscoveryLimits = DiscoveryLimits()) -> ContentVerdict:  # noqa: B008 - frozen
    """Classify a file by its name and its bytes."""
    name_verdict = classify_name(path)
    reason = name_verdict.reason or _find_skip_reason(data, limits)
    if reason:
        return ContentVerdict(reason, name_verdict.lang or UNKNOWN_LANGUAGE, name_verdict.mode)
    head = data[:SNIFF_BYTES]
    lang = _refine_language(name_verdict.lang, head) or _detect_by_content(head)
    mode = select_mode(path, lang)
    if lang in ("", UNKNOWN_LANGUAGE) and _is_log(head):
        lang, mode = "log", "records"
    lang = lang or UNKNOWN_LANGUAGE
    if mode == "code" and (machine_reason := _find_machine_reason(lang, data)):
        return ContentVerdict(machine_reason, lang, mode)
    return ContentVerdict(None, lang, mode)


def is_binary(data: bytes) -> bool:
    """Return whether a file is not text; one that begins with a UTF-16 or UTF-32 mark is text."""
    head = data[:SNIFF_BYTES]
    if head.startswith(_WIDE_ENCODING_MARKS):
        return False
    return b"\0" in head or len(head.translate(None, _TEXT_BYTES)) * 20 > len(head)


def _find_skip_reason(data: bytes, limits: DiscoveryLimits) -> str:
    if limits.max_file_bytes and len(data) > limits.max_file_bytes:
        return "too_large"
    if is_binary(data):
        return "binary"
    if limits.max_lines and data.count(b"\n") > limits.max_lines:
        return "too_many_lines"
    return "long_line" if _has_long_line(data, limits.max_line_bytes) else ""


def _has_long_line(data: bytes, limit: int) -> bool:
    line_start = 0
    while limit and len(data) - line_start > limit:
        # Each step goes to the last line end within the limit.
        end = data.rfind(b"\n", line_start, line_start + limit + 1)
        if end == -1:
            return True
        line_start = end + 1
    return False


def _find_machine_reason(lang: str, data: bytes) -> str:
    if _GENERATED_PATTERN.search(data, 0, SNIFF_BYTES // 2):
        return "generated"
    if lang in _MINIFIABLE_LANGUAGES and len(data) >= _MIN_MINIFIED_BYTES:
        return "minified" if len(data) > _MINIFIED_LINE_BYTES * (data.count(b"\n") + 1) else ""
    return ""


def _refine_language(lang: str, head: bytes) -> str:
    """Return the language where several share an extension."""
    if lang == "c" and re.search(_OBJECTIVE_C_PATTERN, head):
        return "objc"
    if lang == "c" and re.search(_CPP_PATTERN, head):
        return "cpp"
    if lang == "typescript" and head.lstrip().startswith((b"<?xml", b"<!DOCTYPE")):
        return "xml"
    return lang


def _detect_by_content(head: bytes) -> str:
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    if text.startswith("#!") and (lang := _detect_by_shebang(text.split("\n", 1)[0])):
        return lang
    lines = text.split("\n")
    for match in _MODELINE_PATTERN.finditer("\n".join(lines[:5] + lines[-5:])):
        if langs := resolve_language_ids(match[1] or match[2]):
            return langs[0]
    start = text.lstrip()[:100].lower()
    if start.startswith("<?xml"):
        return "xml"
    return "html" if start.startswith(("<!doctype html", "<html")) else ""


def _detect_by_shebang(line: str) -> str:
    words = [word for word in line[2:].split() if not word.startswith("-") and "=" not in word]
    if words and words[0].rsplit("/", 1)[-1] == "env":
        words = words[1:]
    lang = detect_language_by_interpreter(words[0]) if words else ""
    return lang if lang in LANGUAGE_NAMES else ""


def _is_log(head: bytes) -> bool:
    """Return whether a text consists of stamped entries or of stack frames."""
    lines = [line for line in head.decode("utf-8", "replace").split("\n")[:100] if line.strip()]
    stamped_lines = sum(1 for line in lines if re.match(_TIMESTAMP_PATTERN, line))
    frame_lines = sum(1 for line in lines if re.match(_STACK_FRAME_PATTERN, line))
    return (stamped_lines >= 3 and stamped_lines * 5 >= len(lines) * 2) or (
        frame_lines >= 2 and frame_lines * 4 >= len(lines)
    )

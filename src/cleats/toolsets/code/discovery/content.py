"""What a file's bytes say about it: whether to index it, and as what.

Asked when a file is read, not when it is found, so that looking for changes costs no more than a
stat for each file.
"""

import codecs
import re
from typing import Final, NamedTuple

from cleats.toolsets.code.discovery.naming import judge, routed
from cleats.toolsets.code.discovery.reasons import Limits
from cleats.toolsets.code.facts import Mode
from cleats.toolsets.code.languages.names import NAMES, UNKNOWN, by_interpreter, meant

SNIFFED: Final = 8 * 1024
"""Bytes that are looked at to tell text from what is not. Git looks as far."""

_WIDE: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
_TEXT: Final = bytes({7, 8, 9, 10, 12, 13, 27} | set(range(0x20, 0x100)) - {0x7F})
_LEAST_MINIFIED: Final = 4 * 1024
_LONG_AVERAGE: Final = 300
"""Bytes a line of script or style has on average once a program has squeezed it."""

_SQUEEZED: Final = frozenset({"javascript", "typescript", "css"})
_COMMENT = rb"(?m)^[ \t]*(?://|/\*|\*|#|--|;|%|<!--|\(\*|\"\"\"|'''|@rem|REM)[^\n]{0,200}?"
_GENERATED = re.compile(
    _COMMENT + rb"(?:@generated\b|<auto-?generated\b"
    rb"|[Gg]enerated by [^\n]{1,200}(?:DO NOT (?:EDIT|MODIFY)|[Dd]o not (?:edit|modify))"
    rb"|(?:[Cc]ode|[Ff]ile|[Cc]lass) (?:is |was |has been )?(?:automatically |auto-?)?generated"
    rb" [^\n]{0,200}(?:DO NOT (?:EDIT|MODIFY)|[Dd]o not (?:edit|modify))"
    rb"|(?:file|code|source) (?:is|was|has been) (?:automatically |auto-?|machine[- ])generated"
    rb"|A(?:UTO|uto)-?(?:GENERATED|[Gg]enerated) (?:FILE|CODE|[Ff]ile|[Cc]ode|by)\b)"
)
_MODELINE = re.compile(
    r"-\*-[^\n]{0,100}?(?:mode:[ \t]*)?([\w+#-]+)[ \t]*(?:;[^\n]{0,100})?-\*-"
    r"|\b(?:vim?|ex):[^\n]{0,100}?\b(?:ft|filetype|syntax)=([\w+#-]+)"
)
# What few files are asked for is compiled when the first one is: that takes longer than to ask.
_CPLUSPLUS: Final = (
    rb"(?m)^[ \t]*(?:class\s+\w+\s*(?:[:{;]|final\b)|namespace\s*(?:\w[\w:]*\s*)?\{|template\s*<"
    rb"|using\s+(?:namespace|std|\w+\s*=)|(?:public|private|protected)[ \t]*:|constexpr\b"
    rb"|#[ \t]*include[ \t]*<[a-z_]+>)|\bstd::"
)
_OBJECTIVE: Final = rb"(?m)^[ \t]*(?:@(?:interface|protocol|class|import|property)\b|#import\b)"
_STAMP: Final = (
    r"\s*[\[(<]?(?:\d{4}[-/.]\d\d[-/.]\d\d[T _]\d\d?:\d\d|\d\d?:\d\d:\d\d"
    r"|\d\d?/[A-Z][a-z]{2}/\d{4}:\d\d|(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
    r"|\d{10}(?:\.\d+)?[\]) ])"
    r"|\s*[\[(]?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)[\]):| ]"
)
_STACK: Final = (
    r"Traceback \(most recent call last\)|Exception in thread |Caused by: |panic: |goroutine \d+ \["
    r'|\s+at [\w.$<>/]+ ?\(|\s+File ".+", line \d+|\s+from .+:\d+:in |#\d+ +0x[0-9a-f]+'
)


class Verdict(NamedTuple):
    """What to do with a file."""

    skip_reason: str | None
    lang: str
    mode: Mode


def verdict(path: str, data: bytes, limits: Limits = Limits()) -> Verdict:  # noqa: B008 - frozen
    """Judge a file by its name and its bytes."""
    named = judge(path)
    reason = named.reason or _unfit(data, limits)
    if reason:
        return Verdict(reason, named.lang or UNKNOWN, named.mode)
    head = data[:SNIFFED]
    lang = _refined(named.lang, head) or _by_content(head)
    mode = routed(path, lang)
    if lang in ("", UNKNOWN) and _is_log(head):
        lang, mode = "log", "records"
    lang = lang or UNKNOWN
    if mode == "code" and (squeezed := _machine_made(lang, data)):
        return Verdict(squeezed, lang, mode)
    return Verdict(None, lang, mode)


def is_binary(data: bytes) -> bool:
    """Whether a file is not text; what begins with the mark of UTF-16 or UTF-32 is."""
    head = data[:SNIFFED]
    if head.startswith(_WIDE):
        return False
    return b"\0" in head or len(head.translate(None, _TEXT)) * 20 > len(head)


def _unfit(data: bytes, limits: Limits) -> str:
    if limits.max_file_bytes and len(data) > limits.max_file_bytes:
        return "too_large"
    if is_binary(data):
        return "binary"
    if limits.max_lines and data.count(b"\n") > limits.max_lines:
        return "too_many_lines"
    return "long_line" if _has_long_line(data, limits.max_line_bytes) else ""


def _has_long_line(data: bytes, limit: int) -> bool:
    at = 0
    while limit and len(data) - at > limit:
        # The last line end within the limit is as far as one step can safely go.
        end = data.rfind(b"\n", at, at + limit + 1)
        if end == -1:
            return True
        at = end + 1
    return False


def _machine_made(lang: str, data: bytes) -> str:
    if _GENERATED.search(data, 0, SNIFFED // 2):
        return "generated"
    if lang in _SQUEEZED and len(data) >= _LEAST_MINIFIED:
        return "minified" if len(data) > _LONG_AVERAGE * (data.count(b"\n") + 1) else ""
    return ""


def _refined(lang: str, head: bytes) -> str:
    """The language where an extension is shared by several."""
    if lang == "c" and re.search(_OBJECTIVE, head):
        return "objc"
    if lang == "c" and re.search(_CPLUSPLUS, head):
        return "cpp"
    if lang == "typescript" and head.lstrip().startswith((b"<?xml", b"<!DOCTYPE")):
        return "xml"
    return lang


def _by_content(head: bytes) -> str:
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    if text.startswith("#!") and (lang := _by_shebang(text.split("\n", 1)[0])):
        return lang
    lines = text.split("\n")
    for found in _MODELINE.finditer("\n".join(lines[:5] + lines[-5:])):
        if langs := meant(found[1] or found[2]):
            return langs[0]
    start = text.lstrip()[:100].lower()
    if start.startswith("<?xml"):
        return "xml"
    return "html" if start.startswith(("<!doctype html", "<html")) else ""


def _by_shebang(line: str) -> str:
    words = [word for word in line[2:].split() if not word.startswith("-") and "=" not in word]
    if words and words[0].rsplit("/", 1)[-1] == "env":
        words = words[1:]
    lang = by_interpreter(words[0]) if words else ""
    return lang if lang in NAMES else ""


def _is_log(head: bytes) -> bool:
    """Whether text is made of stamped entries or of stack frames."""
    lines = [line for line in head.decode("utf-8", "replace").split("\n")[:100] if line.strip()]
    stamped = sum(1 for line in lines if re.match(_STAMP, line))
    frames = sum(1 for line in lines if re.match(_STACK, line))
    return (stamped >= 3 and stamped * 5 >= len(lines) * 2) or (
        frames >= 2 and frames * 4 >= len(lines)
    )

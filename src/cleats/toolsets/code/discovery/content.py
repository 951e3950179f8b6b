"""Classification of a file: whether to index it, and in which language and mode.

The name alone decides when a file is discovered, so that checking for changes costs only one stat per file; the bytes
are examined when it is read.
"""

import codecs
import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from cleats.toolsets.code.analysis.facts import Mode
from cleats.toolsets.code.analysis.languages.language_names import (
    UNKNOWN_LANGUAGE,
    detect_language_by_interpreter,
    detect_language_by_path,
    get_language_mode,
    list_filename_patterns,
    list_known_filenames,
    resolve_language_ids,
)

VERSION_CONTROL_FOLDERS: Final = frozenset({".git", ".hg", ".svn"})


class _FileNames(Struct, frozen=True):
    """What the names of files and folders say, in lower case except for those of tools."""

    tool_output_folders: dict[str, str]
    """Folders that tools create. A folder with such a name is not skipped if a file in it is tracked."""
    tool_marker_files: dict[str, str]
    """Files that mark their folder as tool output, whatever its name."""
    lockfiles: frozenset[str]
    generated_suffixes: tuple[str, ...]
    minified_suffixes: tuple[str, ...]
    binary_extensions: frozenset[str]
    """Extensions that are never text; the bytes of a file decide for all ambiguous ones."""
    secret_files: frozenset[str]
    secret_suffixes: tuple[str, ...]
    example_suffixes: tuple[str, ...]
    """Suffixes of names such as `.env.example`, which is meant to be read."""


FILE_NAMES: Final = msgspec.json.decode(Path(__file__).with_name("file_names.json").read_bytes(), type=_FileNames)

_DOCUMENT_FOLDERS: Final = frozenset({"doc", "docs", "documentation"})
_DOCUMENT_OR_CODE_LANGUAGES: Final = frozenset({"html", ""})
"""Formats that are documents when they are in a document folder."""


def _is_secret(name: str) -> bool:
    if name.startswith(".env."):
        return not name.endswith(FILE_NAMES.example_suffixes)
    return name in FILE_NAMES.secret_files or name.endswith(FILE_NAMES.secret_suffixes)


class NameVerdict(NamedTuple):
    """A file classified by name: a skip reason, or a language (empty: unknown) and a mode."""

    reason: str
    lang: str
    mode: Mode


def classify_name(path: str) -> NameVerdict:
    """Classify a file by its name, without reading it."""
    name = path.rsplit("/", 1)[-1].lower()
    special_names = _list_special_names()
    if name in special_names.full or name.startswith(special_names.prefixes) or name.endswith(special_names.suffixes):
        reason, lang = _judge_name(name)
    else:
        dot = name.find(".", 1)
        reason, lang = _judge_ending(name[dot:] if dot > 0 else "")
    return NameVerdict(reason, lang, "code" if reason else select_mode(path, lang))


class _SpecialNames(NamedTuple):
    """What a name can have that says more than its extensions."""

    full: frozenset[str]
    prefixes: tuple[str, ...]
    suffixes: tuple[str, ...]


@cache
def _list_special_names() -> _SpecialNames:
    patterns = list_filename_patterns()
    suffixes = (*FILE_NAMES.secret_suffixes, *FILE_NAMES.generated_suffixes, *FILE_NAMES.minified_suffixes)
    return _SpecialNames(
        FILE_NAMES.secret_files | FILE_NAMES.lockfiles | list_known_filenames(),
        (".env.", *(prefix for prefix, _, _ in patterns if prefix)),
        (*suffixes, *(suffix for prefix, suffix, _ in patterns if not prefix)),
    )


@lru_cache(maxsize=4096)
def _judge_ending(ending: str) -> tuple[str, str]:
    """Judge all names with this ending, from their first dot on, that are not special: few are different."""
    return _judge_name(f"x{ending}")


def _judge_name(name: str) -> tuple[str, str]:
    """Return the reason to skip a file with this name in lower case, and its language; empty if there is none."""
    if _is_secret(name):
        return "secret", ""
    if name in FILE_NAMES.lockfiles:
        return "lockfile", ""
    if name.endswith(FILE_NAMES.generated_suffixes):
        return "generated", ""
    if name.endswith(FILE_NAMES.minified_suffixes):
        return "minified", ""
    dot = name.rfind(".")
    if dot > 0 and name[dot + 1 :] in FILE_NAMES.binary_extensions:
        return "binary", ""
    return "", detect_language_by_path(name)


def select_mode(path: str, lang: str) -> Mode:
    """Return the mode of a file: that of its language, or prose if it is in a document folder."""
    if lang in _DOCUMENT_OR_CODE_LANGUAGES and not _DOCUMENT_FOLDERS.isdisjoint(path.lower().split("/")[:-1]):
        return "prose"
    return get_language_mode(lang or UNKNOWN_LANGUAGE)


class DiscoveryLimits(Struct, frozen=True):
    """Limits for files and lines. A limit of 0 means unlimited."""

    max_file_bytes: int = 5 * 1024 * 1024
    max_lines: int = 200_000
    """Far above what people write; data and logs of that length would crowd out everything else."""
    max_line_bytes: int = 512 * 1024
    max_files: int = 0


SNIFF_BYTES: Final = 8 * 1024
"""Bytes that are inspected to tell text from binary data. Git inspects as many."""

_WIDE_ENCODING_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
_TEXT_BYTES: Final = bytes({7, 8, 9, 10, 12, 13, 27} | set(range(0x20, 0x100)) - {0x7F})
_MIN_MINIFIED_BYTES: Final = 4 * 1024
_MINIFIED_LINE_BYTES: Final = 300
"""Average bytes per line above which a script or style sheet counts as minified."""

_MINIFIABLE_LANGUAGES: Final = frozenset({"javascript", "typescript", "css"})
# Patterns are compiled on first use: checking for changes imports this module and needs none of them.
_COMMENT_START_PATTERN: Final = rb"(?m)^[ \t]*(?://|/\*|\*|#|--|;|%|<!--|\(\*|\"\"\"|'''|@rem|REM)[^\n]{0,200}?"
_GENERATED_PATTERN: Final = (
    _COMMENT_START_PATTERN + rb"(?:@generated\b|<auto-?generated\b"
    rb"|[Gg]enerated by [^\n]{1,200}(?:DO NOT (?:EDIT|MODIFY)|[Dd]o not (?:edit|modify))"
    rb"|(?:[Cc]ode|[Ff]ile|[Cc]lass) (?:is |was |has been )?(?:automatically |auto-?)?generated"
    rb" [^\n]{0,200}(?:DO NOT (?:EDIT|MODIFY)|[Dd]o not (?:edit|modify))"
    rb"|(?:file|code|source) (?:is|was|has been) (?:automatically |auto-?|machine[- ])generated"
    rb"|A(?:UTO|uto)-?(?:GENERATED|[Gg]enerated) (?:FILE|CODE|[Ff]ile|[Cc]ode|by)\b)"
)
_MODELINE_PATTERN: Final = (
    r"-\*-[^\n]{0,100}?(?:mode:[ \t]*)?([\w+#-]+)[ \t]*(?:;[^\n]{0,100})?-\*-"
    r"|\b(?:vim?|ex):[^\n]{0,100}?\b(?:ft|filetype|syntax)=([\w+#-]+)"
)
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
    if re.search(_GENERATED_PATTERN, data[: SNIFF_BYTES // 2]):
        return "generated"
    if lang in _MINIFIABLE_LANGUAGES and len(data) >= _MIN_MINIFIED_BYTES:
        return "minified" if len(data) > _MINIFIED_LINE_BYTES * (data.count(b"\n") + 1) else ""
    return ""


def _refine_language(lang: str, head: bytes) -> str:
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
    for match in re.finditer(_MODELINE_PATTERN, "\n".join(lines[:5] + lines[-5:])):
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
    return detect_language_by_interpreter(words[0]) if words else ""


def _is_log(head: bytes) -> bool:
    """Return whether a text consists of stamped entries or of stack frames."""
    lines = [line for line in head.decode("utf-8", "replace").split("\n")[:100] if line.strip()]
    stamped = sum(1 for line in lines if re.match(_TIMESTAMP_PATTERN, line))
    frames = sum(1 for line in lines if re.match(_STACK_FRAME_PATTERN, line))
    return (stamped >= 3 and stamped * 5 >= len(lines) * 2) or (frames >= 2 and frames * 4 >= len(lines))

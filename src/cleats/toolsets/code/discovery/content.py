"""Classification of a file: whether to index it, and in which language and mode.

The name alone decides when a file is discovered, so that checking for changes costs only one stat per file; the bytes
are examined when it is read.
"""

import codecs
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from cleats.toolsets.code.analysis.facts import Mode
from cleats.toolsets.code.analysis.languages.language_names import (
    UNKNOWN_LANGUAGE,
    detect_language_by_interpreter,
    detect_language_by_path,
    get_language_mode,
    resolve_language_ids,
)

VERSION_CONTROL_FOLDERS: Final = frozenset({".git", ".hg", ".svn"})

TOOL_OUTPUT_FOLDERS: Final[Mapping[str, str]] = {
    "node_modules": "packages installed by npm and its like",
    "bower_components": "packages installed by Bower",
    "jspm_packages": "packages installed by jspm",
    "__pycache__": "compiled Python",
    "__pypackages__": "packages installed by PDM",
    ".tox": "environments of tox",
    ".nox": "environments of Nox",
    ".eggs": "packages fetched by setuptools",
    ".mypy_cache": "cache of mypy",
    ".pytest_cache": "cache of pytest",
    ".ruff_cache": "cache of Ruff",
    ".hypothesis": "examples kept by Hypothesis",
    ".ipynb_checkpoints": "copies kept by Jupyter",
    ".gradle": "cache of Gradle",
    ".terraform": "modules fetched by Terraform",
    ".next": "output of Next.js",
    ".nuxt": "output of Nuxt",
    ".svelte-kit": "output of SvelteKit",
    ".parcel-cache": "cache of Parcel",
    ".turbo": "cache of Turborepo",
    ".yarn": "packages kept by Yarn",
    ".bundle": "packages installed by Bundler",
    ".dart_tool": "cache of Dart",
    ".stack-work": "output of Stack",
    ".sass-cache": "cache of Sass",
    ".serverless": "output of Serverless",
}
"""Folders that tools create. A folder with such a name is not skipped if a file in it is tracked."""

TOOL_MARKER_FILES: Final[Mapping[str, str]] = {
    "pyvenv.cfg": "a virtual environment",
    "CACHEDIR.TAG": "marked as a cache by the tool that made it",
}
"""Files that mark their folder as tool output, whatever its name."""

_LOCKFILE_NAMES_TEXT: Final = """
    package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock cargo.lock
    poetry.lock pipfile.lock pdm.lock uv.lock conda-lock.yml composer.lock gemfile.lock podfile.lock
    package.resolved cartfile.resolved pubspec.lock mix.lock rebar.lock flake.lock gradle.lockfile
    packages.lock.json project.assets.json module.bazel.lock renv.lock go.sum go.work.sum gopkg.lock
    .terraform.lock.hcl
"""
_LOCKFILE_NAMES: Final = frozenset(_LOCKFILE_NAMES_TEXT.split())

_GENERATED_SUFFIXES_TEXT: Final = """
    .pb.go .pb.gw.go .pb.cc .pb.h .pb.swift _pb2.py _pb2.pyi _pb2_grpc.py _pb.js _pb.d.ts .g.dart
    .freezed.dart .g.cs .designer.cs .generated.cs .js.map .css.map .mjs.map .ts.map
"""
_GENERATED_SUFFIXES: Final = tuple(_GENERATED_SUFFIXES_TEXT.split())

_MINIFIED_SUFFIXES: Final = (".min.js", ".min.mjs", ".min.css", "-min.js", "-min.css")

_BINARY_EXTENSIONS_TEXT: Final = """
    7z a aac apk avi avif blend bmp bz2 cab class cur deb der dll dmg doc docx ear eot exe fbx flac
    gif glb gz heic icns ico iso jar jks jp2 jpeg jpg keystore ko lz4 lzma mid mov mp3 mp4 mpeg mpg
    msi npy npz o odp ods odt ogg opus otf p12 parquet pdb pdf pfx pkl png ppt pptx psd pyc pyd pyo
    rar rlib rpm so sqlite sqlite3 stl swf tar tgz tif tiff ttf wasm wav webm webp whl wmv woff
    woff2 xcf xls xlsx xz zip zst
"""
_BINARY_EXTENSIONS: Final = frozenset(_BINARY_EXTENSIONS_TEXT.split())
"""Extensions that are never text; the bytes of a file decide for all ambiguous ones."""


_DOCUMENT_FOLDERS: Final = frozenset({"doc", "docs", "documentation"})
_DOCUMENT_OR_CODE_LANGUAGES: Final = frozenset({"html", ""})
"""Formats that are documents when they are in a document folder."""


_SECRET_NAMES_TEXT: Final = """
    .env .netrc _netrc .npmrc .pypirc .pgpass .htpasswd .git-credentials .dockercfg id_rsa id_dsa id_ecdsa
    id_ed25519
"""
_SECRET_NAMES: Final = frozenset(_SECRET_NAMES_TEXT.split())
_SECRET_SUFFIXES: Final = (".pem", ".key", ".ppk", ".kdbx", ".tfstate", ".tfvars")
_EXAMPLE_SUFFIXES: Final = ("example", "sample", "template", "dist", "default", "defaults", "test")
"""Suffixes of names such as `.env.example`, which is meant to be read."""


def _is_secret(name: str) -> bool:
    if name.startswith(".env."):
        return not name.endswith(_EXAMPLE_SUFFIXES)
    return name in _SECRET_NAMES or name.endswith(_SECRET_SUFFIXES)


class NameVerdict(NamedTuple):
    """A file classified by name: a skip reason, or a language (empty: unknown) and a mode."""

    reason: str
    lang: str
    mode: Mode


def classify_name(path: str) -> NameVerdict:
    """Classify a file by its name, without reading it."""
    name = path.rsplit("/", 1)[-1].lower()
    if _is_secret(name):
        return NameVerdict("secret", "", "code")
    if name in _LOCKFILE_NAMES:
        return NameVerdict("lockfile", "", "code")
    if name.endswith(_GENERATED_SUFFIXES):
        return NameVerdict("generated", "", "code")
    if name.endswith(_MINIFIED_SUFFIXES):
        return NameVerdict("minified", "", "code")
    dot = name.rfind(".")
    if dot > 0 and name[dot + 1 :] in _BINARY_EXTENSIONS:
        return NameVerdict("binary", "", "code")
    lang = detect_language_by_path(name)
    return NameVerdict("", lang, select_mode(path, lang))


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

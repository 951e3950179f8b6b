"""Everything that extraction asks of this package: the readers of formats, embedded scripts, and comments as prose.

A script in a page is parsed in its own language. Everything outside the scripts is blanked, byte for byte, so that the
language engine can parse the page as a program and every position it reports is a position in the page.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import islice
from typing import Final

from cleats.toolsets.code.analysis.facts import Chunk, CommentBlock
from cleats.toolsets.code.analysis.formats.outline import Outline, SourceText

_BLANKING_TABLE = bytes(byte if byte == ord("\n") else ord(" ") for byte in range(256))


def blank_non_script(data: bytes, chunks: list[Chunk], lang: str) -> bytes:
    """Return a page as a program, in which only its scripts of one language are left."""
    segments: list[bytes] = []
    position = 0
    for start, end in _iterate_script_bodies(data, chunks, lang):
        segments += (data[position:start].translate(_BLANKING_TABLE), data[start:end])
        position = end
    return b"".join((*segments, data[position:].translate(_BLANKING_TABLE)))


def _iterate_script_bodies(data: bytes, chunks: list[Chunk], lang: str) -> Iterator[tuple[int, int]]:
    for chunk in chunks:
        if chunk.lang == lang:
            start = data.find(b">", chunk.start, chunk.end) + 1
            end = data.rfind(b"</", chunk.start, chunk.end)
            if 0 < start <= end:
                yield start, end


def extract_nested(data: bytes, chunks: list[Chunk], lang: str, parse: Callable[[bytes], list[Chunk]]) -> list[Chunk]:
    """Return the declarations in scripts of one language, removed from the scripts' text."""
    declarations = [chunk for chunk in parse(blank_non_script(data, chunks, lang)) if chunk.kind != "module"]
    for chunk in declarations:
        chunk.lang = lang
    for script in chunks:
        if script.lang == lang:
            script.own = _subtract_chunks(script, declarations)
    return declarations


def _subtract_chunks(script: Chunk, declarations: list[Chunk]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    position = script.start
    for chunk in sorted(declarations, key=lambda chunk: (chunk.start, -chunk.end)):
        if position <= chunk.start and chunk.end <= script.end:
            if position < chunk.start:
                ranges.append((position, chunk.start))
            position = chunk.end
    if position == script.start:
        return []
    return [*ranges, (position, script.end)] if position < script.end else ranges


_READERS: Final = {
    "asciidoc org rst tex": ("section", "documents.read_headings"),
    "css less scss": ("element", "markup.read_css"),
    "dockerfile": ("module", "build_files.read_dockerfile"),
    "html svelte vue": ("section", "markup.read_html"),
    "ini": ("entry", "data.read_ini"),
    "json jsonc": ("entry", "data.read_json"),
    "jsonl": ("record", "logs.read_lines"),
    "log": ("record", "logs.read_log"),
    "makefile": ("module", "build_files.read_makefile"),
    "markdown": ("section", "documents.read_markdown"),
    "sql": ("statement", "sql.read_sql"),
    "toml": ("entry", "data.read_toml"),
    "xml": ("entry", "markup.read_xml"),
    "yaml": ("entry", "data.read_yaml"),
}
READERS_BY_LANGUAGE: Final = {lang: reader for langs, reader in _READERS.items() for lang in langs.split()}
"""The kind of the text before the first cut, and the reader, which is loaded when needed."""


def extract_structure(lang: str, source: SourceText) -> tuple[list[Chunk], list[str]] | None:
    """Return the chunks and imports of a text, or None if its format has no reader."""
    reader = READERS_BY_LANGUAGE.get(lang)
    if reader is None:
        return None
    kind, name = reader
    outline = Outline(source, kind)
    module, _, function = name.partition(".")
    read: Callable[..., None] = getattr(import_module(f"{__package__}.{module}"), function)
    read(outline, **({"lang": lang} if function == "read_headings" else {}))
    return outline.build_chunks(), list(dict.fromkeys(outline.imports))


MIN_DOCSTRING_CHARS: Final = 15
MIN_COMMENT_CHARS: Final = 30
"""Characters below which a docstring or a comment carries no information."""

MIN_REMARK_WORDS: Final = 5

_MARKER_PATTERN = re.compile(r"(?m)^[ \t]*(?:/\*+!?|\*+/|//+[!/]?|#+!?|--+|;+|\"\"\"|'''|\*+)|\*+/[ \t]*$")
_MARKER_PREFIXES = ("/*", "//", "#", "--", "*", ";", '"""', "'''")
"""Beginnings of lines that `_MARKER_PATTERN` strips."""
_WORD_PATTERN = re.compile(r"[^\W\d_]\w*")
# Few remarks reach these two patterns, so they are compiled on first use.
_LEGAL_PATTERN: Final = (
    r"copyright (?:\(c\)|©|\d)|©|licen[cs]ed under|spdx-license-identifier|all rights reserved"
    r"|permission is hereby granted|redistribution and use in source"
    r"|without warranties or conditions|\blicen[cs]e, version \d"
)
_GENERATED_PATTERN: Final = (
    r"@generated|code generated .{0,80}do not edit|auto-?generated|do not (?:edit|modify)\b"
    r"|generated by .{0,80}(?:do not|automatically)"
)
_DIRECTIVE_PATTERN = re.compile(
    r"(?:eslint|jshint|jslint|tslint|stylelint|prettier|biome|istanbul|c8 ignore|webpackChunk)"
    r"|(?:noqa|nosec|nolint|nosonar|type: ?ignore|mypy:|pyright:|pylint:|flake8:|ruff:|isort:|fmt:"
    r"|yapf:|pragma:|coverage:)|@ts-|@jsx|@flow|(?:rubocop|reek|sorbet|typed|phpcs|phpstan|psalm)\b"
    r"|shellcheck |clang-(?:format|tidy)|NOLINT|go:|\+build|swiftlint:|ktlint|detekt|checkstyle"
    r"|(?:end)?region\b|vim?: ?set|-\*-|cspell|spell-?checker|sourceMappingURL|@formatter:",
    re.IGNORECASE,
)


_BOILERPLATE_HINTS: Final = (
    *("copyright ", "licen", "rights reserved", "permission is"),
    *("redistribution", "warranties", "generated", "do not "),
)
"""Every legal or generated text contains one of these, in lower case."""


def extract_prose(remarks: Iterable[CommentBlock], stem: str) -> list[Chunk]:
    """Return the informative remarks as chunks, named after their subjects."""
    return [
        Chunk(
            *(remark.kind, remark.owner or stem, remark.start, remark.end, remark.start_line, remark.end_line),
            mode="extracted-prose",
            doc=text,
        )
        for remark in remarks
        if (text := clean_remark(remark.text, remark.kind))
    ]


def clean_remark(text: str, kind: str) -> str:
    """Return the text of a remark without its markers, or empty text if it is not worth finding."""
    content = _strip_markers(text).strip()
    if len(content) < (MIN_DOCSTRING_CHARS if kind == "docstring" else MIN_COMMENT_CHARS):
        return ""
    if len(list(islice(_WORD_PATTERN.finditer(content), MIN_REMARK_WORDS))) < MIN_REMARK_WORDS:
        return ""
    return "" if _DIRECTIVE_PATTERN.match(content) or _is_boilerplate(content[:2000]) else content


def _strip_markers(text: str) -> str:
    # The pattern scans every character; hardly any text still has a marker.
    if "*/" in text or any(line.lstrip(" \t").startswith(_MARKER_PREFIXES) for line in text.split("\n")):
        return _MARKER_PATTERN.sub("", text)
    return text


def _is_boilerplate(content: str) -> bool:
    # The patterns scan every character, and also match equivalents beyond ASCII.
    lowered = content.lower()
    if content.isascii() and not any(word in lowered for word in _BOILERPLATE_HINTS):
        return False
    return any(re.search(pattern, content, re.IGNORECASE) for pattern in (_LEGAL_PATTERN, _GENERATED_PATTERN))

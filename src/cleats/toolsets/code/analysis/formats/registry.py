"""Scripts embedded in a page, parsed in their own language.

Everything outside the scripts is blanked, byte for byte, so that the language engine can parse the
page as a program and every position it reports is a position in the page.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Final

from cleats.toolsets.code.analysis.facts import Chunk
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


FormatReader = Callable[[Outline], None]

_READERS: Final = {
    "asciidoc org rst tex": ("section", "documents.read_headings"),
    "css less scss": ("element", "markup.read_css"),
    "dockerfile": ("module", "build_files.read_dockerfile"),
    "html svelte vue": ("section", "markup.read_html"),
    "ini": ("entry", "tables.read_ini"),
    "json jsonc": ("entry", "json.read_json"),
    "jsonl": ("record", "logs.read_lines"),
    "log": ("record", "logs.read_log"),
    "makefile": ("module", "build_files.read_makefile"),
    "markdown": ("section", "documents.read_markdown"),
    "sql": ("statement", "sql.read_sql"),
    "toml": ("entry", "tables.read_toml"),
    "xml": ("entry", "markup.read_xml"),
    "yaml": ("entry", "yaml.read_yaml"),
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
    _load_reader(lang, name)(outline)
    return outline.build_chunks(), list(dict.fromkeys(outline.imports))


def _load_reader(lang: str, name: str) -> FormatReader:
    module, _, function = name.partition(".")
    read: Callable[..., None] = getattr(import_module(f"{__package__}.{module}"), function)
    return partial(read, lang=lang) if function == "read_headings" else read

"""The readers of formats by language id, and the one way to use them."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Final

from cleats.toolsets.code.facts import Chunk
from cleats.toolsets.code.structure.outline import Outline
from cleats.toolsets.code.structure.source import Source

Reader = Callable[[Outline], None]

READERS: Final[Mapping[str, tuple[str, str]]] = {
    "asciidoc": ("section", "headings.read"),
    "css": ("element", "css.read"),
    "dockerfile": ("module", "dockerfile.read"),
    "html": ("section", "html.read"),
    "ini": ("entry", "tables.read_ini"),
    "json": ("entry", "json.read"),
    "jsonc": ("entry", "json.read"),
    "jsonl": ("record", "records.read_lines"),
    "less": ("element", "css.read"),
    "log": ("record", "records.read"),
    "makefile": ("module", "makefile.read"),
    "markdown": ("section", "markdown.read"),
    "org": ("section", "headings.read"),
    "rst": ("section", "headings.read"),
    "scss": ("element", "css.read"),
    "sql": ("statement", "sql.read"),
    "svelte": ("section", "html.read"),
    "tex": ("section", "headings.read"),
    "toml": ("entry", "tables.read_toml"),
    "vue": ("section", "html.read"),
    "xml": ("entry", "xml.read"),
    "yaml": ("entry", "yaml.read"),
}
"""The kind of what stands before everything else, and the reader, which is loaded when needed."""


def structured(lang: str, source: Source) -> tuple[list[Chunk], list[str]] | None:
    """The chunks and imports of a text in a format that has a reader."""
    found = READERS.get(lang)
    if found is None:
        return None
    kind, name = found
    outline = Outline(source, kind)
    _reader(lang, name)(outline)
    return outline.chunks(), list(dict.fromkeys(outline.imports))


def _reader(lang: str, name: str) -> Reader:
    module, _, function = name.partition(".")
    read: Callable[..., None] = getattr(import_module(f"{__package__}.{module}"), function)
    return partial(read, lang=lang) if module == "headings" else read

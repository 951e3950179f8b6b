"""The readers of formats by language id, and the one way to use them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from cleats.toolsets.code.facts import Chunk
from cleats.toolsets.code.structure import (
    css,
    dockerfile,
    headings,
    html,
    json,
    makefile,
    markdown,
    records,
    sql,
    tables,
    xml,
    yaml,
)
from cleats.toolsets.code.structure.outline import Outline
from cleats.toolsets.code.structure.source import Source

Reader = Callable[[Outline], None]

READERS: Final[Mapping[str, tuple[str, Reader]]] = {
    "asciidoc": ("section", partial(headings.read, lang="asciidoc")),
    "css": ("element", css.read),
    "dockerfile": ("module", dockerfile.read),
    "html": ("section", html.read),
    "ini": ("entry", tables.read_ini),
    "json": ("entry", json.read),
    "jsonc": ("entry", json.read),
    "jsonl": ("record", records.read_lines),
    "less": ("element", css.read),
    "log": ("record", records.read),
    "makefile": ("module", makefile.read),
    "markdown": ("section", markdown.read),
    "org": ("section", partial(headings.read, lang="org")),
    "rst": ("section", partial(headings.read, lang="rst")),
    "scss": ("element", css.read),
    "sql": ("statement", sql.read),
    "svelte": ("section", html.read),
    "tex": ("section", partial(headings.read, lang="tex")),
    "toml": ("entry", tables.read_toml),
    "vue": ("section", html.read),
    "xml": ("entry", xml.read),
    "yaml": ("entry", yaml.read),
}
"""The kind of what stands before everything else, and the reader."""


def structured(lang: str, source: Source) -> tuple[list[Chunk], list[str]] | None:
    """The chunks and imports of a text in a format that has a reader."""
    found = READERS.get(lang)
    if found is None:
        return None
    kind, read = found
    outline = Outline(source, kind)
    read(outline)
    return outline.chunks(), list(dict.fromkeys(outline.imports))

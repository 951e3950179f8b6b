"""From the bytes of a file to everything they say.

The one place that chooses who reads a file: the engine of its language, the reader of its format,
or blocks of lines. Nothing a file can hold makes it fail; what was not understood is said in
`problem`.
"""

import codecs
from typing import Final

from cleats.toolsets.code.facts import Chunk, FileFacts, Mode
from cleats.toolsets.code.structure.blocks import blocks
from cleats.toolsets.code.structure.embedded import nested
from cleats.toolsets.code.structure.formats import structured
from cleats.toolsets.code.structure.remarks import prose
from cleats.toolsets.code.structure.source import Source, line_count

_WIDE: Final = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""The longer mark first: the one of UTF-32 begins with the one of UTF-16."""


def extract(path: str, data: bytes, lang: str, mode: Mode) -> FileFacts:
    """Read a file. Offsets are those of `readable(data)`, which for UTF-8 is `data` itself."""
    text, problem = _decoded(data)
    facts = FileFacts(lang, mode, line_count(text), problem=problem)
    if not text.strip():
        return facts
    source = Source(path, text)
    try:
        _read(source, facts)
    except Exception as error:  # noqa: BLE001 - one file must never end a build
        facts.chunks = []
        _note(facts, f"could not be parsed: {type(error).__name__}")
    if not facts.chunks:
        facts.chunks = blocks(source)
    for chunk in facts.chunks:
        if chunk.mode != "extracted-prose":
            chunk.mode = mode
    return facts


def readable(data: bytes) -> bytes:
    """The bytes that offsets count in: UTF-16 and UTF-32 become UTF-8, all else stays."""
    return _decoded(data)[0]


def _decoded(data: bytes) -> tuple[bytes, str]:
    for mark, encoding in _WIDE:
        if data.startswith(mark):
            text = data[len(mark) :].decode(encoding, "replace")
            label = encoding[:6].upper()
            return text.encode(), f"decoded from {label}; offsets are of the decoded text"
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return data, f"not valid UTF-8 at line {line}"
    return data, ""


def _read(source: Source, facts: FileFacts) -> None:
    if facts.mode == "code" and _has_engine(facts.lang):
        facts.chunks = _declarations(source, facts)
    elif found := structured(facts.lang, source):
        facts.chunks, facts.imports = found
        for lang in dict.fromkeys(chunk.lang for chunk in facts.chunks):
            if lang and _has_engine(lang):
                facts.chunks += _embedded(source, facts, lang)


def _has_engine(lang: str) -> bool:
    # The tables load slowly and only builders need them.
    from cleats.toolsets.code.languages.registry import LANGUAGES  # noqa: PLC0415

    return lang in LANGUAGES


def _declarations(source: Source, facts: FileFacts) -> list[Chunk]:
    from cleats.toolsets.code.languages.engine import declarations  # noqa: PLC0415

    parsed = declarations(facts.lang, source.path, source.data)
    facts.imports = parsed.imports
    facts.exports = parsed.exports
    if parsed.problem:
        _note(facts, parsed.problem)
    if not parsed.chunks:
        return []
    return [*parsed.chunks, *prose(parsed.comments, source.stem)]


def _embedded(source: Source, facts: FileFacts, lang: str) -> list[Chunk]:
    from cleats.toolsets.code.languages.engine import Parsed, declarations  # noqa: PLC0415

    def read(program: bytes) -> Parsed:
        parsed = declarations(lang, source.path, program)
        facts.imports = list(dict.fromkeys([*facts.imports, *parsed.imports]))
        facts.exports = list(dict.fromkeys([*facts.exports, *parsed.exports]))
        return parsed

    return nested(source.data, facts.chunks, lang, read)


def _note(facts: FileFacts, problem: str) -> None:
    facts.problem = f"{facts.problem}; {problem}" if facts.problem else problem

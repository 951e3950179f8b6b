"""Extraction of facts from the bytes of a file.

This is the only place that chooses the reader of a file: the engine of its language, the parser of
its format, or blocks of lines. No content can make it fail; whatever was not understood is reported
in `problem`.
"""

import codecs
from typing import Final

from cleats.toolsets.code.analysis.facts import Chunk, FileFacts, Mode
from cleats.toolsets.code.analysis.formats.outline import SourceText, count_lines, split_blocks
from cleats.toolsets.code.analysis.formats.registry import extract_nested, extract_prose, extract_structure

_WIDE_ENCODINGS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte order marks and their encodings, longer marks first: UTF-32's begins with UTF-16's."""


def extract_facts(path: str, data: bytes, lang: str, mode: Mode) -> FileFacts:
    """Extract the facts of a file; offsets refer to `convert_to_utf8(data)`.

    For UTF-8 that is `data` itself.
    """
    text, problem = _convert_and_describe(data)
    facts = FileFacts(lang, mode, count_lines(text), problem=problem)
    if not text.strip():
        return facts
    source = SourceText(path, text)
    try:
        _parse_source(source, facts)
    except Exception as error:  # noqa: BLE001 - one file must never end a build
        facts.chunks = []
        _add_problem(facts, f"could not be parsed: {type(error).__name__}")
    if not facts.chunks:
        facts.chunks = split_blocks(source)
    for chunk in facts.chunks:
        if chunk.mode != "extracted-prose":
            chunk.mode = mode
    return facts


def convert_to_utf8(data: bytes) -> bytes:
    """Convert UTF-16 and UTF-32 to UTF-8 and leave other bytes; offsets refer to the result."""
    return _convert_and_describe(data)[0]


def _convert_and_describe(data: bytes) -> tuple[bytes, str]:
    for mark, encoding in _WIDE_ENCODINGS:
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


def _parse_source(source: SourceText, facts: FileFacts) -> None:
    if facts.mode == "code" and _has_language_engine(facts.lang):
        facts.chunks = _parse_declarations(source, facts)
    elif parsed := extract_structure(facts.lang, source):
        facts.chunks, facts.imports = parsed
        for lang in dict.fromkeys(chunk.lang for chunk in facts.chunks):
            if lang and _has_language_engine(lang):
                facts.chunks += _parse_embedded(source, facts, lang)


def _has_language_engine(lang: str) -> bool:
    # The tables load slowly and only builders need them.
    from cleats.toolsets.code.analysis.languages.engine import LANGUAGES  # noqa: PLC0415

    return lang in LANGUAGES


def _parse_declarations(source: SourceText, facts: FileFacts) -> list[Chunk]:
    from cleats.toolsets.code.analysis.languages.engine import parse_declarations  # noqa: PLC0415

    parsed = parse_declarations(facts.lang, source.path, source.data)
    facts.imports, facts.exports = parsed.imports, parsed.exports
    if parsed.problem:
        _add_problem(facts, parsed.problem)
    return [] if not parsed.chunks else [*parsed.chunks, *extract_prose(parsed.comments, source.stem)]


def _parse_embedded(source: SourceText, facts: FileFacts, lang: str) -> list[Chunk]:
    from cleats.toolsets.code.analysis.languages.engine import parse_declarations  # noqa: PLC0415

    def parse_program(program: bytes) -> list[Chunk]:
        parsed = parse_declarations(lang, source.path, program)
        facts.imports = list(dict.fromkeys([*facts.imports, *parsed.imports]))
        facts.exports = list(dict.fromkeys([*facts.exports, *parsed.exports]))
        return parsed.chunks

    return extract_nested(source.data, facts.chunks, lang, parse_program)


def _add_problem(facts: FileFacts, problem: str) -> None:
    facts.problem = f"{facts.problem}; {problem}" if facts.problem else problem

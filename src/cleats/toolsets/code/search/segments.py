"""A Tantivy index of one shard's chunks, written once and never changed.

A document's number is its chunk's position, because one thread writes them in order into one
segment. Texts come in indexed form, with a space between words, so nothing is analysed here.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import tantivy

from cleats.toolsets.code.search.digest import Texts

FOLDER: Final = "words"
POSITIONAL: Final = ("words", "cased", "name", "path")
"""Fields in which words are found in a row."""
COUNTED: Final = ("stems", "whole", "label", "own", "signature", "doc")

HEAP: Final = 1 << 30
"""Bytes before a segment is written out: more than a shard has, so that it becomes one."""


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    for name in POSITIONAL:
        builder.add_text_field(name, tokenizer_name="spaced", index_option="position")
    for name in COUNTED:
        builder.add_text_field(name, tokenizer_name="spaced", index_option="freq")
    builder.add_unsigned_field("mode", indexed=True)
    builder.add_unsigned_field("position", indexed=True, fast=True)
    return builder.build()


SCHEMA: Final = _schema()


def write(folder: Path, documents: Iterable[tuple[str, int, Texts]]) -> None:
    """Index chunks in the order of their positions: the stems of the path, the mode, the texts."""
    place = folder / FOLDER
    place.mkdir()
    index = tantivy.Index(SCHEMA, path=str(place))
    spaced = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
    index.register_tokenizer("spaced", spaced)
    writer = index.writer(heap_size=HEAP, num_threads=1)
    for position, (path, mode, texts) in enumerate(documents):
        writer.add_document(_document(position, path, mode, texts))
    writer.commit()
    writer.wait_merging_threads()
    with suppress(OSError):  # only for writers, of which there will be none
        for lock in place.glob(".*.lock"):
            lock.unlink()


def _document(position: int, path: str, mode: int, texts: Texts) -> Any:
    document = tantivy.Document()
    document.add_text("words", texts.cased.lower())
    document.add_text("cased", texts.cased)
    document.add_text("stems", texts.stems)
    document.add_text("name", texts.name)
    document.add_text("label", texts.label)
    document.add_text("own", texts.own)
    document.add_text("path", path)
    for field in ("whole", "signature", "doc"):
        if text := getattr(texts, field):
            document.add_text(field, text)
    document.add_unsigned("mode", mode)
    document.add_unsigned("position", position)
    return document

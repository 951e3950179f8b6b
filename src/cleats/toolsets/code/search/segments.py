"""The Tantivy index of a generation: a segment for each shard, written once and never changed.

A shard's segment is written in an index of its own, and those of all shards are then put together
by naming them in one table. So a changed file costs the writing of one segment, and a question is
put once to one index whose statistics are those of all chunks.

One thread writes the chunks of a shard in the order of their positions. Texts come in indexed
form, with a space between words, so nothing is analysed here.
"""

import json
import shutil
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

import tantivy

from cleats.toolsets.code.search.digest import Texts
from cleats.toolsets.code.store.files import link

FOLDER: Final = "words"
TABLE: Final = "meta.json"
"""Where Tantivy looks for the names of the segments."""
OWN_TABLE: Final = "words.json"
"""The same with a shard's own only."""

POSITIONAL: Final = ("words", "cased", "name", "path")
"""Fields in which words are found in a row."""
COUNTED: Final = ("stems", "whole", "label", "own", "signature", "doc")

HEAP: Final = 1 << 30
"""Bytes before a segment is written out: more than a shard has, so that it becomes one."""

Known: TypeAlias = dict[str, list[Path]]
"""The files of each segment."""

SHARD_BITS: Final = 32
"""Below them is a chunk's position in its shard, above them the number of the shard."""


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    for name in POSITIONAL:
        builder.add_text_field(name, tokenizer_name="spaced", index_option="position")
    for name in COUNTED:
        builder.add_text_field(name, tokenizer_name="spaced", index_option="freq")
    builder.add_unsigned_field("mode", indexed=True)
    builder.add_unsigned_field("place", indexed=True, fast=True)
    return builder.build()


SCHEMA: Final = _schema()


def write(shard: Path, number: int, documents: Iterable[tuple[str, int, Texts]]) -> None:
    """Index chunks in the order of their positions: the stems of the path, the mode, the texts."""
    own = shard / FOLDER
    own.mkdir()
    index = tantivy.Index(SCHEMA, path=str(own))
    spaced = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
    index.register_tokenizer("spaced", spaced)
    writer = index.writer(heap_size=HEAP, num_threads=1)
    for place, (path, mode, texts) in enumerate(documents, number << SHARD_BITS):
        writer.add_document(_document(place, path, mode, texts))
    writer.commit()
    writer.wait_merging_threads()


def _document(place: int, path: str, mode: int, texts: Texts) -> Any:
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
    document.add_unsigned("place", place)
    return document


def known(generation: Path | None) -> Known:
    """The segments of a generation, if there is one."""
    found: Known = {}
    place = generation and generation / FOLDER
    for path in place.iterdir() if place and place.is_dir() else ():
        found.setdefault(path.stem, []).append(path)
    return found


def is_whole(shard: Path, segments: Known) -> bool:
    """Whether all that a shard has written is among these segments."""
    own = shard / OWN_TABLE
    return own.exists() and all(name in segments for name in _names(_table(own)))


def join(folder: Path, shards: Sequence[Path], segments: Known) -> None:
    """Make one index of the segments of all shards.

    Args:
        folder: The generation that is being built.
        shards: In their order.
        segments: Those of the generation before, where they are that were not just written.
    """
    place = folder / FOLDER
    place.mkdir()
    whole: dict[str, Any] = {"segments": []}
    for shard in shards:
        if (shard / FOLDER).is_dir():
            _move(shard, place)
        own = _table(shard / OWN_TABLE)
        for path in chain.from_iterable(segments.get(name, ()) for name in _names(own)):
            link(path, place / path.name)
        whole = own | {"segments": whole["segments"] + own["segments"]}
    (place / TABLE).write_text(json.dumps(whole), "utf-8")


def _move(shard: Path, place: Path) -> None:
    """Put the segment that a shard has just written where all of them are."""
    own = shard / FOLDER
    (own / TABLE).rename(shard / OWN_TABLE)
    for path in own.iterdir():
        if not path.name.startswith("."):  # locks, and what only a writer wants to know
            path.rename(place / path.name)
    shutil.rmtree(own)


def _table(path: Path) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(path.read_bytes())
    return table


def _names(table: dict[str, Any]) -> list[str]:
    """What the files of each segment are called."""
    return [segment["segment_id"].replace("-", "") for segment in table["segments"]]

"""The Tantivy index of a generation: a segment for each shard, written once and never changed.

A shard's segment is written to a separate index, and the segments of all shards are then joined by
naming them in one metadata file. So a changed file costs the writing of one segment, and a query
runs once on one index whose statistics cover all chunks.

One thread writes the chunks of a shard in the order of their positions. Texts come in indexed form,
with a space between words, so nothing is analysed here.
"""

import json
import shutil
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

import tantivy

from cleats.system.atomic_files import link_file
from cleats.toolsets.code.index.digest import ChunkTexts

SEGMENTS_FOLDER: Final = "words"
META_FILE_NAME: Final = "meta.json"
"""The file in which Tantivy looks for the names of the segments."""
SHARD_META_FILE_NAME: Final = "words.json"
"""The same file with only the segment of a shard."""

POSITIONAL_FIELDS: Final = ("words", "cased", "name", "path")
"""Fields that support sequences of words."""
FREQUENCY_FIELDS: Final = ("stems", "whole", "label", "own", "signature", "doc")

WRITER_HEAP_BYTES: Final = 1 << 30
"""Bytes before a segment is written out: more than a shard has, so that it becomes one."""

SegmentFiles: TypeAlias = dict[str, list[Path]]
"""The files of each segment."""

POSITION_BITS: Final = 32
"""The lower bits hold a chunk's position in its shard, the bits above them the shard's number."""


def _build_schema() -> Any:
    builder = tantivy.SchemaBuilder()
    for name in POSITIONAL_FIELDS:
        builder.add_text_field(name, tokenizer_name="spaced", index_option="position")
    for name in FREQUENCY_FIELDS:
        builder.add_text_field(name, tokenizer_name="spaced", index_option="freq")
    builder.add_unsigned_field("mode", indexed=True)
    builder.add_unsigned_field("place", indexed=True, fast=True)
    return builder.build()


TANTIVY_SCHEMA: Final = _build_schema()


def write_segment(shard: Path, number: int, documents: Iterable[tuple[str, int, ChunkTexts]]) -> None:
    """Index chunks in the order of their positions: the stems of the path, the mode, the texts."""
    index_folder = shard / SEGMENTS_FOLDER
    index_folder.mkdir()
    index = tantivy.Index(TANTIVY_SCHEMA, path=str(index_folder))
    analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
    index.register_tokenizer("spaced", analyzer)
    writer = index.writer(heap_size=WRITER_HEAP_BYTES, num_threads=1)
    for place, (path, mode, texts) in enumerate(documents, number << POSITION_BITS):
        writer.add_document(_make_document(place, path, mode, texts))
    writer.commit()
    writer.wait_merging_threads()


def _make_document(place: int, path: str, mode: int, texts: ChunkTexts) -> Any:
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


def find_segments(generation: Path | None) -> SegmentFiles:
    """Return the segments of a generation, if there is one."""
    files_by_segment: SegmentFiles = {}
    for path in (generation / SEGMENTS_FOLDER).glob("*") if generation else ():
        files_by_segment.setdefault(path.stem, []).append(path)
    return files_by_segment


def has_all_segments(shard: Path, segments: SegmentFiles) -> bool:
    """Return whether all segments of a shard are among these."""
    meta_path = shard / SHARD_META_FILE_NAME
    return meta_path.exists() and all(name in segments for name in _list_segment_names(_read_meta(meta_path)))


def join_segments(folder: Path, shards: Sequence[Path], segments: SegmentFiles) -> None:
    """Join the segments of all shards, in their order, to one index in the folder of a new generation.

    Shards that were not just written have theirs among the `segments` of the previous generation.
    """
    index_folder = folder / SEGMENTS_FOLDER
    index_folder.mkdir()
    joined_meta: dict[str, Any] = {"segments": []}
    for shard in shards:
        if (shard / SEGMENTS_FOLDER).is_dir():
            _move_segment(shard, index_folder)
        shard_meta = _read_meta(shard / SHARD_META_FILE_NAME)
        for path in chain.from_iterable(segments.get(name, ()) for name in _list_segment_names(shard_meta)):
            link_file(path, index_folder / path.name)
        joined_meta = shard_meta | {"segments": joined_meta["segments"] + shard_meta["segments"]}
    (index_folder / META_FILE_NAME).write_text(json.dumps(joined_meta), "utf-8")


def _move_segment(shard: Path, target: Path) -> None:
    """Move the segment that a shard has just written to the joined index."""
    source = shard / SEGMENTS_FOLDER
    (source / META_FILE_NAME).rename(shard / SHARD_META_FILE_NAME)
    for path in source.iterdir():
        if not path.name.startswith("."):  # locks, and files that only a writer needs
            path.rename(target / path.name)
    shutil.rmtree(source)


def _read_meta(path: Path) -> dict[str, Any]:
    meta: dict[str, Any] = json.loads(path.read_bytes())
    return meta


def _list_segment_names(meta: dict[str, Any]) -> list[str]:
    return [segment["segment_id"].replace("-", "") for segment in meta["segments"]]

"""The shards that searches read, derived from the catalogue.

Files are distributed over shards by the hash of their paths. A shard is named after its content, so
an unchanged one is reused from the previous generation, by hard links, and the others are written
again: the answers of a generation depend on its catalogue alone, never on its history.
"""

import shutil
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path

import msgspec

from cleats.system.atomic_files import link_file
from cleats.toolsets.code.analysis.risk.summary import Risk
from cleats.toolsets.code.index import column_updates, column_writer, segments, tokens
from cleats.toolsets.code.index.catalogue import IndexCatalogue
from cleats.toolsets.code.index.catalogue_schema import CATALOGUE_FILE_NAME, Relations
from cleats.toolsets.code.index.digest import ChunkTexts, FileAttributes, unpack_attributes
from cleats.toolsets.code.index.progress import BuildProgress, ProgressCallback
from cleats.toolsets.code.index.shard_plans import (
    LATE_HASH_FILE_NAME,
    SELECT_CHUNKS_SQL,
    SELECT_HISTORY_SQL,
    SHARD_FORMAT_VERSION,
    SHARDS_FOLDER,
    ShardPlan,
    choose_shard_count,
    list_shard_folders,
    plan_shards,
    plan_update,
    write_shard_table,
)

__all__ = ["SHARD_FORMAT_VERSION", "choose_shard_count", "list_shard_folders", "unpack_risk_columns", "write_shards"]

_SELECT_CONTENT_SQL = "SELECT facts, attributes, vectors FROM files WHERE id = ?"
_relations_decoder = msgspec.msgpack.Decoder(Relations)
_risk_decoder = msgspec.msgpack.Decoder(Risk)
_names_decoder = msgspec.msgpack.Decoder(list[str])


def write_shards(
    folder: Path,
    previous: Path | None,
    report: ProgressCallback,
    workers: int = 1,
    *,
    changed_paths: AbstractSet[str] | None = None,
) -> None:
    """Write everything in `folder` that a search reads besides the catalogue, which is complete.

    Unchanged shards of an earlier generation are reused. `changed_paths` are the paths of all files that can differ
    from it, also of those that are gone; None if any can.
    """

    def report_done(done: int, total: int) -> None:
        report(BuildProgress("search", "making it searchable", done, total))

    catalogue = folder / CATALOGUE_FILE_NAME
    (folder / SHARDS_FOLDER).mkdir()
    known_segments = segments.find_segments(previous)
    with IndexCatalogue.open(catalogue) as source:
        shards = None
        if previous is not None and changed_paths is not None:
            shards = plan_update(source, folder, previous, known_segments, changed_paths)
        shards = shards or list(plan_shards(source, folder, previous, known_segments))
        remaining = {shard.folder: shard for shard in shards}
        new_shards = [shard for shard in shards if shard.previous is None and not shard.is_recent]
        for shard in _write_in_parallel(catalogue, new_shards, workers):
            del remaining[shard.folder]
            report_done(len(shards) - len(remaining), len(shards))
        for done, shard in enumerate(remaining.values(), len(shards) - len(remaining) + 1):
            _write_shard(source, shard)
            report_done(done, len(shards))
    segments.join_segments(folder, [shard.folder for shard in shards], known_segments)
    write_shard_table(folder, shards)


def _write_in_parallel(catalogue: Path, shards: Sequence[ShardPlan], workers: int) -> Iterator[ShardPlan]:
    """Let several processes write shards; yield those that are done.

    Shards that a process cannot write, perhaps for lack of space, are not yielded: writing them in
    this process shows the reason.
    """
    if workers < 2 or len(shards) < 2:
        return
    from cleats.system.worker_pool import MAX_PENDING_WEIGHT, LostTask, ProcessPool  # noqa: PLC0415 - searches need none

    pool = ProcessPool(partial(_write_in_worker, catalogue), min(workers, len(shards)), limited=False)
    for shard, result in pool.map(shards, lambda _: MAX_PENDING_WEIGHT // (2 * workers)):
        if isinstance(result, LostTask):
            shutil.rmtree(shard.folder, ignore_errors=True)
        else:
            yield shard


def _write_in_worker(catalogue: Path, shard: ShardPlan) -> bytes:
    with IndexCatalogue.open(catalogue) as source:
        _write_shard(source, shard)
    return b""


def _write_shard(source: IndexCatalogue, shard: ShardPlan) -> None:
    folder, previous = shard.folder, shard.previous
    folder.mkdir()
    if previous is None:
        _write_content(source, shard)
        _write_late(source, shard)
        return
    hash_path = previous / LATE_HASH_FILE_NAME
    is_same = hash_path.exists() and hash_path.read_bytes() == shard.late_hash
    for path in previous.iterdir():
        if is_same or path.name not in {column_writer.LATE_FILE_NAME, LATE_HASH_FILE_NAME}:
            link_file(path, folder / path.name)
    if not is_same:
        _write_late(source, shard)


def _write_content(source: IndexCatalogue, shard: ShardPlan) -> None:
    content = column_writer.ContentColumns()
    rows: list[bytes] = []
    earlier_paths = column_updates.read_paths(shard.outdated) if shard.outdated else []
    numbers = {path: number for number, path in enumerate(earlier_paths)}
    file_order: list[int] = []

    def _make_documents() -> Iterator[tuple[str, int, ChunkTexts]]:
        for file in shard.files:
            facts, packed, row = next(source.connection.execute(_SELECT_CONTENT_SQL, (file.id,)))
            file_attributes: FileAttributes = unpack_attributes(packed)
            path = tokens.stem_text(file.path)
            if file.path in numbers and file.path not in shard.changed_paths:
                file_order.append(numbers[file.path])
            else:
                file_order.append(len(numbers) + content.file_count)
                content.add_file(file.path, path, _relations_decoder.decode(facts).imports, file_attributes)
            rows.append(row)
            for mode, texts in zip(file_attributes.modes, file_attributes.texts, strict=True):
                yield path, mode, texts

    segments.write_segment(shard.folder, shard.number, _make_documents())
    if shard.outdated and shard.files:
        column_updates.update_columns(shard.outdated, shard.folder, content, file_order)
    else:
        content.save(shard.folder)
    column_writer.write_vectors(shard.folder, rows)


def _write_late(source: IndexCatalogue, shard: ShardPlan) -> None:
    late = column_writer.LateColumns()
    for file in shard.files:
        [(author, modified, churn)] = source.connection.execute(SELECT_HISTORY_SQL, (file.id,))
        late.add_file(author, modified, churn)
        for risk, authors, lint in source.connection.execute(SELECT_CHUNKS_SQL, (file.id,)):
            values = unpack_risk_columns(risk) if risk else {}
            values["chunkAuthor"] = _names_decoder.decode(authors) if authors else [author or ""]
            late.add_chunk(values, lint=bool(lint))
    late.save(shard.folder)
    (shard.folder / LATE_HASH_FILE_NAME).write_bytes(shard.late_hash)


def unpack_risk_columns(packed: bytes) -> dict[str, list[str]]:
    """Unpack the risk of a chunk into columns."""
    risk = _risk_decoder.decode(packed)
    return {
        "riskTag": risk.tags,
        "riskSource": risk.sources,
        "riskSink": risk.sinks,
        "riskCategory": risk.categories,
        "riskFlow": [str(flow) for flow in risk.flows],
        "riskSeverity": [risk.severity],
    }

"""The shards that searches read, derived from the catalogue.

Files are distributed over shards by the hash of their paths. A shard is named after its content, so
an unchanged one is reused from the previous generation, by hard links, and the others are written
again: the answers of a generation depend on its catalogue alone, never on its history.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.atomic_files import link_file
from cleats.toolsets.code.analysis.risk.summary import Risk
from cleats.toolsets.code.index import column_updates, column_writer, segments, tokens
from cleats.toolsets.code.index.catalogue import IndexCatalogue
from cleats.toolsets.code.index.catalogue_schema import CATALOGUE_FILE_NAME, Relations
from cleats.toolsets.code.index.digest import ChunkTexts, FileAttributes, unpack_attributes
from cleats.toolsets.code.index.progress import BuildProgress, ProgressCallback

SHARDS_FOLDER: Final = "shards"
SHARD_TABLE_FILE_NAME: Final = "shards.json"

LATE_HASH_FILE_NAME: Final = "late.mark"
"""The hash of the facts from which the second set of columns of a shard was made."""

SHARD_FORMAT_VERSION: Final = 4
"""Rises when the same catalogue produces different shards."""

SMALL_SHARD_FILES, LARGE_SHARD_FILES, MAX_SMALL_SHARDS = 16, 512, 8
"""Approximate number of files in a shard, all of which one changed file rewrites. Every shard costs
a search some time, so there are few until each is full."""

# What git says lies behind the contents of a file; reading it for all files would read the whole catalogue.
_SELECT_FILES_SQL = "SELECT id, path, hash, problem FROM files"
_SELECT_HISTORY_SQL = "SELECT last_author, last_modified, churn FROM files WHERE id = ?"
_SELECT_CONTENT_SQL = "SELECT facts, attributes, vectors FROM files WHERE id = ?"
_SELECT_CHUNKS_SQL = "SELECT risk, authors, lint FROM chunks WHERE file = ? ORDER BY ordinal"

_relations_decoder = msgspec.msgpack.Decoder(Relations)
_risk_decoder = msgspec.msgpack.Decoder(Risk)
_names_decoder = msgspec.msgpack.Decoder(list[str])
_pack = msgspec.msgpack.Encoder().encode


class _ShardFile(Struct, frozen=True):
    id: int
    path: str
    hash: bytes
    problem: str


class _ShardPlan(Struct, frozen=True):
    number: int
    folder: Path
    previous: Path | None
    """The same shard of an earlier generation, if there is one."""
    late_hash: bytes
    """The hash of the facts from git, risk and lint."""
    files: list[_ShardFile]
    """Its files; none where nothing of an earlier shard has changed."""
    outdated: Path | None = None
    """The shard of an earlier generation from which this one differs only in the changed files, if there is one."""
    changed_paths: AbstractSet[str] = frozenset()


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
            shards = _plan_update(source, folder, previous, known_segments, changed_paths)
        shards = shards or list(_plan_shards(source, folder, previous, known_segments))
        remaining = {shard.folder: shard for shard in shards}
        new_shards = [shard for shard in shards if shard.previous is None]
        for shard in _write_in_parallel(catalogue, new_shards, workers):
            del remaining[shard.folder]
            report_done(len(shards) - len(remaining), len(shards))
        for done, shard in enumerate(remaining.values(), len(shards) - len(remaining) + 1):
            _write_shard(source, shard)
            report_done(done, len(shards))
    segments.join_segments(folder, [shard.folder for shard in shards], known_segments)
    names = [shard.folder.name for shard in shards]
    (folder / SHARD_TABLE_FILE_NAME).write_text(json.dumps({"format": SHARD_FORMAT_VERSION, "shards": names}), "utf-8")


def _plan_shards(
    source: IndexCatalogue, folder: Path, previous: Path | None, known_segments: segments.SegmentFiles
) -> Iterator[_ShardPlan]:
    format_key = _read_format_key(source)
    for number, files in enumerate(_deal_files(source)):
        name = f"{number:04d}-{_hash_content(format_key, files)}"
        previous_shard = previous / SHARDS_FOLDER / name if previous else None
        if previous_shard is not None and not _is_complete(previous_shard, known_segments):
            previous_shard = None
        late_hash = _hash_late_facts(source, files)
        yield _ShardPlan(number, folder / SHARDS_FOLDER / name, previous_shard, late_hash, files)


def _plan_update(
    source: IndexCatalogue,
    folder: Path,
    previous: Path,
    known_segments: segments.SegmentFiles,
    changed_paths: AbstractSet[str],
) -> list[_ShardPlan] | None:
    """Plan the shards by those of an earlier generation; return None if it has others, or not all of their parts."""
    try:
        earlier_shards = list_shard_folders(previous)
    except ToolError:
        return None
    count = choose_shard_count(source.connection.execute("SELECT count(*) FROM files").get)
    if len(earlier_shards) != count or not all(_is_complete(shard, known_segments) for shard in earlier_shards):
        return None
    paths_by_shard: dict[int, set[str]] = {}
    for path in changed_paths:
        paths_by_shard.setdefault(_choose_shard(path, count), set()).add(path)
    shards = []
    for number, earlier in enumerate(earlier_shards):
        changed = paths_by_shard.get(number)
        if changed is None:
            late_hash = (earlier / LATE_HASH_FILE_NAME).read_bytes()
            shards.append(_ShardPlan(number, folder / SHARDS_FOLDER / earlier.name, earlier, late_hash, []))
        else:
            shards.append(_plan_changed_shard(source, folder, number, earlier, changed))
    return shards


def _plan_changed_shard(
    source: IndexCatalogue, folder: Path, number: int, earlier: Path, changed: AbstractSet[str]
) -> _ShardPlan:
    paths = sorted({*changed, *column_updates.read_paths(earlier)})
    rows = source.connection.executemany(f"{_SELECT_FILES_SQL} WHERE path = ?", [(path,) for path in paths])
    files = [_ShardFile(*row) for row in rows]
    name = f"{number:04d}-{_hash_content(_read_format_key(source), files)}"
    target, late_hash = folder / SHARDS_FOLDER / name, _hash_late_facts(source, files)
    if name == earlier.name:
        return _ShardPlan(number, target, earlier, late_hash, files)
    return _ShardPlan(number, target, None, late_hash, files, outdated=earlier, changed_paths=changed)


def _read_format_key(source: IndexCatalogue) -> str:
    return f"{SHARD_FORMAT_VERSION} {source.read_meta().get('fingerprint', '')}"


def _is_complete(shard: Path, known_segments: segments.SegmentFiles) -> bool:
    names = (column_writer.CONTENT_FILE_NAME, LATE_HASH_FILE_NAME)
    return all((shard / name).exists() for name in names) and segments.has_all_segments(shard, known_segments)


def _hash_late_facts(source: IndexCatalogue, files: Sequence[_ShardFile]) -> bytes:
    facts_hash = hashlib.blake2b(digest_size=16)
    for file in files:
        [history] = source.connection.execute(_SELECT_HISTORY_SQL, (file.id,))
        chunks = list(source.connection.execute(_SELECT_CHUNKS_SQL, (file.id,)))
        facts_hash.update(_pack((*history, chunks)))
    return facts_hash.digest()


def _write_in_parallel(catalogue: Path, shards: Sequence[_ShardPlan], workers: int) -> Iterator[_ShardPlan]:
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


def _write_in_worker(catalogue: Path, shard: _ShardPlan) -> bytes:
    with IndexCatalogue.open(catalogue) as source:
        _write_shard(source, shard)
    return b""


def list_shard_folders(folder: Path) -> list[Path]:
    """Return the shards of a generation, in the order of their positions.

    Raises:
        ToolError: NO_INDEX, another version wrote them.
    """
    try:
        table = json.loads((folder / SHARD_TABLE_FILE_NAME).read_text("utf-8"))
    except FileNotFoundError:
        table = {}
    if table.get("format") != SHARD_FORMAT_VERSION:
        raise ToolError(
            ErrorCode.NO_INDEX,
            "The index was built by another version of this program.",
            hint="Call build_index, or run `cleats index`, in the repository.",
        )
    return [folder / SHARDS_FOLDER / name for name in table["shards"]]


def _deal_files(source: IndexCatalogue) -> list[list[_ShardFile]]:
    files = sorted((_ShardFile(*row) for row in source.connection.execute(_SELECT_FILES_SQL)), key=attrgetter("path"))
    shards = choose_shard_count(len(files))
    files_by_shard: list[list[_ShardFile]] = [[] for _ in range(shards)]
    for file in files:
        files_by_shard[_choose_shard(file.path, shards)].append(file)
    return files_by_shard


def _choose_shard(path: str, count: int) -> int:
    path_hash = hashlib.blake2b(path.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(path_hash, "big") % count


def choose_shard_count(file_count: int) -> int:
    """Return the number of shards for a number of files: a power of two."""
    count = 1
    while count * (SMALL_SHARD_FILES if count < MAX_SMALL_SHARDS else LARGE_SHARD_FILES) < file_count:
        count *= 2
    return count


def _hash_content(format_key: str, files: Sequence[_ShardFile]) -> str:
    content_hash = hashlib.blake2b(format_key.encode(), digest_size=12)
    for file in files:
        content_hash.update(repr((file.path, file.hash, file.problem)).encode(errors="surrogatepass"))
    return content_hash.hexdigest()


def _write_shard(source: IndexCatalogue, shard: _ShardPlan) -> None:
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


def _write_content(source: IndexCatalogue, shard: _ShardPlan) -> None:
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


def _write_late(source: IndexCatalogue, shard: _ShardPlan) -> None:
    late = column_writer.LateColumns()
    for file in shard.files:
        [(author, modified, churn)] = source.connection.execute(_SELECT_HISTORY_SQL, (file.id,))
        late.add_file(author, modified, churn)
        for risk, authors, lint in source.connection.execute(_SELECT_CHUNKS_SQL, (file.id,)):
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

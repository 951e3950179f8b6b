"""Which shards a generation has, which files are in each, and which are reused from an earlier generation.

Files are distributed over shards by the hash of their paths. A small update of a large repository puts the files that
it has read into one further shard, for recent files: their next change writes only that. Its files return to their
shards when these are written anyway, or when there are too many. The answers are the same wherever a file is.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.index import column_updates, column_writer, segments
from cleats.toolsets.code.index.catalogue import IndexCatalogue

SHARDS_FOLDER: Final = "shards"
SHARD_TABLE_FILE_NAME: Final = "shards.json"

LATE_HASH_FILE_NAME: Final = "late.mark"
"""The hash of the facts from which the second set of columns of a shard was made."""

SHARD_FORMAT_VERSION: Final = 4
"""Rises when the same catalogue produces different shards."""

SMALL_SHARD_FILES, LARGE_SHARD_FILES, MAX_SMALL_SHARDS = 16, 512, 8
"""Approximate number of files in a shard, all of which one changed file rewrites. Every shard costs
a search some time, so there are few until each is full."""

MIN_RECENT_FILES_REPOSITORY: Final = 1024
"""Files of a repository from which on its recent files have a shard: smaller ones are written as fast without."""

MAX_RECENT_FILES: Final = 48
"""Files in the shard for recent files."""

# What git says lies behind the contents of a file; reading it for all files would read the whole catalogue.
_SELECT_FILES_SQL = "SELECT id, path, hash, problem FROM files"
SELECT_HISTORY_SQL = "SELECT last_author, last_modified, churn FROM files WHERE id = ?"
SELECT_CHUNKS_SQL = "SELECT risk, authors, lint FROM chunks WHERE file = ? ORDER BY ordinal"


_pack = msgspec.msgpack.Encoder().encode


class ShardFile(Struct, frozen=True):
    """A file of a shard."""

    id: int
    path: str
    hash: bytes
    problem: str


class ShardPlan(Struct, frozen=True):
    """One shard of a generation that is being written."""

    number: int
    folder: Path
    previous: Path | None
    """The same shard of an earlier generation, if there is one."""
    late_hash: bytes
    """The hash of the facts from git, risk and lint."""
    files: list[ShardFile]
    """Its files; none where nothing of an earlier shard has changed."""
    outdated: Path | None = None
    """The shard of an earlier generation from which this one differs only in the changed files, if there is one."""
    changed_paths: AbstractSet[str] = frozenset()
    is_recent: bool = False
    """True for the shard of the recent files."""


def plan_shards(
    source: IndexCatalogue, folder: Path, previous: Path | None, known_segments: segments.SegmentFiles
) -> Iterator[ShardPlan]:
    format_key = _read_format_key(source)
    for number, files in enumerate(_deal_files(source)):
        name = f"{number:04d}-{_hash_content(format_key, files)}"
        previous_shard = previous / SHARDS_FOLDER / name if previous else None
        if previous_shard is not None and not _is_complete(previous_shard, known_segments):
            previous_shard = None
        late_hash = _hash_late_facts(source, files)
        yield ShardPlan(number, folder / SHARDS_FOLDER / name, previous_shard, late_hash, files)


def plan_update(
    source: IndexCatalogue,
    folder: Path,
    previous: Path,
    known_segments: segments.SegmentFiles,
    changed_paths: AbstractSet[str],
) -> list[ShardPlan] | None:
    """Plan the shards by those of an earlier generation; return None if all have to be planned.

    That is so if there are others now, or if parts of one are missing.
    """
    try:
        earlier_shards = list_shard_folders(previous)
    except ToolError:
        return None
    file_count = source.read_meta()["counts"]["files"]
    earlier_recent = earlier_shards.pop() if _has_recent_shard(previous) else None
    every_earlier = [*earlier_shards, *([earlier_recent] if earlier_recent else [])]
    if len(earlier_shards) != choose_shard_count(file_count) or not all(
        _is_complete(shard, known_segments) for shard in every_earlier
    ):
        return None
    keeps_recent = file_count >= MIN_RECENT_FILES_REPOSITORY and len(changed_paths) <= MAX_RECENT_FILES
    if earlier_recent is not None and len(changed_paths) > MAX_RECENT_FILES:
        changed_paths = {*changed_paths, *column_updates.read_paths(earlier_recent)}
        earlier_recent = None
    update = _ShardUpdate(source, folder, earlier_recent, len(earlier_shards), keeps_recent=keeps_recent)
    return update.plan(earlier_shards, changed_paths)


class _ShardUpdate:
    """The plans of an update, and the files that become recent or stop being so."""

    def __init__(
        self, source: IndexCatalogue, folder: Path, earlier_recent: Path | None, count: int, *, keeps_recent: bool
    ) -> None:
        self._source, self._folder, self._count, self._keeps_recent = source, folder, count, keeps_recent
        self._format_key = _read_format_key(source)
        self._earlier_recent = earlier_recent
        self._recent = set(column_updates.read_paths(earlier_recent)) if earlier_recent else set[str]()

    def plan(self, earlier_shards: Sequence[Path], changed_paths: AbstractSet[str]) -> list[ShardPlan]:
        changed_by_shard: dict[int, set[str]] = {}
        for path in changed_paths - self._recent:
            changed_by_shard.setdefault(_choose_shard(path, self._count), set()).add(path)
        plans = []
        for number, earlier in enumerate(earlier_shards):
            changed = changed_by_shard.get(number)
            plans.append(
                self._reuse_shard(number, earlier)
                if changed is None
                else self._plan_changed_shard(number, earlier, changed, changed_paths)
            )
        while len(self._recent) > MAX_RECENT_FILES and self._recent - changed_paths:
            numbers = Counter(_choose_shard(path, self._count) for path in self._recent - changed_paths)
            number = max(numbers, key=lambda number: (numbers[number], number))
            plans[number] = self._plan_return(number, earlier_shards[number], set(), changed_paths)
        if self._recent and self._earlier_recent and changed_paths.isdisjoint(self._recent) and not changed_by_shard:
            return [*plans, self._reuse_shard(self._count, self._earlier_recent)]
        files = self._find_files(self._recent)
        if files:
            plans.append(self._plan_shard(self._count, self._earlier_recent, files, changed_paths))
        return plans

    def _plan_changed_shard(
        self, number: int, earlier: Path, changed: AbstractSet[str], changed_paths: AbstractSet[str]
    ) -> ShardPlan:
        """Plan a shard; its changed files become recent, and others that were recent return to it."""
        earlier_paths = set(column_updates.read_paths(earlier))
        files = self._find_files(earlier_paths | changed)
        if not self._keeps_recent or self._name_shard(number, files) == earlier.name:
            return self._plan_shard(number, earlier, files, changed)  # there, only facts of git, risk or lint differ
        if changed.isdisjoint(earlier_paths):
            self._recent |= changed
            return self._reuse_shard(number, earlier)
        return self._plan_return(number, earlier, changed, changed_paths)

    def _plan_return(
        self, number: int, earlier: Path, changed: AbstractSet[str], changed_paths: AbstractSet[str]
    ) -> ShardPlan:
        returned = {path for path in self._recent - changed_paths if _choose_shard(path, self._count) == number}
        self._recent = self._recent - returned | changed
        files = self._find_files({*column_updates.read_paths(earlier)} - changed | returned)
        return self._plan_shard(number, earlier, files, changed | returned)

    def _find_files(self, paths: Iterable[str]) -> list[ShardFile]:
        rows = self._source.connection.executemany(
            f"{_SELECT_FILES_SQL} WHERE path = ?",
            [(path,) for path in sorted(paths)],
        )
        return [ShardFile(*row) for row in rows]

    def _reuse_shard(self, number: int, earlier: Path) -> ShardPlan:
        late_hash = (earlier / LATE_HASH_FILE_NAME).read_bytes()
        target = self._folder / SHARDS_FOLDER / earlier.name
        return ShardPlan(number, target, earlier, late_hash, [], is_recent=number == self._count)

    def _plan_shard(
        self, number: int, earlier: Path | None, files: list[ShardFile], changed: AbstractSet[str]
    ) -> ShardPlan:
        target = self._folder / SHARDS_FOLDER / self._name_shard(number, files)
        is_same = earlier is not None and target.name == earlier.name
        return ShardPlan(
            number,
            target,
            earlier if is_same else None,
            _hash_late_facts(self._source, files),
            files,
            outdated=None if is_same else earlier,
            changed_paths=changed,
            is_recent=number == self._count,
        )

    def _name_shard(self, number: int, files: Sequence[ShardFile]) -> str:
        return f"{number:04d}-{_hash_content(self._format_key, files)}"


def write_shard_table(folder: Path, shards: Sequence[ShardPlan]) -> None:
    """Write which shards a generation has, and whether the last one has its recent files."""
    names = [shard.folder.name for shard in shards]
    table = {"format": SHARD_FORMAT_VERSION, "shards": names, "recent": shards[-1].is_recent}
    (folder / SHARD_TABLE_FILE_NAME).write_text(json.dumps(table), "utf-8")


def _has_recent_shard(folder: Path) -> bool:
    table = json.loads((folder / SHARD_TABLE_FILE_NAME).read_bytes())
    return bool(table.get("recent"))


def _read_format_key(source: IndexCatalogue) -> str:
    return f"{SHARD_FORMAT_VERSION} {source.read_meta().get('fingerprint', '')}"


def _is_complete(shard: Path, known_segments: segments.SegmentFiles) -> bool:
    names = (column_writer.CONTENT_FILE_NAME, LATE_HASH_FILE_NAME)
    return all((shard / name).exists() for name in names) and segments.has_all_segments(shard, known_segments)


def _hash_late_facts(source: IndexCatalogue, files: Sequence[ShardFile]) -> bytes:
    facts_hash = hashlib.blake2b(digest_size=16)
    for file in files:
        [history] = source.connection.execute(SELECT_HISTORY_SQL, (file.id,))
        chunks = list(source.connection.execute(SELECT_CHUNKS_SQL, (file.id,)))
        facts_hash.update(_pack((*history, chunks)))
    return facts_hash.digest()


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


def _deal_files(source: IndexCatalogue) -> list[list[ShardFile]]:
    files = sorted((ShardFile(*row) for row in source.connection.execute(_SELECT_FILES_SQL)), key=attrgetter("path"))
    shards = choose_shard_count(len(files))
    files_by_shard: list[list[ShardFile]] = [[] for _ in range(shards)]
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


def _hash_content(format_key: str, files: Sequence[ShardFile]) -> str:
    content_hash = hashlib.blake2b(format_key.encode(), digest_size=12)
    for file in files:
        content_hash.update(repr((file.path, file.hash, file.problem)).encode(errors="surrogatepass"))
    return content_hash.hexdigest()

"""From the catalogue to the parts that searches read.

Files are dealt into shards by the hash of their paths. A shard is named after its content, so one
that has not changed is taken over from the generation before, by hard links, and the rest is made
anew: what a generation answers depends on its catalogue alone, never on how it came about.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.risk.summary import Risk
from cleats.toolsets.code.search import filling, segments, tokens
from cleats.toolsets.code.search.digest import Attributes, Texts, attributes
from cleats.toolsets.code.store.catalogue import Catalogue
from cleats.toolsets.code.store.files import link
from cleats.toolsets.code.store.rows import Relations

FOLDER: Final = "shards"
TABLE: Final = "shards.json"

MARK: Final = "late.mark"
"""The hash of what the second set of columns of a shard was made from."""

FORMAT: Final = 3
"""Rises when the same catalogue makes other parts."""

FEW_FILES, MANY_FILES, FEW_SHARDS = 16, 512, 8
"""How many files a shard has, about: what one changed file makes anew. Every shard costs a search
some time, so there are few until each is full."""

_FILES = "SELECT id, path, hash, problem, last_author, last_modified, churn FROM files"
_CONTENT = "SELECT facts, attributes, vectors FROM files WHERE id = ?"
_CHUNKS = "SELECT risk, authors, lint FROM chunks WHERE file = ? ORDER BY ordinal"
_ALL_CHUNKS = "SELECT file, risk, authors, lint FROM chunks ORDER BY file, ordinal"

_relations = msgspec.msgpack.Decoder(Relations)
_risk = msgspec.msgpack.Decoder(Risk)
_names = msgspec.msgpack.Decoder(list[str])
_pack = msgspec.msgpack.Encoder().encode


class Progress(Protocol):
    """Told how far it is."""

    def __call__(self, message: str, done: int = 0, total: int = 0) -> None: ...


class _File(Struct, frozen=True):
    id: int
    path: str
    hash: bytes
    problem: str
    author: str | None
    modified: int | None
    churn: int | None


class _Shard(Struct, frozen=True):
    number: int
    folder: Path
    before: Path | None
    """The same one of an earlier generation, if there is one."""
    mark: bytes
    """The hash of what git, risk and lint say about it."""
    files: list[_File]


def write_parts(
    catalogue: Path,
    folder: Path,
    previous: Path | None,
    progress: Progress,
    workers: int = 1,
) -> None:
    """Make everything in `folder` that a search reads besides the catalogue.

    Args:
        catalogue: A complete one, which nobody writes any more.
        folder: The generation that is being built.
        previous: An earlier generation, whose shards are taken over where they are the same.
        progress: Told how far it is.
        workers: How many processes may work on it.
    """
    (folder / FOLDER).mkdir()
    known = segments.known(previous)
    with Catalogue.open(catalogue) as source:
        shards = list(_planned(source, folder, previous, known))
        left = {shard.folder: shard for shard in shards}
        fresh = [shard for shard in shards if shard.before is None]
        for shard in _shared_out(catalogue, fresh, workers):
            del left[shard.folder]
            progress("making it searchable", len(shards) - len(left), len(shards))
        for done, shard in enumerate(left.values(), len(shards) - len(left) + 1):
            _write(source, shard)
            progress("making it searchable", done, len(shards))
    segments.join(folder, [shard.folder for shard in shards], known)
    names = [shard.folder.name for shard in shards]
    (folder / TABLE).write_text(json.dumps({"format": FORMAT, "shards": names}), "utf-8")


def _planned(
    source: Catalogue, folder: Path, previous: Path | None, known: segments.Known
) -> Iterator[_Shard]:
    form = f"{FORMAT} {source.meta().get('fingerprint', '')}"
    marks = _marks(source)
    for number, files in enumerate(_dealt(source)):
        name = f"{number:04d}-{_content_name(form, files)}"
        before = previous / FOLDER / name if previous else None
        if before is not None and not _is_whole(before, known):
            before = None
        yield _Shard(number, folder / FOLDER / name, before, _mark(files, marks), files)


def _marks(source: Catalogue) -> dict[int, bytes]:
    """The hash of what git, risk and lint say about the chunks of each file, in one go."""
    rows = source.connection.execute(_ALL_CHUNKS)
    return {
        file: hashlib.blake2b(_pack([row[1:] for row in chunks]), digest_size=16).digest()
        for file, chunks in groupby(rows, key=itemgetter(0))
    }


def _mark(files: Sequence[_File], marks: Mapping[int, bytes]) -> bytes:
    said = [(file.author, file.modified, file.churn, marks.get(file.id)) for file in files]
    return hashlib.blake2b(_pack(said), digest_size=16).digest()


def _is_whole(shard: Path, known: segments.Known) -> bool:
    return (shard / filling.CONTENT).exists() and segments.is_whole(shard, known)


def _shared_out(catalogue: Path, shards: Sequence[_Shard], workers: int) -> Iterator[_Shard]:
    """Let several processes write shards; yield those that are done.

    What a process cannot do, for want of room perhaps, is left undone: to try it here says why.
    """
    if workers < 2 or len(shards) < 2:
        return
    from cleats.runtime.pool import WINDOW, Lost, Pool  # noqa: PLC0415 - searches need none

    pool = Pool(partial(_written, catalogue), min(workers, len(shards)), limited=False)
    for shard, result in pool.map(shards, lambda _: WINDOW // (2 * workers)):
        if isinstance(result, Lost):
            shutil.rmtree(shard.folder, ignore_errors=True)
        else:
            yield shard


def _written(catalogue: Path, shard: _Shard) -> bytes:
    with Catalogue.open(catalogue) as source:
        _write(source, shard)
    return b""


def shard_folders(folder: Path) -> list[Path]:
    """The shards of a generation, in the order of their positions.

    Raises:
        ToolError: NO_INDEX, this version did not make them.
    """
    try:
        table = json.loads((folder / TABLE).read_text("utf-8"))
    except FileNotFoundError:
        table = {}
    if table.get("format") != FORMAT:
        raise ToolError(
            ErrorCode.NO_INDEX,
            "The index was built by another version of this program.",
            hint="Call build_index, or run `cleats index`, in the repository.",
        )
    return [folder / FOLDER / name for name in table["shards"]]


def _dealt(source: Catalogue) -> list[list[_File]]:
    files = sorted((_File(*row) for row in source.connection.execute(_FILES)), key=_by_path)
    count = shard_count(len(files))
    dealt: list[list[_File]] = [[] for _ in range(count)]
    for file in files:
        dealt[_number(file.path) % count].append(file)
    return dealt


def shard_count(files: int) -> int:
    """Into how many shards so many files go: a power of two, and nothing else decides."""
    count = 1
    while count * (FEW_FILES if count < FEW_SHARDS else MANY_FILES) < files:
        count *= 2
    return count


def _by_path(file: _File) -> str:
    return file.path


def _number(path: str) -> int:
    raw = path.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "big")


def _content_name(form: str, files: Sequence[_File]) -> str:
    made = hashlib.blake2b(form.encode(), digest_size=12)
    for file in files:
        made.update(repr((file.path, file.hash, file.problem)).encode(errors="surrogatepass"))
    return made.hexdigest()


def _write(source: Catalogue, shard: _Shard) -> None:
    folder, before = shard.folder, shard.before
    folder.mkdir()
    if before is None:
        _write_content(source, shard)
        _write_late(source, shard)
        return
    is_same = (before / MARK).exists() and (before / MARK).read_bytes() == shard.mark
    _take_over(before, folder, frozenset() if is_same else frozenset({filling.LATE, MARK}))
    if not is_same:
        _write_late(source, shard)


def _take_over(before: Path, folder: Path, but: AbstractSet[str]) -> None:
    for path in before.iterdir():
        if path.name not in but:
            link(path, folder / path.name)


def _write_content(source: Catalogue, shard: _Shard) -> None:
    content = filling.Content()
    rows: list[bytes] = []

    def documents() -> Iterator[tuple[str, int, Texts]]:
        for file in shard.files:
            facts, packed, row = next(source.connection.execute(_CONTENT, (file.id,)))
            found: Attributes = attributes(packed)
            content.add(file.path, _relations.decode(facts).imports, found)
            rows.append(row)
            path = tokens.stemmed(file.path)
            for mode, texts in zip(found.modes, found.texts, strict=True):
                yield path, mode, texts

    segments.write(shard.folder, shard.number, documents())
    content.save(shard.folder)
    filling.write_vectors(shard.folder, rows)


def _write_late(source: Catalogue, shard: _Shard) -> None:
    """What git, risk and lint say about the files of a shard, and about their chunks."""
    late = filling.Late()
    for file in shard.files:
        late.add_file(file.author, file.modified, file.churn)
        for risk, authors, lint in source.connection.execute(_CHUNKS, (file.id,)):
            values = risks(risk) if risk else {}
            values["chunkAuthor"] = _names.decode(authors) if authors else [file.author or ""]
            late.add_chunk(values, lint=bool(lint))
    late.save(shard.folder)
    (shard.folder / MARK).write_bytes(shard.mark)


def risks(packed: bytes) -> dict[str, list[str]]:
    """The columns of what is known of a chunk's risk."""
    risk = _risk.decode(packed)
    return {
        "riskTag": risk.tags,
        "riskSource": risk.sources,
        "riskSink": risk.sinks,
        "riskCategory": risk.categories,
        "riskFlow": [str(flow) for flow in risk.flows],
    }

"""The inputs of a build: the last generation, if it can be reused, and how the folder differs from it.

The same comparison starts every build and every freshness check.
"""

import errno
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cleats.contract.versions import TOOLING_VERSION
from cleats.system.processes import blocking
from cleats.toolsets.code.analysis.facts import Mode
from cleats.toolsets.code.analysis.history.head import GitHead, read_head
from cleats.toolsets.code.discovery.files import DiscoveredFile, Discovery, discover_files
from cleats.toolsets.code.index.catalogue import IndexCatalogue, KnownFile
from cleats.toolsets.code.index.catalogue_schema import CATALOGUE_SCHEMA_VERSION
from cleats.toolsets.code.index.file_reader import NotAFileError, hash_content, read_content
from cleats.toolsets.code.index.generations import GenerationLease, GenerationStore
from cleats.toolsets.code.index.options import INDEX_MODES, BuildOptions
from cleats.toolsets.code.records.archive import RecordArchive
from cleats.toolsets.code.repository import Repository

_CODE_FOLDER = str(Path(__file__).parents[1])

FACT_SOURCES: Final = (
    "discovery",
    *(f"analysis/{name}" for name in ("facts.py", "extract.py", "languages", "formats", "risk", "embedding")),
    *(f"index/{name}.py" for name in ("columns", "column_updates", "column_writer", "digest", "file_reader")),
    *(f"index/{name}.py" for name in ("full_text", "segments", "shard_plans", "shard_writer", "tokens")),
    "records/model.py",
)
"""The code that extracts the facts of a file, and that derives parts of an index from them: files
and folders, all of which must exist."""

MAX_HASHED_BYTES: Final = 1 << 20
"""Largest program file that is hashed; larger ones are data, identified by name and size."""

_LIBRARY_NAME_PATTERN = re.compile(r"(numpy|pystemmer|tantivy|tree_sitter\w*)-[^/]+\.(dist|egg)-info", re.IGNORECASE)


def compute_fingerprint(options: BuildOptions, *, vectors: bool) -> str:
    """Return the fingerprint for these options."""
    parts = (hash_program(), options.limits, vectors, [_read_content(str(path)) for path in options.rule_files])
    return hashlib.sha256(msgspec.msgpack.encode(parts)).hexdigest()[:16]


@cache
def hash_program() -> str:
    """Hash the program and its libraries, which cannot change while a process runs."""
    digest = hashlib.sha256(f"{TOOLING_VERSION} {CATALOGUE_SCHEMA_VERSION}".encode())
    for path in _list_sources():
        digest.update(path.removeprefix(_CODE_FOLDER).encode())
        digest.update(_read_content(path))
    digest.update("\n".join(_list_libraries()).encode())
    return digest.hexdigest()


def _list_sources() -> list[str]:
    paths: list[str] = []
    for name in FACT_SOURCES:
        source = os.path.join(_CODE_FOLDER, name)  # noqa: PTH118 - a Path for every file is dear
        if not os.path.exists(source):  # noqa: PTH110
            raise FileNotFoundError(errno.ENOENT, "FACT_SOURCES names what does not exist", source)
        if source.endswith(".py"):
            paths.append(source)
        for folder, _, names in os.walk(source):
            if not folder.endswith("__pycache__"):
                paths += (f"{folder}/{file_name}" for file_name in names)
    return sorted(paths)


def _read_content(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            size = os.fstat(file.fileno()).st_size
            return file.read() if size <= MAX_HASHED_BYTES else str(size).encode()
    except OSError:
        return b""


def _list_libraries() -> list[str]:
    """List the libraries that facts depend on, with versions, by their installed folder names.

    Reading the versions properly takes as long as the rest of a check that finds no change.
    """
    spec = find_spec("tree_sitter")
    if spec is None or spec.origin is None:
        return []
    installed = os.listdir(Path(spec.origin).parents[1])  # noqa: PTH208
    return sorted(filter(_LIBRARY_NAME_PATTERN.match, installed))


class IndexForm(Struct, frozen=True):
    """The modes, vectors and fingerprint of an index. An index with another form is rebuilt."""

    modes: tuple[Mode, ...]
    vectors: bool
    fingerprint: str

    @classmethod
    def from_options(cls, options: BuildOptions, meta: Mapping[str, Any]) -> "IndexForm":
        """Return the form after a build: what is requested, and what the index has already.

        A request for no more than the index has means everything where that is unknown: for an
        index that is damaged, or that another version wrote.
        """
        requested = {*options.modes, *meta.get("modes", ())}
        modes = tuple(mode for mode in INDEX_MODES if mode in requested) or INDEX_MODES
        vectors = options.vectors
        if vectors is None:
            vectors = bool(meta.get("vectors", True))
        return cls(modes, vectors, compute_fingerprint(options, vectors=vectors))

    def matches_meta(self, meta: Mapping[str, Any]) -> bool:
        """Return whether a generation with this metadata has the form."""
        return (
            meta.get("fingerprint") == self.fingerprint
            and meta.get("vectors") == self.vectors
            and meta.get("modes") == list(self.modes)
        )


class BuildInputs(Struct, frozen=True):
    """The last generation, as far as a build can reuse it."""

    form: IndexForm
    sqlite: bool
    lease: GenerationLease | None = None
    """None when all files have to be read again."""
    meta: Mapping[str, Any] = {}
    """The metadata of the last generation, whether it can be reused or not."""
    known_files: Mapping[str, KnownFile] = {}

    @classmethod
    @contextmanager
    def from_store(cls, store: GenerationStore, options: BuildOptions) -> Iterator["BuildInputs"]:
        """Hold the last generation for the length of a build."""
        lease = store.lease_current()
        if lease is None:
            yield cls(IndexForm.from_options(options, {}), bool(options.sqlite))
            return
        with lease, IndexCatalogue.open(lease.catalogue_path) as catalogue:
            meta = catalogue.read_meta()
            form = IndexForm.from_options(options, meta)
            sqlite = bool(meta.get("sqlite")) if options.sqlite is None else options.sqlite
            if (options.incremental or options.artifacts) and form.matches_meta(meta):
                yield cls(form, sqlite, lease, meta, catalogue.read_known_files())
            else:
                yield cls(form, sqlite, None, meta)


MAX_REHASHED_BYTES: Final = 8 << 20
"""Bytes of unchanged files that are hashed at every check before a build records their times: a
generation that only does that costs more than hashing less."""


FILES_BETWEEN_STOPS: Final = 64
"""Files that are compared before it is asked again whether anybody waits for the result."""


class FileSurvey(Struct, frozen=True):
    """The state of a folder, before anything is read for the index."""

    discovery: Discovery
    head: GitHead | None
    watched_folders: tuple[str, ...]
    """Folders outside the root that count too."""
    removed: Sequence[str]
    added: list[DiscoveredFile] = []
    changed: list[DiscoveredFile] = []
    same: list[tuple[str, int, int]] = []
    """Path, size and time of known files that were touched, but have the known content."""

    @classmethod
    def from_folder(cls, root: Path, known_files: Mapping[str, KnownFile], options: BuildOptions) -> "FileSurvey":
        """Survey a folder. Blocks while git lists the files."""
        head = read_head(root) if options.git else None  # first: a later move is seen next time
        discovery = discover_files(root, options.limits)
        watched_folders: tuple[str, ...] = ()
        if options.records:
            archive = RecordArchive.from_repository(Path(options.records), Repository(root))
            watched_folders = archive.watched_folders
            discovery = _add_records(discovery, archive)
        present = {file.path for file in discovery.files}
        removed = sorted(path for path in known_files if path not in present)
        survey = cls(discovery, head, watched_folders, removed)
        for number, file in enumerate(discovery.files):
            if number % FILES_BETWEEN_STOPS == 0:
                blocking.raise_if_stopped()
            survey._add_file(file, known_files.get(file.path))
        return survey

    def _add_file(self, file: DiscoveredFile, known_file: KnownFile | None) -> None:
        if known_file is None:
            self.added.append(file)
        elif (file.size, file.mtime_ns) != (known_file.size, known_file.mtime_ns):
            try:
                content = read_content(file.fs_path)
            except (OSError, NotAFileError):
                content = None  # the reader of the index finds out what it is now
            if content is not None and hash_content(content.data) == known_file.hash:
                self.same.append((file.path, content.size, content.mtime_ns))
            else:
                self.changed.append(file)

    @property
    def changed_paths(self) -> list[str]:
        return [file.path for file in self.changed]

    def is_unchanged(self, inputs: BuildInputs, options: BuildOptions) -> bool:
        """Return whether the index is up to date with the folder and the options."""
        expected = describe_inputs(inputs, options, self.head)
        return (
            not (self.added or self.removed or self.changed)
            and sum(size for _, size, _ in self.same) < MAX_REHASHED_BYTES
            and all(inputs.meta.get(key) == value for key, value in expected.items())
        )


def _add_records(discovery: Discovery, archive: RecordArchive) -> Discovery:
    """Add the records of a repository to its files, replacing files with the same path."""
    records = archive.list_files()
    if not records:
        return discovery
    files = {file.path: file for file in (*discovery.files, *records)}
    return replace(discovery, files=[files[path] for path in sorted(files)])


def describe_inputs(inputs: BuildInputs, options: BuildOptions, head: GitHead | None) -> dict[str, Any]:
    """Return the inputs of a generation besides its files, as metadata."""
    return {
        "modes": list(inputs.form.modes),
        "vectors": inputs.form.vectors,
        "fingerprint": inputs.form.fingerprint,
        "sqlite": inputs.sqlite,
        "lint": describe_lint(options),
        "git": options.git,
        "head": head,
    }


def describe_lint(options: BuildOptions) -> list[bool]:
    """Return the lint options that change an index, as metadata."""
    return [options.lint, options.repository_code]

"""The comparison of a folder with its index, which starts every build and every freshness check."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cleats.toolsets.code.analysis.history.head import GitHead, read_head
from cleats.toolsets.code.discovery.files import DiscoveredFile, Discovery, discover_files
from cleats.toolsets.code.index.build_inputs import BuildInputs
from cleats.toolsets.code.index.catalogue import KnownFile
from cleats.toolsets.code.index.file_reader import NotAFileError, hash_content, read_content
from cleats.toolsets.code.index.options import BuildOptions
from cleats.toolsets.code.records.archive import RecordArchive
from cleats.toolsets.code.repository import Repository


class FileComparison(Struct, frozen=True):
    """The differences between the files of a folder and those of a catalogue."""

    added: Sequence[DiscoveredFile]
    suspects: Sequence[DiscoveredFile]
    """Known files whose size or time has changed."""
    removed: Sequence[str]
    unchanged_count: int


def compare_files(discovered: Sequence[DiscoveredFile], known_files: Mapping[str, KnownFile]) -> FileComparison:
    """Sort files into added, removed and suspect ones."""
    added: list[DiscoveredFile] = []
    suspects: list[DiscoveredFile] = []
    for file in discovered:
        known_file = known_files.get(file.path)
        if known_file is None:
            added.append(file)
        elif (file.size, file.mtime_ns) != (known_file.size, known_file.mtime_ns):
            suspects.append(file)
    present = {file.path for file in discovered}
    removed = sorted(path for path in known_files if path not in present)
    return FileComparison(added, suspects, removed, len(discovered) - len(added) - len(suspects))


class HashCheck(Struct, frozen=True):
    """The result of hashing the suspects."""

    changed: Sequence[DiscoveredFile]
    unchanged: Sequence[tuple[str, int, int]]
    """Path, size and time of the files whose content is the known one."""
    read_bytes: int
    """The bytes that were read for it."""


def check_hashes(suspects: Iterable[DiscoveredFile], known_files: Mapping[str, KnownFile]) -> HashCheck:
    """Read the suspects and return which of them have changed."""
    changed: list[DiscoveredFile] = []
    unchanged: list[tuple[str, int, int]] = []
    read_bytes = 0
    for file in suspects:
        try:
            file_content = read_content(file.fs_path)
        except (OSError, NotAFileError):
            changed.append(file)  # the reader of the index finds out what it is now
            continue
        read_bytes += file_content.size
        if hash_content(file_content.data) == known_files[file.path].hash:
            unchanged.append((file.path, file_content.size, file_content.mtime_ns))
        else:
            changed.append(file)
    return HashCheck(changed, unchanged, read_bytes)


MAX_REHASHED_BYTES: Final = 8 << 20
"""Bytes of unchanged files that are hashed at every check before a build records their times: a
generation that only does that costs more than hashing less."""


class FileSurvey(Struct, frozen=True):
    """The state of a folder, before anything is read for the index."""

    discovery: Discovery
    comparison: FileComparison
    hash_check: HashCheck
    head: GitHead | None
    watched_folders: tuple[str, ...] = ()
    """Folders outside the root that count too."""

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
        comparison = compare_files(discovery.files, known_files)
        return cls(discovery, comparison, check_hashes(comparison.suspects, known_files), head, watched_folders)

    @property
    def changed_paths(self) -> list[str]:
        return [file.path for file in self.hash_check.changed]

    def is_unchanged(self, inputs: BuildInputs, options: BuildOptions) -> bool:
        """Return whether the index is up to date with the folder and the options."""
        expected = describe_inputs(inputs, options, self.head)
        return (
            not (self.comparison.added or self.comparison.removed or self.changed_paths)
            and self.hash_check.read_bytes < MAX_REHASHED_BYTES
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

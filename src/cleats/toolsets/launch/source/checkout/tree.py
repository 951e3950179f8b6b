"""The files of a checkout, listed once; links are never followed."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Final, Self

from msgspec import Struct

from cleats.toolsets.launch.source.checkout.safe_parsing import PLATFORM_TABLES

MAX_TEXT_BYTES: Final = 2 * 1024 * 1024
"""Largest file that is read as text. Longer files are data, not written by people."""

_BINARY_CHECK_BYTES: Final = 8000
"""Bytes checked for a zero byte, as git does."""

_BINARY_SUFFIXES: Final = frozenset(PLATFORM_TABLES["binary"]["suffixes"].split())


@dataclass(frozen=True)
class CheckoutTree:
    """A folder of files, named by POSIX paths relative to it."""

    root: Path
    included_paths: frozenset[str] | None = None
    """The files to include; None for all."""
    _texts: dict[str, str | None] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def paths(self) -> Sequence[str]:
        """Every included regular file, sorted; version control files are left out."""
        all_paths: list[str] = []
        for folder, names, files in os.walk(self.root, followlinks=False):
            names[:] = [name for name in names if name != ".git"]
            paths = (Path(folder) / name for name in files)
            plain_files = (path for path in paths if path.is_file() and not path.is_symlink())
            all_paths += [path.relative_to(self.root).as_posix() for path in plain_files]
        included = self.included_paths
        return tuple(path for path in sorted(all_paths) if included is None or path in included)

    @cached_property
    def path_set(self) -> frozenset[str]:
        return frozenset(self.paths)

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder that holds a file, at any depth."""
        return frozenset(
            str(folder) for path in self.paths for folder in PurePosixPath(path).parents if str(folder) != "."
        )

    def read_bytes(self, path: str) -> bytes:
        """Return the bytes of one of `paths`, empty for any other path."""
        return (self.root / path).read_bytes() if path in self.path_set else b""

    def file_size(self, path: str) -> int:
        return (self.root / path).stat().st_size

    def is_binary(self, path: str) -> bool:
        """Return whether a file is binary, by its suffix, else by a zero byte at its beginning."""
        if PurePosixPath(path).suffix.lower() in _BINARY_SUFFIXES:
            return True
        with (self.root / path).open("rb") as file:
            return b"\0" in file.read(_BINARY_CHECK_BYTES)

    def read_text(self, path: str) -> str | None:
        """Return the text with line feeds; None if missing, binary, too long or not UTF-8."""
        if path not in self._texts:
            self._texts[path] = self._load_text(path)
        return self._texts[path]

    def _load_text(self, path: str) -> str | None:
        if path not in self.path_set or self.file_size(path) > MAX_TEXT_BYTES or self.is_binary(path):
            return None
        try:
            text = self.read_bytes(path).decode("utf-8-sig")
        except UnicodeDecodeError:
            return None
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def paths_below(self, *folders: str) -> Iterator[str]:
        """Return the paths in any of the folders; "" is the top."""
        prefixes = tuple(f"{folder}/" if folder else "" for folder in folders)
        return (path for path in self.paths if path.startswith(prefixes))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all paths and contents."""
        hashes = (hashlib.sha256(f"{path}|".encode() + self.read_bytes(path)).hexdigest() for path in self.paths)
        return hashlib.sha256("".join(sorted(hashes)).encode()).hexdigest()


Names = tuple[str, ...]


class IngestionScope(Struct, frozen=True, kw_only=True):
    """The ingestion settings of a run. Folders are POSIX paths without a trailing slash."""

    folders: Names = ()
    """The only folders that are read, besides the files at the top; empty for all."""
    excluded: Names = ()
    binaries: bool = True
    phantoms: bool = True
    sources: Names = ()
    documents: Names = ()
    examples: Names = ()
    test_commands: Names = ()

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return the scope that a normalised configuration defines."""
        ingestion, hints = config.get("ingestion", {}), config.get("repo_hints", {})
        examples = (*ingestion.get("example_directories", ()), *hints.get("preferred_examples_roots", ()))
        return cls(
            folders=_normalise_folders(ingestion.get("scan_directories", ())),
            excluded=tuple(ingestion.get("exclude_patterns", ())),
            binaries=ingestion.get("record_binary_files", True),
            phantoms=ingestion.get("detect_phantom_paths", True),
            sources=_normalise_folders(hints.get("preferred_source_roots", ())),
            documents=_normalise_folders(hints.get("preferred_docs_roots", ())),
            examples=_normalise_folders(examples),
            test_commands=tuple(hints.get("preferred_test_commands", ())),
        )

    def includes(self, path: str) -> bool:
        """Return whether a file is read at all."""
        inside = not self.folders or "/" not in path or is_below(path, self.folders)
        return inside and not any(_is_pattern_match(path, pattern) for pattern in self.excluded)


FULL_SCOPE = IngestionScope()


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is in one of the folders."""
    return any(path.startswith(f"{folder}/") for folder in folders)


def _is_pattern_match(path: str, pattern: str) -> bool:
    """Return whether a pattern matches a path or one of its parents.

    A pattern without a slash matches a name at any depth; any other matches the path from the top.
    """
    glob = pattern.removeprefix("/").removesuffix("/**").removesuffix("/")
    pure_path = PurePosixPath(path)
    if "/" not in pattern.strip("/"):
        return any(fnmatchcase(name, glob) for name in pure_path.parts)
    return any(fnmatchcase(str(candidate), glob) for candidate in (path, *pure_path.parents))


def _normalise_folders(folders: Iterable[str]) -> Names:
    return tuple(folder.removeprefix("./").rstrip("/") for folder in folders)

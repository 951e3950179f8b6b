"""What of a repository a run reads, and what it is told about it: `ingestion` and `repo_hints`."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, Self

from msgspec import Struct

Names = tuple[str, ...]


class Scope(Struct, frozen=True, kw_only=True):
    """A configuration's word on the source. Folders are POSIX paths without a slash at the end."""

    folders: Names = ()
    """The only ones that are read, besides the files at the top; all when there is none."""
    excluded: Names = ()
    binaries: bool = True
    phantoms: bool = True
    sources: Names = ()
    documents: Names = ()
    examples: Names = ()
    test_commands: Names = ()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self:
        """What a normalised configuration says."""
        read, hints = config.get("ingestion", {}), config.get("repo_hints", {})
        examples = (
            *read.get("example_directories", ()),
            *hints.get("preferred_examples_roots", ()),
        )
        return cls(
            folders=_folders(read.get("scan_directories", ())),
            excluded=tuple(read.get("exclude_patterns", ())),
            binaries=read.get("record_binary_files", True),
            phantoms=read.get("detect_phantom_paths", True),
            sources=_folders(hints.get("preferred_source_roots", ())),
            documents=_folders(hints.get("preferred_docs_roots", ())),
            examples=_folders(examples),
            test_commands=tuple(hints.get("preferred_test_commands", ())),
        )

    def reads(self, path: str) -> bool:
        """Whether a file is read at all."""
        inside = not self.folders or "/" not in path or below(path, self.folders)
        return inside and not any(_fits(path, pattern) for pattern in self.excluded)


EVERYTHING = Scope()


def below(path: str, folders: Iterable[str]) -> bool:
    """Whether a path lies in one of some folders."""
    return any(path.startswith(f"{folder}/") for folder in folders)


def _fits(path: str, pattern: str) -> bool:
    """A pattern without a slash fits a name anywhere on the way; another one the path from the top.

    Either also takes all that lies below what it fits.
    """
    wanted = pattern.removeprefix("/").removesuffix("/**").removesuffix("/")
    place = PurePosixPath(path)
    if "/" not in pattern.strip("/"):
        return any(fnmatchcase(name, wanted) for name in place.parts)
    parents = (str(each) for each in place.parents)
    return any(fnmatchcase(each, wanted) for each in (path, *parents))


def _folders(given: Iterable[str]) -> Names:
    return tuple(each.removeprefix("./").rstrip("/") for each in given)

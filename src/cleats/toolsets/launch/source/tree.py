"""The files of a checkout, listed once; links are never followed."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Final

TEXT_LIMIT: Final = 2 * 1024 * 1024
"""Bytes of a file that is read as text. What is longer is data, not something people wrote."""

_HEAD: Final = 8000
"""Bytes looked at for a zero, as git does."""

_BINARY: Final = frozenset(
    {
        *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".bmp", ".tif", ".tiff", ".psd"),
        *(".pdf", ".zip", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".jar", ".war", ".whl"),
        *(".exe", ".dll", ".so", ".dylib", ".a", ".o", ".lib", ".class", ".pyc", ".wasm"),
        *(".mp3", ".mp4", ".mov", ".avi", ".wav", ".ogg", ".woff", ".woff2", ".ttf", ".otf"),
        *(".xlsx", ".xls", ".docx", ".doc", ".pptx", ".ppt", ".sqlite", ".db", ".bin", ".dat"),
    }
)


@dataclass(frozen=True)
class Tree:
    """A folder of files, named by POSIX paths below it."""

    root: Path
    only: frozenset[str] | None = None
    """The files that count; all when it is not said."""
    _texts: dict[str, str | None] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def paths(self) -> Sequence[str]:
        """Every plain file that counts, sorted; version control is left out."""
        found = sorted(self._walk())
        return tuple(found if self.only is None else filter(self.only.__contains__, found))

    @cached_property
    def known(self) -> frozenset[str]:
        return frozenset(self.paths)

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder that holds a file, at any depth."""
        return frozenset(
            str(folder)
            for path in self.paths
            for folder in PurePosixPath(path).parents
            if str(folder) != "."
        )

    def _walk(self) -> Iterator[str]:
        for folder, names, files in os.walk(self.root, followlinks=False):
            names[:] = sorted(name for name in names if name != ".git")
            for name in files:
                path = Path(folder) / name
                if path.is_file() and not path.is_symlink():
                    yield path.relative_to(self.root).as_posix()

    def read(self, path: str) -> bytes:
        """The bytes of one of `paths`."""
        return (self.root / path).read_bytes() if path in self.known else b""

    def size(self, path: str) -> int:
        return (self.root / path).stat().st_size

    def is_binary(self, path: str) -> bool:
        """By its ending, else by a zero byte at its beginning."""
        if PurePosixPath(path).suffix.lower() in _BINARY:
            return True
        with (self.root / path).open("rb") as file:
            return b"\0" in file.read(_HEAD)

    def text(self, path: str) -> str | None:
        """The text with line feeds; None for what is not there, binary, too long or not UTF-8."""
        if path not in self._texts:
            self._texts[path] = self._text(path)
        return self._texts[path]

    def _text(self, path: str) -> str | None:
        if path not in self.known or self.size(path) > TEXT_LIMIT or self.is_binary(path):
            return None
        try:
            text = self.read(path).decode("utf-8-sig")
        except UnicodeDecodeError:
            return None
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def below(self, *folders: str) -> Iterator[str]:
        """The paths in any of some folders; "" is the top."""
        prefixes = tuple(f"{folder}/" if folder else "" for folder in folders)
        return (path for path in self.paths if path.startswith(prefixes))

    @cached_property
    def fingerprint(self) -> str:
        """One hash over all paths and contents."""
        each = sorted(
            hashlib.sha256(f"{path}|".encode() + self.read(path)).hexdigest() for path in self.paths
        )
        return hashlib.sha256("".join(each).encode()).hexdigest()

"""SQLite extension libraries: their platforms, and the location of one in an archive."""

import platform
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from cleats.contract.errors import ErrorCode, ToolError

LIBRARY_NAMES_BY_PROVIDER: Final = {"sqlite-vec": "vec0"}
"""The known providers, with the name of their library and its module."""

PLATFORM_ALIASES: Final = {
    "linux": "linux",
    "darwin": "darwin",
    "macos": "darwin",
    "win32": "windows",
    "windows": "windows",
}
ARCH_ALIASES: Final = {"x64": "x64", "x86_64": "x64", "amd64": "x64", "arm64": "arm64", "aarch64": "arm64"}
"""Names that people and systems use, with the canonical name of each."""

_LIBRARY_SUFFIXES: Final = {"linux": ".so", "darwin": ".dylib", "windows": ".dll"}
_LIBRARY_MAGIC_BYTES: Final = {
    "linux": (b"\x7fELF",),
    "darwin": (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"),
    "windows": (b"MZ",),
}


class LibraryPlatform(NamedTuple):
    """The operating system and processor that a library is built for."""

    platform: str
    arch: str

    @property
    def key(self) -> str:
        return f"{self.platform}-{self.arch}"

    @property
    def library_suffix(self) -> str:
        return _LIBRARY_SUFFIXES[self.platform]

    def can_load(self, library: Path) -> bool:
        """Return whether a file starts like a library of this platform."""
        with library.open("rb") as file:
            return file.read(4).startswith(_LIBRARY_MAGIC_BYTES[self.platform])


def detect_platform() -> LibraryPlatform:
    """Return the platform of this machine, as far as it has a canonical name."""
    system = PLATFORM_ALIASES.get(sys.platform, "linux")
    arch = platform.machine().lower()
    return LibraryPlatform(system, ARCH_ALIASES.get(arch, arch))


def resolve_platform(system: str | None, arch: str | None) -> LibraryPlatform:
    """Return the platform that a caller names, completed from this machine."""
    current = detect_platform()
    return LibraryPlatform(
        PLATFORM_ALIASES[system] if system else current.platform, ARCH_ALIASES[arch] if arch else current.arch
    )


def find_library(folder: Path, names: Iterable[str], provider: str, target: LibraryPlatform) -> str:
    """Return the name of the library among the files of an archive.

    Raises:
        ToolError: INVALID_REQUEST, there is none or there are several; DOWNLOAD_VERIFY_FAILED, it
            is built for another platform.
    """
    candidates = [name for name in names if name.endswith(target.library_suffix)]
    stem = LIBRARY_NAMES_BY_PROVIDER[provider]
    exact_names = [
        name
        for name in candidates
        if Path(name).name in (stem + target.library_suffix, f"lib{stem}{target.library_suffix}")
    ]
    chosen = exact_names or candidates
    if len(chosen) != 1:
        count = "no library" if not chosen else f"{len(chosen)} libraries"
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"There is {count} {stem}{target.library_suffix} in what came. Nothing was put in place.",
            hint=f"Use an archive with one library for {target.key}.",
        )
    check_library(folder / chosen[0], target)
    return chosen[0]


def check_library(library: Path, target: LibraryPlatform) -> None:
    """Check that a file is a library of a platform.

    Raises:
        ToolError: DOWNLOAD_VERIFY_FAILED.
    """
    if not target.can_load(library):
        raise ToolError(
            ErrorCode.DOWNLOAD_VERIFY_FAILED,
            f"What came is no library for {target.platform}. Nothing was put in place.",
            hint="Check the address, and platform and arch.",
            retryable=False,
        )

"""Libraries that extend SQLite: for which machine they are, and where one lies in an archive."""

import platform
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from cleats.contract.errors import ErrorCode, ToolError

PROVIDERS: Final = {"sqlite-vec": "vec0"}
"""Those that are known, and what their library and its module are called."""

PLATFORMS: Final = {
    "linux": "linux",
    "darwin": "darwin",
    "macos": "darwin",
    "win32": "windows",
    "windows": "windows",
}
ARCHES: Final = {
    "x64": "x64",
    "x86_64": "x64",
    "amd64": "x64",
    "arm64": "arm64",
    "aarch64": "arm64",
}
"""The names that people and systems use, and ours."""

_ENDINGS: Final = {"linux": ".so", "darwin": ".dylib", "windows": ".dll"}
_BEGINNINGS: Final = {
    "linux": (b"\x7fELF",),
    "darwin": (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"),
    "windows": (b"MZ",),
}


class Machine(NamedTuple):
    """What a library is made for."""

    platform: str
    arch: str

    @property
    def key(self) -> str:
        return f"{self.platform}-{self.arch}"

    @property
    def ending(self) -> str:
        return _ENDINGS[self.platform]

    def fits(self, library: Path) -> bool:
        """Whether a file begins like a library of this platform."""
        with library.open("rb") as file:
            return file.read(4).startswith(_BEGINNINGS[self.platform])


def this_machine() -> Machine:
    """The one this runs on, as far as it has a name here."""
    system = PLATFORMS.get(sys.platform, "linux")
    arch = platform.machine().lower()
    return Machine(system, ARCHES.get(arch, arch))


def machine(system: str | None, arch: str | None) -> Machine:
    """The one that a caller names; this one without."""
    here = this_machine()
    return Machine(
        PLATFORMS[system] if system else here.platform, ARCHES[arch] if arch else here.arch
    )


def find(folder: Path, names: Iterable[str], provider: str, wanted: Machine) -> str:
    """The library among the files of an archive.

    Raises:
        ToolError: INVALID_REQUEST, there is none or there are several; DOWNLOAD_VERIFY_FAILED, it
            is for something else.
    """
    found = [name for name in names if name.endswith(wanted.ending)]
    stem = PROVIDERS[provider]
    named = [
        name
        for name in found
        if Path(name).name in (stem + wanted.ending, f"lib{stem}{wanted.ending}")
    ]
    chosen = named or found
    if len(chosen) != 1:
        count = "no library" if not chosen else f"{len(chosen)} libraries"
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"There is {count} {stem}{wanted.ending} in what came. Nothing was put in place.",
            hint=f"Use an archive with one library for {wanted.key}.",
        )
    check(folder / chosen[0], wanted)
    return chosen[0]


def check(library: Path, wanted: Machine) -> None:
    """See that a file is a library of a platform.

    Raises:
        ToolError: DOWNLOAD_VERIFY_FAILED.
    """
    if not wanted.fits(library):
        raise ToolError(
            ErrorCode.DOWNLOAD_VERIFY_FAILED,
            f"What came is no library for {wanted.platform}. Nothing was put in place.",
            hint="Check the address, and platform and arch.",
            retryable=False,
        )

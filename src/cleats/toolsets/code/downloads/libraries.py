"""SQLite extension libraries: their platforms, the location of one in an archive, and its trial.

A library is tried in a child process, which it may crash. The child is this module: the trial arrives as JSON on its
stdin, and after each step it writes one line of JSON, so that the parent knows in which step the library ended it.
"""

import platform
import struct
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import anyio
import msgspec
from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.processes import process

if TYPE_CHECKING:
    import apsw

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
    library_name = LIBRARY_NAMES_BY_PROVIDER[provider] + target.library_suffix
    chosen = [name for name in candidates if Path(name).name.removeprefix("lib") == library_name] or candidates
    if len(chosen) != 1:
        count = "no library" if not chosen else f"{len(chosen)} libraries"
        message = f"The download contains {count} {library_name}. Nothing was installed."
        raise ToolError(ErrorCode.INVALID_REQUEST, message, hint=f"Use an archive with one library for {target.key}.")
    check_library(folder / chosen[0], target)
    return chosen[0]


def check_library(library: Path, target: LibraryPlatform) -> None:
    """Check that a file is a library of a platform.

    Raises:
        ToolError: DOWNLOAD_VERIFY_FAILED.
    """
    with library.open("rb") as file:
        beginning = file.read(4)
    if not beginning.startswith(_LIBRARY_MAGIC_BYTES[target.platform]):
        raise ToolError(
            ErrorCode.DOWNLOAD_VERIFY_FAILED,
            f"The downloaded file is not a library for {target.platform}. Nothing was installed.",
            hint="Check the address, the platform and the architecture.",
            retryable=False,
        )


SAMPLE_VECTOR = (1.0, 2.0, 3.0)


class ExtensionTrial(Struct, frozen=True):
    """The library to load and the table to try."""

    path: str
    module: str
    table: str
    column: str
    encoding: Literal["float32", "json"]
    options: str = ""


class TrialStep(Struct, frozen=True):
    """The outcome of one step."""

    step: Literal["load", "smoke"]
    reason: str = ""
    """Reason of the failure, empty on success."""


def main() -> None:
    trial = msgspec.json.decode(sys.stdin.buffer.read(), type=ExtensionTrial)
    import apsw  # noqa: PLC0415 - the trial is read first

    connection = apsw.Connection(":memory:")
    if _run_step("load", lambda: _load_library(connection, trial)):
        _run_step("smoke", lambda: _query_sample(connection, trial))


def _run_step(step: Literal["load", "smoke"], action: Callable[[], None]) -> bool:
    reason = ""
    try:
        action()
    except Exception as error:  # noqa: BLE001 - every failure is the result of the step
        reason = str(error) or type(error).__name__
    sys.stdout.buffer.write(msgspec.json.encode(TrialStep(step, reason)) + b"\n")
    sys.stdout.buffer.flush()
    return not reason


def _load_library(connection: "apsw.Connection", trial: ExtensionTrial) -> None:
    connection.enable_load_extension(True)
    connection.load_extension(trial.path)
    connection.enable_load_extension(False)


def _query_sample(connection: "apsw.Connection", trial: ExtensionTrial) -> None:
    """Create a table of three-dimensional vectors, insert one, and find it by itself."""
    table, column = f'"{trial.table}"', f'"{trial.column}"'
    connection.execute(f"CREATE VIRTUAL TABLE {table} USING {trial.module}({trial.column} float[3] {trial.options})")
    vector = struct.pack("<3f", *SAMPLE_VECTOR)
    encoded_vector = vector if trial.encoding == "float32" else msgspec.json.encode(SAMPLE_VECTOR).decode()
    connection.execute(f"INSERT INTO {table}(rowid, {column}) VALUES (7, ?)", (encoded_vector,))  # noqa: S608
    query = f"SELECT rowid FROM {table} WHERE {column} MATCH ? ORDER BY distance LIMIT 1"  # noqa: S608
    rows = connection.execute(query, (encoded_vector,)).fetchall()
    if rows != [(7,)]:
        raise ValueError(f"a vector was stored but not found again: {rows!r}")


TRIAL_MODULE: Final = "cleats.toolsets.code.downloads.libraries"
TRIAL_TIMEOUT_SECONDS: Final = 30.0
"""Seconds for the whole trial; a library that takes longer is considered hung."""

_decode_step = msgspec.json.Decoder(TrialStep).decode


def report_skipped(reason: str) -> dict[str, dict[str, Any]]:
    """Return a report in which neither step was attempted."""
    return {name: {"attempted": False, "ok": False, "reason": reason} for name in ("load", "smoke")}


async def try_extension(trial: ExtensionTrial, grace: float) -> dict[str, dict[str, Any]]:
    """Load and use a library in a child process, and report the outcome of each step."""
    argv = [sys.executable, "-P", "-m", TRIAL_MODULE]
    # The library must not see the environment; only Windows needs parts of it.
    environ = None if sys.platform == "win32" else {"PATH": "/usr/bin:/bin"}
    ending = f"it did not answer within {TRIAL_TIMEOUT_SECONDS:g} s"
    lines: list[bytes] = []
    with anyio.move_on_after(TRIAL_TIMEOUT_SECONDS):
        result = await process.run(
            argv,
            cwd=Path(trial.path).parent,
            env=environ,
            stdin=msgspec.json.encode(trial),
            grace=grace,
            on_output=lambda stream, line: lines.append(line) if stream == "stdout" else None,
        )
        code = result.exit_code
        ending = f"it ended the process with {f'signal {-code}' if code < 0 else f'exit code {code}'}"
    return _build_report(lines, ending)


def _build_report(lines: list[bytes], ending: str) -> dict[str, dict[str, Any]]:
    steps: dict[str, str] = {}
    for line in lines:
        with suppress(msgspec.MsgspecError):  # output of the library itself
            step = _decode_step(line)
            steps[step.step] = step.reason
    report = report_skipped("it was not loaded")
    for name in ("load", "smoke"):
        reason = steps.get(name, ending)
        report[name] = {"attempted": True, "ok": not reason, "reason": reason or None}
        if reason:
            break
    return report


if __name__ == "__main__":
    main()

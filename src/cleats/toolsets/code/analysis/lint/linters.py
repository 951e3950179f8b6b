"""Parsers for the output of linters."""

import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

LinterName: TypeAlias = Literal["ruff", "eslint"]
WarnCallback: TypeAlias = Callable[[str], None]


class LintFinding(msgspec.Struct, frozen=True, array_like=True, order=True):
    """One finding of a linter. Lines are counted from 1, and the last one is included."""

    line: int
    end_line: int
    code: str
    message: str
    tool: LinterName


class _RuffLocation(msgspec.Struct):
    row: int = 1


class _RuffMessage(msgspec.Struct):
    filename: str
    message: str
    location: _RuffLocation | None = None
    end_location: _RuffLocation | None = None
    code: str | None = None


class _EslintMessage(msgspec.Struct, rename="camel"):
    message: str
    rule_id: str | None = None
    line: int | None = None
    end_line: int | None = None
    fatal: bool = False


class _EslintFile(msgspec.Struct, rename="camel"):
    file_path: str
    messages: list[_EslintMessage]


def parse_ruff_output(output: bytes) -> Iterator[tuple[str, LintFinding]]:
    """Parse the output of ruff: one JSON object per line."""
    for line in output.splitlines():
        try:
            message = msgspec.json.decode(line, type=_RuffMessage)
        except msgspec.MsgspecError:  # not a finding
            continue
        first = (message.location or _RuffLocation()).row
        last = max(first, (message.end_location or message.location or _RuffLocation()).row)
        yield message.filename, LintFinding(first, last, message.code or "syntax", message.message, "ruff")


def parse_eslint_output(output: bytes, warn: WarnCallback) -> Iterator[tuple[str, LintFinding]]:
    """Parse the output of ESLint: one JSON array."""
    try:
        files = msgspec.json.decode(output or b"[]", type=list[_EslintFile])
    except msgspec.MsgspecError as error:
        warn(f"eslint answered with something else: {error}")
        return
    for file in files:
        for message in file.messages:
            if message.rule_id is None and not message.fatal:
                continue  # about ESLint itself, such as that it ignores a file
            first = message.line or 1
            last = max(first, message.end_line or first)
            code = message.rule_id or "syntax"
            yield file.file_path, LintFinding(first, last, code, message.message, "eslint")


INSTALL_HINTS: Mapping[LinterName, str] = {
    "ruff": "pip install ruff",
    "eslint": "npm install --save-dev eslint, in the repository",
}
SETTINGS_FILE_NAMES: Mapping[LinterName, tuple[str, ...]] = {
    "ruff": ("ruff.toml", ".ruff.toml", "pyproject.toml"),
    "eslint": (
        *(f"eslint.config.{ending}" for ending in ("js", "mjs", "cjs", "ts", "mts", "cts")),
        *(f".eslintrc{ending}" for ending in ("", ".js", ".cjs", ".json", ".yml", ".yaml")),
        ".eslintignore",
        "package.json",
    ),
}
"""The files with the settings of a linter, in the folder of a file or above it."""


class Linters(Struct, frozen=True):
    """The linters available for a repository."""

    ruff: str | None
    eslint: str | None

    @classmethod
    def discover(cls, root: Path, *, run_repository_code: bool = False, search: Sequence[Path] = ()) -> "Linters":
        """Look next to Python, in `search`, on PATH and, if allowed, in the checkout."""
        python_folder = Path(sys.executable).parent
        ruff = _find_program("ruff", [python_folder, *search]) or _exclude_checkout(shutil.which("ruff"), root)
        if not run_repository_code:
            return cls(ruff, None)
        checkout_folders = [root / ".venv" / folder for folder in ("bin", "Scripts")]
        return cls(
            ruff or _find_program("ruff", checkout_folders), _find_program("eslint", [root / "node_modules" / ".bin"])
        )

    def list_missing(self) -> dict[LinterName, str]:
        """Return the linters that are not available, with the way to install them."""
        programs = {"ruff": self.ruff, "eslint": self.eslint}
        return {tool: remedy for tool, remedy in INSTALL_HINTS.items() if programs[tool] is None}


def compute_fingerprint(root: Path, paths: Iterable[str] = (), *, linters: Linters | None = None) -> str:
    """Return a text that changes when files must be linted again: other settings, another linter.

    Settings are looked up in the root, and in every folder on the way to one of the paths.
    """
    available = linters or Linters.discover(root)
    digest = hashlib.blake2b(digest_size=16)
    programs: dict[LinterName, str | None] = {"ruff": available.ruff, "eslint": available.eslint}
    folders = _list_folders(paths)
    for tool, program in programs.items():
        if program is None:
            continue
        with suppress(OSError):
            # A new version is a new file; asking for its version would cost a process.
            status = Path(program).resolve().stat()
            digest.update(f"{tool} {status.st_size} {status.st_mtime_ns}\n".encode())
        for folder in folders:
            for name in SETTINGS_FILE_NAMES[tool]:
                try:
                    with open(f"{root}/{folder}/{name}", "rb") as file:  # noqa: PTH123 - thousands
                        data = file.read()
                except OSError:
                    continue
                digest.update(f"{folder}/{name} {len(data)}\n".encode(errors="replace") + data)
    return digest.hexdigest()


def _list_folders(paths: Iterable[str]) -> list[str]:
    """Return the root and every folder on the way to one of the paths."""
    folders = {""}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(folders)


def is_empty_fingerprint(fingerprint_text: str) -> bool:
    """Return whether a fingerprint is that of a build without any linter."""
    return fingerprint_text == hashlib.blake2b(digest_size=16).hexdigest()


def has_ruff_settings(root: Path, folder: str, checked_folders: dict[str, bool]) -> bool:
    if folder not in checked_folders:
        checked_folders[folder] = any(
            (root / folder / name).is_file() and (name != "pyproject.toml" or _mentions_ruff(root / folder / name))
            for name in SETTINGS_FILE_NAMES["ruff"]
        )
    return checked_folders[folder]


def _mentions_ruff(file: Path) -> bool:
    try:
        return b"tool.ruff" in file.read_bytes()
    except OSError:
        return False


def list_parent_folders(path: str) -> list[str]:
    """Return the folders that contain a file, from the innermost one to the root."""
    return ["" if str(folder) == "." else str(folder) for folder in PurePosixPath(path).parents]


def _find_program(name: str, folders: Iterable[Path]) -> str | None:
    return shutil.which(name, path=os.pathsep.join(str(folder.absolute()) for folder in folders))


def _exclude_checkout(program: str | None, root: Path) -> str | None:
    """Return a program, or None if it is in the checkout or its location is unknown."""
    if program is None or not Path(program).is_absolute():
        return None
    return None if Path(program).resolve().is_relative_to(root.resolve()) else program

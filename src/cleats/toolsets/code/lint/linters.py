"""Which linters there are for a repository, and by which settings they judge.

Ruff reads a repository's settings as data, so it is run wherever it is found, but never from the
checkout itself. ESLint's settings and plugins are programs of the repository: it is run only for
somebody who says that its code may run, and so is a linter that lies in the checkout.
"""

import hashlib
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from msgspec import Struct

from cleats.toolsets.code.lint.answers import Tool

REMEDIES: Mapping[Tool, str] = {
    "ruff": "pip install ruff",
    "eslint": "npm install --save-dev eslint, in the repository",
}
SETTINGS: Mapping[Tool, tuple[str, ...]] = {
    "ruff": ("ruff.toml", ".ruff.toml", "pyproject.toml"),
    "eslint": (
        *(f"eslint.config.{ending}" for ending in ("js", "mjs", "cjs", "ts", "mts", "cts")),
        *(f".eslintrc{ending}" for ending in ("", ".js", ".cjs", ".json", ".yml", ".yaml")),
        ".eslintignore",
        "package.json",
    ),
}
"""The files in which a linter's settings are, in the folder of a file or above it."""


class Linters(Struct, frozen=True):
    """The linters that there are for a repository."""

    ruff: str | None
    eslint: str | None

    @classmethod
    def of(
        cls, root: Path, *, run_repository_code: bool = False, search: Sequence[Path] = ()
    ) -> "Linters":
        """Look beside Python, in `search`, on the search path and, if allowed, in the checkout."""
        beside = Path(sys.executable).parent
        ruff = _which("ruff", [beside, *search]) or _foreign(shutil.which("ruff"), root)
        if not run_repository_code:
            return cls(ruff, None)
        own = [root / ".venv" / folder for folder in ("bin", "Scripts")]
        return cls(ruff or _which("ruff", own), _which("eslint", [root / "node_modules" / ".bin"]))

    def missing(self) -> dict[Tool, str]:
        """What is not there, with the way to get it."""
        there = {"ruff": self.ruff, "eslint": self.eslint}
        return {tool: remedy for tool, remedy in REMEDIES.items() if there[tool] is None}


def fingerprint(root: Path, paths: Iterable[str] = (), *, linters: Linters | None = None) -> str:
    """A text that changes when files must be linted again: other settings, another linter.

    Settings are looked for in the root, and in every folder on the way to one of the paths.
    """
    there = linters or Linters.of(root)
    digest = hashlib.blake2b(digest_size=16)
    programs: dict[Tool, str | None] = {"ruff": there.ruff, "eslint": there.eslint}
    folders = _folders(paths)
    for tool, program in programs.items():
        if program is None:
            continue
        with suppress(OSError):
            # A new version is a new file; to ask for the number would cost a process.
            now = Path(program).resolve().stat()
            digest.update(f"{tool} {now.st_size} {now.st_mtime_ns}\n".encode())
        for folder in folders:
            for name in SETTINGS[tool]:
                try:
                    with open(f"{root}/{folder}/{name}", "rb") as file:  # noqa: PTH123 - thousands
                        data = file.read()
                except OSError:
                    continue
                digest.update(f"{folder}/{name} {len(data)}\n".encode(errors="replace") + data)
    return digest.hexdigest()


def _folders(paths: Iterable[str]) -> list[str]:
    """The root and every folder on the way to one of the paths."""
    found = {""}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(found)


def none_asked(mark: str) -> bool:
    """Whether a fingerprint is that of a build for which there was no linter at all."""
    return mark == hashlib.blake2b(digest_size=16).hexdigest()


def has_ruff_settings(root: Path, folder: str, judged: dict[str, bool]) -> bool:
    if folder not in judged:
        judged[folder] = any(
            (root / folder / name).is_file()
            and (name != "pyproject.toml" or _mentions_ruff(root / folder / name))
            for name in SETTINGS["ruff"]
        )
    return judged[folder]


def _mentions_ruff(file: Path) -> bool:
    try:
        return b"tool.ruff" in file.read_bytes()
    except OSError:
        return False


def above(path: str) -> list[str]:
    """The folders in which a file lies, from the innermost one to the root."""
    return ["" if str(folder) == "." else str(folder) for folder in PurePosixPath(path).parents]


def _which(name: str, folders: Iterable[Path]) -> str | None:
    return shutil.which(name, path=os.pathsep.join(str(folder.absolute()) for folder in folders))


def _foreign(program: str | None, root: Path) -> str | None:
    """A program, unless it lies in the checkout, or nobody knows where."""
    if program is None or not Path(program).is_absolute():
        return None
    return None if Path(program).resolve().is_relative_to(root.resolve()) else program

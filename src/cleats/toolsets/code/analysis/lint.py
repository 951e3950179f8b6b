"""Findings of linters for the files of a repository. Nothing is ever fixed or written.

Findings depend on a file, on the settings above it and on the linter, so only changed files have to
be linted again, until the fingerprint of the linters changes.
"""

import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from cleats.system.processes import blocking

LinterName: TypeAlias = Literal["ruff", "eslint"]
WarnCallback: TypeAlias = Callable[[str], None]

LINTERS_BY_LANGUAGE: Mapping[str, LinterName] = {
    "python": "ruff",
    "javascript": "eslint",
    "typescript": "eslint",
    "tsx": "eslint",
}

BATCH_TIMEOUT_SECONDS = 300.0
"""The seconds that one batch may take."""

MAX_BATCH_FILES = 1000
"""The most files per command, which limits the size of its output."""

MAX_BATCH_CHARS = 24_000
"""The most characters of file names per command; Windows limits a command to 32,767."""

MAX_OUTPUT_BYTES = 64 * 1024 * 1024
"""The most bytes of one output; ESLint repeats the text of each file that has findings."""

MAX_FINDINGS_PER_FILE = 200
"""The most findings kept for one file; nobody reads more of them line by line."""


class LintFinding(Struct, frozen=True, array_like=True, order=True):
    """One finding of a linter. Lines are counted from 1, and the last one is included."""

    line: int
    end_line: int
    code: str
    message: str
    tool: LinterName


class _RuffLocation(Struct):
    row: int = 1


class _RuffMessage(Struct):
    filename: str
    message: str
    location: _RuffLocation | None = None
    end_location: _RuffLocation | None = None
    code: str | None = None


class _EslintMessage(Struct, rename="camel"):
    message: str
    rule_id: str | None = None
    line: int | None = None
    end_line: int | None = None
    fatal: bool = False


class _EslintFile(Struct, rename="camel"):
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
        warn(f"eslint printed unexpected output: {error}")
        return
    for file in files:
        for message in file.messages:
            if message.rule_id is None and not message.fatal:
                continue  # about ESLint itself, such as that it ignores a file
            first = message.line or 1
            last = max(first, message.end_line or first)
            code = message.rule_id or "syntax"
            yield file.file_path, LintFinding(first, last, code, message.message, "eslint")


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

    @property
    def programs(self) -> dict[LinterName, str | None]:
        return {"ruff": self.ruff, "eslint": self.eslint}


def compute_fingerprint(root: Path, paths: Iterable[str] = (), *, linters: Linters | None = None) -> str:
    """Return a text that changes when files must be linted again: other settings, another linter.

    Settings are looked up in the root, and in every folder on the way to one of the paths.
    """
    available = linters or Linters.discover(root)
    digest = hashlib.blake2b(digest_size=16)
    folders = _list_folders(paths)
    for tool, program in available.programs.items():
        if program is None:
            continue
        with suppress(OSError):
            # A new version is a new file; asking for its version would cost a process.
            status = Path(program).resolve().stat()
            digest.update(f"{tool} {status.st_size} {status.st_mtime_ns}\n".encode())
        for folder in folders:
            for name in SETTINGS_FILE_NAMES[tool]:
                path = f"{root}/{folder}/{name}"
                if not os.access(path, os.R_OK):  # thousands, and an exception for each would double the time
                    continue
                try:
                    with open(path, "rb") as file:  # noqa: PTH123
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


def is_empty_fingerprint(fingerprint: str) -> bool:
    """Return True if a fingerprint is that of a build without any linter."""
    return fingerprint == hashlib.blake2b(digest_size=16).hexdigest()


def _has_ruff_settings(folder: Path) -> bool:
    for file in (folder / name for name in SETTINGS_FILE_NAMES["ruff"]):
        with suppress(OSError):
            if file.is_file() and (file.name != "pyproject.toml" or b"tool.ruff" in file.read_bytes()):
                return True
    return False


def _find_program(name: str, folders: Iterable[Path]) -> str | None:
    return shutil.which(name, path=os.pathsep.join(str(folder.absolute()) for folder in folders))


def _exclude_checkout(program: str | None, root: Path) -> str | None:
    """Return a program, or None if it is in the checkout or its location is unknown."""
    if program is None or not Path(program).is_absolute():
        return None
    return None if Path(program).resolve().is_relative_to(root.resolve()) else program


def lint_files(
    root: Path,
    paths_by_lang: Mapping[str, Sequence[str]],
    *,
    linters: Linters | None = None,
    warn: WarnCallback = lambda _: None,
) -> dict[str, list[LintFinding]]:
    """Lint files; files without findings are not in the result.

    A linter that fails has no findings, and `warn` receives the reason. The call blocks while linters run.
    """
    root = root.resolve()
    available = linters or Linters.discover(root)
    paths: dict[LinterName, list[str]] = {"ruff": [], "eslint": []}
    for lang, lang_paths in paths_by_lang.items():
        if lang in LINTERS_BY_LANGUAGE:
            paths[LINTERS_BY_LANGUAGE[lang]] += lang_paths
    findings_by_path: dict[str, list[LintFinding]] = {}
    if available.ruff is not None:
        for command, batch in _split_ruff_batches(root, available.ruff, paths["ruff"]):
            _add_findings(findings_by_path, root, parse_ruff_output(_run_linter(root, [*command, *batch], warn)))
    if available.eslint is not None:
        for batch in _split_batches(paths["eslint"]):
            output = _run_linter(root, [available.eslint, *_ESLINT_ARGUMENTS, *batch], warn)
            _add_findings(findings_by_path, root, parse_eslint_output(output, warn))
    return {path: sorted(set(findings_by_path[path]))[:MAX_FINDINGS_PER_FILE] for path in sorted(findings_by_path)}


_RUFF_ARGUMENTS = (
    *("check", "--output-format=json-lines", "--no-cache", "--force-exclude", "--exit-zero", "--quiet"),
    *("--no-fix", "--no-fix-only"),  # a repository's settings may ask for it
)
_ESLINT_ARGUMENTS = ("--format=json", "--no-color", "--no-error-on-unmatched-pattern", "--")


def _split_ruff_batches(root: Path, program: str, paths: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield commands and the files to append to them.

    A file without settings in the repository must not be judged by those of the user, or of the folders above the
    repository.
    """
    has_settings = cache(lambda folder: _has_ruff_settings(root / folder))
    paths_by_option: dict[str, list[str]] = {"": [], "--isolated": []}
    for path in paths:
        is_configured = any(map(has_settings, PurePosixPath(path).parents))
        paths_by_option["" if is_configured else "--isolated"].append(path)
    for option, option_paths in paths_by_option.items():
        for batch in _split_batches(option_paths):
            yield [program, *_RUFF_ARGUMENTS, *filter(None, [option]), "--"], batch


def _split_batches(paths: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    length = 0
    for path in paths:
        if batch and (len(batch) == MAX_BATCH_FILES or length + len(path) > MAX_BATCH_CHARS):
            yield batch
            batch, length = [], 0
        batch.append(path)
        length += len(path) + 3  # a space, and quotes where there are any
    if batch:
        yield batch


def _run_linter(root: Path, argv: Sequence[str], warn: WarnCallback) -> bytes:
    name = Path(argv[0]).name
    folders = [str(Path(program).parent) for program in (argv[0], shutil.which("node")) if program]
    environ = {"PATH": os.pathsep.join(folders), "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
    try:
        completed = blocking.run_command(
            argv, cwd=root, env=environ, timeout=BATCH_TIMEOUT_SECONDS, output_limit=MAX_OUTPUT_BYTES
        )
    except blocking.StartError as error:
        warn(str(error))
        return b""
    except TimeoutError:
        warn(f"{name} took longer than {BATCH_TIMEOUT_SECONDS:.0f} s")
        return b""
    # Both return 1 if they have findings, and 2 if they failed.
    if completed.exit_code not in {0, 1} or completed.truncated:
        first_line = completed.stderr.decode(errors="replace").strip().partition("\n")[0]
        warn(f"{name} failed: {first_line or f'exit code {completed.exit_code}'}")
        return b""
    return completed.stdout


def _add_findings(
    findings_by_path: dict[str, list[LintFinding]], root: Path, findings: Iterable[tuple[str, LintFinding]]
) -> None:
    for name, finding in findings:
        path = root / name
        if path.is_relative_to(root):
            findings_by_path.setdefault(path.relative_to(root).as_posix(), []).append(finding)

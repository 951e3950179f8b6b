"""Running of linters over files. Nothing is ever fixed or written.

Findings depend on a file, on the settings above it and on the linter, so only changed files have to
be linted again, until the fingerprint of the linters changes.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from cleats.system.processes import blocking
from cleats.toolsets.code.analysis.lint.linters import (
    LinterName,
    Linters,
    LintFinding,
    WarnCallback,
    has_ruff_settings,
    list_parent_folders,
    parse_eslint_output,
    parse_ruff_output,
)

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


def lint_files(
    root: Path,
    paths_by_lang: Mapping[str, Sequence[str]],
    *,
    linters: Linters | None = None,
    warn: WarnCallback = lambda _: None,
) -> dict[str, list[LintFinding]]:
    """Lint files; files without findings are not in the result.

    A linter that fails has no findings, and `warn` receives the reason. The call blocks while
    linters run.
    """
    root = _resolve_root(root)
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
    "check",
    "--output-format=json-lines",
    "--no-fix",  # a repository's settings may ask for it
    "--no-fix-only",
    "--no-cache",
    "--force-exclude",
    "--exit-zero",
    "--quiet",
)
_ESLINT_ARGUMENTS = ("--format=json", "--no-color", "--no-error-on-unmatched-pattern", "--")


def _split_ruff_batches(root: Path, program: str, paths: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield commands and the files to append to them.

    A file without settings in the repository must not be judged by those of the user, or of the
    folders above the repository.
    """
    checked_folders: dict[str, bool] = {}
    configured_paths: list[str] = []
    unconfigured_paths: list[str] = []
    for path in paths:
        is_configured = any(has_ruff_settings(root, folder, checked_folders) for folder in list_parent_folders(path))
        (configured_paths if is_configured else unconfigured_paths).append(path)
    for batch in _split_batches(configured_paths):
        yield [program, *_RUFF_ARGUMENTS, "--"], batch
    for batch in _split_batches(unconfigured_paths):
        yield [program, *_RUFF_ARGUMENTS, "--isolated", "--"], batch


def _resolve_root(root: Path) -> Path:
    return root.resolve()


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
    try:
        completed = blocking.run_command(
            argv,
            cwd=root,
            env=_build_environment(argv[0]),
            timeout=BATCH_TIMEOUT_SECONDS,
            output_limit=MAX_OUTPUT_BYTES,
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


def _build_environment(program: str) -> dict[str, str]:
    node = shutil.which("node")
    folders = [str(Path(executable).parent) for executable in (program, node) if executable is not None]
    return {"PATH": os.pathsep.join(folders), "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}


def _add_findings(
    findings_by_path: dict[str, list[LintFinding]], root: Path, findings: Iterable[tuple[str, LintFinding]]
) -> None:
    for name, finding in findings:
        path = Path(name)
        if path.is_absolute():
            if not path.is_relative_to(root):
                continue
            path = path.relative_to(root)
        findings_by_path.setdefault(path.as_posix(), []).append(finding)

"""Linters run over files. Nothing is ever fixed or written.

What is found depends on a file, on the settings above it and on the linter, so only changed files
need another look, until the `fingerprint` changes.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from cleats.runtime import blocking
from cleats.toolsets.code.lint.answers import Finding, Tool, Warn, read_eslint, read_ruff
from cleats.toolsets.code.lint.linters import Linters, above, has_ruff_settings

LANGUAGES: Mapping[str, Tool] = {
    "python": "ruff",
    "javascript": "eslint",
    "typescript": "eslint",
    "tsx": "eslint",
}

TIMEOUT = 300.0
"""Seconds for one batch."""

BATCH = 1000
"""Files per command: we bound what it answers."""

LENGTH = 24_000
"""Characters of their names: systems bound the length of a command, Windows at 32,767."""

ANSWER = 64 * 1024 * 1024
"""Bytes of one answer; ESLint repeats the text of each file it complains about."""

MOST = 200
"""Findings kept of one file. A file with more is not read line by line."""


def lint(
    root: Path,
    paths_by_lang: Mapping[str, Sequence[str]],
    *,
    linters: Linters | None = None,
    warn: Warn = lambda _: None,
) -> dict[str, list[Finding]]:
    """Lint some files; those without a finding are not in the answer.

    A linter that fails finds nothing, and `warn` is told why. Blocks while linters run.
    """
    root = _real(root)
    there = linters or Linters.of(root)
    paths: dict[Tool, list[str]] = {"ruff": [], "eslint": []}
    for lang, some in paths_by_lang.items():
        if lang in LANGUAGES:
            paths[LANGUAGES[lang]] += some
    found: dict[str, list[Finding]] = {}
    if there.ruff is not None:
        for command, batch in _ruff_batches(root, there.ruff, paths["ruff"]):
            _add(found, root, read_ruff(_run(root, [*command, *batch], warn)))
    if there.eslint is not None:
        for batch in _batches(paths["eslint"]):
            answer = _run(root, [there.eslint, *_ESLINT, *batch], warn)
            _add(found, root, read_eslint(answer, warn))
    return {path: sorted(set(found[path]))[:MOST] for path in sorted(found)}


_RUFF = (
    "check",
    "--output-format=json-lines",
    "--no-fix",  # a repository's settings may ask for it
    "--no-fix-only",
    "--no-cache",
    "--force-exclude",
    "--exit-zero",
    "--quiet",
)
_ESLINT = ("--format=json", "--no-color", "--no-error-on-unmatched-pattern", "--")


def _ruff_batches(
    root: Path, program: str, paths: Sequence[str]
) -> Iterator[tuple[list[str], list[str]]]:
    """Commands and the files to put behind them.

    A file without settings in the repository is not to be judged by those of the user, or of
    whatever folder the repository lies in.
    """
    judged: dict[str, bool] = {}
    ruled: list[str] = []
    free: list[str] = []
    for path in paths:
        rules = any(has_ruff_settings(root, folder, judged) for folder in above(path))
        (ruled if rules else free).append(path)
    for batch in _batches(ruled):
        yield [program, *_RUFF, "--"], batch
    for batch in _batches(free):
        yield [program, *_RUFF, "--isolated", "--"], batch


def _real(root: Path) -> Path:
    return root.resolve()


def _batches(paths: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    length = 0
    for path in paths:
        if batch and (len(batch) == BATCH or length + len(path) > LENGTH):
            yield batch
            batch, length = [], 0
        batch.append(path)
        length += len(path) + 3  # a space, and quotes where there are any
    if batch:
        yield batch


def _run(root: Path, argv: Sequence[str], warn: Warn) -> bytes:
    name = Path(argv[0]).name
    try:
        done = blocking.run(
            argv, cwd=root, env=_environment(argv[0]), timeout=TIMEOUT, output_limit=ANSWER
        )
    except blocking.StartError as error:
        warn(str(error))
        return b""
    except TimeoutError:
        warn(f"{name} took longer than {TIMEOUT:.0f} s")
        return b""
    # Both return 1 when they have found something, and 2 when they could not look.
    if done.exit_code not in {0, 1} or done.truncated:
        said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        warn(f"{name} failed: {said or f'exit code {done.exit_code}'}")
        return b""
    return done.stdout


def _environment(program: str) -> dict[str, str]:
    node = shutil.which("node")
    folders = [str(Path(each).parent) for each in (program, node) if each is not None]
    return {"PATH": os.pathsep.join(folders), "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}


def _add(found: dict[str, list[Finding]], root: Path, told: Iterable[tuple[str, Finding]]) -> None:
    for name, finding in told:
        path = Path(name)
        if path.is_absolute():
            if not path.is_relative_to(root):
                continue
            path = path.relative_to(root)
        found.setdefault(path.as_posix(), []).append(finding)

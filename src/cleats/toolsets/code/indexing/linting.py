"""What linters say, in the catalogue: each finding with the smallest piece of code it is about."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from cleats.toolsets.code.lint import Finding, Linters, fingerprint, lint
from cleats.toolsets.code.lint.run import LANGUAGES
from cleats.toolsets.code.store.catalogue import Catalogue

_pack = msgspec.msgpack.Encoder().encode

_FILES = "SELECT path, lang FROM files WHERE mode = 'code' ORDER BY path"
_CHUNKS = (
    "SELECT id, start_line, end_line FROM chunks"
    " WHERE file = (SELECT id FROM files WHERE path = ?) AND mode = 'code'"
)


class Linted(NamedTuple):
    """What came of it."""

    mark: str
    """Changes with the linters and their settings: then all files are linted again."""
    warnings: list[str]


def add(
    catalogue: Catalogue,
    root: Path,
    linters: Linters,
    touched: Collection[str] | None,
    before: str | None,
) -> Linted:
    """Lint the files that were touched, or all that there are when anything else has changed."""
    files = [row for row in catalogue.connection.execute(_FILES) if row[1] in LANGUAGES]
    mark = fingerprint(root, [path for path, _ in files], linters=linters)
    if touched is not None and mark == before:
        files = [(path, lang) for path, lang in files if path in touched]
    else:
        forget(catalogue)
    by_lang: dict[str, list[str]] = {}
    for path, lang in files:
        by_lang.setdefault(lang, []).append(path)
    warnings: list[str] = []
    if by_lang:
        found = lint(root, by_lang, linters=linters, warn=warnings.append)
        for path, findings in found.items():
            _note(catalogue, path, findings)
    return Linted(mark, warnings)


def forget(catalogue: Catalogue) -> None:
    """Take back everything that linters said."""
    catalogue.connection.execute("UPDATE chunks SET lint = NULL WHERE lint IS NOT NULL")


def _note(catalogue: Catalogue, path: str, findings: Sequence[Finding]) -> None:
    chunks = list(catalogue.connection.execute(_CHUNKS, (path,)))
    noted: dict[int, list[Finding]] = {}
    for finding in findings:
        around = [
            (end - start, -start, chunk)
            for chunk, start, end in chunks
            if start <= finding.line <= end
        ]
        if around:
            noted.setdefault(min(around)[2], []).append(finding)
    catalogue.connection.executemany(
        "UPDATE chunks SET lint = ? WHERE id = ?",
        [(_pack(some), chunk) for chunk, some in noted.items()],
    )

"""The ingestion of files into the catalogue: read by workers, written here."""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from cleats.system.atomic_files import clone_file
from cleats.system.worker_pool import LostTask, ProcessPool
from cleats.toolsets.code.analysis.lint import (
    LINTERS_BY_LANGUAGE,
    Linters,
    LintFinding,
    compute_fingerprint,
    lint_files,
)
from cleats.toolsets.code.analysis.risk.call_graph import CallGraph
from cleats.toolsets.code.analysis.risk.linking import LinkableFunction, update_links
from cleats.toolsets.code.analysis.risk.summary import FunctionSummary
from cleats.toolsets.code.index.catalogue import IndexCatalogue, KnownFile
from cleats.toolsets.code.index.catalogue_schema import Relations
from cleats.toolsets.code.index.file_reader import FileReader, ReadOutcome, ReadTask, make_unreadable_outcome
from cleats.toolsets.code.index.progress import ProgressCounter

MIN_PARALLEL_FILES = 32
"""Files from which on starting a second worker pays."""

PARSER_FAILURE_REASON = "its parser crashed or took too long"

_decode_outcome = msgspec.msgpack.Decoder(ReadOutcome).decode


class IngestedFiles(Struct):
    """The paths of the files that were read, by outcome."""

    indexed: list[str] = []
    skipped: list[str] = []
    vanished: list[str] = []

    @property
    def paths(self) -> list[str]:
        """The paths of all files that were read."""
        return [*self.indexed, *self.skipped, *self.vanished]


def ingest_files(
    catalogue: IndexCatalogue,
    tasks: Sequence[ReadTask],
    file_reader: FileReader,
    workers: int,
    counter: ProgressCounter,
) -> IngestedFiles:
    """Read files and write their rows, in the order given."""
    ingested = IngestedFiles()
    for done, (task, outcome) in enumerate(_read_files(tasks, file_reader, workers), 1):
        _write_outcome(catalogue, task, outcome, ingested)
        counter.report_done(done)
    return ingested


def _read_files(
    tasks: Sequence[ReadTask], file_reader: FileReader, workers: int
) -> Iterator[tuple[ReadTask, ReadOutcome]]:
    if not tasks:
        return
    file_reader.preload()
    count = workers or os.cpu_count() or 1
    pool = ProcessPool(file_reader, 1 if len(tasks) < MIN_PARALLEL_FILES else count)
    for task, result in pool.map(tasks, _weigh_task):
        yield task, _reread_plain(task, file_reader) if isinstance(result, LostTask) else _decode_outcome(result)


def _reread_plain(task: ReadTask, file_reader: FileReader) -> ReadOutcome:
    """Read a file line by line after its parser failed."""
    plain_task = msgspec.structs.replace(task, plain=PARSER_FAILURE_REASON)
    for _, result in ProcessPool(file_reader, 1).map([plain_task], _weigh_task):
        if not isinstance(result, LostTask):
            return _decode_outcome(result)
    return make_unreadable_outcome(task, PARSER_FAILURE_REASON)


def _weigh_task(task: ReadTask) -> int:
    return task.size + 256


def _write_outcome(catalogue: IndexCatalogue, task: ReadTask, outcome: ReadOutcome, ingested: IngestedFiles) -> None:
    if outcome.row is not None:
        catalogue.add_file(outcome.row)
        ingested.indexed.append(task.path)
    elif outcome.status == "skipped":
        known_file = KnownFile(outcome.size, outcome.mtime_ns, outcome.hash)
        catalogue.add_skipped_file(task.path, known_file, outcome.reason, outcome.detail)
        ingested.skipped.append(task.path)
    else:
        ingested.vanished.append(task.path)


_pack = msgspec.msgpack.Encoder().encode

_SELECT_LINTED_FILES_SQL = "SELECT path, lang FROM files WHERE mode = 'code' ORDER BY path"
_SELECT_CHUNK_LINES_SQL = (
    "SELECT id, start_line, end_line FROM chunks WHERE file = (SELECT id FROM files WHERE path = ?) AND mode = 'code'"
)


class LintResult(NamedTuple):
    """The result of linting."""

    linters_hash: str
    """Changes with the linters and their settings: then all files are linted again."""
    warnings: list[str]


def add_findings(
    catalogue: IndexCatalogue, root: Path, linters: Linters, touched: Collection[str] | None, previous_hash: str | None
) -> LintResult:
    """Lint the files that were touched, or all files when the linters or settings have changed."""
    files = [row for row in catalogue.connection.execute(_SELECT_LINTED_FILES_SQL) if row[1] in LINTERS_BY_LANGUAGE]
    linters_hash = compute_fingerprint(root, [path for path, _ in files], linters=linters)
    if touched is not None and linters_hash == previous_hash:
        files = [(path, lang) for path, lang in files if path in touched]
    else:
        clear_findings(catalogue)
    by_lang: dict[str, list[str]] = {}
    for path, lang in files:
        by_lang.setdefault(lang, []).append(path)
    warnings: list[str] = []
    if by_lang:
        findings_by_path = lint_files(root, by_lang, linters=linters, warn=warnings.append)
        for path, findings in findings_by_path.items():
            _write_findings(catalogue, path, findings)
    return LintResult(linters_hash, warnings)


def clear_findings(catalogue: IndexCatalogue) -> None:
    """Remove all findings from the catalogue."""
    catalogue.connection.execute("UPDATE chunks SET lint = NULL WHERE lint IS NOT NULL")


def _write_findings(catalogue: IndexCatalogue, path: str, findings: Sequence[LintFinding]) -> None:
    chunks = list(catalogue.connection.execute(_SELECT_CHUNK_LINES_SQL, (path,)))
    findings_by_chunk: dict[int, list[LintFinding]] = {}
    for finding in findings:
        candidates = [(end - start, -start, chunk) for chunk, start, end in chunks if start <= finding.line <= end]
        if candidates:
            findings_by_chunk.setdefault(min(candidates)[2], []).append(finding)
    catalogue.connection.executemany(
        "UPDATE chunks SET lint = ? WHERE id = ?",
        [(_pack(chunk_findings), chunk) for chunk, chunk_findings in findings_by_chunk.items()],
    )


LINKS_FILE_NAME: Final = "links.bin"
"""The saved links that the next build continues from."""


class _CalleeFacts(Struct):
    """The facts of a chunk that linking needs."""

    params: list[str] = []
    lang: str = ""


_decode_callee = msgspec.msgpack.Decoder(_CalleeFacts).decode
_decode_relations = msgspec.msgpack.Decoder(Relations).decode
_decode_summary = msgspec.msgpack.Decoder(FunctionSummary).decode

_SELECT_CODE_FILES_SQL = "SELECT id, path, lang, facts FROM files WHERE mode = 'code'"
_SELECT_SUMMARIES_SQL = "SELECT id, name, facts, summary FROM chunks WHERE file = ? AND summary IS NOT NULL"
_SELECT_SUMMARY_SQL = "SELECT summary FROM chunks WHERE id = ?"


def add_risks(
    catalogue: IndexCatalogue, touched: Collection[str] | None, *, previous: Path | None, draft: Path
) -> None:
    """Derive the risks of functions and write them to the catalogue.

    Args:
        catalogue: The catalogue being built.
        touched: The files whose functions may have changed; None for all.
        previous: The earlier generation, if any.
        draft: The folder of the new generation.
    """
    saved = previous / LINKS_FILE_NAME if previous and touched is not None else None
    links = CallGraph.load(saved.read_bytes()) if saved and saved.is_file() else None
    if saved and links is not None and not touched:
        clone_file(saved, draft / LINKS_FILE_NAME)
        return
    if links is None:
        links, touched = CallGraph(), None
    changed = list(_read_functions(catalogue, touched))
    summaries = {function.key: function.summary for function in changed}

    def read_summaries(keys: Sequence[int]) -> dict[int, FunctionSummary | None]:
        return {key: summaries[key] if key in summaries else _read_summary(catalogue, key) for key in keys}

    risks = update_links(links, touched or (), changed, read_summaries)
    _write_risks(catalogue, risks.items())
    (draft / LINKS_FILE_NAME).write_bytes(links.save())


def _read_functions(catalogue: IndexCatalogue, paths: Collection[str] | None) -> Iterator[LinkableFunction]:
    for file, path, lang, relations in list(catalogue.connection.execute(_SELECT_CODE_FILES_SQL)):
        if paths is not None and path not in paths:
            continue
        imports = _decode_relations(relations).imports
        for key, name, facts, summary in catalogue.connection.execute(_SELECT_SUMMARIES_SQL, (file,)):
            callee = _decode_callee(facts)
            chunk_lang = callee.lang or lang
            yield LinkableFunction(key, path, name, chunk_lang, imports, callee.params, _decode_summary(summary))


def _read_summary(catalogue: IndexCatalogue, key: int) -> FunctionSummary:
    return _decode_summary(next(catalogue.connection.execute(_SELECT_SUMMARY_SQL, (key,)))[0])


def _write_risks(catalogue: IndexCatalogue, risks: Iterable[tuple[int, object | None]]) -> None:
    stored = dict(catalogue.connection.execute("SELECT id, risk FROM chunks WHERE risk IS NOT NULL"))
    packed = ((None if risk is None else _pack(risk), key) for key, risk in risks)
    changes = [(risk, key) for risk, key in packed if stored.get(key) != risk]
    catalogue.connection.executemany("UPDATE chunks SET risk = ? WHERE id = ?", changes)

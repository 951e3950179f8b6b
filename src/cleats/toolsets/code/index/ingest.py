"""What fills the catalogue: files read by workers, their authors in git, linter findings, and risks."""

import os
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cleats.system.atomic_files import link_file
from cleats.system.processes import blocking
from cleats.system.worker_pool import LostTask, ProcessPool
from cleats.toolsets.code.analysis.history.head import GitState
from cleats.toolsets.code.analysis.history.replay import FileHistory, History
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
from cleats.toolsets.code.index.catalogue_schema import CATALOGUE_FILE_NAME, Relations
from cleats.toolsets.code.index.file_reader import FileReader, ReadOutcome, ReadTask, make_unreadable_outcome
from cleats.toolsets.code.index.parsed_files import ParsedFiles
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
    *,
    parsed_files: ParsedFiles | None = None,
) -> IngestedFiles:
    """Read files and write their rows, in the order given; what an earlier build has parsed is not parsed again."""
    ingested = IngestedFiles()
    parsed = parsed_files.find_outcomes(tasks) if parsed_files else {}
    read_files = _read_files([task for task in tasks if task.path not in parsed], file_reader, workers, parsed_files)
    for done, task in enumerate(tasks, 1):
        if parsed_files is not None and task.path in parsed:
            outcome = parsed_files.load_outcome(task.path, *parsed[task.path])
        else:
            outcome = next(read_files)
        _write_outcome(catalogue, task, outcome, ingested)
        counter.report_done(done)
    return ingested


def _read_files(
    tasks: Sequence[ReadTask], file_reader: FileReader, workers: int, parsed_files: ParsedFiles | None
) -> Iterator[ReadOutcome]:
    if not tasks:
        return
    file_reader.preload()
    count = workers or os.cpu_count() or 1
    pool = ProcessPool(file_reader, 1 if len(tasks) < MIN_PARALLEL_FILES else count)
    for task, result in pool.map(tasks, _weigh_task):
        if isinstance(result, LostTask):
            yield _reread_plain(task, file_reader)
            continue
        outcome = _decode_outcome(result)
        if parsed_files is not None:
            parsed_files.append(task.path, outcome, result)
        yield outcome


def _reread_plain(task: ReadTask, file_reader: FileReader) -> ReadOutcome:
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


def add_findings(
    catalogue: IndexCatalogue, root: Path, linters: Linters, touched: Collection[str] | None, previous_hash: str | None
) -> tuple[str, list[str]]:
    """Lint the files that were touched, or all files when the linters or settings have changed.

    Returns: a hash of the linters and their settings, and warnings.
    """
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
        for path, findings in lint_files(root, by_lang, linters=linters, warn=warnings.append).items():
            _write_findings(catalogue, path, findings)
    return linters_hash, warnings


def clear_findings(catalogue: IndexCatalogue) -> None:
    """Remove all findings from the catalogue."""
    files = {file for (file,) in catalogue.connection.execute("SELECT file FROM chunks WHERE lint IS NOT NULL")}
    catalogue.take_files(files)
    catalogue.connection.execute("UPDATE main.chunks SET lint = NULL WHERE lint IS NOT NULL")


def _write_findings(catalogue: IndexCatalogue, path: str, findings: Sequence[LintFinding]) -> None:
    chunks = list(catalogue.connection.execute(_SELECT_CHUNK_LINES_SQL, (path,)))
    findings_by_chunk: dict[int, list[LintFinding]] = {}
    for finding in findings:
        candidates = [(end - start, -start, chunk) for chunk, start, end in chunks if start <= finding.line <= end]
        if candidates:
            findings_by_chunk.setdefault(min(candidates)[2], []).append(finding)
    catalogue.update_chunks(
        "lint", ((_pack(chunk_findings), chunk) for chunk, chunk_findings in findings_by_chunk.items())
    )


LINKS_FILE_NAME: Final = "links.bin"
"""The saved links that the next build continues from."""


class _CalleeFacts(Struct):
    params: list[str] = []
    lang: str = ""


_decode_callee = msgspec.msgpack.Decoder(_CalleeFacts).decode
_decode_relations = msgspec.msgpack.Decoder(Relations).decode
_decode_summary = msgspec.msgpack.Decoder(FunctionSummary).decode

_SELECT_CODE_FILES_SQL = "SELECT id, path, lang, facts FROM files WHERE mode = 'code'"
_SELECT_SUMMARIES_SQL = (
    "SELECT id, name, facts, summary FROM chunks WHERE file = ? AND summary IS NOT NULL ORDER BY ordinal"
)
_SELECT_RISK_SQL = "SELECT risk FROM chunks WHERE id = ?"
_SELECT_SUMMARY_SQL = "SELECT summary FROM chunks WHERE id = ?"


def add_risks(
    catalogue: IndexCatalogue, touched: Collection[str] | None, *, previous: Path | None, draft: Path
) -> None:
    """Derive the risks of functions in the touched files, or in all if None, and write them to the catalogue."""
    saved = previous / LINKS_FILE_NAME if previous and touched is not None else None
    if saved and previous and touched is not None and saved.is_file() and _keep_risks(catalogue, touched, previous):
        link_file(saved, draft / LINKS_FILE_NAME)
        return
    links = CallGraph.load(saved.read_bytes()) if saved and saved.is_file() else None
    if links is None:
        links, touched = CallGraph(), None
    changed = list(_read_functions(catalogue, touched))
    summaries = {function.key: function.summary for function in changed}

    def read_summary(key: int) -> FunctionSummary:
        return summaries.get(key) or _decode_summary(catalogue.connection.execute(_SELECT_SUMMARY_SQL, (key,)).get)

    def read_summaries(keys: Sequence[int]) -> dict[int, FunctionSummary | None]:
        return {key: read_summary(key) for key in keys}

    risks = update_links(links, touched or (), changed, read_summaries)
    _write_risks(catalogue, risks.items())
    (draft / LINKS_FILE_NAME).write_bytes(links.save())


def _keep_risks(catalogue: IndexCatalogue, touched: Collection[str], previous: Path) -> bool:
    """Copy the risks of the touched files, if all their functions do what they did; return whether that is so.

    What a function does depends on its text and on those of the functions that it calls, not on its line, unless it
    has a source or a sink of its own.
    """
    with IndexCatalogue.open(previous / CATALOGUE_FILE_NAME) as earlier:
        before = [_drop_call_lines(function) for function in _read_functions(earlier, touched)]
        if before != [_drop_call_lines(function) for function in _read_functions(catalogue, touched)]:
            return False
        keys = [function.key for function in before]
        risks = [(earlier.connection.execute(_SELECT_RISK_SQL, (key,)).get, key) for key in keys]
    catalogue.update_chunks("risk", risks)
    return True


def _drop_call_lines(function: LinkableFunction) -> LinkableFunction:
    summary = function.summary
    if summary is None:
        return function
    calls = [replace(call, line=0) for call in summary.calls]
    return function._replace(summary=replace(summary, calls=calls))


def _read_functions(catalogue: IndexCatalogue, paths: Collection[str] | None) -> Iterator[LinkableFunction]:
    execute = catalogue.connection.execute
    if paths is None:
        files = list(execute(_SELECT_CODE_FILES_SQL))
    else:
        files = [row for path in sorted(paths) for row in execute(f"{_SELECT_CODE_FILES_SQL} AND path = ?", (path,))]
    for file, path, lang, relations in files:
        imports = _decode_relations(relations).imports
        for key, name, facts, summary in execute(_SELECT_SUMMARIES_SQL, (file,)):
            callee = _decode_callee(facts)
            chunk_lang = callee.lang or lang
            yield LinkableFunction(key, path, name, chunk_lang, imports, callee.params, _decode_summary(summary))


def _write_risks(catalogue: IndexCatalogue, risks: Iterable[tuple[int, object | None]]) -> None:
    execute = catalogue.connection.execute
    packed = ((None if risk is None else _pack(risk), key) for key, risk in risks)
    catalogue.update_chunks(
        "risk", [(risk, key) for risk, key in packed if execute(_SELECT_RISK_SQL, (key,)).get != risk]
    )


HISTORY_FILE_NAME: Final = "history.bin"
"""The saved history that the next build continues from."""

MAILMAP_FILE_NAME: Final = ".mailmap"
"""The file that maps several names of an author to one person."""

MAX_FILE_LINES: Final = 1 << 30
"""More lines than any file has."""

MIN_PARALLEL_HISTORY_FILES: Final = 256
"""Files from which on the history is read in parallel, because reading them takes long enough."""

LoadHistory: TypeAlias = Callable[[], bytes | None]
"""Returns a saved history to continue from; None when there is none."""

_SELECT_FILES_SQL = "SELECT id, path, last_author, last_modified, last_commit, churn FROM files"
_UPDATE_FILE_SQL = "UPDATE main.files SET last_author = ?, last_modified = ?, last_commit = ?, churn = ? WHERE id = ?"
_SELECT_CHUNKS_SQL = "SELECT id, start_line, end_line FROM chunks WHERE file = ?"


@contextmanager
def prepare_history(root: Path, git: GitState | None, previous: Path | None, file_count: int) -> Iterator[LoadHistory]:
    """Provide the history to continue from: that of an earlier generation.

    Without one, and with enough files to read that it pays, the full history is read in another
    process while the block runs; the returned function waits for it.
    """
    saved_path = previous / HISTORY_FILE_NAME if previous else None
    if saved_path is not None and saved_path.is_file():
        yield saved_path.read_bytes
    elif git is None or git.commit is None or file_count < MIN_PARALLEL_HISTORY_FILES:
        yield lambda: None
    else:
        from cleats.system.processes.fork import run_in_child_process  # noqa: PLC0415 - most builds are small

        with run_in_child_process(partial(_read_full_history, root, git.commit)) as wait:
            yield wait


def _read_full_history(root: Path, commit: str) -> bytes:
    with blocking.shared_supervisor():
        return History.from_commit(root, commit).save()


def add_authorship(
    catalogue: IndexCatalogue,
    root: Path,
    git: GitState | None,
    touched: Collection[str] | None,
    *,
    load_history: LoadHistory,
    previous: Path | None,
    draft: Path,
) -> tuple[list[str], bool]:
    """Write authors, dates and churn to the catalogue.

    A file that was not `touched` and has the same history as before keeps its values.

    Returns: warnings, and whether a file that was compared with the commit differs from it.
    """
    if git is None or git.commit is None:
        _clear_authorship(catalogue)
        return [], False
    saved = load_history()
    affects_all = touched is None or MAILMAP_FILE_NAME in touched
    paths = None if affects_all else touched
    history = History.from_commit(root, git.commit, saved, paths=paths)
    earlier = previous / HISTORY_FILE_NAME if previous else None
    if saved and history.is_unchanged and earlier and earlier.is_file():
        link_file(earlier, draft / HISTORY_FILE_NAME)
    else:
        updated = saved if saved and history.is_unchanged else history.save()
        (draft / HISTORY_FILE_NAME).write_bytes(updated)
    if affects_all or touched is None or not saved or not history.is_unchanged:
        rows = list(catalogue.connection.execute(_SELECT_FILES_SQL))
    else:
        rows = [
            row
            for path in sorted(touched)
            for row in catalogue.connection.execute(f"{_SELECT_FILES_SQL} WHERE path = ?", (path,))
        ]
    for file, path, *stored_facts in rows:
        facts = _history_facts(history.find_file(path))
        if affects_all or path in (touched or ()) or facts != stored_facts:
            catalogue.take_files([file])
            catalogue.connection.execute(_UPDATE_FILE_SQL, (*facts, file))
            _write_chunk_authors(catalogue, history, file, path)
    return history.warnings, history.is_dirty


def _history_facts(known: FileHistory | None) -> list[Any]:
    return [known.last_author or None, known.last_modified, known.last_commit, known.churn] if known else [None] * 4


def _write_chunk_authors(catalogue: IndexCatalogue, history: History, file: int, path: str) -> None:
    text = zlib.decompress(catalogue.connection.execute("SELECT text FROM files WHERE id = ?", (file,)).get)
    # No authors at all, when the file has changed since git was asked.
    is_same_text = history.find_authors(path, 1, MAX_FILE_LINES, text)
    lines = history.list_line_authors(path) if is_same_text else []
    rows = []
    for chunk, start, end in catalogue.connection.execute(_SELECT_CHUNKS_SQL, (file,)):
        authors = _rank_authors(history.authors, Counter(lines[start - 1 : end]))
        rows.append((_pack(authors) if authors else None, chunk))
    catalogue.update_chunks("authors", rows)


def _rank_authors(names: Sequence[str], line_counts: Mapping[int, int]) -> list[str]:
    """Return the names of authors by descending line count; two numbers may be one person."""
    counts: Counter[str] = Counter()
    for number, count in line_counts.items():
        counts[names[number]] += count
    del counts[""]
    return sorted(counts, key=lambda name: (-counts[name], name))


def _clear_authorship(catalogue: IndexCatalogue) -> None:
    if catalogue.read_meta().get("commit") is None:
        return  # no earlier build wrote any
    rows = catalogue.connection.execute("SELECT id FROM files WHERE last_commit IS NOT NULL OR last_author IS NOT NULL")
    catalogue.take_files([file for (file,) in rows])
    catalogue.connection.execute(
        "UPDATE main.files SET last_author = NULL, last_modified = NULL, last_commit = NULL,"
        " churn = NULL WHERE last_commit IS NOT NULL OR last_author IS NOT NULL"
    )
    catalogue.connection.execute("UPDATE main.chunks SET authors = NULL WHERE authors IS NOT NULL")

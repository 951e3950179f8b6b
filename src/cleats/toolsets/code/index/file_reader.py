"""Reading one file and extracting everything from it: the work of a worker process.

It needs no other file. A file can vanish or turn into something else before it is read; that is an
outcome, not an error.
"""

import errno
import os
import re
import stat
import time
import zlib
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec
from msgspec import Struct

from cleats.toolsets.code.analysis.extract import convert_to_utf8, extract_facts
from cleats.toolsets.code.analysis.facts import TRIAGE_RECORD_LANGUAGE, Chunk, FileFacts, Mode
from cleats.toolsets.code.analysis.languages.language_names import UNKNOWN_LANGUAGE
from cleats.toolsets.code.discovery.content import DiscoveryLimits, classify_content
from cleats.toolsets.code.index.catalogue_schema import UNCERTAIN_MTIME_NS, ChunkRow, FileRow, Relations

if TYPE_CHECKING:
    from cleats.toolsets.code.analysis.risk.rules import RiskRules

MAX_READ_ATTEMPTS: Final = 3
"""Times that a file is read again when it changes meanwhile."""

FINE_MTIME_NS, COARSE_MTIME_NS = 20_000_000, 2_000_000_000
"""Nanoseconds in which a second change could leave the same mtime: a few ticks of the kernel's
clock, or the whole seconds of some file systems."""

_OPEN_FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


class NotAFileError(Exception):
    """Raised when a link, a pipe or a folder has taken the place of a file."""


class FileContent(NamedTuple):
    """The bytes of a file, and its size and time when they were read."""

    data: bytes
    size: int
    mtime_ns: int


def read_content(path: str) -> FileContent:
    """Read the whole content of a file.

    Raises:
        OSError: the file is gone, or may not be read.
        NotAFileError: it has become something else.
    """
    # Another program may have put a link there, or a pipe, whose opening waits for a writer.
    try:
        descriptor = os.open(path, os.O_RDONLY | _OPEN_FLAGS)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            raise NotAFileError from error
        raise
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
        for _ in range(MAX_READ_ATTEMPTS):
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise NotAFileError
            file.seek(0)
            read_at = time.time_ns()
            data = file.read()
            after = os.fstat(descriptor)
            if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
                return FileContent(data, after.st_size, _certain_mtime(after.st_mtime_ns, read_at))
    return FileContent(data, len(data), UNCERTAIN_MTIME_NS)


def hash_content(data: bytes) -> bytes:
    """Return the hash that identifies a content."""
    return blake2b(data, digest_size=16).digest()


def _certain_mtime(mtime_ns: int, read_at: int) -> int:
    resolution = FINE_MTIME_NS if mtime_ns % 1_000_000_000 else COARSE_MTIME_NS
    return mtime_ns if mtime_ns < read_at - resolution else UNCERTAIN_MTIME_NS


MAX_HEADLINE_CHARS: Final = 120
_SENTENCE_END_PATTERN = re.compile(r"(?<=[.!?])\s|\n\s*\n")


def make_headline(chunk: Chunk, text: bytes) -> str:
    """Return the first sentence of the documentation, else the signature, else the first line."""
    if chunk.mode == "extracted-prose":
        return _shorten_line(chunk.doc or chunk.comments) or _first_text_line(chunk, text)
    sentence = _SENTENCE_END_PATTERN.split(chunk.doc.strip(), maxsplit=1)[0] if chunk.doc else ""
    return _shorten_line(sentence) or _shorten_line(chunk.signature) or _first_text_line(chunk, text) or chunk.name


def _first_text_line(chunk: Chunk, text: bytes) -> str:
    for start, end in chunk.own or [(chunk.start, chunk.end)]:
        for line in text[start : min(end, start + 4096)].decode(errors="replace").splitlines():
            if any(map(str.isalnum, line)):
                return _shorten_line(line)
    return ""


def _shorten_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_HEADLINE_CHARS else line[: MAX_HEADLINE_CHARS - 1].rstrip() + "…"


_pack = msgspec.msgpack.Encoder().encode


class ReadTask(Struct, frozen=True, array_like=True):
    """A file to read."""

    path: str
    place: str
    """The path as the system spells it."""
    lang: str
    mode: Mode
    size: int
    mtime_ns: int = 0
    plain: str = ""
    """The reason why the file is only split into lines, if it is."""


class ReadOutcome(Struct, omit_defaults=True):
    """The result of a task."""

    status: Literal["row", "skipped", "gone"]
    size: int = 0
    mtime_ns: int = 0
    hash: bytes = b""
    row: FileRow | None = None
    reason: str = ""
    detail: str = ""


def make_unreadable_outcome(task: ReadTask, reason: str) -> ReadOutcome:
    """Return the outcome for a file that cannot be read in its present state."""
    return ReadOutcome("skipped", task.size, task.mtime_ns, b"", None, "unreadable", reason)


class FileReader(Struct):
    """Runs tasks. It can be sent to another process."""

    modes: frozenset[Mode]
    vectors: bool
    limits: DiscoveryLimits
    rule_files: tuple[Path, ...] = ()

    def __call__(self, task: ReadTask) -> bytes:
        try:
            file_content = read_content(task.place)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, NotAFileError):
            return _pack(ReadOutcome("gone"))
        except OSError as error:
            return _pack(make_unreadable_outcome(task, error.strerror or ""))
        content_hash = hash_content(file_content.data)
        if task.lang == TRIAGE_RECORD_LANGUAGE:
            return _pack(self._read_or_fall_back(task, file_content, content_hash))
        content_verdict = classify_content(task.path, file_content.data, self.limits)
        if content_verdict.skip_reason is None:
            judged_task = msgspec.structs.replace(task, lang=content_verdict.lang, mode=content_verdict.mode)
            return _pack(self._read_or_fall_back(judged_task, file_content, content_hash))
        _, size, mtime_ns = file_content
        return _pack(ReadOutcome("skipped", size, mtime_ns, content_hash, None, content_verdict.skip_reason))

    def _read_or_fall_back(self, task: ReadTask, file_content: FileContent, content_hash: bytes) -> ReadOutcome:
        try:
            return ReadOutcome("row", row=self._make_file_row(task, file_content, content_hash))
        except Exception as error:  # noqa: BLE001 - one file must never end a build
            reason = f"could not be understood ({type(error).__name__})"
        if task.plain:
            return make_unreadable_outcome(task, reason)
        return self._read_or_fall_back(msgspec.structs.replace(task, plain=reason), file_content, content_hash)

    def preload(self) -> None:
        """Load what most tasks need, before processes are forked.

        An error here would affect every file, such as rules that cannot be read.
        """
        self._make_file_row(ReadTask("a.py", "", "python", "code", 0), FileContent(b"a = 1\n", 6, 0), b"")

    def _make_file_row(self, task: ReadTask, file_content: FileContent, content_hash: bytes) -> FileRow:
        facts, text = _extract_facts(task, file_content.data)
        facts.chunks = [chunk for chunk in facts.chunks if chunk.mode in self.modes]
        facts.chunks.sort(key=lambda chunk: (chunk.start, -chunk.end))
        from cleats.toolsets.code.index.digest import digest_file  # noqa: PLC0415 - loads a word table

        attributes, vectors = digest_file(task.path, facts, text)
        text = text if facts.chunks else b""
        return FileRow(
            path=task.path,
            size=file_content.size,
            mtime_ns=file_content.mtime_ns,
            hash=content_hash,
            lang=facts.lang,
            mode=facts.mode,
            lines=facts.lines,
            problem=facts.problem,
            facts=_pack(Relations(facts.imports, facts.exports)),
            text=zlib.compress(text, 1),
            vectors=vectors if self.vectors else b"",
            attributes=attributes,
            chunks=[self._make_chunk_row(chunk, facts, text) for chunk in facts.chunks],
        )

    def _make_chunk_row(self, chunk: Chunk, facts: FileFacts, text: bytes) -> ChunkRow:
        summary = self._assess_risk(chunk, facts)
        chunk.steps = []
        return ChunkRow(
            mode=chunk.mode,
            kind=chunk.kind,
            name=chunk.name,
            start=chunk.start,
            end=chunk.end,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            headline=make_headline(chunk, text),
            facts=_pack(chunk),
            summary=summary,
        )

    def _assess_risk(self, chunk: Chunk, facts: FileFacts) -> bytes | None:
        if chunk.mode != "code" or not chunk.steps:
            return None
        from cleats.toolsets.code.analysis.risk.function_flows import summarize_chunk  # noqa: PLC0415 - after the fork

        summary = summarize_chunk(chunk, chunk.lang or facts.lang, load_rules(self.rule_files), facts.imports)
        return None if summary is None else _pack(summary)


@cache
def load_rules(files: tuple[Path, ...]) -> "RiskRules":
    from cleats.toolsets.code.analysis.risk.rules import load_rules  # noqa: PLC0415 - reads a few files

    return load_rules(files)


def _extract_facts(task: ReadTask, data: bytes) -> tuple[FileFacts, bytes]:
    """Return the facts of a file, and the text that its chunks refer to."""
    if not task.plain and task.lang == TRIAGE_RECORD_LANGUAGE:
        from cleats.toolsets.code.records.model import extract_record_facts  # noqa: PLC0415 - few have records

        return extract_record_facts(data)
    if not task.plain:
        return extract_facts(task.path, data, task.lang, task.mode), convert_to_utf8(data)
    facts = extract_facts(task.path, data, UNKNOWN_LANGUAGE, task.mode)
    facts.lang = task.lang
    facts.problem = f"{task.plain}; read by lines"
    return facts, convert_to_utf8(data)

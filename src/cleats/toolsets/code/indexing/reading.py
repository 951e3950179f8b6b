"""Read one file and say everything about it: what a worker does, and nothing that needs another.

A file can vanish or turn into something else before it is read; that is an answer, not an error.
"""

import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from cleats.toolsets.code.discovery.content import verdict
from cleats.toolsets.code.discovery.reasons import Limits
from cleats.toolsets.code.extract import extract, readable
from cleats.toolsets.code.facts import RECORD, Chunk, FileFacts, Mode
from cleats.toolsets.code.indexing.contents import Content, NotAFileError, content, digest_of
from cleats.toolsets.code.indexing.headlines import headline
from cleats.toolsets.code.languages.names import UNKNOWN
from cleats.toolsets.code.store.rows import ChunkRow, FileRow, Relations

if TYPE_CHECKING:
    from cleats.toolsets.code.risk.rules import Rules

_pack = msgspec.msgpack.Encoder().encode


class Task(Struct, frozen=True, array_like=True):
    """A file to read."""

    path: str
    place: str
    """Where it is, as the system spells it."""
    lang: str
    mode: Mode
    size: int
    mtime_ns: int = 0
    plain: str = ""
    """Why it is only cut into lines, if it is."""


class Outcome(Struct, omit_defaults=True):
    """What came of a task."""

    status: Literal["row", "skipped", "gone"]
    size: int = 0
    mtime_ns: int = 0
    hash: bytes = b""
    row: FileRow | None = None
    reason: str = ""
    detail: str = ""


def unreadable(task: Task, why: str) -> Outcome:
    """The outcome for a file that cannot be read as long as it is what it is."""
    return Outcome("skipped", task.size, task.mtime_ns, b"", None, "unreadable", why)


class Reader(Struct):
    """Does tasks. It can be sent to another process."""

    modes: frozenset[Mode]
    vectors: bool
    limits: Limits
    rule_files: tuple[Path, ...] = ()
    light: bool = False
    """Without libraries that only pay for many files."""

    def __call__(self, task: Task) -> bytes:
        try:
            found = content(task.place)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, NotAFileError):
            return _pack(Outcome("gone"))
        except OSError as error:
            return _pack(unreadable(task, error.strerror or ""))
        mark = digest_of(found.data)
        if task.lang == RECORD:
            return _pack(self._understood(task, found, mark))
        judged = verdict(task.path, found.data, self.limits)
        if judged.skip_reason is None:
            seen = msgspec.structs.replace(task, lang=judged.lang, mode=judged.mode)
            return _pack(self._understood(seen, found, mark))
        return _pack(Outcome("skipped", found.size, found.mtime_ns, mark, None, judged.skip_reason))

    def _understood(self, task: Task, found: Content, mark: bytes) -> Outcome:
        try:
            return Outcome("row", row=self._row(task, found, mark))
        except Exception as error:  # noqa: BLE001 - one file must never end a build
            why = f"could not be understood ({type(error).__name__})"
        if task.plain:
            return unreadable(task, why)
        return self._understood(msgspec.structs.replace(task, plain=why), found, mark)

    def warm(self) -> None:
        """Load what most tasks need, before processes are forked.

        An error here is an error in everything, such as rules that cannot be read.
        """
        self._row(Task("a.py", "", "python", "code", 0), Content(b"a = 1\n", 6, 0), b"")

    def _row(self, task: Task, found: Content, mark: bytes) -> FileRow:
        facts, text = _facts(task, found.data)
        facts.chunks = [chunk for chunk in facts.chunks if chunk.mode in self.modes]
        facts.chunks.sort(key=lambda chunk: (chunk.start, -chunk.end))
        attributes, vectors = self._digest(task.path, facts, text)
        text = text if facts.chunks else b""
        return FileRow(
            path=task.path,
            size=found.size,
            mtime_ns=found.mtime_ns,
            hash=mark,
            lang=facts.lang,
            mode=facts.mode,
            lines=facts.lines,
            problem=facts.problem,
            facts=_pack(Relations(facts.imports, facts.exports)),
            text=zlib.compress(text, 1),
            vectors=vectors,
            attributes=attributes,
            chunks=[self._chunk(chunk, facts, text) for chunk in facts.chunks],
        )

    def _digest(self, path: str, facts: FileFacts, data: bytes) -> tuple[bytes, bytes]:
        from cleats.toolsets.code.search.digest import digest  # noqa: PLC0415 - loads a word table

        made = digest(path, facts, data, light=self.light)
        return made.attributes, made.vectors if self.vectors else b""

    def _chunk(self, chunk: Chunk, facts: FileFacts, text: bytes) -> ChunkRow:
        summary = self._assess(chunk, facts)
        chunk.steps = []
        return ChunkRow(
            mode=chunk.mode,
            kind=chunk.kind,
            name=chunk.name,
            start=chunk.start,
            end=chunk.end,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            headline=headline(chunk, text),
            facts=_pack(chunk),
            summary=summary,
        )

    def _assess(self, chunk: Chunk, facts: FileFacts) -> bytes | None:
        if chunk.mode != "code":
            return None
        from cleats.toolsets.code.risk.local import assess  # noqa: PLC0415 - after the fork

        summary = assess(chunk, chunk.lang or facts.lang, rules(self.rule_files), facts.imports)
        return None if summary is None else _pack(summary)


@cache
def rules(files: tuple[Path, ...]) -> "Rules":
    from cleats.toolsets.code.risk.rules import load  # noqa: PLC0415 - reads a few files

    return load(files)


def _facts(task: Task, data: bytes) -> tuple[FileFacts, bytes]:
    """What a file says, and the text that its chunks are of."""
    if not task.plain and task.lang == RECORD:
        from cleats.toolsets.code.triage.page import facts_of  # noqa: PLC0415 - few have records

        return facts_of(data)
    if not task.plain:
        return extract(task.path, data, task.lang, task.mode), readable(data)
    facts = extract(task.path, data, UNKNOWN, task.mode)
    facts.lang = task.lang
    facts.problem = f"{task.plain}; read by lines"
    return facts, readable(data)

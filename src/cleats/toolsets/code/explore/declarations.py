"""The declarations of files as they are now, parsed in child processes and cached."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.worker_pool import ProcessPool
from cleats.toolsets.code.analysis.extract import convert_to_utf8, extract_facts
from cleats.toolsets.code.analysis.facts import Chunk
from cleats.toolsets.code.discovery.content import DiscoveryLimits, classify_content
from cleats.toolsets.code.index.file_reader import NotAFileError, read_content

MAX_CACHED_FILES: Final = 400
"""Files whose declarations are kept: some 20 kB each."""

MAX_PARSED_BYTES: Final = 1 << 20
"""Size of the largest file that is parsed; a larger one is shown as lines."""

PARSER_PROCESSES: Final = max(1, min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2))

UNNAMED_KINDS: Final = frozenset({"module", "lines", "comment", "docstring"})
"""Kinds of chunks that declare nothing."""

CONTAINER_KINDS: Final = frozenset({"class", "interface", "trait", "struct", "enum", "impl", "namespace"})


class FileDeclarations(Struct, frozen=True):
    """The text of a file and what it declares."""

    path: str
    lang: str
    text: str
    chunks: list[Chunk]
    imports: list[str]

    @property
    def lines(self) -> list[str]:
        return self.text.removesuffix("\n").split("\n")

    @property
    def declarations(self) -> list[Chunk]:
        """The named chunks, in the order of the file."""
        return [chunk for chunk in self.chunks if chunk.kind not in UNNAMED_KINDS]

    def find_enclosing(self, line: int) -> Chunk | None:
        """Return the innermost declaration around a line."""
        around = [chunk for chunk in self.declarations if chunk.start_line <= line <= chunk.end_line]
        return min(around, key=lambda chunk: chunk.end_line - chunk.start_line, default=None)


class _ParseTask(Struct, frozen=True):
    path: str
    place: str


_decode_declarations = msgspec.msgpack.Decoder(FileDeclarations).decode


def _parse_file(task: _ParseTask) -> bytes:
    """Parse one file; empty where it is gone, is not text, or cannot be read."""
    try:
        data = read_content(task.place).data
    except (OSError, NotAFileError):
        return b""
    verdict = classify_content(task.path, data, DiscoveryLimits())
    if verdict.skip_reason in {"binary", "secret", "too_large"}:
        return b""
    text = convert_to_utf8(data)
    if len(data) > MAX_PARSED_BYTES:
        facts_chunks: list[Chunk] = []
        imports: list[str] = []
    else:
        facts = extract_facts(task.path, data, verdict.lang, verdict.mode)
        facts_chunks = [chunk for chunk in facts.chunks if chunk.mode != "extracted-prose"]
        imports = facts.imports
        for chunk in facts_chunks:
            chunk.steps, chunk.comments = [], ""
    parsed = FileDeclarations(task.path, verdict.lang, text.decode(errors="replace"), facts_chunks, imports)
    return msgspec.msgpack.encode(parsed)


class DeclarationReader:
    """Parses files of a repository on demand; what has not changed is parsed once."""

    def __init__(self) -> None:
        self._cache: OrderedDict[tuple[str, int, int], FileDeclarations | None] = OrderedDict()
        self._lock = threading.Lock()

    def read_files(
        self, root: Path, paths: Iterable[str], is_cancelled: Callable[[], bool] = lambda: False
    ) -> Mapping[str, FileDeclarations]:
        """Return the declarations of files, in the given order; files that cannot be read are left out."""
        keys: dict[str, tuple[str, int, int] | None] = {path: _make_key(root, path) for path in dict.fromkeys(paths)}
        missing = [path for path, key in keys.items() if key is not None and key not in self._cache]
        for path, parsed in self._parse_files(root, missing, is_cancelled):
            self._remember(keys[path], parsed)
        with self._lock:
            known = {path: self._cache.get(key) for path, key in keys.items() if key is not None}
        return {path: parsed for path, parsed in known.items() if parsed is not None}

    def find_parsed(self, root: Path, path: str) -> FileDeclarations | None:
        """Return the declarations of a file if it was parsed before and has not changed."""
        key = _make_key(root, path)
        with self._lock:
            return self._cache.get(key) if key is not None else None

    def read_file(self, root: Path, path: str) -> FileDeclarations | None:
        return self.read_files(root, [path]).get(path)

    def _parse_files(
        self, root: Path, paths: Sequence[str], is_cancelled: Callable[[], bool]
    ) -> Iterable[tuple[str, FileDeclarations | None]]:
        if not paths:
            return
        tasks = [_ParseTask(path, os.fspath(root / path)) for path in paths]
        pool = ProcessPool(_parse_file, min(PARSER_PROCESSES, 1 + len(tasks) // 4))
        # The languages are loaded before the fork, so that every process has them.
        from cleats.toolsets.code.analysis.languages import engine  # noqa: F401, PLC0415

        results = pool.map(tasks, lambda task: _get_size(task.place))
        for task, result in results:
            if is_cancelled():
                results.close()  # type: ignore[attr-defined]
                raise ToolError(ErrorCode.CANCELLED, "The request was cancelled.")
            yield task.path, _decode_declarations(result) if isinstance(result, bytes) and result else None

    def _remember(self, key: tuple[str, int, int] | None, parsed: FileDeclarations | None) -> None:
        if key is None:
            return
        with self._lock:
            self._cache[key] = parsed
            self._cache.move_to_end(key)
            while len(self._cache) > MAX_CACHED_FILES:
                self._cache.popitem(last=False)


def _make_key(root: Path, path: str) -> tuple[str, int, int] | None:
    place = os.path.join(root, path)  # noqa: PTH118 - a Path for every file is dear
    try:
        status = os.stat(place)  # noqa: PTH116
    except OSError:
        return None
    return place, status.st_size, status.st_mtime_ns


def _get_size(place: str) -> int:
    try:
        return os.stat(place).st_size  # noqa: PTH116
    except OSError:
        return 0


def get_last_name(qualified: str) -> str:
    """Return the last part of a qualified name."""
    return qualified.replace("::", ".").rsplit(".", 1)[-1]


def matches_name(chunk: Chunk, parts: Sequence[str], *, ignore_case: bool = False) -> bool:
    """Return whether the qualified name of a declaration ends with these parts."""
    names = chunk.name.replace("::", ".").split(".")
    if ignore_case:
        names, parts = [name.lower() for name in names], [part.lower() for part in parts]
    return len(parts) <= len(names) and names[-len(parts) :] == list(parts)


def describe_declaration(chunk: Chunk) -> str:
    """Return the kind and the name of a declaration."""
    return f"{chunk.kind} {chunk.name}"


def render_signature(chunk: Chunk, max_chars: int = 160) -> str:
    """Return the signature of a declaration on one line; empty where it only repeats the name."""
    signature = " ".join(chunk.signature.split())
    if signature in {"", f"{chunk.kind} {chunk.name}"}:
        return ""
    return signature if len(signature) <= max_chars else f"{signature[: max_chars - 1]}…"

"""The engines that are open for searching, one for each repository that was searched.

A search keeps the engine it started with. When a new generation is published, the next search opens
it, and the last search to leave the old one closes it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from cleats.toolsets.code.index.generations import GenerationLease
from cleats.toolsets.code.search.engine import SearchEngine

MAX_OPEN_ENGINES: Final = 8
"""Repositories that stay open: mapped files, and a few megabytes of memory each."""


@dataclass(eq=False)
class _OpenEngine:
    lease: GenerationLease
    engine: SearchEngine
    searches: int = 0
    is_retired: bool = False

    @property
    def is_finished(self) -> bool:
        return self.is_retired and not self.searches

    def close(self) -> None:
        self.engine.close()
        self.lease.close()


@dataclass
class SearchEnginePool:
    """Open engines by repository. Safe for any number of threads."""

    _engines: dict[str, _OpenEngine] = field(default_factory=dict)
    _opening_locks: dict[str, threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def use_engine(
        self, repository: str, generation: str | None, lease: Callable[[], GenerationLease]
    ) -> Iterator[SearchEngine]:
        """Provide the engine of a repository's generation, opening it with `lease` if needed."""
        with self._lock:
            opening = self._opening_locks.setdefault(repository, threading.Lock())
        with opening:
            entry = self._acquire_open(repository, generation) or self._open_engine(repository, lease())
        try:
            yield entry.engine
        finally:
            self._release(entry)

    def close(self) -> None:
        """Close all engines; those in use are closed when their searches end."""
        with self._lock:
            retired = [self._retire(repository) for repository in list(self._engines)]
        for entry in retired:
            if entry.is_finished:
                entry.close()

    def _acquire_open(self, repository: str, generation: str | None) -> _OpenEngine | None:
        with self._lock:
            entry = self._engines.get(repository)
            if entry is None or entry.lease.name != generation:
                return None
            self._engines[repository] = self._engines.pop(repository)  # the first is the longest unused
            entry.searches += 1
            return entry

    def _open_engine(self, repository: str, lease: GenerationLease) -> _OpenEngine:
        try:
            entry = _OpenEngine(lease, SearchEngine.open(lease.folder), searches=1)
        except BaseException:
            lease.close()
            raise
        with self._lock:
            retired = [self._retire(repository)] if repository in self._engines else []
            if len(self._engines) >= MAX_OPEN_ENGINES:
                retired.append(self._retire(next(iter(self._engines))))
            self._engines[repository] = entry
        for retired_entry in retired:
            if retired_entry.is_finished:
                retired_entry.close()
        return entry

    def _retire(self, repository: str) -> _OpenEngine:
        entry = self._engines.pop(repository)
        entry.is_retired = True
        return entry

    def _release(self, entry: _OpenEngine) -> None:
        with self._lock:
            entry.searches -= 1
            is_finished = entry.is_finished
        if is_finished:
            entry.close()

"""The generations that are open for searching, one for each repository that was asked about.

A search holds the engine it began with. When a new generation is published, the next search opens
it and the old one is closed by whoever leaves it last.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from cleats.toolsets.code.search.engine import Engine
from cleats.toolsets.code.store.generations import Lease

MOST: Final = 8
"""Repositories that stay open: maps of files, and a few megabytes of memory each."""


@dataclass(eq=False)
class _Open:
    lease: Lease
    engine: Engine
    searches: int = 0
    retired: bool = False

    @property
    def done(self) -> bool:
        return self.retired and not self.searches

    def close(self) -> None:
        self.engine.close()
        self.lease.close()


@dataclass
class Engines:
    """Open engines by repository. For any number of threads."""

    _open: dict[str, _Open] = field(default_factory=dict)
    _opening: dict[str, threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def using(
        self, repository: str, generation: str | None, lease: Callable[[], Lease]
    ) -> Iterator[Engine]:
        """The engine of a repository's generation, opened if it is not; `lease` takes it out."""
        with self._lock:
            opening = self._opening.setdefault(repository, threading.Lock())
        with opening:
            held = self._hold(repository, generation) or self._begin(repository, lease())
        try:
            yield held.engine
        finally:
            self._leave(held)

    def close(self) -> None:
        """Close all; those in use when their searches end."""
        with self._lock:
            ended = [self._retire(repository) for repository in list(self._open)]
        for each in ended:
            if each.done:
                each.close()

    def _hold(self, repository: str, generation: str | None) -> _Open | None:
        with self._lock:
            held = self._open.get(repository)
            if held is None or held.lease.name != generation:
                return None
            self._open[repository] = self._open.pop(repository)  # the first is the longest unused
            held.searches += 1
            return held

    def _begin(self, repository: str, lease: Lease) -> _Open:
        try:
            made = _Open(lease, Engine.open(lease.folder), searches=1)
        except BaseException:
            lease.close()
            raise
        with self._lock:
            ended = [self._retire(repository)] if repository in self._open else []
            if len(self._open) >= MOST:
                ended.append(self._retire(next(iter(self._open))))
            self._open[repository] = made
        for each in ended:
            if each.done:
                each.close()
        return made

    def _retire(self, repository: str) -> _Open:
        old = self._open.pop(repository)
        old.retired = True
        return old

    def _leave(self, held: _Open) -> None:
        with self._lock:
            held.searches -= 1
            done = held.done
        if done:
            held.close()

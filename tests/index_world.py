"""A small repository and its index, for the tests that build one."""

import os
import subprocess
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from cleats.toolsets.code.indexing.options import Options
from cleats.toolsets.code.indexing.progress import Progress
from cleats.toolsets.code.indexing.report import BuildReport
from cleats.toolsets.code.indexing.run import build
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.store.catalogue import Catalogue
from cleats.toolsets.code.store.generations import Lease, Shelf

QUICK = Options(workers=1, lint=False)

GIT_ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}


@dataclass
class World:
    """A folder with files, and a cache beside it."""

    folder: Path
    options: Options = QUICK
    seen: list[Progress] = field(default_factory=list)
    clock: int = 1_700_000_000
    cache_name: str = "cache"

    @property
    def root(self) -> Path:
        return self.folder / "project"

    @property
    def cache(self) -> Path:
        return self.folder / self.cache_name

    @property
    def shelf(self) -> Shelf:
        return Shelf(self.cache, Repository(self.root))

    def write(self, path: str, content: str | bytes) -> Path:
        """Put a file there, with a time that is long past and later than any before."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        self.clock += 10
        os.utime(place, ns=(self.clock * 10**9 + 1, self.clock * 10**9 + 1))
        return place

    def git(self, *words: str, author: str = "Ann") -> str:
        self.clock += 10
        date = f"{self.clock} +0000"
        environ = {
            **os.environ,
            **GIT_ENVIRONMENT,
            "GIT_AUTHOR_NAME": author,
            "GIT_AUTHOR_DATE": date,
            "GIT_COMMITTER_DATE": date,
        }
        done = subprocess.run(
            ["git", *words], cwd=self.root, env=environ, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    def commit(self, author: str = "Ann") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "change", author=author)
        return self.git("rev-parse", "HEAD")

    def build(self, **options: Any) -> BuildReport:
        chosen = msgspec.structs.replace(self.options, **options)
        return build(self.root, self.shelf, chosen, self.seen.append)

    def lease(self) -> Lease:
        lease = self.shelf.current()
        assert lease is not None
        return lease

    def read(self, query: Callable[[Catalogue], Any]) -> Any:
        with self.lease() as lease, Catalogue.open(lease.catalogue) as catalogue:
            return query(catalogue)

    def paths(self) -> set[str]:
        return {path for (path,) in self.rows("SELECT path FROM files")}

    def rows(self, query: str) -> list[Any]:
        return list(self.read(lambda catalogue: list(catalogue.connection.execute(query))))

    def meta(self) -> dict[str, Any]:
        meta: dict[str, Any] = self.read(Catalogue.meta)
        return meta

    def content(self) -> dict[str, Any]:
        """All that the catalogue says, without what differs from build to build."""
        return content(self.lease())


def content(lease: Lease) -> dict[str, Any]:
    with lease, Catalogue.open(lease.catalogue) as catalogue:
        execute = catalogue.connection.execute
        files = {}
        for number, path, text, *rest in execute(
            "SELECT id, path, text, hash, size, lang, mode, lines, problem, facts, vectors,"
            " attributes, last_author, last_modified, last_commit, churn FROM files"
        ):
            chunks = execute(
                "SELECT ordinal, mode, kind, name, start, end, start_line, end_line, headline,"
                " facts, summary, risk, authors, lint FROM chunks WHERE file = ? ORDER BY ordinal",
                (number,),
            )
            files[path] = (zlib.decompress(text), tuple(rest), list(chunks))
        left_out = sorted(execute("SELECT path, hash, reason FROM skipped"))
        meta = catalogue.meta()
    for passing in ("created", "dirty"):
        del meta[passing]
    return {"files": files, "left_out": left_out, "meta": meta}

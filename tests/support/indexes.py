"""A small repository and its index, for the tests that build one."""

import os
import subprocess
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from cleats.toolsets.code.index.build import build_index
from cleats.toolsets.code.index.catalogue import IndexCatalogue
from cleats.toolsets.code.index.generations import GenerationLease, GenerationStore
from cleats.toolsets.code.index.options import BuildOptions
from cleats.toolsets.code.index.progress import BuildProgress, BuildReport
from cleats.toolsets.code.repository import Repository

QUICK_OPTIONS = BuildOptions(workers=1, lint=False)

GIT_ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}


@dataclass
class IndexedRepository:
    """A folder with files, and a cache next to it."""

    folder: Path
    options: BuildOptions = QUICK_OPTIONS
    progress_reports: list[BuildProgress] = field(default_factory=list)
    clock: int = 1_700_000_000
    cache_name: str = "cache"

    @property
    def root(self) -> Path:
        return self.folder / "project"

    @property
    def cache(self) -> Path:
        return self.folder / self.cache_name

    @property
    def generation_store(self) -> GenerationStore:
        return GenerationStore(self.cache, Repository(self.root))

    def write_file(self, path: str, content: str | bytes) -> Path:
        """Write a file with a time that is long past, but later than that of any file before."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        self.clock += 10
        os.utime(file, ns=(self.clock * 10**9 + 1, self.clock * 10**9 + 1))
        return file

    def run_git(self, *words: str, author: str = "Ann") -> str:
        self.clock += 10
        date = f"{self.clock} +0000"
        environ = {
            **os.environ,
            **GIT_ENVIRONMENT,
            "GIT_AUTHOR_NAME": author,
            "GIT_AUTHOR_DATE": date,
            "GIT_COMMITTER_DATE": date,
        }
        completed = subprocess.run(["git", *words], cwd=self.root, env=environ, capture_output=True, check=True)
        return completed.stdout.decode().strip()

    def commit(self, author: str = "Ann") -> str:
        self.run_git("add", "-A")
        self.run_git("commit", "-q", "--allow-empty", "-m", "change", author=author)
        return self.run_git("rev-parse", "HEAD")

    def build_index(self, **options: Any) -> BuildReport:
        build_options = msgspec.structs.replace(self.options, **options)
        return build_index(self.root, self.generation_store, build_options, self.progress_reports.append)

    def lease_current(self) -> GenerationLease:
        lease = self.generation_store.lease_current()
        assert lease is not None
        return lease

    def query_catalogue(self, query: Callable[[IndexCatalogue], Any]) -> Any:
        with self.lease_current() as lease, IndexCatalogue.open(lease.catalogue_path) as catalogue:
            return query(catalogue)

    def list_paths(self) -> set[str]:
        return {path for (path,) in self.select_rows("SELECT path FROM files")}

    def select_rows(self, query: str) -> list[Any]:
        return list(self.query_catalogue(lambda catalogue: list(catalogue.connection.execute(query))))

    def read_meta(self) -> dict[str, Any]:
        meta: dict[str, Any] = self.query_catalogue(IndexCatalogue.read_meta)
        return meta

    def read_content(self) -> dict[str, Any]:
        """Return everything in the catalogue except for values that differ from build to build."""
        return read_catalogue_content(self.lease_current())


def read_catalogue_content(lease: GenerationLease) -> dict[str, Any]:
    with lease, IndexCatalogue.open(lease.catalogue_path) as catalogue:
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
        skipped = sorted(execute("SELECT path, hash, reason FROM skipped"))
        meta = catalogue.read_meta()
    for transient_key in ("created", "dirty"):
        del meta[transient_key]
    return {"files": files, "left_out": skipped, "meta": meta}

"""The tool `report_artifacts`: what the indexes of this machine are made of, and what they cost."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import Any, Final

from anyio import to_thread

from cleats.contract.tools import Context, Tool, arguments
from cleats.toolsets.code.indexing.shapes import REPO_PATH
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.store import schema
from cleats.toolsets.code.store.cache import Stored, stored, used
from cleats.toolsets.code.store.generations import LOCK, Lease
from cleats.toolsets.code.upkeep.configuration import PARTS
from cleats.toolsets.code.upkeep.forms import (
    COUNT,
    FLAG,
    MAYBE,
    MOMENT,
    TEXT,
    either,
    many,
    record,
)
from cleats.toolsets.code.upkeep.site import Site, moment

KINDS: Final[Mapping[str, str]] = {
    "catalogue": "Files, chunks and all that is known of them.",
    "words": "The full-text index of Tantivy.",
    "columns": "What filters read.",
    "vectors": "What chunks mean.",
    "history": "What git said, for the next update.",
    "sqlite": "The full-text index of SQLite.",
    "other": "The rest.",
    "leftovers": "What lies beside the published generation; cache_gc removes it.",
}

OUTPUT: Final = record(
    repo=record(
        root=TEXT,
        repoId=TEXT,
        cacheRoot=TEXT,
        generation=MAYBE,
        totalBytes=COUNT,
        artifacts=record(
            "Bytes by what they are for.",
            **{kind: {**COUNT, "description": about} for kind, about in KINDS.items()},
        ),
        sqlite=either("The full-text index of SQLite; null without.", path=TEXT, bytes=COUNT),
    ),
    health=record(
        issues=many(record(code=TEXT, message=TEXT), "What is wrong."),
        hints=many(TEXT, "What to do about it."),
    ),
    overall=record(
        cacheRoot=TEXT,
        repos=COUNT,
        indexBytes=COUNT,
        **{f"{part}Bytes": COUNT for part in PARTS},
        totalBytes=COUNT,
    ),
    allRepos=many(
        record(
            repoId=TEXT,
            root={**MAYBE, "description": "The repository, if it is known."},
            rootExists=FLAG,
            path=TEXT,
            bytes=COUNT,
            generation=MAYBE,
            publishedAt=MOMENT,
        ),
        "Every index of this machine, the one that was published last first.",
    ),
)


class InventoryTool:
    """Reports on what indexes cost."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def report(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Answer one call."""
        repository = self._site.repository(given, context)
        context.progress("counting", phase="look")
        found = await to_thread.run_sync(self._counted, repository, abandon_on_cancel=True)
        fresh = await self._site.indexes.freshness(repository)
        if fresh is not None and fresh.stale:
            _add(found, ("index_stale", f"The index is not up to date: {fresh}."))
        return found

    def _counted(self, repository: Repository) -> dict[str, Any]:
        cache = self._site.cache
        every = [_entry(each) for each in reversed(stored(cache))]
        parts = {f"{part}Bytes": used(cache / part) for part in PARTS}
        index_bytes = sum(each["bytes"] for each in every)
        found: dict[str, Any] = {
            "repo": self._repo(repository),
            "health": {"issues": [], "hints": []},
            "overall": {
                "cacheRoot": str(cache),
                "repos": len(every),
                "indexBytes": index_bytes,
                **parts,
                "totalBytes": index_bytes + sum(parts.values()),
            },
            "allRepos": every,
        }
        for issue in self._issues(repository, found):
            _add(found, issue)
        return found

    def _repo(self, repository: Repository) -> dict[str, Any]:
        folder = self._site.indexes.shelf(repository).folder
        index = Stored(folder)
        current = folder / "generations" / (index.generation or LOCK)
        artifacts = dict.fromkeys(KINDS, 0)
        for path in current.rglob("*"):
            with suppress(OSError):  # the generation was replaced just now
                status = path.lstat()
                if S_ISREG(status.st_mode):
                    artifacts[_kind(path.relative_to(current))] += status.st_size
        total = used(folder)
        artifacts["leftovers"] = max(total - sum(artifacts.values()), 0) if index.pieces() else 0
        return {
            "root": str(repository.root),
            "repoId": repository.id,
            "cacheRoot": str(folder),
            "generation": index.generation,
            "totalBytes": total,
            "artifacts": artifacts,
            "sqlite": _sqlite(current / "fts.db", artifacts["sqlite"]),
        }

    def _issues(
        self, repository: Repository, found: Mapping[str, Any]
    ) -> Iterator[tuple[str, str]]:
        shelf = self._site.indexes.shelf(repository)
        lease = shelf.current()
        if lease is not None:
            with lease:
                yield from _damage(lease)
        elif shelf.outdated():
            yield "index_outdated", "Another version of this program wrote the index."
        else:
            yield "index_missing", "The repository has no index."
        if found["repo"]["artifacts"]["leftovers"]:
            yield "leftovers", "There are generations that nobody needs, or rests of builds."
        if any(each["root"] and not each["rootExists"] for each in found["allRepos"]):
            yield "orphans", "There are indexes of repositories that do not exist any more."

    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="report_artifacts",
                version=2,
                title="Report what indexes cost",
                description=(
                    "Say how much space the index of a repository takes and for what, whether it "
                    "is whole and up to date, and what else this machine's cache holds: every "
                    "index with its repository, size and age, models and dictionaries. Changes "
                    "nothing."
                ),
                input=arguments({"repoPath": REPO_PATH}),
                output=OUTPUT,
                run=self.report,
                examples=({"arguments": {}}, {"arguments": {"repoPath": "/src/app"}}),
            ),
        )


HINTS: Final[Mapping[str, str]] = {
    "index_missing": "Call build_index, or run `cleats index`.",
    "index_outdated": "Call build_index, or run `cleats index`.",
    "index_stale": "Call build_index with incremental=true, or run `cleats index`.",
    "index_damaged": "Call build_index with incremental=false, or run `cleats index --full`.",
    "leftovers": "Call cache_gc, or run `cleats cache gc`.",
    "orphans": "Call cache_gc with maxAgeDays, or run `cleats cache gc --max-age-days 30`.",
}


def _add(found: Mapping[str, Any], issue: tuple[str, str]) -> None:
    code, message = issue
    found["health"]["issues"].append({"code": code, "message": message})
    if HINTS[code] not in found["health"]["hints"]:
        found["health"]["hints"].append(HINTS[code])


def _entry(index: Stored) -> dict[str, Any]:
    root = index.root
    return {
        "repoId": index.id,
        "root": str(root) if root else None,
        "rootExists": root is not None and root.is_dir(),
        "path": str(index.folder),
        "bytes": used(index.folder),
        "generation": index.generation,
        "publishedAt": moment(index.published) if index.generation else None,
    }


def _sqlite(path: Path, size: int) -> dict[str, Any] | None:
    return {"path": str(path), "bytes": size} if size else None


def _kind(path: Path) -> str:
    """What a file of a generation is for."""
    if path.name == schema.FILE:
        return "catalogue"
    if "words" in path.parts:
        return "words"
    if path.suffix == ".columns":
        return "columns"
    named = {"vectors.i8": "vectors", "history.bin": "history", "fts.db": "sqlite"}
    return named.get(path.name, "other")


def _damage(lease: Lease) -> Iterator[tuple[str, str]]:
    """Parts that a generation should have, and has not."""
    from cleats.toolsets.code.search import segments  # noqa: PLC0415
    from cleats.toolsets.code.search.parts import shard_folders  # noqa: PLC0415
    from cleats.toolsets.code.store.catalogue import Catalogue  # noqa: PLC0415

    with Catalogue.open(lease.catalogue) as catalogue:
        meta = catalogue.meta()
    if meta["sqlite"] and not (lease.folder / "fts.db").is_file():
        yield "index_damaged", "The full-text index of SQLite is missing."
    try:
        parts = [lease.folder / segments.FOLDER, *shard_folders(lease.folder)]
        missing = [each.name for each in parts if not each.is_dir()]
    except (OSError, ValueError):
        missing = ["all"]
    if missing:
        yield "index_damaged", f"Parts of the index are missing: {', '.join(missing)}."

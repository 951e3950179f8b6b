"""The tools `cache_gc` and `clean_artifacts`: how indexes go away, and what that frees."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Context, Hints, Tool, arguments
from cleats.toolsets.code.indexing.shapes import REPO_PATH
from cleats.toolsets.code.store.cache import REPOSITORIES, Stored, is_ours, stored, used
from cleats.toolsets.code.upkeep.forms import COUNT, FLAG, MAYBE, TEXT, many, record, switch
from cleats.toolsets.code.upkeep.site import Site
from cleats.toolsets.code.upkeep.sweeping import Candidate, Sweep, leftovers, over

LIMITS: Final = ("maxBytes", "maxGb", "maxAgeDays")

_DRY: Final = switch("Say what would be removed, and remove nothing.")
_ONLY: Final = {**REPO_PATH, "description": "Look only at the index of this repository."}

GC_INPUT: Final = arguments(
    {
        "dryRun": _DRY,
        "maxBytes": {**COUNT, "description": "Keep indexes of so many bytes together at most."},
        "maxGb": {
            "type": "number",
            "minimum": 0,
            "description": "The same in GiB; the smaller of the two counts.",
        },
        "maxAgeDays": {
            "type": "number",
            "minimum": 0,
            "description": "Keep only indexes that were published in so many days.",
        },
        "repoPath": _ONLY,
    }
)

_REMOVED: Final = {
    "id": {**TEXT, "description": "The index that it is, or was a part of."},
    "root": {**MAYBE, "description": "The repository, if it is known."},
    "path": TEXT,
    "bytes": {**COUNT, "description": "What it frees."},
    "reason": {
        "enum": ["age", "quota", "old", "unfinished", "backup"],
        "description": (
            "age and quota: a whole index, over a limit. old: a generation that another one has "
            "replaced. unfinished: what a build left that was ended. backup: what "
            "compact_sqlite_index kept."
        ),
    },
}

GC_OUTPUT: Final = record(
    mode={"enum": ["repo", "leftovers"], "description": "Whole indexes, or what lies beside them."},
    dryRun=FLAG,
    cacheRoot=TEXT,
    limits={"type": "object", "additionalProperties": {"type": "number"}},
    totals=record("Before anything was removed.", repos=COUNT, bytes=COUNT),
    removals=many(record(**_REMOVED), "What was removed, or would be."),
    failedRemovals=many(
        record(**_REMOVED, problem={**TEXT, "description": "Why it is still there."})
    ),
    freedBytes=COUNT,
)

CLEAN_INPUT: Final = arguments(
    {
        "all": switch("Remove the indexes of every repository; then without repoPath."),
        "dryRun": _DRY,
        "repoPath": REPO_PATH,
    }
)

CLEAN_OUTPUT: Final = record(
    all=FLAG,
    dryRun=FLAG,
    cacheRoot=TEXT,
    targets=many(
        {
            **record(
                id=TEXT,
                root=MAYBE,
                path=TEXT,
                bytes=COUNT,
                deleted={**FLAG, "description": "Always false in a dry run."},
            ),
        },
        "The indexes that were meant; one that was not deleted says why in problem.",
    ),
    freedBytes=COUNT,
    kept=many(TEXT, "What the cache has besides, and keeps: models, dictionaries, extensions."),
)
CLEAN_OUTPUT["properties"]["targets"]["items"]["properties"]["problem"] = TEXT


class RemovalTools:
    """Removes indexes of this machine."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def collect(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Answer `cache_gc`."""
        indexes = self._meant(given.get("repoPath"))
        limits = {name: given[name] for name in LIMITS if name in given}
        sweep = Sweep(given["dryRun"])
        sizes = await to_thread.run_sync(_sizes, indexes)
        plan = over(indexes, sizes, limits, sweep) if limits else leftovers(indexes)
        await self._swept(plan, sweep, context)
        return {
            "mode": "repo" if limits else "leftovers",
            "dryRun": sweep.dry_run,
            "cacheRoot": str(self._site.cache),
            "limits": limits,
            "totals": {"repos": len(indexes), "bytes": sum(sizes.values())},
            "removals": sweep.removed,
            "failedRemovals": sweep.failed,
            "freedBytes": sweep.freed,
        }

    async def clean(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Answer `clean_artifacts`."""
        if given["all"] and "repoPath" in given:
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                "`all` means every repository, and does not go with repoPath.",
                hint="Leave one of them out. A server that is fenced to repositories, as over "
                "HTTP, removes only theirs.",
            )
        if given["all"]:
            indexes = self._meant(None)
        else:
            repository = self._site.repository(given, context)
            indexes = self._meant(str(repository.root))
        sweep = Sweep(given["dryRun"])
        await self._swept([Candidate(each, "asked") for each in indexes], sweep, context)
        return {
            "all": given["all"],
            "dryRun": sweep.dry_run,
            "cacheRoot": str(self._site.cache),
            "targets": [_target(each, sweep) for each in (*sweep.removed, *sweep.failed)],
            "freedBytes": sweep.freed,
            "kept": _kept(self._site.cache),
        }

    async def _swept(self, plan: Iterable[Candidate], sweep: Sweep, context: Context) -> None:
        """Remove one by one, so that a call that is cancelled leaves nothing half removed."""
        await self._site.indexes.looked()
        await to_thread.run_sync(self._site.let_go)
        for candidate in plan:
            context.progress(_said(candidate, sweep), phase="remove")
            await to_thread.run_sync(sweep.take, candidate)

    def _meant(self, path: str | None) -> list[Stored]:
        """The indexes that a call is about: all of them, or that of one repository.

        Raises:
            ToolError: INVALID_REQUEST, the cache is in a place where nothing should be removed.
        """
        check(self._site)
        if path is None:
            return stored(self._site.cache)
        repository = self._site.indexes.repository(path)
        folder = self._site.indexes.shelf(repository).folder
        return [Stored(folder)] if is_ours(folder) else []

    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="cache_gc",
                version=2,
                title="Collect garbage in the cache",
                description=(
                    "Make the cache of indexes smaller. With a limit, whole indexes go, the "
                    "oldest first, until the rest fits; without one, only replaced generations,"
                    " rests of builds and backups. What somebody reads or builds stays. Lists "
                    "what went and what it freed; use dryRun=true first."
                ),
                input=GC_INPUT,
                output=GC_OUTPUT,
                run=self.collect,
                hints=Hints(read_only=False, destructive=True),
                examples=(
                    {"arguments": {"dryRun": True}},
                    {"arguments": {"maxGb": 5}},
                    {"arguments": {"maxAgeDays": 30, "dryRun": True}},
                ),
            ),
            Tool(
                name="clean_artifacts",
                version=2,
                title="Remove an index",
                description=(
                    "Remove the index of a repository, or with all=true those of every "
                    "repository; they can be built again. Downloads and records stay, and so "
                    "does an index that somebody reads or builds. Lists what is gone; use "
                    "dryRun=true first."
                ),
                input=CLEAN_INPUT,
                output=CLEAN_OUTPUT,
                run=self.clean,
                hints=Hints(read_only=False, destructive=True),
                examples=(
                    {"arguments": {"dryRun": True}},
                    {"arguments": {"repoPath": "/src/app"}},
                    {"arguments": {"all": True, "dryRun": True}},
                ),
            ),
        )


def check(site: Site) -> None:
    """Refuse a cache in a place where a mistake would be dear.

    Raises:
        ToolError: INVALID_REQUEST, it is the root of the system, somebody's home, or a folder
            that has the home or the project in it.
    """
    cache = site.cache.resolve()
    precious = [site.settings.home.resolve(), site.settings.project_dir.resolve()]
    if cache.parent == cache or any(place.is_relative_to(cache) for place in precious):
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"Nothing is removed in {cache}: it is no folder for a cache alone.",
            hint="Set CLEATS_CACHE_DIR to a folder of its own.",
        )


def _sizes(indexes: Iterable[Stored]) -> dict[str, int]:
    return {each.id: used(each.folder) for each in indexes}


def _target(said: Mapping[str, Any], sweep: Sweep) -> dict[str, Any]:
    shown = {name: each for name, each in said.items() if name != "reason"}
    return {**shown, "deleted": not sweep.dry_run and "problem" not in said}


def _kept(cache: Path) -> list[str]:
    """What the cache has besides indexes."""
    try:
        return sorted(path.name for path in cache.iterdir() if path.name != REPOSITORIES)
    except OSError:
        return []


def _said(candidate: Candidate, sweep: Sweep) -> str:
    return f"{'looking at' if sweep.dry_run else 'removing'} {candidate.path}"

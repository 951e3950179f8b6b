"""The tool `bootstrap`: everything that makes a repository searchable, step by step.

Nothing of the repository is ever run: no package manager, no hook, no script.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cleats.contract.errors import ErrorCode
from cleats.contract.tools import Context, Hints, Tool, arguments
from cleats.runtime import capabilities
from cleats.toolsets.code.indexing.shapes import REPO_PATH
from cleats.toolsets.code.indexing.tool import ARTIFACTS
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.upkeep.forms import FLAG, TEXT, record, switch
from cleats.toolsets.code.upkeep.site import Site, reporter

STEPS: Final = ("install", "dictionaries", "tooling", "artifacts", "index", "sqlite")

_STEP: Final = {
    "type": "object",
    "required": ["skipped", "ok"],
    "properties": {
        "skipped": FLAG,
        "ok": FLAG,
        "reason": {**TEXT, "description": "Why it was skipped."},
    },
}

OUTPUT: Final = record(
    repoPath=TEXT,
    steps=record("What became of each, in their order.", **dict.fromkeys(STEPS, _STEP)),
)

NOT_INSTALLED: Final = (
    "Nothing is installed: that would run scripts of the repository, and an index needs none of "
    "its packages."
)
NO_DICTIONARIES: Final = (
    "Names are split into words by a table that comes with this program; download_dictionaries "
    "adds others."
)


class BootstrapTool:
    """Makes repositories searchable."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def run(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Answer one call."""
        repository = self._site.repository(given, context)
        steps: dict[str, Any] = {}
        steps["install"] = _skipped(_ASKED if given["skipInstall"] else NOT_INSTALLED)
        steps["dictionaries"] = _skipped(_ASKED if given["skipDicts"] else NO_DICTIONARIES)
        context.progress("looking for tools", phase="tooling")
        steps["tooling"] = _skipped(_ASKED) if given["skipTooling"] else _tooling()
        steps["artifacts"], folder = _artifacts(given, repository)
        if given["skipIndex"]:
            steps["index"] = _skipped(_ASKED)
            steps["sqlite"] = _skipped("It is made with the index, which was skipped.")
        else:
            await self._index(given, context, repository, steps, folder)
        return {"repoPath": str(repository.root), "steps": steps}

    async def _index(
        self,
        given: Mapping[str, Any],
        context: Context,
        repository: Repository,
        steps: dict[str, Any],
        artifacts: str,
    ) -> None:
        context.progress("building the index", phase="index")
        options = msgspec.structs.replace(
            self._site.indexes.options,
            incremental=given["incremental"],
            sqlite=True if given["withSqlite"] else None,
            artifacts=artifacts,
        )
        done = await self._site.indexes.build(repository, options, reporter(context))
        for warning in done.warnings:
            context.warn("index_incomplete", warning)
        if artifacts:
            steps["artifacts"]["ok"] = steps["artifacts"]["restored"] = done.restored_artifacts
        steps["index"] = {
            "skipped": False,
            "ok": True,
            "generation": done.generation,
            "published": done.published,
            "files": done.files.total,
            "chunks": done.chunks,
        }
        steps["sqlite"] = (
            {"skipped": False, "ok": True}
            if given["withSqlite"]
            else _skipped("It was not asked for; withSqlite=true makes it.")
        )

    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="bootstrap",
                version=2,
                title="Make a repository searchable",
                description=(
                    "Do all that a fresh checkout needs to be searched: look for tools that "
                    "help, take in an index from ci-artifacts if there is one, and build. "
                    "Installs nothing and runs nothing of the repository. Says what became of "
                    "each step."
                ),
                input=arguments(
                    {
                        "skipInstall": switch("Nothing is ever installed; this only says so too."),
                        "skipDicts": switch("Leave the dictionaries alone."),
                        "skipIndex": switch("Build nothing."),
                        "skipArtifacts": switch("Do not begin from ci-artifacts."),
                        "skipTooling": switch("Do not look for tools."),
                        "withSqlite": switch("Also make the SQLite index."),
                        "incremental": switch("Read only what has changed."),
                        "repoPath": REPO_PATH,
                    }
                ),
                output=OUTPUT,
                run=self.run,
                timeout=600.0,
                hints=Hints(read_only=False),
                errors=(
                    ErrorCode.NOT_FOUND,
                    ErrorCode.ARCHIVE_UNSAFE,
                    ErrorCode.DOWNLOAD_VERIFY_FAILED,
                ),
                examples=(
                    {"arguments": {}},
                    {"arguments": {"repoPath": "/src/app", "withSqlite": True}},
                ),
            ),
        )


_ASKED: Final = "The caller asked to skip it."


def _skipped(reason: str) -> dict[str, Any]:
    return {"skipped": True, "ok": True, "reason": reason}


def _tooling() -> dict[str, Any]:
    found = capabilities.found()
    missing = [
        {"name": f"{each.group}.{each.name}", "purpose": each.purpose, "remedy": each.remedy}
        for each in capabilities.CAPABILITIES
        if not found[each.group][each.name]
    ]
    return {"skipped": False, "ok": True, "found": found, "missing": missing}


def _artifacts(given: Mapping[str, Any], repository: Repository) -> tuple[dict[str, Any], str]:
    """The step, and the folder to begin from; empty for none."""
    folder = repository.root / ARTIFACTS
    if given["skipArtifacts"] or given["skipIndex"]:
        return _skipped(_ASKED), ""
    if not (folder / "manifest.json").is_file():
        return _skipped(f"There is no {ARTIFACTS}/manifest.json in the repository."), ""
    return {"skipped": False, "ok": True, "path": str(folder), "restored": False}, str(folder)

"""The tool `bootstrap`: every step that makes a repository searchable.

No code of the repository is ever run: no package manager, no hook, no script.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from anyio import to_thread

from cleats.contract.errors import ToolError
from cleats.contract.tools import Context
from cleats.runtime import capabilities
from cleats.toolsets.code.index.progress import create_progress_reporter
from cleats.toolsets.code.index.tool import ARTIFACTS_FOLDER
from cleats.toolsets.code.maintenance.context import MaintenanceEnvironment, MaintenanceTool
from cleats.toolsets.code.repository import Repository

INSTALL_SKIP_REASON: Final = (
    "Packages are never installed: that would run the repository's scripts, and the index does not need them."
)
PACKAGE_MANIFESTS: Final = (
    *("package.json", "pyproject.toml", "requirements.txt", "Cargo.toml", "go.mod"),
    *("pom.xml", "build.gradle", "Gemfile", "composer.json"),
)
"""Files in a root that name the packages which a developer would install; nothing here installs them."""


class BootstrapTool(MaintenanceTool):
    """The tool that makes repositories searchable."""

    async def run(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        repository = self._environment.resolve_repository(args, context)
        steps: dict[str, Any] = {
            step: _skip_step(_CALLER_SKIP_REASON) for step in ("install", "dictionaries", "tooling")
        }
        if not args["skipInstall"]:
            manifests = [name for name in PACKAGE_MANIFESTS if (repository.root / name).is_file()]
            steps["install"] = {**_skip_step(INSTALL_SKIP_REASON), "manifests": manifests}
        if not args["skipDicts"]:
            steps["dictionaries"] = await to_thread.run_sync(_check_dictionaries, self._environment)
        context.progress("looking for tools", phase="tooling")
        if not args["skipTooling"]:
            steps["tooling"] = _detect_tools()
        steps["artifacts"], folder = _find_artifacts(args, repository)
        if args["skipIndex"]:
            steps["index"] = _skip_step(_CALLER_SKIP_REASON)
            steps["sqlite"] = _skip_step("It is built together with the index, which was skipped.")
        else:
            await self._build_index(args, context, repository, steps, folder)
        return {"repoPath": str(repository.root), "steps": steps}

    async def _build_index(
        self, args: Mapping[str, Any], context: Context, repository: Repository, steps: dict[str, Any], artifacts: str
    ) -> None:
        context.progress("building the index", phase="index")
        options = msgspec.structs.replace(
            self._environment.indexes.options,
            incremental=args["incremental"],
            sqlite=True if args["withSqlite"] else None,
            artifacts=artifacts,
        )
        report = await self._environment.indexes.build_index(repository, options, create_progress_reporter(context))
        for warning in report.warnings:
            context.warn("index_incomplete", warning)
        if artifacts:
            steps["artifacts"]["ok"] = steps["artifacts"]["restored"] = report.restored_artifacts
        steps["index"] = {
            "skipped": False,
            "ok": True,
            "generation": report.generation,
            "published": report.published,
            "files": report.files.total,
            "chunks": report.chunks,
        }
        steps["sqlite"] = (
            {"skipped": False, "ok": True}
            if args["withSqlite"]
            else _skip_step("Not requested; withSqlite=true creates it.")
        )


_CALLER_SKIP_REASON: Final = "Skipped on request."


def _skip_step(reason: str) -> dict[str, Any]:
    return {"skipped": True, "ok": True, "reason": reason}


def _check_dictionaries(environment: MaintenanceEnvironment) -> dict[str, Any]:
    try:
        lists = environment.check_dictionaries()
    except ToolError as error:
        return {"skipped": False, "ok": False, "reason": error.message}
    if all(lists.values()):
        return {"skipped": False, "ok": True, "lists": lists}
    reason = "A word list is missing or damaged; run download_dictionaries to fetch it again."
    return {"skipped": False, "ok": False, "lists": lists, "reason": reason}


def _detect_tools() -> dict[str, Any]:
    capabilities_found = capabilities.detect_capabilities()
    missing = [
        {"name": f"{capability.group}.{capability.name}", "purpose": capability.purpose, "remedy": capability.remedy}
        for capability in capabilities.CAPABILITIES
        if not capabilities_found[capability.group][capability.name]
    ]
    return {"skipped": False, "ok": True, "found": capabilities_found, "missing": missing}


def _find_artifacts(args: Mapping[str, Any], repository: Repository) -> tuple[dict[str, Any], str]:
    """Return the result of the step and the folder to restore from, or empty text."""
    folder = repository.root / ARTIFACTS_FOLDER
    if args["skipArtifacts"] or args["skipIndex"]:
        return _skip_step(_CALLER_SKIP_REASON), ""
    if not (folder / "manifest.json").is_file():
        return _skip_step(f"The repository has no {ARTIFACTS_FOLDER}/manifest.json."), ""
    return {"skipped": False, "ok": True, "path": str(folder), "restored": False}, str(folder)

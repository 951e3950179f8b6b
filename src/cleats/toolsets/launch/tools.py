"""The tools and resources of the launch toolset.

A run turns a product's repository into the pages of its site: it reads the source, collects facts with evidence, plans
and drafts pages, writes them to a worktree of the site, checks and repairs them, and opens a pull request. Each tool
moves a run by one well defined step or reads its output; `states` defines which step is possible when.

Artifacts are resources too, for clients that attach files: `resource://run/{run_id}/{name}`. The list contains the main
artifacts of the latest runs; a template covers all others. So is the schema of a run configuration, so that a client
can fill one in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import LAUNCH
from cleats.contract.resources import ListPage, Resource, ResourceContents, ResourceTemplate, slice_page
from cleats.contract.tools import Tool, Toolset, outline_schema
from cleats.settings import Settings
from cleats.system import postgres
from cleats.system.tool_tables import ToolTable
from cleats.toolsets.launch.runs import artifacts
from cleats.toolsets.launch.runs.states import RunState, SectionState
from cleats.toolsets.launch.service import LaunchService
from cleats.toolsets.launch.telemetry.api import TelemetryApi

RUN_URI_PREFIX: Final = "resource://run/"
CONFIG_SCHEMA_URI: Final = "resource://launch/run_config.schema.json"

LISTED_ARTIFACTS: Final = (
    ("page_plan.json", "The pages of the run, and what each of them says."),
    ("reports/changes.zip", "The change as a ZIP file: a patch that git applies, and every changed file."),
    ("snapshot.json", "Everything that is known about the run."),
    ("validation_report.json", "What the gates found."),
)
"""Artifacts that are listed for each run, with descriptions; the template covers the others."""

MAX_LISTED_RUNS: Final = 50
"""Number of runs whose artifacts are listed."""

_NOT_FOUND_CODES: Final = frozenset({ErrorCode.RUN_NOT_FOUND, ErrorCode.INVALID_INPUT})
"""Errors that mean that a run or an artifact does not exist, so the URI is unknown."""


class RunResources:
    """The resources of the launch toolset."""

    templates: Sequence[ResourceTemplate] = (
        ResourceTemplate(
            uri=f"{RUN_URI_PREFIX}{{run_id}}/{{+name}}",
            name="run artifact",
            description="An artifact of a launch run, by a name that launch_get_status lists.",
        ),
    )

    def __init__(self, service: LaunchService) -> None:
        self._service = service

    async def list(self, after: str, limit: int) -> ListPage[Resource]:
        resources = [
            Resource(
                uri=CONFIG_SCHEMA_URI,
                name="run_config schema",
                mime_type="application/schema+json",
                description="What the run_config of launch_start_run may hold.",
            )
        ]
        for run in await self._service.list_latest(MAX_LISTED_RUNS):
            artifact_names = {*run.snapshot["artifacts_index"], "snapshot.json"}
            resources += [
                Resource(
                    uri=f"{RUN_URI_PREFIX}{run.run_id}/{name}",
                    name=f"{run.product_slug} {name} ({run.state})",
                    mime_type=artifacts.guess_content_type(name),
                    description=description,
                )
                for name, description in LISTED_ARTIFACTS
                if name in artifact_names
            ]
        resources.sort(key=lambda resource: resource.uri)
        return slice_page(resources, [resource.uri for resource in resources], after, limit)

    async def read(self, uri: str) -> ResourceContents | None:
        if uri == CONFIG_SCHEMA_URI:
            data = artifacts.encode_canonical_json(artifacts.load_schema("run_config"))
            return ResourceContents(uri, "application/schema+json", data)
        run_id, _, name = uri.removeprefix(RUN_URI_PREFIX).partition("/")
        if not uri.startswith(RUN_URI_PREFIX) or not name:
            return None
        try:
            artifact = await self._service.read_artifact(run_id, unquote(name))
        except ToolError as error:
            if error.code not in _NOT_FOUND_CODES:
                raise
            return None
        return ResourceContents(uri, artifact.content_type, artifact.data)

    async def list_children(self, uri: str) -> Sequence[Resource] | None:  # noqa: ARG002 - no folders
        return None


def build_tools(service: LaunchService) -> list[Tool]:
    """Build all tools, in the order in which a run uses them."""
    table = ToolTable(
        Path(__file__).parent,
        state={"enum": [state.value for state in RunState]},
        section_state={"enum": [state.value for state in SectionState]},
    )
    handlers = {
        "launch_start_run": service.start,
        "launch_start_run_from_product_url": service.start_from_url,
        "launch_start_run_from_github_repo_url": service.start_from_repository,
        "launch_get_status": service.make_run_handler("get_status", "status"),
        "launch_get_artifact": service.get_artifact,
        "launch_list_runs": service.list_runs,
        "launch_validate": service.make_run_handler("validate", "validation_report"),
        "launch_fix_next": service.make_run_handler("fix_next"),
        "launch_resume": service.make_run_handler("resume", "status"),
        "launch_cancel": service.make_run_handler("cancel"),
        "launch_open_pr": service.make_run_handler("open_pr"),
    }
    tools = []
    for name, handler in handlers.items():
        output = _make_answer_schema(table, table.read_row(name))
        tools.append(
            table.make_tool(name, handler, output=output, listed_output=outline_schema(output), payload=LAUNCH)
        )
    return tools


def _make_answer_schema(table: ToolTable, row: Mapping[str, Any]) -> dict[str, Any]:
    """Make the schema of `{ok: true, …}` with the fields of a row, or `{ok: false, run_id?, error}`.

    An answer is open: a client that validates must not break on a field that a minor version adds.
    """
    fields = {"run_id": table.get_schema("text"), **row["fields"], **row.get("optional_fields", {})}
    return {
        "type": "object",
        "required": ["ok"],
        "properties": {"ok": {"type": "boolean"}, **fields, "error": table.get_schema("error")},
        "oneOf": [
            {"properties": {"ok": {"const": True}}, "required": list(row["fields"])},
            {"properties": {"ok": {"const": False}}, "required": ["error"]},
        ],
    }


def build_toolset(settings: Settings) -> Toolset:
    """Build the toolset for the runs of this user."""
    launch_toolset = build_service_toolset(LaunchService(settings))
    url = settings.database_url
    return replace(launch_toolset, ready=partial(postgres.check_database, url)) if url else launch_toolset


def build_service_toolset(service: LaunchService) -> Toolset:
    """Build the toolset for a service; every call of its tools is recorded."""
    recorder = service.recorder
    return Toolset(
        name="launch",
        purpose=("Write the pages of a product from its repository, check them and open the pull request."),
        tools=[recorder.wrap_tool(tool) for tool in build_tools(service)],
        running=service.running,
        resources=RunResources(service),
        routes=TelemetryApi(recorder).build_routes(),
    )

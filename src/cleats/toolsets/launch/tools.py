"""The tools of the launch toolset.

A run turns a product's repository into the pages of its site: it reads the source, collects facts with evidence, plans
and drafts pages, writes them to a worktree of the site, checks and repairs them, and opens a pull request. Each tool
moves a run by one well defined step or reads its output; `states` defines which step is possible when.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cleats.contract.payload import LAUNCH
from cleats.contract.tools import Tool, Toolset, outline_schema
from cleats.settings import Settings
from cleats.system import postgres
from cleats.system.tool_tables import ToolTable
from cleats.toolsets.launch.resources import RunResources
from cleats.toolsets.launch.runs.states import RunState, SectionState
from cleats.toolsets.launch.service import LaunchService
from cleats.toolsets.launch.telemetry.api import TelemetryApi


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

"""The table of tools of the code toolset."""

from collections.abc import Mapping
from typing import Any, Final

from cleats.contract.tools import Context, Tool, Toolset, arguments
from cleats.contract.versions import PROTOCOL_VERSION, SCHEMA_VERSION, TOOLING_VERSION
from cleats.runtime import capabilities
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings
from cleats.toolsets.code.downloads.tools import DownloadTools
from cleats.toolsets.code.index.tool import IndexTools
from cleats.toolsets.code.maintenance.context import MaintenanceEnvironment
from cleats.toolsets.code.maintenance.status import REPOSITORY_SCHEMA, describe_repository
from cleats.toolsets.code.maintenance.tools import create_maintenance_tools as upkeep
from cleats.toolsets.code.schema_atoms import (
    FLAG_SCHEMA,
    NULLABLE_TEXT_SCHEMA,
    TEXT_SCHEMA,
    add_description,
    array_schema,
    object_schema,
    repeat_schema,
)
from cleats.toolsets.code.shared_engine import CodeEngine
from cleats.toolsets.code.triage.context_packs import ContextPackTool
from cleats.toolsets.code.triage.tool import TriageTools


def _map_schema(values: Mapping[str, Any], description: str) -> dict[str, Any]:
    return {"type": "object", "description": description, "additionalProperties": values}


_INTEGER_SCHEMA: Final = {"type": "integer"}

STATUS_SCHEMA: Final = {
    "type": "object",
    "required": ["server", "queue", "calls", "tools", "capabilities"],
    "properties": {
        "server": object_schema(
            **repeat_schema(TEXT_SCHEMA, "name toolingVersion schemaVersion protocolVersion"), uptimeMs=_INTEGER_SCHEMA
        ),
        "queue": object_schema(
            running=add_description(_INTEGER_SCHEMA, "Calls that run now, this one included."),
            maxRunning=_INTEGER_SCHEMA,
            waiting=add_description(_INTEGER_SCHEMA, "Calls that wait for their turn."),
            maxWaiting=add_description(_INTEGER_SCHEMA, "One more is refused."),
        ),
        "calls": object_schema(
            inFlight=array_schema(
                object_schema(tool=TEXT_SCHEMA, requestId=NULLABLE_TEXT_SCHEMA, ms=_INTEGER_SCHEMA),
                "Open calls, oldest first.",
            ),
            ended=_map_schema(_INTEGER_SCHEMA, "How many calls ended in each way since the start."),
        ),
        "tools": _map_schema(_INTEGER_SCHEMA, "Every tool of this server and the version of its schema."),
        "capabilities": _map_schema(
            {"type": "object", "additionalProperties": FLAG_SCHEMA},
            "What was found on this machine, by group and name.",
        ),
        "repository": REPOSITORY_SCHEMA,
    },
}


def build_toolset(settings: Settings, server_status: ServerStatus, engine: CodeEngine) -> Toolset:
    """Build the toolset over the indexes of this machine and the status of this server."""
    indexes, search_tool = engine.indexes, engine.search_tool
    download_tools = DownloadTools(settings, indexes)
    environment = MaintenanceEnvironment(
        settings, indexes, search_tool.release_engines, download_tools.check_dictionaries
    )

    async def check_status(_arguments: Mapping[str, Any], _context: Context) -> dict[str, Any]:
        status = await server_status.collect()
        return {
            "server": {
                "name": "cleats",
                "toolingVersion": TOOLING_VERSION,
                "schemaVersion": SCHEMA_VERSION,
                "protocolVersion": PROTOCOL_VERSION,
                "uptimeMs": round(status.uptime * 1000),
            },
            "queue": status.get_queue_load(),
            "calls": {"inFlight": status.list_open_calls(), "ended": status.count_outcomes()},
            "tools": status.list_tool_versions(),
            "capabilities": capabilities.detect_capabilities(capabilities.find_lint_root(settings)),
            **await describe_repository(indexes),
        }

    return Toolset(
        name="code",
        purpose="Index repositories, search them, and report on the indexes and on this server.",
        on_roots=indexes.roots_callback,
        tools=(
            *IndexTools(indexes, engine.builds).tools(),
            *search_tool.tools(),
            *download_tools.tools(),
            *upkeep(environment),
            *TriageTools(indexes).tools(),
            *ContextPackTool(indexes, search_tool, settings.data_dir).tools(),
            Tool(
                name="check_status",
                version=3,
                title="Check server status",
                description=(
                    "Report the health of this server: versions, uptime, running calls, available optional "
                    "capabilities, and whether the default repository has an up-to-date index. Changes nothing."
                ),
                input=arguments(),
                output=STATUS_SCHEMA,
                run=check_status,
                timeout=10.0,
                examples=({"arguments": {}},),
            ),
        ),
        running=engine.lifespan,
        ready=indexes.check_reachable if settings.database_url or settings.code.opensearch_url else None,
    )

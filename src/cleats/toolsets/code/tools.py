"""The code toolset's table of contents."""

from collections.abc import Mapping
from typing import Any

from cleats.contract.tools import Context, Tool, Toolset, arguments
from cleats.contract.versions import PROTOCOL_VERSION, SCHEMA_VERSION, TOOLING_VERSION
from cleats.runtime import capabilities
from cleats.runtime.vitals import Vitals
from cleats.settings import Settings
from cleats.toolsets.code.downloads.tools import DownloadTools
from cleats.toolsets.code.indexing.access import Indexes
from cleats.toolsets.code.indexing.tool import IndexTools
from cleats.toolsets.code.search.tool import SearchTool
from cleats.toolsets.code.triage.packing import PackTool
from cleats.toolsets.code.triage.tool import TriageTools
from cleats.toolsets.code.upkeep.site import Site
from cleats.toolsets.code.upkeep.standing import REPOSITORY, standing
from cleats.toolsets.code.upkeep.tools import tools as upkeep

_QUEUE = {
    "type": "object",
    "required": ["running", "maxRunning", "waiting", "maxWaiting"],
    "properties": {
        "running": {"type": "integer", "description": "Calls that run now, this one included."},
        "maxRunning": {"type": "integer"},
        "waiting": {"type": "integer", "description": "Calls that wait for their turn."},
        "maxWaiting": {"type": "integer", "description": "One more is refused."},
    },
}

STATUS = {
    "type": "object",
    "required": ["server", "queue", "calls", "tools", "capabilities"],
    "properties": {
        "server": {
            "type": "object",
            "required": ["name", "toolingVersion", "schemaVersion", "protocolVersion", "uptimeMs"],
            "properties": {
                "name": {"type": "string"},
                "toolingVersion": {"type": "string"},
                "schemaVersion": {"type": "string"},
                "protocolVersion": {"type": "string"},
                "uptimeMs": {"type": "integer"},
            },
        },
        "queue": _QUEUE,
        "calls": {
            "type": "object",
            "required": ["inFlight", "ended"],
            "properties": {
                "inFlight": {
                    "type": "array",
                    "description": "Open calls, oldest first.",
                    "items": {
                        "type": "object",
                        "required": ["tool", "requestId", "ms"],
                        "properties": {
                            "tool": {"type": "string"},
                            "requestId": {"type": ["string", "null"]},
                            "ms": {"type": "integer"},
                        },
                    },
                },
                "ended": {
                    "type": "object",
                    "description": "How many calls ended in each way since the start.",
                    "additionalProperties": {"type": "integer"},
                },
            },
        },
        "tools": {
            "type": "object",
            "description": "Every tool of this server and the version of its schema.",
            "additionalProperties": {"type": "integer"},
        },
        "capabilities": {
            "type": "object",
            "description": "What was found on this machine, by group and name.",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": {"type": "boolean"},
            },
        },
        "repository": REPOSITORY,
    },
}


def toolset(settings: Settings, vitals: Vitals) -> Toolset:
    """The tools, over the indexes of this machine and the server they report on."""
    indexes = Indexes(settings)
    searching = SearchTool(indexes, tests_lower=settings.search_tests == "lower")

    async def check_status(_arguments: Mapping[str, Any], _context: Context) -> dict[str, Any]:
        return {
            "server": {
                "name": "cleats",
                "toolingVersion": TOOLING_VERSION,
                "schemaVersion": SCHEMA_VERSION,
                "protocolVersion": PROTOCOL_VERSION,
                "uptimeMs": round(vitals.uptime * 1000),
            },
            "queue": vitals.queue(),
            "calls": {"inFlight": vitals.in_flight(), "ended": vitals.ended()},
            "tools": vitals.tools(),
            "capabilities": capabilities.found(),
            **await standing(indexes),
        }

    return Toolset(
        name="code",
        purpose="Index repositories, search them, and report on the indexes and on this server.",
        tools=(
            *IndexTools(indexes).tools(),
            *searching.tools(),
            *DownloadTools(settings, indexes).tools(),
            *upkeep(Site(settings, indexes, searching.let_go)),
            *TriageTools(indexes).tools(),
            *PackTool(indexes, searching, settings.data_dir).tools(),
            Tool(
                name="check_status",
                version=2,
                title="Check server status",
                description=(
                    "Report the health of this server: versions, uptime, calls in flight, which"
                    " optional capabilities this machine has, and whether the repository around"
                    " the server has an index that is up to date. Changes nothing."
                ),
                input=arguments(),
                output=STATUS,
                run=check_status,
                timeout=10.0,
                examples=({"arguments": {}},),
            ),
        ),
        running=searching.running,
        ready=indexes.answers if settings.database_url or settings.opensearch_url else None,
    )

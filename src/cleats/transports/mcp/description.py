"""How the server describes itself to MCP clients: its name, capabilities, instructions and tools.

These are plain values without the SDK, so that the first answers of a connection do not wait for its import.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cleats.contract.registry import Registry
from cleats.contract.resources import ListName
from cleats.contract.tools import Tool
from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION

SERVER_NAME = "cleats"
SERVER_TITLE = "Cleats"
CAPABILITY_BLOCK_NAME = "pairofcleats"
"""The key of our block under `capabilities.experimental`."""

VENDOR_META_PREFIX = "pairofcleats/"
"""The namespace of our keys in the `_meta` of a tool definition."""

SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
STATELESS_VERSION = "2026-07-28"
SKILLS_EXTENSION: Mapping[str, Any] = {"io.modelcontextprotocol/skills": {"directoryRead": True}}

_SERVER_INFO = {"name": SERVER_NAME, "title": SERVER_TITLE, "version": TOOLING_VERSION}
SERVER_STAMP: Mapping[str, Any] = {SERVER_INFO_KEY: _SERVER_INFO}
"""The `_meta` of every result of 2026-07-28."""

_STATELESS_FIELDS = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "_meta": SERVER_STAMP}
"""What 2026-07-28 adds to lists: they are whole, may change at any time and belong to one caller."""


class ChangeAnnouncer(Protocol):
    """A part of a server that tells clients about changes."""

    def announce_changes(self, lists: Collection[ListName]) -> None:
        """Tell every connected client that these lists have changed."""


@dataclass(frozen=True, slots=True)
class ServerDescription:
    """The description of one caller's server, in the form of either protocol era."""

    registry: Registry
    machine_capabilities: Mapping[str, Any]

    @property
    def instructions(self) -> str:
        """The toolsets and when to use them, for the model."""
        toolset_lines = [f"- {toolset.name}: {toolset.purpose}" for toolset in self.registry.toolsets]
        advice = [toolset.advice for toolset in self.registry.toolsets if toolset.advice]
        return "\n".join(["Cleats serves these toolsets to coding agents:", *toolset_lines, *advice])

    @property
    def capability_block(self) -> dict[str, Any]:
        versions = {"schemaVersion": SCHEMA_VERSION, "toolingVersion": TOOLING_VERSION}
        return {**versions, "transport": "sdk", "capabilities": dict(self.machine_capabilities)}

    @property
    def lists_change(self) -> bool:
        """True if any toolset may change its lists, so that clients are promised notifications."""
        return any(toolset.changes for toolset in self.registry.toolsets)

    def build_initialize_result(self, version: str) -> dict[str, Any]:
        """Return the answer to `initialize`."""
        return {
            "capabilities": self._build_capabilities(modern=False),
            "instructions": self.instructions,
            "protocolVersion": version,
            "serverInfo": _SERVER_INFO,
        }

    def build_discover_result(self) -> dict[str, Any]:
        """Return the answer to `server/discover`."""
        capabilities = self._build_capabilities(modern=True)
        fields = {"capabilities": capabilities, "instructions": self.instructions}
        return {**fields, "supportedVersions": [STATELESS_VERSION], **_STATELESS_FIELDS}

    def build_tool_list(self, *, modern: bool) -> dict[str, Any]:
        """Return the answer to `tools/list`."""
        tools = {"tools": [describe_tool(tool) for tool in self.registry]}
        return {**tools, **_STATELESS_FIELDS} if modern else tools

    def _build_capabilities(self, *, modern: bool) -> dict[str, Any]:
        toolsets = self.registry.toolsets
        is_announced = self.lists_change if modern else True
        capabilities: dict[str, Any] = {
            "experimental": {CAPABILITY_BLOCK_NAME: self.capability_block},
            "tools": {"listChanged": self.lists_change},
        }
        if modern and any(toolset.skills is not None for toolset in toolsets):
            capabilities["extensions"] = SKILLS_EXTENSION
        if any(toolset.prompts is not None for toolset in toolsets):
            capabilities["prompts"] = {"listChanged": is_announced}
        if any(toolset.resources is not None for toolset in toolsets):
            capabilities["resources"] = {"listChanged": is_announced, "subscribe": modern and self.lists_change}
        return capabilities


def describe_tool(tool: Tool) -> dict[str, Any]:
    """Return a tool as `tools/list` lists it."""
    fields: dict[str, Any] = {
        "name": tool.name,
        "description": tool.current_description,
        "inputSchema": dict(tool.input),
        "annotations": tool.hints.as_json(),
        "_meta": {
            VENDOR_META_PREFIX + "schemaVersion": tool.version,
            VENDOR_META_PREFIX + "contractVersion": SCHEMA_VERSION,
            VENDOR_META_PREFIX + "toolingVersion": TOOLING_VERSION,
        },
    }
    if tool.title:
        fields["title"] = tool.title
        fields["annotations"]["title"] = tool.title  # where clients of 2025 look for it
    if tool.search_hint:
        fields["_meta"]["anthropic/searchHint"] = tool.search_hint
    if tool.always_load:
        fields["_meta"]["anthropic/alwaysLoad"] = True
    if tool.listed_schema is not None:
        fields["outputSchema"] = dict(tool.listed_schema)
    return fields

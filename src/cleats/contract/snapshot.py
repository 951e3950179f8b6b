"""The contract as one file: everything a client could come to depend on.

`contracts/tools.json` is this file, committed and reviewed as a diff. It is generated from our own
tables only, so that upgrading a library never changes a byte of it.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from cleats.contract.errors import ErrorCode
from cleats.contract.payload import ENVELOPE_SCHEMA
from cleats.contract.registry import Registry
from cleats.contract.tools import Tool
from cleats.contract.versions import PROTOCOL_VERSION, SCHEMA_VERSION

SNAPSHOT_FORMAT: Final = 1
"""The version of the snapshot's own layout."""

CONTRACT_SEMANTICS: Final[Mapping[str, str]] = {
    "protocol": f"handshake clients are answered with {PROTOCOL_VERSION}",
    "cancellation": "the work is stopped, whole process trees included, and nothing is sent after",
    "timeout": "the work is stopped and the answer is TOOL_TIMEOUT with details.timeoutMs",
    "validation": "arguments are checked against the input schema; unknown ones are refused",
    "overload": "a call beyond the queue is refused with QUEUE_OVERLOADED and details.queue",
    "progress": "only for a caller that asked; rising; at most four a second; none after the end",
}
"""Behaviour that no schema shows. A changed sentence is an observable change."""


def build_snapshot(registry: Registry) -> dict[str, Any]:
    """Build the snapshot of the whole contract as plain JSON."""
    return {
        "snapshot": SNAPSHOT_FORMAT,
        "schemaVersion": SCHEMA_VERSION,
        "semantics": dict(CONTRACT_SEMANTICS),
        "envelope": dict(ENVELOPE_SCHEMA),
        "errors": {code.name: code.value._asdict() for code in ErrorCode},
        "tools": {tool.name: _build_tool_entry(tool, registry) for tool in registry},
    }


def build_toolset_snapshot(registry: Registry) -> dict[str, Any]:
    """Build the snapshot of the only toolset in a registry, under the toolset's version.

    The envelope, the errors and the surrounding behaviour belong to Cleats. They are left out, so
    that a new version of Cleats changes no byte of another package's contract.
    """
    [toolset] = registry.toolsets
    tools = {tool.name: _build_tool_entry(tool, registry) for tool in registry}
    for tool in registry:
        if tool.output is not None:
            tools[tool.name]["outputSchema"] = dict(tool.output)
    return {"snapshot": SNAPSHOT_FORMAT, "schemaVersion": toolset.schema_version, "tools": tools}


def _build_tool_entry(tool: Tool, registry: Registry) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "toolset": registry.find_toolset_name(tool),
        "description": tool.description if isinstance(tool.description, str) else "(changes)",
        "schemaVersion": tool.version,
        "inputSchema": dict(tool.input),
        "annotations": tool.hints.as_json(),
        "timeoutMs": None if tool.timeout is None else round(tool.timeout * 1000),
        "aliases": [{"name": alias.name, "deprecated": alias.deprecated} for alias in tool.aliases],
        "errors": sorted(code.name for code in tool.errors),
        "payload": tool.payload.name,
    }
    if (output := tool.output_schema) is not None:
        entry["outputSchema"] = dict(output)
    if tool.examples:
        entry["examples"] = [dict(example) for example in tool.examples]
    return entry


def encode_snapshot(contract: Mapping[str, Any]) -> bytes:
    """Encode a snapshot for its file; equal contracts always give equal bytes."""
    text = json.dumps(contract, indent=2, sort_keys=True, ensure_ascii=False)
    return text.encode() + b"\n"

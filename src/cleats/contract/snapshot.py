"""The contract as files: everything a client could come to depend on.

`contracts/tools.json` is what `tools/list` serves, and `contracts/results.json` the result schemas in full, which the
list only outlines. Both are committed and reviewed as a diff, and generated from our own tables only, so that upgrading
a library never changes a byte of them. `contracts/released` has one full snapshot per released version.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from cleats.contract.arguments import Schema
from cleats.contract.errors import ErrorCode
from cleats.contract.payload import ENVELOPE_SCHEMA
from cleats.contract.registry import Registry
from cleats.contract.tools import Tool
from cleats.contract.versions import PROTOCOL_VERSION, SCHEMA_VERSION

SNAPSHOT_FORMAT: Final = 1
"""The version of the snapshot's own layout."""

CHANGING_DESCRIPTION: Final = "(changes)"
"""Stands for the description of a tool that changes while a server runs."""

LISTED_FIELDS: Final = ("title", "description", "schemaVersion", "inputSchema", "outputSchema", "annotations")
"""The fields of a tool that a list of tools shows."""

CONTRACT_SEMANTICS: Final[Mapping[str, str]] = {
    "protocol": f"handshake clients are answered with {PROTOCOL_VERSION}",
    "cancellation": "the work is stopped, whole process trees included, and nothing is sent after",
    "timeout": "the work is stopped and the answer is TOOL_TIMEOUT with details.timeoutMs",
    "validation": "arguments are checked against the input schema; unknown ones are refused",
    "overload": "a call beyond the queue is refused with QUEUE_OVERLOADED and details.queue",
    "progress": "only for a caller that asked; rising; at most four a second; none after the end",
}
"""Behaviour that no schema shows. A changed sentence is an observable change."""


def build_snapshot(registry: Registry, *, full_results: bool = False) -> dict[str, Any]:
    """Build the snapshot of the whole contract as plain JSON, with result schemas as listed or in full."""
    return {
        "snapshot": SNAPSHOT_FORMAT,
        "schemaVersion": SCHEMA_VERSION,
        "semantics": dict(CONTRACT_SEMANTICS),
        "envelope": dict(ENVELOPE_SCHEMA),
        "errors": {code.name: code.value._asdict() for code in ErrorCode},
        "tools": {
            tool.name: _build_tool_entry(
                tool, registry, tool.output_schema if full_results else tool.listed_schema, title=tool.title
            )
            for tool in registry
        },
    }


def extract_results(full_snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of `results.json`: the full result schemas of a snapshot."""
    tools = full_snapshot["tools"].items()
    schemas = {name: entry["outputSchema"] for name, entry in tools if "outputSchema" in entry}
    return {"schemaVersion": full_snapshot["schemaVersion"], "results": schemas}


def attach_results(snapshot: Mapping[str, Any], results: Mapping[str, Any]) -> dict[str, Any]:
    """Return a snapshot with the full result schemas of `results.json` in place of the listed ones."""
    schemas = results["results"]
    tools = {
        name: {**entry, "outputSchema": schemas[name]} if name in schemas else entry
        for name, entry in snapshot["tools"].items()
    }
    return {**snapshot, "tools": tools}


def align_with_listing(
    contract: Mapping[str, Any], listing: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return our contract and the listing of a running server, both limited to what a server lists."""
    changing = {name for name, entry in contract["tools"].items() if entry.get("description") == CHANGING_DESCRIPTION}

    def limit(snapshot: Mapping[str, Any]) -> dict[str, Any]:
        tools = {
            name: {
                field: entry[field]
                for field in LISTED_FIELDS
                if field in entry and not (field == "description" and name in changing)
            }
            for name, entry in snapshot["tools"].items()
        }
        return {"snapshot": snapshot["snapshot"], "schemaVersion": snapshot.get("schemaVersion"), "tools": tools}

    return limit(contract), limit(listing)


def build_toolset_snapshot(registry: Registry) -> dict[str, Any]:
    """Build the snapshot of the only toolset in a registry, under the toolset's version.

    The envelope, the errors and the surrounding behaviour belong to Cleats. They are left out, so that a new version of
    Cleats changes no byte of another package's contract; for the same reason its entries have no titles.
    """
    [toolset] = registry.toolsets
    tools = {tool.name: _build_tool_entry(tool, registry, tool.output) for tool in registry}
    return {"snapshot": SNAPSHOT_FORMAT, "schemaVersion": toolset.schema_version, "tools": tools}


def _build_tool_entry(tool: Tool, registry: Registry, output: Schema | None, title: str = "") -> dict[str, Any]:
    entry: dict[str, Any] = {
        "toolset": registry.find_toolset_name(tool),
        "description": tool.description if isinstance(tool.description, str) else CHANGING_DESCRIPTION,
        "schemaVersion": tool.version,
        "inputSchema": dict(tool.input),
        "annotations": tool.hints.as_json(),
        "timeoutMs": None if tool.timeout is None else round(tool.timeout * 1000),
        "aliases": [{"name": alias.name, "deprecated": alias.deprecated} for alias in tool.aliases],
        "errors": sorted(code.name for code in tool.errors),
        "payload": tool.payload.name,
    }
    if title:  # at both places where clients look for it
        entry["title"] = title
        entry["annotations"]["title"] = title
    if output is not None:
        entry["outputSchema"] = dict(output)
    if tool.examples:
        entry["examples"] = [dict(example) for example in tool.examples]
    return entry


def encode_snapshot(contract: Mapping[str, Any]) -> bytes:
    """Encode a snapshot for its file; equal contracts always give equal bytes."""
    text = json.dumps(contract, indent=2, sort_keys=True, ensure_ascii=False)
    return text.encode() + b"\n"

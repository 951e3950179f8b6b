"""The API as OpenAPI 3.1, generated from the registry and the table of routes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import ENVELOPE, ENVELOPE_SCHEMA, FLAT, build_envelope_schema
from cleats.contract.registry import Registry
from cleats.contract.tools import Tool
from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from cleats.transports.http.path_access import REPOSITORY_ARGUMENT
from cleats.transports.http.routes import API_ROUTES, ApiRoute
from cleats.transports.http.toolset_routes import build_operations

MEDIA_TYPE = "application/vnd.oai.openapi+json;version=3.1"
JSON_MEDIA_TYPE = "application/json"

_CONTENT_SCHEMA = {
    "type": "object",
    "required": ["content"],
    "properties": {"content": {"type": "array", "items": {"type": "object"}}},
}
_ANY_OBJECT_SCHEMA = {"type": "object"}
_EVENT_SCHEMA = {
    "type": "object",
    "description": "One event of the stream.",
    "required": ["event", "data"],
    "properties": {
        "event": {"enum": ["start", "progress", "result", "error", "done"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}

_RESULT_SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "/health": {
        "type": "object",
        "required": ["uptimeMs"],
        "properties": {"uptimeMs": {"type": "integer", "minimum": 0}},
    },
    "/ready": {
        "type": "object",
        "required": ["ready"],
        "properties": {"ready": {"const": True}},
    },
    "/capabilities": {
        "type": "object",
        "required": ["schemaVersion", "toolingVersion", "transport", "capabilities", "tools"],
    },
    "/tools": {
        "type": "object",
        "required": ["tools"],
        "properties": {"tools": {"type": "array", "items": {"type": "object"}}},
    },
}
_MEDIA_TYPES = {"/metrics": "text/plain", "/docs": "text/html", "/openapi.json": MEDIA_TYPE}

_GUARD_ERRORS = (
    ErrorCode.UNAUTHORIZED,
    ErrorCode.FORBIDDEN,
    ErrorCode.NOT_FOUND,
    ErrorCode.RATE_LIMITED,
    ErrorCode.INTERNAL,
)
"""Errors that any route may answer with."""

encode_document = msgspec.json.Encoder().encode


def describe_tool(registry: Registry, tool: Tool) -> dict[str, Any]:
    """Return a tool as `GET /tools` lists it."""
    return {
        "name": tool.name,
        "toolset": registry.find_toolset_name(tool),
        "title": tool.title,
        "description": tool.current_description,
        "inputSchema": dict(tool.input),
        "outputSchema": _output_schema(tool),
        "schemaVersion": tool.version,
        "toolingVersion": TOOLING_VERSION,
        "annotations": tool.hints.as_json(),
        "aliases": [alias.name for alias in tool.aliases],
        "errors": sorted(code.name for code in tool.codes),
        "examples": [dict(example) for example in tool.examples],
    }


def build_document(registry: Registry, *, secured: bool) -> dict[str, Any]:
    """Return the complete OpenAPI document."""
    schemas: dict[str, Any] = {"Error": _error_schema()}
    paths: dict[str, Any] = {}
    for row in API_ROUTES:
        if "{name}" in row.path:
            for tool in registry:
                path = row.path.replace("{name}", tool.name)
                paths[path] = {"post": _tool_operation(registry, row, tool, schemas)}
        elif not row.tools or (route_tool := _find_route_tool(registry, row)) is not None:
            paths[row.path] = {
                method.lower(): _server_operation(row)
                if not row.tools or route_tool is None
                else _route_operation(row, method, route_tool, schemas)
                for method in row.methods
            }
    paths |= build_operations(registry.toolsets, _failure_responses(()))
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Cleats",
            "version": SCHEMA_VERSION,
            "description": "Tools for coding agents. Every JSON answer is one envelope.",
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{"url": "/"}],
        "tags": [{"name": "server"}]
        + [{"name": toolset.name, "description": toolset.purpose} for toolset in registry.toolsets],
        "paths": paths,
        "components": {"schemas": schemas},
    }
    if secured:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _find_route_tool(registry: Registry, row: ApiRoute) -> Tool | None:
    for name in row.tools:
        try:
            return registry.find(name)
        except ToolError:
            continue
    return None


def _server_operation(row: ApiRoute) -> dict[str, Any]:
    if row.response_kind == "envelope":
        content = {JSON_MEDIA_TYPE: {"schema": build_envelope_schema(_RESULT_SCHEMAS[row.path])}}
    else:
        content = {_MEDIA_TYPES[row.path]: {"schema": {"type": ["string", "object"]}}}
    return {
        "operationId": row.endpoint,
        "summary": row.about,
        "tags": ["server"],
        "responses": {
            "200": {"description": "Done.", "content": content},
            **_failure_responses([ErrorCode.UNAVAILABLE] if row.path == "/ready" else ()),
        },
    }


def _tool_operation(registry: Registry, row: ApiRoute, tool: Tool, schemas: dict[str, Any]) -> dict[str, Any]:
    stream = row.response_kind == "stream"
    body: dict[str, Any] = {"schema": _hoist_definitions(tool.input, tool.name, schemas)}
    if tool.examples:
        body["examples"] = {
            f"example{number}": {"value": example.get("arguments", {})}
            for number, example in enumerate(tool.examples, 1)
        }
    return {
        "operationId": f"{tool.name}_stream" if stream else tool.name,
        "summary": tool.title or tool.name,
        "description": tool.current_description,
        "tags": [registry.find_toolset_name(tool)],
        "requestBody": {"required": True, "content": {JSON_MEDIA_TYPE: body}},
        "responses": {
            "200": _success_response(row, _result_schema(tool), tool.name, schemas),
            **_failure_responses(tool.codes),
        },
    }


def _route_operation(row: ApiRoute, method: str, tool: Tool, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the operation of a route that calls a tool: the same arguments, a different result."""
    key = row.path.split("/")[1]
    result = {
        "type": "object",
        "required": ["repo", key],
        "properties": {"repo": {"type": "string"}, key: _result_schema(tool)},
    }
    arguments = _add_repo_argument(tool.input)
    operation: dict[str, Any] = {
        "operationId": f"{row.endpoint}_{method.lower()}",
        "summary": row.about,
        "description": f"The same as calling `{tool.name}`; `repo` is short for `{REPOSITORY_ARGUMENT}`.",
        "tags": ["server"],
        "responses": {"200": _success_response(row, result, tool.name, schemas), **_failure_responses(tool.codes)},
    }
    if method == "POST":
        schema = _hoist_definitions(arguments, f"{row.endpoint}_body", schemas)
        operation["requestBody"] = {"required": True, "content": {JSON_MEDIA_TYPE: {"schema": schema}}}
    else:
        operation["parameters"] = list(_query_parameters(arguments))
    return operation


def _add_repo_argument(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = dict(schema.get("properties", {}))
    if REPOSITORY_ARGUMENT not in properties:
        return dict(schema)
    properties["repo"] = {"type": "string", "description": f"Short for {REPOSITORY_ARGUMENT}."}
    return {**schema, "properties": properties, "not": {"required": ["repo", REPOSITORY_ARGUMENT]}}


def _query_parameters(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    required = schema.get("required", ())
    for name, rule in schema.get("properties", {}).items():
        yield {
            "name": name,
            "in": "query",
            "required": name in required,
            "description": rule.get("description", ""),
            "schema": rule,
        }


def _success_response(row: ApiRoute, result: Mapping[str, Any], name: str, schemas: dict[str, Any]) -> dict[str, Any]:
    if row.response_kind == "stream":
        description = "Events start, progress, result or error, done; the data of each is an envelope."
        return {
            "description": description,
            "content": {"text/event-stream": {"schema": _EVENT_SCHEMA}},
        }
    schema = _hoist_definitions(build_envelope_schema(result), f"{name}_answer", schemas)
    return {"description": "Done.", "content": {JSON_MEDIA_TYPE: {"schema": schema}}}


def _result_schema(tool: Tool) -> Mapping[str, Any]:
    """Return the schema of `result`: the tool's payload."""
    if tool.payload in (ENVELOPE, FLAT):
        return tool.output or _ANY_OBJECT_SCHEMA
    return _CONTENT_SCHEMA if tool.payload.name == "content" else tool.output or _ANY_OBJECT_SCHEMA


def _output_schema(tool: Tool) -> dict[str, Any]:
    return build_envelope_schema(_result_schema(tool))


def _failure_responses(codes: Sequence[ErrorCode] | frozenset[ErrorCode]) -> dict[str, Any]:
    """Return every status besides 200, with the codes that occur with it."""
    by_status: dict[int, set[str]] = {status: {ErrorCode.INVALID_REQUEST.name} for status in (400, 413, 415)}
    for code in (*_GUARD_ERRORS, *codes):
        by_status.setdefault(code.http, set()).add(code.name)
    error = {JSON_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {
        str(status): {"description": ", ".join(sorted(names)), "content": error}
        for status, names in sorted(by_status.items())
    }


def _error_schema() -> dict[str, Any]:
    properties = {**ENVELOPE_SCHEMA["properties"]}
    del properties["result"]
    return {
        "type": "object",
        "required": ["ok", "error", "_meta"],
        "properties": {**properties, "ok": {"const": False}},
        "additionalProperties": False,
    }


def _hoist_definitions(schema: Mapping[str, Any], name: str, schemas: dict[str, Any]) -> Any:
    """Return the schema with local references that are valid in the document.

    In a document `#` is the document, so `$defs` move to the components under the schema's name.
    """
    local = schema.get("$defs")
    if not local:
        return schema
    prefix = f"#/components/schemas/{name}."
    for definition_name, rule in local.items():
        schemas[f"{name}.{definition_name}"] = _move_references(rule, prefix)
    return _move_references({key: rule for key, rule in schema.items() if key != "$defs"}, prefix)


def _move_references(value: Any, prefix: str) -> Any:
    if isinstance(value, Mapping):
        return {
            key: item.replace("#/$defs/", prefix)
            if key == "$ref" and isinstance(item, str)
            else _move_references(item, prefix)
            for key, item in value.items()
        }
    return [_move_references(item, prefix) for item in value] if isinstance(value, list | tuple) else value

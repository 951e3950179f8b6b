"""The API as OpenAPI 3.1, made from the registry and the table of routes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.payload import ENVELOPE, ENVELOPE_SCHEMA, FLAT, envelope_schema
from cleats.contract.registry import Registry
from cleats.contract.tools import Tool
from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from cleats.transports.http.fence import REPOSITORY
from cleats.transports.http.rows import ROUTES, Row
from cleats.transports.http.toolset_routes import operations

MEDIA_TYPE = "application/vnd.oai.openapi+json;version=3.1"
JSON = "application/json"

_CONTENT = {
    "type": "object",
    "required": ["content"],
    "properties": {"content": {"type": "array", "items": {"type": "object"}}},
}
_ANY = {"type": "object"}
_EVENT = {
    "type": "object",
    "description": "One event of the stream.",
    "required": ["event", "data"],
    "properties": {
        "event": {"enum": ["start", "progress", "result", "error", "done"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}

_RESULTS: Mapping[str, Mapping[str, Any]] = {
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
_MEDIA = {"/metrics": "text/plain", "/docs": "text/html", "/openapi.json": MEDIA_TYPE}

_DOOR = (
    ErrorCode.UNAUTHORIZED,
    ErrorCode.FORBIDDEN,
    ErrorCode.NOT_FOUND,
    ErrorCode.RATE_LIMITED,
    ErrorCode.INTERNAL,
)
"""What any route may answer."""

encoded = msgspec.json.Encoder().encode


def definition(registry: Registry, tool: Tool) -> dict[str, Any]:
    """A tool as `GET /tools` shows it."""
    return {
        "name": tool.name,
        "toolset": registry.home(tool),
        "title": tool.title,
        "description": tool.text,
        "inputSchema": dict(tool.input),
        "outputSchema": _output(tool),
        "schemaVersion": tool.version,
        "toolingVersion": TOOLING_VERSION,
        "annotations": tool.hints.as_json(),
        "aliases": [alias.name for alias in tool.aliases],
        "errors": sorted(code.name for code in tool.codes),
        "examples": [dict(example) for example in tool.examples],
    }


def document(registry: Registry, *, secured: bool) -> dict[str, Any]:
    """The whole document."""
    schemas: dict[str, Any] = {"Error": _error()}
    paths: dict[str, Any] = {}
    for row in ROUTES:
        if "{name}" in row.path:
            for tool in registry:
                path = row.path.replace("{name}", tool.name)
                paths[path] = {"post": _tool_operation(registry, row, tool, schemas)}
        elif not row.tools or (stands := _stands_for(registry, row)) is not None:
            paths[row.path] = {
                method.lower(): _operation(row)
                if not row.tools or stands is None
                else _named_operation(row, method, stands, schemas)
                for method in row.methods
            }
    paths |= operations(registry.toolsets, _failures(()))
    made: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Cleats",
            "version": SCHEMA_VERSION,
            "description": "Tools for coding agents. Every JSON answer is one envelope.",
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{"url": "/"}],
        "tags": [{"name": "server"}]
        + [{"name": each.name, "description": each.purpose} for each in registry.toolsets],
        "paths": paths,
        "components": {"schemas": schemas},
    }
    if secured:
        made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{"token": []}]
    return made


def _stands_for(registry: Registry, row: Row) -> Tool | None:
    for name in row.tools:
        try:
            return registry.find(name)
        except ToolError:
            continue
    return None


def _operation(row: Row) -> dict[str, Any]:
    if row.gives == "envelope":
        content = {JSON: {"schema": envelope_schema(_RESULTS[row.path])}}
    else:
        content = {_MEDIA[row.path]: {"schema": {"type": ["string", "object"]}}}
    return {
        "operationId": row.endpoint,
        "summary": row.about,
        "tags": ["server"],
        "responses": {
            "200": {"description": "Done.", "content": content},
            **_failures([ErrorCode.UNAVAILABLE] if row.path == "/ready" else ()),
        },
    }


def _tool_operation(
    registry: Registry, row: Row, tool: Tool, schemas: dict[str, Any]
) -> dict[str, Any]:
    stream = row.gives == "stream"
    body: dict[str, Any] = {"schema": _hoisted(tool.input, tool.name, schemas)}
    if tool.examples:
        body["examples"] = {
            f"example{number}": {"value": example.get("arguments", {})}
            for number, example in enumerate(tool.examples, 1)
        }
    return {
        "operationId": f"{tool.name}_stream" if stream else tool.name,
        "summary": tool.title or tool.name,
        "description": tool.text,
        "tags": [registry.home(tool)],
        "requestBody": {"required": True, "content": {JSON: body}},
        "responses": {
            "200": _answer(row, _result(tool), tool.name, schemas),
            **_failures(tool.codes),
        },
    }


def _named_operation(row: Row, method: str, tool: Tool, schemas: dict[str, Any]) -> dict[str, Any]:
    """A route that stands for a tool: the same arguments, and a result of its own."""
    key = row.path.split("/")[1]
    result = {
        "type": "object",
        "required": ["repo", key],
        "properties": {"repo": {"type": "string"}, key: _result(tool)},
    }
    arguments = _with_repo(tool.input)
    made: dict[str, Any] = {
        "operationId": f"{row.endpoint}_{method.lower()}",
        "summary": row.about,
        "description": f"The same as calling `{tool.name}`; `repo` is short for `{REPOSITORY}`.",
        "tags": ["server"],
        "responses": {"200": _answer(row, result, tool.name, schemas), **_failures(tool.codes)},
    }
    if method == "POST":
        schema = _hoisted(arguments, f"{row.endpoint}_body", schemas)
        made["requestBody"] = {"required": True, "content": {JSON: {"schema": schema}}}
    else:
        made["parameters"] = list(_parameters(arguments))
    return made


def _with_repo(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = dict(schema.get("properties", {}))
    if REPOSITORY not in properties:
        return dict(schema)
    properties["repo"] = {"type": "string", "description": f"Short for {REPOSITORY}."}
    return {**schema, "properties": properties, "not": {"required": ["repo", REPOSITORY]}}


def _parameters(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    required = schema.get("required", ())
    for name, rule in schema.get("properties", {}).items():
        yield {
            "name": name,
            "in": "query",
            "required": name in required,
            "description": rule.get("description", ""),
            "schema": rule,
        }


def _answer(
    row: Row, result: Mapping[str, Any], name: str, schemas: dict[str, Any]
) -> dict[str, Any]:
    if row.gives == "stream":
        about = "Events start, progress, result or error, done; the data of each is an envelope."
        return {
            "description": about,
            "content": {"text/event-stream": {"schema": _EVENT}},
        }
    schema = _hoisted(envelope_schema(result), f"{name}_answer", schemas)
    return {"description": "Done.", "content": {JSON: {"schema": schema}}}


def _result(tool: Tool) -> Mapping[str, Any]:
    """The schema of `result`: the tool's own payload."""
    if tool.payload in (ENVELOPE, FLAT):
        return tool.output or _ANY
    return _CONTENT if tool.payload.name == "content" else tool.output or _ANY


def _output(tool: Tool) -> dict[str, Any]:
    return envelope_schema(_result(tool))


def _failures(codes: Sequence[ErrorCode] | frozenset[ErrorCode]) -> dict[str, Any]:
    """Every status that an answer may have besides 200, and the codes that come with it."""
    by_status: dict[int, set[str]] = {
        status: {ErrorCode.INVALID_REQUEST.name} for status in (400, 413, 415)
    }
    for code in (*_DOOR, *codes):
        by_status.setdefault(code.http, set()).add(code.name)
    error = {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {
        str(status): {"description": ", ".join(sorted(names)), "content": error}
        for status, names in sorted(by_status.items())
    }


def _error() -> dict[str, Any]:
    properties = {**ENVELOPE_SCHEMA["properties"]}
    del properties["result"]
    return {
        "type": "object",
        "required": ["ok", "error", "_meta"],
        "properties": {**properties, "ok": {"const": False}},
        "additionalProperties": False,
    }


def _hoisted(schema: Mapping[str, Any], name: str, schemas: dict[str, Any]) -> Any:
    """The schema where its local references still hold.

    In a document `#` is the document, so `$defs` move to the components under the schema's name.
    """
    local = schema.get("$defs")
    if not local:
        return schema
    place = f"#/components/schemas/{name}."
    for each, rule in local.items():
        schemas[f"{name}.{each}"] = _moved(rule, place)
    return _moved({key: rule for key, rule in schema.items() if key != "$defs"}, place)


def _moved(value: Any, place: str) -> Any:
    if isinstance(value, Mapping):
        return {
            key: each.replace("#/$defs/", place)
            if key == "$ref" and isinstance(each, str)
            else _moved(each, place)
            for key, each in value.items()
        }
    return [_moved(each, place) for each in value] if isinstance(value, list | tuple) else value

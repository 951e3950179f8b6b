"""The documentation of the API, from the registry and the table of routes: as OpenAPI 3.1, and as one static page."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import msgspec

from cleats.contract.errors import ErrorCode
from cleats.contract.payload import ENVELOPE_SCHEMA, build_envelope_schema
from cleats.contract.registry import Registry
from cleats.contract.tools import Tool
from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from cleats.transports.http.caller_access import REPOSITORY_ARGUMENT
from cleats.transports.http.routes import API_ROUTES, MCP_PATH, ApiRoute, build_operations

MEDIA_TYPE = "application/vnd.oai.openapi+json;version=3.1"
JSON_MEDIA_TYPE = "application/json"


def _object_schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


_ANY_OBJECT_SCHEMA = {"type": "object"}
_OBJECT_LIST_SCHEMA = {"type": "array", "items": _ANY_OBJECT_SCHEMA}
_CONTENT_SCHEMA = _object_schema(content=_OBJECT_LIST_SCHEMA)

_PARTS = msgspec.json.decode(Path(__file__).with_name("openapi_parts.json").read_bytes())
"""Schemas of the results and media types of the server's own routes by path, and the schema of an event."""

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
        "outputSchema": build_envelope_schema(_result_schema(tool)),
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
        elif not row.tools:
            paths[row.path] = {method.lower(): _server_operation(row) for method in row.methods}
        elif route_tools := [registry.find(name) for name in row.tools if registry.has_tool(name)]:
            paths[row.path] = {
                method.lower(): _route_operation(row, method, route_tools[0], schemas) for method in row.methods
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


def _server_operation(row: ApiRoute) -> dict[str, Any]:
    if row.response_kind == "envelope":
        content = {JSON_MEDIA_TYPE: {"schema": build_envelope_schema(_PARTS["results"][row.path])}}
    else:
        content = {_PARTS["media_types"][row.path]: {"schema": {"type": ["string", "object"]}}}
    failures = _failure_responses([ErrorCode.UNAVAILABLE] if row.path == "/ready" else ())
    responses = {"200": {"description": "Done.", "content": content}, **failures}
    return {"operationId": row.endpoint, "summary": row.about, "tags": ["server"], "responses": responses}


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
    result = _object_schema(repo={"type": "string"}, **{key: _result_schema(tool)})
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
        about = rule.get("description", "")
        yield {"name": name, "in": "query", "required": name in required, "description": about, "schema": rule}


def _success_response(row: ApiRoute, result: Mapping[str, Any], name: str, schemas: dict[str, Any]) -> dict[str, Any]:
    if row.response_kind == "stream":
        description = "Events start, progress, result or error, done; the data of each is an envelope."
        return {"description": description, "content": {"text/event-stream": {"schema": _PARTS["event"]}}}
    schema = _hoist_definitions(build_envelope_schema(result), f"{name}_answer", schemas)
    return {"description": "Done.", "content": {JSON_MEDIA_TYPE: {"schema": schema}}}


def _result_schema(tool: Tool) -> Mapping[str, Any]:
    return _CONTENT_SCHEMA if tool.payload.name == "content" else tool.output or _ANY_OBJECT_SCHEMA


def _failure_responses(codes: Sequence[ErrorCode] | frozenset[ErrorCode]) -> dict[str, Any]:
    by_status: dict[int, set[str]] = {status: {ErrorCode.INVALID_REQUEST.name} for status in (400, 413, 415)}
    for code in (*_GUARD_ERRORS, *codes):
        by_status.setdefault(code.http, set()).add(code.name)
    error = {JSON_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {
        str(status): {"description": ", ".join(sorted(names)), "content": error}
        for status, names in sorted(by_status.items())
    }


def _error_schema() -> dict[str, Any]:
    parts = ENVELOPE_SCHEMA["properties"]
    schema = _object_schema(ok={"const": False}, error=parts["error"], _meta=parts["_meta"])
    return schema | {"additionalProperties": False}


def _hoist_definitions(schema: Mapping[str, Any], name: str, schemas: dict[str, Any]) -> Any:
    """Move `$defs` to the components under the schema's name, because in a document `#` is the document."""
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


PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}


def render_page(registry: Registry, routes: Sequence[ApiRoute]) -> str:
    """Render the page."""
    rows = [(", ".join(row.methods), row.path, row.about) for row in routes]
    rows += [(route.method, route.path, route.about) for toolset in registry.toolsets for route in toolset.routes]
    rows.append(("any", MCP_PATH, "MCP over streamable HTTP."))
    names = [escape(tool.name) for tool in registry]
    return Template(Path(__file__).with_name("docs_page.html").read_text("utf-8")).substitute(
        contract=SCHEMA_VERSION,
        build=TOOLING_VERSION,
        routes="\n".join(
            f"<tr><td>{escape(methods)}<td><code>{escape(path)}</code><td>{escape(about)}</tr>"
            for methods, path, about in rows
        ),
        links="\n".join(f"<div><a href='#{name}'>{name}</a></div>" for name in names),
        tools="\n".join(part for tool in registry for part in _render_tool(registry, tool)),
    )


def _render_tool(registry: Registry, tool: Tool) -> Iterator[str]:
    name = escape(tool.name)
    description = escape(tool.current_description.partition("\n\n")[0])
    yield (
        f"<h3 id='{name}'><code>{name}</code></h3>"
        f"<p class=quiet>{escape(registry.find_toolset_name(tool))}, version {tool.version}</p><p>{description}</p>"
    )
    properties: Mapping[str, Mapping[str, Any]] = tool.input.get("properties", {})
    if properties:
        yield "<table><tr><th>Argument<th>Type<th>What it means</tr>"
        required = tool.input.get("required", ())
        for argument, rule in properties.items():
            required_mark = " (required)" if argument in required else ""
            yield (
                f"<tr><td><code>{escape(argument)}</code>{required_mark}<td>{escape(_describe_type(rule))}"
                f"<td>{escape(str(rule.get('description', '')))}</tr>"
            )
        yield "</table>"
    arguments = tool.examples[0].get("arguments", {}) if tool.examples else {}
    body = msgspec.json.encode(arguments).decode().replace("'", "'\\''")
    yield (
        f"<pre>curl -s $URL/tools/{name} -H 'content-type: application/json' "
        f"-d '{escape(body)}'</pre>"
        f"<p class=quiet>Fails with: {', '.join(sorted(code.name for code in tool.codes))}</p>"
    )


def _describe_type(rule: Mapping[str, Any]) -> str:
    if "enum" in rule:
        return " | ".join(map(str, rule["enum"]))
    kind = rule.get("type")
    if kind is None:
        branches = (*rule.get("oneOf", ()), *rule.get("anyOf", ()))
        return " | ".join(dict.fromkeys(map(_describe_type, branches))) or "any"
    return kind if isinstance(kind, str) else " | ".join(kind)

"""Tests of the API's description of itself: `/openapi.json` and `/docs`."""

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from cleats import app
from cleats.contract.registry import Registry
from cleats.contract.tools import Tool, Toolset, arguments
from cleats.settings import Settings
from cleats.transports.http import openapi
from cleats.transports.http.routes import API_ROUTES, label_route
from tests.specs import b
from tests.support.http_client import WebServer, run_web_server
from tests.support.requirements import requirement
from tests.support.servers.surfaces import PROBE_ROUTES as OWN_ROUTES


async def return_nothing(_arguments: Any, _context: Any) -> dict[str, Any]:
    return {}


def build_registry(**tool: Any) -> Registry:
    row: dict[str, Any] = {"name": "t", "description": "T.", "input": arguments(), "run": return_nothing}
    return Registry([Toolset(name="x", purpose="X.", tools=[Tool(**{**row, **tool})])])


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with run_web_server(home=tmp_path_factory.mktemp("documents")) as server:
        yield server


@pytest.fixture(scope="module")
def document(web: WebServer) -> Any:
    reply = web.get("/openapi.json")
    assert reply.headers["content-type"] == "application/vnd.oai.openapi+json;version=3.1"
    return reply.json


def test_every_route_and_every_tool_has_its_operation(web: WebServer, document: Any) -> None:
    tools = web.get("/capabilities").result["tools"]
    expected = {row.path for row in API_ROUTES if "{" not in row.path}
    expected |= {f"/tools/{name}{end}" for name in tools for end in ("", "/stream")}
    expected |= {route.path for route in OWN_ROUTES}

    assert document["openapi"] == "3.1.0"
    assert document["paths"].keys() == expected
    assert document["paths"]["/search"].keys() == {"get", "post"}
    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids))


def test_every_reference_leads_somewhere_and_every_schema_is_one(document: Any) -> None:
    for reference in set(re.findall(r'"\$ref":\s*"#/([^"]+)"', json.dumps(document))):
        place = document
        for part in reference.split("/"):
            place = place[part]
    for path in document["paths"].values():
        for operation in path.values():
            for response in operation["responses"].values():
                for media in response["content"].values():
                    jsonschema.Draft202012Validator.check_schema(media["schema"])


@requirement("b:http:envelope")
def test_the_only_json_without_an_envelope_is_the_divergence_that_the_manifest_names(web: WebServer) -> None:
    replies = {row.path: web.get(row.path) for row in API_ROUTES if row.methods == ("GET",)}

    bare_paths = {
        path for path, reply in replies.items() if "json" in reply.headers["content-type"] and "_meta" not in reply.json
    }
    assert bare_paths == {b.DIVERGENCES["b:http:envelope"].split()[0]}


@requirement("b:http:envelope", "b:http:error-envelope")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/health", None),
        ("GET", "/capabilities", None),
        ("GET", "/tools", None),
        ("GET", "/status", None),
        ("POST", "/search", {"query": "x"}),
        ("POST", "/search", {"query": "none"}),
        ("POST", "/tools/echo", {"text": "x"}),
        ("POST", "/tools/echo", {"text": 7}),
        ("POST", "/tools/hold", {}),
        ("POST", "/tools/text", {}),
        ("POST", "/tools/crash", {}),
        ("POST", "/tools/spill", {}),
    ],
)
def test_answers_are_what_the_document_says(web: WebServer, document: Any, method: str, path: str, body: Any) -> None:
    reply = web.get(path) if method == "GET" else web.post(path, body)
    response_schema = document["paths"][path][method.lower()]["responses"][str(reply.status)]
    schema = {
        **response_schema["content"]["application/json"]["schema"],
        "components": document["components"],
    }

    jsonschema.validate(reply.json, schema)


def test_a_route_whose_tool_is_not_served_is_left_out() -> None:
    openapi_document = openapi.build_document(build_registry(), secured=False)

    assert "/search" not in openapi_document["paths"]
    assert "/status" not in openapi_document["paths"]
    assert "securitySchemes" not in openapi_document["components"]


def test_a_token_is_a_security_scheme() -> None:
    openapi_document = openapi.build_document(build_registry(), secured=True)

    assert openapi_document["components"]["securitySchemes"]["token"] == {"type": "http", "scheme": "bearer"}


def test_definitions_inside_a_schema_move_to_the_components() -> None:
    local = {
        **arguments({"a": {"$ref": "#/$defs/A"}}),
        "$defs": {"A": {"type": "array", "items": {"$ref": "#/$defs/B"}}, "B": {"type": "null"}},
    }
    openapi_document = openapi.build_document(build_registry(input=local), secured=False)

    body = openapi_document["paths"]["/tools/t"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"]["properties"]["a"] == {"$ref": "#/components/schemas/t.A"}
    assert "$defs" not in body["schema"]
    assert openapi_document["components"]["schemas"]["t.A"]["items"] == {"$ref": "#/components/schemas/t.B"}


def test_the_document_of_the_real_tools_is_whole() -> None:
    openapi_document = openapi.build_document(app.build_registry(Settings()), secured=False)

    assert openapi.encode_document(openapi_document)
    assert "/tools/validate_asset" in openapi_document["paths"]


def test_the_page_names_every_route_and_tool_and_needs_nothing_from_elsewhere(web: WebServer) -> None:
    reply = web.get("/docs")
    text = reply.body.decode()

    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert all(f"<code>{row.path}</code>" in text for row in API_ROUTES)
    assert all(f"id='{name}'" in text for name in web.get("/capabilities").result["tools"])
    assert "<script" not in text
    assert "//" not in re.sub(r"https?://json-schema\.org", "", text).replace("<!--", "")


def test_the_bare_address_leads_to_the_page(web: WebServer) -> None:
    reply = web.get("/")

    assert (reply.status, reply.headers["location"]) == (307, "/docs")


def test_the_page_escapes_what_tools_say() -> None:
    text = openapi.render_page(
        build_registry(
            description="<script>alert(1)</script>",
            input=arguments({"<b>": {"type": "string", "description": "'\"&"}}),
            examples=({"arguments": {"<b>": "it's"}},),
        ),
        API_ROUTES,
    )

    assert "<script" not in text
    assert "<b>" not in text


def test_no_foreign_path_becomes_a_series_of_its_own() -> None:
    assert label_route("/tools/anything") == "/tools/{name}"
    assert label_route("/tools/x/stream") == "/tools/{name}/stream"
    assert {label_route(path) for path in ("/x", "/tools/a/b", "/tools/a/b/c", "/mcp/x")} == {"other"}

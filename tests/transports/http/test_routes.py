"""Tests of the routes that a toolset adds: the same checks, plain values, and no conflicts."""

from collections.abc import Iterator

import pytest

from cleats.contract.routes import Route, RouteAnswer, RouteMethod, RouteRequest
from cleats.contract.tools import Toolset
from cleats.transports.http.routes import collect_routes
from tests.support.http_client import JSON_HEADERS, WebServer, run_web_server

TOKEN_HEADERS = {"authorization": "Bearer secret"}


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with run_web_server(
        home=tmp_path_factory.mktemp("routes"),
        CLEATS_HTTP_TOKEN="secret",
        CLEATS_HTTP_BODY_LIMIT="1000",
    ) as server:
        yield server


async def return_nothing(_request: RouteRequest) -> RouteAnswer:
    return RouteAnswer(None)


def build_toolset(*routes: tuple[RouteMethod, str]) -> Toolset:
    return Toolset(
        name="own",
        purpose="",
        tools=[],
        routes=[Route(method, path, return_nothing, "") for method, path in routes],
    )


def test_a_route_of_a_toolset_gets_plain_values_and_answers_with_its_own(web: WebServer) -> None:
    headers = {**JSON_HEADERS, **TOKEN_HEADERS, "cookie": "a=b", "x-more": "1"}
    reply = web.send_request("PATCH", "/own/words/one%20two?a=1&b=", b'["body"]', headers)

    assert (reply.status, reply.headers["x-own"]) == (201, "yes")
    assert reply.json["path"] == {"word": "one two"}
    assert reply.json["query"] == {"a": "1", "b": ""}
    assert reply.json["body"] == ["body"]
    assert "x-more" in reply.json["headers"]
    assert not {"authorization", "cookie"} & set(reply.json["headers"])


def test_a_method_that_brings_no_body_has_none(web: WebServer) -> None:
    reply = web.send_request("GET", "/own/words/x", None, TOKEN_HEADERS)

    assert (reply.status, reply.json["body"]) == (201, None)


@pytest.mark.parametrize(
    ("line", "body", "headers", "expected"),
    [
        ("GET /own/words/x", None, {}, (401, "UNAUTHORIZED")),
        ("GET /own/words/x", None, {**TOKEN_HEADERS, "host": "evil.example"}, (403, "FORBIDDEN")),
        ("GET /own/words/x", None, {**TOKEN_HEADERS, "origin": "http://e.example"}, (403, "FORBIDDEN")),
        ("GET /own/words/x?a=1&a=2", None, TOKEN_HEADERS, (400, "INVALID_REQUEST")),
        ("GET /own/words", None, TOKEN_HEADERS, (404, "NOT_FOUND")),
        ("GET /own/words/x/y", None, TOKEN_HEADERS, (404, "NOT_FOUND")),
        ("POST /own/words", b"x=1", TOKEN_HEADERS, (415, "INVALID_REQUEST")),
        ("POST /own/words", b"{", {**JSON_HEADERS, **TOKEN_HEADERS}, (400, "INVALID_REQUEST")),
        ("POST /own/words", b" " * 1001, {**JSON_HEADERS, **TOKEN_HEADERS}, (413, "INVALID_REQUEST")),
        ("GET /own/words/crash", None, TOKEN_HEADERS, (500, "INTERNAL")),
    ],
)
def test_a_route_of_a_toolset_stands_behind_the_same_door(
    web: WebServer, line: str, body: bytes | None, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    method, path = line.split()
    reply = web.send_request(method, path, body, headers)

    assert (reply.status, reply.error["code"]) == expected


def test_what_a_route_refuses_names_no_place_of_the_machine(web: WebServer) -> None:
    reply = web.send_request("GET", "/own/words/leak", None, TOKEN_HEADERS)

    assert (reply.status, reply.error["message"]) == (404, "not in <path>")


def test_a_preflight_says_the_methods_of_such_a_route(web: WebServer) -> None:
    def list_allowed_methods(path: str) -> str:
        return web.send_request("OPTIONS", path).headers["access-control-allow-methods"]

    assert list_allowed_methods("/own/words/x") == "GET, PATCH, OPTIONS"
    assert list_allowed_methods("/own/words") == "POST, OPTIONS"
    assert list_allowed_methods("/health") == "GET, POST, OPTIONS"


def test_such_routes_are_documented_and_counted_under_their_own_path(web: WebServer) -> None:
    web.send_request("GET", "/own/words/counted", None, TOKEN_HEADERS)
    paths = web.send_request("GET", "/openapi.json", None, TOKEN_HEADERS).json["paths"]
    page = web.send_request("GET", "/docs", None, TOKEN_HEADERS).body.decode()
    figures = web.send_request("GET", "/metrics", None, TOKEN_HEADERS).body.decode()

    word = paths["/own/words/{word}"]
    assert word.keys() == {"get", "patch"}
    assert "201" in word["get"]["responses"]
    assert [(parameter["name"], parameter["in"]) for parameter in word["get"]["parameters"]] == [
        ("word", "path"),
        ("a", "query"),
    ]
    assert word["patch"]["requestBody"]["content"]["application/json"]["schema"] == {"type": "array"}
    assert "<code>/own/words/{word}</code>" in page
    assert 'method="GET",route="/own/words/{word}",status="201"' in figures
    assert "counted" not in figures


@pytest.mark.parametrize(
    "routes",
    [
        [("GET", "/health")],
        [("POST", "/tools/search")],
        [("GET", "/mcp")],
        [("GET", "own")],
        [("GET", "/own/")],
        [("GET", "/own/{a}{b}")],
        [("GET", "/own/{a}"), ("GET", "/own/{b}")],
    ],
)
def test_a_route_that_stands_in_the_way_of_another_is_refused_at_the_start(
    routes: list[tuple[RouteMethod, str]],
) -> None:
    with pytest.raises(ValueError, match="route"):
        collect_routes([build_toolset(*routes)])


def test_routes_that_differ_in_method_or_path_live_beside_each_other() -> None:
    loaded_routes = collect_routes([build_toolset(("GET", "/own/{a}"), ("PATCH", "/own/{a}"), ("GET", "/own/x/y"))])

    assert len(loaded_routes) == 3

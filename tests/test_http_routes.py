"""Routes that a toolset brings: the same door, plain values, and no way to stand in another's."""

from collections.abc import Iterator

import pytest

from cleats.contract.routes import Route, RouteAnswer, RouteMethod, RouteRequest
from cleats.contract.tools import Toolset
from cleats.transports.http.toolset_routes import brought
from tests.web import JSON, Web, serving

TOKEN = {"authorization": "Bearer secret"}


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with serving(
        home=tmp_path_factory.mktemp("routes"),
        CLEATS_HTTP_TOKEN="secret",
        CLEATS_HTTP_BODY_LIMIT="1000",
    ) as server:
        yield server


async def nothing(_request: RouteRequest) -> RouteAnswer:
    return RouteAnswer(None)


def toolset(*routes: tuple[RouteMethod, str]) -> Toolset:
    return Toolset(
        name="own",
        purpose="",
        tools=[],
        routes=[Route(method, path, nothing, "") for method, path in routes],
    )


def test_a_route_of_a_toolset_gets_plain_values_and_answers_with_its_own(web: Web) -> None:
    headers = {**JSON, **TOKEN, "cookie": "a=b", "x-more": "1"}
    reply = web.ask("PATCH", "/own/words/one%20two?a=1&b=", b'["body"]', headers)

    assert (reply.status, reply.headers["x-own"]) == (201, "yes")
    assert reply.json["path"] == {"word": "one two"}
    assert reply.json["query"] == {"a": "1", "b": ""}
    assert reply.json["body"] == ["body"]
    assert "x-more" in reply.json["headers"]
    assert not {"authorization", "cookie"} & set(reply.json["headers"])


def test_a_method_that_brings_no_body_has_none(web: Web) -> None:
    reply = web.ask("GET", "/own/words/x", None, TOKEN)

    assert (reply.status, reply.json["body"]) == (201, None)


@pytest.mark.parametrize(
    ("line", "body", "headers", "expected"),
    [
        ("GET /own/words/x", None, {}, (401, "UNAUTHORIZED")),
        ("GET /own/words/x", None, {**TOKEN, "host": "evil.example"}, (403, "FORBIDDEN")),
        ("GET /own/words/x", None, {**TOKEN, "origin": "http://e.example"}, (403, "FORBIDDEN")),
        ("GET /own/words/x?a=1&a=2", None, TOKEN, (400, "INVALID_REQUEST")),
        ("GET /own/words", None, TOKEN, (404, "NOT_FOUND")),
        ("GET /own/words/x/y", None, TOKEN, (404, "NOT_FOUND")),
        ("POST /own/words", b"x=1", TOKEN, (415, "INVALID_REQUEST")),
        ("POST /own/words", b"{", {**JSON, **TOKEN}, (400, "INVALID_REQUEST")),
        ("POST /own/words", b" " * 1001, {**JSON, **TOKEN}, (413, "INVALID_REQUEST")),
        ("GET /own/words/crash", None, TOKEN, (500, "INTERNAL")),
    ],
)
def test_a_route_of_a_toolset_stands_behind_the_same_door(
    web: Web, line: str, body: bytes | None, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    method, path = line.split()
    reply = web.ask(method, path, body, headers)

    assert (reply.status, reply.error["code"]) == expected


def test_what_a_route_refuses_names_no_place_of_the_machine(web: Web) -> None:
    reply = web.ask("GET", "/own/words/leak", None, TOKEN)

    assert (reply.status, reply.error["message"]) == (404, "not in <path>")


def test_a_preflight_says_the_methods_of_such_a_route(web: Web) -> None:
    def allowed(path: str) -> str:
        return web.ask("OPTIONS", path).headers["access-control-allow-methods"]

    assert allowed("/own/words/x") == "GET, PATCH, OPTIONS"
    assert allowed("/own/words") == "POST, OPTIONS"
    assert allowed("/health") == "GET, POST, OPTIONS"


def test_such_routes_are_documented_and_counted_under_their_own_path(web: Web) -> None:
    web.ask("GET", "/own/words/counted", None, TOKEN)
    paths = web.ask("GET", "/openapi.json", None, TOKEN).json["paths"]
    page = web.ask("GET", "/docs", None, TOKEN).body.decode()
    figures = web.ask("GET", "/metrics", None, TOKEN).body.decode()

    word = paths["/own/words/{word}"]
    assert word.keys() == {"get", "patch"}
    assert "201" in word["get"]["responses"]
    assert [(each["name"], each["in"]) for each in word["get"]["parameters"]] == [
        ("word", "path"),
        ("a", "query"),
    ]
    assert word["patch"]["requestBody"]["content"]["application/json"]["schema"] == {
        "type": "array"
    }
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
        brought([toolset(*routes)])


def test_routes_that_differ_in_method_or_path_live_beside_each_other() -> None:
    found = brought([toolset(("GET", "/own/{a}"), ("PATCH", "/own/{a}"), ("GET", "/own/x/y"))])

    assert len(found) == 3

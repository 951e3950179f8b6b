"""Tests of the HTTP API guard: origins, tokens, hosts, repositories, paths; and their order."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.transports.http.caller_access import PathGuard, PathRedactor
from cleats.transports.http.tokens import AccessPolicy, is_local_host
from tests.support.http_client import CLEATS_COMMAND, JSON_HEADERS, WebServer, run_web_server
from tests.support.requirements import requirement
from tests.support.shell import Shell

ACCESS_TOKEN = "correct horse"
PAGE_ORIGIN = "https://app.example"


@pytest.fixture(scope="module")
def guarded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """Start a server with a token, one foreign origin and a small body limit."""
    with run_web_server(
        home=tmp_path_factory.mktemp("guarded"),
        CLEATS_HTTP_TOKEN=ACCESS_TOKEN,
        CLEATS_HTTP_ORIGINS=f"{PAGE_ORIGIN},bare.example",
        CLEATS_HTTP_HOSTS="cleats.example",
    ) as server:
        yield server


def build_bearer_header(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


# Tokens


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/health"),
        ("GET", "/metrics"),
        ("GET", "/docs"),
        ("GET", "/openapi.json"),
        ("GET", "/tools"),
        ("POST", "/tools/echo"),
        ("POST", "/search"),
        ("GET", "/no/such/route"),
        ("POST", "/mcp"),
    ],
)
@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer wrong", f"Basic {ACCESS_TOKEN}", f"Bearer {ACCESS_TOKEN}x", "Bearer \xe9\xe9"],
)
def test_without_the_token_every_route_is_401(
    guarded_server: WebServer, method: str, path: str, authorization: str
) -> None:
    reply = guarded_server.send_request(method, path, b"{}", {**JSON_HEADERS, "authorization": authorization})

    assert (reply.status, reply.error["code"]) == (401, "UNAUTHORIZED")
    assert reply.headers["www-authenticate"] == "Bearer"


def test_a_wrong_token_and_none_get_different_words(guarded_server: WebServer) -> None:
    none = guarded_server.get("/health")
    wrong = guarded_server.get("/health", **build_bearer_header("wrong"))

    assert none.status == wrong.status == 401
    assert none.error["message"] == "A token is required. Send it as Authorization: Bearer TOKEN."
    assert wrong.error["message"] == "Invalid token. Send it as Authorization: Bearer TOKEN."


def test_with_the_token_requests_go_in(guarded_server: WebServer) -> None:
    reply = guarded_server.send_request(
        "POST", "/tools/echo", b'{"text":"x"}', {**JSON_HEADERS, **build_bearer_header(ACCESS_TOKEN)}
    )

    assert reply.result["text"] == "x"
    assert (
        guarded_server.send_request("GET", "/health", None, {"authorization": f"bearer {ACCESS_TOKEN}"}).status == 200
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_a_server_for_the_network_does_not_start_without_a_token(shell: Shell, host: str) -> None:
    process = shell.run("http", "--host", host, "--port", "0")

    assert process.returncode == 2
    assert "CLEATS_HTTP_TOKEN" in process.stderr
    assert process.stdout == ""


def test_a_server_for_the_network_starts_with_a_token(tmp_path: Path) -> None:
    command = (*CLEATS_COMMAND, "assets", "--host", "0.0.0.0")
    with run_web_server(*command, home=tmp_path, CLEATS_HTTP_TOKEN=ACCESS_TOKEN) as web:
        assert web.get("/health", Host="any.example").status == 401
        assert web.get("/health", Host="any.example", **build_bearer_header(ACCESS_TOKEN)).status == 200


def test_addresses_of_this_machine_are_told_from_others() -> None:
    assert all(map(is_local_host, ["localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]"]))
    assert not any(map(is_local_host, ["0.0.0.0", "::", "10.0.0.1", "example.com", "", "localhost.x"]))


# MCP has the same door


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example", **build_bearer_header(ACCESS_TOKEN)}, 403),
        ({"origin": "null", **build_bearer_header(ACCESS_TOKEN)}, 403),
        ({"host": "evil.example", **build_bearer_header(ACCESS_TOKEN)}, 403),
        (build_bearer_header("wrong"), 401),
    ],
)
def test_what_the_door_refuses_does_not_reach_mcp(
    guarded_server: WebServer, method: str, headers: dict[str, str], status: int
) -> None:
    reply = guarded_server.send_request(method, "/mcp", b"{}", {**JSON_HEADERS, **headers})

    assert (reply.status, reply.json["ok"]) == (status, False)
    assert "mcp-session-id" not in reply.headers


# Origins


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://app.example.evil", "x"])
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_an_origin_that_is_not_allowed_is_403_even_with_the_token(
    guarded_server: WebServer, origin: str, method: str
) -> None:
    reply = guarded_server.send_request(
        method, "/health", None, {"origin": origin, **build_bearer_header(ACCESS_TOKEN)}
    )

    assert (reply.status, reply.error["code"]) == (403, "FORBIDDEN")
    assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("origin", [PAGE_ORIGIN, "https://bare.example", "http://bare.example:8080"])
def test_an_allowed_origin_is_named_in_every_answer(guarded_server: WebServer, origin: str) -> None:
    good = guarded_server.send_request("GET", "/health", None, {"origin": origin, **build_bearer_header(ACCESS_TOKEN)})
    bad = guarded_server.send_request("GET", "/health", None, {"origin": origin})

    assert (good.status, bad.status) == (200, 401)
    for reply in (good, bad):
        assert reply.headers["access-control-allow-origin"] == origin
        assert reply.headers["vary"] == "Origin"


def test_a_preflight_is_204_without_a_token_on_any_path(guarded_server: WebServer) -> None:
    for path in ("/search", "/no/such/route"):
        reply = guarded_server.send_request("OPTIONS", path, None, {"origin": PAGE_ORIGIN})

        assert (reply.status, reply.body) == (204, b"")
        assert reply.headers["access-control-allow-origin"] == PAGE_ORIGIN
        assert reply.headers["access-control-allow-methods"] == "GET, POST, OPTIONS"
        assert reply.headers["access-control-allow-headers"] == "Content-Type, Authorization"
    mcp = guarded_server.send_request("OPTIONS", "/mcp", None, {"origin": PAGE_ORIGIN})
    assert "Mcp-Session-Id" in mcp.headers["access-control-allow-headers"]
    assert guarded_server.send_request("OPTIONS", "/search").status == 204


def test_pages_of_the_server_itself_may_use_it_but_not_under_a_foreign_name() -> None:
    policy = AccessPolicy(host="127.0.0.1")

    assert policy.allows_origin("http://127.0.0.1:7345", "127.0.0.1:7345")
    assert policy.allows_origin("http://localhost:7345", "localhost:7345")
    assert not policy.allows_origin("http://localhost:3000", "localhost:7345")
    assert not policy.allows_origin("http://evil.example:7345", "evil.example:7345")
    assert not policy.allows_origin("http://[", "localhost")
    assert AccessPolicy(host="127.0.0.1", origins=["*"]).allows_origin("null", "x")


# Hosts


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1.evil.example"])
def test_a_local_server_does_not_answer_to_foreign_names(guarded_server: WebServer, host: str) -> None:
    reply = guarded_server.send_request("GET", "/health", None, {"host": host, **build_bearer_header(ACCESS_TOKEN)})

    assert (reply.status, reply.error["code"]) == (403, "FORBIDDEN")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1:1", "[::1]:8080", "cleats.example"])
def test_it_answers_to_its_own_names(guarded_server: WebServer, host: str) -> None:
    assert (
        guarded_server.send_request("GET", "/health", None, {"host": host, **build_bearer_header(ACCESS_TOKEN)}).status
        == 200
    )


def test_space_around_a_header_is_not_part_of_it(guarded_server: WebServer) -> None:
    answer = guarded_server.exchange_bytes(
        b"GET /health HTTP/1.1\r\nHost:  localhost \t\r\n"
        b"Authorization: Bearer %b  \r\nConnection: close\r\n\r\n" % ACCESS_TOKEN.encode()
    )

    assert answer.startswith(b"HTTP/1.1 200 ")


def test_two_hosts_are_none(guarded_server: WebServer) -> None:
    answer = guarded_server.exchange_bytes(
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n"
        b"Authorization: Bearer %b\r\nConnection: close\r\n\r\n" % ACCESS_TOKEN.encode()
    )

    assert answer.startswith(b"HTTP/1.1 400 ")


# The order


def test_the_checks_come_in_their_order(guarded_server: WebServer) -> None:
    """Send requests that are wrong in every way from some check on; the earliest check answers."""
    wrong = {"origin": "https://evil.example", "host": "evil.example", "content-type": "text/plain"}
    statuses = []
    for fixed in (
        {},
        {"origin": PAGE_ORIGIN},
        {"origin": PAGE_ORIGIN, **build_bearer_header(ACCESS_TOKEN)},
        {"origin": PAGE_ORIGIN, **build_bearer_header(ACCESS_TOKEN), "host": "localhost"},
    ):
        reply = guarded_server.send_request("POST", "/no/such/route", b"{", {**wrong, **fixed})
        statuses.append(reply.status)
    inside = {"origin": PAGE_ORIGIN, **build_bearer_header(ACCESS_TOKEN), "host": "localhost"}
    large = {**inside, "content-length": "1000001"}
    for headers, body in (
        ({**large, "content-type": "text/plain"}, b""),
        ({**large, **JSON_HEADERS}, b""),
        ({**inside, **JSON_HEADERS}, b"{"),
        ({**inside, **JSON_HEADERS}, b"{}"),
    ):
        statuses.append(guarded_server.send_request("POST", "/tools/echo", body, headers).status)

    assert statuses == [403, 401, 403, 404, 415, 413, 400, 400]


# Repositories


@pytest.fixture
def fenced_server(tmp_path: Path) -> Iterator[tuple[WebServer, Path]]:
    """Start a server whose repository and allowed root hold folders, and links that lead out."""
    for folder in ("repo/sub", "roots/other", "outside", "roots2"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "repo" / "file").touch()
    (tmp_path / "repo" / "escape").symlink_to(tmp_path / "outside")
    (tmp_path / "alias").symlink_to(tmp_path / "roots" / "other")
    with run_web_server(
        home=tmp_path,
        CLEATS_PROJECT_DIR=str(tmp_path / "repo"),
        CLEATS_HTTP_ROOTS=str(tmp_path / "roots"),
    ) as web:
        yield web, tmp_path


@requirement("b:http:403-repo")
def test_a_repository_must_be_inside_the_fence_wherever_links_lead(
    fenced_server: tuple[WebServer, Path],
) -> None:
    web, home = fenced_server
    expected_statuses = {
        "repo": 200,
        "repo/sub": 200,
        "repo/sub/../sub": 200,
        "roots/other": 200,
        "alias": 200,
        "repo/file": 400,
        "repo/nothing": 400,
        "roots/nothing": 400,
        "outside": 403,
        "repo/escape": 403,
        "repo/../outside": 403,
        "roots2": 403,
        "no/such/place": 403,
    }
    codes = {200: None, 400: "INVALID_REQUEST", 403: "FORBIDDEN"}

    for path, status in expected_statuses.items():
        place = str(home / path)
        for reply in (
            web.post("/search", {"query": "x", "repoPath": place}),
            web.post("/search", {"query": "x", "repo": place}),
            web.get(f"/search?q=x&repo={place}"),
            web.get(f"/status?repo={place}"),
            web.call_tool("search", query="x", repoPath=place),
        ):
            assert reply.status == status, path
            assert reply.json.get("error", {}).get("code") == codes[status]
        stream = web.post("/search/stream", {"query": "x", "repo": place})
        assert stream.status == status


def test_a_relative_repository_is_looked_for_in_the_default_one(fenced_server: tuple[WebServer, Path]) -> None:
    web, home = fenced_server

    assert web.get("/status?repo=sub").result["repo"] == str(home / "repo" / "sub")
    assert web.get("/status?repo=../outside").status == 403


@pytest.mark.parametrize("path_text", ["a\0b", "a" * 300, "a/" * 3000, "a/" * 500_000], ids=str.__len__)
def test_a_path_that_cannot_be_one_is_an_invalid_request(tmp_path: Path, path_text: str) -> None:
    with pytest.raises(ToolError) as error_info:
        PathGuard(tmp_path).resolve_repository(path_text)

    assert error_info.value.code is ErrorCode.INVALID_REQUEST


# What errors say


def test_an_error_leaves_out_paths_outside_the_repository(fenced_server: tuple[WebServer, Path]) -> None:
    web, home = fenced_server

    error = web.call_tool("leak").error
    inside = f"{home}/repo/a.py"
    assert error["message"] == f"neither <path> nor {inside}:12, see /query"
    assert error["details"] == {"paths": ["<path>", inside], "pointer": "/etcetera/x", "retryable": False}


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("plain", "plain"),
        ("open '/etc/passwd' failed", "open '<path>' failed"),
        ("/etc/passwd: no", "<path>: no"),
        ("see /etc/passwd.", "see <path>."),
        ("/repo/a /repos/b /repo/../etc/x", "/repo/a /repos/b <path>"),
        ("/etc/../repo/a", "/etc/../repo/a"),
        ("/usr/../etc/x", "<path>"),
        ("C:\\Users\\me", "<path>"),
        ("a/b and https://x.example/etc/y", "a/b and https://x.example/etc/y"),
        ("/properties/0/name", "/properties/0/name"),
    ],
)
def test_paths_are_told_from_pointers_routes_and_addresses(text: str, redacted: str) -> None:
    assert PathRedactor([Path("/repo")]).redact_text(text) == redacted


@pytest.mark.skipif(sys.platform != "linux", reason="one address is enough")
def test_a_port_that_is_taken_is_an_error_with_exit_code_2(shell: Shell, tmp_path: Path) -> None:
    with run_web_server(*CLEATS_COMMAND, "assets", home=tmp_path) as web:
        process = shell.run("http", "assets", "--port", str(web.port))

    assert process.returncode == 2
    assert process.stderr == (
        f"Error: cannot listen on 127.0.0.1 port {web.port}: the port is in use; --port 0 selects a free one\n"
    )

"""Tests of access by token: its tools and repositories and no more, on every surface."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from cleats.transports.http.tokens import AccessToken, format_entry, hash_token
from tests.support.http_client import CLEATS_COMMAND, JSON_HEADERS, HttpReply, WebServer, run_web_server
from tests.support.mcp_client import INITIALIZE_PARAMS
from tests.support.paths import REPOSITORY_ROOT

ASSET_TOOLS = {"list_schemas", "get_schema", "list_examples", "get_example", "validate_asset"}


class TokenServer:
    """A server with some tokens, and requests that use them."""

    def __init__(self, web: WebServer, home: Path) -> None:
        self.web = web
        self.home = home

    def get(self, token_name: str, path: str, **headers: str) -> HttpReply:
        return self.web.send_request("GET", path, None, {**build_bearer_header(token_name), **headers})

    def call(self, token_name: str, tool: str, /, **arguments: Any) -> HttpReply:
        body = json.dumps(arguments).encode()
        return self.web.send_request(
            "POST", f"/tools/{tool}", body, {**JSON_HEADERS, **build_bearer_header(token_name)}
        )

    @asynccontextmanager
    async def connect_mcp(self, token_name: str, mode: Any = "auto") -> AsyncIterator[Client]:
        async with (
            create_mcp_http_client(headers=build_bearer_header(token_name)) as http,
            Client(streamable_http_client(f"{self.web.url}/mcp", http_client=http), mode=mode) as client,
        ):
            yield client


def build_bearer_header(token_name: str) -> dict[str, str]:
    return {"authorization": f"Bearer secret of {token_name}"}


def build_token_row(name: str, **fields: Any) -> str:
    return format_entry(AccessToken(name=name, sha256=hash_token(f"secret of {name}"), **fields))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenServer]:
    home = tmp_path_factory.mktemp("shares")
    for name in ("own", "theirs"):
        (home / name / ".git").mkdir(parents=True)
        (home / name / "a.py").write_text(f"def found_in_{name}():\n    pass\n")
    tokens = home / "tokens.toml"
    tokens.write_text(
        build_token_row("all")
        + build_token_row("assets", toolsets=("assets",))
        + build_token_row("code", toolsets=("code",))
        + build_token_row("theirs", repositories=((home / "theirs").resolve(),))
        + build_token_row("nothing", toolsets=())
        + build_token_row("slow", per_minute=0.001, burst=2)
    )
    tokens.chmod(0o600)
    with run_web_server(
        *CLEATS_COMMAND,
        "--repo",
        str(home / "own"),
        home=home,
        CLEATS_HTTP_TOKENS=str(tokens),
        CLEATS_HTTP_ROOTS=str(home),
        CLEATS_INDEX_WORKERS="1",
        CLEATS_INDEX_LINT="off",
        CLEATS_INDEX_GIT="off",
        CLEATS_TELEMETRY="off",
        CLEATS_SKILL_TOOLS="all",
        CLEATS_SKILL_DIRS=str(REPOSITORY_ROOT / "examples" / "skills"),
    ) as web:
        token_server = TokenServer(web, home)
        for name in ("own", "theirs"):
            assert token_server.call("all", "build_index", repoPath=str(home / name)).status == 200
        yield token_server


# Tools


def test_only_the_tools_of_a_token_are_listed_anywhere(server: TokenServer) -> None:
    server.call("all", "skill_search", query="x")  # for the metrics to know of
    tool_names = {tool["name"] for tool in server.get("assets", "/tools").result["tools"]}
    paths = server.get("assets", "/openapi.json").json["paths"]
    page = server.get("assets", "/docs").body.decode()
    figures = server.get("assets", "/metrics").body.decode()

    assert tool_names >= ASSET_TOOLS
    assert not tool_names & {"search", "skill", "build_index"}
    assert set(server.get("assets", "/capabilities").result["tools"]) == tool_names
    assert {path.split("/")[2] for path in paths if path.startswith("/tools/")} == tool_names
    assert not {"/search", "/status"} & paths.keys()
    assert "skill_search" not in page
    assert "skill_search" not in figures
    assert 'tool="skill_search"' in server.get("all", "/metrics").body.decode()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/tools/search"),
        ("POST", "/tools/search/stream"),
        ("POST", "/tools/skill"),
        ("POST", "/tools/index_build"),
        ("POST", "/search"),
        ("POST", "/search/stream"),
        ("GET", "/search?q=x"),
        ("GET", "/status"),
        ("GET", "/status/stream"),
    ],
)
def test_a_tool_of_another_token_is_not_there(server: TokenServer, method: str, path: str) -> None:
    body = b'{"query": "x", "name": "release-notes"}'
    reply = server.web.send_request(method, path, body, {**JSON_HEADERS, **build_bearer_header("assets")})

    assert (reply.status, reply.error["code"]) == (404, "UNKNOWN_TOOL")


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_over_mcp_a_token_has_the_same_tools_and_no_more(server: TokenServer, mode: Any) -> None:
    async with server.connect_mcp("assets", mode) as client:
        tool_names = {tool.name for tool in (await client.list_tools()).tools}
        done = await client.call_tool("list_schemas", {})
        with pytest.raises(MCPError) as error_info:
            await client.call_tool("skill", {"name": "release-notes"})

    assert tool_names == set(server.get("assets", "/capabilities").result["tools"])
    assert not done.is_error
    assert error_info.value.error.data["code"] == "UNKNOWN_TOOL"


@pytest.mark.anyio
async def test_what_a_toolset_offers_besides_tools_is_not_there_either(server: TokenServer) -> None:
    async with server.connect_mcp("all") as client:
        assert (await client.list_prompts()).prompts
        assert "one find_code call" in (client.instructions or "")
    async with server.connect_mcp("assets") as client:
        assert "skills" not in (client.instructions or "")
        assert "find_code" not in (client.instructions or "")
        with pytest.raises(MCPError):
            await client.list_prompts()


def test_a_server_says_to_a_caller_only_what_tools_the_caller_has(server: TokenServer) -> None:
    tools_by_name = server.call("code", "check_status").result["tools"]

    assert set(tools_by_name) == set(server.get("code", "/capabilities").result["tools"])
    assert "skill" not in tools_by_name
    assert "skill" in server.call("all", "check_status").result["tools"]


def test_routes_of_a_toolset_are_for_tokens_that_have_it(server: TokenServer) -> None:
    assert server.get("all", "/api/v1/runs").status == 200
    reply = server.get("assets", "/api/v1/runs")

    assert (reply.status, reply.error["code"]) == (404, "NOT_FOUND")
    assert "/api/v1/runs" in server.get("all", "/openapi.json").json["paths"]
    assert "/api/v1/runs" not in server.get("assets", "/openapi.json").json["paths"]


def test_a_token_without_toolsets_still_sees_that_the_server_is_up(server: TokenServer) -> None:
    assert server.get("nothing", "/health").status == 200
    assert server.get("nothing", "/tools").result == {"tools": []}


def test_a_session_of_one_token_is_nothing_to_another(server: TokenServer) -> None:
    accept = {**JSON_HEADERS, "accept": "application/json, text/event-stream"}
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE_PARAMS}
    listing = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).encode()
    handshake_reply = server.web.send_request(
        "POST", "/mcp", json.dumps(opening).encode(), {**accept, **build_bearer_header("all")}
    )
    session = {**accept, "mcp-session-id": handshake_reply.headers["mcp-session-id"]}
    server.web.send_request(
        "POST",
        "/mcp",
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        {**session, **build_bearer_header("all")},
    )

    assert server.web.send_request("POST", "/mcp", listing, {**session, **build_bearer_header("all")}).status == 200
    assert server.web.send_request("POST", "/mcp", listing, {**session, **build_bearer_header("theirs")}).status == 404
    assert server.web.send_request("DELETE", "/mcp", None, {**session, **build_bearer_header("theirs")}).status == 404


@pytest.mark.parametrize("token", ["", "secret of", hash_token("secret of all"), "secret of nobody"])
def test_what_is_no_token_opens_nothing(server: TokenServer, token: str) -> None:
    reply = server.web.get("/tools", authorization=f"Bearer {token}")

    assert (reply.status, reply.error["code"]) == (401, "UNAUTHORIZED")


# Repositories


def test_a_token_may_name_its_own_repositories_and_no_other(server: TokenServer) -> None:
    own_root, their_root = server.home / "own", server.home / "theirs"

    for path in (str(own_root), "../own", str(server.home), "/"):
        reply = server.call("theirs", "search", query="found", repoPath=path)
        assert (reply.status, reply.error["code"]) == (403, "FORBIDDEN"), path
        assert str(own_root) not in reply.error["message"]
    assert server.call("theirs", "search", query="found", repoPath=str(their_root)).status == 200
    assert server.call("all", "search", query="found", repoPath=str(their_root)).status == 200


def test_a_call_that_names_no_repository_is_about_the_tokens_own(server: TokenServer) -> None:
    reply = server.call("theirs", "search", query="found")
    short = server.get("theirs", "/search?q=found")
    everyone = server.call("all", "search", query="found")

    assert reply.json["_meta"]["repo"] == str(server.home / "theirs")
    assert short.result["repo"] == str(server.home / "theirs")
    assert "found_in_theirs" in reply.body.decode()
    assert "own" not in reply.body.decode().replace("unknown", "")
    assert everyone.json["_meta"]["repo"] == str(server.home / "own")


@pytest.mark.anyio
async def test_the_repositories_of_a_token_hold_over_mcp_as_well(server: TokenServer) -> None:
    async with server.connect_mcp("theirs") as client:
        other = await client.call_tool("search", {"query": "found", "repoPath": str(server.home / "own")})
        own_result = await client.call_tool("search", {"query": "found"})

    assert other.structured_content is not None
    assert other.structured_content["error"]["code"] == "FORBIDDEN"
    assert own_result.structured_content is not None
    assert own_result.structured_content["_meta"]["repo"] == str(server.home / "theirs")


def test_reports_tell_a_token_of_its_own_repositories_only(server: TokenServer) -> None:
    roots = {
        token_name: {
            repository["root"] for repository in server.call(token_name, "report_artifacts").result["allRepos"]
        }
        for token_name in ("all", "theirs")
    }

    assert roots["all"] == {str(server.home / "own"), str(server.home / "theirs")}
    assert roots["theirs"] == {str(server.home / "theirs")}
    assert "repository" in server.call("all", "check_status").result
    assert "repository" not in server.call("theirs", "check_status").result


# Rates


@pytest.mark.parametrize("path", ["/health", "/tools", "/mcp", "/no/such/route"])
def test_a_token_that_had_its_requests_is_429_on_every_route(server: TokenServer, path: str) -> None:
    for _ in range(2):
        server.get("slow", "/health")
    reply = server.get("slow", path)

    assert (reply.status, reply.error["code"]) == (429, "RATE_LIMITED")
    assert reply.error["details"]["retryable"] is True
    assert int(reply.headers["retry-after"]) == reply.error["details"]["retryAfter"] > 0
    assert server.get("all", "/health").status == 200


def test_what_does_not_get_past_the_door_uses_up_nothing(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(build_token_row("slow", per_minute=0.001, burst=1))
    tokens.chmod(0o600)
    with run_web_server(*CLEATS_COMMAND, "assets", home=tmp_path, CLEATS_HTTP_TOKENS=str(tokens)) as web:
        one = TokenServer(web, tmp_path)
        for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
            assert one.get("slow", "/health", **headers).status == 403
        assert one.get("nobody", "/health").status == 401

        assert one.get("slow", "/health").status == 200
        assert one.get("slow", "/health").status == 429


def test_a_server_for_the_network_starts_with_a_file_of_tokens(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(build_token_row("all"))
    tokens.chmod(0o600)
    command = (*CLEATS_COMMAND, "assets", "--host", "0.0.0.0")
    with run_web_server(*command, home=tmp_path, CLEATS_HTTP_TOKENS=str(tokens)) as web:
        assert web.get("/health").status == 401
        assert web.get("/health", **build_bearer_header("all")).status == 200

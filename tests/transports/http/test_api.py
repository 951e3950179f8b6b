"""Tests of the HTTP API on real processes: routes, envelopes, statuses and streams."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from tests.support import process_trees as trees
from tests.support.http_client import CLEATS_COMMAND, JSON_HEADERS, WebServer, run_web_server
from tests.support.requirements import requirement
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def web(home: Path) -> Iterator[WebServer]:
    """Serve the API for every test that leaves the server unchanged."""
    with run_web_server(home=home) as server:
        yield server


# Fixed routes


@requirement("b:http:health", "b:http:envelope", "b:versions:one-source")
def test_health_says_how_long_the_server_is_up(web: WebServer) -> None:
    reply = web.get("/health", x_request_id="my-id")

    assert reply.status == 200
    assert reply.result.keys() == {"uptimeMs"}
    assert reply.result["uptimeMs"] >= 0
    meta = reply.json["_meta"]
    assert (meta["schemaVersion"], meta["toolingVersion"]) == (SCHEMA_VERSION, TOOLING_VERSION)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", meta["ts"])
    assert meta["requestId"] == "my-id"


def test_an_id_that_could_spoil_a_log_is_not_taken(web: WebServer) -> None:
    assert "requestId" not in web.get("/health", x_request_id="two words").json["_meta"]


@requirement("b:http:envelope")
def test_capabilities_and_tools_say_what_is_served(web: WebServer) -> None:
    capabilities = web.get("/capabilities").result
    tools = {tool["name"]: tool for tool in web.get("/tools").result["tools"]}

    assert capabilities["schemaVersion"] == SCHEMA_VERSION
    assert capabilities["transport"] == "http"
    assert capabilities["capabilities"]["mcp"]["sdk"] is True
    assert capabilities["tools"]["echo"] == tools["echo"]["schemaVersion"] == 3
    assert tools["echo"]["toolingVersion"] == TOOLING_VERSION
    assert tools["echo"]["inputSchema"]["required"] == ["text"]
    assert tools["echo"]["aliases"] == ["say"]


def test_metrics_are_prometheus_text(web: WebServer) -> None:
    web.call_tool("echo", text="x")
    web.get("/no/such/route")
    reply = web.get("/metrics")
    samples = dict(line.rsplit(" ", 1) for line in reply.body.decode().splitlines() if line[0] != "#")

    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert int(samples['cleats_calls_total{tool="echo",outcome="done"}']) >= 1
    route = '{method="POST",route="/tools/{name}",status="200"}'
    assert int(samples[f"cleats_http_requests_total{route}"]) >= 1
    assert int(samples["cleats_http_open"]) == 1
    assert not any("/no/such" in name for name in samples)


@requirement("b:http:error-envelope")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/nope"),
        ("POST", "/health"),
        ("DELETE", "/search"),
        ("GET", "/tools/echo"),
        ("GET", "/tools/"),
        ("PUT", "/tools/echo"),
        ("POST", "/tools/echo/nope"),
        ("GET", "/%2e%2e/etc/passwd"),
        ("BREW", "/health"),
    ],
)
def test_an_unknown_route_or_a_wrong_method_is_404(web: WebServer, method: str, path: str) -> None:
    reply = web.send_request(method, path)

    assert (reply.status, reply.error["code"]) in [(404, "NOT_FOUND"), (400, "INVALID_REQUEST")]
    assert (reply.status == 400) is (method == "BREW")  # no HTTP method at all


@requirement("b:http:error-envelope")
def test_what_is_no_http_is_400_with_an_envelope(web: WebServer) -> None:
    answer = web.exchange_bytes(b"this is not http\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["code"] == "INVALID_REQUEST"


# Any tool


@requirement("b:http:envelope", "b:envelope:meta-optional")
def test_a_tool_is_called_with_its_arguments_as_the_body(web: WebServer) -> None:
    reply = web.post("/tools/echo", {"text": "hi"}, x_request_id="abc")

    assert reply.status == 200
    assert reply.result == {"text": "hi", "n": 1}
    assert reply.json["_meta"]["requestId"] == "abc"
    assert reply.json["_meta"]["durationMs"] >= 0


def test_every_payload_is_the_result_of_an_envelope(web: WebServer, home: Path) -> None:
    (home / "go-h").touch()

    assert web.call_tool("text").result == {"content": [{"type": "text", "text": "plain text"}]}
    held_reply = web.call_tool("hold", folder=str(home), name="h")
    assert held_reply.result == {"ok": True, "name": "h"}
    assert web.call_tool("absent").error["code"] == "NOT_FOUND"


def test_a_whole_number_is_an_integer_however_it_is_written(web: WebServer) -> None:
    reply = web.send_request("POST", "/tools/echo", b'{"text":"x","n":2.0}', JSON_HEADERS)

    assert b'"n":2,' in reply.body or b'"n":2}' in reply.body


@requirement("a:names:alias")
def test_an_old_name_works_and_warns(web: WebServer) -> None:
    reply = web.call_tool("say", text="x")

    assert reply.result["text"] == "x"
    assert reply.json["_meta"]["warnings"][0]["code"] == "DEPRECATED_NAME"


@requirement(
    "b:http:409-index",
    "b:http:500",
    "b:http:error-envelope",
    "b:http:400-schema",
    "b:errors:one-source",
)
@pytest.mark.parametrize(
    ("tool", "arguments", "status", "code"),
    [
        ("refuse", {}, 409, "NO_INDEX"),
        ("crash", {}, 500, "INTERNAL"),
        ("unspeakable", {}, 500, "INTERNAL"),
        ("spill", {}, 501, "CAPABILITY_MISSING"),
        ("absent", {}, 404, "NOT_FOUND"),
        ("no_such_tool", {}, 404, "UNKNOWN_TOOL"),
        ("echo", {}, 400, "INVALID_REQUEST"),
        ("echo", {"text": "x", "colour": "red"}, 400, "INVALID_REQUEST"),
        ("echo", {"text": "x", "later": "y"}, 400, "INVALID_REQUEST"),
    ],
)
def test_every_way_to_fail_has_the_status_of_the_table(
    web: WebServer, tool: str, arguments: dict[str, Any], status: int, code: str
) -> None:
    reply = web.post(f"/tools/{tool}", arguments)

    assert (reply.status, reply.error["code"]) == (status, code)
    assert "Traceback" not in reply.body.decode()
    assert "secret" not in reply.body.decode()


@requirement("b:http:400-schema")
def test_a_violation_says_where_it_is(web: WebServer) -> None:
    answer = web.call_tool("echo", text=7)
    [violation] = answer.error["details"]

    assert (answer.status, answer.error["code"]) == (400, "INVALID_REQUEST")
    assert violation["instancePath"] == "/text"
    assert violation.keys() == {"instancePath", "schemaPath", "keyword", "message"}


@requirement("b:http:json-bodies", "b:http:415", "b:http:400-json", "b:http:413")
@pytest.mark.parametrize(
    ("path", "headers", "body", "status"),
    [
        ("/tools/echo", {}, b"{}", 415),
        ("/tools/echo", {"content-type": "text/plain"}, b'{"text": "x"}', 415),
        ("/tools/echo", {"content-type": "text/plain", "content-length": "2000000"}, b"", 415),
        ("/tools/echo", {**JSON_HEADERS, "content-length": "1000001"}, b"", 413),
        ("/tools/echo", JSON_HEADERS, b"", 400),
        ("/tools/echo", JSON_HEADERS, b"{", 400),
        ("/tools/echo", JSON_HEADERS, b'{"text": NaN}', 400),
        ("/tools/echo", JSON_HEADERS, b'{"text": "\xff"}', 400),
        ("/tools/echo", JSON_HEADERS, b"[" * 100_000, 400),
        ("/tools/echo", JSON_HEADERS, b"[]", 400),
        ("/tools/echo", JSON_HEADERS, b"7", 400),
        ("/tools/echo/stream", {}, b"{}", 415),
        ("/tools/echo/stream", JSON_HEADERS, b"{}", 400),
        ("/search", {"content-type": "text/plain"}, b"{}", 415),
        ("/search", JSON_HEADERS, b"{", 400),
        ("/search/stream", JSON_HEADERS, b"{}", 400),
    ],
)
def test_a_body_that_will_not_do_is_refused(
    web: WebServer, path: str, headers: dict[str, str], body: bytes, status: int
) -> None:
    reply = web.send_request("POST", path, body, headers)

    assert (reply.status, reply.error["code"]) == (status, "INVALID_REQUEST")


@requirement("b:http:json-bodies")
def test_any_content_type_that_contains_json_will_do(web: WebServer) -> None:
    headers = {"content-type": "Application/JSON; charset=utf-8"}

    assert web.send_request("POST", "/tools/echo", b'{"text":"x"}', headers).status == 200


def test_what_is_wrong_with_a_body_is_said_with_its_place(web: WebServer) -> None:
    reply = web.send_request("POST", "/tools/echo", rb'{"text": "\ud800"}', JSON_HEADERS)

    assert reply.error["message"] == r"The body is not valid JSON: lone surrogate \ud800 (byte 10)."


@requirement("b:http:413")
def test_a_body_that_grows_too_large_is_cut_off_and_the_socket_closed(web: WebServer) -> None:
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with web.connect() as link:
        link.sendall(
            b"POST /tools/echo HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        answer = b""
        with suppress(ConnectionError):  # what was sent on the way to the end of it is not read
            for _ in range(16):  # just over a million bytes, and no end
                link.sendall(chunk)
        with suppress(ConnectionError):
            while piece := link.recv(65536):
                answer += piece

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer


# The routes of the spec


@requirement("b:http:search", "b:parity:outputs")
def test_search_answers_the_repository_and_what_the_tool_answers(web: WebServer, home: Path) -> None:
    by_route = web.post("/search", {"query": "x", "top": 3})
    by_tool = web.call_tool("search", query="x", top=3)

    assert by_route.result == {"repo": str(home), "search": by_tool.result}
    assert by_route.json["_meta"]["repo"] == str(home)


@requirement("b:http:search")
def test_search_by_query_string_has_the_same_names_and_reads_them_strictly(web: WebServer) -> None:
    search_result = web.get("/search?q=a%20b&top=3&score=1.5&ann=true&mode=code&path=src").result
    many = web.get("/search?query=x&path=a&path=b&meta=%7B%22k%22%3A1%7D").result

    search_arguments = {"query": "a b", "top": 3, "score": 1.5, "ann": True, "mode": "code", "path": "src"}
    assert search_result["search"]["arguments"].items() >= search_arguments.items()
    assert many["search"]["arguments"]["path"] == ["a", "b"]
    assert many["search"]["arguments"]["meta"] == {"k": 1}


@requirement("b:http:400-schema")
@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("", ""),
        ("q=x&top=three", "/top"),
        ("q=x&top=3.5", "/top"),
        ("q=x&top=-1", "/top"),
        ("q=x&ann=yes", "/ann"),
        ("q=x&ann=1", "/ann"),
        ("q=x&top=1&top=2", "/top"),
        ("q=x&meta=%7B", "/meta"),
        ("q=x&mode=nope", "/mode"),
        ("q=x&colour=red", "/colour"),
        ("q=x&query=y", "/q"),
        ("query=x&a%2Fb=1&a%2Fb=2", "/a~1b"),
    ],
)
def test_a_query_string_that_will_not_do_is_refused(web: WebServer, query: str, where: str) -> None:
    reply = web.get(f"/search?{query}")

    assert (reply.status, reply.error["code"]) == (400, "INVALID_REQUEST")
    assert [detail["instancePath"] for detail in reply.error["details"]] == [where]


@requirement("b:http:409-index")
def test_search_without_an_index_is_409(web: WebServer) -> None:
    reply = web.post("/search", {"query": "none"})

    assert (reply.status, reply.error["code"]) == (409, "NO_INDEX")


@requirement("b:http:status")
def test_status_answers_the_repository_and_its_status(web: WebServer, home: Path) -> None:
    assert web.get("/status").result == {"repo": str(home), "status": {"artifacts": []}}


@requirement("b:http:error-envelope")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/status"),
        ("GET", "/status/stream"),
        ("GET", "/search?q=x"),
        ("POST", "/search"),
        ("POST", "/search/stream"),
    ],
)
def test_a_route_whose_tool_is_not_served_is_404(assets_server: WebServer, method: str, path: str) -> None:
    reply = assets_server.send_request(method, path, b"{}", JSON_HEADERS)

    assert (reply.status, reply.error["code"]) == (404, "UNKNOWN_TOOL")


@pytest.fixture(scope="module")
def assets_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with run_web_server(*CLEATS_COMMAND, "assets", home=tmp_path_factory.mktemp("bare")) as server:
        yield server


# Streams


def check_envelopes(events: list[tuple[str, Any]]) -> None:
    for name, envelope in events:
        assert envelope.keys() == {"ok", "error" if name == "error" else "result", "_meta"}
        assert envelope["ok"] is (name != "error")
        assert envelope["_meta"].keys() >= {"schemaVersion", "toolingVersion", "ts", "requestId"}


@requirement("b:http:search-stream", "b:http:envelope")
def test_a_search_stream_has_start_progress_result_and_done(web: WebServer, home: Path) -> None:
    events = web.read_events("POST", "/search/stream", {"query": "x"})

    check_envelopes(events)
    assert [name for name, _ in events] == ["start", "progress", "result", "done"]
    results = [envelope["result"] for _, envelope in events]
    assert results[0] == results[3] == {}
    assert results[1] == {"phase": "search", "message": "Running search."}
    assert results[2] == web.post("/search", {"query": "x"}).result
    assert results[2]["repo"] == str(home)


@requirement("b:http:status-stream", "b:http:envelope")
def test_a_status_stream_has_start_result_and_done(web: WebServer, home: Path) -> None:
    events = web.read_events("GET", "/status/stream")

    check_envelopes(events)
    assert [(name, envelope["result"]) for name, envelope in events] == [
        ("start", {"repo": str(home)}),
        ("result", {"repo": str(home), "status": {"artifacts": []}}),
        ("done", {}),
    ]


@requirement("b:http:status-stream", "b:http:done-is-no-error")
def test_a_status_stream_that_fails_has_an_error_and_still_a_done(web: WebServer, home: Path) -> None:
    broken = home / "broken"
    broken.touch()
    try:
        events = web.read_events("GET", "/status/stream")
    finally:
        broken.unlink()

    check_envelopes(events)
    assert [name for name, _ in events] == ["start", "error", "done"]
    assert events[0][1]["result"] == {"repo": str(home)}
    assert events[1][1]["error"]["code"] == "INTERNAL"
    assert events[2][1]["result"] == {}


@requirement("b:http:search-stream", "b:http:done-is-no-error")
@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/search/stream", {"query": "none"}, "NO_INDEX"),
        ("/tools/crash/stream", {}, "INTERNAL"),
        ("/tools/unspeakable/stream", {}, "INTERNAL"),
    ],
)
def test_a_stream_that_fails_has_an_error_and_still_a_done(web: WebServer, path: str, body: Any, code: str) -> None:
    events = web.read_events("POST", path, body)

    check_envelopes(events)
    assert [name for name, _ in events] == ["start", "error", "done"]
    assert events[1][1]["error"]["code"] == code
    assert events[2][1]["result"] == {}


def test_the_progress_of_any_tool_is_streamed_and_coalesced(web: WebServer) -> None:
    events = web.read_events("POST", "/tools/count/stream", {"steps": 300})

    check_envelopes(events)
    names = [name for name, _ in events]
    assert names[0] == "start"
    assert names[-2:] == ["result", "done"]
    assert 1 <= names.count("progress") < 150  # on a machine that takes long for each step
    assert events[-3][1]["result"] == {"phase": "stepping", "message": "step 299"}
    assert events[-2][1]["result"] == {"steps": 300}


# A client that leaves


@pytest.mark.parametrize("path", ["/tools/block", "/tools/block/stream"])
def test_a_client_that_disconnects_cancels_its_call(web: WebServer, home: Path, path: str) -> None:
    name = path.replace("/", "-")
    body = json.dumps({"folder": str(home), "name": name}).encode()
    with web.connect() as link:
        link.sendall(
            b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (path.encode(), len(body), body)
        )
        wait_until((home / f"began-{name}").exists)

    wait_until((home / f"stopped-{name}").exists)
    assert web.get("/health").status == 200


def test_the_processes_of_a_client_that_disconnects_end(web: WebServer, home: Path) -> None:
    folder = home / "tree"
    folder.mkdir()
    arguments = {"folder": str(folder), "kind": "setsid"}
    with web.stream_events("/tools/tree/stream", arguments) as events:
        assert next(events)[0] == "start"
        wait_until(lambda: trees.is_grown(folder, "setsid"))

    wait_until(lambda: not trees.find_living(folder))

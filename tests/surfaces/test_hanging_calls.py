"""Tests that no call leaves a process or a busy thread behind, whatever ends it, on every surface.

Git and the linter hang, and their children ignore SIGTERM. Every tool of the registry has a row in
`TOOL_CALLS`; the cells are those that can differ: all tools for a cancel and for a timeout on MCP,
and on every surface the ways in which its calls and its server can end.
"""

import json
import resource
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cleats import app
from cleats.settings import Settings
from tests.support.hanging_commands import HangingCommands
from tests.support.http_client import CLEATS_COMMAND, MCP_HEADERS, WebServer, open_mcp_session, run_web_server
from tests.support.indexes import IndexedRepository
from tests.support.mcp_client import ServerPeer, start_legacy_server, start_server
from tests.support.requirements import requirement

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

SERVE_COMMAND = (sys.executable, "-m", "cleats", "serve", "code")
SERVE_ALL_COMMAND = (*SERVE_COMMAND, "launch")

HANGING_CALLS: dict[str, list[dict[str, Any]]] = {
    "index_status": [{}],
    "report_artifacts": [{}],
    "search": [{"query": "alpha", "refresh": True}],
    "build_index": [{"incremental": True}, {}],
    "bootstrap": [{"incremental": True}],
    "triage_ingest": [{"source": "sarif", "inputPath": "scan.sarif", "buildIndex": True, "incremental": True}],
    "launch_start_run_from_github_repo_url": [
        {"github_repo_url": "https://github.com/example-foss/Example-for-Python"}
    ],
}
"""Arguments with which a tool waits for git, and on the second row of a tool for its builder's git."""

LOOKING_CALLS: dict[str, dict[str, Any]] = {
    "search": {"query": "alpha"},
    "check_status": {},
    "find_code": {"query": "alpha"},
    "grep_code": {"pattern": "alpha"},
    "triage_context_pack": {"recordId": "none"},
}
"""Calls that are answered although git hangs: the look that they begin goes on without them."""

TOOLS_WITHOUT_COMMANDS = {
    *("config_status", "show_file", "workspace_status", "cache_gc", "clean_artifacts", "triage_decision"),
    *("build_sqlite_index", "compact_sqlite_index", "verify_extensions"),
    *("download_models", "download_dictionaries", "download_extensions"),
    *("read_symbol", "find_references", "outline", "read_lines"),
    *("launch_start_run", "launch_start_run_from_product_url", "launch_list_runs"),
    *("launch_get_status", "launch_get_artifact", "launch_validate", "launch_fix_next", "launch_resume"),
    *("launch_cancel", "launch_open_pr"),
}
"""Tools whose calls start no git and no linter. Those that start other processes (a packer, a loader
of extensions) have tests of their own beside them; what a launch starts belongs to its run."""

TOOLSETS_WITHOUT_COMMANDS = {"skills", "assets"}
"""Toolsets that start no process at all."""

ALL_HANGING_CALLS = [(tool, arguments) for tool, rows in HANGING_CALLS.items() for arguments in rows]
CODE_HANGING_CALLS = [row for row in ALL_HANGING_CALLS if not row[0].startswith("launch_")]
SERVER_CALLS = [("index_status", {}), ("search", {"query": "alpha", "refresh": True}), ("build_index", {})]
"""Calls that differ in who runs git: a shared check, a check of the call, and a builder process."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> IndexedRepository:
    world = IndexedRepository(tmp_path_factory.mktemp("hanging"))
    world.write_file("a.py", "def alpha():\n    return 1\n")
    world.write_file("b.js", "function beta() {}\n")
    world.write_file("scan.sarif", json.dumps({"version": "2.1.0", "runs": []}))
    world.run_git("init", "-q")
    world.commit()
    world.build_index()
    return world


@pytest.fixture
def commands(world: IndexedRepository, tmp_path: Path) -> HangingCommands:
    return HangingCommands(tmp_path / "bin")


def make_environ(world: IndexedRepository, commands: HangingCommands, **settings: str) -> dict[str, str]:
    return {
        "CLEATS_CACHE_DIR": str(world.cache),
        "CLEATS_PROJECT_DIR": str(world.root),
        "CLEATS_CONCURRENCY": "16",
        "CLEATS_DRAIN": "0.2",
        "CLEATS_GRACE": "0.1",
        "CLEATS_TELEMETRY": "off",
        **commands.environ,
        **settings,
    }


def test_every_tool_of_the_registry_has_a_row() -> None:
    toolsets = app.build_registry(Settings(), app.BUILTIN_TOOLSETS).toolsets
    names = {tool.name for group in toolsets if group.name not in TOOLSETS_WITHOUT_COMMANDS for tool in group.tools}

    assert names == HANGING_CALLS.keys() | LOOKING_CALLS.keys() | TOOLS_WITHOUT_COMMANDS


@requirement("a:cancel:stops-the-work", "a:kill:all-descendants", "a:tests:cancellation", "b:cancel:supported")
def test_a_cancelled_call_leaves_no_process(
    world: IndexedRepository, commands: HangingCommands, tmp_path: Path
) -> None:
    commands.install_linter(world.root)
    environ = make_environ(world, commands, CLEATS_INDEX_LINT="repository")
    with start_server(*SERVE_ALL_COMMAND, home=tmp_path, ready=True, **environ) as peer:
        commands.hang("git")
        for number, (tool, arguments) in enumerate(ALL_HANGING_CALLS):
            peer.send_call(number, tool, **arguments)
            commands.wait_until_hanging()
            peer.send_notification("notifications/cancelled", {"requestId": number})
            commands.wait_until_gone()
        commands.work()
        commands.hang("eslint")
        peer.send_call("lint", "build_index")
        commands.wait_until_hanging()
        peer.send_notification("notifications/cancelled", {"requestId": "lint"})
        commands.wait_until_gone()
        peer.close_input()

        assert peer.wait_for_exit() == 0
        assert not [frame for frame in peer.read_remaining() if "result" in frame]


@requirement("a:cancel:stops-the-work", "a:cancel:answer", "a:kill:all-descendants", "a:tests:cancellation")
def test_a_call_cancelled_on_the_legacy_wire_is_answered_and_leaves_no_process(
    world: IndexedRepository, commands: HangingCommands, tmp_path: Path
) -> None:
    words = (*SERVE_COMMAND, "--wire", "legacy")
    with start_legacy_server(*words, home=tmp_path, ready=True, **make_environ(world, commands)) as peer:
        commands.hang("git")
        for number, (tool, arguments) in enumerate(CODE_HANGING_CALLS):
            peer.send_call(number, tool, **arguments)
            commands.wait_until_hanging()
            peer.send_notification("$/cancelRequest", {"id": number})
            answer = peer.wait_for_answer(number)["result"]
            commands.wait_until_gone()

            assert answer["isError"] is True
            assert json.loads(answer["content"][0]["text"])["code"] == "CANCELLED"


@requirement("a:timeout:kills-subprocesses", "a:kill:all-descendants", "a:tests:timeout", "b:timeout:tool-error")
def test_a_late_call_leaves_no_process(world: IndexedRepository, commands: HangingCommands, tmp_path: Path) -> None:
    timeouts = ",".join(f"{tool}=4" for tool in HANGING_CALLS)
    environ = make_environ(world, commands, CLEATS_TIMEOUTS=timeouts)
    with start_server(*SERVE_ALL_COMMAND, home=tmp_path, ready=True, **environ) as peer:
        commands.hang("git")
        for number, (tool, arguments) in enumerate(ALL_HANGING_CALLS):
            peer.send_call(number, tool, **arguments)
        commands.wait_until_hanging()
        answers = [peer.wait_for_answer(number)["result"] for number in range(len(ALL_HANGING_CALLS))]
        commands.wait_until_gone()

    codes = [answer["structuredContent"]["error"]["code"] for answer in answers]
    assert codes == ["TOOL_TIMEOUT"] * len(ALL_HANGING_CALLS)


def begin_hanging_calls(peer: ServerPeer, commands: HangingCommands) -> None:
    """Begin calls that hang, and end some whose look at the files hangs."""
    commands.hang("git")
    for tool, arguments in LOOKING_CALLS.items():
        peer.send_call(tool, tool, **arguments)
        peer.wait_for_answer(tool)
    for number, (tool, arguments) in enumerate(CODE_HANGING_CALLS):  # builds of one index wait for each other
        peer.send_call(number, tool, **arguments)
    commands.wait_until_hanging(len(SERVER_CALLS))


@requirement("a:kill:all-descendants", "a:cancel:stops-the-work")
@pytest.mark.parametrize("ending", ["eof", "signal"])
@pytest.mark.parametrize("wire", ["mcp", "legacy"])
def test_a_server_ends_with_all_that_its_calls_began(
    world: IndexedRepository, commands: HangingCommands, tmp_path: Path, wire: str, ending: str
) -> None:
    start = start_legacy_server if wire == "legacy" else start_server
    words = (*SERVE_COMMAND, "--wire", wire)
    with start(*words, home=tmp_path, ready=True, **make_environ(world, commands)) as peer:
        begin_hanging_calls(peer, commands)
        if ending == "eof":
            peer.close_input()
        else:
            peer.send_signal(signal.SIGTERM)

        assert peer.wait_for_exit() == 0
        commands.wait_until_gone()


@requirement("a:timeout:kills-subprocesses", "a:kill:all-descendants")
def test_an_rpc_server_ends_when_the_time_of_its_call_is_up(
    world: IndexedRepository, commands: HangingCommands, tmp_path: Path
) -> None:
    environ = make_environ(world, commands, CLEATS_TIMEOUTS="index_status=3", MCP_READY_FILE=str(tmp_path / "ready"))
    with start_server(*SERVE_COMMAND, "--wire", "rpc", home=tmp_path, ready=False, **environ) as peer:
        commands.hang("git")
        peer.send_request(1, "index_status", {})
        commands.wait_until_hanging()
        peer.close_input()

        assert peer.wait_for_answer(1)["result"]["error"]["code"] == "TOOL_TIMEOUT"
        assert peer.wait_for_exit() == 0
        commands.wait_until_gone()


def post_and_keep(web: WebServer, path: str, body: Any, headers: Mapping[str, str] = {}) -> socket.socket:
    """Send a request and return its connection without waiting for the answer."""
    data = json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in {**MCP_HEADERS, **headers}.items()]
    link = web.connect()
    link.sendall("\r\n".join([*lines, "", ""]).encode() + data)
    return link


@contextmanager
def open_web(home: Path, world: IndexedRepository, commands: HangingCommands) -> Iterator[WebServer]:
    with run_web_server(*CLEATS_COMMAND, "code", home=home, **make_environ(world, commands)) as web:
        yield web


def open_mcp_headers(web: WebServer) -> dict[str, str]:
    session = open_mcp_session(web)
    return {"mcp-session-id": session["mcp-session-id"], "mcp-protocol-version": session["version"]}


def make_mcp_call(request_id: Any, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    params = {"name": tool, "arguments": dict(arguments)}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


@requirement("a:kill:all-descendants", "a:cancel:stops-the-work")
def test_an_http_server_ends_what_is_disconnected_cancelled_or_open_when_it_stops(
    world: IndexedRepository, commands: HangingCommands, tmp_path: Path
) -> None:
    with open_web(tmp_path, world, commands) as web, ExitStack() as links:
        headers = open_mcp_headers(web)
        commands.hang("git")
        for tool, arguments in CODE_HANGING_CALLS:
            for path in (f"/tools/{tool}", f"/tools/{tool}/stream"):
                with post_and_keep(web, path, arguments):
                    commands.wait_until_hanging()
                commands.wait_until_gone()
        with web.connect() as link:
            link.sendall(b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")
            commands.wait_until_hanging()
        commands.wait_until_gone()
        links.enter_context(post_and_keep(web, "/mcp", make_mcp_call(7, "index_status", {}), headers))
        commands.wait_until_hanging()
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        web.send_request("POST", "/mcp", json.dumps(cancel).encode(), {**MCP_HEADERS, **headers})
        commands.wait_until_gone()
        for number, (tool, arguments) in enumerate(SERVER_CALLS, 8):
            links.enter_context(post_and_keep(web, f"/tools/{tool}", arguments))
            links.enter_context(post_and_keep(web, "/mcp", make_mcp_call(number, tool, arguments), headers))
        commands.wait_until_hanging(len(SERVER_CALLS))
        web.process.send_signal(signal.SIGTERM)

        assert web.wait_for_exit() == 0
        commands.wait_until_gone()


SLOW_QUERY = " ".join(f'"alpha beta {number}"' for number in range(400))
"""A query that the memory backend compares with every text of the index, word by word."""

MAX_SERVER_CPU_SECONDS = 25.0
"""CPU time of the server below. It needs about 3 s of it; each of its searches alone would need 10."""


@requirement("a:cancel:stops-the-work", "a:tests:timeout")
def test_searches_that_are_late_stop_computing(tmp_path: Path) -> None:
    world = IndexedRepository(tmp_path / "slow")
    text = " ".join(["alpha beta"] * 40)
    functions = (f"def f{number}():\n    '''{text} {number}'''\n" for number in range(1500))
    world.write_file("a.py", "".join(functions))
    world.build_index()
    environ = make_environ(world, HangingCommands(tmp_path / "bin"), CLEATS_TIMEOUTS="search=2")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with start_server(*SERVE_COMMAND, home=tmp_path, ready=True, **environ) as peer:
        for number in range(8):
            peer.send_call(number, "search", query=SLOW_QUERY, backend="memory")
        answers = [peer.wait_for_answer(number)["result"] for number in range(8)]
        peer.send_call("next", "search", query="alpha")
        following = peer.wait_for_answer("next")["result"]
        peer.close_input()

        assert peer.wait_for_exit() == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)

    assert {answer["structuredContent"]["error"]["code"] for answer in answers} == {"TOOL_TIMEOUT"}
    assert following["isError"] is False
    assert after.ru_utime - before.ru_utime < MAX_SERVER_CPU_SECONDS

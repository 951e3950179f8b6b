"""Tests of the opening messages, which are answered before the SDK is imported."""

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.server.runner import ServerRunner
from mcp_types import version as sdk_versions
from pydantic import ValidationError

from cleats import app
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings
from cleats.transports.mcp import handshake
from cleats.transports.mcp.server import McpServer
from tests.support.mcp_client import ENVELOPE_META, INITIALIZE_PARAMS, start_server
from tests.support.requirements import requirement
from tests.support.servers.probe import build_toolset
from tests.support.waiting import wait_until

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE_PARAMS}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = {"jsonrpc": "2.0", "id": "list", "method": "tools/list"}
PING = {"jsonrpc": "2.0", "id": 3, "method": "ping"}
CALL = {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}}
DISCOVER = {"jsonrpc": "2.0", "id": 5, "method": "server/discover", "params": {"_meta": ENVELOPE_META}}
STATELESS_LIST = {**LIST, "params": {"_meta": ENVELOPE_META}}
NO_CAPABILITIES_META = {key: value for key, value in ENVELOPE_META.items() if "Capabilities" not in key}


def initialize_with(**params: Any) -> dict[str, Any]:
    return {**INITIALIZE, "params": {**INITIALIZE_PARAMS, **params}}


CONVERSATIONS: Mapping[str, Sequence[Mapping[str, Any] | bytes]] = {
    "nothing": [],
    "handshake": [INITIALIZE, INITIALIZED, PING, LIST, {**PING, "id": 9}],
    "list before initialized": [INITIALIZE, LIST, INITIALIZED, {**LIST, "id": 9}],
    "list with meta": [INITIALIZE, {**LIST, "params": {"_meta": {"progressToken": 1}}}],
    "list with null cursor": [INITIALIZE, {**LIST, "params": {"cursor": None}}],
    "list with cursor": [INITIALIZE, {**LIST, "params": {"cursor": "x"}}],
    "list before initialize": [LIST, INITIALIZE, {**LIST, "id": 9}],
    "ping before initialize": [PING, INITIALIZE],
    "initialized before initialize": [INITIALIZED, LIST],
    "initialize twice": [INITIALIZE, {**INITIALIZE, "id": 2}],
    "initialize without params": [{"jsonrpc": "2.0", "id": 1, "method": "initialize"}, INITIALIZE],
    "initialize with a bad capability": [initialize_with(capabilities={"roots": 1}), LIST],
    "initialize with a bad name": [initialize_with(clientInfo={"name": 1, "version": "1"}), LIST],
    "initialize with null": [initialize_with(clientInfo=None), LIST],
    "initialize with unknown parts": [initialize_with(capabilities={"odd": 1, "roots": {"odd": []}}), LIST],
    "initialize with all parts": [
        initialize_with(
            capabilities={
                "roots": {"listChanged": True},
                "sampling": {"context": {}, "tools": {}},
                "elicitation": {"form": {}, "url": {}},
                "experimental": {"x": {"y": 1}},
                "extensions": {"a/b": {"mimeTypes": ["text/html"]}},
                "tasks": {"list": {}, "cancel": {}, "requests": {"sampling": {"createMessage": {}}}},
            },
            clientInfo={"name": "n", "version": "1", "title": "N", "icons": [{"src": "https://example.org/i.png"}]},
        ),
        LIST,
    ],
    "notification before": [{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}}, INITIALIZE, LIST],
    "call in the same burst": [INITIALIZE, INITIALIZED, LIST, CALL],
    "call before the list": [INITIALIZE, INITIALIZED, CALL, LIST],
    "other methods": [INITIALIZE, {**PING, "method": "prompts/list"}, {**PING, "id": 9, "method": "odd"}, LIST],
    "odd ids": [{**INITIALIZE, "id": 2**63}, {**PING, "id": 1.5}, {**PING, "id": None}, {**PING, "id": ""}, LIST],
    "broken lines": [b"{\n", b"[]\n", b'"x"\n', b"\xff\n", INITIALIZE, b"{}\n", LIST],
    "oversized line": [b'{"x":"' + b"x" * 5000 + b'"}\n', INITIALIZE, LIST],
    "last line without newline": [INITIALIZE, json.dumps(LIST).encode()],
    "half a line at the end": [INITIALIZE, b'{"jsonrpc":"2.0",'],
    "response": [b'{"jsonrpc":"2.0","id":1,"result":{}}\n', INITIALIZE],
    "stateless": [DISCOVER, STATELESS_LIST, {**STATELESS_LIST, "id": 9}],
    "stateless list first": [STATELESS_LIST, DISCOVER],
    "stateless then handshake": [DISCOVER, INITIALIZE],
    "handshake then stateless": [INITIALIZE, STATELESS_LIST],
    "stateless without capabilities": [{**LIST, "params": {"_meta": NO_CAPABILITIES_META}}, DISCOVER],
    "stateless of another version": [
        {**LIST, "params": {"_meta": {**ENVELOPE_META, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}}},
        DISCOVER,
    ],
    "stateless with a cursor": [{**LIST, "params": {"_meta": ENVELOPE_META, "cursor": "x"}}, DISCOVER],
    "stateless ping": [DISCOVER, {**PING, "params": {"_meta": ENVELOPE_META}}],
    **{
        f"version {version}": [initialize_with(protocolVersion=version), INITIALIZED, LIST]
        for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2026-07-28", "x", "")
    },
}


def converse(messages: Sequence[Mapping[str, Any] | bytes], protocol: Any, *, sdk_only: bool) -> list[dict[str, Any]]:
    """Return the answers of a server to these messages and the end of input, in the order of their ids."""
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    received: list[bytes] = []

    def read_answers() -> None:
        while chunk := os.read(out_read, 1 << 16):
            received.append(chunk)

    reader = threading.Thread(target=read_answers)
    reader.start()
    for message in messages:
        os.write(in_write, message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
    os.close(in_write)
    settings = Settings(protocol=protocol, frame_limit=4096, telemetry="off")
    extend = (lambda _server: None) if sdk_only else None
    anyio.run(app.serve_stdio, settings, [build_toolset()], ServerStatus(), (in_read, out_write), extend)
    os.close(out_write)
    reader.join()
    for fd in (in_read, out_read):
        os.close(fd)
    answers = [json.loads(line) for line in b"".join(received).splitlines()]
    return sorted((_drop_call_facts(answer) for answer in answers), key=lambda answer: str(answer.get("id")))


def _drop_call_facts(answer: dict[str, Any]) -> dict[str, Any]:
    """Keep only the fields of a call's answer that are the same in every run."""
    result = answer.get("result", {})
    if "structuredContent" in result:
        answer["result"] = {"isError": result["isError"], "result": result["structuredContent"]["result"]}
    return answer


@requirement("b:mcp:protocol-pin")
@pytest.mark.parametrize("protocol", ["pin", "negotiate"])
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_the_answers_before_the_sdk_is_imported_are_those_of_the_sdk(name: str, protocol: str) -> None:
    early = converse(CONVERSATIONS[name], protocol, sdk_only=False)
    late = converse(CONVERSATIONS[name], protocol, sdk_only=True)

    assert early == late


def test_every_built_in_toolset_is_described_as_the_sdk_describes_it() -> None:
    registry = app.build_registry(Settings(), app.BUILTIN_TOOLSETS)
    description = app._describe_server(Settings(), registry)

    async def ask_sdk() -> dict[str, Any]:
        server = McpServer(Dispatcher(registry, concurrency=1, queue=1), description)
        return {
            "lists": [server.tools.list_tools(None, modern=modern) for modern in (False, True)],
            "capabilities": [
                server.get_capabilities(protocol_version=version).model_dump(
                    by_alias=True, exclude_none=True, exclude=exclude
                )
                for version, exclude in ((None, {"extensions"}), ("2026-07-28", None))
            ],
            "info": server.server_info_stamp,
        }

    sdk = anyio.run(ask_sdk)

    assert [description.build_tool_list(modern=modern) for modern in (False, True)] == sdk["lists"]
    initialize, discover = description.build_initialize_result("2025-11-25"), description.build_discover_result()
    assert [initialize["capabilities"], discover["capabilities"]] == sdk["capabilities"]
    assert initialize["serverInfo"] == sdk["info"]
    assert handshake.HANDSHAKE_VERSIONS == sdk_versions.HANDSHAKE_PROTOCOL_VERSIONS
    assert discover["supportedVersions"] == list(sdk_versions.MODERN_PROTOCOL_VERSIONS)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
capability_names = st.sampled_from(["roots", "elicitation", "sampling", "experimental", "extensions", "tasks", "odd"])
part_names = st.sampled_from(["listChanged", "form", "tools", "context", "requests", "list", "x"])


@given(
    capabilities=st.dictionaries(capability_names, st.dictionaries(part_names, json_values, max_size=2) | json_values),
    info=st.dictionaries(
        st.sampled_from(["name", "version", "title", "description", "websiteUrl", "icons"]),
        st.text(max_size=3) | json_values | st.lists(st.fixed_dictionaries({"src": json_values}), max_size=1),
    ),
)
def test_the_sdk_accepts_every_handshake_that_is_answered_without_it(
    capabilities: dict[str, Any], info: dict[str, Any]
) -> None:
    params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info}
    if handshake.is_instance(params, handshake.InitializeParams):
        try:
            ServerRunner._negotiate_initialize(params)
        except ValidationError as error:
            pytest.fail(str(error))


BLOCKED_SERVER = """
import sys, time
from pathlib import Path

class SdkBlocker:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("mcp.", "mcp_types", "pydantic")):
            Path("sdk-wanted").touch()
            while not Path("sdk-allowed").exists():
                time.sleep(0.01)

sys.meta_path.insert(0, SdkBlocker())
sys.argv = ["cleats", "serve", "explore", "skills"]
from cleats.__main__ import main
main()
"""


def test_the_tools_are_listed_before_the_sdk_is_imported_and_changes_are_announced_after_it(tmp_path: Path) -> None:
    with start_server(sys.executable, "-c", BLOCKED_SERVER, home=tmp_path, ready=False) as peer:
        peer.initialize()
        peer.send_request(1, "tools/list")
        tools = peer.wait_for_answer(1)["result"]["tools"]
        wait_until((tmp_path / "sdk-wanted").exists)
        skill = tmp_path / ".claude" / "skills" / "late" / "SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text("---\nname: late\ndescription: Comes late.\n---\nText.\n")
        peer.send_call(2, "skill", name="late")
        (tmp_path / "sdk-allowed").touch()

        assert "find_code" in {tool["name"] for tool in tools}
        assert "result" in peer.wait_for_answer(2)
        wait_until(lambda: b"notifications/tools/list_changed" in b"".join(peer.lines))


def test_a_client_that_only_looks_and_leaves_never_needs_the_sdk(tmp_path: Path) -> None:
    with start_server(sys.executable, "-c", BLOCKED_SERVER, home=tmp_path, ready=False) as peer:
        peer.send(INITIALIZE)
        peer.send(PING)
        peer.close_input()

        assert [frame["id"] for frame in peer.read_remaining()] == [1, 3]
        assert peer.wait_for_exit() == 0
        assert not (tmp_path / "sdk-wanted").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_right_after_the_handshake_ends_the_server(tmp_path: Path, number: signal.Signals) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_signal(number)

        assert peer.wait_for_exit() == 0
        assert f"serve.end reason={number.name}".encode() in peer.stderr


@pytest.mark.parametrize(
    ("version", "protocol", "is_hinted"),
    [("2025-06-18", "pin", True), ("2025-11-25", "pin", False), ("2025-06-18", "negotiate", False)],
)
def test_the_log_names_the_setting_that_helps_a_client_which_leaves_after_the_handshake(
    tmp_path: Path, version: str, protocol: str, is_hinted: bool
) -> None:
    with start_server(home=tmp_path, ready=False, CLEATS_PROTOCOL=protocol) as peer:
        peer.send(initialize_with(protocolVersion=version))
        peer.receive()
        peer.close_input()

        assert peer.wait_for_exit() == 0
        assert (b"set CLEATS_PROTOCOL=negotiate" in peer.stderr) is is_hinted

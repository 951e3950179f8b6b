"""Tests of definitions, arguments, answers and progress of MCP calls, over a real process."""

import json
import re
import sys
import time
from importlib.metadata import requires, version
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from cleats import app
from cleats.contract.errors import ErrorCode
from cleats.contract.payload import ENVELOPE_SCHEMA
from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from cleats.settings import Settings
from tests.support.mcp_client import start_server
from tests.support.requirements import requirement

SEMVER_PATTERN = re.compile(r"^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$")


def read_envelope(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the envelope in the only text item after checking what holds for all envelopes."""
    result = answer["result"]
    [item] = result["content"]
    envelope: dict[str, Any] = json.loads(item["text"])
    jsonschema.validate(envelope, ENVELOPE_SCHEMA)
    assert item["type"] == "text"
    assert result["structuredContent"] == envelope
    assert result["isError"] is (not envelope["ok"])
    return envelope


@requirement("b:mcp:protocol-pin")
@pytest.mark.parametrize("requested_version", ["2024-11-05", "2025-06-18", "2025-11-25", "2099-01-01", "x"])
def test_a_handshake_is_answered_with_the_one_version_we_speak(tmp_path: Path, requested_version: str) -> None:
    with start_server(home=tmp_path, ready=False) as peer:
        assert peer.initialize(requested_version)["protocolVersion"] == "2025-11-25"


def test_with_negotiation_an_older_client_gets_its_own_version(tmp_path: Path) -> None:
    with start_server(home=tmp_path, ready=False, CLEATS_PROTOCOL="negotiate") as peer:
        assert peer.initialize("2024-11-05")["protocolVersion"] == "2024-11-05"


@requirement("b:mcp:capability-block", "b:versions:one-source")
def test_the_handshake_carries_our_capability_block(tmp_path: Path) -> None:
    with start_server(home=tmp_path, ready=False) as peer:
        answer = peer.initialize()

    block = answer["capabilities"]["experimental"]["pairofcleats"]
    assert block["schemaVersion"] == SCHEMA_VERSION
    assert block["toolingVersion"] == TOOLING_VERSION
    assert block["transport"] == "sdk"
    assert block["capabilities"]["mcp"] == {"sdk": True, "legacy": True}
    assert answer["serverInfo"]["name"] == "cleats"
    assert answer["serverInfo"]["version"] == TOOLING_VERSION
    assert answer["capabilities"]["tools"] == {"listChanged": True}


@requirement("b:mcp:capabilities-probed")
@pytest.mark.parametrize("has_git", [True, False])
def test_the_capability_block_follows_what_the_machine_has(tmp_path: Path, has_git: bool) -> None:
    commands = tmp_path / "commands"
    commands.mkdir()
    for name in ("node", *["git"] * has_git):
        (commands / name).write_text("#!/bin/sh\n")
        (commands / name).chmod(0o755)

    with start_server(home=tmp_path, ready=False, PATH=str(commands)) as peer:
        block = peer.initialize()["capabilities"]["experimental"]["pairofcleats"]["capabilities"]

    assert block["git"] == {"cli": has_git}
    assert block["lint"]["eslint"] is False  # Node.js alone does not lint
    assert block["process"] == {"subreaper": sys.platform == "linux"}


@requirement("b:mcp:no-own-framing")
def test_the_stdio_client_of_the_sdk_talks_to_the_server(tmp_path: Path) -> None:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "cleats", "serve", "assets"], env={"HOME": str(tmp_path)}
    )

    async def talk() -> tuple[set[str], dict[str, Any]]:
        with anyio.fail_after(60):
            async with stdio_client(command) as (reader, writer), ClientSession(reader, writer) as session:
                await session.initialize()
                listing = await session.list_tools()
                answer = await session.call_tool("list_schemas", {})
        return {tool.name for tool in listing.tools}, answer.model_dump()

    names, answer = anyio.run(talk)

    assert "list_schemas" in names
    assert not answer["is_error"]


@requirement("a:calls:deterministic", "a:result:object")
def test_equal_calls_have_equal_results_in_one_process_and_in_another(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    for number in range(5):
        (repository / f"part{number}.py").write_text(
            f"def open_session_{number}(name):\n    return name + '{number}'\n"
        )
    command = (sys.executable, "-m", "cleats", "serve", "code")
    searching = {"name": "search", "arguments": {"repoPath": str(repository), "query": "open session"}}

    def search(peer: Any, request_id: int) -> Any:
        peer.send_request(request_id, "tools/call", searching)
        return json.loads(peer.wait_for_answer(request_id)["result"]["content"][0]["text"])["result"]

    with start_server(*command, home=tmp_path) as peer:
        peer.send_request(1, "tools/call", {"name": "build_index", "arguments": {"repoPath": str(repository)}})
        peer.wait_for_answer(1)
        first, second = search(peer, 2), search(peer, 3)
    with start_server(*command, home=tmp_path) as peer:
        elsewhere = search(peer, 4)

    assert isinstance(first, dict)
    assert "open_session" in json.dumps(first)
    assert first == second == elsewhere


def test_a_server_whose_tools_never_change_does_not_promise_to_tell(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "cleats", "serve", "code")
    with start_server(*command, home=tmp_path, ready=False) as peer:
        assert peer.initialize()["capabilities"]["tools"] == {"listChanged": False}


@requirement("b:versions:tooling-semver", "b:versions:schema-semver")
def test_both_versions_are_semantic_versions() -> None:
    assert SEMVER_PATTERN.match(TOOLING_VERSION)
    assert SEMVER_PATTERN.match(SCHEMA_VERSION)
    assert version("cleats") == TOOLING_VERSION


@requirement("b:mcp:sdk")
def test_the_official_sdk_is_a_pinned_runtime_dependency() -> None:
    [sdk] = [requirement_line for requirement_line in requires("cleats") or [] if re.match(r"mcp\b", requirement_line)]

    assert "extra ==" not in sdk
    assert "<2.4" in sdk
    assert ">=2.3" in sdk


@requirement("a:definition:fields", "a:definition:tooling-version", "b:tools:list-is-whole")
def test_the_list_has_every_tool_once_with_its_versions(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_request(1, "tools/list")
        tools = {tool["name"]: tool for tool in peer.wait_for_answer(1)["result"]["tools"]}

    assert list(tools) == sorted(tools)
    assert {"echo", "block", "count", "grow", "text"} <= tools.keys()
    assert "say" not in tools  # an old name works but is not advertised
    echo = tools["echo"]
    assert echo["description"] == "Answer the arguments."
    assert echo["inputSchema"]["required"] == ["text"]
    assert echo["inputSchema"]["additionalProperties"] is False
    assert echo["_meta"]["pairofcleats/schemaVersion"] == 3
    assert echo["_meta"]["pairofcleats/toolingVersion"] == TOOLING_VERSION
    assert echo["annotations"]["readOnlyHint"] is True
    assert echo["outputSchema"]["properties"]["result"] == {
        "type": "object",
        "required": ["text", "n"],
    }


SPEC_TOOLS = """index_status config_status build_index search download_models download_dictionaries
    download_extensions verify_extensions build_sqlite_index compact_sqlite_index cache_gc
    clean_artifacts bootstrap report_artifacts triage_ingest triage_decision triage_context_pack"""


@requirement("a:definition:fields", "b:tools:list-is-whole", "b:tools:one-registry")
def test_a_server_lists_every_tool_of_ours_with_all_that_a_definition_has(tmp_path: Path) -> None:
    own_tools = {tool.name: tool for tool in app.build_registry(Settings(), app.BUILTIN_TOOLSETS)}
    with start_server(sys.executable, "-m", "cleats", "serve", *app.BUILTIN_TOOLSETS, home=tmp_path) as peer:
        peer.send_request(1, "tools/list")
        listed_tools = peer.wait_for_answer(1)["result"]["tools"]

    assert [tool["name"] for tool in listed_tools] == sorted(own_tools)
    assert own_tools.keys() >= set(SPEC_TOOLS.split())
    for tool in listed_tools:
        own_tool = own_tools[tool["name"]]
        assert len(tool["description"]) > 20
        assert tool["inputSchema"] == json.loads(json.dumps(own_tool.input))
        assert tool["_meta"]["pairofcleats/schemaVersion"] == own_tool.version >= 1
        assert tool["_meta"]["pairofcleats/toolingVersion"] == TOOLING_VERSION


def test_a_cursor_that_was_never_given_out_is_refused(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_request(1, "tools/list", {"cursor": "2"})

        assert peer.wait_for_answer(1)["error"]["code"] == -32602


@requirement(
    "b:envelope:success",
    "b:envelope:meta-required",
    "b:envelope:meta-optional",
    "b:output:success",
    "b:output:structured",
    "a:result:valid-json",
    "a:result:success-is-no-error",
)
def test_a_finished_call_answers_an_envelope_in_text_and_structure(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_call("req-1", "echo", text="hi")
        envelope = read_envelope(peer.wait_for_answer("req-1"))

    assert envelope.keys() == {"ok", "result", "_meta"}
    assert envelope["result"] == {"text": "hi", "n": 1}
    assert envelope["_meta"]["schemaVersion"] == SCHEMA_VERSION
    assert envelope["_meta"]["toolingVersion"] == TOOLING_VERSION
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", envelope["_meta"]["ts"])
    assert envelope["_meta"]["requestId"] == "req-1"
    assert envelope["_meta"]["durationMs"] >= 0


@requirement(
    "b:envelope:error",
    "b:output:failure",
    "b:errors:tool-has-envelope",
    "b:envelope:error-details",
    "a:error:message-and-code",
)
def test_a_failed_call_answers_an_error_envelope(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_call(1, "refuse")
        envelope = read_envelope(peer.wait_for_answer(1))

    assert envelope.keys() == {"ok", "error", "_meta"}
    assert envelope["error"] == {
        "code": "NO_INDEX",
        "message": "no index here. Build it.",
        "details": {"repo": "r", "retryable": False, "hint": "Build it."},
    }


def test_a_crash_says_its_class_and_keeps_the_rest_for_the_log(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_call(1, "crash")
        envelope = read_envelope(peer.wait_for_answer(1))
        peer.close_input()
        peer.wait_for_exit()

    assert envelope["error"]["code"] == "INTERNAL"
    assert envelope["error"]["details"]["cause_class"] == "RuntimeError"
    assert "secret" not in json.dumps(envelope)
    assert b"secret" in peer.stderr


def test_an_answer_that_is_no_json_is_an_internal_error_not_silence(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_call(1, "unspeakable")

        assert read_envelope(peer.wait_for_answer(1))["error"]["code"] == "INTERNAL"


def test_a_text_tool_answers_its_text_as_it_is(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_call(1, "text")

        assert peer.wait_for_answer(1)["result"] == {
            "isError": False,
            "content": [{"type": "text", "text": "plain text"}],
        }


WRONG_CALLS: list[tuple[dict[str, Any], str]] = [
    ({"name": "echo", "arguments": {}}, ""),
    ({"name": "echo", "arguments": {"text": 7}}, "/text"),
    ({"name": "echo", "arguments": {"text": "x", "colour": "red"}}, "/colour"),
    ({"name": "echo", "arguments": {"text": "x", "later": "y"}}, "/later"),
    ({"name": "echo", "arguments": ["x"]}, "/arguments"),
    ({"arguments": {}}, "/name"),
    ({"name": 7}, "/name"),
    ({"name": "echo", "_meta": []}, "/_meta"),
]


@requirement(
    "b:arguments:validated",
    "b:arguments:error",
    "b:errors:protocol-has-code",
    "a:arguments:unknown-refused",
    "a:arguments:reserved-refused",
)
@pytest.mark.parametrize(("params", "path"), WRONG_CALLS)
def test_wrong_arguments_are_invalid_params_with_every_violation(
    tmp_path: Path, params: dict[str, Any], path: str
) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_request(1, "tools/call", params)
        error = peer.wait_for_answer(1)["error"]

    assert error["code"] == -32602
    assert error["data"]["code"] == "INVALID_REQUEST"
    [violation] = error["data"]["details"]
    assert violation["instancePath"] == path
    assert violation.keys() == {"instancePath", "schemaPath", "keyword", "message"}


def test_wrong_arguments_can_be_a_tool_result_for_models_that_correct_themselves(
    tmp_path: Path,
) -> None:
    with start_server(home=tmp_path, CLEATS_VALIDATION_ERRORS="tool") as peer:
        peer.send_call(1, "echo", text=7)
        envelope = read_envelope(peer.wait_for_answer(1))

        assert envelope["error"]["code"] == "INVALID_REQUEST"
        assert envelope["error"]["details"][0]["instancePath"] == "/text"

        peer.send_call(2, "nothing")
        assert peer.wait_for_answer(2)["error"]["data"]["code"] == "UNKNOWN_TOOL"


def test_an_unknown_tool_is_invalid_params_with_its_own_code(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_call(1, "no_such_tool")
        error = peer.wait_for_answer(1)["error"]

    assert (error["code"], error["data"]["code"]) == (-32602, "UNKNOWN_TOOL")


@requirement("b:errors:protocol-has-code")
def test_an_unknown_method_is_refused_with_a_string_code_too(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_request(1, "tools/destroy", {})
        error = peer.wait_for_answer(1)["error"]

    assert error["code"] == -32601
    assert error["data"]["code"] == "INVALID_REQUEST"


def test_a_call_before_the_handshake_is_refused(tmp_path: Path) -> None:
    with start_server(home=tmp_path, ready=False) as peer:
        peer.send_call(1, "echo", text="x")
        error = peer.wait_for_answer(1)["error"]

    assert error["code"] == -32602
    assert error["data"]["code"] == "INVALID_REQUEST"


@requirement("a:names:alias", "b:envelope:meta-optional")
def test_an_old_name_works_and_says_which_is_current(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_call(1, "say", text="x")
        envelope = read_envelope(peer.wait_for_answer(1))

    [warning] = envelope["_meta"]["warnings"]
    assert envelope["result"]["text"] == "x"
    assert warning["code"] == "DEPRECATED_NAME"
    assert (warning["name"], warning["use"], warning["since"]) == ("say", "echo", "2.0.0")


@requirement("b:errors:runtime-codes", "b:errors:one-source", "a:error:table")
def test_the_table_has_every_code_that_the_specs_name() -> None:
    codes = """INVALID_REQUEST NOT_FOUND NO_INDEX CAPABILITY_MISSING QUEUE_OVERLOADED TOOL_TIMEOUT
        CANCELLED INTERNAL UNAUTHORIZED FORBIDDEN DOWNLOAD_VERIFY_FAILED ARCHIVE_UNSAFE
        ARCHIVE_TOO_LARGE UNKNOWN_TOOL INVALID_INPUT SCHEMA_VALIDATION_FAILED RUN_NOT_FOUND
        ILLEGAL_STATE TOOLCHAIN_MISSING GATE_FAILED FIX_EXHAUSTED ALLOWED_PATHS_VIOLATION
        COMMIT_SERVICE_ERROR INVALID_URL UNSUPPORTED_SITE REPO_NOT_FOUND"""

    own_codes = {"RATE_LIMITED", "UNAVAILABLE"}  # what the HTTP API says before a tool is asked

    assert {code.name for code in ErrorCode} == set(codes.split()) | own_codes


@requirement(
    "b:progress:params",
    "b:progress:mapping",
    "b:progress:no-extra-fields",
    "a:progress:throttled",
    "a:progress:coalesced",
)
def test_progress_rises_is_coalesced_and_keeps_the_last_report(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        began = time.monotonic()
        peer.send_call(1, "count", {"progressToken": "tok"}, steps=600)
        frames = [peer.receive()]
        while "method" in frames[-1]:
            frames.append(peer.receive())
        seconds = time.monotonic() - began

    *reports, answer = [frame.get("params", frame) for frame in frames]
    numbers = [report["progress"] for report in reports]
    assert answer["id"] == 1
    assert {frame.get("method") for frame in frames[:-1]} == {"notifications/progress"}
    assert all(report.keys() == {"progressToken", "progress", "total", "message"} for report in reports)
    assert {report["progressToken"] for report in reports} == {"tok"}
    assert numbers == sorted(set(numbers))
    # A bound on the count for the time it took, not on the time: three a second and the last one.
    assert 2 <= len(reports) <= seconds * 3 + 2
    assert all(re.fullmatch(r"\[count\]\[phase=stepping\] step \d+", report["message"]) for report in reports)
    assert reports[-1]["message"] == "[count][phase=stepping] step 599"


@requirement("b:progress:only-with-token")
def test_without_a_token_there_is_no_progress(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        for number, meta in enumerate([None, {}, {"note": "x"}, {"progressToken": None}]):
            peer.send_call(number, "count", meta, steps=50)

            assert peer.receive()["id"] == number


@requirement("a:progress:none-after-end")
def test_nothing_is_reported_after_the_answer(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_call(1, "count", {"progressToken": 5}, steps=5)
        peer.wait_for_answer(1)
        peer.drop_unclaimed()
        peer.close_input()

        assert peer.read_remaining() == []


def test_a_changed_list_is_announced_and_listed_anew(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_request(1, "tools/list")
        before = peer.wait_for_answer(1)["result"]["tools"]
        peer.send_call(2, "grow")
        peer.wait_for_answer(2)
        announced = peer.receive()
        peer.send_request(3, "tools/list")
        after = peer.wait_for_answer(3)["result"]["tools"]

    assert announced == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    assert [t["description"] for t in before if t["name"] == "grow"] == ["I have been grown 1 times."]
    assert [t["description"] for t in after if t["name"] == "grow"] == ["I have been grown 2 times."]

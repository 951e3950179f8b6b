"""Tests of the legacy wire on real processes: frames, answers, cancels, progress, the end."""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.versions import SCHEMA_VERSION, TOOLING_VERSION
from cleats.transports import legacy
from tests.support import process_trees as trees
from tests.support.mcp_client import ServerPeer, encode_legacy_frame, start_legacy_server, start_server
from tests.support.requirements import requirement
from tests.support.waiting import wait_until

SERVER_COMMAND = (sys.executable, "-m", "tests.support.servers.surfaces", "legacy")

SPEC_TOOLS = {
    *("index_build", "index_status", "search", "show_file"),
    *("check_status", "workspace_status"),
}
"""The tools that specification A names."""


@contextmanager
def serve_legacy(home: Path, **environ: str) -> Iterator[ServerPeer]:
    with start_legacy_server(*SERVER_COMMAND, home=home, ready=False, **environ) as peer:
        yield peer


def read_payload(answer: dict[str, Any]) -> Any:
    """Return the JSON in the only text item."""
    [item] = answer["result"]["content"]
    assert item["type"] == "text"
    return json.loads(item["text"])


def read_error(answer: dict[str, Any]) -> Any:
    """Return the flat error of specification A after checking what holds for all of them."""
    body = read_payload(answer)
    assert answer["result"]["isError"] is True
    assert isinstance(body["message"], str)
    assert body["code"] in ErrorCode.__members__
    return body


def start_blocking_call(peer: ServerPeer, request_id: object, folder: Path, name: str = "x") -> None:
    peer.send_call(request_id, "block", folder=str(folder), name=name)
    wait_until((folder / f"began-{name}").exists)


# Opting in


@requirement("b:legacy:opt-in", "b:mcp:no-fallback", "a:names:stable")
@pytest.mark.parametrize(
    ("words", "environ"),
    [(["--wire", "legacy"], {}), ([], {"PAIROFCLEATS_MCP_TRANSPORT": "legacy"})],
)
def test_the_legacy_wire_is_there_when_asked_for_and_says_that_it_is_deprecated(
    tmp_path: Path, words: list[str], environ: dict[str, str]
) -> None:
    command = (sys.executable, "-m", "cleats", "serve", "code", *words)
    with start_legacy_server(*command, home=tmp_path, ready=True, **environ) as peer:
        peer.send_call(1, "check_status")
        assert read_payload(peer.wait_for_answer(1))["server"]["name"] == "cleats"
        peer.send_request(2, "tools/list")
        assert {tool["name"] for tool in peer.wait_for_answer(2)["result"]["tools"]} >= SPEC_TOOLS
        peer.close_input()
        assert peer.wait_for_exit() == 0

    assert b"Deprecated: the legacy wire" in peer.stderr


@requirement("b:legacy:opt-in", "b:mcp:no-fallback")
def test_nobody_gets_the_legacy_wire_without_asking(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "cleats", "serve", "code")
    with start_server(*command, home=tmp_path, ready=False) as peer:
        peer.send(encode_legacy_frame({"jsonrpc": "2.0", "id": 1, "method": "initialize"}) + b"\n")
        replies = [peer.receive(), peer.receive()]
        peer.close_input()
        assert peer.wait_for_exit() == 0

    assert all(line.startswith(b"{") for line in peer.lines)
    assert replies[0]["error"]["code"] == -32700
    assert b"Deprecated" not in peer.stderr


def test_a_wire_on_the_command_line_is_stronger_than_the_variable(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "cleats", "serve", "code", "--wire", "mcp")
    with start_server(*command, home=tmp_path, PAIROFCLEATS_MCP_TRANSPORT="legacy") as peer:
        peer.send_call(1, "check_status")

        assert peer.wait_for_answer(1)["result"]["isError"] is False


# Handshake and definitions


def test_the_handshake_has_the_capability_block_and_names_its_transport(tmp_path: Path) -> None:
    with serve_legacy(tmp_path) as peer:
        result = peer.initialize()

    block_ = result["capabilities"]["experimental"]["pairofcleats"]
    assert result["protocolVersion"] == "2024-11-05"
    assert result["serverInfo"] == {"name": "cleats", "version": TOOLING_VERSION}
    assert (block_["transport"], block_["schemaVersion"]) == ("legacy", SCHEMA_VERSION)


@requirement("a:definition:fields", "a:definition:tooling-version", "a:definition:top-level")
def test_each_definition_has_its_versions_at_the_top_level(tmp_path: Path) -> None:
    with serve_legacy(tmp_path) as peer:
        peer.send_request(1, "tools/list")
        tools = {tool["name"]: tool for tool in peer.wait_for_answer(1)["result"]["tools"]}

    for tool in tools.values():
        assert tool["inputSchema"]["type"] == "object"
        assert isinstance(tool["schemaVersion"], int)
        assert tool["toolingVersion"] == TOOLING_VERSION
    assert tools["echo"]["schemaVersion"] == 3
    assert tools["echo"]["description"] == "Answer the arguments."


@requirement("a:names:alias")
def test_an_old_name_is_listed_as_deprecated_and_still_works(tmp_path: Path) -> None:
    with serve_legacy(tmp_path) as peer:
        peer.send_request(1, "tools/list")
        peer.send_call(2, "say", text="x")
        tools = {tool["name"]: tool for tool in peer.wait_for_answer(1)["result"]["tools"]}

        assert read_payload(peer.wait_for_answer(2)) == {"text": "x", "n": 1}
    assert tools["say"]["description"].startswith("Deprecated since 2.0.0: use echo.")


# Answers


@requirement("a:result:wrapped", "a:result:valid-json", "a:result:success-is-no-error")
def test_a_result_is_bare_in_one_text_item(tmp_path: Path) -> None:
    with serve_legacy(tmp_path) as peer:
        peer.send_call("r", "echo", text="hi")
        answer = peer.wait_for_answer("r")

    assert answer["result"] == {"content": [{"type": "text", "text": '{"n":1,"text":"hi"}'}]}


@requirement("a:error:flat", "a:error:message-and-code")
def test_a_failure_is_a_flat_object_with_message_code_and_hint(tmp_path: Path) -> None:
    with serve_legacy(tmp_path) as peer:
        peer.send_call(1, "refuse")

        assert read_error(peer.wait_for_answer(1)) == {
            "message": "no index here",
            "code": "NO_INDEX",
            "hint": "Build it.",
            "details": {"repo": "r"},
        }


@requirement("a:error:optional-fields")
def test_the_output_of_a_failed_child_is_trimmed_and_has_its_own_fields(tmp_path: Path) -> None:
    with serve_legacy(tmp_path) as peer:
        peer.send_call(1, "spill")

        assert read_error(peer.wait_for_answer(1)) == {
            "message": "the child failed",
            "code": "CAPABILITY_MISSING",
            "stderr": "the reason",
            "stdout": "out",
            "details": {"exit": 3},
        }


def test_output_that_is_cut_does_not_begin_with_the_space_at_the_cut() -> None:
    text = "early" + " " * legacy.MAX_OUTPUT_CHARS + "x" * (legacy.MAX_OUTPUT_CHARS - 1)

    body = legacy.flatten_error(ToolError(ErrorCode.INTERNAL, "failed", details={"stderr": text}))

    assert body["stderr"] == "x" * (legacy.MAX_OUTPUT_CHARS - 1)


@requirement("a:arguments:unknown-refused", "a:arguments:reserved-refused", "a:error:flat")
@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"name": "echo", "arguments": {}}, ""),
        ({"name": "echo", "arguments": {"text": 7}}, "/text"),
        ({"name": "echo", "arguments": {"text": "x", "colour": "red"}}, "/colour"),
        ({"name": "echo", "arguments": {"text": "x", "later": "y"}}, "/later"),
        ({"name": "echo", "arguments": ["x"]}, "/arguments"),
        ({"arguments": {}}, "/name"),
        ({"name": 7}, "/name"),
        (None, "/name"),
    ],
)
def test_wrong_arguments_are_an_invalid_request_with_every_violation(tmp_path: Path, params: Any, path: str) -> None:
    with serve_legacy(tmp_path) as peer:
        peer.send_request(1, "tools/call", params)
        error = read_error(peer.wait_for_answer(1))

    assert error["code"] == "INVALID_REQUEST"
    assert [detail["instancePath"] for detail in error["details"]] == [path]


@requirement("a:error:unknown-name")
def test_an_unknown_name_is_an_invalid_request(tmp_path: Path) -> None:
    with serve_legacy(tmp_path) as peer:
        peer.send_call(1, "no_such_tool")

        assert read_error(peer.wait_for_answer(1))["code"] == "INVALID_REQUEST"


def test_a_full_queue_a_crash_and_what_is_no_json_are_flat_errors_too(tmp_path: Path) -> None:
    with serve_legacy(tmp_path, CLEATS_CONCURRENCY="1", CLEATS_QUEUE="0") as peer:
        peer.send_call(1, "crash")
        crash = read_error(peer.wait_for_answer(1))
        peer.send_call(2, "unspeakable")
        unspeakable = read_error(peer.wait_for_answer(2))
        start_blocking_call(peer, 3, tmp_path)
        peer.send_call(4, "echo", text="x")
        full = read_error(peer.wait_for_answer(4))

    assert crash["code"] == unspeakable["code"] == "INTERNAL"
    assert "secret" not in json.dumps(crash)
    assert full["code"] == "QUEUE_OVERLOADED"
    assert full["details"]["queue"] == {"max": 0, "size": 0}


def test_content_is_as_the_tool_made_it_and_a_flat_payload_keeps_its_shape(tmp_path: Path) -> None:
    (tmp_path / "go-h").touch()
    with serve_legacy(tmp_path) as peer:
        peer.send_call(1, "text")
        peer.send_call(2, "hold", folder=str(tmp_path), name="h")
        peer.send_call(3, "absent")

        assert peer.wait_for_answer(1)["result"] == {"content": [{"type": "text", "text": "plain text"}]}
        assert read_payload(peer.wait_for_answer(2)) == {"ok": True, "name": "h"}
        assert read_error(peer.wait_for_answer(3)) == {
            "ok": False,
            "reason": "not_found",
            "message": "it is not there",
            "code": "NOT_FOUND",
        }


# Cancelling


@requirement(
    "a:cancel:stops-the-work",
    "a:cancel:one-answer",
    "a:cancel:answer",
    "a:cancel:ids-as-strings",
    "a:cancel:no-progress-after",
    "a:cancel:never-success",
    "b:legacy:cancel",
)
@pytest.mark.parametrize(("call_id", "withdrawn"), [(7, 7), (7, "7"), ("7", 7), ("a", "a"), (7, 7.0), (7.0, "7")])
def test_a_withdrawn_call_is_answered_once_with_cancelled_and_stops(
    tmp_path: Path, call_id: object, withdrawn: object
) -> None:
    with serve_legacy(tmp_path) as peer:
        start_blocking_call(peer, call_id, tmp_path)
        peer.send_notification("$/cancelRequest", {"id": withdrawn})
        answer = peer.wait_for_answer(call_id)
        peer.drop_unclaimed()
        wait_until((tmp_path / "stopped-x").exists)
        peer.send_notification("$/cancelRequest", {"id": withdrawn})
        peer.close_input()

        assert peer.read_remaining() == []
        assert peer.wait_for_exit() == 0
    assert read_error(answer)["code"] == "CANCELLED"


@requirement("a:cancel:one-answer", "a:cancel:answer")
def test_a_call_that_waits_in_the_queue_is_withdrawn_at_once(tmp_path: Path) -> None:
    with serve_legacy(tmp_path, CLEATS_CONCURRENCY="1") as peer:
        start_blocking_call(peer, 1, tmp_path)
        peer.send_call(2, "block", folder=str(tmp_path), name="never")
        peer.send_notification("$/cancelRequest", {"id": 2})

        assert read_error(peer.wait_for_answer(2))["code"] == "CANCELLED"

        peer.send_notification("$/cancelRequest", {"id": 1})
        assert read_error(peer.wait_for_answer(1))["code"] == "CANCELLED"
        peer.send_call(3, "echo", text="next")
        assert read_payload(peer.wait_for_answer(3))["text"] == "next"
        peer.close_input()
        assert [frame for frame in peer.read_remaining() if "id" in frame] == []
    assert not (tmp_path / "began-never").exists()


@requirement("a:cancel:answer", "a:cancel:one-answer")
def test_a_cancel_in_the_same_read_as_its_call_is_answered_too(tmp_path: Path) -> None:
    call = {"name": "block", "arguments": {"folder": str(tmp_path), "name": "x"}}
    with serve_legacy(tmp_path) as peer:
        peer.send(
            encode_legacy_frame({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
            + encode_legacy_frame({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "1"}})
        )

        assert read_error(peer.wait_for_answer(1))["code"] == "CANCELLED"
        peer.close_input()
        assert [frame for frame in peer.read_remaining() if "id" in frame] == []
    assert not (tmp_path / "began-x").exists()


@requirement("a:cancel:stops-the-work", "a:kill:all-descendants")
def test_the_answer_does_not_wait_for_a_tree_of_processes_that_must_be_killed(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    with serve_legacy(tmp_path) as peer:
        peer.send_call(1, "tree", folder=str(folder), kind="ignoreterm")
        wait_until(lambda: trees.is_grown(folder, "ignoreterm"))
        [supervisor] = trees.find_children(peer.process.pid)
        os.kill(supervisor, signal.SIGSTOP)  # whoever ends the tree does not get to it
        peer.send_notification("$/cancelRequest", {"id": 1})

        assert read_error(peer.wait_for_answer(1))["code"] == "CANCELLED"
        assert trees.is_grown(folder, "ignoreterm")
        assert len(trees.find_living(folder)) == trees.PROCESS_COUNTS["ignoreterm"]
        os.kill(supervisor, signal.SIGCONT)
        wait_until(lambda: not trees.find_living(folder))


def test_a_cancel_of_nothing_is_nothing_and_a_cancelled_id_can_be_used_again(
    tmp_path: Path,
) -> None:
    with serve_legacy(tmp_path) as peer:
        for params in ({"id": 99}, {"id": None}, {}, None):
            peer.send_notification("$/cancelRequest", params)
        start_blocking_call(peer, 1, tmp_path)
        peer.send_notification("$/cancelRequest", {"id": 1})
        assert read_error(peer.wait_for_answer(1))["code"] == "CANCELLED"
        peer.send_call(1, "echo", text="again")

        assert read_payload(peer.wait_for_answer(1))["text"] == "again"


def test_a_second_request_with_an_id_in_use_is_refused_without_it(tmp_path: Path) -> None:
    with serve_legacy(tmp_path) as peer:
        start_blocking_call(peer, 1, tmp_path)
        peer.send_call("1", "echo", text="x")
        refusal = peer.wait_for_answer(None)
        peer.send_notification("$/cancelRequest", {"id": 1})

        assert refusal["error"]["code"] == -32600
        assert read_error(peer.wait_for_answer(1))["code"] == "CANCELLED"


# Timeouts and progress


@requirement("a:timeout:aborts", "a:timeout:answer")
def test_a_call_past_its_deadline_is_stopped_and_says_how_long_it_had(tmp_path: Path) -> None:
    with serve_legacy(tmp_path, CLEATS_TIMEOUTS="block=0.2") as peer:
        start_blocking_call(peer, 1, tmp_path)
        error = read_error(peer.wait_for_answer(1))
        wait_until((tmp_path / "stopped-x").exists)

    assert (error["code"], error["timeoutMs"]) == ("TOOL_TIMEOUT", 200)


@requirement("a:progress:payload", "a:progress:throttled", "a:progress:coalesced")
def test_progress_has_the_fields_of_the_spec_and_is_coalesced(tmp_path: Path) -> None:
    with serve_legacy(tmp_path) as peer:
        start_time = time.monotonic()
        peer.send_call("c", "count", steps=1000)
        reports = []
        while "method" in (frame := peer.receive()):
            reports.append(frame)
        seconds = time.monotonic() - start_time

    assert frame["id"] == "c"
    assert 2 <= len(reports) <= 4 * (seconds + 1)
    for report in reports:
        assert report["method"] == "notifications/progress"
        params = report["params"]
        assert params.keys() == {"id", "tool", "message", "stream", "phase", "ts"}
        assert (params["id"], params["tool"], params["phase"]) == ("c", "count", "stepping")
        assert params["stream"] == "info"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", params["ts"])
    assert reports[-1]["params"]["message"] == "step 999"


@requirement("a:progress:none-after-end", "a:cancel:no-progress-after")
def test_nothing_is_said_about_a_call_after_its_answer(tmp_path: Path) -> None:
    with serve_legacy(tmp_path) as peer:
        peer.send_call(1, "count", steps=30)
        peer.wait_for_answer(1)
        peer.drop_unclaimed()
        peer.send_request("end", "ping")
        peer.wait_for_answer("end")
        peer.close_input()

        assert peer.read_remaining() == []


# What is no request


@pytest.mark.parametrize(
    ("frame", "code", "answer_id"),
    [
        (encode_legacy_frame(b"{"), -32700, None),
        (encode_legacy_frame(b""), -32700, None),
        (encode_legacy_frame(b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}'), -32700, None),
        (encode_legacy_frame(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}'), -32700, None),
        (encode_legacy_frame(b"[]"), -32600, None),
        (encode_legacy_frame(b'{"jsonrpc":"2.0","id":null,"method":"ping"}'), -32600, None),
        (encode_legacy_frame(b'{"id":5,"method":"ping"}'), -32600, 5),
        (encode_legacy_frame(b'{"jsonrpc":"2.0","id":5,"method":"ping","params":[1]}'), -32600, 5),
        (encode_legacy_frame(b'{"jsonrpc":"2.0","id":5,"method":"tools/destroy"}'), -32601, 5),
        (encode_legacy_frame(b" " * 2000), -32600, None),
        (b"Content-Length: none\r\n\r\n{}", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', -32700, None),
    ],
)
def test_what_is_no_request_is_refused_with_a_code_and_the_next_one_answered(
    tmp_path: Path, frame: bytes, code: int, answer_id: object
) -> None:
    with serve_legacy(tmp_path, CLEATS_FRAME_LIMIT="1000") as peer:
        peer.send(frame)
        peer.send_request("next", "ping")
        refusal, following = peer.receive(), peer.receive()

    assert (refusal["id"], refusal["error"]["code"]) == (answer_id, code)
    assert refusal["error"]["data"]["code"] == "INVALID_REQUEST"
    assert following == {"jsonrpc": "2.0", "id": "next", "result": {}}


def test_notifications_and_responses_that_mean_nothing_are_not_answered(tmp_path: Path) -> None:
    with serve_legacy(tmp_path) as peer:
        peer.send_notification("notifications/initialized")
        peer.send_notification("no/such", {"a": 1})
        peer.send({"jsonrpc": "2.0", "id": 9, "result": {}})
        peer.send_request(1, "ping")
        peer.close_input()

        assert [frame["id"] for frame in peer.read_remaining()] == [1]


def test_control_messages_do_not_wait_behind_calls(tmp_path: Path) -> None:
    with serve_legacy(tmp_path, CLEATS_CONCURRENCY="1") as peer:
        start_blocking_call(peer, 1, tmp_path)
        peer.send_request(2, "ping")
        peer.send_request(3, "tools/list")

        assert peer.wait_for_answer(2)["result"] == {}
        assert peer.wait_for_answer(3)["result"]["tools"]


def test_nothing_but_frames_is_on_stdout(tmp_path: Path) -> None:
    with serve_legacy(tmp_path) as peer:
        peer.send_call(1, "noisy")

        assert read_payload(peer.wait_for_answer(1)) == {"stdin": ""}
        peer.close_input()
        assert peer.wait_for_exit() == 0
    assert b"a stray print" in peer.stderr


# The end


def test_at_the_end_of_input_everything_is_answered(tmp_path: Path) -> None:
    with serve_legacy(tmp_path) as peer:
        for number in range(20):
            peer.send_call(number, "echo", text="x")
        peer.close_input()

        assert {frame["id"] for frame in peer.read_remaining()} == set(range(20))
        assert peer.wait_for_exit() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_on_a_signal_what_runs_is_finished_and_the_exit_code_is_0(tmp_path: Path, number: signal.Signals) -> None:
    with serve_legacy(tmp_path, CLEATS_DRAIN="20") as peer:
        peer.send_call(1, "hold", folder=str(tmp_path), name="h")
        wait_until((tmp_path / "order").exists)
        peer.send_signal(number)
        (tmp_path / "go-h").touch()

        assert read_payload(peer.wait_for_answer(1))["ok"] is True
        assert peer.wait_for_exit() == 0


def test_what_does_not_finish_in_time_is_answered_cancelled(tmp_path: Path) -> None:
    with serve_legacy(tmp_path, CLEATS_DRAIN="0.1") as peer:
        start_blocking_call(peer, 1, tmp_path)
        peer.send_signal(signal.SIGTERM)

        assert read_error(peer.wait_for_answer(1))["code"] == "CANCELLED"
        assert peer.wait_for_exit() == 0
    assert (tmp_path / "stopped-x").exists()


@pytest.mark.parametrize("then", ["exit", None])
def test_shutdown_is_answered_and_ends_the_server(tmp_path: Path, then: str | None) -> None:
    with serve_legacy(tmp_path, CLEATS_DRAIN="60" if then else "0.5") as peer:
        peer.send(
            encode_legacy_frame({"jsonrpc": "2.0", "id": 1, "method": "shutdown"})
            + encode_legacy_frame({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        )

        assert peer.wait_for_answer(1)["result"] is None
        assert peer.wait_for_answer(2)["error"]["code"] == -32600
        if then:
            peer.send_notification(then)
        assert peer.wait_for_exit() == 0

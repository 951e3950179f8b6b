"""Tests of the answers to missing and mistyped arguments of the launch tools, on every surface."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from tests.support.http_client import CLEATS_COMMAND, run_web_server
from tests.support.mcp_client import ServerPeer, start_legacy_server, start_server
from tests.support.requirements import requirement

SERVE_COMMAND = (sys.executable, "-m", "cleats", "serve", "launch")


class BadCall(NamedTuple):
    """A call whose arguments do not fit, and the violation."""

    tool: str
    arguments: dict[str, Any]
    pointer: str
    problem: str


BAD_CALLS = [
    BadCall("launch_get_status", {}, "", 'missing required property "run_id"'),
    BadCall("launch_get_status", {"run_id": 7}, "/run_id", "expected string"),
    BadCall("launch_start_run", {}, "", 'missing required property "run_config"'),
    BadCall("launch_start_run", {"run_config": "x"}, "/run_config", "expected object"),
    BadCall("launch_get_artifact", {"run_id": "r_12345678", "artifact_name": []}, "/artifact_name", "expected string"),
]

Call = Callable[[str, dict[str, Any]], Any]


def make_call(peer: ServerPeer) -> Call:
    def call(tool: str, arguments: dict[str, Any]) -> Any:
        request_id = f"{tool} {json.dumps(arguments)}"
        peer.send_request(request_id, "tools/call", {"name": tool, "arguments": arguments})
        return peer.wait_for_answer(request_id)

    return call


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Call]]:
    home = tmp_path_factory.mktemp("home")
    env = {"MCP_READY_FILE": str(home / "ready")}
    with ExitStack() as stack:
        enter = stack.enter_context
        protocol = enter(start_server(*SERVE_COMMAND, home=home, ready=True, **env))
        tool_errors = enter(start_server(*SERVE_COMMAND, home=home, ready=True, CLEATS_VALIDATION_ERRORS="tool", **env))
        legacy = enter(start_legacy_server(*SERVE_COMMAND, "--wire", "legacy", home=home, ready=True, **env))
        rpc = enter(start_server(*SERVE_COMMAND, "--wire", "rpc", home=home, ready=False, **env))
        web = enter(run_web_server(*CLEATS_COMMAND, home=home))

        def call_rpc(tool: str, arguments: dict[str, Any]) -> Any:
            rpc.send_request(f"{tool} {json.dumps(arguments)}", tool, arguments)
            return rpc.wait_for_answer(f"{tool} {json.dumps(arguments)}")

        yield {
            "protocol": make_call(protocol),
            "tool": make_call(tool_errors),
            "legacy": make_call(legacy),
            "rpc": call_rpc,
            "http": lambda tool, arguments: web.post(f"/tools/{tool}", arguments),
        }


def read_payload(surface: str, answer: Any) -> Any:
    """Return the payload of spec e in an answer of a surface that carries it."""
    if surface == "rpc":
        return answer["result"]
    [item] = answer["result"]["content"]
    assert answer["result"]["isError"] is True
    return json.loads(item["text"])


@requirement("e:code:invalid-input", "e:answer:ok", "e:answer:error", "e:error:shape")
@pytest.mark.parametrize("surface", ["tool", "legacy", "rpc"])
@pytest.mark.parametrize("bad_call", BAD_CALLS)
def test_a_missing_or_mistyped_field_is_invalid_input_in_the_payload_of_the_tool(
    surfaces: dict[str, Call], surface: str, bad_call: BadCall
) -> None:
    payload = read_payload(surface, surfaces[surface](bad_call.tool, bad_call.arguments))

    error = payload["error"]
    assert payload["ok"] is False
    assert "run_id" not in payload
    assert [*error] == ["code", "message", "retryable", "details"]
    assert (error["code"], error["retryable"]) == ("INVALID_INPUT", False)
    [violation] = error["details"]["violations"]
    assert (violation["instancePath"], violation["message"]) == (bad_call.pointer, bad_call.problem)


@requirement("e:code:invalid-input")
@pytest.mark.parametrize("bad_call", BAD_CALLS)
def test_a_missing_or_mistyped_field_is_an_error_of_the_protocol_over_mcp(
    surfaces: dict[str, Call], bad_call: BadCall
) -> None:
    answer = surfaces["protocol"](bad_call.tool, bad_call.arguments)

    error = answer["error"]
    assert "result" not in answer
    assert (error["code"], error["data"]["code"]) == (-32602, "INVALID_REQUEST")
    [violation] = error["data"]["details"]
    assert (violation["instancePath"], violation["message"]) == (bad_call.pointer, bad_call.problem)


@requirement("e:code:invalid-input", "e:answer:ok", "e:answer:error")
@pytest.mark.parametrize("bad_call", BAD_CALLS)
def test_a_missing_or_mistyped_field_is_a_bad_request_over_http(surfaces: dict[str, Call], bad_call: BadCall) -> None:
    reply = surfaces["http"](bad_call.tool, bad_call.arguments)

    assert reply.status == 400
    body = reply.json
    assert (body["ok"], body["error"]["code"]) == (False, "INVALID_REQUEST")
    assert bad_call.problem in body["error"]["message"]
    assert json.dumps({"instancePath": bad_call.pointer})[1:-1] in json.dumps(body["error"]["details"])


@requirement("e:answer:ok")
@pytest.mark.parametrize("surface", ["protocol", "tool", "legacy", "rpc", "http"])
def test_a_success_says_ok_on_every_surface(surfaces: dict[str, Call], surface: str) -> None:
    answer = surfaces[surface]("launch_list_runs", {})

    if surface == "http":
        assert (answer.status, answer.json["ok"], answer.result["runs"]) == (200, True, [])
    elif surface == "rpc":
        assert (answer["result"]["ok"], answer["result"]["runs"]) == (True, [])
    else:
        payload = json.loads(answer["result"]["content"][0]["text"])
        assert (payload["ok"], payload["runs"]) == (True, [])

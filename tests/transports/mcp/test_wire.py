"""Tests of the MCP surface with every kind of frame, over a real process."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp_client import PROBE_COMMAND, ServerPeer, start_server
from tests.support.paths import REPOSITORY_ROOT
from tests.support.requirements import requirement
from tests.support.shell import EXIT_TIMEOUT_SECONDS
from tests.support.waiting import wait_until

REFUSED_FRAMES = {
    b"garbage": -32700,
    b'{"jsonrpc":"2.0","id":1': -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}': -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"\xff"}': -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}': -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}{}': -32700,
    b"[" * 10_000: -32700,
    b'{"x":' * 10_000 + b"1" + b"}" * 10_000: -32700,
    b'{"a":1e999}': -32700,
    b"\x00": -32700,
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]': -32600,
    b"[]": -32600,
    b"17": -32600,
    b"null": -32600,
    b"{}": -32600,
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":1,"method":7}': -32600,
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}': -32600,
}


def check_ping(peer: ServerPeer, request_id: Any = "alive") -> None:
    peer.send_request(request_id, "ping")
    assert peer.wait_for_answer(request_id)["result"] == {}


@requirement("b:mcp:json-rpc", "b:errors:protocol-has-code")
def test_every_malformed_frame_is_refused_and_the_next_one_is_answered(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        for frame, code in REFUSED_FRAMES.items():
            peer.send(frame + b"\n")
            refusal = peer.receive()

            assert refusal["error"]["code"] == code, frame[:60]
            assert refusal["error"]["data"]["code"] == "INVALID_REQUEST"
            check_ping(peer)


def test_a_refusal_carries_the_id_when_it_can_be_read(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send({"jsonrpc": "1.0", "id": 41, "method": "ping"})

        assert peer.receive()["id"] == 41


def test_blank_lines_and_crlf_are_no_frames(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send(b'\n\r\n  \n{"jsonrpc":"2.0","id":5,"method":"ping"}\r\n')

        assert peer.receive() == {"jsonrpc": "2.0", "id": 5, "result": {}}


def test_a_frame_over_the_limit_is_refused_before_it_is_whole(tmp_path: Path) -> None:
    with start_server(home=tmp_path, CLEATS_FRAME_LIMIT="2000") as peer:
        peer.send(b"x" * 5000)

        assert peer.receive()["error"]["code"] == -32600

        peer.send(b"y" * 5000 + b"\n")
        check_ping(peer)


def test_frames_may_arrive_in_pieces_and_in_bunches(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        frame = b'{"jsonrpc":"2.0","id":9,"method":"ping"}\n'
        for byte in frame:
            peer.send(bytes([byte]))
        peer.send(b"".join(frame.replace(b"9", b"1%d" % i) for i in range(10)))

        assert peer.wait_for_answer(9)["result"] == {}
        assert [peer.wait_for_answer(int(f"1{i}"))["result"] for i in range(10)] == [{}] * 10


def test_a_response_is_dropped_so_that_peers_cannot_storm(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send({"jsonrpc": "2.0", "id": 3, "result": {}})
        peer.send({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}})
        check_ping(peer)

        peer.close_input()
        assert peer.read_remaining() == []


@pytest.mark.parametrize("request_id", [0, -7, 2**70, "", "a b", "7", "ünïcode"])
def test_an_id_is_echoed_unchanged(tmp_path: Path, request_id: Any) -> None:
    with start_server(home=tmp_path) as peer:
        check_ping(peer, request_id)


def test_an_id_that_is_in_use_is_refused_and_the_first_request_lives(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_call(7, "block", folder=str(tmp_path), name="a")
        wait_until((tmp_path / "began-a").exists)
        peer.send_call("7", "echo", text="x")
        refusal = peer.receive()
        peer.send_notification("notifications/cancelled", {"requestId": 7})
        wait_until((tmp_path / "stopped-a").exists)
        check_ping(peer)

        assert refusal["error"]["code"] == -32600
        assert "still running" in refusal["error"]["message"]


@requirement("b:mcp:one-line", "b:output:compact")
def test_every_message_is_one_compact_line_that_ends_in_one_line_feed(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_call(1, "echo", text="line\nbreak\r\ttab")
        answer = peer.wait_for_answer(1)
        peer.close_input()
        peer.wait_for_exit()

        assert answer["result"]["structuredContent"]["result"]["text"] == "line\nbreak\r\ttab"
        for line in peer.lines:
            body = line.removesuffix(b"\n")
            assert line.endswith(b"\n")
            assert b"\n" not in body
            assert b"\r" not in body
            compact = json.dumps(json.loads(body), ensure_ascii=False, separators=(",", ":"))
            assert body == compact.encode()


@requirement("b:mcp:stdout-frames-only", "b:mcp:logs-on-stderr")
def test_stray_prints_and_the_output_of_children_go_to_stderr(tmp_path: Path) -> None:
    with start_server(home=tmp_path) as peer:
        peer.send_call(1, "noisy")
        answer = peer.wait_for_answer(1)
        peer.close_input()
        peer.wait_for_exit()

        assert answer["result"]["structuredContent"]["result"] == {"stdin": ""}
        assert b"a stray print" in peer.stderr
        assert b"raw bytes on fd 1" in peer.stderr
        assert b"a child's output" in peer.stderr
        assert b"call.end surface=mcp id=1 tool=noisy outcome=Done" in peer.stderr


def test_a_client_that_does_not_read_stderr_does_not_stop_the_server(tmp_path: Path) -> None:
    process = subprocess.Popen(
        PROBE_COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"HOME": str(tmp_path), "PYTHONPATH": str(REPOSITORY_ROOT)},
    )
    call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"refuse"}}\n'
    start = b'{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"1",'
    start += b'"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(start)
        process.stdin.flush()
        process.stdout.readline()
        for number in range(1500):  # some 250 KB of log lines, four times a pipe's buffer
            process.stdin.write(call % number)
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())

            assert answer["id"] == number
    finally:
        process.kill()
        process.communicate()


def test_input_from_a_file_is_served_to_its_end(tmp_path: Path) -> None:
    requests = tmp_path / "requests"
    lines = [{"jsonrpc": "2.0", "id": i, "method": "ping"} for i in range(50)]
    requests.write_text("\n".join(json.dumps(line) for line in lines))

    with requests.open("rb") as source:
        done = subprocess.run(
            PROBE_COMMAND,
            stdin=source,
            capture_output=True,
            env={"HOME": str(tmp_path), "PYTHONPATH": str(REPOSITORY_ROOT)},
            check=True,
            timeout=EXIT_TIMEOUT_SECONDS,
        )

    answers = [json.loads(line)["id"] for line in done.stdout.splitlines()]
    assert answers == list(range(50))


@requirement("b:mcp:no-fallback")
def test_content_length_framing_is_refused_and_never_answered_in_kind(tmp_path: Path) -> None:
    with start_server(home=tmp_path, ready=False) as peer:
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        peer.send(b"Content-Length: %d\r\n\r\n" % len(body) + body + b"\n")

        assert peer.receive()["error"]["code"] == -32700
        assert peer.receive() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        peer.close_input()
        peer.wait_for_exit()
        assert not any(line.startswith(b"Content-Length") for line in peer.lines)


def test_the_command_serves_the_same_surface(tmp_path: Path) -> None:
    with start_server(sys.executable, "-m", "cleats", "serve", "code", home=tmp_path) as peer:
        peer.send_call(1, "check_status")

        assert peer.wait_for_answer(1)["result"]["structuredContent"]["ok"] is True


def test_a_server_without_standard_descriptors_ends_without_a_trace(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m cleats serve code <&- >&-"],
        stderr=subprocess.PIPE,
        env={"HOME": str(tmp_path), "PYTHONPATH": str(REPOSITORY_ROOT)},
        check=False,
        timeout=EXIT_TIMEOUT_SECONDS,
    )

    assert done.returncode == 0
    assert b"Traceback" not in done.stderr

"""Tests of the rpc wire on real processes: frames, order, guards, readiness and the end."""

import asyncio
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.registry import Registry
from cleats.contract.tools import Tool, Toolset, arguments
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.shutdown import Shutdown
from cleats.runtime.telemetry import CallTelemetry
from cleats.settings import Settings
from cleats.transports import lifecycle, rpc
from cleats.transports.stdio import ReceiveCallback
from tests.support.assets import SHOWCASE_FOLDER, build_serve_command
from tests.support.mcp_client import ServerPeer, start_server
from tests.support.paths import REPOSITORY_ROOT
from tests.support.requirements import requirement
from tests.support.shell import EXIT_TIMEOUT_SECONDS, LAW_SETTINGS
from tests.support.waiting import wait_until

LINE_COMMAND = (sys.executable, "-m", "tests.support.servers.line")
BYTES_PER_MIB = 1 << 20
DEEP_JSON = b"[" * 300 + b"]" * 300
TOO_LARGE_ANSWER = {
    "jsonrpc": "2.0",
    "id": None,
    "result": {
        "ok": False,
        "reason": "validation_failed",
        "errors": [{"path": "", "msg": "payload_too_large"}],
    },
}


@contextmanager
def start_line_server(home: Path, **environ: str) -> Iterator[ServerPeer]:
    settings = {"MCP_READY_FILE": str(home / "ready"), **environ}
    with start_server(*LINE_COMMAND, home=home, ready=False, **settings) as peer:
        yield peer


def send_hold(peer: ServerPeer, folder: Path, request_id: object, name: str) -> None:
    peer.send_request(request_id, "hold", {"folder": str(folder), "name": name})


def read_order(folder: Path) -> list[str]:
    path = folder / "order"
    return path.read_text().splitlines() if path.exists() else []


# Frames


@requirement("d:rpc:version", "d:rpc:lines", "d:rpc:compact", "d:rpc:method-is-tool", "d:rpc:result")
def test_the_specs_example_is_answered_to_the_byte(tmp_path: Path) -> None:
    clone = tmp_path / "libs" / "synesthetic-schemas" / "jsonschema"
    clone.mkdir(parents=True)
    (clone / "synesthetic-asset.json").write_text('{"version": "0.7.0", "type": "object"}')

    with start_server(
        *build_serve_command("rpc"), home=tmp_path, ready=False, MCP_READY_FILE=str(tmp_path / "r")
    ) as peer:
        peer.send(b'{"jsonrpc":"2.0","id":1,"method":"list_schemas","params":{}}\n')
        peer.receive()

    expected = (
        '{"jsonrpc":"2.0","id":1,"result":{"ok":true,"schemas":[{"name":"synesthetic-asset",'
        '"version":"0.7.0","path":"libs/synesthetic-schemas/jsonschema/synesthetic-asset.json"}]}}'
        "\n"
    )
    assert peer.lines == [expected.encode()]


@requirement("d:rpc:ids")
@pytest.mark.parametrize(
    "wire_id",
    [
        *(b"1", b'"a"', b'""', b"0", b"-7", b"1.5", b"123456789012345678901234567890"),
        *(b"1.50", b"1e2", b"-0.0", b"-0", b"12345678901234567890.123456789"),
    ],
)
def test_an_id_that_is_a_string_or_a_number_comes_back_unchanged(tmp_path: Path, wire_id: bytes) -> None:
    with start_line_server(tmp_path) as peer:
        peer.send(b'{"jsonrpc":"2.0","id":%s,"method":"echo","params":{"text":"x"}}\n' % wire_id)
        answer = peer.receive()

    assert answer["result"]["ok"] is True
    assert peer.lines[0].startswith(b'{"jsonrpc":"2.0","id":%s,' % wire_id)


@requirement("d:rpc:ids", "d:rpc:no-batch", "d:rpc:version")
@pytest.mark.parametrize(
    ("frame", "code", "answer_id"),
    [
        (b'{"jsonrpc":"2.0","id":true,"method":"echo"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"echo"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":{},"method":"echo"}', -32600, None),
        (b'{"id":5,"method":"echo"}', -32600, 5),
        (b'{"jsonrpc":"1.0","id":5,"method":"echo"}', -32600, 5),
        (b'{"jsonrpc":"2.0","id":5,"method":7}', -32600, 5),
        (b'{"jsonrpc":"2.0","id":5,"method":"echo","params":[1]}', -32600, 5),
        (b'[{"jsonrpc":"2.0","id":1,"method":"echo"}]', -32600, None),
        (b"[]", -32600, None),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"a"}{"jsonrpc":"2.0","id":2,"method":"b"}',
            -32700,
            None,
        ),
        (b"7", -32600, None),
        (b"{", -32700, None),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"echo"}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1e400,"method":"echo"}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, None),
        (b"[" * 100_000, -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"x":%b}}' % DEEP_JSON, -32700, None),
    ],
)
def test_what_is_no_request_is_refused_and_the_next_one_answered(
    tmp_path: Path, frame: bytes, code: int, answer_id: object
) -> None:
    with start_line_server(tmp_path) as peer:
        peer.send(frame + b"\n")
        peer.send_request("next", "echo", {"text": "x"})
        refusal = peer.receive()
        following = peer.receive()

    assert (refusal["jsonrpc"], refusal["id"], refusal["error"]["code"]) == ("2.0", answer_id, code)
    assert refusal["error"]["data"] == {"code": "INVALID_REQUEST"}
    assert following["id"] == "next"


@requirement("d:rpc:ids")
@pytest.mark.parametrize("wire_id", [b"-0", b"1.50"])
def test_the_id_of_a_refused_request_comes_back_unchanged_too(tmp_path: Path, wire_id: bytes) -> None:
    with start_line_server(tmp_path) as peer:
        peer.send(b'{"jsonrpc":"1.0","id":%s,"method":"echo"}\n' % wire_id)
        peer.receive()

    assert peer.lines[0].startswith(b'{"jsonrpc":"2.0","id":%s,"error":' % wire_id)


def test_a_request_without_an_id_runs_and_is_not_answered(tmp_path: Path) -> None:
    (tmp_path / "go-n").touch()
    with start_line_server(tmp_path) as peer:
        peer.send_notification("hold", {"folder": str(tmp_path), "name": "n"})
        peer.send_notification("no such tool")
        peer.send({"jsonrpc": "2.0", "id": 9, "result": {}})
        peer.send_request(1, "echo", {"text": "x"})
        peer.close_input()

        assert [frame["id"] for frame in peer.read_remaining()] == [1]
    assert read_order(tmp_path) == ["began n", "ended n"]


def test_blank_lines_carriage_returns_and_a_missing_last_newline_are_no_trouble(
    tmp_path: Path,
) -> None:
    with start_line_server(tmp_path) as peer:
        peer.send(b'\n\r\n  {"jsonrpc":"2.0","id":1,"method":"nope"}\r\n\n')
        peer.send(b'{"jsonrpc":"2.0","id":2,"method":"nope"}')
        peer.close_input()

        assert [frame["id"] for frame in peer.read_remaining()] == [1, 2]


# Payloads of every kind of tool


@requirement("d:error:unsupported")
def test_an_unknown_method_is_unsupported(tmp_path: Path) -> None:
    with start_line_server(tmp_path) as peer:
        peer.send_request(1, "no_such_tool")

        assert peer.receive()["result"] == {
            "ok": False,
            "reason": "unsupported",
            "detail": "tool not implemented",
        }


def test_a_tool_of_any_toolset_answers_in_its_own_shape(tmp_path: Path) -> None:
    with start_line_server(tmp_path) as peer:
        for number, (method, params) in enumerate(
            [
                ("echo", {"text": "x"}),
                ("echo", {}),
                ("refuse", {}),
                ("crash", {}),
                ("unspeakable", {}),
                ("text", {}),
                ("hold", {}),
            ]
        ):
            peer.send_request(number, method, params)
        results = [peer.receive()["result"] for _ in range(7)]

    assert results[0]["result"] == {"text": "x", "n": 1}
    assert [result["error"]["code"] for result in results[1:5]] == [
        "INVALID_REQUEST",
        "NO_INDEX",
        "INTERNAL",
        "INTERNAL",
    ]
    assert results[5] == {"ok": True, "content": [{"type": "text", "text": "plain text"}]}
    assert results[6] == {
        "ok": False,
        "reason": "validation_failed",
        "errors": [
            {"path": "/folder", "msg": 'missing required property "folder"'},
            {"path": "/name", "msg": 'missing required property "name"'},
        ],
    }
    assert "secret" not in json.dumps(results)


@requirement("d:rpc:stdout", "d:rpc:stderr")
def test_stdout_carries_frames_only_whatever_a_tool_prints(tmp_path: Path) -> None:
    with start_line_server(tmp_path) as peer:
        peer.send_request(1, "noisy")
        peer.send_request(2, "crash")
        peer.close_input()
        frames = peer.read_remaining()
        peer.wait_for_exit()

    assert [frame["id"] for frame in frames] == [1, 2]
    assert len(peer.lines) == 2
    for stray in (b"a stray print", b"raw bytes on fd 1", b"a child's output"):
        assert stray in peer.stderr
    assert b"Traceback" in peer.stderr
    assert b"call.end surface=rpc id=1 tool=noisy outcome=Done" in peer.stderr


# One at a time


@requirement("d:rpc:sequential", "d:rpc:order")
def test_requests_run_one_after_the_other_and_are_answered_in_order(tmp_path: Path) -> None:
    with start_line_server(tmp_path) as peer:
        (tmp_path / "go-fast").touch()
        send_hold(peer, tmp_path, 1, "slow")
        wait_until(lambda: read_order(tmp_path) == ["began slow"])
        send_hold(peer, tmp_path, 2, "fast")
        wait_until(lambda: _count_unread_bytes(peer) == 0)
        (tmp_path / "go-slow").touch()

        assert [peer.receive()["id"], peer.receive()["id"]] == [1, 2]
    assert read_order(tmp_path) == ["began slow", "ended slow", "began fast", "ended fast"]


def _count_unread_bytes(peer: ServerPeer) -> int:
    """Return the number of bytes that the server has not yet read from the pipe."""
    assert peer.process.stdin is not None
    count = fcntl.ioctl(peer.process.stdin, termios.FIONREAD, b"\0" * 4)
    return int.from_bytes(count, sys.byteorder)


def test_a_burst_far_larger_than_the_buffers_is_answered_whole_and_in_order(
    tmp_path: Path,
) -> None:
    text = "x" * 2000
    with start_line_server(tmp_path, CLEATS_RPC_FRAME_LIMIT="10000", CLEATS_LOG_LEVEL="warning") as peer:
        for number in range(3000):
            peer.send_request(number, "echo", {"text": text})
        peer.close_input()
        ids = [frame["id"] for frame in peer.read_remaining()]

    assert ids == list(range(3000))


# The size guard


@requirement("d:rpc:size-guard", "d:error:too-large")
def test_a_line_of_one_mebibyte_passes_and_one_byte_more_does_not(tmp_path: Path) -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"%s"}}'
    largest = frame % (b"x" * (BYTES_PER_MIB - len(frame % b"")))
    assert len(largest) == BYTES_PER_MIB
    wide = frame % ("é" * (BYTES_PER_MIB // 2)).encode()  # over the limit in bytes, half of it in characters

    with start_line_server(tmp_path) as peer:
        peer.send(largest + b"\n" + largest.replace(b"x", b"xx", 1) + b"\n")
        peer.send(wide + b"\n" + largest + b"\r\n")
        answers = [peer.receive() for _ in range(4)]

    assert answers[0]["result"]["ok"] is answers[3]["result"]["ok"] is True
    assert answers[1] == answers[2] == TOO_LARGE_ANSWER


@requirement("d:rpc:size-guard")
def test_an_endless_line_is_refused_while_it_comes_and_is_not_kept(tmp_path: Path) -> None:
    with start_line_server(tmp_path) as peer:
        peer.send_request(0, "echo", {"text": "x"})
        peer.receive()
        before = _read_resident_bytes(peer)
        for _ in range(64):
            peer.send(b"{" * BYTES_PER_MIB)
        refusal = peer.receive()
        after = _read_resident_bytes(peer)
        peer.send(b"\n")
        peer.send_request(1, "echo", {"text": "x"})

        assert refusal == TOO_LARGE_ANSWER
        assert peer.receive()["id"] == 1
    assert after - before < 16 * BYTES_PER_MIB


def _read_resident_bytes(peer: ServerPeer) -> int:
    pages = Path(f"/proc/{peer.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class FakeWire:
    """A wire that receives bytes by hand and records the bytes that are written."""

    def __init__(self) -> None:
        self.deliver: ReceiveCallback = lambda _chunk: None
        self.sent_bytes = b""
        self.log: list[str] = []
        self.is_broken = False

    def receive(self, callback: ReceiveCallback) -> None:
        self.deliver = callback

    def write(self, data: bytes) -> None:
        self.sent_bytes += data

    def stop(self) -> None:
        self.log.append("stop")

    def pause(self) -> None:
        self.log.append("pause")

    def resume(self) -> None:
        self.log.append("resume")

    async def wait_flushed(self) -> None:
        await asyncio.sleep(0)


async def _echo_arguments(args: Any, _context: Any) -> dict[str, Any]:
    await asyncio.sleep(0)
    return dict(args)


ECHO_TOOL = Tool(name="echo", description="", input=arguments({"n": {"type": "integer"}}), run=_echo_arguments)


def _exchange_chunks(chunks: list[bytes], limit: int = BYTES_PER_MIB) -> FakeWire:
    async def exchange() -> FakeWire:
        wire, stop = FakeWire(), Shutdown()
        registry = Registry([Toolset(name="t", purpose="", tools=[ECHO_TOOL])])
        quiet = CallTelemetry(log_calls=False)
        dispatcher = Dispatcher(registry, concurrency=1, queue=1, telemetry=quiet)
        server_task = asyncio.create_task(
            rpc.RpcConnection(dispatcher, wire, limit=limit, drain=1, shutdown=stop).run()
        )
        await asyncio.sleep(0)
        for chunk in chunks:
            wire.deliver(chunk)
        wire.deliver(b"")
        await server_task
        return wire

    return asyncio.run(exchange())


@LAW_SETTINGS
@given(st.lists(st.integers(0, 999), max_size=8), st.data())
def test_however_the_bytes_are_cut_the_answers_are_the_same(numbers: list[int], data: st.DataObject) -> None:
    body = b"".join(
        b'{"jsonrpc":"2.0","id":%d,"method":"echo","params":{"n":%d}}\n' % (i, n) for i, n in enumerate(numbers)
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    chunks = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True) if a < b]

    frames = [json.loads(line) for line in _exchange_chunks(chunks).sent_bytes.splitlines()]

    assert [frame["id"] for frame in frames] == list(range(len(numbers)))
    assert [frame["result"]["result"]["n"] for frame in frames] == numbers


@LAW_SETTINGS
@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6))
def test_no_bytes_are_met_with_silence_or_death(chunks: list[bytes]) -> None:
    wire = _exchange_chunks([*chunks, b'\n{"jsonrpc":"2.0","id":"last","method":"echo"}\n'], limit=60)

    frames = [json.loads(line) for line in wire.sent_bytes.splitlines()]

    assert frames[-1]["id"] == "last"
    lines = b"".join(chunks).split(b"\n")
    assert len(frames) - 1 <= sum(1 for line in lines if line.strip())


def test_reading_stops_while_enough_requests_wait_and_goes_on_after() -> None:
    request = b'{"jsonrpc":"2.0","id":1,"method":"echo"}\n'

    wire = _exchange_chunks([request * 10], limit=100)

    assert wire.log[0] == "pause"
    assert wire.log.count("resume") == 1
    assert wire.sent_bytes.count(b"\n") == 10


# Readiness


@requirement("d:ready:file", "d:ready:content", "d:ready:removed", "d:ready:line")
@pytest.mark.parametrize("end", ["eof", "SIGTERM", "SIGINT"])
def test_the_ready_file_is_there_while_the_server_is_ready(tmp_path: Path, end: str) -> None:
    file = tmp_path / "deep" / "ready"
    with start_line_server(tmp_path, MCP_READY_FILE=str(file)) as peer:
        wait_until(file.exists)
        content = file.read_text()
        peer.send_request(1, "echo", {"text": "x"})
        peer.receive()
        peer.close_input() if end == "eof" else peer.send_signal(signal.Signals[end])

        assert peer.wait_for_exit() == 0
    assert re.fullmatch(rf"{peer.process.pid} \d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{3}}Z\n", content)
    assert not file.exists()
    log_text = peer.stderr.decode()
    stamp = content.split()[1]
    assert f"mcp:ready mode=stdio timestamp={stamp} toolsets=line\n" in log_text
    assert f"mcp:shutdown mode=stdio timestamp={stamp} toolsets=line\n" in log_text


@requirement("d:environment")
def test_the_ready_file_has_the_specs_name_unless_it_is_given_one() -> None:
    assert Settings().ready_file == "/tmp/mcp.ready"


@requirement("d:ready:file")
def test_the_ready_line_comes_after_discovery_and_names_the_folders(tmp_path: Path) -> None:
    environ = {"SYN_SCHEMAS_DIR": str(SHOWCASE_FOLDER), "MCP_READY_FILE": str(tmp_path / "ready")}
    with start_server(*build_serve_command("rpc"), home=tmp_path, ready=False, **environ) as peer:
        wait_until((tmp_path / "ready").exists)
        peer.close_input()
        peer.wait_for_exit()

    folders = f"schemas_dir={SHOWCASE_FOLDER}/jsonschema examples_dir={SHOWCASE_FOLDER}/examples"
    assert re.search(rf"^mcp:ready mode=stdio timestamp=\S+ .*{folders}$", peer.stderr.decode(), re.MULTILINE)


def test_no_ready_file_is_made_when_the_folders_are_not_there(tmp_path: Path) -> None:
    environ = {"SYN_SCHEMAS_DIR": "nowhere", "MCP_READY_FILE": str(tmp_path / "ready")}
    with start_server(*build_serve_command("rpc"), home=tmp_path, ready=False, **environ) as peer:
        assert peer.wait_for_exit() == 2

    assert not (tmp_path / "ready").exists()
    assert peer.stderr.decode() == "Error: SYN_SCHEMAS_DIR: the folder 'nowhere' does not exist\n"


@pytest.fixture
def announcements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keep the lines that this process would print, so that they do not end up in the report of the tests."""
    lines: list[str] = []
    monkeypatch.setattr(lifecycle, "_print_line", lines.append)
    return lines


@requirement("d:ready:fatal")
def test_the_ready_file_is_removed_when_the_server_fails(tmp_path: Path, announcements: list[str]) -> None:
    file = tmp_path / "ready"

    def fail_while_ready() -> None:
        with lifecycle.announce_ready(str(file), {"timestamp": "now"}):
            assert file.exists()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_while_ready()
    assert not file.exists()
    assert announcements == ["mcp:ready mode=stdio timestamp=now", "mcp:shutdown mode=stdio timestamp=now"]


@pytest.mark.usefixtures("announcements")
def test_a_link_in_the_place_of_the_ready_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    precious, link = tmp_path / "precious", tmp_path / "ready"
    precious.write_text("mine")
    link.symlink_to(precious)

    with lifecycle.announce_ready(str(link), {"timestamp": "now"}):
        assert link.read_text() == f"{os.getpid()} now\n"

    assert precious.read_text() == "mine"
    assert not link.exists()


@pytest.mark.usefixtures("announcements")
def test_the_ready_file_of_another_server_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "ready"

    with lifecycle.announce_ready(str(file), {"timestamp": "now"}):
        file.write_text("4711 later\n")

    assert file.read_text() == "4711 later\n"


@pytest.mark.parametrize("kind", ["device", "folder", "below a file"])
def test_a_ready_file_that_cannot_be_made_does_not_keep_the_server_from_serving(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").touch()
    path = {"device": "/dev/null", "folder": str(tmp_path), "below a file": f"{tmp_path}/file/x"}
    with start_line_server(tmp_path, MCP_READY_FILE=path[kind]) as peer:
        peer.send_request(1, "echo", {"text": "x"})

        assert peer.receive()["id"] == 1
        peer.close_input()
        peer.wait_for_exit()
    assert Path("/dev/null").is_char_device()
    assert tmp_path.is_dir()
    assert (b"not written" in peer.stderr) is (kind != "device")


# The end


@requirement("d:shutdown:in-flight")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_on_a_signal_the_request_in_flight_is_finished_and_answered(tmp_path: Path, number: signal.Signals) -> None:
    with start_line_server(tmp_path, CLEATS_DRAIN="0") as peer:
        send_hold(peer, tmp_path, 1, "a")
        wait_until(lambda: read_order(tmp_path) == ["began a"])
        peer.send_signal(number)
        wait_until(lambda: not _catches_sigterm(peer))
        (tmp_path / "go-a").touch()

        assert [frame["result"] for frame in peer.read_remaining()] == [{"ok": True, "name": "a"}]
        assert peer.wait_for_exit() == 0
    assert read_order(tmp_path) == ["began a", "ended a"]


SIGNAL_SCRIPT = """
import asyncio, os, signal
from cleats.runtime import shutdown

async def main():
    shutdown.SIGNAL_ECHO_SECONDS = 3600
    with shutdown.watch_signals() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        await stop.requested.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0)
        print(stop.reason)

asyncio.run(main())
"""


def test_a_signal_that_is_passed_on_as_well_is_still_one(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SIGNAL_SCRIPT],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=EXIT_TIMEOUT_SECONDS,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"SIGTERM\n", b"")


def _catches_sigterm(peer: ServerPeer) -> bool:
    """Return whether SIGTERM is still caught; soon after the first one the default is back."""
    status = Path(f"/proc/{peer.process.pid}/status").read_text()
    match = re.search(r"^SigCgt:\s*(\w+)$", status, re.MULTILINE)
    assert match is not None
    return bool(int(match.group(1), 16) >> (signal.SIGTERM - 1) & 1)


def test_on_a_signal_requests_that_wait_are_answered_while_there_is_time(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"go-{name}").touch()
    with start_line_server(tmp_path, CLEATS_DRAIN="20") as peer:
        send_hold(peer, tmp_path, 0, "held")
        send_hold(peer, tmp_path, 1, "a")
        send_hold(peer, tmp_path, 2, "b")
        wait_until(lambda: read_order(tmp_path) == ["began held"])
        peer.send_signal(signal.SIGTERM)
        wait_until(lambda: not _catches_sigterm(peer))
        (tmp_path / "go-held").touch()

        assert [frame["id"] for frame in peer.read_remaining()] == [0, 1, 2]
        assert peer.wait_for_exit() == 0


def test_at_the_end_of_the_input_everything_that_was_read_is_answered(tmp_path: Path) -> None:
    with start_line_server(tmp_path, CLEATS_DRAIN="0") as peer:
        send_hold(peer, tmp_path, 1, "a")
        peer.send_request(2, "echo", {"text": "x"})
        wait_until(lambda: read_order(tmp_path) == ["began a"])
        peer.close_input()
        (tmp_path / "go-a").touch()

        assert [frame["id"] for frame in peer.read_remaining()] == [1, 2]
        assert peer.wait_for_exit() == 0


def test_requests_from_a_file_are_answered_into_a_file(tmp_path: Path) -> None:
    """Run as `cleats serve assets --wire rpc < requests > answers` does, where nothing can wait."""
    requests, answers = tmp_path / "requests", tmp_path / "answers"
    frame = '{"jsonrpc":"2.0","id":%d,"method":"list_schemas"}\n'
    requests.write_text("".join(frame % number for number in range(500)))

    with requests.open() as source, answers.open("w") as target:
        done = subprocess.run(
            build_serve_command("rpc"),
            stdin=source,
            stdout=target,
            stderr=subprocess.PIPE,
            env={
                "HOME": str(tmp_path),
                "PYTHONPATH": str(REPOSITORY_ROOT),
                "SYN_SCHEMAS_DIR": str(SHOWCASE_FOLDER),
                "MCP_READY_FILE": str(tmp_path / "ready"),
            },
            cwd=tmp_path,
            timeout=EXIT_TIMEOUT_SECONDS,
            check=False,
        )

    assert done.returncode == 0
    ids = [json.loads(line)["id"] for line in answers.read_text().splitlines()]
    assert ids == list(range(500))


# Start-up


def test_serving_assets_on_rpc_imports_no_heavy_library(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom cleats.cli.main import cli\n"
        "try:\n    cli.main(['serve', 'assets', '--wire', 'rpc'], 'cleats')\n"
        "finally:\n    print(*sorted(sys.modules), file=sys.stderr)"
    )
    request = '{"jsonrpc":"2.0","id":1,"method":"validate_asset","params":{"asset":1,"schema":"x"}}\n'

    done = subprocess.run(
        [sys.executable, "-c", code],
        input=request,
        env={
            "HOME": str(tmp_path),
            "SYN_SCHEMAS_DIR": str(SHOWCASE_FOLDER),
            "MCP_READY_FILE": str(tmp_path / "ready"),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=EXIT_TIMEOUT_SECONDS,
    )

    assert '"schema_not_found"' in done.stdout
    imported = set(done.stderr.splitlines()[-1].split())
    assert "cleats.transports.rpc" in imported
    assert not imported & {
        "mcp",
        "mcp_types",
        "pydantic",
        "starlette",
        "httpx2",
        "opentelemetry.sdk",
        "anyio._backends._asyncio",
        "jsonschema",
        "watchfiles",
    }
